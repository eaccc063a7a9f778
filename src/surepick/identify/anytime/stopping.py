"""After each stage: which rivals of the leader can be proved passed by now, and is that all of them?

Estimates of what a proof would come to are cheap and proofs are not, so a proof is tried where the estimates promise it
to succeed, and where they say that it is the last one missing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.identify.anytime.proof_log import Attempt, Pass
from surepick.identify.anytime.rival_bounds import QUICK, THOROUGH, Way, weigh
from surepick.identify.anytime.state import State

TRIES = 48
"""Most rivals tried at a time while others still lack evidence ..."""

REHEARSALS = 1.25
"""... which is done when there are so many times as many questions as when it was last done ..."""

FIRST_REHEARSAL = 20
"""... and so many a dimension."""

FEW = 6
"""So many rivals left are tried whenever the estimates say that nothing else is missing."""

IN_TURN = (THOROUGH[0], THOROUGH[1], THOROUGH[0], THOROUGH[-1])
"""Ways to prove a bound that are tried early, one a stage; the others hardly ever succeed there where these do not."""

NO_BOUND = 20.0
"""Nats that a proof is said to have lacked where it found no bound at all, or a worse one."""


@dataclass(frozen=True, eq=False)
class Findings:
    """What an examination found."""

    decided: bool = False
    passed: tuple[Pass, ...] = ()
    tried: tuple[Attempt, ...] = ()
    examined: int = 0
    rehearsed: int = 0
    unbounded: bool = False
    """Whether some proof found no bound at all: there are hardly answers about some direction."""
    doubted: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Rivals of which the estimates say that they are passed, and the proof does not ..."""
    proved: Floats = field(default_factory=lambda: np.zeros(0))
    """... and to about how many nats it comes."""

    def entries(self) -> dict[str, Any]:
        """What is to be remembered, as plain values: for the memo of the next stage."""
        return {
            "passed": [asdict(each) for each in self.passed],
            "tried": [asdict(each) for each in self.tried],
            "examined": self.examined,
            "rehearsed": self.rehearsed,
        }


def examine(state: State) -> Findings:
    """Try what may succeed."""
    leader, ledger = state.leader, state.ledger
    passed, tried = ledger.passed(leader), ledger.tried(leader)
    left = np.array([item for item in state.rivals if int(item) not in passed], dtype=np.int64)
    evidence, promised = state.evidence_about(leader)
    # A bound of an infimum is at most the value at any one point, and points are cheap.
    last = not np.any(evidence[left] < min(state.threshold, state.needed(leader)))
    if last:
        left = left[~state.localiser.misses(state.problem.points[leader] - state.problem.points[left], state.epsilon)]
    elif state.asked < max(REHEARSALS * ledger.rehearsed, FIRST_REHEARSAL * state.problem.span.rank):
        return Findings(examined=state.sealed, rehearsed=ledger.rehearsed, unbounded=_unbounded(tried, passed))
    else:
        left = left[promised[left] >= state.needed(leader)]
    left = left[np.argsort(evidence[left], kind="stable")]
    hopeless = _lacking_at_witnesses(state, leader, [tried[int(item)] for item in left if int(item) in tried])

    def worth_trying(item: int) -> bool:
        if item in hopeless:
            return False
        if item not in tried or (last and (state.early or len(left) <= FEW)):
            return True
        return tried[item].worth_repeating(float(evidence[item]), state.asked)

    worth = [] if state.sealed == ledger.examined else [int(item) for item in left if worth_trying(int(item))]
    passes, failures = _try(state, leader, worth, evidence, last=last)
    newly, known = {each.item: each for each in passes}, tried | {each.item: each for each in failures}
    found = Findings(
        passed=passes,
        tried=failures,
        examined=state.sealed,
        rehearsed=ledger.rehearsed if last else state.asked,
        unbounded=_unbounded(known, passed | newly),
    )
    if not last:
        return found
    doubted = [int(item) for item in left if int(item) not in newly]
    hopeless |= _lacking_at_witnesses(state, leader, failures)

    def about_proved(item: int) -> float:
        if item in hopeless:
            return state.needed(leader) - hopeless[item]
        return float(evidence[item]) - (known[item].loss(state.needed(leader)) if item in known else 0.0)

    proved = np.array([about_proved(item) for item in doubted])
    return replace(found, decided=not doubted, doubted=np.array(doubted, dtype=np.int64), proved=proved)


def _try(
    state: State, leader: int, rivals: list[int], evidence: Floats, *, last: bool
) -> tuple[tuple[Pass, ...], tuple[Attempt, ...]]:
    """Proofs that succeed and proofs that fail: of the last rivals in small portions, until one fails."""
    passes: list[Pass] = []
    failures: list[Attempt] = []
    size, ways = (FEW, _ways(state)) if last else (TRIES, QUICK)
    for begin in range(0, len(rivals), size):
        some = rivals[begin : begin + size]
        weighed = weigh(state, leader, np.array(some), ways, deciding=True)
        lacking = np.fmin(state.threshold - weighed.plug_in, state.needed(leader) - weighed.directional)
        for item, lack, proof, witness in zip(some, lacking, weighed.proofs, weighed.witnesses, strict=True):
            if lack > 0:
                most, shown = min(float(lack), NO_BOUND), None if witness is None else witness.tolist()
                failures.append(Attempt(leader, item, float(evidence[item]), most, state.asked, shown))
            elif proof["rule"] != "far":  # those may be thousands, and are found again at little cost
                wanted = state.threshold if proof["rule"] == "plug-in" else state.needed(leader)
                passes.append(Pass(leader, item, state.sealed, wanted - float(lack), proof))
        if failures or not last:
            break
    return tuple(passes), tuple(failures)


def _ways(state: State) -> tuple[Way, ...]:
    """Early, where somebody waits for the next question, one way a stage: the best of them every other time.

    A proof that only another way finds is found a few questions later.
    """
    return (IN_TURN[state.sealed % len(IN_TURN)],) if state.early else THOROUGH


def _lacking_at_witnesses(state: State, leader: int, tried: Iterable[Attempt]) -> dict[int, float]:
    """Nats lacking at the witness of the last try, of rivals that for its sake still cannot be proved passed."""
    known = [each for each in tried if each.witness is not None]
    if not known:
        return {}
    items, points = np.array([each.item for each in known]), np.array([each.witness for each in known])
    lacking = state.lacking(leader, items, points)
    return {int(item): float(lack) for item, lack in zip(items, lacking, strict=True) if lack > 0}


def _unbounded(tried: Mapping[int, Attempt], passed: Mapping[int, Pass]) -> bool:
    """Whether a try found neither a bound nor a witness that there cannot be one."""
    return any(each.lacking >= NO_BOUND and each.witness is None for item, each in tried.items() if item not in passed)
