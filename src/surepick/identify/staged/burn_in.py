"""BurnIn: the first stage of the RAGE family, which buys a floor under the variance of every measurement vector.

Two forms: by the corrected theorem from what is known of θ* (kappa or a norm bound), and by the anytime sequence where
nothing is known. With the paper's constants it is in `printed`.
"""

import math
from functools import lru_cache

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.confidence import ConfidenceSet
from surepick.confidence.theorem import Budget
from surepick.design import Rows, g_optimal, xy_optimal
from surepick.glm import Tally
from surepick.identify.problem import Problem
from surepick.identify.staged.base import Draft, Filed
from surepick.identify.staged.stage_bounds import (
    Certified,
    Estimate,
    best_budget,
    certify,
    least_variance,
    lines,
    smallest_stage,
)
from surepick.linalg import factor, gram_matrix, span_of

SHARE = 0.1
"""Share of delta that the first stage may spend: its size depends on it only through a logarithm."""

BURN_IN_XI = 0.2
"""About the ξ of a burn-in times √d, at which the split of delta is chosen."""

FIRST_LOOK = 12
"""Questions a dimension in the first stage of a search that knows nothing of θ*."""


def burn_in(problem: Problem, floors: Floats, delta: float) -> tuple[Draft, Budget]:
    """The fewest questions for which the corrected theorem applies with room to spare, spread evenly over all of X.

    The weights minimise max_x ‖x‖² in the inverse of Σ λ·floor·xxᵀ ≤ H(λ, θ*); with one floor for all this is the
    G-optimal design, of value rank/floor (Jun et al. 2021, Algorithm 2, with the constants of docs/identify.md).
    """
    rows = problem.rows
    design = xy_optimal(Rows(rows, factors=np.sqrt(floors)), rows)
    asked = rows[design.support]
    longest = longest_asked(asked, design.weights, floors[design.support])
    budget = best_budget(
        delta=delta,
        rank=problem.span.rank,
        xi=BURN_IN_XI / math.sqrt(problem.span.rank),
        asked_lines=lines(asked),
        query_lines=len(problem.items) - 1,
    )
    questions = smallest_stage(problem.span.rank, budget, longest=longest)
    return Draft(design.support, rounded_up(design.weights, questions), {}), budget


def level(delta: float, number: int) -> float:
    """δ_k, what round k (or look k) may spend: δ_0 = SHARE·δ and δ_k = (1 − SHARE)·δ/(k(k+1)), which sum to delta."""
    return delta * SHARE if number == 0 else delta * (1 - SHARE) / (number * (number + 1))


def longest_asked(vectors: Floats, weights: Floats, floors: Floats) -> float:
    """The largest ‖x‖² of a vector with weight in the inverse of Σ weight·floor·xxᵀ; infinite if that is singular."""
    asked = weights > 0
    inside = span_of(vectors[asked]).coordinates(vectors[asked])
    shape = factor(gram_matrix(inside, (weights * floors)[asked]))
    return math.inf if shape is None else float(shape.inverse_norms(inside).max()) ** 2


def rounded_up(weights: Floats, questions: float) -> Integers:
    """⌈n·w⌉: at most one question a vector more than n, and at least the information of n questions by weight.

    Beyond 2⁵³, which no budget allows, counts would not be exact and are cut off.
    """
    return np.clip(np.ceil(questions * weights - 1e-9), 1, 2.0**53).astype(np.int64)


@lru_cache(maxsize=64)  # a stage is looked at two or three times: verdict, plan, gaps
def proved_by(problem: Problem, filed: Filed) -> Certified | None:
    """What the answers of one stage prove, given the floors and the split of delta in its memo."""
    return certify(
        problem.rows,
        filed.plan.measurements,
        filed.pulls,
        filed.wins,
        np.array(filed.plan.memo["floors"]),
        Budget(**filed.plan.memo["budget"]),
    )


def explore(problem: Problem, already: int) -> Draft:
    """The next stage of a search that knows nothing of θ*: the G-optimal design, as much again as was asked so far."""
    design = g_optimal(problem.rows)
    return Draft(design.support, rounded_up(design.weights, max(already, FIRST_LOOK * problem.span.rank)), {})


@lru_cache(maxsize=16)  # a stage is looked at two or three times: verdict, plan, gaps
def explored(problem: Problem, filed: tuple[Filed, ...], delta: float) -> Estimate | None:
    """An ellipsoid around all θ that the answers so far do not refute, by the anytime sequence; None without any.

    It holds at all times at once and for every direction, so looking at it again and again is free.
    """
    answered = [each for each in filed if each.pulls.any()]
    if not answered:
        return None
    batches = [Tally(problem.rows[each.plan.measurements], each.pulls, each.wins) for each in answered]
    known = ConfidenceSet.of(batches)
    shape, radius = known.ellipsoid(delta=delta)
    if shape is None:
        return None
    return Estimate(known.span.embed(known.least.point), known.span, shape, radius)


def floors_within(estimate: Estimate | None, rows: Floats) -> Floats:
    """The least variance of each vector over an ellipsoid; zero where it does not reach."""
    if estimate is None:
        return np.zeros(len(rows))
    error = np.linalg.norm(estimate.white(rows), axis=1)
    return np.where(estimate.span.contains(rows), least_variance(rows @ estimate.theta, error), 0.0)
