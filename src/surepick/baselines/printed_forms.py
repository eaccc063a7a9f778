"""RAGE-GLM, RAGE-GLM-R and the passive baseline as Jun et al. 2021 print them, to compare with.

Main text and supplement differ in the elimination rule of RAGE-GLM. The main text excludes z if ⟨ẑ − z, θ̂⟩ ≥ 2^{−k}
("gap"), the supplement if some z' ≠ z has ⟨z' − z, θ̂⟩ > 3.5·‖z' − z‖·√(3·log(2|Z|(2+|X|)k²/δ)) ("width"; printed with
≥ and without z' ≠ z, which excludes everything). The proof gives an error probability of 4.29·δ, so pass delta/4.29 for
delta. Lines are counted as in `identify.staged.rage_glm`; what is wrong in print: docs/errata.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick.confidence.theorem import printed_gamma
from surepick.design import Pairs, Rows, apportion, g_optimal, max_optimal, pairs_optimal
from surepick.glm import fit, variance
from surepick.guarantee import Guarantee
from surepick.identify.problem import Problem
from surepick.identify.staged.base import Draft, Elimination, StageMemo, Stages, WithPriorBounds
from surepick.identify.staged.elimination import exclude, with_gaps
from surepick.identify.staged.stage_bounds import StageEstimate
from surepick.identify.stages import StageRecord, pooled_tally
from surepick.linalg import factor, gram_matrix, span_of


@dataclass(frozen=True, eq=False, kw_only=True)
class PrintedMemo(StageMemo):
    """What a round of a printed form must remember."""

    round: int
    """k; the burn-in is round 0."""
    alive: Integers
    theta: Floats | None
    """θ̂_{k−1}, at which the round's design was made."""


@dataclass(frozen=True, kw_only=True)
class Printed(WithPriorBounds):
    """What the printed forms have in common: the paper's BurnIn, and `rounding`, its parameter ε."""

    rounding: float = 0.1

    NEEDS_PRIOR_BOUNDS = True

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.positive("rounding", self.rounding)

    def burn_in(self, problem: Problem) -> tuple[Integers, Integers]:
        """n₀ = max{3(1+ε)·d·γ(d)·log(2|X|(2+|X|)/δ)/κ₀, d²/ε} of the G-optimal design (Algorithm 2)."""
        d, count = problem.span.rank, len(problem.rows)
        gamma = printed_gamma(d, 2 + count, self.delta)
        nats = math.log(2 * count * (2 + count) / self.delta)
        questions = 3 * (1 + self.rounding) * d * gamma * nats / self.least_kappa(problem)
        design = g_optimal(problem.rows)
        # d²/ε is what the rounding procedure needs; the paper asks for it in rounds, and forgets it here.
        total = max(math.ceil(max(questions, d * d / self.rounding)), len(design.support))
        return design.support, apportion(design.weights, total).counts

    def round_nats(self, problem: Problem, k: int) -> float:
        """Line 4: log(1/δ_k) with δ_k = δ/(2k²·max(|Z|, |X|)·(2+|X|))."""
        count = len(problem.rows)
        return math.log(2 * k**2 * max(len(problem.items), count) * (2 + count) / self.delta)

    def with_printed_width(
        self, problem: Problem, stages: Sequence[StageRecord], k: int, at: Floats | None
    ) -> StageEstimate | None:
        """The estimate of these stages with radius 3.5·√(3·log(2|Z|(2+|X|)k²/δ)), k ≥ 1.

        Norms are in H(at)⁻¹ of all that was asked; without `at`, in that at the estimate. None where no
        maximum-likelihood estimate exists in all of the space.
        """
        tally = pooled_tally(problem, stages)
        if len(tally) == 0:
            return None
        found = fit(tally)
        if not (found.converged and found.span.is_full):
            return None
        pulls, rows = tally.pulls, tally.vectors
        shape = factor(gram_matrix(rows, pulls * variance(rows @ (found.theta if at is None else at))))
        assert shape is not None  # an estimate exists, so the asked vectors span the space
        nats = math.log(2 * len(problem.items) * (2 + len(problem.rows)) * max(k, 1) ** 2 / self.delta)
        return StageEstimate(found.theta, span_of(rows), shape, 3.5 * math.sqrt(3 * nats))


