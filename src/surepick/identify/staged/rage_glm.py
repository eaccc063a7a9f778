"""RAGE-GLM (Jun, Jain, Mason and Nassif 2021, Algorithm 1), corrected. As printed: `baselines.printed_forms`.

Lines of Algorithm 1, counted with its line 1, "initialize", and where they are:

     2      BurnIn (Algorithm 2)                        `burn_in`, or `explore` where nothing is known of θ*
     4      δ_k, what round k may spend                 `stage_bounds.level`
     5, 6   f(λ), and the design λ_k that minimises it  `_adaptive` or `_halving`, then `_designs`
     7, 8   its size n_k, rounded to whole questions    `RageGlm.draft`
     9      ask: the session's or the simulation's work
    10      the estimate, from the round's answers      `RageGlm.estimate`
    11, 12  the leader, and who goes                    `RageGlm.eliminate`

What differs from print, and why it is valid: docs/identify.md, "Rounds with floors" and Theorem 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick.confidence import ConfidenceSet
from surepick.confidence.theorem import Budget, largest_xi
from surepick.design import Pairs, Rows, g_optimal, max_optimal, xy_optimal
from surepick.glm import Tally, variance
from surepick.guarantee import Guarantee
from surepick.identify.policy import ENOUGH, StageRecord
from surepick.identify.problem import Problem
from surepick.identify.staged.base import Draft, Elimination, StageMemo, Stages, WithPriorBounds
from surepick.identify.staged.elimination import exclude, with_gaps
from surepick.identify.staged.stage_bounds import (
    StageEstimate,
    best_budget,
    count_lines,
    least_variance,
    level,
    longest_asked,
    planned_radii,
    refine,
    rounded_up,
    smallest_stage,
    stage_bounds,
)
from surepick.linalg import factor, gram_matrix, span_of

MARGIN = 1.5
"""Adaptive rounds leave room for an estimate that is this many standard errors low."""

GROWTH = 10.0
"""An adaptive round asks at most this many times what was asked before it: the gap it aims at is only estimated."""

EXPLORE_ABOVE = 5000
"""Questions a dimension beyond which a burn-in by prior knowledge costs more than finding out without."""

FIRST_LOOK = 12
"""Questions a dimension in the first stage of a search that knows nothing of θ*."""

BURN_IN_XI, ROUND_XI = 0.2, 0.1
"""About the ξ of a burn-in and of a round, times √d, at which the split of delta is chosen."""

NEARLY = 1.5
"""A round goes on with its design if that needs at most this many times the questions of the best design by now."""

XI_FRACTIONS = (0.25, 0.5, 0.8)
"""Values of ξ tried for a round, as fractions of the largest that the theorem admits."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundMemo(StageMemo):
    """What a round must remember: which items were alive, what was known of the variances, how delta is spent."""

    kind: Literal["burn-in", "explore", "round"]
    round: int
    """k; the burn-in is round 0."""
    alive: Integers
    floors: Floats | None
    budget: Budget | None
    """None for exploring, which is paid for by the anytime sequence."""
    look: int | None = None
    """j, where the answers of this stage are pooled with those of the round's earlier looks; None for no pooling."""


