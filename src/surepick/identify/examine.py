"""After each stage: which rivals of the leader can be proved passed by now, and is that all of them?

Estimates of what a proof would come to are cheap and proofs are not, so a proof is tried where the estimates promise it
to succeed, and where they say that it is the last one missing.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surepick.identify.anytime_state import State
from surepick.identify.ledger import Attempt, Pass
from surepick.identify.weigh import QUICK, THOROUGH, Way, weigh

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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


def examine(state: State, epsilon: float, threshold: float, needed: float) -> Findings:
    """Try what may succeed; `threshold` nats pass a rival by the plug-in process, `needed` by the directional one."""
    leader = state.leader
    passed, tried = state.ledger.passed(leader), state.ledger.tried(leader)
    left = np.array([item for item in state.rivals if int(item) not in passed], dtype=np.int64)
    evidence, promised = state.evidence_about(leader, epsilon, threshold)
    # A bound of an infimum is at most the value at any one point, and points are cheap.
    last = not np.any(evidence[left] < min(threshold, needed))
    if last:
        left = left[
            ~state.localiser(threshold).misses(state.problem.points[leader] - state.problem.points[left], epsilon)
        ]
    else:
        if state.asked < max(REHEARSALS * state.ledger.rehearsed, FIRST_REHEARSAL * state.problem.span.rank):
            return Findings(
                examined=state.sealed, rehearsed=state.ledger.rehearsed, unbounded=_unbounded(tried, passed)
            )
        left = left[promised[left] >= needed]
    left = left[np.argsort(evidence[left], kind="stable")]

    standing = _standing(state, leader, [tried[int(item)] for item in left if int(item) in tried], threshold, needed)

    def worth_trying(item: int) -> bool:
        if item in standing:
            return False
        if item not in tried or (last and (state.early or len(left) <= FEW)):
            return True
        return tried[item].worth_repeating(float(evidence[item]), state.asked)

    def about_proved(item: int) -> float:
        if item in standing:
            return needed - standing[item]
        return float(evidence[item]) - (known[item].loss(needed) if item in known else 0.0)

    worth = [] if state.sealed == state.ledger.examined else [int(item) for item in left if worth_trying(int(item))]
    passes: list[Pass] = []
    failures: dict[int, Attempt] = {}
    size = FEW if last else TRIES
    ways = _ways(state) if last else QUICK
    for begin in range(0, len(worth), size):
        some = worth[begin : begin + size]
        weighed = weigh(state, leader, np.array(some), epsilon, threshold, needed, ways=ways, deciding=True)
        lacking = np.fmin(threshold - weighed.plug_in, needed - weighed.directional)
        for item, lack, proof, witness in zip(some, lacking, weighed.proofs, weighed.witnesses, strict=True):
            if lack > 0:
                most = min(float(lack), NO_BOUND)
                shown = None if witness is None else witness.tolist()
                failures[item] = Attempt(leader, item, float(evidence[item]), most, state.asked, shown)
            elif proof["rule"] != "far":  # those may be thousands, and are found again at little cost
                nats = threshold if proof["rule"] == "plug-in" else needed
                passes.append(Pass(leader, item, state.sealed, nats - float(lack), proof))
        if failures or not last:
            break
    rehearsed = state.ledger.rehearsed if last else state.asked
    known = tried | failures
    standing |= _standing(state, leader, list(failures.values()), threshold, needed)
    newly = {each.item: each for each in passes}
    found = Findings(
        False,
        tuple(passes),
        tuple(failures.values()),
        state.sealed,
        rehearsed,
        unbounded=_unbounded(known, passed | newly),
    )
    if not last:
        return found
    doubted = [int(item) for item in left if int(item) not in newly]
    proved = [about_proved(item) for item in doubted]
    return replace(found, decided=not doubted, doubted=np.array(doubted, dtype=np.int64), proved=np.array(proved))


def _ways(state: State) -> tuple[Way, ...]:
    """Early, where somebody waits for the next question, one way a stage: the best of them every other time.

    A proof that only another way finds is found a few questions later.
    """
    return (IN_TURN[state.sealed % len(IN_TURN)],) if state.early else THOROUGH


def _standing(state: State, leader: int, tried: list[Attempt], threshold: float, needed: float) -> dict[int, float]:
    """Rivals that cannot be proved passed, since the witness of the last try still stands, and what it lacks."""
    known = [each for each in tried if each.witness is not None]
    if not known:
        return {}
    items, points = np.array([each.item for each in known]), np.array([each.witness for each in known])
    short = state.shortfall(leader, items, points, threshold, needed)
    return {int(item): float(lack) for item, lack in zip(items, short, strict=True) if lack > 0}


def _unbounded(tried: Mapping[int, Attempt], passed: Mapping[int, Pass]) -> bool:
    """Whether a try found neither a bound nor a witness that there cannot be one."""
    return any(each.lacking >= NO_BOUND and each.witness is None for item, each in tried.items() if item not in passed)
