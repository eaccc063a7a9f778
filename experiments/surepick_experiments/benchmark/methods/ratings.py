"""Schedules by ratings, as in leagues: the least known item plays the opponent that suits it best. No stop.

Elo's update is a line; TrueSkill and Glicko-2 are those of the packages `trueskill` and `glicko2`, with their default
settings. Every answer is a game of its own.
"""

import math
import warnings
from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any

import numpy as np

from surepick._arrays import Floats
from surepick_experiments.benchmark.challenge import Answer, Challenge, Question

ELO_STEP = 32
"""K, the most points that a game moves."""


class Schedule(ABC):
    """Plays the least known item against the one that suits it best, by the ratings so far."""

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        self.rng, self.items = rng, challenge.items
        self.rating = np.zeros(challenge.items)

    def ask(self) -> Question:
        """Equals are told apart at random."""
        first = self._any_of_largest(self.unknown())
        fit = self.suits(first)
        fit[first] = -math.inf
        return Question(first, self._any_of_largest(fit))

    def _any_of_largest(self, values: Floats) -> int:
        return int(self.rng.choice(np.flatnonzero(values == values.max())))

    @abstractmethod
    def unknown(self) -> Floats:
        """How little is known of each item."""

    @abstractmethod
    def suits(self, first: int) -> Floats:
        """How good a match each item would be."""

    @abstractmethod
    def tell(self, question: Question, answer: Answer) -> None:
        """Rate both again."""

    def best(self) -> int:
        """The highest rating."""
        return self._any_of_largest(self.rating)

    def done(self) -> bool:
        """Never."""
        return False


class Elo(Schedule):
    """Ratings of one number: the item with the fewest games plays the nearest in rating."""

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        super().__init__(challenge, rng)
        self.games = np.zeros(challenge.items)

    def unknown(self) -> Floats:
        """The fewest games first."""
        return -self.games

    def suits(self, first: int) -> Floats:
        """The nearest rating."""
        return np.asarray(-np.abs(self.rating - self.rating[first]))

    def tell(self, question: Question, answer: Answer) -> None:
        """What was won beyond what was expected."""
        first, second = question.first, _opponent(question)
        expected = 1 / (1 + 10 ** ((self.rating[second] - self.rating[first]) / 400))
        self.rating[first] += ELO_STEP * (answer.score - expected)
        self.rating[second] -= ELO_STEP * (answer.score - expected)
        self.games[[first, second]] += 1


class TrueSkill(Schedule):
    """The item of the largest deviation plays whoever makes the closest match (`trueskill`'s quality)."""

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        super().__init__(challenge, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its docstrings have escapes of which newer Pythons warn
            trueskill: Any = import_module("trueskill")
        self.environment: Any = trueskill.TrueSkill()
        self.players: list[Any] = [self.environment.create_rating() for _ in range(challenge.items)]
        self.rating[:] = self.players[0].mu
        self.deviation = np.full(challenge.items, float(self.players[0].sigma))

    def unknown(self) -> Floats:
        """Deviation."""
        return self.deviation

    def suits(self, first: int) -> Floats:
        """The package's `quality_1vs1` of all opponents at once."""
        noise = 2 * self.environment.beta**2
        total = noise + self.deviation[first] ** 2 + self.deviation**2
        return np.asarray(np.sqrt(noise / total) * np.exp(-((self.rating - self.rating[first]) ** 2) / (2 * total)))

    def tell(self, question: Question, answer: Answer) -> None:
        """The package's update."""
        winner, loser = question.first, _opponent(question)
        if answer.score < 0.5:
            winner, loser = loser, winner
        after = self.environment.rate(
            [(self.players[winner],), (self.players[loser],)], ranks=[0, int(answer.score != 0.5)]
        )
        for item, (player,) in zip((winner, loser), after, strict=True):
            self.players[item] = player
            self.rating[item], self.deviation[item] = player.mu, player.sigma


class Glicko(Schedule):
    """The item of the largest deviation plays the nearest in rating (`glicko2`)."""

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        super().__init__(challenge, rng)
        glicko2: Any = import_module("glicko2")
        self.players: list[Any] = [glicko2.Player() for _ in range(challenge.items)]
        self.deviation = np.array([float(player.rd) for player in self.players])
        self.rating[:] = self.players[0].rating

    def unknown(self) -> Floats:
        """Deviation."""
        return self.deviation

    def suits(self, first: int) -> Floats:
        """The nearest rating."""
        return np.asarray(-np.abs(self.rating - self.rating[first]))

    def tell(self, question: Question, answer: Answer) -> None:
        """The package's update of both, from what they were before."""
        first, second = question.first, _opponent(question)
        before = [(self.players[item].rating, self.players[item].rd) for item in (first, second)]
        for item, (rating, deviation), score in (
            (first, before[1], answer.score),
            (second, before[0], 1 - answer.score),
        ):
            self.players[item].update_player([rating], [deviation], [score])
            self.rating[item], self.deviation[item] = self.players[item].rating, self.players[item].rd


def _opponent(question: Question) -> int:
    assert question.second is not None  # a schedule only compares
    return question.second