@dataclass(frozen=True, kw_only=True)
class RageGlm(WithPriorBounds):
    """Rounds of optimal design and elimination; finds the best item with probability 1 − delta.

    Needs a lower bound `kappa` of s(xᵀθ*) over all measurement vectors, or `norm_bound` ≥ ‖θ*‖, or neither: then, or if
    they are so loose that it is cheaper, the anytime sequence finds such bounds for a tenth of delta. Rounds target
    half the last accuracy (targets="halving", as in the paper) or the gap as estimated so far ("adaptive"); both have
    the same guarantee.
    """

    targets: Literal["adaptive", "halving"] = "adaptive"

    NAME = "rage-glm"
    EXPLORES = True
    GUARANTEE = Guarantee.PROVED
    STATEMENT = "The best item is excluded with probability at most delta (docs/identify.md, Theorem 1)."

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.one_of("targets", self.targets, ("adaptive", "halving"))

    def draft(self, state: Stages) -> Draft:
        """Lines 2 to 8: BurnIn, then the questions of the next round."""
        problem, before = state.problem, state.elimination
        if before is None:
            return self._first_stage(problem)  # line 2
        assert before.floors is not None  # `eliminate` sees to it
        floors, alive = before.floors, before.alive
        memo = RoundMemo.from_json(state.last.plan.memo)
        k = memo.round + 1
        delta_k = level(self.delta, k)  # line 4

        # Lines 5 and 6. Any function of the past may choose the design, since the round's answers are fresh: the proof
        # of Theorem 1 conditions on the past. So f may be made for an estimated gap, and several designs compared.
        if self.targets == "halving":
            goal = _halving(state, alive, floors, 2.0**-k)
        else:
            goal = _adaptive(state, alive, before.leader, floors, self.epsilon)
            delta_k *= look_share(0)
        support, designs = _designs(problem.rows, floors, delta_k, len(alive) - 1, goal)

        # Line 7: the cheapest. Infinite where some floor is zero, so that the theorem may never apply.
        need, weights = min(((goal.need(support, design), design) for design in designs), key=lambda pair: pair[0])
        questions = max(min(need, goal.most), goal.least, support.provable(weights))
        longer = self._continued(state, goal, NEARLY * need)
        if longer is not None:
            return longer
        exploring = memo.kind == "explore"
        if not math.isfinite(questions) or (exploring and _worth_knowing_more(state, support, weights, questions)):
            # The anytime sequence is paid for once. A burn-in has spent δ_0, so after one it takes a round's share.
            began = RoundMemo.from_json(state.records[0].plan.memo)
            spent = memo.round if began.kind == "explore" else k
            again = RoundMemo(kind="explore", round=spent, alive=alive, floors=floors, budget=None)
            return Draft(*explore(problem, state.asked), again)

        kept = weights > 0
        pulls = rounded_up(weights[kept], questions)  # line 8
        look = None if self.targets == "halving" else 0
        fresh = RoundMemo(kind="round", round=k, alive=alive, floors=floors, budget=support.budget, look=look)
        return Draft(support.asked[kept], pulls, fresh)

    def eliminate(self, state: Stages) -> Elimination:
        """Lines 10 to 12: the estimate of the round, and who goes by it."""
        memo = RoundMemo.from_json(state.last.plan.memo)
        estimate, floors = self.estimate(state, memo)  # line 10, the one fit of the round
        said = exclude(state, memo.alive, estimate)  # lines 11 and 12, by widths as in the supplement
        return replace(with_gaps(state, said, state.eliminations), floors=floors)

    def estimate(self, state: Stages, memo: RoundMemo) -> tuple[StageEstimate | None, Floats]:
        """What the last stage says of θ*, None for nothing; and the floors known after it."""
        rows, last = state.problem.rows, state.last
        known = np.zeros(len(rows)) if memo.floors is None else memo.floors
        if memo.budget is None:  # exploring: all such stages share the level of the first (docs/identify.md)
            memos = (RoundMemo.from_json(record.plan.memo) for record in state.records)
            first = next(earlier.round for earlier in memos if earlier.kind == "explore")
            ellipsoid = explored(state, level(self.delta, first))
            return ellipsoid, np.maximum(known, floors_within(ellipsoid, rows))
        # Only the round's own answers: those before it chose its design, and the theorem is for fixed designs.
        looks = _looks(state)
        pulls, wins = (sum(getattr(one, name) for one in looks) for name in ("pulls", "wins"))
        bounds = stage_bounds(rows, last.plan.measurements, pulls, wins, known, memo.budget)
        return (None, known) if bounds is None else (bounds.estimate, bounds.floors)

    def _continued(self, state: Stages, goal: "_Goal", most: float) -> Draft | None:
        """More of the last round's design, to be pooled with what it has; None if it would need more than this in all.

        Look j of a round has 2^j times the questions of its first, and its own share of the round's delta: all looks
        are fixed when the round begins, so which of them are taken may depend on anything (docs/identify.md,
        Theorem 1).
        """
        memo, said = RoundMemo.from_json(state.last.plan.memo), state.elimination
        if memo.look is None or said is None or said.floors is None:
            return None
        first, floors = _looks(state)[0].plan, said.floors
        # The items at the round's beginning: who is alive now depends on answers that this look pools.
        lines = len(RoundMemo.from_json(first.memo).alive) - 1

        def support_at(look: int) -> _Support:
            delta = level(self.delta, memo.round) * look_share(look)
            return _Support.of(state.problem.rows, first.measurements, floors, delta, lines)

        look = memo.look + 1
        need = goal.need(support_at(look), first.pulls / first.total)
        if not math.isfinite(need) or need > most:
            return None
        # Looks far below what seems to be needed are left out; an eighth may be enough, the gap being an estimate.
        while first.total * 2 ** (look + 1) <= min(need / 8, goal.most):
            look += 1
        further = replace(memo, look=look, alive=said.alive, floors=floors, budget=support_at(look).budget)
        return Draft(first.measurements, first.pulls * (2**look - 2**memo.look), further)

    def _first_stage(self, problem: Problem) -> Draft:
        """BurnIn by what is known of θ*, unless finding out without it is cheaper."""
        everything, floors = np.arange(len(problem.items)), self.floors(problem)
        if floors is not None:
            asked, pulls, budget = burn_in(problem, floors, level(self.delta, 0))
            if pulls.sum() <= EXPLORE_ABOVE * problem.span.rank:
                known = RoundMemo(kind="burn-in", round=0, alive=everything, floors=floors, budget=budget)
                return Draft(asked, pulls, known)
        unknown = RoundMemo(kind="explore", round=0, alive=everything, floors=floors, budget=None)
        return Draft(*explore(problem, 0), unknown)


