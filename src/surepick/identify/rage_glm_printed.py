"""RAGE-GLM with the constants of Jun et al. 2021 (Algorithm 1 and its supplement), to compare with.

Differences between main text and supplement: the main text excludes z if ⟨ẑ − z, θ̂⟩ ≥ 2^{−k} ("gap"), the supplement
if some z' ≠ z has ⟨z' − z, θ̂⟩ > 3.5·‖z' − z‖·√(3·log(2|Z|(2+|X|)k²/δ)) ("width"; printed with ≥ and without z' ≠ z,
which excludes everything). The proof gives an error probability of 4.29·δ, so pass delta/4.29 for delta.
"""

import math
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from surepick.design import Pairs, Rows, apportion, max_optimal
from surepick.identify.burn_in import printed_burn_in, printed_gamma
from surepick.identify.certified import Estimate
from surepick.identify.elimination import gap_intervals, shortfall, surviving
from surepick.identify.problem import Problem
from surepick.identify.stagewise import Draft, Filed, Stages, Standing
from surepick.linalg import factor, gram_matrix, span_of
from surepick.logistic import Tally, fit, variance

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Options(Protocol):
    """What the printed form reads of a policy."""

    @property
    def delta(self) -> float: ...  # noqa: D102
    @property
    def elimination(self) -> str: ...  # noqa: D102
    @property
    def rounding(self) -> float: ...  # noqa: D102
    def least_kappa(self, problem: Problem) -> float: ...  # noqa: D102


def standing(options: Options, state: Stages) -> Standing:
    """Lines 10 and 11: estimate from the round's answers, exclude, go on."""
    problem, memo = state.problem, state.last.plan.memo
    alive = np.array(memo["alive"], dtype=np.int64)
    theta = _estimate(problem, state.last)
    if theta is None:
        return Standing(alive, int(alive[0]))
    points, number = problem.points, int(memo["round"])
    leader = int(alive[np.argmax(points[alive] @ theta)])
    if number == 0:
        return Standing(alive, leader)
    if options.elimination == "gap":
        if memo.get("short"):
            return Standing(alive, leader)
        left = alive[((points[leader] - points[alive]) @ theta < 2.0**-number)]
        return Standing(left, leader, 2 * 2.0**-number)
    estimate = _with_width(options, problem, state.last, theta)
    left = surviving(points, alive, estimate)
    return Standing(left, *shortfall(points, left, estimate))


def draft(options: Options, state: Stages, standing: Standing | None) -> Draft:
    """Lines 1 and 3 to 8: BurnIn, then the design of round k and its size."""
    problem = state.problem
    if standing is None:
        first = printed_burn_in(problem, options.least_kappa(problem), options.delta, options.rounding)
        everything = list(range(len(problem.items)))
        return Draft(first.measurements, first.pulls, {"round": 0, "alive": everything, "theta": None})
    theta = _estimate(problem, state.last)
    if theta is None:  # no estimate: the round's event failed; stay with the one before
        theta = np.array(state.last.plan.memo["theta"] or np.zeros(problem.rows.shape[1]))
    number = int(state.last.plan.memo["round"]) + 1
    rows, count = problem.rows, len(problem.rows)
    design = max_optimal(
        Rows(rows, factors=np.sqrt(variance(rows @ theta))),
        [
            Rows(rows, scale=printed_gamma(problem, options.delta)),
            Pairs(problem.points[standing.alive], scale=4.0**number * 3.5**2),
        ],
    )
    delta = options.delta / (2 * number**2 * max(len(problem.items), count) * (2 + count))
    questions = 3 * (1 + options.rounding) * design.value * math.log(1 / delta)
    total = max(math.ceil(max(questions, problem.span.rank**2 / options.rounding)), len(design.support))
    memo = {"round": number, "alive": standing.alive.tolist(), "theta": theta.tolist()}
    return Draft(design.support, apportion(design.weights, total).counts, memo)


def gaps(options: Options, state: Stages, best: int) -> tuple[Floats, Floats]:
    """Intervals by the printed widths of the last round in which an item was alive."""
    problem = state.problem
    low, high = np.full(len(problem.items), -np.inf), np.full(len(problem.items), np.inf)
    for filed in state.filed[1:]:
        theta = _estimate(problem, filed)
        if theta is not None:
            others = np.array(filed.plan.memo["alive"], dtype=np.int64)
            known = gap_intervals(problem.points, best, others, _with_width(options, problem, filed, theta))
            low[others], high[others] = known.low, known.high
    return low, high


def _with_width(options: Options, problem: Problem, filed: Filed, theta: Floats) -> Estimate:
    """The round's estimate with norms in H_k(θ_{k−1})⁻¹."""
    number, before = int(filed.plan.memo["round"]), np.array(filed.plan.memo["theta"])
    return printed_width(problem, options.delta, number, theta, filed.plan.measurements, filed.pulls, before)


def printed_width(
    problem: Problem, delta: float, number: int, theta: Floats, asked: Integers, pulls: Integers, at: Floats
) -> Estimate:
    """An estimate with radius 3.5·√(3·log(2|Z|(2+|X|)k²/δ)), k ≥ 1, and norms in H(at)⁻¹ of the asked vectors."""
    rows = problem.rows[asked]
    shape = factor(gram_matrix(rows, pulls * variance(rows @ at)))
    assert shape is not None  # an estimate exists, so the asked vectors span the space
    nats = math.log(2 * len(problem.items) * (2 + len(problem.rows)) * max(number, 1) ** 2 / delta)
    return Estimate(theta, span_of(rows), shape, 3.5 * math.sqrt(3 * nats))


@lru_cache(maxsize=64)
def _estimate(problem: Problem, filed: Filed) -> Floats | None:
    """Maximum likelihood on the answers of one stage; None where it does not exist in all of the space."""
    found = fit(Tally(problem.rows[filed.plan.measurements], filed.pulls, filed.wins))
    return found.theta if found.converged and found.span.is_full else None
