"""A search from beginning to end, whole stages at once: for studies, forecasts and simulated judges."""

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from surepick._arrays import Floats, Integers
from surepick.glm import probability_of_yes
from surepick.identify.policy import Policy, Wait
from surepick.identify.problem import Problem
from surepick.identify.verdict import Verdict


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
    rng = np.random.default_rng([seed, 1])  # not the stream of a judge with the same seed
    state = policy.start(problem) if state is None else state
    planned, stretched = 0, 0
    while True:
        outcome = policy.plan(state, rng)
        if isinstance(outcome, Verdict):
            # A search that is evaluated less often ends later than a real one, so its last stage counts as planned.
            return _shorter(outcome, stretched)
        if isinstance(outcome, Wait):
            raise AssertionError(f"{policy.name} waits though every stage is answered: {outcome.reason}")
        # Whole multiples, so that the proportions of the design, and with them its guarantee, stay.
        times = max(1, int(coarse * asked / outcome.total))
        stretched = (times - 1) * outcome.total
        if stretched:
            outcome = replace(outcome, pulls=times * outcome.pulls)
        wins = judge.wins(problem.measurements[outcome.measurements], outcome.pulls)
        state = policy.update(policy.apply(state, outcome), outcome.stage, outcome.tally(problem, wins))
        planned, asked = planned + 1, asked + outcome.total
        if planned == stages:
            return policy.verdict(state)


def _shorter(verdict: Verdict, by: int) -> Verdict:
    """The verdict with `by` fewer questions in the last stage."""
    if by == 0:
        return verdict
    *others, last = verdict.questions_by_stage
    return replace(verdict, questions_by_stage=(*others, last - by))
