"""What was proved about the rivals of a leader so far, and what was tried: a rival once passed stays passed.

Both evidence processes are below their thresholds at θ* at all times at once with probability 1 − delta, so a proof may
look at any moment of the search, and the proofs of different rivals at different ones (docs/anytime.md, Theorem 1). A
proof that failed costs as much as one that succeeds, so it is tried again only when there is something to gain.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

AGAIN = 0.5
"""A proof is tried again when evidence has grown by this share of what it lacked ..."""

LATER = 1.6
"""... or the questions to so many times as many."""


@dataclass(frozen=True)
class Pass:
    """A rival that was proved passed after so many stages, and what the proof was found with."""

    leader: int
    item: int
    stages: int
    nats: float
    proof: Mapping[str, Any]


@dataclass(frozen=True)
class Attempt:
    """A proof that failed: the evidence there was, what it lacked, and how many questions had been asked."""

    leader: int
    item: int
    evidence: float
    lacking: float
    asked: int
    witness: list[float] | None = None
    """A θ that shows that no proof could succeed, if one was met: nothing is worth trying before it is refuted."""

    def worth_repeating(self, evidence: float, asked: int) -> bool:
        """Whether enough has changed since."""
        return evidence > self.evidence + AGAIN * self.lacking or asked > LATER * self.asked

    def loss(self, needed: float) -> float:
        """Nats that the proof lost of the evidence there was."""
        return self.evidence + self.lacking - needed


@dataclass(frozen=True, eq=False)
class Ledger:
    """Everything proved and tried, by leader and rival."""

    passes: Mapping[tuple[int, int], Pass] = field(default_factory=dict)
    attempts: Mapping[tuple[int, int], Attempt] = field(default_factory=dict)
    examined: int = 0
    """Stages there were when proofs were last tried."""
    rehearsed: int = 0
    """Questions there were when proofs were last tried though others lacked evidence."""

    def with_entries(self, entries: Mapping[str, Any]) -> "Ledger":
        """With what a stage's memo holds of the moment it was planned."""
        passed = [Pass(**each) for each in entries["passed"]]
        tried = [Attempt(**each) for each in entries["tried"]]
        return Ledger(
            {**self.passes, **{(each.leader, each.item): each for each in passed}},
            {**self.attempts, **{(each.leader, each.item): each for each in tried}},
            entries["examined"],
            entries["rehearsed"],
        )

    def passed(self, leader: int) -> dict[int, Pass]:
        """Rivals of a leader that are passed."""
        return {item: each for (whose, item), each in self.passes.items() if whose == leader}

    def tried(self, leader: int) -> dict[int, Attempt]:
        """The last proof that failed, of each of its rivals that has one."""
        return {item: each for (whose, item), each in self.attempts.items() if whose == leader}
