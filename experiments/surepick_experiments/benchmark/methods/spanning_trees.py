"""Batches of pairs that connect all items and promise most information: a spanning tree of the gains.

ASAP (Mikhailiuk, Wilmot, Pérez-Ortiz, Yue and Mantiuk 2020) and Hybrid-MST (Li, Mantiuk, Wang, Ling and Le Callet 2018)
both choose pairs by expected information gain and ask a minimum spanning tree of its inverse at a time. Their packages
are programs of their own and not on a package index, so the published rules are implemented here.
"""

from abc import ABC, abstractmethod

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import log_ndtr, ndtr, xlogy
from scipy.stats import norm

from surepick._arrays import Floats
from surepick.glm import probability_of_yes
from surepick_experiments.benchmark.challenge import Answer, Challenge, Question
from surepick_experiments.benchmark.methods.counts import Counts, Posterior

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)


class SpanningTrees(ABC):
    """Asks the edges of one tree after the other. No stop."""

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        self.items, self.rng = challenge.items, rng
        self.waiting: list[tuple[int, int]] = []

    @abstractmethod
    def gains(self) -> Floats:
        """Expected information of an answer to each pair: items × items."""

    def batch(self) -> list[tuple[int, int]]:
        """The pairs to ask now."""
        # A little noise decides between equal gains, of which there are many at first.
        cost = 1 / (self.gains() * (1 + 1e-6 * self.rng.random((self.items, self.items))))
        first, second = minimum_spanning_tree(csr_matrix(np.triu(cost, 1))).nonzero()
        return [(int(one), int(other)) for one, other in zip(first, second, strict=True)]

    def ask(self) -> Question:
        """The next edge."""
        if not self.waiting:
            self.waiting = self.batch()
        return Question(*self.waiting.pop())

    @abstractmethod
    def tell(self, question: Question, answer: Answer) -> None:
        """Learn from it."""

    @abstractmethod
    def best(self) -> int:
        """The highest estimate."""

    def done(self) -> bool:
        """Never."""
        return False


PRIOR_VARIANCE = 0.5
"""Of a score, in units of the noise of an answer: as in the authors' program."""


class Asap(SpanningTrees):
    """Independent normal beliefs (TrueSkill); the gain is the expected divergence of the beliefs after the answer.

    Beliefs are updated answer by answer, the fast variant of the paper ("ASAP-approx").
    """

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        super().__init__(challenge, rng)
        self.mean = np.zeros(challenge.items)
        self.variance = np.full(challenge.items, PRIOR_VARIANCE)

    def gains(self) -> Floats:
        """P(win)·KL(after a win ‖ now) and the same for a loss, over both items; symmetric."""
        total = 1 + self.variance[:, None] + self.variance[None, :]
        z = (self.mean[:, None] - self.mean[None, :]) / np.sqrt(total)
        share = self.variance[:, None] / total
        moved, kept = _after_a_win(z)
        by_win = ndtr(z) * (_divergence(share, moved, kept) + _divergence(share.T, moved, kept))
        return np.asarray(np.maximum(by_win + by_win.T, 1e-12))

    def tell(self, question: Question, answer: Answer) -> None:
        """TrueSkill's update for the winner and the loser; a tie is half of each."""
        first, second = question.first, question.second
        for winner, loser, weight in ((first, second, answer.score), (second, first, 1 - answer.score)):
            if weight:
                self._update(winner or 0, loser or 0, weight)

    def _update(self, winner: int, loser: int, weight: float) -> None:
        both = [winner, loser]
        total = 1 + self.variance[both].sum()
        moved, kept = _after_a_win(np.array((self.mean[winner] - self.mean[loser]) / np.sqrt(total)))
        step = self.variance[both] / np.sqrt(total) * float(moved) * weight
        self.mean[both] += step * np.array([1, -1])
        self.variance[both] *= 1 - weight * self.variance[both] / total * float(kept)

    def best(self) -> int:
        """The highest mean."""
        return int(np.argmax(self.mean))


def _after_a_win(z: Floats) -> tuple[Floats, Floats]:
    """By how much a win at standardised advantage z moves the means, and shrinks the variances."""
    moved = np.exp(norm.logpdf(z) - log_ndtr(z))
    return np.asarray(moved), np.asarray(moved * (moved + z))


def _divergence(share: Floats, moved: Floats, kept: Floats) -> Floats:
    """KL(after ‖ before) of a normal belief whose variance is this share of the total."""
    ratio = 1 - share * kept
    return np.asarray((ratio - 1 - np.log(ratio) + share * moved**2) / 2)


RIDGE = 0.1
"""Keeps the estimate finite before all items are connected."""


class HybridMst(SpanningTrees):
    """Bradley–Terry with a normal approximation; the gain is the mutual information of score difference and answer.

    The first N(N − 1)/2 questions are the single best pair each, as published; then spanning trees.
    """

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        super().__init__(challenge, rng)
        self.counts = Counts(Challenge(challenge.items))
        self.model = Posterior(self.counts, RIDGE)

    def gains(self) -> Floats:
        """E[p log p + q log q] − the same at the mean of p, over the score difference."""
        self.model.refit()
        covariance, scores = self.model.covariance(), self.model.scores
        spread = np.sqrt(
            np.maximum(covariance.diagonal()[:, None] + covariance.diagonal()[None, :] - 2 * covariance, 1e-12)
        )
        first, second = np.triu_indices(self.items, 1)
        gaps = (scores[first] - scores[second])[:, None] + spread[first, second][:, None] * NODES
        chance, weights = probability_of_yes(gaps), WEIGHTS / WEIGHTS.sum()
        mean = chance @ weights
        gain = np.full((self.items, self.items), 1e-12)
        gain[first, second] += _information(chance) @ weights - _information(mean)
        return np.asarray(np.maximum(gain, gain.T))

    def batch(self) -> list[tuple[int, int]]:
        """One pair at first, then a tree."""
        if self.counts.asked >= self.items * (self.items - 1) // 2:
            return super().batch()
        gains = self.gains() * (1 + 1e-6 * self.rng.random((self.items, self.items)))
        first, second = np.unravel_index(np.argmax(gains), gains.shape)
        return [(int(first), int(second))]

    def tell(self, question: Question, answer: Answer) -> None:
        """Count it."""
        self.counts.add(question, answer)

    def best(self) -> int:
        """The highest fitted score."""
        self.model.refit(4)
        return self.model.best


def _information(chance: Floats) -> Floats:
    """Minus the entropy of a coin."""
    return np.asarray(xlogy(chance, chance) + xlogy(1 - chance, 1 - chance))
