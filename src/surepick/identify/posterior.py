"""Posterior: the best item for a person drawn from a known population; docs/population.md has the proof.

until the leader is the best with posterior probability 1 − delta:
    evaluate    condition the population on the answers, in planning order                    glm.score_posterior
    look        draw tastes from the posterior; is another item the best in few of them?      `PosteriorState.look`
    confirm     if so, with many fresh draws, whose error is counted                          posterior_confirming
    choose      the question whose answer says most about which item is best                  posterior_sampling
"""

import math
import zlib
from collections.abc import Collection
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from surepick._arrays import Floats, Integers
from surepick._cached import cached_property
from surepick.checks import Check
from surepick.errors import InvalidInput
from surepick.glm import Tally, probability_of_yes
from surepick.glm.score_posterior import Draws, ScorePosterior
from surepick.guarantee import Guarantee
from surepick.identify.policy import (
    ENOUGH,
    LAST_ANSWERS,
    Partial,
    Plan,
    StageRecord,
    Wait,
    budget_spent,
    checked_answers,
    checked_limits,
    checked_partial,
    exhausted,
    has_more,
    numbered,
    stage_size,
)
from surepick.identify.population import USUAL, Population, given_population
from surepick.identify.posterior_check import unlike_population
from surepick.identify.posterior_confirming import CUT, confirm, factors
from surepick.identify.posterior_sampling import choose_questions
from surepick.identify.problem import NOTHING, Problem
from surepick.identify.stage_list import StageList
from surepick.identify.verdict import Rival, Status, Verdict

MODEL = (
    "The person has one score for every item, prefers an item to another with probability 1/(1+exp(-difference)), and "
    "answers each question independently; a score between 0 and 1 counts as a win drawn with that probability."
)

DRAWN = "Tastes are drawn from this population: {}."

CUT_SHARE = 0.05
"""Share of delta for people at whose taste draws are too rare."""

NUMERICAL = (
    f"Numerical: draws at the person's own taste are at most {CUT:.0f} times rarer than the posterior has them; where "
    f"they are r times rarer, 1 - {CUT:.0f}/r is not counted, at most {CUT_SHARE:g} delta on average over people "
    "(docs/population.md, (N))."
)

LOOKS_SHARE = 0.01
"""Share of delta for the error of the draws; look j may err with probability at most share·delta/(j(j+1))."""

DRAWS, MORE_DRAWS = 1200, 4000
"""Draws from which looks estimate and questions are chosen: more of them near the end ..."""

NEAR = 1.5
"""... where the estimated error is at most this many times what a verdict may have."""

EFFECTIVE = 0.2
"""They are weighted again after every answer while this share of them is effective; then fresh ones are drawn."""

CREDIBLE_DRAWS = 24_000
"""Draws for the items that are left while the verdict is open."""

MOST_ITEMS = 200
"""With more items a question would take longer than a person does."""

ONE_BY_ONE = 500
"""Questions that are planned one at a time."""


