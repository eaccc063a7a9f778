"""What a policy says in the end, or so far: the best item, how sure, and on what grounds."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from surepick.errors import InvalidInput
from surepick.guarantee import Guarantee
from surepick.identify.forecast_result import Forecast


class Status(StrEnum):
    """How far the search got; the value is the JSON field `status`."""

    CERTAIN = "certain"
    WITHIN_EPSILON = "within epsilon"
    BUDGET_SPENT = "budget spent"
    NOT_IDENTIFIABLE = "not identifiable"
    OPEN = "open"

    @property
    def final(self) -> bool:
        """Whether no more questions will be asked."""
        return self is not Status.OPEN

    @property
    def decided(self) -> bool:
        """Whether the best item is claimed with the stated probability."""
        return self in (Status.CERTAIN, Status.WITHIN_EPSILON)


@dataclass(frozen=True)
class Rival:
    """Another item, and what is known of (best − rival)ᵀθ*, its gap to the best in log-odds."""

    name: str
    gap_low: float
    """The gap is at least this ..."""
    gap_high: float
    """... and at most this, for all rivals at once with probability 1 − delta, if the verdict is `certain`."""
    evidence: float | None = None
    """Nats of evidence against "the rival is at least as good", for policies that weigh evidence."""

    def to_json(self) -> dict[str, Any]:
        """As plain values; an unbounded end is null."""
        ends = [None if math.isinf(end) else end for end in (self.gap_low, self.gap_high)]
        return {"item": self.name, "gap": ends, "evidence": self.evidence}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Rival":
        """Read what `to_json` gave."""
        low, high = fields["gap"]
        low, high = -math.inf if low is None else low, math.inf if high is None else high
        return cls(fields["item"], low, high, fields["evidence"])


@dataclass(frozen=True)
class Verdict:
    """The outcome of a search.

    `certain`: the best item is `best`, except with probability delta. `within epsilon`: no item is better than `best`
    by more than epsilon, with the same exception. Otherwise `best` is only the best guess, but the best item is among
    `surviving` with probability 1 − delta wherever the guarantee is `proved`.
    """

    status: Status
    best: str
    """Name of the best item, or of the best guess."""
    surviving: tuple[str, ...]
    """Items that are not excluded."""
    delta: float
    epsilon: float
    questions_by_stage: tuple[int, ...]
    """Answers used, stage by stage."""
    policy: str
    guarantee: Guarantee
    statement: str
    """What is claimed, and where it is proved."""
    assumptions: tuple[str, ...]
    rivals: tuple[Rival, ...] = ()
    """What is known of the gap to each other item, the closest first."""
    reason: str = ""
    """Why it is not decided, with the way out; empty if it is."""
    also: tuple[str, ...] = ()
    """Other names of the best item: items of the same features."""
    forecaster: Callable[[], Forecast] | None = field(default=None, compare=False, repr=False)
    """Simulates the rest of a running session, which sets it."""

    @cached_property
    def forecast(self) -> Forecast | None:
        """How many more questions a running session will take; simulated when first asked for. None once it is over."""
        return None if self.forecaster is None else self.forecaster()

    @property
    def questions(self) -> int:
        """Answers used in all."""
        return sum(self.questions_by_stage)

    @property
    def weakest(self) -> float | None:
        """Nats of evidence against the rival that is least refuted; None for policies that do not weigh evidence."""
        known = [rival.evidence for rival in self.rivals if rival.evidence is not None]
        return min(known, default=None)

    def __str__(self) -> str:
        claim = {
            Status.CERTAIN: f"{self.best} is the best",
            Status.WITHIN_EPSILON: f"{self.best} is within {self.epsilon:g} of the best",
        }.get(self.status, f"{self.status}: best guess {self.best}")
        sure = f" (delta = {self.delta:g}, {self.guarantee})" if self.status.decided else ""
        return f"{claim}{sure} after {self.questions:,} answers. {self.reason}".rstrip()

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "status": str(self.status),
            "best": self.best,
            "also": list(self.also),
            "surviving": list(self.surviving),
            "delta": self.delta,
            "epsilon": self.epsilon,
            "questions": self.questions,
            "questions_by_stage": list(self.questions_by_stage),
            "policy": self.policy,
            "guarantee": str(self.guarantee),
            "statement": self.statement,
            "assumptions": list(self.assumptions),
            "rivals": [rival.to_json() for rival in self.rivals],
            "reason": self.reason,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Verdict":
        """Read what `to_json` gave."""
        try:
            return cls(
                status=Status(fields["status"]),
                best=fields["best"],
                surviving=tuple(fields["surviving"]),
                delta=fields["delta"],
                epsilon=fields["epsilon"],
                questions_by_stage=tuple(fields["questions_by_stage"]),
                policy=fields["policy"],
                guarantee=Guarantee(fields["guarantee"]),
                statement=fields["statement"],
                assumptions=tuple(fields["assumptions"]),
                rivals=tuple(Rival.from_json(rival) for rival in fields["rivals"]),
                reason=fields["reason"],
                also=tuple(fields["also"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"This is not a verdict written by surepick ({error}).") from None
