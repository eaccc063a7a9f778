"""Policies with one design for all of the search, evaluated whenever the number of answers has doubled (a "look").

The looks are fixed in advance and each has its share of delta, so the answers to all of them may be pooled: given the
design they are independent. The surviving items depend on those same answers, so every look counts all of Z
(docs/identify.md, Theorem 2).
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.confidence.theorem import Budget, largest_xi
from surepick.design import Rows, g_optimal, pairs_optimal
from surepick.glm import variance
from surepick.guarantee import Guarantee
from surepick.identify.policy import pooled_counts
from surepick.identify.problem import Problem
from surepick.identify.staged.base import Draft, Elimination, StageMemo, Stages, WithPriorBounds
from surepick.identify.staged.elimination import exclude, with_gaps
from surepick.identify.staged.rage_glm import FIRST_LOOK, ROUND_XI, burn_in, explore, explored, floors_within
from surepick.identify.staged.stage_bounds import (
    COMFORT,
    StageBounds,
    best_budget,
    count_lines,
    level,
    longest_asked,
    rounded_up,
    stage_bounds,
)
from surepick.linalg import span_of

EVEN_SHARE = 0.05
"""Share of a static design that is spread evenly over its vectors, so that none is asked too rarely to be known."""

LARGER = 8
"""Times the usual first stage: a policy that cannot explore again later begins with more."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LookMemo(StageMemo):
    """What a look must remember: the design, its first size, and how the delta of the look is spent."""

    kind: Literal["burn-in", "explore", "look"]
    look: int
    """Counted from 1; the stage before the looks is 0."""
    alive: Integers
    asked: Integers | None = None
    weights: Floats | None = None
    first: float | None = None
    """Questions of the first look; look k has 2^{k−1} times as many in all."""
    budget: Budget | None = None


@dataclass(frozen=True, kw_only=True)
class Static(WithPriorBounds):
    """One fixed design, evaluated at doubling numbers of answers by the corrected theorem on all of them."""

    EXPLORES = True
    GUARANTEE = Guarantee.PROVED
    STATEMENT = "The best item is excluded with probability at most delta (docs/identify.md, Theorem 2)."

    BEGINS_WITH_BURN_IN: ClassVar[bool] = False
    """Whether a first stage, not pooled with the looks, chooses the design."""
    SHARPENS: ClassVar[bool] = True
    """Whether a look raises the floors by its own answers before it computes widths."""

    @abstractmethod
    def weights(self, state: Stages) -> tuple[Integers, Floats]:
        """The measurement vectors to ask and their shares, as a function of the burn-in alone."""

    def draft(self, state: Stages) -> Draft:
        """The burn-in, then look after look, each doubling the answers."""
        problem, before = state.problem, state.elimination
        if before is None and self.BEGINS_WITH_BURN_IN:
            return self._first_stage(problem)
        memo = None if before is None else LookMemo.from_json(state.last.plan.memo)
        if memo is None or memo.asked is None or memo.weights is None or memo.first is None:  # the first look
            look = 1
            asked, weights = self.weights(state)
            first = self._first_look(state, asked, weights)
        else:
            look, asked, weights, first = memo.look + 1, memo.asked, memo.weights, memo.first
        upto = rounded_up(weights, first * 2.0 ** (look - 1))
        done = np.zeros_like(upto) if look == 1 else rounded_up(weights, first * 2.0 ** (look - 2))
        new = upto - done > 0
        fresh = LookMemo(
            kind="look",
            look=look,
            alive=np.arange(len(problem.items)) if before is None else before.alive,
            asked=asked,
            weights=weights,
            first=first,
            budget=self._budget(problem, asked, look),
        )
        return Draft(asked[new], (upto - done)[new], fresh)

    def eliminate(self, state: Stages) -> Elimination:
        """Exclude every item that another beats by more than the width, at this look or an earlier one."""
        memo = LookMemo.from_json(state.last.plan.memo)
        floors, bounds = self._floors_before(state, memo.kind), None
        if memo.budget is not None:
            bounds = self._bounds(state, memo.kind, floors, memo.budget)
        said = exclude(state, memo.alive, None if bounds is None else bounds.estimate)
        # The gaps of all items are bounded by the last look: the answers to every look are in it.
        by_last_look = with_gaps(state, replace(said, among=None))
        return replace(by_last_look, floors=floors if bounds is None else bounds.floors)

    def _first_stage(self, problem: Problem) -> Draft:
        """BurnIn by what is known of θ*, or some exploring; in either case what the design is chosen with."""
        everything, known = np.arange(len(problem.items)), self.floors(problem)
        if known is None:
            asked, pulls = explore(problem, LARGER * FIRST_LOOK * problem.span.rank)
            return Draft(asked, pulls, LookMemo(kind="explore", look=0, alive=everything))
        asked, pulls, budget = burn_in(problem, known, level(self.delta, 0))
        return Draft(asked, pulls, LookMemo(kind="burn-in", look=0, alive=everything, budget=budget))

    def _first_look(self, state: Stages, asked: Integers, weights: Floats) -> float:
        """Questions from which on the theorem applies; where nothing is known, a guess that doubling corrects."""
        problem, floors = state.problem, self.floors(state.problem)
        if floors is None:
            return float(max(len(asked), LARGER * FIRST_LOOK * problem.span.rank))
        if state.elimination is not None and state.elimination.floors is not None:
            floors = state.elimination.floors
        limit = COMFORT * largest_xi(span_of(problem.rows[asked]).rank, self._budget(problem, asked, 1))
        needed = longest_asked(problem.rows[asked], weights, floors[asked]) / limit**2
        return needed if math.isfinite(needed) else float(len(asked))

    def _budget(self, problem: Problem, asked: Integers, look: int) -> Budget:
        rank = span_of(problem.rows[asked]).rank
        return best_budget(
            delta=level(self.delta, look),
            rank=rank,
            xi=ROUND_XI / math.sqrt(rank),
            asked_lines=count_lines(problem.rows[asked]),
            # Not |Z_k| − 1: who is alive depends on answers that this look pools (Theorem 2).
            query_lines=len(problem.items) - 1,
        )

    def _floors_before(self, state: Stages, kind: str) -> Floats:
        """Where a look starts: prior knowledge, raised by a burn-in; without any, what the anytime sequence proves."""
        known = self.floors(state.problem)
        if known is None:
            return floors_within(explored(state, level(self.delta, 0)), state.problem.rows)
        if kind == "look" and self.BEGINS_WITH_BURN_IN:
            raised = state.eliminations[0].floors
            assert raised is not None  # `eliminate` sees to it
            return raised
        return known

    def _bounds(self, state: Stages, kind: str, floors: Floats, budget: Budget) -> StageBounds | None:
        """What the pooled answers of all stages of this kind prove; those of the burn-in chose the design."""
        stages = [record for record in state.records if LookMemo.from_json(record.plan.memo).kind == kind]
        pulls, wins = pooled_counts(state.problem, stages)
        asked = np.flatnonzero(pulls)
        return stage_bounds(state.problem.rows, asked, pulls[asked], wins[asked], floors, budget, sharpen=self.SHARPENS)


