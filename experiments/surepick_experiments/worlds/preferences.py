"""Preferences between items, with and without features that explain them; the judges who answer from them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from surepick._arrays import Floats, Integers
from surepick.errors import InvalidInput
from surepick.glm import probability_of_yes
from surepick.identify import Problem
from surepick_experiments.worlds.synthetic import person

PLAIN, PEOPLE, NEARLY, MISLEADING = "no features", "colours", "nearly right features", "misleading features"
CIRCLE, CAMPS = "circle below a winner", "two camps with one favourite"
USELESS, DISGUISED = "useless features", "disguised winner"

SPREAD = 1.2
"""Standard deviation of drawn scores, in log-odds."""

OWN = 0.5
"""Standard deviation of what nearly right features do not explain, in log-odds."""

DIMENSION = 4
"""Features that mislead or are useless: fewer than items, so that a model of them cannot fit everything."""


@dataclass(frozen=True, eq=False)
class Preferences:
    """A problem and the probability that the item of the row beats the item of the column, whatever the features."""

    problem: Problem
    chances: Floats

    @property
    def best(self) -> int:
        """The item that wins all of its comparisons."""
        return int(np.argmax(np.min(self.chances, axis=1)))

    @cached_property
    def _chance_of(self) -> dict[bytes, float]:
        rows = zip(self.problem.measurements, self.problem.about.tolist(), strict=True)
        return {vector.tobytes(): float(self.chances[first, second]) for vector, (first, second) in rows}

    def judge(self, seed: int) -> "PreferenceJudge":
        """A judge who answers from these preferences."""
        if len(self._chance_of) < len(self.problem.measurements):
            raise InvalidInput(
                "Two comparisons have the same difference of features, so a judge cannot tell them apart."
            )
        return PreferenceJudge(self._chance_of, np.random.default_rng(seed))


@dataclass(frozen=True, eq=False)
class PreferenceJudge:
    """Answers whole stages; a question is known by its vector, which only one pair of items has."""

    chance_of: dict[bytes, float]
    rng: np.random.Generator

    def wins(self, vectors: Floats, pulls: Integers) -> ArrayLike:
        """How many of the answers to each vector are 1."""
        return self.rng.binomial(pulls, [self.chance_of[vector.tobytes()] for vector in vectors])


def preferences(world: str, items: int, gap: float, rng: np.random.Generator) -> Preferences:
    """A random world of this kind."""
    if world == PEOPLE:
        taste = person(colours=items, gap=gap, seed=int(rng.integers(2**31)))
        return Preferences(taste.problem, bradley_terry(taste.scores))
    if world == NEARLY:
        taste = person(colours=items, gap=gap, seed=int(rng.integers(2**31)))
        scores = taste.scores + rng.normal(0, OWN, items)
        second, best = np.argsort(scores)[-2:]
        scores[best] = scores[second] + gap
        return Preferences(taste.problem, bradley_terry(scores))
    if world == CIRCLE:
        # Item 0 wins by the gap. The others form a circle, an odd number of them, and each beats the half that follows.
        around = (np.arange(items)[None, :] - np.arange(items)[:, None]) % (items - 1)
        chances = np.where(around == 0, 0.5, np.where(around < (items - 1) / 2, 0.8, 0.2))
        wins = float(probability_of_yes(np.array(gap)))
        chances[0, 1:], chances[1:, 0], chances[0, 0] = wins, 1 - wins, 0.5
        return Preferences(Problem.from_pairs(np.eye(items)), chances)
    scores = np.sort(rng.normal(0, SPREAD, items))[::-1]
    scores[0] = scores[1] + gap
    if world in (USELESS, DISGUISED):
        scores = rng.permutation(scores)  # the first item is named where nothing is known
        features = rng.normal(size=(items, DIMENSION)) if world == USELESS else _disguising(scores, rng)
        return Preferences(Problem.from_pairs(features), bradley_terry(scores))
    features = np.eye(items) if world in (PLAIN, CAMPS) else rng.normal(size=(items, DIMENSION))
    chances = bradley_terry(scores)
    if world == CAMPS:  # a judge is drawn from one of two camps, which agree on the winner and on nothing else
        chances = (chances + bradley_terry(np.concatenate([scores[:1], rng.permutation(scores[1:])]))) / 2
    order = rng.permutation(items)
    return Preferences(Problem.from_pairs(features), chances[np.ix_(order, order)])


def bradley_terry(scores: Floats) -> Floats:
    """The probability that the item of the row beats the item of the column."""
    return np.asarray(probability_of_yes(scores[:, None] - scores[None, :]))


def _disguising(scores: Floats, rng: np.random.Generator) -> Floats:
    """Features that are right for every item but the winner, which they show as one from the middle."""
    shown = scores.copy()
    shown[np.argmax(scores)] = np.median(scores) + rng.normal(0, 0.1)
    weights = rng.normal(size=DIMENSION)
    features = rng.normal(size=(len(scores), DIMENSION))
    return np.asarray(features + np.outer(shown - features @ weights, weights) / float(weights @ weights))
