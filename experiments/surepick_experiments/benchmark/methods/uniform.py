"""Questions chosen without looking at the answers: at random, or all in turn."""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix

from surepick._arrays import Floats
from surepick.glm import probability_of_yes
from surepick_experiments.benchmark.challenge import Answer, Challenge, Question, portion
from surepick_experiments.benchmark.methods.counts import Counts, Posterior, random_pair

RESAMPLES = 200

FIRST_CHECK = 5
"""Questions per item before the first check of the bootstrap."""

GROWTH = 1.1
"""How much longer the record is at the next check."""

RIDGE = 0.01
"""Keeps scores of items that won or lost everything finite."""


class UniformBradleyTerry:
    """Random questions and the model of Bradley and Terry; stops when the leader leads in 1 − delta of the bootstrap.

    A resample draws answers with replacement (Poisson weights), and its scores are one Newton step from the fit, with
    the curvature of the fit. Yes/no questions are fitted by their features.
    """

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        own = replace(challenge, features=None) if challenge.pairs else challenge
        self.counts, self.rng = Counts(own), rng
        self.model = Posterior(self.counts, RIDGE)
        self.next_check = FIRST_CHECK * challenge.items
        self.stopped = False

    def ask(self) -> Question:
        """A random one."""
        times, items = portion(self.counts.asked), self.counts.challenge.items
        if not self.counts.challenge.pairs:
            return Question(int(self.rng.integers(items)), times=times)
        return Question(*random_pair(items, self.rng), times)

    def tell(self, question: Question, answer: Answer) -> None:
        """Count it; now and then look at the bootstrap."""
        self.counts.add(question, answer)
        if self.counts.asked >= self.next_check:
            self.next_check = int(GROWTH * self.counts.asked) + 1
            self.model.refit(8)
            leaders = np.argmax(self._resampled(), axis=1)
            self.stopped = bool(np.mean(leaders == self.model.best) >= 1 - self.counts.challenge.delta)

    def _resampled(self) -> Floats:
        """Scores of the items in each resample."""
        won, lost, scores = self.counts.won, self.counts.lost, self.model.scores
        pairs = self.counts.challenge.pairs
        first, second = np.nonzero((won + lost) * (np.triu(np.ones(won.shape), 1) if pairs else 1))
        chance = probability_of_yes(scores[first] - (scores[second] if pairs else 0.0))
        size = (RESAMPLES, len(first))
        wins, losses = self.rng.poisson(won[first, second], size), self.rng.poisson(lost[first, second], size)
        surprise = wins * (1 - chance) - losses * chance
        items, number = self.counts.challenge.items, np.arange(len(first))
        shown = csr_matrix((np.ones(len(first)), (number, first)), (len(first), items))
        if pairs:
            shown = shown - csr_matrix((np.ones(len(first)), (number, second)), (len(first), items))
        slope = np.asarray(surprise @ shown)
        if not self.model.own:
            slope = slope @ self.model.points
        theta = self.model.theta + self.model.solve(slope.T - RIDGE * self.model.theta[:, None]).T
        return theta if self.model.own else np.asarray(theta @ self.model.points.T)

    def best(self) -> int:
        """The item of the highest fitted score."""
        self.model.refit(2 if self.stopped else 8)
        return self.model.best

    def done(self) -> bool:
        """Whether the bootstrap says so."""
        return self.stopped


class RoundRobin:
    """All pairs in turn, in a new random order each time; the item with the highest share of wins is best."""

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        self.counts, self.rng = Counts(challenge), rng
        self.pairs = np.column_stack(np.triu_indices(challenge.items, 1))
        self.left: list[list[int]] = []

    def ask(self) -> Question:
        """The next pair."""
        if not self.left:
            self.left = self.rng.permutation(self.pairs).tolist()
        first, second = self.left.pop()
        return Question(first, second)

    def tell(self, question: Question, answer: Answer) -> None:
        """Count it."""
        self.counts.add(question, answer)

    def best(self) -> int:
        """With half a win for everybody beforehand, so that one win of one is not more than nine of ten."""
        return int(np.argmax((self.counts.won.sum(axis=1) + 0.5) / (self.counts.pulls.sum(axis=1) + 1)))

    def done(self) -> bool:
        """Never."""
        return False
