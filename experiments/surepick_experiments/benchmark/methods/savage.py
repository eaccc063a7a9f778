"""SAVAGE for the Condorcet winner (Urvoy, Clérot, Féraud and Naamane 2013): elimination with Hoeffding's intervals.

The share of wins of a pair after t answers is within √(log(η/δ)/2t) of the truth, η = π²·pairs·t²/3, for all pairs and
times at once. An item is out when another one beats it for certain. Pairs that are decided, or whose items are both
out, are not asked any more. If there is a Condorcet winner, the last item is the winner with probability 1 − delta.
"""

import math

import numpy as np

from surepick_experiments.benchmark.challenge import Answer, Challenge, Question, portion
from surepick_experiments.benchmark.methods.counts import Counts


class Savage:
    """Asks the pair with the fewest answers among those that still matter."""

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        self.counts, self.rng = Counts(challenge), rng
        self.candidate = np.ones(challenge.items, dtype=np.bool_)
        self.open = np.triu(np.ones((challenge.items, challenge.items), dtype=np.bool_), 1)
        self.pulls = np.zeros((challenge.items, challenge.items))
        self.pairs = challenge.items * (challenge.items - 1) / 2

    def ask(self) -> Question:
        """Equals are told apart at random."""
        first, second = np.nonzero(self.open)
        answers = self.pulls[first, second]
        number = int(self.rng.choice(np.flatnonzero(answers == answers.min())))
        return Question(int(first[number]), int(second[number]), portion(self.counts.asked))

    def tell(self, question: Question, answer: Answer) -> None:
        """See whether the pair is decided."""
        first, second = question.first, question.second or 0
        self.counts.add(question, answer)
        self.pulls[first, second] += question.times
        t = float(self.pulls[first, second])
        share = self.counts.won[first, second] / t
        width = math.sqrt(math.log(math.pi**2 * self.pairs * t**2 / 3 / self.counts.challenge.delta) / (2 * t))
        if abs(share - 0.5) > width:
            self.open[first, second] = False
            self.candidate[second if share > 0.5 else first] = False
            self.open &= self.candidate[:, None] | self.candidate[None, :]

    def best(self) -> int | None:
        """The candidate with the highest share of wins; nothing if every item was beaten."""
        if not self.candidate.any():
            return None
        share = (self.counts.won.sum(axis=1) + 0.5) / (self.counts.pulls.sum(axis=1) + 1)
        return int(np.argmax(np.where(self.candidate, share, share - 1)))

    def done(self) -> bool:
        """Whether one candidate is left, or none: then there is no Condorcet winner."""
        return bool(self.candidate.sum() <= 1)
