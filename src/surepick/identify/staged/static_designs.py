"""Policies with one design for all of the search and a look whenever the number of answers has doubled.

The looks are fixed in advance and each has its share of delta, so the answers to all stages may be pooled: given the
design they are independent. The surviving items depend on those same answers, so every look counts all of Z.
"""

import math
from abc import abstractmethod
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.baselines import passive_printed as printed
from surepick.baselines.printed_forms import TwoForms
from surepick.confidence.theorem import Budget, largest_xi
from surepick.design import Rows, g_optimal, pairs_optimal
from surepick.glm import variance
from surepick.guarantee import Guarantee
from surepick.identify.problem import Problem
from surepick.identify.staged.base import Draft, Filed, Stages, Standing
from surepick.identify.staged.burn_in import (
    FIRST_LOOK,
    burn_in,
    explore,
    explored,
    floors_within,
    level,
    longest_asked,
    rounded_up,
)
from surepick.identify.staged.elimination import exclude, gap_intervals, pooled
from surepick.identify.staged.prior_knowledge import Informed
from surepick.identify.staged.rage_glm import TYPICAL_XI
from surepick.identify.staged.stage_bounds import COMFORT, Certified, Estimate, best_budget, certify, lines
from surepick.linalg import span_of

EVEN_SHARE = 0.05
"""Share of a static design that is spread evenly over its vectors, so that none is asked too rarely to be known."""

LARGER = 8
"""Times the usual first stage: a policy that cannot explore again later begins with more."""


@dataclass(frozen=True, kw_only=True)
class Static(Informed):
    """One fixed design; looks at doubling numbers of answers, by the corrected theorem on all of them."""

    GUARANTEE = Guarantee.PROVED
    STATEMENT = "The best item is excluded with probability at most delta (docs/identify.md, Theorem 2)."

    BEGINS_WITH_BURN_IN: ClassVar[bool] = False
    """Whether a first stage, not pooled with the looks, chooses the design."""
    SHARPENS: ClassVar[bool] = True
    """Whether a look raises the floors by its own answers before it computes widths."""

    @abstractmethod
    def weights(self, state: Stages) -> tuple[Integers, Floats]:
        """The measurement vectors to ask and their shares, as a function of the burn-in alone."""

    def standing(self, state: Stages) -> Standing:
        """Exclude every item that another beats by more than the width, at this look or an earlier one."""
        return exclude(state, self._estimate(state))

    def draft(self, state: Stages, standing: Standing | None) -> Draft:
        """The burn-in, then look after look, each doubling the answers."""
        problem = state.problem
        everything = list(range(len(problem.items)))
        if standing is None and self.BEGINS_WITH_BURN_IN:
            known = self.floors(problem)
            if known is None:
                draft = explore(problem, LARGER * FIRST_LOOK * problem.span.rank)
                return replace(draft, memo={"kind": "explore", "look": 0, "alive": everything})
            draft, budget = burn_in(problem, known, level(self.delta, 0))
            memo = {"kind": "burn-in", "look": 0, "alive": everything, "budget": asdict(budget)}
            return replace(draft, memo=memo)
        look = 1 if standing is None else int(state.last.plan.memo["look"]) + 1
        alive = everything if standing is None else standing.alive.tolist()
        if look == 1:
            asked, weights = self.weights(state)
            first = self._first_look(state, asked, weights)
        else:
            before = state.last.plan.memo
            asked, weights, first = np.array(before["asked"]), np.array(before["weights"]), before["first"]
        upto = rounded_up(weights, first * 2.0 ** (look - 1))
        done = np.zeros_like(upto) if look == 1 else rounded_up(weights, first * 2.0 ** (look - 2))
        new = upto - done > 0
        memo = {
            "kind": "look",
            "look": look,
            "alive": alive,
            "asked": asked.tolist(),
            "weights": weights.tolist(),
            "first": first,
            "budget": asdict(self._budget(problem, asked, look)),
        }
        return Draft(asked[new], (upto - done)[new], memo)

    def gaps(self, state: Stages, best: int) -> tuple[Floats, Floats]:
        """Intervals by the last look."""
        points = state.problem.points
        return gap_intervals(points[best] - points, self._estimate(state))

    def _first_look(self, state: Stages, asked: Integers, weights: Floats) -> float:
        """Questions from which on the theorem applies; where nothing is known, a guess that doubling corrects."""
        problem = state.problem
        if self.floors(problem) is None:
            return float(max(len(asked), LARGER * FIRST_LOOK * problem.span.rank))
        floors = self._floors(state)
        budget = self._budget(problem, asked, 1)
        limit = COMFORT * largest_xi(span_of(problem.rows[asked]).rank, budget)
        needed = longest_asked(problem.rows[asked], weights, floors[asked]) / limit**2
        return needed if math.isfinite(needed) else float(len(asked))

    def _budget(self, problem: Problem, asked: Integers, look: int) -> Budget:
        rank = span_of(problem.rows[asked]).rank
        return best_budget(
            delta=level(self.delta, look),
            rank=rank,
            xi=TYPICAL_XI / math.sqrt(rank),
            asked_lines=lines(problem.rows[asked]),
            query_lines=len(problem.items) - 1,
        )

    def _floors(self, state: Stages) -> Floats:
        """Where a look starts: prior knowledge, raised by a burn-in; without any, what the anytime sequence proves."""
        problem, known = state.problem, self.floors(state.problem)
        if known is None:
            return floors_within(explored(problem, state.filed, level(self.delta, 0)), problem.rows)
        if not self.BEGINS_WITH_BURN_IN:
            return known
        proved = self._certified(state, "burn-in", known)
        return known if proved is None else proved.floors

    def _estimate(self, state: Stages) -> Estimate | None:
        """What the pooled answers of all looks prove; of the burn-in before the first."""
        kind = state.last.plan.memo["kind"]
        if kind == "explore":
            return None
        known = self.floors(state.problem) if kind == "burn-in" else self._floors(state)
        assert known is not None  # without knowledge there is no burn-in
        proved = self._certified(state, kind, known)
        return None if proved is None else proved.estimate

    def _certified(self, state: Stages, kind: str, floors: Floats) -> Certified | None:
        """What the pooled answers of all stages of this kind prove."""
        filed = tuple(each for each in state.filed if each.plan.memo["kind"] == kind)
        return _certified(state.problem, filed, tuple(floors.tolist()), self.SHARPENS)


