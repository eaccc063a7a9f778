"""RAGE-GLM with the constants of Jun et al. 2021 (Algorithm 1 and its supplement), to compare with.

Differences between main text and supplement: the main text excludes z if ⟨ẑ − z, θ̂⟩ ≥ 2^{−k} ("gap"), the supplement
if some z' ≠ z has ⟨z' − z, θ̂⟩ > 3.5·‖z' − z‖·√(3·log(2|Z|(2+|X|)k²/δ)) ("width"; printed with ≥ and without z' ≠ z,
which excludes everything). The proof gives an error probability of 4.29·δ, so pass delta/4.29 for delta.
"""

import math

import numpy as np

from surepick._arrays import Floats
from surepick.baselines.printed_forms import TwoForms, fitted, printed_burn_in, round_nats, with_printed_width
from surepick.confidence.theorem import printed_gamma
from surepick.design import Pairs, Rows, apportion, max_optimal
from surepick.glm import variance
from surepick.identify.problem import Problem
from surepick.identify.staged.base import Draft, Filed, Stages, Standing
from surepick.identify.staged.elimination import exclude, gaps_stage_by_stage
from surepick.identify.staged.stage_bounds import Estimate


def standing(policy: TwoForms, state: Stages, rule: str) -> Standing:
    """Lines 10 and 11: estimate from the round's answers, exclude, go on."""
    memo, theta = state.last.plan.memo, fitted(state.problem, (state.last,))
    everybody = exclude(state, None)
    number = int(memo["round"])
    if theta is None or number == 0 or (rule == "gap" and memo.get("short")):
        return everybody
    if rule == "width":
        return exclude(state, _with_width(policy, state.problem, state.last))
    points, alive = state.problem.points, everybody.alive
    leader = int(alive[np.argmax(points[alive] @ theta)])
    return Standing(alive[(points[leader] - points[alive]) @ theta < 2.0**-number], leader, 2 * 2.0**-number)


def draft(policy: TwoForms, state: Stages, standing: Standing | None) -> Draft:
    """Lines 1 and 3 to 8: BurnIn, then the design of round k and its size."""
    problem = state.problem
    if standing is None:
        first = printed_burn_in(problem, policy.least_kappa(problem), policy.delta, policy.rounding)
        everything = list(range(len(problem.items)))
        return Draft(first.measurements, first.pulls, {"round": 0, "alive": everything, "theta": None})
    theta = fitted(problem, (state.last,))
    if theta is None:  # no estimate: the round's event failed; stay with the one before
        theta = np.array(state.last.plan.memo["theta"] or np.zeros(problem.rows.shape[1]))
    number = int(state.last.plan.memo["round"]) + 1
    rows = problem.rows
    design = max_optimal(
        Rows(rows, factors=np.sqrt(variance(rows @ theta))),
        [
            Rows(rows, scale=printed_gamma(problem.span.rank, 2 + len(rows), policy.delta)),
            Pairs(problem.points[standing.alive], scale=4.0**number * 3.5**2),
        ],
    )
    questions = 3 * (1 + policy.rounding) * design.value * round_nats(problem, policy.delta, number)
    total = max(math.ceil(max(questions, problem.span.rank**2 / policy.rounding)), len(design.support))
    memo = {"round": number, "alive": standing.alive.tolist(), "theta": theta.tolist()}
    return Draft(design.support, apportion(design.weights, total).counts, memo)


def gaps(policy: TwoForms, state: Stages, best: int) -> tuple[Floats, Floats]:
    """Intervals by the printed widths of the last round in which an item was alive."""
    rounds = state.filed[1:]
    return gaps_stage_by_stage(state, best, ((one, _with_width(policy, state.problem, one)) for one in rounds))


def _with_width(policy: TwoForms, problem: Problem, filed: Filed) -> Estimate | None:
    """The round's estimate with norms in H_k(θ_{k−1})⁻¹."""
    return with_printed_width(Stages(problem, (filed,)), policy.delta, np.array(filed.plan.memo["theta"]))
