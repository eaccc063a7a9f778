"""What the methods of the benchmark share: counts of answers, and the logistic model of them with a normal prior."""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import lapack

from surepick._arrays import Floats
from surepick.glm import probability_of_yes
from surepick_experiments.benchmark.challenge import Answer, Challenge, Question

USUAL_ODDS = 2.0
"""Standard deviation of the log-odds of an answer before any is in, where a method has a prior."""

NEWTON_STEPS = 2
"""Steps from the last estimate, which a few answers move little."""


@dataclass(eq=False)
class Counts:
    """Scores by pair: items × items, or by item in the first column where questions are about single items."""

    challenge: Challenge
    won: Floats = field(init=False)
    """Sum of the scores of the item of the row against that of the column."""
    asked: int = 0

    def __post_init__(self) -> None:
        size = self.challenge.items
        self.won = np.zeros((size, size if self.challenge.pairs else 1))
        self.lost = np.zeros_like(self.won)

    def add(self, question: Question, answer: Answer) -> None:
        """One more question."""
        second = question.second or 0
        self.won[question.first, second] += answer.score
        self.lost[question.first, second] += question.times - answer.score
        if question.second is not None:
            self.won[second, question.first] += question.times - answer.score
            self.lost[second, question.first] += answer.score
        self.asked += question.times

    @property
    def pulls(self) -> Floats:
        """Answers to each question."""
        return np.asarray(self.won + self.lost)


@dataclass(eq=False)
class Posterior:
    """Normal approximation at the mode (Laplace) of scores z_iᵀθ, with θ ~ N(0, I/precision).

    Without features θ has a coordinate for each item. A refit costs O(items² + d³).
    """

    counts: Counts
    precision: float
    theta: Floats = field(init=False)

    @classmethod
    def usual(cls, counts: Counts) -> "Posterior":
        """With the prior under which log-odds have the deviation `USUAL_ODDS`."""
        points = counts.challenge.points
        # The mean of ‖z_i − z_j‖² over pairs is twice that of ‖z_i − mean‖².
        apart = 2 * points.var(axis=0).sum() if counts.challenge.pairs else (points**2).sum(axis=1).mean()
        return cls(counts, float(apart) / USUAL_ODDS**2)

    def __post_init__(self) -> None:
        challenge = self.counts.challenge
        self.own, self.pairs = challenge.features is None, challenge.pairs
        self.points = challenge.points
        self.theta = np.zeros(self.points.shape[1])
        self.factor = np.sqrt(self.precision) * np.eye(len(self.theta))

    @property
    def scores(self) -> Floats:
        """Of all items, at the mode."""
        return self.theta if self.own else np.asarray(self.points @ self.theta)

    @property
    def best(self) -> int:
        """The item of the highest score."""
        return int(np.argmax(self.scores))

    def refit(self, steps: int = NEWTON_STEPS) -> None:
        """Newton's method from the last mode."""
        for _ in range(steps):
            slope, self.factor = self.slope_and_factor(self.counts.won)
            step = self.solve(slope)
            # Far from the mode a full step may overshoot.
            self.theta = self.theta + step / max(1.0, float(np.max(np.abs(step))) / 2)

    def slope_and_factor(self, won: Floats) -> tuple[Floats, Floats]:
        """Gradient of the log posterior, and the lower Cholesky factor of minus its second derivative."""
        scores, pulls = self.scores, self.counts.pulls
        chance = probability_of_yes(scores[:, None] - (scores[None, :] if self.pairs else 0.0))
        weights = pulls * chance * (1 - chance)
        curve = np.diag(weights.sum(axis=1)) - (weights if self.pairs else 0.0)
        slope = (won - pulls * chance).sum(axis=1)
        if not self.own:
            curve, slope = self.points.T @ curve @ self.points, self.points.T @ slope
        curve = curve + self.precision * np.eye(len(self.theta))
        # LAPACK itself: SciPy's checks take longer than matrices of this size.
        lower, _ = lapack.dpotrf(curve, lower=True)
        return np.asarray(slope - self.precision * self.theta), lower

    def solve(self, right: Floats) -> Floats:
        """The covariance of θ times this vector or matrix."""
        return np.asarray(lapack.dpotrs(self.factor, right, lower=True)[0])

    def _root(self, right: Floats, transposed: bool) -> Floats:
        """F⁻¹ times a matrix for the factor FFᵀ of the curvature, or F⁻ᵀ."""
        return np.asarray(lapack.dtrtrs(self.factor, right, lower=True, trans=transposed)[0])

    def samples(self, count: int, rng: np.random.Generator) -> Floats:
        """Scores drawn from it: items × count."""
        noise = rng.normal(size=(len(self.theta), count))
        drawn = self.theta[:, None] + self._root(noise, transposed=True)
        return drawn if self.own else np.asarray(self.points @ drawn)

    def covariance(self) -> Floats:
        """Of the scores: items × items."""
        root = self._root(np.eye(len(self.theta)) if self.own else self.points.T, transposed=False)
        return np.asarray(root.T @ root)


def random_pair(items: int, rng: np.random.Generator) -> tuple[int, int]:
    """Two different items."""
    first, second = rng.integers(items), rng.integers(items - 1)
    return int(first), int(second + (second >= first))
