"""RAGE-GLM (Jun, Jain, Mason and Nassif 2021, Algorithm 1), in a corrected form and with the paper's constants.

Round k: the design that tells the surviving items apart best, as far as the variances are known; fresh answers; their
maximum-likelihood estimate; every item goes that another beats by more than the width. See docs/identify.md.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick.baselines import rage_glm_printed as printed
from surepick.baselines.printed_forms import TwoForms
from surepick.confidence.theorem import Budget, largest_xi
from surepick.design import Pairs, Rows, max_optimal
from surepick.glm import variance
from surepick.guarantee import Guarantee
from surepick.identify.problem import Problem
from surepick.identify.staged.base import ENOUGH, Draft, Stages, Standing
from surepick.identify.staged.burn_in import (
    burn_in,
    explore,
    explored,
    floors_within,
    level,
    longest_asked,
    proved_by,
    rounded_up,
)
from surepick.identify.staged.elimination import exclude, gaps_stage_by_stage, pooled
from surepick.identify.staged.stage_bounds import Estimate, best_budget, lines, planned_radii, refine, smallest_stage
from surepick.linalg import factor, gram_matrix, span_of

MARGIN = 1.5
"""Adaptive rounds leave room for an estimate that is this many standard errors low."""

GROWTH = 10.0
"""An adaptive round asks at most this many times what was asked before it: the gap it aims at is only estimated."""

EXPLORE_ABOVE = 5000
"""Questions a dimension beyond which a burn-in by prior knowledge costs more than finding out without."""

TYPICAL_XI = 0.1
"""About the ξ of a round times √d, at which the split of delta is chosen."""

XI_FRACTIONS = (0.25, 0.5, 0.8)
"""Values of ξ tried for a round, as fractions of the largest that the theorem admits."""


@dataclass(frozen=True, kw_only=True)
class RageGlm(TwoForms):
    """Rounds of optimal design and elimination; finds the best item with probability 1 − delta.

    Needs a lower bound `kappa` of s(xᵀθ*) over all measurement vectors, or `norm_bound` ≥ ‖θ*‖, or neither: then, or if
    they are so loose that it is cheaper, the anytime sequence finds such bounds for a tenth of delta. Rounds target
    half the last accuracy (targets="halving", as in the paper) or the gap as estimated so far ("adaptive"); both have
    the same guarantee. constants="printed" is the paper's algorithm to the letter, with the elimination rule of its
    supplement ("width") or of its main text ("gap") and the rounding parameter `rounding`; its error probability may
    reach 4.29·delta.
    """

    targets: Literal["adaptive", "halving"] = "adaptive"
    elimination: Literal["width", "gap"] = "width"

    NAME = "rage-glm"
    GUARANTEE = Guarantee.PROVED
    STATEMENT = "The best item is excluded with probability at most delta (docs/identify.md, Theorem 1)."
    PRINTED_GUARANTEE = Guarantee.AS_PRINTED
    PRINTED_STATEMENT = (
        "Jun et al. 2021, Theorem 2, as printed; the proof allows an error of 4.29 delta (docs/identify.md)."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.one_of("targets", self.targets, ("adaptive", "halving"))
        validate.one_of("elimination", self.elimination, ("width", "gap"))

    def standing(self, state: Stages) -> Standing:
        """Exclude every item that another alive beats by more than the width."""
        if self.is_printed:
            return printed.standing(self, state, self.elimination)
        return exclude(state, self._estimate(state))

    def draft(self, state: Stages, standing: Standing | None) -> Draft:
        """The burn-in, then round after round."""
        if self.is_printed:
            return printed.draft(self, state, standing)
        problem = state.problem
        if standing is None:
            return self._first(problem)
        number, floors = self._round_and_floors(state)
        questions = _Round(problem, standing.alive, floors, level(self.delta, number))
        if self.targets == "halving":
            choice = questions.halving(state, 2.0**-number)
        else:
            choice = questions.adaptive(state, standing.leader, self.epsilon)
        exploring = state.last.plan.memo["kind"] == "explore"
        if not math.isfinite(choice.questions) or (exploring and _more_worth_knowing(state, choice, floors)):
            draft = explore(problem, state.asked)
            # The anytime sequence is paid for once. A burn-in has spent δ_0, so after one it takes a round's share.
            spent = number - 1 if state.filed[0].plan.memo["kind"] == "explore" else number
            return Draft(draft.measurements, draft.pulls, _memo("explore", spent, standing.alive, floors, None))
        pulls = rounded_up(choice.weights, choice.questions)
        return Draft(choice.asked, pulls, _memo("round", number, standing.alive, floors, choice.budget))

    def gaps(self, state: Stages, best: int) -> tuple[Floats, Floats]:
        """Intervals by the last round in which the item was alive."""
        if self.is_printed:
            return printed.gaps(self, state, best)
        upto = (Stages(state.problem, state.filed[: number + 1]) for number in range(len(state.filed)))
        return gaps_stage_by_stage(state, best, ((each.last, self._estimate(each)) for each in upto))

    def _first(self, problem: Problem) -> Draft:
        """BurnIn by what is known of θ*, unless finding out without it is cheaper."""
        everything = np.arange(len(problem.items))
        floors = self.floors(problem)
        if floors is not None:
            draft, budget = burn_in(problem, floors, level(self.delta, 0))
            if draft.total <= EXPLORE_ABOVE * problem.span.rank:
                return Draft(draft.measurements, draft.pulls, _memo("burn-in", 0, everything, floors, budget))
        draft = explore(problem, 0)
        return Draft(draft.measurements, draft.pulls, _memo("explore", 0, everything, floors, None))

    def _round_and_floors(self, state: Stages) -> tuple[int, Floats]:
        """The number of the next round, and the floors known by then."""
        memo = state.last.plan.memo
        number, rows = int(memo["round"]) + 1, state.problem.rows
        floors = np.zeros(len(rows)) if memo["floors"] is None else np.array(memo["floors"])
        if memo["kind"] == "explore":
            return number, np.maximum(floors, floors_within(self._estimate(state), rows))
        proved = proved_by(state.problem, state.last)
        return number, floors if proved is None else proved.floors

    def _estimate(self, state: Stages) -> Estimate | None:
        """What the last stage proves."""
        if state.last.plan.memo["kind"] == "explore":
            first = next(each.plan.memo for each in state.filed if each.plan.memo["kind"] == "explore")
            return explored(state.problem, state.filed, level(self.delta, int(first["round"])))
        proved = proved_by(state.problem, state.last)
        return None if proved is None else proved.estimate


@dataclass(frozen=True, eq=False)
class _Choice:
    """Questions of a round: weights on some measurement vectors, how many, and how delta is spent."""

    asked: Integers
    weights: Floats
    questions: float
    budget: Budget


@dataclass(frozen=True, eq=False)
class _Round:
    """The choice of one round's questions: any function of the past will do, since its answers are fresh."""

    problem: Problem
    alive: Integers
    floors: Floats
    delta: float

    def halving(self, state: Stages, target: float) -> _Choice:
        """The fewest questions after which every difference of items alive is certain to be known to the target."""
        pairs = Pairs(self.problem.points[self.alive])

        def size(setting: _Setting, weights: Floats) -> float:
            return smallest_stage(
                setting.rank,
                setting.budget,
                longest=longest_asked(setting.asked, weights, setting.floors),
                value=_largest(pairs, setting.asked, weights, setting.floors),
                target=target,
            )

        known = bool(np.all(self.floors > 0))
        return self._choose(pairs, self.floors if known else self._expected(pooled(state)[0]), target, size)

    def adaptive(self, state: Stages, leader: int, epsilon: float) -> _Choice:
        """As many as would tell the leader from every rival if gaps and variances were as estimated so far."""
        points = self.problem.points
        theta, information = pooled(state)
        rivals = self.alive[self.alive != leader]
        away = points[leader] - points[rivals]
        shape = factor(information)
        assert shape is not None  # the ridge makes it so
        gaps = np.maximum(away @ theta + epsilon, shape.inverse_norms(away))
        family = Rows(points[rivals], reference=points[leader], factors=1 / gaps, name="items")
        memo, last = state.last.plan.memo, state.last.plan.total
        # A round that excluded nothing was too small: twice as many then, so that ties end with the budget.
        least = 2.0 * last if memo["kind"] == "round" and len(memo["alive"]) == len(self.alive) else 0.0

        def size(setting: _Setting, weights: Floats) -> float:
            wanted = setting.enough_by_guess(weights, setting.asked @ theta, family)
            return max(min(wanted, GROWTH * state.asked), least, setting.provable(weights))

        return self._choose(family, self._expected(theta), 1.0, size)

    def _expected(self, theta: Floats) -> Floats:
        """Variances at an estimate, but no less than what is certain."""
        return np.maximum(self.floors, variance(self.problem.rows @ theta))

    def _choose(
        self,
        family: Pairs | Rows,
        variances: Floats,
        target: float,
        size: Callable[["_Setting", Floats], float],
    ) -> _Choice:
        """Weights for the directions of interest, then on their support for ξ too: the cheapest of a few trades.

        ξ concerns only what is asked, and d is the rank of what is asked, so a round that needs few vectors is
        small in every respect.
        """
        rows = self.problem.rows
        wanted = max_optimal(Rows(rows, factors=np.sqrt(variances)), [family])
        support = wanted.support
        asked, rank = rows[support], span_of(rows[support]).rank
        budget = best_budget(
            delta=self.delta,
            rank=rank,
            xi=TYPICAL_XI / math.sqrt(rank),
            asked_lines=lines(asked),
            query_lines=len(self.alive) - 1,
        )
        setting = _Setting(asked, self.floors[support], rank, budget, largest_xi(rank, budget))
        options = [wanted.weights]
        for fraction in XI_FRACTIONS:
            # Dividing both criteria by that of the items leaves the optimum where it is.
            scale = (target / (math.sqrt(2 * budget.direction_nats) * fraction * setting.largest_xi)) ** 2
            both = max_optimal(Rows(asked, factors=np.sqrt(variances[support])), [Rows(asked, scale=scale), family])
            options.append(both.dense())
        questions, weights = min(((size(setting, each), each) for each in options), key=lambda pair: pair[0])
        kept = weights > 0
        return _Choice(support[kept], weights[kept], questions, budget)


