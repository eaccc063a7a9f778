"""What a best-arm policy is: a frozen configuration with pure functions of a state; and the record of its stages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick._cached import cached_property
from surepick.errors import InvalidInput, SurepickError
from surepick.glm import Tally
from surepick.guarantee import Guarantee
from surepick.identify.problem import Problem
from surepick.identify.sets import Orders, checked_order, decided_pairs
from surepick.identify.verdict import Status, Verdict


class CannotClose(SurepickError):
    """A stage lacks answers that the policy's guarantee needs."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A numbered stage: how often to ask each measurement vector.

    A simulation answers it with one binomial draw for each vector; a session hands it out one question at a time.
    """

    stage: int
    """Counted from 0."""
    measurements: Integers
    """Numbers of the problem's questions, each at most once."""
    pulls: Integers
    """How often each is to be asked, at least once."""
    memo: Mapping[str, Any] = field(default_factory=dict)
    """What the guarantee must remember of the moment of planning, as JSON values: all that `apply` needs."""

    @cached_property
    def total(self) -> int:
        """Number of questions."""
        return int(self.pulls.sum())

    def tally(self, problem: Problem, wins: ArrayLike, pulls: ArrayLike | None = None) -> Tally:
        """Answers to this stage, one row for each of its measurements; by default to all of its questions."""
        asked = self.pulls if pulls is None else pulls
        return Tally(problem.vectors(self.measurements), asked, wins)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "stage": self.stage,
            "measurements": self.measurements.tolist(),
            "pulls": self.pulls.tolist(),
            "memo": dict(self.memo),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Plan":
        """Read what `to_json` gave."""
        try:
            return cls(
                int(fields["stage"]),
                np.asarray(fields["measurements"], dtype=np.int64),
                np.asarray(fields["pulls"], dtype=np.int64),
                fields["memo"],  # read by the policy that wrote it: only that knows what is in it
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"This is not a stage written by surepick ({error}).") from None


@dataclass(frozen=True)
class Wait:
    """Nothing can be planned now: open questions are to be answered first, or nobody is left to ask."""

    reason: str
    exhausted: bool = False
    """Whether all that the next judge may be asked and that could decide has been asked: another judge is needed."""


State = TypeVar("State")


class Policy(Protocol[State]):
    """Which questions to ask, and when and what to conclude.

    Every method is pure: it changes neither the policy nor the state it is given, and the same arguments give the same
    result. `surepick.testing.PolicyContract` checks this and more for any class of this shape.
    """

    @property
    def name(self) -> str:
        """Kebab-case name, as on the command line."""

    @property
    def delta(self) -> float:
        """Probability of a wrong verdict that is accepted."""

    @property
    def guarantee(self) -> Guarantee:
        """What stands behind its verdicts."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the guarantee, in sentences."""

    def start(self, problem: Problem) -> State:
        """The state before the first question; refuses what cannot work, such as an impossible kappa."""

    def plan(self, state: State, rng: np.random.Generator) -> Plan | Wait | Verdict:
        """The next stage; or Wait for open stages; or the final verdict. Only `apply` makes a plan count."""

    def apply(self, state: State, plan: Plan) -> State:
        """The state after this stage was planned; a replay calls it with the plan as logged."""

    def update(self, state: State, stage: int, tally: Tally) -> State:
        """Take all answers that a stage has by now; they replace those of an earlier update.

        The rows of the tally are those of the plan, in its order. Stages already evaluated stay as they are.
        """

    def close(self, state: State, stage: int) -> State:
        """Take the answers a stage has as all it will get; raises CannotClose where the guarantee forbids it."""

    def verdict(self, state: State) -> Verdict:
        """What can be said now, on answered stages; status `open` where more questions are needed."""


def checked_answers(plan: Plan, tally: Tally) -> tuple[Integers, Integers]:
    """Pulls and wins of a (partial) tally of this plan, or a sentence why it is none."""
    if len(tally) != len(plan.pulls):
        raise InvalidInput(
            f"Stage {plan.stage} has {len(plan.pulls)} measurement vectors, the tally {len(tally)}; "
            "build it with plan.tally(problem, wins)."
        )
    # Guarantees are for designs fixed before their answers, so extra answers cannot be counted to a stage.
    over = np.flatnonzero(tally.pulls > plan.pulls)
    if over.size:
        row = over[0]
        raise InvalidInput(
            f"Stage {plan.stage} asks measurement {plan.measurements[row]} {plan.pulls[row]} times, the tally has "
            f"{tally.pulls[row]} answers to it; an answer belongs to the stage that asked it."
        )
    return tally.pulls, tally.wins


Partial = Sequence[Sequence[float]]
"""For each measurement of a stage the scores strictly between 0 and 1 of its answers (a tie is ½); empty for none."""


