"""When to stop: which rivals of the leader can be proved passed by now, and is that all of them?

`rival_bounds` proves nats against rivals by the cheapest rule that suffices: far, plug-in or directional
(docs/anytime.md, section 3, (4) and (5)). `evaluate` decides which proofs to try after a stage: estimates of what a
proof would come to are cheap and proofs are not, so a proof is tried where the estimates promise it to succeed, and
where they say that it is the last one missing (section 7, "When a proof is tried").
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, softmax

from surepick._arrays import Booleans, Floats, Integers
from surepick.evidence.likelihood_ratio import log_sum
from surepick.evidence.plug_in_bounds import Passed, plug_in_bounds
from surepick.identify.anytime.directional import BETS, DirectionalProcess
from surepick.identify.anytime.directional_bounds import (
    DirectionalBounds,
    DirectionalMinorant,
    directional_bounds,
    wide_bounds,
)
from surepick.identify.anytime.sampling import closest_rivals
from surepick.identify.anytime.state import Evaluation, FailedProof, ProvedRival, State
from surepick.identify.anytime.tuning import TUNING

Places = NDArray[np.intp]


class ProofStrategy(NamedTuple):
    """How a directional bound may be proved."""

    bet: int | None
    """None: all bets, by their worth. A number: that one alone, 0 being the most promising: a bet of large tilts proves
    much, but costs a large lam."""
    age: int | None
    """Of the restarts (`Tuning.ages`); None: by the bound for very wide boxes, where nothing else was found."""
    again: bool = False
    """Bets and restarts shared by what they are worth where the best bound so far is least, and not where the rival has
    just caught up: Jensen's inequality, (6) and (11), is an equality at the point of the shares."""


FIRST, OLDER, WIDE = ProofStrategy(None, TUNING.ages[0]), ProofStrategy(None, TUNING.ages[1]), ProofStrategy(None, None)
OLDEST = ProofStrategy(None, TUNING.ages[2])
BEST_BET, SECOND_BET = ProofStrategy(0, TUNING.ages[0]), ProofStrategy(1, TUNING.ages[0])
AGAIN = (ProofStrategy(None, TUNING.ages[0], again=True),) * TUNING.shared_again
QUICK = (FIRST, OLDER, WIDE, *AGAIN)
THOROUGH = (FIRST, OLDER, WIDE, OLDEST, BEST_BET, SECOND_BET, *AGAIN)
IN_TURN = (FIRST, OLDER, FIRST, SECOND_BET)
"""Early, one of these per stage; the others hardly ever succeed there where these do not."""


@dataclass(frozen=True, eq=False)
class RivalBounds:
    """Proven nats against rivals of a leader."""

    items: Integers
    plug_in: Floats
    directional: Floats
    proofs: tuple[dict[str, Any], ...]
    """For each what the bound was found with, as plain values; in coordinates of the span."""
    witnesses: tuple[Floats | None, ...]
    """For each a theta of its null, if one was met, at which both processes lack evidence: while that is so, no proof
    can pass the rival."""

    @property
    def nats(self) -> Floats:
        """The larger of both."""
        return np.maximum(self.plug_in, self.directional)

    def passed(self, state: State) -> Booleans:
        """Whether each rival of the state's leader is passed by (4) or (5)."""
        return np.asarray((self.plug_in >= state.threshold) | (self.directional >= state.needed))

    def joined(self, proved: Collection[ProvedRival]) -> "RivalBounds":
        """With rivals that were passed before, in the order of the items."""
        items = np.concatenate([self.items, np.array([rival.item for rival in proved], dtype=np.int64)])
        plug_in = [rival.nats if rival.proof["rule"] == "plug-in" else -np.inf for rival in proved]
        directional = [rival.nats if rival.proof["rule"] == "directional" else -np.inf for rival in proved]
        earlier = ({**rival.proof, "stages": rival.stages, "leader": rival.leader} for rival in proved)
        proofs = [*self.proofs, *earlier]
        witnesses = [*self.witnesses, *(None for _ in proved)]
        order = np.argsort(items)
        return RivalBounds(
            items[order],
            np.concatenate([self.plug_in, plug_in])[order],
            np.concatenate([self.directional, directional])[order],
            tuple(proofs[place] for place in order),
            tuple(witnesses[place] for place in order),
        )


