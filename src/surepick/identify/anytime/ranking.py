"""Which items are proven better than which, from the evidence that Anytime gathers anyway.

Where {θ: z_iᵀθ ≤ z_jᵀθ} misses the localiser {log E < log 1/(share·delta)} of the plug-in process, i is better than j.
That is one event for all pairs and all times, and one of the two that Anytime's verdict rests on; so all these claims
and the verdict hold at once with probability 1 − delta (docs/anytime.md, sections 1 and 3).
"""

import numpy as np

from surepick._arrays import Booleans, Integers
from surepick.evidence.plug_in_bounds import plug_in_bounds
from surepick.guarantee import Guarantee
from surepick.identify.anytime.state import State
from surepick.identify.verdict import Verdict


def proven_better(state: State, verdict: Verdict, items: Integers) -> Booleans:
    """For items by number: whether the one of the row is proven better than the one of the column.

    One batch of convex programs a row, of as many as there are items not told apart by a cheaper bound.
    """
    settled = state.settled
    better = np.zeros((len(items), len(items)), dtype=np.bool_)
    if not settled.plug_in.pulls.any():
        return better
    evidence, threshold, far = settled.evidence, settled.threshold, settled.localiser
    points = settled.problem.points[items]
    scores = points @ far.centre
    for row, point in enumerate(points):
        lower = np.flatnonzero(scores < scores[row])
        away = point - points[lower]
        passed = far.misses(away, 0.0)
        near = np.flatnonzero(~passed)
        if len(near):
            found = plug_in_bounds(evidence, away[near], 0.0, np.broadcast_to(far.centre, away[near].shape))
            passed[near] = found.bounds >= threshold
        better[row, lower] = passed
    # What a proved verdict excludes by any of its rules is worse than the item it names; a posterior proves nothing.
    if verdict.epsilon == 0 and verdict.guarantee is Guarantee.PROVED:
        best = np.flatnonzero(items == settled.problem.index(verdict.best))
        alive = [settled.problem.index(name) for name in verdict.surviving]
        better[best] |= ~np.isin(items, alive)
    return _with_what_follows(better)


def _with_what_follows(better: Booleans) -> Booleans:
    """If a is better than b and b than c, a is better than c."""
    while True:
        more = better | (better.astype(np.float32) @ better.astype(np.float32) > 0)
        if np.array_equal(more, better):
            return better
        better = more
