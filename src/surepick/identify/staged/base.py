"""The frame of all policies that ask a whole stage, wait for its answers, and then evaluate it.

A subclass says what an answered stage proves (`eliminate`) and what to ask next (`draft`). All it must remember of a
stage is fixed in the memo of its plan, so a log of plans and answers is enough to rebuild a search.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick._cached import cached_property
from surepick.confidence.prior_bounds import Knowledge
from surepick.confidence.theorem import Budget
from surepick.design import apportion
from surepick.errors import InvalidInput
from surepick.glm import Tally, fit, variance
from surepick.guarantee import Guarantee
from surepick.identify.policy import (
    ENOUGH,
    LOGISTIC,
    CannotClose,
    Missing,
    Plan,
    StageRecord,
    Wait,
    checked_answers,
    checked_limits,
    numbered,
    pooled_tally,
)
from surepick.identify.problem import Problem
from surepick.identify.simulation import DrawnAnswers, plausible_truths, run
from surepick.identify.staged.stage_bounds import StageEstimate
from surepick.identify.verdict import Rival, Status, Verdict, two_digits
from surepick.linalg import norms

FORESEEN_STAGES = 30
"""The forecast in a refusal simulates no further."""

GUESS_RIDGE = 0.01
"""Ridge of the fit that guesses and designs are made with: it exists for any answers, and fades after a few."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StageMemo:
    """What a stage's guarantee must remember of the moment it was planned; each policy adds fields of its own.

    In a plan, and so in the log, it is a JSON object. Fields without a default are always there, others where set.
    """

    short: bool = False
    """Whether the stage was cut down to what the budget left."""
    order_seed: int | None = None
    """In the first stage: seed of the random order in which the anytime sequence splits large stages."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        values = ((entry, getattr(self, entry.name)) for entry in fields(self))
        return {entry.name: _written(value) for entry, value in values if value is not entry.default}

    @classmethod
    def from_json(cls, memo: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave."""
        try:
            return cls(**{name: _read(name, value) for name, value in memo.items()})
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"This is not the memo of a stage of this policy ({error}).") from None


_TYPES = {"alive": np.int64, "asked": np.int64, "floors": np.float64, "weights": np.float64, "theta": np.float64}
"""Entries of memos that are arrays; `budget` is how a stage's delta is spent, the rest are plain values."""


