"""GLGapE (Kazerouni and Wein 2019): gap-based exploration for generalized linear models, one question after another.

Batched here: it is evaluated whenever a tenth more questions are answered, asked in the proportions of the last
evaluation. A fit and a linear program for each of millions of questions would take days.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when first used: scipy.optimize takes longer than importing all of surepick

from surepick._arrays import Floats, Integers
from surepick.design import g_optimal
from surepick.glm import fit
from surepick.guarantee import Guarantee
from surepick.identify.policy import pooled_tally
from surepick.identify.problem import Problem
from surepick.identify.staged.base import Draft, Elimination, Stages, WithPriorBounds
from surepick.identify.staged.elimination import with_gaps
from surepick.identify.staged.stage_bounds import StageEstimate, rounded_up
from surepick.linalg import Span, factor, gram_matrix

GROWTH = 0.1
"""A batch is this share of the questions before it."""


@dataclass(frozen=True, kw_only=True)
class GlGapE(WithPriorBounds):
    """Ask what tells the leader i from its strongest rival j; stop when no rival can be ahead.

    The width is (R/κ₀)·√(2d·log t·log(dπ²t²/(6δ)))·‖z_i − z_j‖ in the inverse of Σxxᵀ, R = 1/2 for yes/no answers: it
    does not use the variance of an answer at hand, and may well not stop within its budget. Gaps are in log-odds, so
    the Lipschitz constant of the link does not enter. The bound behind it (Filippi et al. 2010, Proposition 1) has a
    further factor √(3 + 2·log(1 + 2/λ₀)) ≥ √3, λ₀ the least eigenvalue of the first Σxxᵀ; without it the width is a
    heuristic. Needs kappa or norm_bound.
    """

    NAME = "gl-gape"
    GUARANTEE = Guarantee.HEURISTIC
    STATEMENT = (
        "Kazerouni and Wein 2019: GLGapE, in batches. Its width lacks the factor sqrt(3 + 2 log(1 + 2/lambda_0)) of "
        "Filippi et al. 2010, which is 1.73 or more, so nothing is proved for it."
    )
    NEEDS_PRIOR_BOUNDS = True

    def draft(self, state: Stages) -> Draft:
        """First the G-optimal design, so that everything is measured; then for the leader and its strongest rival."""
        problem, before = state.problem, state.elimination
        if before is None or before.estimate is None:
            design = g_optimal(problem.rows)
            return Draft(design.support, rounded_up(design.weights, 4.0 * problem.span.rank))
        rival = int(np.argmax(_ahead(problem, before.leader, before.estimate)))
        asked, shares = _fewest(problem, before.leader, rival)
        return Draft(asked, rounded_up(shares, max(1.0, GROWTH * state.asked)))

    def eliminate(self, state: Stages) -> Elimination:
        """The leader, and every rival whose upper bound is above it."""
        problem, estimate = state.problem, self._estimate(state)
        if estimate is None:
            return Elimination(np.arange(len(problem.items)), 0)
        leader = int(np.argmax(problem.points @ estimate.theta))
        ahead = _ahead(problem, leader, estimate)
        alive = np.flatnonzero((ahead > 0) | (np.arange(len(ahead)) == leader))
        return with_gaps(state, Elimination(alive, leader, max(float(ahead.max()), 0.0), estimate=estimate))

    def _estimate(self, state: Stages) -> StageEstimate | None:
        """θ̂ and width on all answers; the design may depend on them as it likes. None until they span."""
        tally, d = pooled_tally(state.problem, state.records), state.problem.span.rank
        if len(tally) == 0:
            return None
        found = fit(tally)
        if not found.converged:  # a ridge of one for as long as no estimate exists
            found = fit(tally, ridge=1.0)
        shape = factor(gram_matrix(tally.vectors, tally.pulls.astype(float)))
        if shape is None:
            return None
        t = max(tally.total, 3)
        nats = math.log(t) * math.log(d * math.pi**2 * t**2 / (6 * self.delta))
        radius = 0.5 / self.least_kappa(state.problem) * math.sqrt(2 * d * nats)
        return StageEstimate(found.theta, Span(d, d, None), shape, radius)


def _ahead(problem: Problem, leader: int, estimate: StageEstimate) -> Floats:
    """By how much each item may be better than the leader, estimated gap plus width; −∞ for the leader itself."""
    y = problem.points - problem.points[leader]
    ahead: Floats = y @ estimate.theta + np.linalg.norm(estimate.white(y), axis=1)
    ahead[leader] = -np.inf
    return ahead


def _fewest(problem: Problem, leader: int, rival: int) -> tuple[Integers, Floats]:
    """The vectors and shares |w|/‖w‖₁ of the w of least ‖w‖₁ with Σ w_x·x = z_leader − z_rival."""
    # |w_x| splits into w⁺ + w⁻, so the least ‖w‖₁ is a linear program in 2|X| variables.
    rows, y = problem.rows, problem.points[leader] - problem.points[rival]
    solved = scipy.optimize.linprog(
        np.ones(2 * len(rows)), A_eq=np.hstack([rows.T, -rows.T]), b_eq=y, bounds=(0, None), method="highs"
    )
    assert solved.x is not None  # differences of items lie in the span
    weights = np.abs(solved.x[: len(rows)] - solved.x[len(rows) :])
    asked = np.flatnonzero(weights > 1e-9 * weights.max())
    return asked, weights[asked] / weights[asked].sum()