def burn_in(problem: Problem, floors: Floats, delta: float) -> tuple[Integers, Integers, Budget]:
    """Algorithm 2: the fewest questions for which the corrected theorem applies, spread evenly over all of X.

    The weights minimise max_x ‖x‖² in the inverse of Σ λ·floor·xxᵀ ≤ H(λ, θ*); with one floor for all this is the
    G-optimal design, of value rank/floor. Returns the measurements, how often to ask each, and how delta is spent.
    """
    rows, rank = problem.rows, problem.span.rank
    design = xy_optimal(Rows(rows, factors=np.sqrt(floors)), rows)
    asked = rows[design.support]
    budget = best_budget(
        delta=delta,
        rank=rank,
        xi=BURN_IN_XI / math.sqrt(rank),
        asked_lines=count_lines(asked),
        # The best item is unknown but fixed, so its lines to the others are |Z| − 1, not all pairs (docs/identify.md).
        query_lines=len(problem.items) - 1,
    )
    longest = longest_asked(asked, design.weights, floors[design.support])
    questions = smallest_stage(rank, budget, longest=longest)
    return design.support, rounded_up(design.weights, questions), budget


def explore(problem: Problem, already: int) -> tuple[Integers, Integers]:
    """The next stage of a search that knows nothing of θ*: the G-optimal design, as much again as was asked so far."""
    design = g_optimal(problem.rows)
    return design.support, rounded_up(design.weights, max(already, FIRST_LOOK * problem.span.rank))


def explored(state: Stages, delta: float) -> StageEstimate | None:
    """An ellipsoid around all θ that the answers so far do not refute, by the anytime sequence; None without any.

    It holds at all times at once and for every direction (docs/theory.md, 5), so evaluating it after every stage costs
    no further delta, and the answers of all stages may enter, however they were chosen.
    """
    rows = state.problem.rows
    answered = [record for record in state.records if record.pulls.any()]
    if not answered:
        return None
    batches = [Tally(rows[one.plan.measurements], one.pulls, one.wins) for one in answered]
    # Drawn and logged before the first answer, so that a replay and every evaluation split the same stages alike.
    # A first plan of one's own may have none.
    known = ConfidenceSet.of(batches, order_seed=int(state.records[0].plan.memo.get("order_seed", 0)))
    shape, radius = known.ellipsoid(delta=delta)
    if shape is None:
        return None
    return StageEstimate(known.span.embed(known.least.point), known.span, shape, radius)