def all_rival_bounds(state: State, strategies: tuple[ProofStrategy, ...]) -> RivalBounds:
    """Proven nats against all rivals of the leader: of those passed once, by the proof that passed them."""
    passed = passed_rivals(state)
    return rival_bounds(state, state.leader, state.rivals_except(passed), strategies).joined(passed.values())


def passed_rivals(state: State) -> dict[int, ProvedRival]:
    """Rivals of the leader that were proved passed, now or before."""
    return state.passed_before(state.leader) | {proved.item: proved for proved in state.evaluation.passed}


def rival_bounds(
    state: State, leader: int, items: Integers, strategies: tuple[ProofStrategy, ...], *, deciding: bool = False
) -> RivalBounds:
    """Bounds for these rivals; strategies for directional bounds are tried in order, until one succeeds.

    With `deciding`, where only matters whether rivals pass, those that a witness shows not to are given up.
    """
    search = _RivalBoundSearch(state, leader, items)
    near = search.not_far()
    if len(near):
        plug_in = search.by_plug_in(near)
        left = np.flatnonzero(plug_in.bounds < state.threshold)
        process = state.process
        if len(left) and len(process.rivals):
            # Only what the cheaper rules did not pass is left to the directional rule.
            near, plug_in = near[left], plug_in.rows_of(left)
            worth = process.log_bets(items[near], state.problem.rows, plug_in.points)
            for strategy in strategies:
                which = np.flatnonzero(search.worth_trying(near, strategy, deciding=deciding))
                if len(which):
                    search.by_bets(strategy, process, near[which], plug_in.rows_of(which), worth[which])
    return RivalBounds(items, search.plug_in, search.directional, tuple(search.proofs), tuple(search.witnesses))


