"""How many questions a policy will take, by simulating searches: from a guess of the truth, or on from a session.

A guess may be one θ or a sample of them; for a running session it is a sample around what its answers say. A forecast
is as good as the guess, so it is never called proved. The least number that any policy needs is in `surepick.limits`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick.errors import InvalidInput
from surepick.glm import Tally
from surepick.identify.policy import Partial, Plan, Policy, pooled_counts, updated
from surepick.identify.problem import Problem
from surepick.identify.sets import Orders
from surepick.identify.simulation import DrawnAnswers, drawn_orders, plausible_truths, run
from surepick.identify.verdict import Forecast, Verdict

FEWEST = 9
"""Simulated searches of which the least and the largest are the ends of an 80% interval."""

FRESH = 0.25
"""A forecast serves until this share of answers more is in than it was made with."""

COARSE = 0.1
"""A simulated session is evaluated whenever this share of questions more is in: less often than a real one."""

MOST_STAGES = 80
"""A session simulated further than this (two thousand times as long) is broken off: it is near a tie."""


@dataclass(frozen=True, eq=False)
class OpenStage:
    """A stage as far as it is answered."""

    plan: Plan
    pulls: Integers
    wins: Integers
    left: Integers
    """Questions without an answer that may still get one."""
    partial: Partial = ()
    """Scores of answers that are neither 1 nor 0."""
    orders: Orders = ()
    """Answers to questions about sets."""

    @property
    def answers(self) -> Integers:
        """Answers to each question that are wins, losses or orders."""
        return self.pulls + np.array([len(told) for told in self.orders], dtype=np.int64) if self.orders else self.pulls


def forecast(
    problem: Problem,
    policy: Policy[Any],
    theta: ArrayLike,
    *,
    runs: int = 20,
    seed: int = 0,
    price: float | None = None,
) -> Forecast:
    """Simulate `runs` searches of the policy, answers drawn from θ, or from a row of it in turn where it has several.

    Costs as much as `runs` searches with whole stages answered at once: their stages count, not their questions.

    >>> from surepick.identify import RageGlm
    >>> problem = Problem.from_pairs({"red": [1.0, 0.0], "blue": [0.0, 1.0]})
    >>> forecast(problem, RageGlm(), [1.0, 0.0], runs=3).decided
    3
    """
    guesses = np.atleast_2d(np.asarray(theta, dtype=np.float64))
    rows = [validate.vector("theta", guess, length=problem.items.shape[1]) for guess in guesses]
    if runs < 1:
        raise InvalidInput(f"runs must be at least 1, got {runs!r}.")

    def searches() -> Iterator[tuple[Floats, Verdict]]:
        for number in range(runs):
            guess = rows[number % len(rows)]
            judge = DrawnAnswers(guess, np.random.default_rng([seed, number]))
            yield guess, run(problem, policy, judge, seed=number)

    return _collected(problem, policy, searches(), price, answered=0)


def forecast_further(
    problem: Problem,
    policy: Policy[Any],
    state: Any,
    stages: Iterable[OpenStage],
    *,
    draws: int = FEWEST,
    seed: int = 0,
    price: float | None = None,
) -> Forecast:
    """Further questions that a running session will take, by simulating it forward on a sample of plausible truths.

    `Session.progress()` gives state and stages, which are left alone; so this may run in another thread or process. The
    truths are normal around penalised fits of all answers so far (`plausible_truths`). It costs one simulated search
    for each draw, evaluated less often than a real one. A policy that is kept to recorded votes is simulated as if
    there were more votes on the same questions, in any number.
    """
    if draws < 1:
        raise InvalidInput(f"draws must be at least 1, got {draws!r}.")
    policy = getattr(policy, "unrestricted", policy)
    unanswered: list[OpenStage] = []
    answered = left = 0

    def noted() -> Iterator[OpenStage]:
        # One after the other: all stages of a long search at once take much memory, and only the open ones are kept.
        nonlocal answered, left
        for stage in stages:
            answered += int(stage.answers.sum())
            left += int(stage.left.sum())
            # A session closes stages in their order, so those after the first open one may lack answers that never
            # come.
            if unanswered or stage.left.any():
                unanswered.append(stage)
            yield stage

    sample = plausible_truths(problem, _all_answers(problem, noted()), draws, seed)
    asked = answered + left

    def searches() -> Iterator[tuple[Floats, Verdict]]:
        for number, theta in enumerate(sample):
            judge, ahead = DrawnAnswers(theta, np.random.default_rng([seed, number])), state
            for stage in unanswered:
                plan, filled, orders = stage.plan, stage.answers + stage.left, stage.orders
                wins, pulls = stage.wins, stage.pulls
                if problem.show > 2:
                    drawn = drawn_orders(problem, plan, stage.left, judge)
                    orders = [[*told, *more] for told, more in zip(orders or [()] * len(drawn), drawn, strict=True)]
                else:
                    wins = wins + np.asarray(judge.wins(problem.vectors(plan.measurements), stage.left))
                    pulls = pulls + stage.left
                ahead = updated(policy, ahead, plan.stage, plan.tally(problem, wins, pulls), stage.partial, orders)
                if (filled < plan.pulls).any():  # what was skipped stays without an answer
                    ahead = policy.close(ahead, plan.stage)
            yield (
                theta,
                run(problem, policy, judge, seed=number, state=ahead, asked=asked, coarse=COARSE, stages=MOST_STAGES),
            )

    return _collected(problem, policy, searches(), price, answered=answered)


def outdated(made_at: int, answered: int) -> bool:
    """Whether a forecast that was made with `made_at` answers should be made again, now that there are `answered`."""
    return not 0 <= answered - made_at <= FRESH * made_at


def _collected(
    problem: Problem,
    policy: Policy[Any],
    searches: Iterable[tuple[Floats, Verdict]],
    price: float | None,
    *,
    answered: int,
) -> Forecast:
    """Simulated searches, each with the θ it was simulated from, as a forecast."""
    price = None if price is None else validate.nonnegative("price", price)
    # A stretched stage may go beyond the budget, which the real search keeps to.
    questions, broken_off, decided, wrong = [], [], 0, 0
    for theta, verdict in searches:
        questions.append(max(0, min(verdict.questions, getattr(policy, "budget", verdict.questions)) - answered))
        broken_off.append(not verdict.status.final)
        if verdict.status.decided:
            scores = problem.items @ theta
            decided += 1
            # Ties for the best, and items within epsilon of it, are right answers.
            wrong += bool(scores.max() - scores[problem.index(verdict.best)] > verdict.epsilon + 1e-12)
    return Forecast(policy.name, np.array(questions), np.array(broken_off), decided, wrong, price)


def _all_answers(problem: Problem, stages: Iterable[OpenStage]) -> Tally:
    """Answers to all stages, one row for each question that has any."""
    pulls, wins = pooled_counts(problem, stages)
    asked = np.flatnonzero(pulls)
    return Tally(problem.vectors(asked), pulls[asked], wins[asked])