@dataclass(frozen=True, kw_only=True)
class RageGlmPrinted(Printed):
    """Algorithm 1 to the letter, with the elimination rule of the supplement ("width") or the main text ("gap").

    Its error probability may reach 4.29·delta. Needs kappa or norm_bound.
    """

    elimination: Literal["width", "gap"] = "width"

    NAME = "rage-glm-printed"
    GUARANTEE = Guarantee.AS_PRINTED
    STATEMENT = "Jun et al. 2021, Theorem 2, as printed; the proof allows an error of 4.29 delta (docs/identify.md)."

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.one_of("elimination", self.elimination, ("width", "gap"))

    def draft(self, state: Stages) -> Draft:
        """Lines 2 and 4 to 8: BurnIn, then the design of round k and its size."""
        problem, rows, before = state.problem, state.problem.rows, state.elimination
        if before is None:
            memo = PrintedMemo(round=0, alive=np.arange(len(problem.items)), theta=None)
            return Draft(*self.burn_in(problem), memo)
        last = PrintedMemo.from_json(state.last.plan.memo)
        if before.estimate is not None:
            theta = before.estimate.theta
        else:  # no estimate: the round's event failed; stay with the one before
            theta = np.zeros(rows.shape[1]) if last.theta is None else last.theta
        k = last.round + 1
        design = max_optimal(  # lines 5 and 6
            Rows(rows, factors=np.sqrt(variance(rows @ theta))),
            [
                Rows(rows, scale=printed_gamma(problem.span.rank, 2 + len(rows), self.delta)),
                Pairs(problem.points[before.alive], scale=4.0**k * 3.5**2),
            ],
        )
        questions = 3 * (1 + self.rounding) * design.value * self.round_nats(problem, k)  # line 7
        total = max(math.ceil(max(questions, problem.span.rank**2 / self.rounding)), len(design.support))
        memo = PrintedMemo(round=k, alive=before.alive, theta=theta)
        return Draft(design.support, apportion(design.weights, total).counts, memo)  # line 8

    def eliminate(self, state: Stages) -> Elimination:
        """Lines 10 to 12: estimate from the round's answers, exclude, go on."""
        memo, points = PrintedMemo.from_json(state.last.plan.memo), state.problem.points
        # H_k(θ̂_{k−1}), as the supplement has it; the burn-in's is not used for widths.
        estimate = self.with_printed_width(state.problem, (state.last,), memo.round, memo.theta)
        # The rule by gaps relies on the size of line 7, so a round that the budget cut short excludes nobody by it.
        if estimate is None or memo.round == 0 or (self.elimination == "gap" and memo.short):
            said = exclude(state, memo.alive, None)
        elif self.elimination == "width":
            said = exclude(state, memo.alive, estimate)
        else:
            target, alive = 2.0**-memo.round, memo.alive
            leader = int(alive[np.argmax(points[alive] @ estimate.theta)])
            close = (points[leader] - points[alive]) @ estimate.theta < target
            said = Elimination(alive[close], leader, 2 * target, among=alive)
        said = replace(said, estimate=estimate)
        return said if memo.round == 0 else with_gaps(state, said, state.eliminations[1:])


@dataclass(frozen=True, eq=False, kw_only=True)
class PassivePrintedMemo(StageMemo):
    """What a round of the passive baseline must remember: its design, which is that of round 1."""

    round: int
    alive: Integers
    asked: Integers | None = None
    weights: Floats | None = None