@dataclass(frozen=True, eq=False)
class _Setting:
    """The vectors that a round may ask, what is known of them, and how its delta is spent."""

    asked: Floats
    floors: Floats
    rank: int
    budget: Budget
    largest_xi: float

    def provable(self, weights: Floats) -> float:
        """Questions from which on the theorem applies, whatever θ* is."""
        # At the largest ξ itself the theorem applies but proves next to nothing; a round may go closer to it than
        # a burn-in (COMFORT), since it is stretched to what its own goal needs.
        return longest_asked(self.asked, weights, self.floors) / (0.95 * self.largest_xi) ** 2

    def enough_by_guess(self, weights: Floats, logits: Floats, family: Pairs | Rows) -> float:
        """Questions after which the widths, with a margin, are one or less if the logits are as guessed."""
        kept = weights > 0
        span = span_of(self.asked[kept])
        inside = span.coordinates(self.asked[kept])
        back = span.coordinates(np.eye(self.asked.shape[1]))

        def enough(questions: float) -> bool:
            reached = refine(
                inside,
                questions * weights[kept],
                self.floors[kept],
                logits[kept],
                self.budget,
                lambda xi: planned_radii(xi, span.rank, self.budget),
            )
            if reached is None:
                return False
            longest = family.maximum(reached.shape.whitened(back), 0.0)[0]
            return (reached.radii.query + MARGIN) * math.sqrt(longest) <= 1

        high = self.provable(weights)
        if not math.isfinite(high) or enough(high):
            return high
        low = high
        while not enough(high):
            low, high = high, 2 * high
            if high > ENOUGH:
                return high
        while high / low > 1.05:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


