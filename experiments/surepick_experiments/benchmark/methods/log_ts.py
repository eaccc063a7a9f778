"""Track-and-stop for logistic bandits (after Rivera and Tewari 2024, "Log-TS").

Only the abstract was at hand: sampling that tracks an optimal allocation, and a stop by a confidence set of the kind of
Faury or OFUGLB. So the threshold is that of OFUGLB (Lee, Yun and Jun 2024) in its ellipsoid form, with S = ‖θ*‖ told:

    |yᵀ(θ̂ − θ*)| ≤ √(2(1 + S)(1 + β²))·‖y‖ in (H + λI)⁻¹,   β² = log(1/δ) + d·log max(e, 2eS(1 + S/2)(t − 1)/d),
    λ = 1/(8S²(1 + S))

and the search stops when it separates the leader from every rival. Each question is a greedy step towards the optimal
allocation: the one that shrinks the width to the hardest rival most. One in √t questions is at random.
"""

import math

import numpy as np

from surepick._arrays import Floats
from surepick.glm import variance
from surepick_experiments.benchmark.challenge import Answer, Challenge, Question, portion
from surepick_experiments.benchmark.methods.counts import Counts, Posterior


class LogTs:
    """Refits after every answer; beyond the last checkpoint after every portion."""

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        self.counts, self.rng = Counts(challenge), rng
        self.bound = max(challenge.known["norm"], 0.5)
        self.model = Posterior(self.counts, 1 / (8 * self.bound**2 * (1 + self.bound)))
        points, pairs = challenge.points, challenge.pairs
        first, second = np.triu_indices(challenge.items, 1) if pairs else (np.arange(challenge.items), None)
        self.questions = [
            Question(int(one), None if second is None else int(second[place])) for place, one in enumerate(first)
        ]
        self.rows: Floats = points[first] - (points[second] if second is not None else 0.0)
        self.stopped = False
        self._look()

    def _look(self) -> None:
        """Fit, find the hardest rival of the leader, and see whether all are separated."""
        self.model.refit()
        d, t, bound = len(self.model.theta), self.counts.asked, self.bound
        rivals = np.delete(np.arange(self.counts.challenge.items), self.model.best)
        gaps = self.model.scores[self.model.best] - self.model.scores[rivals]
        y = self.model.points[self.model.best] - self.model.points[rivals]
        self.seen: Floats = self.model.solve(y.T)
        widths = np.sqrt(np.einsum("ij,ji->i", y, self.seen))
        self.hardest = int(np.argmin(gaps / widths))
        lipschitz = (1 + bound / 2) * max(t - 1, 0)
        beta = math.log(1 / self.counts.challenge.delta) + d * math.log(max(math.e, 2 * math.e * bound * lipschitz / d))
        self.stopped = bool(np.all(gaps > math.sqrt(2 * (1 + bound) * (1 + beta)) * widths))

    def ask(self) -> Question:
        """A greedy step, or a random question."""
        asked = self.counts.asked
        if asked < len(self.model.theta) or self.rng.random() < 1 / math.sqrt(asked):
            chosen = int(self.rng.integers(len(self.rows)))
        else:
            weight = variance(self.rows @ self.model.theta)
            lengths = np.einsum("ij,ji->i", self.rows, self.model.solve(self.rows.T))
            gain = weight * (self.rows @ self.seen[:, self.hardest]) ** 2 / (1 + weight * lengths)
            chosen = int(np.argmax(gain))
        question = self.questions[chosen]
        return Question(question.first, question.second, portion(asked))

    def tell(self, question: Question, answer: Answer) -> None:
        """Count it, and look again."""
        self.counts.add(question, answer)
        self._look()

    def best(self) -> int:
        """The leader."""
        return self.model.best

    def done(self) -> bool:
        """Whether the leader is separated from every rival."""
        return self.stopped