def _written(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return asdict(value) if isinstance(value, Budget) else value


def _read(name: str, value: Any) -> Any:
    if value is not None and name in _TYPES:
        return np.array(value, dtype=_TYPES[name])
    return Budget(**value) if value is not None and name == "budget" else value


@dataclass(frozen=True, eq=False)
class Elimination:
    """What an answered stage says: which items are left, and how far from the best the leader may be."""

    alive: Integers
    """Items not excluded."""
    leader: int
    """The best guess."""
    shortfall: float = np.inf
    """With probability 1 − delta no item is better than the leader by more."""
    gaps: tuple[Floats, Floats] | None = None
    """Lower and upper bounds of every item's gap to the leader, if the leader is the best; None where unbounded."""
    among: Integers | None = None
    """Items that the estimate is about: those alive when the stage was planned; None for all."""
    estimate: StageEstimate | None = None
    """What excluded them; None where the stage proves nothing."""
    floors: Floats | None = None
    """Lower bounds of s(xᵀθ*) that are known after the stage, for policies that use them."""


@dataclass(frozen=True, eq=False)
class Stages:
    """The state: the problem, all stages with their answers, and what those that are answered said."""

    problem: Problem
    records: tuple[StageRecord, ...] = ()
    eliminations: tuple[Elimination, ...] = ()
    """One for each answered stage. Kept, not recomputed: each needs a fit, which is computed once per stage."""

    @property
    def last(self) -> StageRecord:
        """The stage planned last."""
        return self.records[-1]

    @property
    def elimination(self) -> Elimination | None:
        """What the last answered stage said; None before the first."""
        return self.eliminations[-1] if self.eliminations else None

    @property
    def waiting(self) -> bool:
        """Whether the last stage still lacks answers."""
        return bool(self.records) and not self.last.answered

    @property
    def asked(self) -> int:
        """Number of questions planned."""
        return sum(record.plan.total for record in self.records)

    @cached_property
    def guess(self) -> tuple[Floats, Floats]:
        """Estimate and information of all answers so far, with a little ridge: for designs, never for a width."""
        tally, rank = pooled_tally(self.problem, self.records), self.problem.span.rank
        if len(tally) == 0:
            return np.zeros(rank), GUESS_RIDGE * np.eye(rank)
        found = fit(tally, ridge=GUESS_RIDGE)
        return found.theta, found.information + GUESS_RIDGE * np.eye(rank)


@dataclass(frozen=True, eq=False)
class Draft:
    """A stage to be: how often to ask which measurement, and what to remember."""

    measurements: Integers
    pulls: Integers
    memo: StageMemo = field(default_factory=StageMemo)

    @property
    def total(self) -> int:
        """Number of questions."""
        return int(self.pulls.sum())

    def fitted_into(self, questions: int) -> "Draft | None":
        """The same in proportion with at most this number of questions; None where they do not cover its vectors."""
        if self.total <= questions:
            return self
        if questions < len(self.pulls):
            return None
        counts = apportion(self.pulls / self.total, questions).counts
        return Draft(self.measurements, counts, replace(self.memo, short=True))


@dataclass(frozen=True, kw_only=True)
class Stagewise(ABC):
    """Options and methods common to all policies that evaluate only answered stages.

    `epsilon` allows a leader that is worse than the best by at most this much (in log-odds); `budget` ends the search
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
    EXPLORES: ClassVar[bool] = False
    """Whether it may use the anytime sequence, which needs a random order of each large stage's answers."""

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

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the guarantee, in sentences."""
        return (LOGISTIC,)

    @abstractmethod
    def draft(self, state: Stages) -> Draft:
        """The next stage, from what the stages before it said (`state.eliminations`); all of them are answered."""

    @abstractmethod
    def eliminate(self, state: Stages) -> Elimination:
        """What the last stage says, now that it is answered; `state.eliminations` are those of the stages before."""

    def check(self, problem: Problem) -> None:  # noqa: B027  (most policies refuse nothing, so this is no abstract method)
        """Refuse a configuration that this problem shows to be impossible."""

    def start(self, problem: Problem) -> Stages:
        """The state before the first question."""
        self.check(problem)
        return Stages(problem)

    def plan(self, state: Stages, rng: np.random.Generator) -> Plan | Wait | Verdict:
        """The next stage, once the last is answered; or the final verdict."""
        if state.waiting:
            return Wait(f"{self.name} needs all answers to stage {state.last.plan.stage} before the next.")
        status, *_ = self._decision(state)
        if status.final:
            return self.verdict(state)
        draft, left = self.draft(state), self.budget - state.asked
        # A shorter stage is as valid as a whole one: its widths are computed from the answers it has.
        fitted = draft.fitted_into(left)
        # But a first stage cut short proves nothing (the theorem needs its burn-in), so nothing would be gained by it.
        if not state.records and draft.total > left:
            raise InvalidInput(
                f"delta = {self.delta:g} cannot be reached within the budget of {self.budget:,} questions: the first "
                f"stage alone takes {draft.total:,}{self._foreseen(state.problem)}; raise the budget, delta or "
                "epsilon, or use Anytime, which starts small."
            )
        if fitted is None:
            return self._out_of_budget(self.verdict(state), draft.total, left)
        memo = fitted.memo
        if self.EXPLORES and not state.records:
            # A constant would not do: for one fixed order the mean of the evidence may exceed one.
            memo = replace(memo, order_seed=int(rng.integers(2**32)))
        return Plan(len(state.records), fitted.measurements, fitted.pulls, memo.to_json())

    def apply(self, state: Stages, plan: Plan) -> Stages:
        """The state after this stage was planned."""
        # A plan of one's own may follow a stage that lacks answers: then what that stage has is what counts.
        evaluated = self._evaluated(state) if state.waiting else state
        return replace(evaluated, records=(*state.records, StageRecord.unanswered(plan)))

    def update(self, state: Stages, stage: int, tally: Tally) -> Stages:
        """Take all answers that a stage has by now; the last one that is needed evaluates it."""
        record = numbered(state.records, stage)
        pulls, wins = checked_answers(record.plan, tally)
        if record is not state.last:  # the next stage was planned on what it said
            return state
        return self._with_last(state, replace(record, pulls=pulls, wins=wins))

    def close(self, state: Stages, stage: int) -> Stages:
        """Take the answers a stage has as all it will get."""
        record = numbered(state.records, stage)
        if self.missing == "refuse" and not record.answered:
            raise CannotClose(
                f"{record.missing} questions of stage {stage} have no answer, and {self.name} with missing='refuse' "
                "needs them; answer them, or use missing='ignorable' if whether an answer comes does not depend "
                "on what it would have been."
            )
        closed = replace(record, closed=True)
        if record.answered:  # then it is evaluated already
            return replace(state, records=(*state.records[:stage], closed, *state.records[stage + 1 :]))
        return self._with_last(state, closed)

    def _with_last(self, state: Stages, record: StageRecord) -> Stages:
        """The state with this record of the last stage, evaluated if it is answered."""
        earlier = len(state.records) - 1
        changed = Stages(state.problem, (*state.records[:earlier], record), state.eliminations[:earlier])
        return self._evaluated(changed) if record.answered else changed

    def _evaluated(self, state: Stages) -> Stages:
        return replace(state, eliminations=(*state.eliminations, self.eliminate(state)))

    def _decision(self, state: Stages) -> tuple[Status, Elimination, str]:
        """How far the search got, on what grounds, and why no further."""
        problem, said = state.problem, state.elimination
        nothing = Elimination(np.arange(len(problem.items)), 0)
        if problem.obstacle is not None:
            return Status.NOT_IDENTIFIABLE, nothing, problem.obstacle
        if len(problem.items) == 1:
            return Status.CERTAIN, nothing, ""
        if said is None:
            return Status.OPEN, nothing, "No stage is complete yet."
        if len(said.alive) == 1:
            return Status.CERTAIN, said, ""
        if said.shortfall <= self.epsilon:
            return Status.WITHIN_EPSILON, said, ""
        bound = f", and the leader is within {said.shortfall:.3g} of the best" if said.shortfall < np.inf else ""
        return Status.OPEN, said, f"{len(said.alive)} items are not excluded{bound}."

    def verdict(self, state: Stages) -> Verdict:
        """What the answered stages say: final where they decide, otherwise `open`."""
        status, said, reason = self._decision(state)
        problem, best, count = state.problem, said.leader, len(state.problem.items)
        # Gaps hold on the event that the leader is the best: with several items alive they are about the best guess.
        low, high = said.gaps or (np.full(count, -np.inf), np.full(count, np.inf))
        if status is Status.CERTAIN:  # the best item has no negative gap to any other
            low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
        others = [item for item in np.lexsort((high, low)).tolist() if item != best]
        evaluated = state.records[: len(state.eliminations)]
        unanswered = sum(record.missing for record in evaluated)
        missing = (
            f"{unanswered} questions were closed without an answer: whether an answer comes depends neither on what it "
            "would have been nor on any other answer of its stage, or of stages evaluated together with it, and "
            "decisive answers are logistic."
        )
        return Verdict(
            status=status,
            best=problem.names[best],
            surviving=tuple(problem.names[item] for item in said.alive),
            delta=self.delta,
            epsilon=self.epsilon,
            questions_by_stage=tuple(int(record.pulls.sum()) for record in evaluated),
            policy=self.name,
            guarantee=self.guarantee,
            statement=self.statement,
            assumptions=(*self.assumptions, missing) if unanswered else self.assumptions,
            rivals=tuple(Rival(problem.names[item], float(low[item]), float(high[item])) for item in others),
            reason=reason,
            also=problem.aliases[best][1:],
        )

    def _out_of_budget(self, verdict: Verdict, needed: int, left: int) -> Verdict:
        reason = (
            f"The next stage takes {needed:,} questions and {left:,} of the budget are left. {verdict.reason} "
            "Raise the budget, or accept an item that is nearly best with epsilon."
        )
        return replace(verdict, status=Status.BUDGET_SPENT, reason=reason)

    def _foreseen(self, problem: Problem) -> str:
        """About how many questions a search without a budget takes: the middle of three, on plausible truths."""
        if self.budget >= ENOUGH:
            return ""
        nothing = Tally(problem.measurements, *np.zeros((2, len(problem.measurements)), dtype=np.int64))
        # Without a budget: this one would be refused again, and the answer wanted is what it would have to be.
        unlimited, numbers = replace(self, budget=ENOUGH), list[float]()
        for place, guess in enumerate(plausible_truths(problem, nothing, 3, 0)):
            judge = DrawnAnswers(self.within_prior_bounds(problem, guess), np.random.default_rng([0, place]))
            numbers.append(run(problem, unlimited, judge, stages=FORESEEN_STAGES).questions)
        return f", and the whole search is forecast to take about {two_digits(float(np.median(numbers)))}"

    def within_prior_bounds(self, problem: Problem, theta: Floats) -> Floats:
        """A guess of θ*, moved to where the policy's options allow it to be."""
        return theta

    def to_json(self) -> dict[str, Any]:
        """The configuration, with which `policy_from_json` builds an equal one."""
        return {"name": self.name} | {option.name: getattr(self, option.name) for option in fields(self)}


@dataclass(frozen=True, kw_only=True)
class WithPriorBounds(Stagewise):
    """A policy that takes `kappa` ≤ s(xᵀθ*) for all measurement vectors, or `norm_bound` ≥ ‖θ*‖."""

    kappa: float | None = None
    norm_bound: float | None = None

    NEEDS_PRIOR_BOUNDS: ClassVar[bool] = False
    """Whether it needs them."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The logistic model, and what was said of theta."""
        known = [f"Every answer has variance at least kappa = {self.kappa:g}."] if self.kappa is not None else []
        known += [f"The norm of theta is at most {self.norm_bound:g}."] if self.norm_bound is not None else []
        return (*super().assumptions, *known)

    def check(self, problem: Problem) -> None:
        """Refuse impossible bounds, or none where some are needed."""
        if self.floors(problem) is None and self.NEEDS_PRIOR_BOUNDS:
            raise InvalidInput(
                f"{self.name} needs kappa, a lower bound of every answer's variance, or norm_bound, got neither; "
                "the corrected RageGlm needs neither."
            )

    def floors(self, problem: Problem) -> Floats | None:
        """Lower bounds of s(xᵀθ*) known beforehand, None without any; refuses a kappa that norm_bound rules out."""
        knowledge = Knowledge(norm_bound=self.norm_bound, kappa=self.kappa)
        if not knowledge:
            return None
        if self.kappa is not None and self.norm_bound is not None:
            longest = float(norms(problem.measurements).max())
            least = float(variance(np.array(self.norm_bound * longest)))
            # A kappa below the norm bound's own adds nothing, so it is a slip: its unit, or the bound, is wrong.
            if self.kappa < least * (1 - 1e-9):
                raise InvalidInput(
                    f"kappa = {self.kappa:g} is impossible for norm_bound = {self.norm_bound:g}: with vectors no "
                    f"longer than {longest:g}, every answer has variance {least:.3g} or more; leave kappa out, or "
                    "raise norm_bound."
                )
        return knowledge.variance_floor(problem.measurements)

    def least_kappa(self, problem: Problem) -> float:
        """The smallest floor, for formulas with a single κ₀."""
        floors = self.floors(problem)
        assert floors is not None  # checked at the start
        return float(floors.min())

    def within_prior_bounds(self, problem: Problem, theta: Floats) -> Floats:
        """The guess, made shorter until it keeps to kappa and norm_bound."""
        shrink = 1.0
        if self.kappa is not None:
            largest = float(np.max(np.abs(problem.measurements @ theta)))
            # s(v) = 1/(4·cosh²(v/2)) ≥ kappa means |v| ≤ 2·acosh(1/(2√kappa)).
            shrink = min(shrink, 2 * math.acosh(max(0.5 / math.sqrt(self.kappa), 1.0)) / max(largest, 1e-300))
        if self.norm_bound is not None:
            shrink = min(shrink, self.norm_bound / max(float(np.linalg.norm(theta)), 1e-300))
        return np.asarray(shrink * theta)