def _largest(family: Pairs | Rows, vectors: Floats, weights: Floats, floors: Floats) -> float:
    """The largest ‖y‖² of the family in the inverse of Σ weight·floor·xxᵀ; infinite where that is singular."""
    asked = weights > 0
    span = span_of(vectors[asked])
    shape = factor(gram_matrix(span.coordinates(vectors[asked]), (weights * floors)[asked]))
    if shape is None:
        return math.inf
    return family.maximum(shape.whitened(span.coordinates(np.eye(vectors.shape[1]))), 0.0)[0]


def _more_worth_knowing(state: Stages, choice: _Choice, floors: Floats) -> bool:
    """Whether the round would be large because variances are known badly, rather than because it must be."""
    if choice.questions <= state.asked:
        return False
    expected = variance(state.problem.rows[choice.asked] @ pooled(state)[0])
    return bool(np.any(floors[choice.asked] < math.exp(-1) * expected))


def _memo(kind: str, number: int, alive: Integers, floors: Floats | None, budget: Budget | None) -> dict[str, Any]:
    """What a stage must remember: which items were alive, what was known of the variances, how delta is spent."""
    return {
        "kind": kind,
        "round": number,
        "alive": alive.tolist(),
        "floors": None if floors is None else floors.tolist(),
        "budget": None if budget is None else asdict(budget),
    }
