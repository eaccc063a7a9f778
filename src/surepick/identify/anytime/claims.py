"""What is claimed besides the verdict (docs/anytime.md, section 5): its p-value, its certificate, and a ranking.

All of it follows from the two events of Theorem 1, so the verdict and all these claims hold at once with probability
1 − delta. Ranks use the localiser's event for all pairs, and the directional one only through a decided verdict.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surepick._arrays import Booleans, Floats, Integers
from surepick.certificate import FORMAT, digest
from surepick.evidence.plug_in_bounds import plug_in_bounds
from surepick.guarantee import Guarantee
from surepick.identify.anytime.state import AnytimeMemo, State
from surepick.identify.anytime.stopping import RivalBounds
from surepick.identify.anytime.tuning import TUNING
from surepick.identify.policy import StageRecord
from surepick.identify.verdict import Status, Verdict


def p_value(state: State, bounds: RivalBounds) -> float:
    """Anytime-valid p-value of "the leader is not (epsilon-)best" from bounds for all its rivals (20).

    It never falls to alpha ≥ delta while that is true, but with probability alpha. A directional bound is proved
    within the localiser of delta, so it says nothing below delta.
    """
    # Far below zero nats the p-value is one; the floor keeps exp from overflowing.
    plug_in = np.exp(-np.maximum(bounds.plug_in, -500.0)) / TUNING.localiser_share
    directional = np.exp(-np.maximum(bounds.directional, -500.0)) / (1 - TUNING.localiser_share)
    return float(min(1.0, np.max(np.minimum(plug_in, np.maximum(directional, state.delta)))))


def write_certificate(claim: Mapping[str, Any], state: State, bounds: RivalBounds) -> dict[str, Any]:
    """The proof of a verdict as plain data, for `surepick.certificate.verify_certificate` to derive again.

    The claim, the problem, all evaluated stages, and for each rival what its bound was found with. Vectors are in the
    coordinates of the features, whatever coordinates the search worked in.
    """
    embed = state.problem.span.embed
    rivals = []
    for item, proof, nats in zip(bounds.items, bounds.proofs, bounds.nats, strict=True):
        points: dict[str, Any] = {name: _embedded(proof[name], embed) for name in ("theta", "centre") if name in proof}
        if "passes" in proof:
            points["passes"] = [one | {"theta": _embedded(one["theta"], embed)} for one in proof["passes"]]
        now = {"item": int(item), "leader": state.leader, "nats": float(nats), "stages": state.evaluated_stages}
        rivals.append(now | proof | points)
    # Bets against rivals passed by other rules are no part of the proof, and would be most of the certificate.
    bet_against = {int(rival["item"]) for rival in rivals if rival["rule"] == "directional"}
    evaluated = zip(state.stages[: state.evaluated_stages], state.memos[: state.evaluated_stages], strict=True)
    content = {
        "format": FORMAT,
        "claim": "features",
        **claim,
        "problem": state.problem.to_json(),
        "best": state.leader,
        "far": {"theta": embed(state.localiser.centre).tolist(), "shares": state.localiser.shares.tolist()},
        "stages": [_stage(stage, memo, embed, bet_against) for stage, memo in evaluated],
        "rivals": rivals,
    }
    return content | {"digest": digest(content)}


def _embedded(point: list[float], embed: Callable[[Floats], Floats]) -> Any:
    return embed(np.array(point)).tolist()


def _stage(
    stage: StageRecord,
    memo: AnytimeMemo,
    embed: Callable[[Floats], Floats],
    rivals: set[int],
) -> dict[str, Any]:
    """A stage as a certificate holds it: with the bets that the proof uses, in the coordinates of the features."""
    assert memo.factors is not None  # they are fixed before a stage is evaluated
    bet, bets = memo.factors.bets, None
    if bet is not None:
        kept = np.flatnonzero([int(rival) in rivals for rival in bet.rivals])
        shifts = [embed(D).tolist() for D in bet.D[kept]]
        bets = bet.to_json() | {"rivals": bet.rivals[kept].tolist(), "shifts": shifts} if len(kept) else None
    return {
        "measurements": stage.plan.measurements.tolist(),
        "planned": stage.plan.pulls.tolist(),
        "pulls": stage.pulls.tolist(),
        "wins": stage.wins.tolist(),
        **({"partial": [list(scores) for scores in stage.partial]} if stage.partial else {}),
        "predictions": memo.factors.predictions.tolist(),
        "restart": memo.restart,
        "bets": bets,
    }


def proven_better(state: State, verdict: Verdict, items: Integers) -> Booleans:
    """For items by number: whether the one of the row is proven better than the one of the column.

    Where {theta: z_iᵀtheta ≤ z_jᵀtheta} misses the localiser of the plug-in process, i is better than j: one event for
    all pairs and all times (docs/anytime.md, sections 1 and 3). A decided verdict adds that its item is better than all
    others. One batch of convex programs per row, of as many as
    there are items not separated by a cheaper bound.
    """
    state = state.evaluated
    better = np.zeros((len(items), len(items)), dtype=np.bool_)
    if not state.plug_in.pulls.any():
        return better
    localiser = state.localiser
    points = state.problem.points[items]
    # The centre, where log E is about least, is in the null of every pair in the other order: none of these can be
    # refuted before all theta are.
    scores = points @ localiser.centre
    for row, point in enumerate(points):
        lower = np.flatnonzero(scores < scores[row])
        y = point - points[lower]
        passed = localiser.misses(y, 0.0)
        near = np.flatnonzero(~passed)
        if len(near):
            found = plug_in_bounds(state.evidence, y[near], 0.0, np.broadcast_to(localiser.centre, y[near].shape))
            # The first rule of stopping (4), for any pair instead of the leader and a rival.
            passed[near] = found.bounds >= state.threshold
        better[row, lower] = passed
    # What a proved verdict names is better than all others. While the verdict is open, what the directional rule passed
    # is no rank: only the process of the best item is sure to stay small, so an item that the rule excludes is not the
    # best, but it may be better than a leader that is not the best either.
    if verdict.status is Status.CERTAIN and verdict.guarantee is Guarantee.PROVED:
        best = state.problem.index(verdict.best)
        better[items == best] |= items != best
    return _transitive_closure(better)


def _transitive_closure(better: Booleans) -> Booleans:
    """If a is better than b and b than c, a is better than c; O(log(items) · items³) at most."""
    while True:
        more = better | (better.astype(np.float32) @ better.astype(np.float32) > 0)
        if np.array_equal(more, better):
            return better
        better = more
