"""Plausible truths given the answers so far, and searches simulated whole stages at a time."""

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import scipy.linalg as sl
from numpy.typing import ArrayLike
from scipy.special import softmax

from surepick._arrays import Floats, Integers
from surepick.design import Rows
from surepick.design.cutting_planes import whitened_basis
from surepick.glm import Tally, fit, probability_of_yes
from surepick.identify.policy import Plan, Policy, Wait, require_sets_allowed, updated
from surepick.identify.problem import Problem
from surepick.identify.sets import Order
from surepick.identify.verdict import Verdict
from surepick.linalg import factor

USUAL_LOGIT = 2.0
"""Standard deviation of the log-odds of an answer before any is in: pooled crowds have a κ₀ of .03 to .2."""

SPREADS = (USUAL_LOGIT / 2, USUAL_LOGIT, 2 * USUAL_LOGIT)
"""Standard deviations thought equally likely beforehand: single people are surer of their answers than crowds."""


def plausible_truths(problem: Problem, answers: Tally, draws: int, seed: int) -> Floats:
    """A sample of θ given answers, as rows, in the span of the measurements.

    Beforehand θ is normal with one of `SPREADS`; given the answers each is normal by Laplace's approximation, and the
    spreads have the weights of their approximate evidence.
    """
    frame = whitened_basis(Rows(problem.measurements))  # the mean of xxᵀ is the identity in it
    inside = Tally(answers.vectors @ frame.transform, answers.pulls, answers.wins)
    # In that basis, with the prior N(0, I·spread²/rank), the variance of xᵀθ is spread² on average over the rows x.
    guesses = [_guess(inside, frame.rank, frame.rank / spread**2) for spread in SPREADS]
    weights = softmax([guess.log_evidence for guess in guesses])
    rng = np.random.default_rng([seed, 7])
    chosen = rng.choice(len(guesses), size=draws, p=weights)
    noise = rng.normal(size=(draws, frame.rank))
    sample = np.array(
        [guesses[place].centre + guesses[place].spread @ one for place, one in zip(chosen, noise, strict=True)]
    )
    return np.asarray(sample @ frame.transform.T)


@dataclass(frozen=True, eq=False)
class _Guess:
    """A normal distribution of θ, and how well it explains the answers."""

    centre: Floats
    spread: Floats
    """A root of the covariance."""
    log_evidence: float


def _guess(answers: Tally, rank: int, ridge: float) -> _Guess:
    centre, information, loss = np.zeros(rank), np.zeros((rank, rank)), 0.0
    if answers.pulls.any():
        estimate = fit(answers, ridge=ridge)
        centre, information, loss = estimate.theta, estimate.information, estimate.loss
    shape = factor(information + ridge * np.eye(rank))
    assert shape is not None  # the ridge sees to it
    root = sl.solve_triangular(shape.lower, np.eye(rank), lower=True, trans="T") / shape.diagonal[:, None]
    # Laplace: log evidence = −loss − (ridge/2)‖θ̂‖² + (d/2)·log ridge − ½·log det(H + ridge·I), up to a constant.
    volume = float(np.sum(np.log(shape.lower.diagonal() * shape.diagonal)))
    return _Guess(centre, root, -loss - ridge / 2 * float(centre @ centre) + rank / 2 * math.log(ridge) - volume)


@runtime_checkable
class PlanJudge(Protocol):
    """A judge that answers many questions at once, such as a simulated world."""

    def wins(self, vectors: Floats, pulls: Integers) -> ArrayLike:
        """How many of the answers to each vector are 1."""


@dataclass(frozen=True, eq=False)
class DrawnAnswers:
    """Answers drawn from the logistic model with an assumed θ, one binomial draw for each vector."""

    theta: Floats
    rng: np.random.Generator

    def wins(self, vectors: Floats, pulls: Integers) -> ArrayLike:
        """How many of the answers to each vector are 1; the cost does not depend on how many there are."""
        return self.rng.binomial(pulls, probability_of_yes(vectors @ self.theta))

    def orders(self, features: Floats, top: int, times: int) -> list[Order]:
        """Rankings of the top places of items with these features, as in the model of Plackett and Luce."""
        scores = features @ self.theta + self.rng.gumbel(size=(times, len(features)))
        return [tuple(order) for order in np.argsort(-scores, axis=1)[:, :top].tolist()]


def run(
    problem: Problem,
    policy: Policy[Any],
    judge: PlanJudge,
    *,
    seed: int = 0,
    state: Any | None = None,
    asked: int = 0,
    coarse: float = 0.0,
    stages: int | None = None,
) -> Verdict:
    """Search to the verdict from the start, or from a `state` in which `asked` questions were asked.

    The cost is that of its stages, however many questions they have. Forecasts need less than the exact number of
    questions: with `coarse`, a stage shorter than this share of the questions before it is stretched to it; after
    `stages` of them the search is broken off, with an open verdict.
    """
    require_sets_allowed(problem, policy)
    rng = np.random.default_rng([seed, 1])  # not the stream of a judge with the same seed
    state = policy.start(problem) if state is None else state
    planned, stretched = 0, 0
    while True:
        outcome = policy.plan(state, rng)
        if isinstance(outcome, Verdict):
            # A search that is evaluated less often ends later than a real one, so its last stage counts as planned.
            return _shorter(outcome, stretched)
        if isinstance(outcome, Wait) and outcome.exhausted:  # all that there is to ask was asked
            return policy.verdict(state)
        if isinstance(outcome, Wait):
            raise AssertionError(f"{policy.name} waits though every stage is answered: {outcome.reason}")
        # Whole multiples, so that the proportions of the design, and with them its guarantee, stay.
        times = max(1, int(coarse * asked / outcome.total))
        stretched = (times - 1) * outcome.total
        if stretched:
            outcome = replace(outcome, pulls=times * outcome.pulls)
        if problem.show > 2:
            orders = drawn_orders(problem, outcome, outcome.pulls, judge)
            none = outcome.tally(problem, np.zeros_like(outcome.pulls), np.zeros_like(outcome.pulls))
            state = updated(policy, policy.apply(state, outcome), outcome.stage, none, (), orders)
        else:
            wins = judge.wins(problem.vectors(outcome.measurements), outcome.pulls)
            state = policy.update(policy.apply(state, outcome), outcome.stage, outcome.tally(problem, wins))
        planned, asked = planned + 1, asked + outcome.total
        if planned == stages:
            return policy.verdict(state)


def drawn_orders(problem: Problem, plan: Plan, times: Integers, judge: PlanJudge) -> list[list[Order]]:
    """Answers of the judge to questions about sets, this many to each of a stage."""
    return [
        cast("Any", judge).orders(problem.items[list(problem.shown(row))], problem.top, asked)
        for row, asked in zip(plan.measurements.tolist(), times.tolist(), strict=True)
    ]


def _shorter(verdict: Verdict, by: int) -> Verdict:
    """The verdict with `by` fewer questions in the last stage."""
    if by == 0:
        return verdict
    *others, last = verdict.questions_by_stage
    return replace(verdict, questions_by_stage=(*others, last - by))