class _RivalBoundSearch:
    """What was found about rivals so far; they are named by their place among the items."""

    def __init__(self, state: State, leader: int, items: Integers) -> None:
        self.state, self.leader, self.items = state, leader, items
        self.y = state.problem.points[leader] - state.problem.points[items]
        self.plug_in, self.directional = np.full(len(items), -np.inf), np.full(len(items), -np.inf)
        self.proofs: list[dict[str, Any]] = [{} for _ in items]
        self.witnesses: list[Floats | None] = [None] * len(items)
        self.least: list[Floats | None] = [None] * len(items)
        """Where the best directional bound of each is least."""

    def not_far(self) -> Places:
        """Pass those whose null misses the localiser, O(d²) each; the others."""
        passed = self.state.localiser.misses(self.y, self.state.epsilon)
        self.plug_in[passed] = self.state.threshold
        for place in np.flatnonzero(passed):
            self.proofs[place] = {"rule": "far"}
        return np.flatnonzero(~passed)

    def by_plug_in(self, near: Places) -> Passed:
        """The plug-in bounds (7)."""
        state, y = self.state, self.y[near]
        start = np.broadcast_to(state.localiser.centre, y.shape)
        found = plug_in_bounds(state.evidence, y, state.epsilon, start)
        self.plug_in[near] = found.bounds
        for place, point, shares, partial in zip(near, found.points, found.shares, found.partial, strict=True):
            self.proofs[place] = {"rule": "plug-in", "theta": point.tolist(), "shares": shares.tolist()}
            if partial is not None:
                self.proofs[place] |= {"theta": partial[0].tolist(), "kept": partial[1].tolist()}
        short = found.bounds < state.threshold
        self._keep_witnesses(near[short], found.points[short])
        return found

    def worth_trying(self, near: Places, strategy: ProofStrategy, *, deciding: bool) -> Booleans:
        """Which of those not passed by the plug-in process a strategy may help."""
        bounds = self.directional[near]
        unknown = np.isneginf(bounds)
        lacking = self.state.needed - bounds
        if strategy.age is None:
            worth = unknown  # it is poor where there is another bound
        elif strategy.again:
            worth = np.array([self.least[place] is not None for place in near]) & (lacking > 0)
        elif strategy.age == TUNING.ages[0]:
            worth = unknown | ((lacking > 0) & (lacking < TUNING.hopeless))
        else:
            # However poor the bound so far: a new restart dominates it and knows little, where older ones prove more.
            worth = unknown | (lacking > 0)
        return np.asarray(worth & [not deciding or self.witnesses[place] is None for place in near])

    def by_bets(
        self, strategy: ProofStrategy, process: DirectionalProcess, rivals: Places, plug_in: Passed, worth: Floats
    ) -> None:
        """The directional bounds by one strategy, where they are better than what there is."""
        state, needed, points = self.state, self.state.needed, plug_in.points
        if strategy.again:
            points = np.array([self.least[place] for place in rivals])
            worth = process.log_bets(self.items[rivals], state.problem.rows, points)
        shares = _bet_shares(strategy, process, self.items[rivals], worth, state.threshold - plug_in.bounds)
        linear, sums = process.mixed(self.items[rivals], shares, state.evidence.where)
        F = DirectionalMinorant(linear, sums, self.y[rivals], state.epsilon, state.threshold)
        if strategy.age is None:
            found = wide_bounds(state.evidence, plug_in, F)
        else:
            # A little above the level, so that rounding in the comparison cannot undo a proof.
            found = directional_bounds(state.evidence, plug_in, F, needed + 1e-6, age=strategy.age, shared_at=points)
        for place in np.flatnonzero(found.bounds > self.directional[rivals]):
            self.directional[rivals[place]] = found.bounds[place]
            self.proofs[rivals[place]] = _directional_proof(found, int(place), shares[place])
            self.least[rivals[place]] = found.reached[place]
        short = np.flatnonzero(self.directional[rivals] < needed)
        self._keep_witnesses(rivals[short], found.reached[short])

    def _keep_witnesses(self, rivals: Places, points: Floats) -> None:
        """Remember points at which both processes lack evidence."""
        if len(rivals):
            for place in np.flatnonzero(lacking_at(self.state, self.leader, self.items[rivals], points) > 0):
                self.witnesses[rivals[place]] = points[place]


def _bet_shares(
    strategy: ProofStrategy, process: DirectionalProcess, items: Integers, worth: Floats, room: Floats
) -> Floats:
    """p of the bets in F, by what they are worth at the likeliest points, less what a proof would cost them there."""
    if strategy.bet is None:
        return np.asarray(softmax(worth, axis=1))
    # One bet alone is a valid mix too: its share is one, at the price of log(BETS) (11).
    promise = worth - process.mean_tilts(items) * np.clip(room, 0.0, 1e3)[:, None]
    return np.eye(BETS)[np.argsort(-promise, axis=1)[:, strategy.bet]]


def _directional_proof(found: DirectionalBounds, place: int, bets: Floats) -> dict[str, Any]:
    """As a certificate has it: `penalty` is lam, `bend` is rho."""
    return {
        "rule": "directional",
        "centre": found.centres[place].tolist(),
        "shares": found.shares[place].tolist(),
        "bets": bets.tolist(),
        "passes": [{"theta": theta.tolist(), "penalty": lam, "bend": rho} for theta, lam, rho in found.passes[place]],
    }


def lacking_at(state: State, leader: int, items: Integers, points: Floats) -> Floats:
    """Nats that both processes lack at a theta of each item's null: where they do, no proof can pass it."""
    lacking = state.threshold - state.evidence.log_evidence(points)
    process = state.evaluated.process
    if len(process.rivals):
        bets = log_sum(process.log_bets(items, state.problem.rows, points)) - math.log(BETS)
        lacking = np.minimum(lacking, state.needed - bets)
    return lacking


