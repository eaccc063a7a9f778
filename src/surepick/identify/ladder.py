"""The ladder: what the answers of one search prove under each assumption (docs/assumptions.md).

"winner"     one item wins each of its comparisons at least half the time        the policy Winner
"features"   answers are logistic in the features                                the policies Exclusion and Anytime
"population" the taste is drawn from a known population                           the policy Posterior

One policy plans the search and ends it; the evidence of the others follows. At every stage its bets are fixed from the
answers to earlier stages only, so each claim holds with the whole delta, whoever chose the questions and whenever the
claim is read: nothing is split between them. Following is done when a claim is read, and costs the planner nothing.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np

from surepick import validate
from surepick.checks import Check
from surepick.errors import InvalidInput
from surepick.glm import Tally, probability_of_yes
from surepick.guarantee import Guarantee
from surepick.identify.anytime.policy import Anytime
from surepick.identify.exclusion.policy import Exclusion
from surepick.identify.forecast import COARSE, MOST_STAGES, OpenStage, forecast_further
from surepick.identify.policy import AnsweredStage, Policy, updated
from surepick.identify.population import Population
from surepick.identify.posterior import Posterior
from surepick.identify.problem import NOTHING, Problem
from surepick.identify.simulation import DrawnAnswers, plausible_truths, run
from surepick.identify.verdict import Claim, Forecast, Status, Verdict
from surepick.identify.winner import ASSUMPTION, Winner
from surepick.limits import winner_lower_bound

Assumption = Literal["winner", "features", "population"]
"""What a guarantee may rest on, the weaker assumption first."""

ASSUMPTIONS: tuple[Assumption, ...] = ("winner", "features", "population")

SENTENCES: dict[Assumption, str] = {
    "winner": ASSUMPTION,
    "features": "The features explain every answer: all judges answer by one logistic model of them.",
    "population": (
        "The judge's taste is drawn from the stated population, so the claim is about its people on average, not about "
        "each of them."
    ),
}

SET_SENTENCES: dict[Assumption, str] = {
    "winner": "One item is always at least as likely to be picked as any other that is shown, whatever the features.",
    "features": "The features explain every answer: all judges pick and rank by one Plackett-Luce model of them.",
}
"""The same for questions that show more than two items."""

PLACES_SENTENCES = SET_SENTENCES | {
    "winner": "In rankings one item is placed above each other one shown at least as often as below it, on average "
    "over the inputs.",
}
"""The same for rankings of systems, which show an input."""

LADDER_POLICIES: dict[str, Assumption] = {
    "winner": "winner",
    "anytime": "features",
    "exclusion": "features",
    "posterior": "population",
}
"""The assumption that each policy of the ladder needs, by the policy's name."""

OVER_BOUND = 1.6
"""Questions of Winner over the lower bound of the claim: the median over the worlds of docs/assumptions.md."""

TRUTHS = 15
"""Truths drawn for a first estimate of the costs."""

SIMULATED_COORDINATES, SIMULATED_ITEMS = 12, 40
"""In more coordinates the claim "features" is not simulated beforehand; of more items only the best ones are."""

MOST_COORDINATES = 60
"""Claim "features" does not follow in more coordinates than this: a stage would take longer than a person does."""


HUMAN_COORDINATES, HUMAN_ITEMS = 12, 100
"""Up to these numbers "features" is proved by Exclusion where items are compared: its cost grows with both."""


def compares(problem: Problem) -> bool:
    """Whether every question compares two items, without a coordinate for the position."""
    return not problem.position and not bool(np.any(problem.about[: problem.listed] == NOTHING))


def has_features(problem: Problem) -> bool:
    """Whether features say more than which item is which."""
    return problem.guide is not None