@dataclass(frozen=True, kw_only=True)
class PassivePrinted(Printed):
    """The passive baseline as Jun et al. 2021 describe it (section 4.2), all answers pooled; no proof.

    Round k draws 2^k more answers from the design that is best for all pairs at the burn-in's estimate, until every
    item but one is excluded by the fixed-design width. "See Appendix for details" refers to nothing; the width is that
    of the supplement's elimination rule, with the norms of all answers at the burn-in's estimate.
    """

    NAME = "passive-printed"
    GUARANTEE = Guarantee.HEURISTIC
    STATEMENT = "Jun et al. 2021, section 4.2: the passive baseline as described there; no proof."

    def draft(self, state: Stages) -> Draft:
        """BurnIn, then 2^k more questions a round, beginning where 2^k covers the design's vectors."""
        problem, rows, before = state.problem, state.problem.rows, state.elimination
        if before is None:
            memo = PassivePrintedMemo(round=0, alive=np.arange(len(problem.items)))
            return Draft(*self.burn_in(problem), memo)
        last = PassivePrintedMemo.from_json(state.last.plan.memo)
        if last.asked is None or last.weights is None:
            theta = np.zeros(rows.shape[1]) if before.estimate is None else before.estimate.theta
            design = pairs_optimal(Rows(rows, factors=np.sqrt(variance(rows @ theta))), problem.points)
            asked, weights = design.support, design.weights
            # At least 1: 0 is the burn-in, and a design of one vector would be asked one question a round for ever.
            k = max(1, math.ceil(math.log2(len(asked))))
        else:
            asked, weights, k = last.asked, last.weights, last.round + 1
        # Rounding the running sums keeps the total at 2^k exactly.
        pulls = np.rint(np.diff(np.concatenate([[0.0], np.rint(np.cumsum(weights) * 2.0**k)]))).astype(np.int64)
        here = pulls > 0
        memo = PassivePrintedMemo(round=k, alive=before.alive, asked=asked, weights=weights)
        return Draft(asked[here], pulls[here], memo)

    def eliminate(self, state: Stages) -> Elimination:
        """Exclude what the estimate from all answers excludes, with norms at the burn-in's estimate."""
        memo = PassivePrintedMemo.from_json(state.last.plan.memo)
        burnt_in = state.eliminations[0].estimate if state.eliminations else None
        at = None if burnt_in is None else burnt_in.theta
        # Where the burn-in has no estimate there is no norm to go by, in no round.
        known = memo.round == 0 or at is not None
        estimate = self.with_printed_width(state.problem, state.records, memo.round, at) if known else None
        return with_gaps(state, replace(exclude(state, memo.alive, estimate), among=None))


@dataclass(frozen=True, kw_only=True)
class RageGlmR(Printed):
    """Rounds of design and elimination on all answers so far, with the paper's constants. Needs kappa or norm_bound."""

    NAME = "rage-glm-r"
    GUARANTEE = Guarantee.HEURISTIC
    STATEMENT = "Jun et al. 2021, section 4.2: RAGE-GLM-R; no proof, since answers are used twice."

    def draft(self, state: Stages) -> Draft:
        """BurnIn, then the best design for the items alive at the last estimate."""
        problem, rows, before = state.problem, state.problem.rows, state.elimination
        if before is None:
            memo = PrintedMemo(round=0, alive=np.arange(len(problem.items)), theta=None)
            return Draft(*self.burn_in(problem), memo)
        k = PrintedMemo.from_json(state.last.plan.memo).round + 1
        theta = np.zeros(rows.shape[1]) if before.estimate is None else before.estimate.theta
        # Line 5 without its first term, γ(d)·max ‖x‖²: ξ is left to the burn-in's answers, which are kept.
        design = pairs_optimal(Rows(rows, factors=np.sqrt(variance(rows @ theta))), problem.points[before.alive])
        questions = 3 * (1 + self.rounding) * 4.0**k * 3.5**2 * design.value * self.round_nats(problem, k)
        total = max(math.ceil(questions), len(design.support))
        memo = PrintedMemo(round=k, alive=before.alive, theta=theta)
        return Draft(design.support, apportion(design.weights, total).counts, memo)

    def eliminate(self, state: Stages) -> Elimination:
        """Exclude what the estimate from all answers excludes, with norms at the one that chose the round's design."""
        memo = PrintedMemo.from_json(state.last.plan.memo)
        estimate = self.with_printed_width(state.problem, state.records, memo.round, memo.theta)
        return with_gaps(state, replace(exclude(state, memo.alive, estimate), among=None))
