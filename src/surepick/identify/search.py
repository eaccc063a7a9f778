"""A search from beginning to end, whole stages at once: what studies, forecasts and simulated judges need."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surepick.identify.policy import Policy, Wait
from surepick.identify.problem import Problem
from surepick.identify.verdict import Verdict
from surepick.logistic import probability_of_yes

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@runtime_checkable
class PlanJudge(Protocol):
    """A judge who answers many questions at once, such as a simulated world: one number a vector."""

    def wins(self, vectors: Floats, pulls: Integers) -> ArrayLike:
        """How many of the answers to each vector are 1."""


@dataclass(frozen=True, eq=False)
class DrawnAnswers:
    """Answers drawn from the logistic model with an assumed θ, one binomial draw a vector."""

    theta: Floats
    rng: np.random.Generator

    def wins(self, vectors: Floats, pulls: Integers) -> ArrayLike:
        """How many of the answers to each vector are 1; the cost does not depend on how many there are."""
        return self.rng.binomial(pulls, probability_of_yes(vectors @ self.theta))


def run(
    problem: Problem,
    policy: Policy[Any],
    judge: PlanJudge,
    *,
    seed: int = 0,
    state: Any | None = None,
    stages: int | None = None,
) -> Verdict:
    """Search from the start or from a state: the cost depends on the stages, not on the questions.

    With `stages` it is broken off after so many more of them, with an open verdict.
    """
    rng = np.random.default_rng([seed, 1])
    state = policy.start(problem) if state is None else state
    planned = 0
    while True:
        state, outcome = policy.plan(state, rng)
        if isinstance(outcome, Verdict):
            return outcome
        if isinstance(outcome, Wait):
            raise AssertionError(f"{policy.name} waits though every stage is answered: {outcome.reason}")
        wins = judge.wins(problem.measurements[outcome.measurements], outcome.pulls)
        state = policy.absorb(state, outcome.stage, outcome.tally(problem, wins))
        planned += 1
        if planned == stages:
            return policy.verdict(state)
