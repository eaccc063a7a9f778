"""Generalised successive elimination (Azizi, Kveton and Ghavamzadeh 2022), fixed budget: halves the items in stages.

The budget is divided evenly over ⌈log₂ items⌉ stages. A stage asks an optimal design for the items that are left,
fits the logistic model to its answers, and keeps the better half. The designs of the paper are solved by Frank–Wolfe
steps; here each question is the one of the largest variance under the design so far, which is such a step.
"""

import math

import numpy as np

from surepick._arrays import Floats
from surepick_experiments.benchmark.challenge import Answer, Challenge, Question
from surepick_experiments.benchmark.methods.counts import Counts, Posterior

SMALL = 0.1
"""Where the design starts, as a share of one question."""


class SuccessiveElimination:
    """Stages of `budget`/⌈log₂ items⌉ questions."""

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        self.challenge, self.rng = challenge, rng
        self.left = np.arange(challenge.items)
        self.stages = max(1, math.ceil(math.log2(challenge.items)))
        self._begin()

    def _begin(self) -> None:
        self.counts = Counts(self.challenge)
        points = self.challenge.points
        self.inverse = np.eye(points.shape[1]) / (SMALL * float((points**2).sum(axis=1).mean()))

    def ask(self) -> Question:
        """The question about items that are left whose answer is known least by the design so far."""
        points = self.challenge.points[self.left]
        products = points @ self.inverse @ points.T
        variance: Floats = products.diagonal()
        if not self.challenge.pairs:
            first = self._any_of_largest(variance)
            return Question(int(self.left[first]))
        apart = np.triu(variance[:, None] + variance[None, :] - 2 * products, 1)
        first, second = divmod(self._any_of_largest(apart.ravel()), len(self.left))
        return Question(int(self.left[first]), int(self.left[second]))

    def _any_of_largest(self, values: Floats) -> int:
        return int(self.rng.choice(np.flatnonzero(values >= values.max() * (1 - 1e-9))))

    def tell(self, question: Question, answer: Answer) -> None:
        """Count it; at the end of a stage keep the better half."""
        self.counts.add(question, answer)
        points = self.challenge.points
        row = points[question.first] - (0 if question.second is None else points[question.second])
        seen = self.inverse @ row
        self.inverse -= np.outer(seen, seen) / (1 + row @ seen)
        if self.counts.asked >= self.challenge.budget // self.stages and len(self.left) > 2:
            fitted = self._fitted()[self.left]
            order = np.lexsort((self.rng.random(len(fitted)), -fitted))  # equals in random order
            self.left = np.sort(self.left[order[: math.ceil(len(self.left) / 2)]])
            self._begin()

    def _fitted(self) -> Floats:
        model = Posterior.usual(self.counts)
        model.refit(8)
        return model.scores

    def best(self) -> int:
        """Of the items that are left, the highest fitted score in this stage."""
        return int(self.left[np.argmax(self._fitted()[self.left])])

    def done(self) -> bool:
        """Never: it ends with its budget."""
        return False