def floors_within(estimate: StageEstimate | None, rows: Floats) -> Floats:
    """The least variance of each vector over an ellipsoid; zero where it does not reach."""
    if estimate is None:
        return np.zeros(len(rows))
    error = np.linalg.norm(estimate.white(rows), axis=1)
    return np.where(estimate.span.contains(rows), least_variance(rows @ estimate.theta, error), 0.0)


def look_share(look: int) -> float:
    """The share of a round's delta that look j = 0, 1, … may spend: 1/((j+1)(j+2)), which sum to one."""
    return 1 / ((look + 1) * (look + 2))


def _looks(state: Stages) -> list[StageRecord]:
    """The stages of the last round so far: all its looks, or the one stage that is a round by itself."""
    memo = RoundMemo.from_json(state.last.plan.memo)
    if memo.look is None:
        return [state.last]
    memos = ((record, RoundMemo.from_json(record.plan.memo)) for record in state.records)
    return [record for record, one in memos if one.kind == "round" and one.round == memo.round]


@dataclass(frozen=True, eq=False)
class _Support:
    """The vectors that a round may ask, what is known of them, and how its delta is spent."""

    asked: Integers
    vectors: Floats
    floors: Floats
    rank: int
    budget: Budget
    largest_xi: float

    @classmethod
    def of(cls, rows: Floats, asked: Integers, floors: Floats, delta: float, query_lines: int) -> "_Support":
        """These rows, with delta split as is best at about the ξ of a round."""
        vectors, rank = rows[asked], span_of(rows[asked]).rank
        budget = best_budget(
            delta=delta,
            rank=rank,
            xi=ROUND_XI / math.sqrt(rank),
            asked_lines=count_lines(vectors),
            query_lines=query_lines,
        )
        return cls(asked, vectors, floors[asked], rank, budget, largest_xi(rank, budget))

    def provable(self, weights: Floats) -> float:
        """Questions from which on the theorem applies, whatever θ* is."""
        # At the largest ξ itself the theorem applies but proves next to nothing; a round may go closer to it than
        # a burn-in (COMFORT), since it is stretched to what its own goal needs.
        return longest_asked(self.vectors, weights, self.floors) / (0.95 * self.largest_xi) ** 2


@dataclass(frozen=True, eq=False)
class _Goal:
    """What a round is for: the f of line 5, and the n of line 7, with its limits."""

    family: Pairs | Rows
    """Directions to be known: differences of items."""
    variances: Floats
    """s at which H(λ) is computed, for every row of X."""
    target: float
    """Width wanted for the directions of the family."""
    need: Callable[[_Support, Floats], float]
    """Questions after which a design reaches it."""
    most: float = math.inf
    least: float = 0.0


def _halving(state: Stages, alive: Integers, floors: Floats, target: float) -> _Goal:
    """Every difference of items alive is certain to be known to the target, 2^{−k}: the rounds of the paper."""
    pairs = Pairs(state.problem.points[alive])

    def need(support: _Support, weights: Floats) -> float:
        return smallest_stage(
            support.rank,
            support.budget,
            longest=longest_asked(support.vectors, weights, support.floors),
            value=_largest(pairs, support.vectors, weights, support.floors),
            target=target,
        )

    # The size is proved with floors, so the design is made at them too, unless some vector has none yet.
    known = bool(np.all(floors > 0))
    return _Goal(pairs, floors if known else _expected(state, floors), target, need)