def estimated_evidence(state: State) -> tuple[Floats, Floats]:
    """About how many nats there are against each rival of the leader already, and what its proof may come to.

    Both processes at one point where the rival has caught up (early the likeliest, later that of the quadratic
    approximation): a bound of an infimum is at most the value at any point. A proof will come to less by about lam
    times the room in the localiser, and to no more than the quadratic approximation.

    O(closest · (bets · vectors + d²)).
    """
    leader, points, nats = state.leader, state.problem.points, state.nats(state.leader)
    if not state.evaluated.plug_in.restarts:
        return nats, nats
    if state.early:
        close, theta = state.caught_up.items, state.caught_up.theta
    else:
        close = closest_rivals(nats)
        y = points[leader] - points[close]
        across = y @ state.inverse
        back = (y @ state.theta + state.epsilon) / np.maximum(np.einsum("zi,zi->z", y, across), 1e-300)
        theta = state.theta - across * back[:, None]
    found = state.evidence.log_evidence(theta)
    proven, process = found, state.evaluated.process
    if len(process.rivals):
        bets = process.log_bets(close, state.problem.rows, theta)
        # lam is about the mean |c|, and lam·(threshold − G) is what weak duality gives away (13).
        cost = process.mean_tilts(close) * np.maximum(state.threshold - found, 0.0)[:, None]
        proven = np.maximum(found, log_sum(bets - cost) - math.log(BETS))
        found = np.maximum(found, log_sum(bets) - math.log(BETS))
    evidence, promised = nats.copy(), nats.copy()
    # The approximation knows nothing of answers that all agree; to refuse a stop, only the evidence itself counts.
    evidence[close], promised[close] = found, np.minimum(proven, nats[close])
    return evidence, promised


def _chances_ahead(state: State) -> Floats:
    """For each rival of the leader the posterior probability (Laplace) that it is better."""
    nats = state.nats(state.leader)
    return np.asarray(ndtr(-np.sqrt(2 * nats[np.isfinite(nats)])))


def chance_of_best(state: State) -> float:
    """About the posterior probability that the leader is the best: a product, as if its rivals were independent."""
    return float(np.prod(1 - _chances_ahead(state)))


def evaluate(state: State) -> Evaluation:
    """The stopping rule of Theorem 1: try what proofs may succeed; decided when every rival is passed."""
    evidence, promised = estimated_evidence(state)
    if not state.plug_in.pulls.any():
        return Evaluation(promised)
    leader, log, needed = state.leader, state.proof_log, state.needed
    passed, tried = state.passed_before(leader), log.tried(leader)
    left = state.rivals_except(passed)
    # A bound of an infimum is at most the value at any one point, and points are cheap: while some rival lacks evidence
    # at its point, the search cannot be decided now.
    last = not np.any(evidence[left] < min(state.threshold, needed))
    if last:
        left = left[~state.localiser.misses(state.problem.points[leader] - state.problem.points[left], state.epsilon)]
    elif state.asked < max(TUNING.rehearsal_growth * log.rehearsed, TUNING.first_rehearsal * state.problem.span.rank):
        return Evaluation(
            promised, examined=state.evaluated_stages, rehearsed=log.rehearsed, unbounded=_unbounded(tried, passed)
        )
    else:
        # A rehearsal: rivals proved now stay passed, and are asked about no more.
        left = left[promised[left] >= needed]
    # The weakest first: if it fails, the others need not be tried.
    left = left[np.argsort(evidence[left], kind="stable")]
    hopeless = _lacking_at_witnesses(state, [tried[int(item)] for item in left if int(item) in tried])

    def worth_trying(item: int) -> bool:
        if item in hopeless:
            return False
        if item not in tried or (last and (state.early or len(left) <= TUNING.few_rivals)):
            return True
        return tried[item].worth_repeating(float(evidence[item]), state.asked)

    # Without a newly evaluated stage a proof would fail as it did.
    worth = [] if state.evaluated_stages == log.examined else [int(item) for item in left if worth_trying(int(item))]
    proved, failed = _try_proofs(state, worth, evidence, last=last)
    newly, known = {rival.item: rival for rival in proved}, tried | {attempt.item: attempt for attempt in failed}
    result = Evaluation(
        promised,
        passed=proved,
        tried=failed,
        examined=state.evaluated_stages,
        rehearsed=log.rehearsed if last else state.asked,
        unbounded=_unbounded(known, passed | newly),
    )
    if not last:
        return result
    # Far rivals are out of `left`, so that nothing left means that every rival is passed: Theorem 1 applies.
    unproved = [int(item) for item in left if int(item) not in newly]
    hopeless |= _lacking_at_witnesses(state, failed)

    def about_proved(item: int) -> float:
        if item in hopeless:
            return needed - hopeless[item]
        return float(evidence[item]) - (known[item].loss(needed) if item in known else 0.0)

    nats = np.array([about_proved(item) for item in unproved])
    return replace(result, decided=not unproved, unproved=np.array(unproved, dtype=np.int64), unproved_nats=nats)