def default_assumption(problem: Problem, *, one_person: bool = False) -> Assumption:
    """What ends a search where nothing else is said (docs/assumptions.md, "Which one ends the search").

    One person who answers each question once meets the runner-up once, so "winner" proves a short list and seldom one
    item; features decide then, if there are any.
    """
    if not compares(problem):
        return "features"
    return "features" if one_person and has_features(problem) else "winner"


def policy_for(
    problem: Problem, assume: Assumption, *, population: Population | None = None, **limits: Any
) -> Anytime | Exclusion | Winner | Posterior:
    """The policy that ends a search by this claim.

    Tastes are drawn from `population` where that is assumed; for "winner" it only predicts.

    Without features "features" is the model of Bradley and Terry, under which one item wins all of its comparisons at
    least half the time. So it is also proved by Winner, and sooner: 5 to 37 items take 0.3 to 0.7 times the questions.
    For picks and rankings "features" is the model of Plackett and Luce, which likewise implies what Winner assumes.
    """
    validate.one_of("assume", assume, ASSUMPTIONS)
    if assume == "population":
        return Posterior(population=population, **limits)
    if assume == "winner" or problem.show > 2 or (compares(problem) and not has_features(problem)):
        return Winner(population=population, **limits)
    if population is not None:
        raise InvalidInput(
            f"A population is not used where assume={assume!r} ends the search; choose assume='winner' or "
            "assume='population', or leave the population out."
        )
    return features_policy(problem)(**limits)


def features_policy(problem: Problem) -> type[Anytime] | type[Exclusion]:
    """The policy for the claim "features": Exclusion where a few items with a few features are compared.

    It depends on what is known before the first question only. There it takes about 0.7 times Anytime's questions
    (docs/exclusion.md); beyond, and for other questions, Anytime is the better or the quicker one.
    """
    human = problem.span.rank <= HUMAN_COORDINATES and len(problem.items) <= HUMAN_ITEMS
    return Exclusion if compares(problem) and human and not (problem.every_pair or problem.once) else Anytime


def expected_costs(problem: Problem, *, delta: float, seed: int = 0, seconds: float = 0.5) -> dict[Assumption, float]:
    """About how many questions each claim takes, before any is asked; a heuristic. Comparisons only.

    For a truth in the middle of those drawn from what is usual (`plausible_truths`): for "winner" `OVER_BOUND` times
    its lower bound, in closed form; for "features" the median of simulated searches, at least one and no more than fit
    into `seconds`. A claim that the problem does not have, or that takes too long to simulate, is left out.
    """
    truths = plausible_truths(problem, Tally(problem.measurements[:1], [0], [0]), TRUTHS, seed)
    bounds = []
    for theta in truths:
        scores = problem.items @ theta
        chances = probability_of_yes(scores[:, None] - scores[None, :])
        bounds.append(OVER_BOUND * winner_lower_bound(chances, delta=delta))
    middle = float(np.median(bounds))
    costs: dict[Assumption, float] = {"winner": middle}
    if has_features(problem) and problem.span.rank <= SIMULATED_COORDINATES:
        began, found = time.perf_counter(), list[int]()
        # The truths nearest to the middle first: their costs differ by orders of magnitude, and few are simulated.
        for number in np.argsort(np.abs(np.log(bounds) - math.log(middle))).tolist():
            # Features tell the best items from all others at once, so these are left out of the simulation.
            best = Problem.from_pairs(problem.items[np.argsort(-(problem.items @ truths[number]))[:SIMULATED_ITEMS]])
            judge = DrawnAnswers(truths[number], np.random.default_rng([seed, number]))
            policy = features_policy(best)(delta=delta)
            found.append(run(best, policy, judge, coarse=COARSE, stages=MOST_STAGES).questions)
            if time.perf_counter() - began > seconds:
                break
        costs["features"] = float(np.median(found))
    return costs


