"""A world: a problem together with its hidden truth, and judges who answer from it. No policy ever sees one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick._cached import cached_property
from surepick.answer import Places
from surepick.glm import probability_of_yes, variance
from surepick.identify import DrawnAnswers, Problem, Verdict
from surepick.limits import Instance
from surepick.session import Question


@dataclass(frozen=True, eq=False)
class World:
    """A problem and the θ* from which its answers are drawn."""

    name: str
    problem: Problem
    theta: Floats

    def __post_init__(self) -> None:
        theta = validate.vector("theta", self.theta, length=self.problem.items.shape[1], tiny=True)
        object.__setattr__(self, "theta", theta)

    @cached_property
    def scores(self) -> Floats:
        """zᵀθ* of every item."""
        return self.problem.items @ self.theta

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: number for number, names in enumerate(self.problem.aliases) for name in names}

    def vector(self, question: Question) -> Floats:
        """The question's vector in the coordinates of this world, whose items are known by name."""
        if question.kind == "vector":
            return question.vector
        rows = self.problem.items[[self._number[name] for name in question.items]]
        if question.about_set:
            return np.asarray(rows)
        return np.asarray(rows[0] - rows[1] if len(rows) == 2 else rows[0])

    @property
    def best(self) -> str:
        """Name of the best item."""
        return self.problem.names[int(np.argmax(self.scores))]

    @cached_property
    def gap(self) -> float:
        """By how much the best item is better than the second."""
        first, second = np.sort(self.scores)[::-1][:2]
        return float(first - second)

    @cached_property
    def kappa(self) -> float:
        """κ₀: the least variance of an answer to any measurement vector."""
        return float(variance(self.problem.measurements @ self.theta).min())

    @property
    def instance(self) -> Instance:
        """The world as input of `surepick.limits`; a tie for the best is refused."""
        return Instance(self.problem.measurements, self.problem.items, self.theta, names=self.problem.names)

    @property
    def norm(self) -> float:
        """Length of θ*."""
        return float(np.linalg.norm(self.theta))

    def shortfall(self, verdict: Verdict) -> float:
        """By how much the item named best is worse than the best."""
        return float(self.scores.max() - self.scores[self.problem.index(verdict.best)])

    def correct(self, verdict: Verdict) -> bool:
        """Whether the item named best is one of the best, or within the verdict's epsilon."""
        return self.shortfall(verdict) <= verdict.epsilon + 1e-12

    def judge(self, seed: Any = 0) -> "SimulatedJudge":
        """A judge who answers from this world."""
        return SimulatedJudge(self.theta, np.random.default_rng(seed))


class SimulatedJudge(DrawnAnswers):
    """Answers drawn from the logistic model: one at a time, or one binomial draw per vector for whole stages."""

    def __call__(self, question: Question) -> int | Places:
        """1 with probability 1/(1+exp(−xᵀθ*)); places by the model of Plackett and Luce, for a set."""
        return drawn_answer(question, question.vector, self.theta, self.rng)


@dataclass(frozen=True, eq=False)
class ReproducibleJudge:
    """Answers of a world; each depends on the seed and the question's number alone, so resuming changes nothing.

    Items are known by name: the problem of the session may have other features than the world's.
    """

    world: World
    seed: int

    def __call__(self, question: Question) -> int | Places:
        """1 with probability 1/(1+exp(−xᵀθ)); places by the model of Plackett and Luce, for a set."""
        return drawn_answer(
            question, self.world.vector(question), self.world.theta, np.random.default_rng([self.seed, question.id, 2])
        )


def drawn_answer(question: Question, vector: Floats, theta: Floats, rng: np.random.Generator) -> int | Places:
    """An answer drawn from the logistic model, or for a set from that of Plackett and Luce with the same scores."""
    if question.about_set:
        [order] = DrawnAnswers(theta, rng).orders(vector, question.top, 1)
        return tuple(place + 1 for place in order)
    return int(rng.random() < probability_of_yes(vector @ theta))


@dataclass(frozen=True, eq=False)
class ExpectedJudge:
    """Answers a stage with the expected number of ones: what a policy does without luck, good or bad."""

    theta: Floats

    def wins(self, vectors: Floats, pulls: Integers) -> ArrayLike:
        """pulls·μ, rounded, and neither all nor none where pulls allow."""
        ones = np.rint(pulls * probability_of_yes(vectors @ self.theta))
        least = np.minimum(1, pulls // 2)
        return np.clip(ones, least, pulls - least).astype(np.int64)
