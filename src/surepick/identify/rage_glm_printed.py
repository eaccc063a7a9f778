"""RAGE-GLM with the constants of Jun et al. 2021 (Algorithm 1 and its supplement), to compare with.

Differences between main text and supplement: the main text excludes z if ⟨ẑ − z, θ̂⟩ ≥ 2^{−k} ("gap"), the supplement
if some z' ≠ z has ⟨z' − z, θ̂⟩ > 3.5·‖z' − z‖·√(3·log(2|Z|(2+|X|)k²/δ)) ("width"; printed with ≥ and without z' ≠ z,
which excludes everything). The proof gives an error probability of 4.29·δ, so pass delta/4.29 for delta.
"""

import math
from functools import lru_cache
from typing import Protocol

import numpy as np

from surepick.arrays import Floats, Integers
from surepick.confidence.printed import printed_gamma
from surepick.design import Pairs, Rows, apportion, max_optimal
from surepick.identify.burn_in import printed_burn_in
from surepick.identify.certified import Estimate
from surepick.identify.elimination import exclude, gaps_stage_by_stage
from surepick.identify.problem import Problem
from surepick.identify.stagewise import Draft, Filed, Stages, Standing
from surepick.linalg import factor, gram_matrix, span_of
from surepick.logistic import Tally, fit, variance


class Options(Protocol):
    """What the printed forms read of a policy."""

    @property
    def delta(self) -> float:
        """Probability of a wrong verdict that is accepted."""

    @property
    def rounding(self) -> float:
        """Slack of the rounding, ε of the paper."""

    def least_kappa(self, problem: Problem) -> float:
        """κ₀ as known to the policy."""


def standing(options: Options, state: Stages, rule: str) -> Standing:
    """Lines 10 and 11: estimate from the round's answers, exclude, go on."""
    memo, theta = state.last.plan.memo, _estimate(state.problem, state.last)
    everybody = exclude(state, None)
    number = int(memo["round"])
    if theta is None or number == 0 or (rule == "gap" and memo.get("short")):
        return everybody
    if rule == "width":
        return exclude(state, _with_width(options, state.problem, state.last))
    points, alive = state.problem.points, everybody.alive
    leader = int(alive[np.argmax(points[alive] @ theta)])
    return Standing(alive[(points[leader] - points[alive]) @ theta < 2.0**-number], leader, 2 * 2.0**-number)


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
            Rows(rows, scale=printed_gamma(problem.span.rank, 2 + count, options.delta)),
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
    rounds = state.filed[1:]
    return gaps_stage_by_stage(state, best, ((one, _with_width(options, state.problem, one)) for one in rounds))


def _with_width(options: Options, problem: Problem, filed: Filed) -> Estimate | None:
    """The round's estimate with norms in H_k(θ_{k−1})⁻¹."""
    theta, memo = _estimate(problem, filed), filed.plan.memo
    if theta is None:
        return None
    asked, before = filed.plan.measurements, np.array(memo["theta"])
    return printed_width(problem, options.delta, int(memo["round"]), theta, asked, filed.pulls, before)


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