def checked_partial(plan: Plan, tally: Tally, partial: Partial) -> Partial:
    """Scores between 0 and 1 that fit the plan beside this tally, or a sentence why they do not."""
    if not any(len(scores) for scores in partial):
        return ()
    if len(partial) != len(plan.pulls) or not all(0 < score < 1 for scores in partial for score in scores):
        raise InvalidInput(
            f"Partial scores of stage {plan.stage} must be one list per measurement, {len(plan.pulls)} in all, of "
            "numbers between 0 and 1."
        )
    if np.any(tally.pulls + np.array([len(scores) for scores in partial]) > plan.pulls):
        raise InvalidInput(f"Stage {plan.stage} has more answers than it asked for; drop those of other stages.")
    return tuple(tuple(sorted(scores)) for scores in partial)


def checked_orders(plan: Plan, problem: Problem, orders: Orders) -> Orders:
    """Orders that fit the plan, or a sentence why they do not."""
    if not any(len(given) for given in orders):
        return ()
    if len(orders) != len(plan.pulls) or any(
        len(given) > asked for given, asked in zip(orders, plan.pulls, strict=True)
    ):
        raise InvalidInput(
            f"Orders of stage {plan.stage} must be one list per question, {len(plan.pulls)} in all, and no more than "
            "it asked for; drop those of other stages."
        )
    return tuple(tuple(checked_order(order, problem.show) for order in given) for given in orders)


TAKES_SETS = "winner"
"""The policy that asks questions about sets."""


def require_sets_allowed(problem: Problem, policy: Policy[Any]) -> None:
    """Refuse questions about sets for a policy that cannot ask them."""
    if problem.show > 2 and policy.name != TAKES_SETS:
        raise InvalidInput(
            f"Questions that show {problem.show} items are asked by the policy {TAKES_SETS}, not by {policy.name}; use "
            "Problem.from_pairs."
        )


def checked_limits(delta: float, epsilon: float, budget: int) -> None:
    """Refuse a delta, epsilon or budget that is out of range."""
    validate.probability("delta", delta)
    validate.nonnegative("epsilon", epsilon)
    validate.whole("budget", budget)


Missing = Literal["ignorable", "refuse"]
"""What a question without an answer means to a staged policy."""

ENOUGH = 10**12
"""Questions after which a search ends in any case: what they cannot tell apart is a tie for every purpose."""

LOGISTIC = (
    "Answers are independent given the questions of their stage, and an answer to x is 1 with probability "
    "1/(1+exp(-x'theta)) for one theta throughout."
)


@dataclass(frozen=True, eq=False)
class StageRecord:
    """A planned stage and the answers to it so far."""

    plan: Plan
    pulls: Integers
    """Answers to each measurement of the plan, in its order."""
    wins: Integers
    """How many of them are 1."""
    closed: bool = False
    """Whether no more answers are expected."""
    partial: Partial = ()
    """Scores of answers that are neither 1 nor 0; they are no part of `pulls` and `wins`."""
    orders: Orders = ()
    """Answers to questions about sets, which are no part of `pulls` and `wins` either."""

    @classmethod
    def unanswered(cls, plan: Plan) -> "StageRecord":
        """The record of a stage that was planned just now."""
        nothing = np.zeros(len(plan.pulls), dtype=np.int64)
        return cls(plan, nothing, nothing)

    @property
    def answered(self) -> bool:
        """Whether all answers are in: every question has one, or the stage is closed."""
        # By vector, not in all: answers to another question of the stage are no substitute.
        return self.closed or bool(np.array_equal(self.given, self.plan.pulls))

    @cached_property
    def given(self) -> Floats:
        """Answers to each question of the plan, of any kind."""
        if not self.orders:
            return self.scored[0]
        return np.asarray(self.scored[0] + np.array([len(orders) for orders in self.orders]))

    @cached_property
    def answers(self) -> int:
        """Answers to the stage so far."""
        return int(self.given.sum())

    @cached_property
    def scored(self) -> tuple[Floats, Floats]:
        """Of each measurement all answers, and the sum of their scores for the first item."""
        if not self.partial:
            return self.pulls.astype(np.float64), self.wins.astype(np.float64)
        return self.pulls + np.array([len(s) for s in self.partial]), self.wins + np.array(
            [sum(s) for s in self.partial]
        )

    @property
    def missing(self) -> int:
        """Questions of the stage without an answer."""
        return self.plan.total - self.answers


def updated(
    policy: Policy[State], state: State, stage: int, tally: Tally, partial: Partial, orders: Orders = ()
) -> State:
    """`policy.update`, with scores between 0 and 1 or orders if there are any, which only some policies take."""
    if orders:
        return cast("State", cast("Any", policy).update(state, stage, tally, partial, orders))
    if not partial:
        return policy.update(state, stage, tally)
    return cast("State", cast("Any", policy).update(state, stage, tally, partial))


def numbered(records: Sequence[StageRecord], stage: int) -> StageRecord:
    """The record of this stage, or a sentence that there is none."""
    if not 0 <= stage < len(records):
        raise InvalidInput(f"There is no stage {stage}; {len(records)} were planned, counted from 0.")
    return records[stage]


LAST_ANSWERS = Wait("The budget is spent; answers to questions handed out are still to come.")
MAY_DECIDE = Wait("What is asked already may decide; its answers are still to come.")