def _adaptive(state: Stages, alive: Integers, leader: int, floors: Floats, epsilon: float) -> _Goal:
    """The leader would be told from every rival if gaps and variances were as estimated so far."""
    points = state.problem.points
    theta, information = state.guess
    rivals = alive[alive != leader]
    y = points[leader] - points[rivals]
    shape = factor(information)
    assert shape is not None  # the ridge makes it so
    # A gap that is estimated below its standard error is not known: then the error itself is aimed at.
    gaps = np.maximum(y @ theta + epsilon, shape.inverse_norms(y))
    family = Rows(points[rivals], reference=points[leader], factors=1 / gaps, name="items")
    memo = RoundMemo.from_json(state.last.plan.memo)
    # A round that excluded nothing was too small: twice as many then, so that ties end with the budget.
    stuck = memo.kind == "round" and len(memo.alive) == len(alive)
    least = 2.0 * sum(record.plan.total for record in _looks(state)) if stuck else 0.0

    def need(support: _Support, weights: Floats) -> float:
        return _enough_by_guess(support, weights, support.vectors @ theta, family)

    return _Goal(family, _expected(state, floors), 1.0, need, GROWTH * state.asked, least)


def _designs(
    rows: Floats, floors: Floats, delta: float, query_lines: int, goal: _Goal
) -> tuple[_Support, list[Floats]]:
    """Lines 5 and 6: the best design for the goal's directions, then on its support for ξ too, in a few trades.

    The paper's f has γ(d)·max ‖x‖² over all of X. ξ concerns only what is asked, and d is the rank of what is asked,
    so a round that needs few vectors is small in every respect. All designs are weights on the one support.
    """
    wanted = max_optimal(Rows(rows, factors=np.sqrt(goal.variances)), [goal.family])
    support = _Support.of(rows, wanted.support, floors, delta, query_lines)
    vectors, nats = support.vectors, support.budget.direction_nats
    designs = [wanted.weights]
    for fraction in XI_FRACTIONS:
        # n must satisfy ξ² = ‖x‖²/n ≤ (fraction·ξ_max)² and, about, 2L·‖y‖²/n ≤ target². Dividing both criteria by
        # that of the items leaves the optimum where it is.
        scale = (goal.target / (math.sqrt(2 * nats) * fraction * support.largest_xi)) ** 2
        both = [Rows(vectors, scale=scale), goal.family]
        designs.append(max_optimal(Rows(vectors, factors=np.sqrt(goal.variances[support.asked])), both).dense())
    return support, designs


def _enough_by_guess(support: _Support, weights: Floats, logits: Floats, family: Pairs | Rows) -> float:
    """Questions after which the widths, with a margin, are one or less if the logits are as guessed."""
    kept = weights > 0
    span = span_of(support.vectors[kept])
    inside = span.coordinates(support.vectors[kept])
    back = span.coordinates(np.eye(support.vectors.shape[1]))

    def enough(questions: float) -> bool:
        # The same refinement that will evaluate the answers, at the guess in place of their estimate.
        reached = refine(
            inside,
            questions * weights[kept],
            support.floors[kept],
            logits[kept],
            support.budget,
            lambda xi: planned_radii(xi, span.rank, support.budget),
        )
        if reached is None:
            return False
        longest = family.maximum(reached.shape.whitened(back), 0.0)[0]
        return (reached.radii.query + MARGIN) * math.sqrt(longest) <= 1

    high = support.provable(weights)
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


def _expected(state: Stages, floors: Floats) -> Floats:
    """Variances at the guess of θ*, but no less than what is certain."""
    return np.maximum(floors, variance(state.problem.rows @ state.guess[0]))


def _largest(family: Pairs | Rows, vectors: Floats, weights: Floats, floors: Floats) -> float:
    """The largest ‖y‖² of the family in the inverse of Σ weight·floor·xxᵀ; infinite where that is singular."""
    asked = weights > 0
    span = span_of(vectors[asked])
    shape = factor(gram_matrix(span.coordinates(vectors[asked]), (weights * floors)[asked]))
    if shape is None:
        return math.inf
    return family.maximum(shape.whitened(span.coordinates(np.eye(vectors.shape[1]))), 0.0)[0]


def _worth_knowing_more(state: Stages, support: _Support, weights: Floats, questions: float) -> bool:
    """Whether the round would be large because variances are known badly, rather than because it must be."""
    if questions <= state.asked:
        return False
    kept = weights > 0
    expected = variance(state.problem.rows[support.asked[kept]] @ state.guess[0])
    # A floor within a factor e of what is expected costs a round less than another doubling of exploration.
    return bool(np.any(support.floors[kept] < math.exp(-1) * expected))
