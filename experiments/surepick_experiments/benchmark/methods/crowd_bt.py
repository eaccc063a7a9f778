"""Crowd-BT (Chen, Bennett, Collins-Thompson and Horvitz 2013): Bradley–Terry with judges of unknown quality. No stop.

Judge k says what the model says with probability η_k and the opposite otherwise. Scores are independent normals, η_k is
Beta(α_k, β_k), and both are updated answer by answer by matching moments. The next pair has the largest expected
information gain. Which judge answers is not ours to choose, so the gain is that of a judge of average quality.
"""

import numpy as np
from scipy.special import betaln, digamma

from surepick._arrays import Floats
from surepick.glm import probability_of_yes
from surepick_experiments.benchmark.challenge import Answer, Challenge, Question

QUALITY = (10.0, 1.0)
"""α and β of a judge of whom nothing is known, as in the paper: mostly right."""

LEAST = 1e-4
"""No variance shrinks by more than this factor at once."""

JUDGES_GAIN = 0.1
"""Weight of what is learnt about the judge."""

RANDOM = 0.1
"""Share of questions chosen at random, as the paper does against greed."""


class CrowdBt:
    """One answer at a time: O(items²) for the gains of all pairs."""

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        self.items, self.rng = challenge.items, rng
        self.mean, self.variance = np.zeros(challenge.items), np.ones(challenge.items)
        self.judges: dict[int, tuple[float, float]] = {}
        self.first, self.second = np.triu_indices(challenge.items, 1)

    def ask(self) -> Question:
        """The pair of the largest gain, or a random one."""
        if self.rng.random() < RANDOM:
            number = int(self.rng.integers(len(self.first)))
        else:
            gains = self._gains() * (1 + 1e-6 * self.rng.random(len(self.first)))
            number = int(np.argmax(gains))
        return Question(int(self.first[number]), int(self.second[number]))

    def _gains(self) -> Floats:
        quality = np.mean([*self.judges.values(), QUALITY], axis=0) if self.judges else np.array(QUALITY)
        alpha, beta = float(quality[0]), float(quality[1])
        gains = np.zeros(len(self.first))
        for winner, loser in ((self.first, self.second), (self.second, self.first)):
            after = _updated(
                alpha, beta, self.mean[winner], self.variance[winner], self.mean[loser], self.variance[loser]
            )
            gain = _normal_divergence(
                after.winner_mean, after.winner_variance, self.mean[winner], self.variance[winner]
            )
            gain += _normal_divergence(after.loser_mean, after.loser_variance, self.mean[loser], self.variance[loser])
            gain += JUDGES_GAIN * _beta_divergence(after.alpha, after.beta, alpha, beta)
            gains += after.chance * gain
        return gains

    def tell(self, question: Question, answer: Answer) -> None:
        """Update both items and the judge; a tie says nothing in this model, and is decided by a coin."""
        winner, loser = question.first, question.second or 0
        score = answer.score if answer.score != 0.5 else float(self.rng.random() < 0.5)
        if score < 0.5:
            winner, loser = loser, winner
        alpha, beta = self.judges.get(answer.judge, QUALITY)
        after = _updated(
            alpha,
            beta,
            *(values[[item]] for item in (winner, loser) for values in (self.mean, self.variance)),
        )
        self.mean[winner], self.variance[winner] = after.winner_mean[0], after.winner_variance[0]
        self.mean[loser], self.variance[loser] = after.loser_mean[0], after.loser_variance[0]
        self.judges[answer.judge] = float(after.alpha[0]), float(after.beta[0])

    def best(self) -> int:
        """The highest mean."""
        return int(np.argmax(self.mean))

    def done(self) -> bool:
        """Never."""
        return False


class _updated:
    """Beliefs after an answer for the winner, for many pairs at once (the paper's equations for online learning)."""

    def __init__(
        self,
        alpha: float,
        beta: float,
        winner_mean: Floats,
        winner_variance: Floats,
        loser_mean: Floats,
        loser_variance: Floats,
    ) -> None:
        p = probability_of_yes(winner_mean - loser_mean)
        # Second-order expansion of the mean of p over the scores.
        expected = np.clip(p + (winner_variance + loser_variance) / 2 * p * (1 - p) * (1 - 2 * p), 1e-6, 1 - 1e-6)
        total = alpha + beta
        self.chance = (expected * alpha + (1 - expected) * beta) / total
        right, wrong = expected * alpha, (1 - expected) * beta
        mean = (right * (alpha + 1) + wrong * alpha) / (self.chance * total * (total + 1))
        square = (right * (alpha + 2) * (alpha + 1) + wrong * (alpha + 1) * alpha) / (
            self.chance * total * (total + 1) * (total + 2)
        )
        spread = np.maximum(square - mean**2, 1e-12)
        self.alpha = (mean - square) * mean / spread
        self.beta = (mean - square) * (1 - mean) / spread
        trusted = alpha * p / (alpha * p + beta * (1 - p))
        move, curve = trusted - p, trusted * (1 - trusted) - p * (1 - p)
        self.winner_mean = winner_mean + winner_variance * move
        self.loser_mean = loser_mean - loser_variance * move
        self.winner_variance = winner_variance * np.maximum(1 + winner_variance * curve, LEAST)
        self.loser_variance = loser_variance * np.maximum(1 + loser_variance * curve, LEAST)


def _normal_divergence(mean: Floats, variance: Floats, old_mean: Floats, old_variance: Floats) -> Floats:
    """KL(new ‖ old)."""
    ratio = variance / old_variance
    return np.asarray((ratio - 1 - np.log(ratio) + (mean - old_mean) ** 2 / old_variance) / 2)


def _beta_divergence(alpha: Floats, beta: Floats, old_alpha: float, old_beta: float) -> Floats:
    """KL(new ‖ old)."""
    total = digamma(alpha + beta)
    return np.asarray(
        betaln(old_alpha, old_beta)
        - betaln(alpha, beta)
        + (alpha - old_alpha) * (digamma(alpha) - total)
        + (beta - old_beta) * (digamma(beta) - total)
    )