@dataclass(frozen=True, eq=False)
class Follower:
    """The evidence of a policy that plans nothing: it takes stages as another policy planned them."""

    assume: Assumption
    policy: Anytime | Winner
    state: Any
    stages: int = 0
    """How many stages it has taken."""

    def after(self, problem: Problem, stages: Sequence[AnsweredStage]) -> "Follower":
        """After all these stages, of which it takes those it has not taken before.

        One stage at a time: a later question may depend on the answers to an earlier one, and so may not be known to
        the bets on it. A few milliseconds per stage, for "features" the ridge fits.
        """
        policy, state = cast("Any", self.policy), self.state  # either, with a state of its own type
        for stage in stages[self.stages :]:
            if problem.show > 2:  # sets are too many to count each, and only Winner asks about them
                asked = zip(stage.plan.measurements.tolist(), stage.plan.pulls.tolist(), strict=True)
                plan = policy.stage_asking(state, dict(asked))
            else:
                counts = np.zeros(len(problem.about), dtype=np.int64)
                counts[stage.plan.measurements] = stage.plan.pulls
                plan = policy.stage_of(state, counts, prove=False)
            state = policy.apply(state, plan)
            # A stage may list its measurements in another order than the follower's plan of the same stage.
            order = np.argsort(stage.plan.measurements, kind="stable")
            tally = plan.tally(problem, stage.wins[order], stage.pulls[order])
            partial = [stage.partial[place] for place in order] if stage.partial else ()
            orders = [stage.orders[place] for place in order] if stage.orders else ()
            state = updated(policy, state, plan.stage, tally, partial, orders)
            # Only evaluated stages are followed, so nothing more is coming.
            state = policy.close(state, plan.stage).evaluated
            if isinstance(policy, Anytime):
                state = state.without_last_factors  # a claim that follows has no certificate
        return replace(self, state=state, stages=len(stages))

    def claim(self, problem: Problem, stages: Sequence[AnsweredStage]) -> Claim:
        """What it proves by now."""
        return _claim(
            self.assume,
            self.policy.verdict(self.state),
            ends_search=False,
            forecaster=lambda: self._forecast(problem, stages),
        )

    def _forecast(self, problem: Problem, stages: Sequence[AnsweredStage]) -> Forecast:
        none = [np.zeros_like(stage.pulls) for stage in stages]
        answered = [
            OpenStage(stage.plan, stage.pulls, stage.wins, left, stage.partial)
            for stage, left in zip(stages, none, strict=True)
        ]
        return forecast_further(problem, self.policy, self.state, answered)


@dataclass(frozen=True, eq=False)
class Ladder:
    """All claims of one search: that of the policy which plans it, and those that follow."""

    problem: Problem
    policy: Policy[Any]
    followers: tuple[Follower, ...]

    @classmethod
    def of(cls, problem: Problem, policy: Policy[Any]) -> "Ladder":
        """Before the first question. Nothing follows a policy that is not of the ladder."""
        ends = LADDER_POLICIES.get(policy.name)
        followers = []
        # "features" chooses and predicts by a matrix of questions, which very many items have only in part.
        # Answers drawn without replacement depend on one another, which its model does not know.
        small = (
            problem.show == 2
            and not (problem.every_pair or problem.once)
            and has_features(problem)
            and problem.span.rank <= MOST_COORDINATES
        )
        if ends in ("features", "population") and compares(problem):
            followers.append(_follower("winner", problem, policy))
        if ends in ("winner", "population") and small:
            followers.append(_follower("features", problem, policy))
        return cls(problem, policy, tuple(followers))

    def after(self, stages: Sequence[AnsweredStage]) -> "Ladder":
        """With these evaluated stages taken, in the order of planning."""
        return replace(self, followers=tuple(follower.after(self.problem, stages) for follower in self.followers))

    def claims(self, verdict: Verdict, stages: Sequence[AnsweredStage]) -> tuple[Claim, ...]:
        """Every claim, the weakest assumption first; `verdict` is that of the policy which plans the search."""
        ends = LADDER_POLICIES.get(self.policy.name)
        if ends is None:
            return ()
        found = {
            ends: _claim(ends, verdict, ends_search=True, forecaster=verdict.forecaster),
            **{follower.assume: follower.claim(self.problem, stages) for follower in self.followers},
        }
        if self.problem.show > 2 and has_features(self.problem):
            # A Plackett-Luce model implies what Winner assumes, so all that it proves is proved for "features", too.
            found["features"] = _claim("features", verdict, ends_search=False, forecaster=verdict.forecaster)
        sentences = (
            PLACES_SENTENCES if self.problem.by_places else SET_SENTENCES if self.problem.show > 2 else SENTENCES
        )
        return tuple(replace(found[assume], assumption=sentences[assume]) for assume in ASSUMPTIONS if assume in found)