GROWTH = 0.02
"""How a stage grows with the questions before it, once they are not planned one by one."""


def budget_spent(budget: int, reason: str) -> str:
    """What a verdict says where the budget ended the search."""
    return f"The budget of {budget:,} questions is spent. {reason} Raise the budget."


def out_of_budget(verdict: Verdict, budget: int) -> Verdict:
    """The verdict where the budget ends a search that epsilon could have ended sooner."""
    reason = (
        f"The budget of {budget:,} questions is spent. {verdict.reason} "
        "Raise the budget, or accept an item that is nearly best with epsilon."
    )
    return replace(verdict, status=Status.BUDGET_SPENT, reason=reason)


def missing_if_logistic(missing: str, unanswered: int) -> tuple[str, ...]:
    """What a claim about logistic answers assumes about those that did not come, if any did not."""
    if not unanswered:
        return ()
    if missing == "charged":
        return (
            f"{unanswered:,} questions were closed without an answer, and each was charged the worse of the two "
            "answers: why they are missing does not matter.",
        )
    return (
        f"{unanswered:,} questions were closed without an answer: whether an answer comes depends neither on what "
        "it would have been nor on answers to later questions, and decisive answers are logistic.",
    )


def stage_size(asked: int, budget: int, one_by_one: int) -> int:
    """Questions of the next stage, within the budget.

    Early it is one, which saves people's time; after `one_by_one` of them a share of those before, which saves ours.
    """
    return min(max(1, int(GROWTH * (asked - one_by_one))), budget - asked)


def has_more(records: Sequence[StageRecord], evaluated: int) -> bool:
    """Whether a stage is answered after the first ones, which are evaluated.

    Where this is not so a state is its own `evaluated`, and does not keep that: an object that refers to itself stays
    in memory until cycles are collected, and the arrays of a state are large.
    """
    return evaluated < len(records) and records[evaluated].answered


def exhausted(left: int, remedy: str = ', or search with assume="population"') -> Wait:
    """What to say where the next judge has had every question that could decide."""
    return Wait(
        f"This judge has had every question that could decide, and {left} items are left; "
        f"another answer of this judge to one of them would not count now. Ask somebody else{remedy}.",
        exhausted=True,
    )


class AnsweredStage(Protocol):
    """A plan with answers, as a policy's record or a session's."""

    @property
    def plan(self) -> Plan:
        """What was asked."""

    @property
    def pulls(self) -> Integers:
        """Answers to each measurement of the plan."""

    @property
    def wins(self) -> Integers:
        """How many of them are 1."""

    @property
    def partial(self) -> Partial:
        """Scores of answers that are neither 1 nor 0."""

    @property
    def orders(self) -> Orders:
        """Answers to questions about sets."""


def pooled_counts(problem: Problem, stages: Iterable[AnsweredStage]) -> tuple[Integers, Integers]:
    """Pulls and wins of every comparison or yes/no question of the problem over these stages.

    Of orders they are the pairs that they decide.
    """
    pulls = np.zeros(len(problem.about), dtype=np.int64)
    wins = np.zeros_like(pulls)
    # A plan names each measurement at most once, so `+=` with an index array loses nothing.
    for stage in stages:
        if problem.show > 2:
            for measurement, told in zip(stage.plan.measurements.tolist(), stage.orders, strict=False):
                shown = problem.shown(measurement)
                for winner, loser in (pair for order in told for pair in decided_pairs(order, range(len(shown)))):
                    row = problem.comparison[shown[winner], shown[loser]]
                    pulls[row] += 1
                    wins[row] += problem.about[row, 0] == shown[winner]
            continue
        pulls[stage.plan.measurements] += stage.pulls
        wins[stage.plan.measurements] += stage.wins
    return pulls, wins


def pooled_tally(problem: Problem, stages: Iterable[AnsweredStage]) -> Tally:
    """The answers of these stages in coordinates of the measurements' span, without vectors that have none."""
    pulls, wins = pooled_counts(problem, stages)
    asked = np.flatnonzero(pulls)
    return Tally(problem.rows[asked], pulls[asked], wins[asked])


OldAnswers = tuple[tuple[int, int, int], ...]
"""Answers that predict and do not count, as (measurement, pulls, wins)."""


def old_counts(warm: OldAnswers, count: int) -> tuple[Floats, Floats] | None:
    """Old answers (measurement, pulls, wins) as pulls and wins of all measurements; None if there are none."""
    if not warm:
        return None
    rows, asked, ones = np.array(warm, dtype=np.int64).T
    if rows.min() < 0 or rows.max() >= count or np.any(asked < 1) or np.any((ones < 0) | (ones > asked)):
        raise InvalidInput(
            f"warm must hold (measurement, pulls, wins) for measurements below {count}, got one that does not exist or "
            "more wins than pulls."
        )
    pulls, wins = np.zeros(count), np.zeros(count)
    np.add.at(pulls, rows, asked)
    np.add.at(wins, rows, ones)
    return pulls, wins
