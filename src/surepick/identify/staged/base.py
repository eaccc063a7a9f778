"""The frame of all policies that ask a whole stage, wait for its answers, and then look.

A subclass says what a complete stage proves (`standing`) and what to ask next (`draft`). All it must remember of a
stage is fixed in the memo of its plan, so the state is the problem, the plans and their answers, and nothing else.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick.design import apportion
from surepick.errors import InvalidInput
from surepick.glm import Tally
from surepick.guarantee import Guarantee
from surepick.identify.policy import CannotClose, Plan, Wait, checked_answers, checked_limits
from surepick.identify.posterior_sample import plausible_truths
from surepick.identify.problem import Problem
from surepick.identify.simulation import DrawnAnswers, run
from surepick.identify.verdict import Rival, Status, Verdict, two_digits

Missing = Literal["ignorable", "refuse"]

ENOUGH = 10**12
"""Questions after which a search ends in any case: what they cannot tell apart is a tie for every purpose."""

FORESEEN_STAGES = 30
"""A forecast for a refusal looks no further."""

LOGISTIC = (
    "Answers are independent given the questions of their stage, and an answer to x is 1 with probability "
    "1/(1+exp(-x'theta)) for one theta throughout."
)


@dataclass(frozen=True, eq=False)
class Filed:
    """A planned stage and the answers to it so far."""

    plan: Plan
    pulls: Integers
    wins: Integers
    closed: bool = False

    @property
    def complete(self) -> bool:
        """Whether every question of it is answered or closed."""
        return self.closed or bool(np.array_equal(self.pulls, self.plan.pulls))

    @property
    def missing(self) -> int:
        """Questions of it without an answer."""
        return self.plan.total - int(self.pulls.sum())


@dataclass(frozen=True, eq=False)
class Stages:
    """The state: the problem, and all stages with their answers."""

    problem: Problem
    filed: tuple[Filed, ...] = ()

    @property
    def last(self) -> Filed:
        """The stage planned last."""
        return self.filed[-1]

    @cached_property
    def complete(self) -> "Stages":
        """Without a last stage that still waits for answers."""
        return self if not self.filed or self.last.complete else replace(self, filed=self.filed[:-1])

    @property
    def answered(self) -> int:
        """Number of answers."""
        return sum(int(each.pulls.sum()) for each in self.filed)

    @property
    def asked(self) -> int:
        """Number of questions planned."""
        return sum(each.plan.total for each in self.filed)

    def counts(self) -> tuple[Integers, Integers]:
        """Pulls and wins of every measurement vector over all stages."""
        pulls = np.zeros(len(self.problem.measurements), dtype=np.int64)
        wins = np.zeros_like(pulls)
        for each in self.filed:
            pulls[each.plan.measurements] += each.pulls
            wins[each.plan.measurements] += each.wins
        return pulls, wins


@dataclass(frozen=True, eq=False)
class Standing:
    """What the complete stages say."""

    alive: Integers
    """Items not excluded."""
    leader: int
    """The best guess."""
    shortfall: float = np.inf
    """With probability 1 − delta no item is better than the leader by more."""


@dataclass(frozen=True, eq=False)
class Draft:
    """A stage to be: how often to ask which measurement, and what to remember."""

    measurements: Integers
    pulls: Integers
    memo: Mapping[str, Any]

    @property
    def total(self) -> int:
        """Number of questions."""
        return int(self.pulls.sum())

    def fitted_into(self, questions: int) -> "Draft | None":
        """The same in proportion with at most so many questions; None where they do not cover its vectors."""
        if self.total <= questions:
            return self
        if questions < len(self.pulls):
            return None
        counts = apportion(self.pulls / self.total, questions).counts
        return Draft(self.measurements, counts, {**self.memo, "short": True})


@dataclass(frozen=True, kw_only=True)
class Stagewise(ABC):
    """Options and methods common to all policies that look only after complete stages.

    `epsilon` allows a leader that is worse than the best by at most so much (in log-odds); `budget` ends the search
    with the best guess. `missing` says what a question without an answer (skipped, expired, a tie) means: "ignorable",
    that whether an answer comes does not depend on what it would have been, or "refuse", that a stage cannot do
    without it.
    """

    delta: float = 0.05
    epsilon: float = 0.0
    budget: int = ENOUGH
    missing: Missing = "ignorable"

    NAME: ClassVar[str]
    GUARANTEE: ClassVar[Guarantee]
    STATEMENT: ClassVar[str]

    def __post_init__(self) -> None:
        checked_limits(self.delta, self.epsilon, self.budget)
        validate.one_of("missing", self.missing, ("ignorable", "refuse"))

    @property
    def name(self) -> str:
        """Kebab-case name, as on the command line."""
        return self.NAME

    @property
    def guarantee(self) -> Guarantee:
        """What stands behind its verdicts."""
        return self.GUARANTEE

    @property
    def statement(self) -> str:
        """What is claimed, and where it is proved."""
        return self.STATEMENT

    @abstractmethod
    def standing(self, state: Stages) -> Standing:
        """What the stages, all complete and at least one, say."""

    @abstractmethod
    def draft(self, state: Stages, standing: Standing | None) -> Draft:
        """The next stage; the standing is None before the first."""

    def gaps(self, state: Stages, best: int) -> tuple[Floats, Floats]:
        """Bounds of the gap of every item to the best, on the event that it is the best; infinite unless refined."""
        count = len(state.problem.items)
        return np.full(count, -np.inf), np.full(count, np.inf)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the guarantee, in sentences."""
        return (LOGISTIC,)

    def check(self, problem: Problem) -> None:  # noqa: B027  (nothing to refuse is the rule)
        """Refuse a configuration that this problem shows to be impossible."""

    def start(self, problem: Problem) -> Stages:
        """The state before the first question."""
        self.check(problem)
        return Stages(problem)

    def plan(self, state: Stages, rng: np.random.Generator) -> Plan | Wait | Verdict:
        """The next stage, once the last is complete; or the final verdict."""
        if state.filed and not state.last.complete:
            return Wait(f"{self.name} needs all answers to stage {state.last.plan.stage} before the next.")
        verdict = self.verdict(state)
        if verdict.status.final:
            return verdict
        draft = self.draft(state, self.standing(state) if state.filed else None)
        left = self.budget - state.asked
        fitted = draft.fitted_into(left)
        if not state.filed and draft.total > left:
            raise InvalidInput(
                f"delta = {self.delta:g} cannot be reached within the budget of {self.budget:,} questions: the first "
                f"stage alone takes {draft.total:,}{self._foreseen(state.problem)}; raise the budget, delta or "
                "epsilon, or use Anytime, which starts small."
            )
        if fitted is None:
            return self._out_of_budget(verdict, draft.total, left)
        return Plan(len(state.filed), fitted.measurements, fitted.pulls, fitted.memo)

    def believable(self, problem: Problem, theta: Floats) -> Floats:
        """A guess of θ*, moved to where the policy's options allow it to be."""
        return theta

    def _foreseen(self, problem: Problem) -> str:
        """About how many questions a search without a budget takes: the middle of three, on plausible truths."""
        if self.budget >= ENOUGH:
            return ""
        nothing = Tally(problem.measurements, *np.zeros((2, len(problem.measurements)), dtype=np.int64))
        unlimited, numbers = replace(self, budget=ENOUGH), list[float]()
        for place, guess in enumerate(plausible_truths(problem, nothing, 3, 0)):
            judge = DrawnAnswers(self.believable(problem, guess), np.random.default_rng([0, place]))
            numbers.append(run(problem, unlimited, judge, stages=FORESEEN_STAGES).questions)
        return f", and the whole search is forecast to take about {two_digits(float(np.median(numbers)))}"

    def apply(self, state: Stages, plan: Plan) -> Stages:
        """The state after this stage was planned."""
        nothing = np.zeros(len(plan.pulls), dtype=np.int64)
        return replace(state, filed=(*state.filed, Filed(plan, nothing, nothing)))

    def update(self, state: Stages, stage: int, tally: Tally) -> Stages:
        """File all answers to a stage that there are by now; stages before the last are evaluated and stay."""
        filed = _stage(state, stage)
        pulls, wins = checked_answers(filed.plan, tally)
        if filed is not state.last:
            return state
        return replace(state, filed=(*state.filed[:-1], replace(filed, pulls=pulls, wins=wins)))

    def close(self, state: Stages, stage: int) -> Stages:
        """Take the answers a stage has as all it will get."""
        filed = _stage(state, stage)
        if self.missing == "refuse" and not filed.complete:
            raise CannotClose(
                f"{filed.missing} questions of stage {stage} have no answer, and {self.name} with missing='refuse' "
                "cannot do without; answer them, or use missing='ignorable' if whether an answer comes does not depend "
                "on what it would have been."
            )
        return replace(
            state, filed=tuple(replace(each, closed=True) if each is filed else each for each in state.filed)
        )

    def verdict(self, state: Stages) -> Verdict:
        """What the complete stages say: final where they decide, otherwise `open`."""
        problem, done = state.problem, state.complete
        if problem.obstacle is not None:
            everything = Standing(np.arange(len(problem.items)), 0)
            return self._say(done, Status.NOT_IDENTIFIABLE, everything, problem.obstacle)
        if len(problem.items) == 1:
            return self._say(done, Status.CERTAIN, Standing(np.array([0]), 0, 0.0))
        if not done.filed:
            return self._say(done, Status.OPEN, Standing(np.arange(len(problem.items)), 0), "No stage is complete yet.")
        standing = self.standing(done)
        if len(standing.alive) == 1:
            return self._say(done, Status.CERTAIN, standing)
        if standing.shortfall <= self.epsilon:
            return self._say(done, Status.WITHIN_EPSILON, standing)
        return self._say(done, Status.OPEN, standing, _not_yet(standing))

    def _out_of_budget(self, verdict: Verdict, needed: int, left: int) -> Verdict:
        reason = (
            f"The next stage takes {needed:,} questions and {left:,} of the budget are left. {verdict.reason} "
            "Raise the budget, or accept an item that is nearly best with epsilon."
        )
        return replace(verdict, status=Status.BUDGET_SPENT, reason=reason)

    def _say(self, state: Stages, status: Status, standing: Standing, reason: str = "") -> Verdict:
        problem, best = state.problem, standing.leader
        low, high = self.gaps(state, best) if state.filed else Stagewise.gaps(self, state, best)
        if status is Status.CERTAIN:  # the best item has no negative gap to any other
            low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
        others = [item for item in np.argsort(low, kind="stable").tolist() if item != best]
        unanswered = sum(each.missing for each in state.filed)
        extra = (
            ()
            if unanswered == 0
            else (
                f"{unanswered} questions were closed without an answer: whether an answer comes does not depend on "
                "what it would have been, and decisive answers are logistic.",
            )
        )
        return Verdict(
            status=status,
            best=problem.names[best],
            surviving=tuple(problem.names[item] for item in standing.alive),
            delta=self.delta,
            epsilon=self.epsilon,
            questions_by_stage=tuple(int(each.pulls.sum()) for each in state.filed),
            policy=self.name,
            guarantee=self.guarantee,
            statement=self.statement,
            assumptions=self.assumptions + extra,
            rivals=tuple(Rival(problem.names[item], float(low[item]), float(high[item])) for item in others),
            reason=reason,
            also=problem.aliases[best][1:],
        )

    def to_json(self) -> dict[str, Any]:
        """The configuration, with which `policy_from_json` builds an equal one."""
        return {"name": self.name} | {each.name: getattr(self, each.name) for each in fields(self)}


def _stage(state: Stages, stage: int) -> Filed:
    if not 0 <= stage < len(state.filed):
        raise InvalidInput(f"There is no stage {stage}; {len(state.filed)} were planned, counted from 0.")
    return state.filed[stage]


def _not_yet(standing: Standing) -> str:
    bound = f", and the leader is within {standing.shortfall:.3g} of the best" if standing.shortfall < np.inf else ""
    return f"{len(standing.alive)} items are not excluded{bound}."