def questioned(verdict: Verdict, checks: Iterable[Check]) -> Verdict:
    """The verdict with what the checks say of its assumptions.

    A claim whose assumption an alarm contradicts is no longer proved. The reason then names the alarm, and the claim
    that does not need the assumption.
    """
    claims = questioned_claims(verdict.claims, checks)
    ends = next((claim for claim in claims if claim.ends_search), None)
    if ends is None or not ends.refuted_by:
        return replace(verdict, known_claims=claims, claimant=None)
    reason = (
        f"The answers contradict what this assumes ({', '.join(ends.refuted_by)}), so it is not proved. "
        f"{_way_out(claims)}"
    )
    return replace(
        verdict,
        guarantee=ends.guarantee,
        refuted_by=ends.refuted_by,
        reason=f"{verdict.reason} {reason}".strip(),
        known_claims=claims,
        claimant=None,
    )


def questioned_claims(claims: Iterable[Claim], checks: Iterable[Check]) -> tuple[Claim, ...]:
    """The claims, each with the alarms that contradict its assumption; such a claim is no longer proved."""
    alarms, result = [check for check in checks if check.alarm], list[Claim]()
    for claim in claims:
        refuted_by = tuple(check.name for check in alarms if claim.assume in check.refutes)
        result.append(replace(claim, refuted_by=refuted_by, guarantee=Guarantee.HEURISTIC) if refuted_by else claim)
    return tuple(result)


def _way_out(claims: Sequence[Claim]) -> str:
    """The claim that does not need what was refuted, as a sentence."""
    other = next((claim for claim in claims if not claim.refuted_by), None)
    if other is None:
        return "No other claim holds without it; see what the alarm says."
    if other.reached:
        return f"Without that assumption ({other.assume}) {other.best} is the best item, which is proved."
    further = "" if other.forecast is None else f", {other.forecast.sentence}"
    return (
        f"The claim {other.assume!r} does not need it: {len(other.surviving)} items are left there{further}; "
        f"search with assume={other.assume!r}."
    )


def _follower(assume: Assumption, problem: Problem, planning: Policy[Any]) -> Follower:
    """With the limits of the policy that plans, and what it knows of people."""
    limits: dict[str, Any] = {name: getattr(planning, name) for name in ("delta", "epsilon")}
    limits["missing"] = getattr(planning, "missing", "ignorable")
    population = getattr(planning, "population", None)
    # A study may have many thousands of answers, and Exclusion keeps each of them; Anytime keeps tallies.
    policy = Winner(population=population, **limits) if assume == "winner" else Anytime(**limits)
    return Follower(assume, policy, policy.start(problem))


def _claim(
    assume: Assumption, verdict: Verdict, *, ends_search: bool, forecaster: Callable[[], Forecast] | None
) -> Claim:
    return Claim(
        assume=assume,
        assumption=SENTENCES[assume],
        status=verdict.status,
        best=verdict.best,
        surviving=verdict.surviving,
        guarantee=verdict.guarantee,
        ends_search=ends_search,
        rivals=verdict.rivals,
        reason=verdict.reason,
        forecaster=None if verdict.status.decided or verdict.status is Status.NO_WINNER else forecaster,
    )