@dataclass(frozen=True, kw_only=True)
class Posterior:
    """Stops when the leader is the best with posterior probability 1 − delta; proved on average over the population.

    `population` is the distribution that tastes are drawn from, by default `Population.usual`. `epsilon` allows a
    leader that is worse than the best by at most this much (in log-odds); `budget` ends the search with the best guess.
    A question without an answer says nothing: whether one comes must not depend on what it would have been.
    """

    delta: float = 0.05
    epsilon: float = 0.0
    budget: int = ENOUGH
    population: Population | None = None

    name = "posterior"
    guarantee = Guarantee.PROVED
    statement = (
        "Wrong with probability at most delta for a person drawn from the population, at any time of stopping "
        "(docs/population.md, Theorem 2)."
    )

    def __post_init__(self) -> None:
        checked_limits(self.delta, self.epsilon, self.budget)
        object.__setattr__(self, "population", given_population(self.population))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the guarantee, in sentences."""
        described = USUAL if self.population is None else self.population.source
        return (DRAWN.format(described), MODEL, NUMERICAL)

    def start(self, problem: Problem) -> "PosteriorState":
        """The state before the first question; refuses problems that ask anything but comparisons of few items."""
        possible = problem.obstacle is None and len(problem.items) > 1
        if possible and (problem.position or np.any(problem.about[: problem.listed] == NOTHING)):
            raise InvalidInput(
                "A population gives scores of items, which comparisons of two show, without a position coordinate; use "
                "Problem.from_pairs(items), or the policy Anytime for other questions."
            )
        if possible and (problem.show > 2 or problem.once):
            raise InvalidInput(
                "A posterior is computed from independent comparisons of two items, not from picks, rankings or inputs "
                "that are drawn once; use the policy Winner for these."
            )
        if possible and len(problem.items) > MOST_ITEMS:
            raise InvalidInput(
                f"The posterior is computed for at most {MOST_ITEMS} items, got {len(problem.items):,}; use the policy "
                "Winner, or leave out items that cannot be the best."
            )
        population = self.population or Population.usual(problem)
        population.require_items(problem)
        return PosteriorState(problem, self.delta, self.epsilon, ScorePosterior.of(population.prior))

    def plan(
        self, state: "PosteriorState", rng: np.random.Generator, without: Collection[int] | None = None
    ) -> Plan | Wait | Verdict:
        """The next stage, whether or not earlier ones are open; or the final verdict.

        Measurements in `without` are not asked, because whoever answers has had them; with it, even if it is empty, no
        measurement is asked twice in one stage.
        """
        state = state.evaluated
        status, best, reason = self._conclusion(state)
        if status.final:
            return self._say(state, status, best, reason)
        if state.asked >= self.budget:
            if state.evaluated_stages < len(state.stages):
                return LAST_ANSWERS
            return self._say(state, Status.BUDGET_SPENT, best, budget_spent(self.budget, reason))
        counts = choose_questions(state, stage_size(state.asked, self.budget, ONE_BY_ONE), rng, without)
        if not counts.any():
            left = int(np.count_nonzero(state.look.best_chances > self.delta))
            return exhausted(left, remedy="")
        return self.stage_of(state, counts)

    def stage_of(self, state: "PosteriorState", counts: Integers, *, prove: bool = True) -> Plan:
        """A stage that asks each measurement `counts` times, whoever chose them.

        Its memo says how many looks there were, for the error that is allowed to the next one. Without `prove` no look
        is taken now; every stage then counts as one.
        """
        state = state.evaluated
        where = np.flatnonzero(counts)
        memo: dict[str, Any] = {}
        if prove:
            # Verdicts may have been read after each stage since the last plan, so each of them counts as a look.
            skipped = 0 if state.look.confirmed else 1
            memo = {"looks": state.look_number - skipped, "evaluated": state.evaluated_stages}
        return Plan(len(state.stages), where, counts[where], memo)

    def apply(self, state: "PosteriorState", plan: Plan) -> "PosteriorState":
        """The state after this stage was planned; stages answered by then are evaluated for good."""
        state = state.evaluated
        return replace(
            state,
            stages=state.stages.planned(plan),
            asked=state.asked + plan.total,
            looks=plan.memo.get("looks", state.looks),
            looked_at=plan.memo.get("evaluated", state.looked_at),
            pool=state.draws if plan.memo else state.pool,
        )

    def update(self, state: "PosteriorState", stage: int, tally: Tally, partial: Partial = ()) -> "PosteriorState":
        """Record all answers to a stage that there are by now; stages already evaluated stay as they are.

        `partial` are scores between 0 and 1, such as ½ for a tie.
        """
        record = numbered(state.stages, stage)
        pulls, wins = checked_answers(record.plan, tally)
        partial = checked_partial(record.plan, tally, partial)
        return state.with_stage(stage, replace(record, pulls=pulls, wins=wins, partial=partial))

    def close(self, state: "PosteriorState", stage: int) -> "PosteriorState":
        """Take the answers a stage has as all it will get."""
        return state.with_stage(stage, replace(numbered(state.stages, stage), closed=True))

    def verdict(self, state: "PosteriorState") -> Verdict:
        """What the evaluated stages say: final where they decide, otherwise `open`."""
        state = state.evaluated
        return self._say(state, *self._conclusion(state))

    def predict(self, state: "PosteriorState", measurement: int) -> float:
        """Probability that an answer to this comparison is for its first item."""
        draws = state.evaluated.look.draws
        first, second = state.problem.about[measurement].tolist()
        return float(draws.weights @ probability_of_yes(draws.scores[:, first] - draws.scores[:, second]))

    def check_population(self, state: "PosteriorState", *, level: float) -> Check:
        """Whether the answers speak against the population that is assumed."""
        population = self.population or Population.usual(state.problem)
        return unlike_population(state.problem, population, state.evaluated.posterior, level=level)

    def _conclusion(self, state: "PosteriorState") -> tuple[Status, int, str]:
        problem = state.problem
        if problem.obstacle is not None:
            return Status.NOT_IDENTIFIABLE, 0, problem.obstacle
        if len(problem.items) == 1:
            return Status.CERTAIN, 0, ""
        look = state.look
        if look.decided:
            return Status.CERTAIN if self.epsilon == 0 else Status.WITHIN_EPSILON, look.leader, ""
        near = f" or within {self.epsilon:g} of it" if self.epsilon else ""
        reason = f"The leader is the best{near} with posterior probability about {1 - look.error:.2f}."
        return Status.OPEN, look.leader, reason

    def _say(self, state: "PosteriorState", status: Status, best: int, reason: str) -> Verdict:
        """The verdict; rivals that are likeliest to be better first."""
        problem = state.problem
        nobody = problem.obstacle is not None or len(problem.items) == 1
        rivals: tuple[Rival, ...] = ()
        alive = np.arange(len(problem.items))
        if not nobody:
            rivals = tuple(self._rivals(state, best, decided=status.decided))
            alive = np.array([best]) if status is Status.CERTAIN else state.credible_items
        return Verdict(
            status=status,
            best=problem.names[best],
            surviving=tuple(problem.names[item] for item in alive),
            delta=self.delta,
            epsilon=self.epsilon,
            questions_by_stage=state.stages.answers(state.evaluated_stages),
            policy=self.name,
            guarantee=self.guarantee,
            statement=self.statement,
            assumptions=(*self.assumptions, *_about_missing(state.stages.missing(state.evaluated_stages))),
            rivals=rivals,
            reason=reason,
            also=problem.aliases[best][1:],
        )

    def _rivals(self, state: "PosteriorState", best: int, *, decided: bool) -> list[Rival]:
        draws = state.look.draws
        ahead = draws.weights @ (draws.scores - draws.scores[:, [best]] > self.epsilon)
        # Below one effective draw an estimate says only that the probability is small.
        nats = -np.log(np.clip(ahead, 1 / draws.effective, 1.0))
        low = -self.epsilon + 0.0 if decided else -math.inf
        order = [item for item in np.argsort(-ahead, kind="stable").tolist() if item != best]
        return [Rival(state.problem.names[item], low, math.inf, round(float(nats[item]), 6)) for item in order]

    def to_json(self) -> dict[str, Any]:
        """The configuration, with which `policy_from_json` builds an equal one."""
        options = {option.name: getattr(self, option.name) for option in fields(self)}
        population = None if self.population is None else self.population.to_json()
        return {"name": self.name} | options | {"population": population}


@dataclass(frozen=True, eq=False)
class Look:
    """What draws from the posterior say after some answers."""

    draws: Draws
    leader: int
    """The item that is likeliest to be the best, or within epsilon of it."""
    best_chances: Floats
    """Probability of being the best, for every item."""
    error: float
    """Estimated probability that the leader is not."""
    confirmed: bool
    """Whether many fresh draws were taken to confirm that it is small."""
    decided: bool
    """Whether they did."""


@dataclass(frozen=True, eq=False)
class PosteriorState:
    """All stages with their answers, and the posterior after the first `evaluated_stages` of them."""

    problem: Problem
    delta: float
    epsilon: float
    posterior: ScorePosterior
    stages: StageList = field(default_factory=StageList)
    asked: int = 0
    """Questions of all stages."""
    evaluated_stages: int = 0
    looks: int = 0
    """Looks that there were until the last plan ..."""
    looked_at: int = -1
    """... and how many stages were evaluated then; −1 before the first plan."""
    pool: Draws | None = None
    """Draws that the last plan was made from; a replay makes the same."""

    @property
    def evaluated(self) -> "PosteriorState":
        """With the longest prefix of answered stages evaluated, in planning order."""
        return self._evaluated if has_more(self.stages, self.evaluated_stages) else self

    @cached_property
    def _evaluated(self) -> "PosteriorState":
        state = self
        while has_more(state.stages, state.evaluated_stages):
            state = state._after(state.stages[state.evaluated_stages])
        return state

    def _after(self, stage: StageRecord) -> "PosteriorState":
        """One more stage evaluated."""
        posterior = self.posterior
        for place, measurement in enumerate(stage.plan.measurements.tolist()):
            first, second = self.problem.about[measurement].tolist()
            pulls, wins = int(stage.pulls[place]), int(stage.wins[place])
            if stage.partial:
                # A win drawn with the probability that a score states: then the likelihood is exactly that of the model
                # wherever the expected score is.
                scores = np.array(stage.partial[place])
                drawn = np.random.default_rng([stage.plan.stage, place, 11]).random(len(scores)) < scores
                pulls, wins = pulls + len(scores), wins + int(drawn.sum())
            if pulls:
                posterior = posterior.update(first, second, wins, pulls - wins)
        return replace(
            self,
            posterior=posterior,
            stages=self.stages.pack(self.evaluated_stages + 1),
            evaluated_stages=self.evaluated_stages + 1,
        )

    def with_stage(self, stage: int, record: StageRecord) -> "PosteriorState":
        """With what a stage has by now; what was counted for good does not change."""
        if stage < self.evaluated_stages:
            return self
        return replace(self, stages=self.stages.told(stage, record))

    @property
    def look_number(self) -> int:
        """The number of the look at this state, from 1: each stage evaluated since the last plan may have had one."""
        return max(1, self.looks + self.evaluated_stages - self.looked_at)

    @property
    def numerical_level(self) -> float:
        """How likely the limit of this look may be too low."""
        return LOOKS_SHARE * self.delta / (self.look_number * (self.look_number + 1))

    @property
    def allowed(self) -> float:
        """Posterior probability of an error that a verdict may have, apart from the error of the draws."""
        return (1 - LOOKS_SHARE - CUT_SHARE) * self.delta

    @cached_property
    def draws(self) -> Draws:
        """Draws from the posterior of this state, which must be evaluated: those of the last plan if they will do."""
        count = DRAWS
        if self.pool is not None:
            again = self.posterior.weighted(self.pool)
            if self._leader(again)[1] <= NEAR * self.allowed:
                count = MORE_DRAWS
            if again.effective >= EFFECTIVE * len(again.weights) >= EFFECTIVE * count:
                return again
        return self.posterior.draws(count, self._random(0))

    def _leader(self, draws: Draws) -> tuple[int, float]:
        """The item that is likeliest to be good enough, and how likely it is not."""
        good = draws.weights @ (draws.scores >= np.max(draws.scores, axis=1, keepdims=True) - self.epsilon)
        leader = int(np.argmax(np.round(good, 9)))  # a chance that is behind by rounding must not decide
        return leader, max(1 - float(good[leader]), 0.0)

    @cached_property
    def look(self) -> Look:
        """The look at this state, which must be evaluated: always the same, and as often as wanted it counts once."""
        draws = self.draws
        leader, error = self._leader(draws)
        best = np.argmax(draws.scores, axis=1)
        best_chances = np.bincount(best, draws.weights, draws.scores.shape[1]).astype(np.float64)
        if error > self.allowed or self.evaluated_stages == self.looked_at:
            return Look(draws, leader, best_chances, error, False, False)
        found = confirm(
            self.posterior,
            lambda scores: np.max(scores, axis=1) - scores[:, leader] > self.epsilon,
            log_evidence=draws.log_evidence,
            bound=self.allowed,
            level=self.numerical_level,
            rng=self._random(1),
        )
        return Look(draws, leader, best_chances, found.estimate, True, found.small)

    def _random(self, stream: int) -> np.random.Generator:
        """Random numbers of a look: fixed by the answers, so that a replay finds the same."""
        answers = np.concatenate([self.posterior.wins, self.posterior.losses])
        return np.random.default_rng([self.evaluated_stages, zlib.crc32(answers.tobytes()), stream])

    @cached_property
    def credible_items(self) -> Integers:
        """A set of items that has the best one with posterior probability 1 − delta, likely ones first added."""
        draws = self.look.draws
        order = np.argsort(-self.look.best_chances, kind="stable")
        fresh = self.posterior.draws(CREDIBLE_DRAWS, np.random.default_rng([self.evaluated_stages, 13]))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        place = rank[np.argmax(fresh.scores, axis=1)]
        log_cut = draws.log_evidence + math.log(CUT)
        # Sets are tested from the largest down to the first that fails; each holds the next, so no error adds up.
        needed = -math.log(self.numerical_level)
        missing, having = (
            factors(fresh, np.full(len(place), event), log_cut=log_cut, bound=self.allowed) for event in (True, False)
        )
        # With the first `size` items in the set, a draw whose best item comes later is one where it is missing.
        change = np.bincount(place, having - missing, len(order))
        wealth = float(missing.sum()) + np.cumsum(change)
        return np.sort(order[: len(order) - int(np.count_nonzero(wealth[:-1] >= needed))])


def _about_missing(unanswered: int) -> tuple[str, ...]:
    if not unanswered:
        return ()
    return (
        f"{unanswered:,} questions were closed without an answer: whether an answer comes does not depend on what it "
        "would have been.",
    )