def _try_proofs(
    state: State, rivals: list[int], evidence: Floats, *, last: bool
) -> tuple[tuple[ProvedRival, ...], tuple[FailedProof, ...]]:
    """Proofs that succeed and proofs that fail: of the last rivals in small portions, until one fails."""
    leader, needed = state.leader, state.needed
    proved: list[ProvedRival] = []
    failed: list[FailedProof] = []
    size, strategies = (TUNING.few_rivals, _strategies(state)) if last else (TUNING.rehearsed_rivals, QUICK)
    for begin in range(0, len(rivals), size):
        portion = rivals[begin : begin + size]
        found = rival_bounds(state, leader, np.array(portion), strategies, deciding=True)
        # Either process may pass a rival, so what it lacks is the smaller of both.
        lacking = np.fmin(state.threshold - found.plug_in, needed - found.directional)
        bounded = np.isfinite(found.directional)
        for item, lack, proof, witness, known in zip(
            portion, lacking, found.proofs, found.witnesses, bounded.tolist(), strict=True
        ):
            if lack > 0:
                most, point = min(float(lack), TUNING.no_bound), None if witness is None else witness.tolist()
                failed.append(FailedProof(leader, item, float(evidence[item]), most, state.asked, known, point))
            elif proof["rule"] != "far":  # those may be thousands, and are found again at little cost
                level = state.threshold if proof["rule"] == "plug-in" else needed
                proved.append(ProvedRival(leader, item, state.evaluated_stages, level - float(lack), proof))
        # One rival that is not passed is enough to go on asking.
        if failed or not last:
            break
    return tuple(proved), tuple(failed)


def _strategies(state: State) -> tuple[ProofStrategy, ...]:
    """Early, where somebody waits for the next question, one strategy per stage: the best of them every other time.

    A proof that only another strategy finds is found a few questions later.
    """
    return (IN_TURN[state.evaluated_stages % len(IN_TURN)],) if state.early else THOROUGH


def _lacking_at_witnesses(state: State, tried: Iterable[FailedProof]) -> dict[int, float]:
    """Nats lacking at the witness of the last try, of rivals that for its sake still cannot be proved passed."""
    known = [attempt for attempt in tried if attempt.witness is not None]
    if not known:
        return {}
    items, points = np.array([attempt.item for attempt in known]), np.array([attempt.witness for attempt in known])
    lacking = lacking_at(state, state.leader, items, points)
    return {int(item): float(lack) for item, lack in zip(items, lacking, strict=True) if lack > 0}


def _unbounded(tried: Mapping[int, FailedProof], passed: Collection[int]) -> bool:
    """Whether a try found neither a bound nor a witness that there cannot be one."""
    return any(not attempt.bounded and attempt.witness is None for item, attempt in tried.items() if item not in passed)