@lru_cache(maxsize=64)  # a stage is looked at two or three times: verdict, plan, gaps
def _certified(
    problem: Problem, filed: tuple[Filed, ...], floors: tuple[float, ...], sharpen: bool
) -> Certified | None:
    pulls, wins = Stages(problem, filed).counts()
    asked = np.flatnonzero(pulls)
    budget = Budget(**filed[-1].plan.memo["budget"])
    return certify(problem.rows, asked, pulls[asked], wins[asked], np.array(floors), budget, sharpen=sharpen)


@dataclass(frozen=True, kw_only=True)
class Passive(Static, TwoForms):
    """A burn-in, then the static design that tells all pairs of items apart best, with looks at doubling numbers.

    The baseline of Jun et al. 2021, section 4.2, made valid: the burn-in's answers choose the design and are not
    pooled, the looks share delta. constants="printed" is the paper's form, which pools everything: heuristic.
    """

    NAME = "passive"
    PRINTED_GUARANTEE = Guarantee.HEURISTIC
    PRINTED_STATEMENT = "Jun et al. 2021, section 4.2: the passive baseline as described there; no proof."
    BEGINS_WITH_BURN_IN = True

    def weights(self, state: Stages) -> tuple[Integers, Floats]:
        """The best design for all pairs at the variances that the burn-in found, a little evened out."""
        rows = state.problem.rows
        theta, _ = pooled(state)
        seen = np.maximum(self._floors(state), variance(rows @ theta))
        design = pairs_optimal(Rows(rows, factors=np.sqrt(seen)), state.problem.points)
        even = np.full(len(design.weights), 1 / len(design.weights))
        return design.support, (1 - EVEN_SHARE) * design.weights + EVEN_SHARE * even

    def standing(self, state: Stages) -> Standing:
        """See `Static`, or the paper's rule."""
        return printed.standing(self, state) if self.is_printed else super().standing(state)

    def draft(self, state: Stages, standing: Standing | None) -> Draft:
        """See `Static`, or the paper's rounds of 2^k."""
        return printed.draft(self, state, standing) if self.is_printed else super().draft(state, standing)

    def gaps(self, state: Stages, best: int) -> tuple[Floats, Floats]:
        """See `Static`, or by the printed widths."""
        return printed.gaps(self, state, best) if self.is_printed else super().gaps(state, best)


@dataclass(frozen=True, kw_only=True)
class GOptimal(Static):
    """The G-optimal design and the bound H(θ*) ≥ κ₀·A, until all rivals are excluded: O(d/(κ₀·gap²)) questions.

    The naive improvement on Kazerouni and Wein in Jun et al. 2021, section 4.1. Needs kappa or norm_bound.
    """

    NAME = "g-optimal"
    NEEDS_KNOWLEDGE = True
    SHARPENS = False

    def weights(self, state: Stages) -> tuple[Integers, Floats]:
        """The G-optimal design of X."""
        design = g_optimal(state.problem.rows)
        return design.support, design.weights


@dataclass(frozen=True, kw_only=True)
class Uniform(Static):
    """Every measurement vector equally often, with looks at doubling numbers; needs nothing but delta."""

    NAME = "uniform"

    def weights(self, state: Stages) -> tuple[Integers, Floats]:
        """One share each."""
        useful = np.flatnonzero(np.any(state.problem.rows != 0, axis=1))
        return useful, np.full(len(useful), 1 / len(useful))
