"""How many questions a policy will take, by simulating searches: from a guess of the truth, or on from a session.

A guess may be one θ or a sample of them; for a running session it is a sample around what its answers say. A forecast
is as good as the guess, so it is never called proved. The least number that any policy needs is in `surepick.limits`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sl
from numpy.typing import ArrayLike, NDArray

from surepick import validate
from surepick.design import Rows
from surepick.design.frame import frame_of
from surepick.errors import InvalidInput
from surepick.guarantee import Guarantee
from surepick.identify import Plan, Policy, Problem
from surepick.linalg import factor
from surepick.logistic import Tally, fit
from surepick.session import Session, run
from surepick.worlds import World

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

USUAL_LOGIT = 2.0
"""Standard deviation of the log-odds of an answer before any is in: pooled crowds have a κ₀ of .03 to .2."""


@dataclass(frozen=True)
class Forecast:
    """Questions of simulated searches, one entry a search."""

    policy: str
    questions: Integers
    decided: int
    """Searches that ended with a decision; the others ran out of budget, so that their number is too small."""
    wrong: int
    """Searches that decided for another item than the best."""
    price: float | None = None
    """Of one question."""
    guarantee: Guarantee = Guarantee.HEURISTIC

    @property
    def expected(self) -> float:
        """Mean number of questions."""
        return float(self.questions.mean())

    def interval(self, coverage: float = 0.8) -> tuple[float, float]:
        """Quantiles between which this share of the simulated searches ended."""
        tail = (1 - validate.probability("coverage", coverage)) / 2
        low, high = np.quantile(self.questions, [tail, 1 - tail])
        return float(low), float(high)

    @property
    def cost(self) -> float | None:
        """Expected cost, where a price is given."""
        return None if self.price is None else self.price * self.expected


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

    Costs as much as so many searches with whole stages answered at once: their stages count, not their questions.

    >>> from surepick.identify import RageGlm
    >>> problem = Problem.from_pairs({"red": [1.0, 0.0], "blue": [0.0, 1.0]})
    >>> forecast(problem, RageGlm(), [1.0, 0.0], runs=3).decided
    3
    """
    guesses = np.atleast_2d(np.asarray(theta, dtype=np.float64))
    rows = [validate.vector("theta", guess, length=problem.items.shape[1]) for guess in guesses]
    if runs < 1:
        raise InvalidInput(f"runs must be at least 1, got {runs!r}.")
    price = None if price is None else validate.nonnegative("price", price)
    questions, decided, wrong = np.zeros(runs, dtype=np.int64), 0, 0
    for number in range(runs):
        world = World("forecast", problem, rows[number % len(rows)])
        verdict = run(problem, policy, world.judge([seed, number]), seed=number)
        questions[number] = verdict.questions
        decided += verdict.status.decided
        wrong += verdict.status.decided and not world.correct(verdict)
    return Forecast(policy.name, questions, decided, wrong, price)


def forecast_session(session: Session, *, draws: int = 40, seed: int = 0, price: float | None = None) -> Forecast:
    """Further questions that a running session will take, by simulating it forward on a sample of plausible truths.

    The sample is normal around the penalised fit of all answers so far, with the curvature there (Laplace); before any
    answer the log-odds of an answer have a spread of `USUAL_LOGIT`. The session itself is left alone.
    """
    if draws < 1:
        raise InvalidInput(f"draws must be at least 1, got {draws!r}.")
    price = None if price is None else validate.nonnegative("price", price)
    state, stages = session.progress()
    problem, policy = session.problem, session.policy
    answered = sum(int(pulls.sum()) for _, pulls, _ in stages)
    sample = plausible_truths(problem, _all_answers(problem, stages), draws, seed)
    questions, decided, wrong = np.zeros(draws, dtype=np.int64), 0, 0
    for number, theta in enumerate(sample):
        world = World("forecast", problem, theta)
        judge, ahead = world.judge([seed, number]), state
        for plan, pulls, wins in stages:
            left = plan.pulls - pulls
            if left.any():
                more = np.asarray(judge.wins(problem.measurements[plan.measurements], left))
                ahead = policy.absorb(ahead, plan.stage, plan.tally(problem, wins + more))
        verdict = run(problem, policy, judge, seed=number, state=ahead)
        questions[number] = max(0, verdict.questions - answered)
        decided += verdict.status.decided
        wrong += verdict.status.decided and not world.correct(verdict)
    return Forecast(policy.name, questions, decided, wrong, price)


def plausible_truths(problem: Problem, answers: Tally, draws: int, seed: int) -> Floats:
    """A sample of θ given answers, one a row: normal, by Laplace's approximation, in the span of the measurements."""
    frame = frame_of(Rows(problem.measurements))
    ridge = frame.rank / USUAL_LOGIT**2  # the mean of xxᵀ is the identity in the frame
    inside = Tally(answers.vectors @ frame.transform, answers.pulls, answers.wins)
    centre, information = np.zeros(frame.rank), np.zeros((frame.rank, frame.rank))
    if answers.pulls.any():
        estimate = fit(inside, ridge=ridge)
        centre, information = estimate.theta, estimate.information
    shape = factor(information + ridge * np.eye(frame.rank))
    assert shape is not None  # the ridge sees to it
    noise = np.random.default_rng([seed, 7]).normal(size=(draws, frame.rank))
    spread = sl.solve_triangular(shape.lower, noise.T, lower=True, trans="T").T / shape.diagonal
    return np.asarray((centre + spread) @ frame.transform.T)


def _all_answers(problem: Problem, stages: list[tuple[Plan, Integers, Integers]]) -> Tally:
    """Answers to all stages, one row a measurement vector."""
    pulls = np.zeros(len(problem.measurements), dtype=np.int64)
    wins = np.zeros_like(pulls)
    for plan, asked, ones in stages:
        pulls[plan.measurements] += asked
        wins[plan.measurements] += ones
    return Tally(problem.measurements, pulls, wins)
