"""Top-two Thompson sampling (Russo 2016, β = ½) with a normal approximation of the posterior (Laplace)."""

from collections import deque
from dataclasses import replace

import numpy as np

from surepick_experiments.benchmark.challenge import Answer, Challenge, Question, portion
from surepick_experiments.benchmark.methods.counts import Counts, Posterior

DRAWS = 400
"""Samples of the posterior at a time: for the questions, and for the chance that the leader is best."""

ITEMS_PER_REFIT = 20
"""With 20 items or fewer the posterior is fitted after every answer, with 200 after every tenth."""


class TopTwo:
    """Compares the best items of two samples; stops when the leader is best in 1 − delta of the samples.

    Yes/no questions ask about one of the two at random. The stop is a posterior probability under a prior that expects
    log-odds of deviation 2: a heuristic for any one truth.
    """

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        self.counts, self.rng = Counts(challenge), rng
        self.posterior = Posterior.usual(self.counts)
        self.batch = max(1, challenge.items // ITEMS_PER_REFIT)
        self.waiting: deque[Question] = deque()
        self.stopped = False

    @classmethod
    def of_items(cls, challenge: Challenge, rng: np.random.Generator) -> "TopTwo":
        """With a score for each item, and no features."""
        return cls(replace(challenge, features=None), rng)

    def ask(self) -> Question:
        """The best item of a sample, against that of the next sample in which it is another."""
        if not self.waiting:
            self._look()
        return self.waiting[0]

    def _look(self) -> None:
        self.posterior.refit()
        scores = self.posterior.samples(DRAWS, self.rng)
        tops = np.argmax(scores, axis=0)
        for place in range(self.batch):
            first = int(tops[place])
            others = tops[place + 1 :][tops[place + 1 :] != first]
            second = int(others[0]) if len(others) else int(np.argsort(scores[:, place])[-2])
            times = portion(self.counts.asked)
            if self.counts.challenge.pairs:
                self.waiting.append(Question(first, second, times))
            else:
                self.waiting.append(Question(first if self.rng.random() < 0.5 else second, times=times))
        self.chance = float(np.mean(tops == self.posterior.best))

    def tell(self, question: Question, answer: Answer) -> None:
        """Count it, and see whether to stop before the next refit is used."""
        self.waiting.popleft()
        self.counts.add(question, answer)
        if not self.waiting and self.counts.asked >= self.counts.challenge.items:
            self._look()
            self.stopped = self.chance >= 1 - self.counts.challenge.delta

    def best(self) -> int:
        """The item of the highest posterior mean."""
        return self.posterior.best

    def done(self) -> bool:
        """Whether the posterior says so."""
        return self.stopped