@dataclass(frozen=True, kw_only=True)
class Passive(Static):
    """A burn-in, then the static design that separates all pairs of items best, evaluated at doubling numbers.

    The baseline of Jun et al. 2021, section 4.2, made valid: the burn-in's answers choose the design and are not
    pooled, the looks share delta. As the paper has it: `baselines.printed_forms.PassivePrinted`.
    """

    NAME = "passive"
    BEGINS_WITH_BURN_IN = True

    def weights(self, state: Stages) -> tuple[Integers, Floats]:
        """The best design for all pairs at the variances that the burn-in found, a little evened out."""
        rows, burnt_in = state.problem.rows, state.elimination
        assert burnt_in is not None  # it begins with a burn-in
        assert burnt_in.floors is not None  # `eliminate` sees to it
        seen = np.maximum(burnt_in.floors, variance(rows @ state.guess[0]))
        design = pairs_optimal(Rows(rows, factors=np.sqrt(seen)), state.problem.points)
        even = np.full(len(design.weights), 1 / len(design.weights))
        return design.support, (1 - EVEN_SHARE) * design.weights + EVEN_SHARE * even


@dataclass(frozen=True, kw_only=True)
class GOptimal(Static):
    """The G-optimal design and the bound H(θ*) ≥ κ₀·A, until all rivals are excluded: O(d/(κ₀·gap²)) questions.

    The naive improvement on Kazerouni and Wein in Jun et al. 2021, section 4.1. Needs kappa or norm_bound.
    """

    NAME = "g-optimal"
    NEEDS_PRIOR_BOUNDS = True
    SHARPENS = False

    def weights(self, state: Stages) -> tuple[Integers, Floats]:
        """The G-optimal design of X."""
        design = g_optimal(state.problem.rows)
        return design.support, design.weights


@dataclass(frozen=True, kw_only=True)
class Uniform(Static):
    """Every measurement vector equally often, evaluated at doubling numbers of answers; needs only delta."""

    NAME = "uniform"

    def weights(self, state: Stages) -> tuple[Integers, Floats]:
        """One share each."""
        useful = np.flatnonzero(np.any(state.problem.rows != 0, axis=1))
        return useful, np.full(len(useful), 1 / len(useful))
