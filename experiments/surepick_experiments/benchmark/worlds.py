"""The worlds of the benchmark: each draws an instance, answers questions, and knows the truth.

The order in which two items are shown is drawn at random for every method, and so is the judge. Where answers have a
probability, it is that of the score of the first item in that random order, by a random judge.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import expit, logit, ndtr

from surepick._arrays import Floats
from surepick.errors import InvalidInput
from surepick.glm import probability_of_yes
from surepick_experiments.benchmark.challenge import Answer, Challenge, Question
from surepick_experiments.worlds import soare
from surepick_experiments.worlds.item_response import item_responses
from surepick_experiments.worlds.preferences import (
    CIRCLE,
    DISGUISED,
    PEOPLE,
    PLAIN,
    SPREAD,
    bradley_terry,
    preferences,
)

GAP = 1.0
"""By how much the best is ahead of the second in log-odds, where nothing else is said."""


class World(Protocol):
    """One instance."""

    @property
    def challenge(self) -> Challenge:
        """What a method is told, without budget and prior knowledge."""

    def answer(self, question: Question, rng: np.random.Generator) -> Answer:
        """The answer of the next judge."""

    @property
    def best(self) -> frozenset[int]:
        """The items that may be named; if there is a winner, only that."""

    @property
    def has_winner(self) -> bool:
        """Whether one item wins each of its comparisons at least half the time: what the claim "winner" assumes."""

    @property
    def explained(self) -> bool:
        """Whether answers are logistic in the features: what the claim "features" assumes."""

    def behind(self, item: int) -> float:
        """Simple regret: how much more often than half the time the best item beats this one."""

    @property
    def known(self) -> dict[str, float]:
        """Prior knowledge for methods that cannot do without."""


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Judges who compare two items."""

    chances: Floats
    """Judges × items × items: the probability that the item of the row is preferred, if it is not a tie."""
    features: Floats | None = None
    explained: bool = False
    ties: Floats | float = 0.0
    """Probability of a tie, for each pair or for all."""
    bias: float = 0.0
    """What being shown first is worth, in log-odds."""
    told_apart: bool = False
    """Whether methods see which judge answered."""
    circle: frozenset[int] = frozenset()
    """Items that are equally good to name where there is no winner."""

    @property
    def challenge(self) -> Challenge:
        """Items, and their features."""
        return Challenge(self.chances.shape[1], self.features)

    @cached_property
    def scores(self) -> Floats:
        """Expected score of the item of the row against that of the column."""
        chances = self.chances
        if self.bias:
            odds = logit(chances)
            chances = (probability_of_yes(odds + self.bias) + probability_of_yes(odds - self.bias)) / 2
        return np.asarray((1 - self.ties) * chances.mean(axis=0) + self.ties / 2)

    @cached_property
    def _ties(self) -> Floats:
        return np.broadcast_to(np.asarray(self.ties, dtype=np.float64), self.chances.shape[1:])

    @cached_property
    def best(self) -> frozenset[int]:
        """The winner; or those of the circle; or, in recorded votes without either, the item with most wins."""
        if self.circle:
            return self.circle
        winner = int(np.argmax(self.scores.min(axis=1)))
        return frozenset([winner if self.scores[winner].min() >= 0.5 else int(np.argmax(self.scores.mean(axis=1)))])

    @property
    def has_winner(self) -> bool:
        """Whether one item wins at least half of the time against each other."""
        return bool(self.scores.min(axis=1).max() >= 0.5)

    def behind(self, item: int) -> float:
        """Least over the items that may be named."""
        return 0.0 if item in self.best else min(float(self.scores[best, item]) - 0.5 for best in self.best)

    @property
    def known(self) -> dict[str, float]:
        """Of the logistic model nearest to the truth: in log-odds of the scores."""
        scores = np.clip(self.scores, 1e-3, 1 - 1e-3)
        odds = logit(scores).mean(axis=1)
        points = self.challenge.points
        theta = np.linalg.lstsq(points - points.mean(axis=0), odds - odds.mean(), rcond=None)[0]
        return {"kappa": float((scores * (1 - scores)).min()), "norm": float(np.linalg.norm(theta))}

    def answer(self, question: Question, rng: np.random.Generator) -> Answer:
        """The answer of a random judge to whom the items are shown in a random order."""
        first, second = question.first, question.second
        if second is None:
            raise InvalidInput(f"This world compares two items, got a question about {first} alone.")
        tie = float(self._ties[first, second])
        if question.times > 1:
            # Judge, order and answer are drawn independently for each, so their number has a multinomial distribution.
            win = min(max(float(self.scores[first, second]) - tie / 2, 0.0), 1 - tie)  # rounding may lead out of range
            wins, tied, _ = rng.multinomial(question.times, [win, tie, max(1 - win - tie, 0.0)])
            return Answer(float(wins + tied / 2))
        judge = int(rng.integers(len(self.chances)))
        seen = judge if self.told_apart else 0
        if tie and rng.random() < tie:
            return Answer(0.5, seen)
        chance = float(self.chances[judge, first, second])
        if self.bias:
            place = self.bias if rng.random() < 0.5 else -self.bias
            chance = float(expit(logit(chance) + place))
        return Answer(float(rng.random() < chance), seen)


@dataclass(frozen=True, eq=False)
class YesNo:
    """Questions about single items, answered by a logistic model of their features."""

    features: Floats
    theta: Floats
    has_winner = True
    explained = True

    @property
    def challenge(self) -> Challenge:
        """Items that can only be asked about one at a time."""
        return Challenge(len(self.features), self.features, pairs=False)

    @cached_property
    def _yes(self) -> Floats:
        return np.asarray(probability_of_yes(self.features @ self.theta))

    @property
    def best(self) -> frozenset[int]:
        """The item of the highest probability of yes."""
        return frozenset([int(np.argmax(self._yes))])

    def behind(self, item: int) -> float:
        """By how much its probability of yes is lower."""
        return float(self._yes.max() - self._yes[item])

    @property
    def known(self) -> dict[str, float]:
        """Least variance of an answer, and length of θ*."""
        return {
            "kappa": float((self._yes * (1 - self._yes)).min()),
            "norm": float(np.linalg.norm(self.theta)),
        }

    def answer(self, question: Question, rng: np.random.Generator) -> Answer:
        """Yes or no."""
        return Answer(float(rng.binomial(question.times, self._yes[question.first])))


@dataclass(frozen=True)
class Family:
    """A kind of world: how an instance is drawn, and what there is to say about it."""

    draw: Callable[[np.random.Generator], World]
    about: str
    small: bool = True
    """Whether it is in the small profile, too."""
    times: int = 1
    """How many times as many runs methods that stop have here: errors are rare, and only many runs show them."""


def _scores(items: int, gap: float, rng: np.random.Generator) -> Floats:
    """Scores in random order, the best ahead of the second by the gap."""
    scores = rng.normal(0, SPREAD, items)
    second, best = np.argsort(scores)[-2:]
    scores[best] = scores[second] + gap
    return scores


def turned_arms(rng: np.random.Generator) -> World:
    """Soare's benchmark; the items are in random order."""
    world = soare(5, angle=0.5, length=4.0)
    return YesNo(rng.permutation(world.problem.items), world.theta)


def colours(gap: float) -> Callable[[np.random.Generator], World]:
    """One person who compares 37 colours."""

    def draw(rng: np.random.Generator) -> World:
        made = preferences(PEOPLE, 37, gap, rng)
        return Comparisons(made.chances[None], made.problem.items, explained=True)

    return draw


def plain(items: int, gap: float = GAP) -> Callable[[np.random.Generator], World]:
    """Bradley–Terry without features."""

    def draw(rng: np.random.Generator) -> World:
        return Comparisons(preferences(PLAIN, items, gap, rng).chances[None])

    return draw


def thurstone(rng: np.random.Generator) -> World:
    """Normal instead of logistic noise; a gap of 1/1.7 is about as hard as 1 in log-odds."""
    scores = _scores(10, GAP, rng) / 1.7
    return Comparisons(ndtr(scores[:, None] - scores[None, :])[None])


def circle_below(rng: np.random.Generator) -> World:
    """The winner beats everybody, and each of the others beats the half that follows it in a circle."""
    order = rng.permutation(10)
    return Comparisons(preferences(CIRCLE, 10, GAP, rng).chances[np.ix_(order, order)][None])


def circle_on_top(rng: np.random.Generator) -> World:
    """Three items beat all others, and one another in a circle: no item wins all of its comparisons."""
    chances = bradley_terry(np.r_[2.0, 2.0, 2.0, rng.normal(-0.5, 0.7, 7)])
    for one, other in ((0, 1), (1, 2), (2, 0)):
        chances[one, other], chances[other, one] = 0.75, 0.25
    order = rng.permutation(10)
    top = frozenset(np.flatnonzero(order < 3).tolist())
    return Comparisons(chances[np.ix_(order, order)][None], circle=top)


def with_ties(rng: np.random.Generator) -> World:
    """Davidson's ties: 43% among equals, fewer the further apart the items are."""
    scores = _scores(10, GAP, rng)
    strength = 1.5 / (2 * np.cosh((scores[:, None] - scores[None, :]) / 2))
    return Comparisons(bradley_terry(scores)[None], ties=strength / (1 + strength))


def position_bias(rng: np.random.Generator) -> World:
    """Being shown first is worth as much as the best is ahead."""
    return Comparisons(bradley_terry(_scores(10, GAP, rng))[None], bias=GAP)


def mixed_judges(rng: np.random.Generator) -> World:
    """Ten judges with tastes of their own; the winner wins at least 62% against each other item, on average."""
    while True:
        tastes = rng.normal(0, SPREAD, 10) + rng.normal(0, 0.8, (10, 10))
        made = Comparisons(np.array([bradley_terry(taste) for taste in tastes]), told_apart=True)
        if np.sort(made.scores, axis=1)[:, :2].min(axis=1).max() >= 0.5:
            (best,) = made.best
            if np.delete(made.scores[best], best).min() >= 0.62:
                return made


def careless_judges(rng: np.random.Generator) -> World:
    """Ten judges, of whom three toss a coin."""
    chances = np.repeat(bradley_terry(_scores(10, 1.5, rng))[None], 10, axis=0)
    chances[:3] = 0.5
    return Comparisons(rng.permutation(chances), told_apart=True)


def systems(rng: np.random.Generator) -> World:
    """Eight systems on 200 inputs in ten clusters, the best ahead by eight points of win rate."""
    made = item_responses("clustered", 8, 200, 0.08, rng)
    count = len(made.quality)
    chances = np.full((made.by_input.shape[1], count, count), 0.5)
    first, second = np.triu_indices(count, 1)
    chances[:, first, second] = made.by_input.T
    chances[:, second, first] = 1 - made.by_input.T
    return Comparisons(chances)


def disguised(rng: np.random.Generator) -> World:
    """Four features explain every item but the winner, which they show as one from the middle."""
    made = preferences(DISGUISED, 20, GAP, rng)
    return Comparisons(made.chances[None], made.problem.items)


WORLDS: dict[str, Family] = {
    "Soare": Family(
        turned_arms,
        "Yes/no questions about 6 items in 5 dimensions, one of them turned by 0.5 from the best; θ* = 4e₁.",
    ),
    "colours, clear": Family(
        colours(1.5), "A simulated person compares 37 colours with nine features; the favourite is ahead by 1.5."
    ),
    "colours, close": Family(colours(0.35), "The same with the favourite ahead by 0.35.", small=False),
    **{
        f"{count} items": Family(
            plain(count),
            f"Bradley–Terry without features; the best of {count} is ahead by 1.",
            small=count in (5, 20, 50),
        )
        for count in (5, 10, 20, 50, 100, 200)
    },
    "10 items, close": Family(
        plain(10, 0.4), "Bradley–Terry without features; the best of 10 is ahead by 0.4.", small=False
    ),
    "5 items, near tie": Family(
        plain(5, 0.1), "Bradley–Terry without features; the best of 5 is ahead by 0.1.", times=24
    ),
    "Thurstone": Family(thurstone, "10 items, normal noise instead of logistic."),
    "circle below": Family(circle_below, "The best of 10 wins 73% against each; below it everything goes in a circle."),
    "ties": Family(with_ties, "10 items; equals are tied in 43% of the answers (Davidson's model)."),
    "position bias": Family(position_bias, "10 items; being shown first is worth 1 in log-odds."),
    "mixed judges": Family(
        mixed_judges, "10 items, ten judges with tastes of their own; the winner has at least 62% against each item."
    ),
    "careless judges": Family(careless_judges, "10 items, ten judges, three of whom toss a coin; ahead by 1.5."),
    "systems": Family(systems, "8 systems, each question on one of 200 clustered inputs; 8 points of win rate ahead."),
    "disguised winner": Family(
        disguised, "20 items; four features explain all but the winner, which they show as mediocre."
    ),
    "circle on top": Family(circle_on_top, "10 items without a winner: three beat the rest, and one another in turn."),
}
"""By name; docs/benchmark.md shows how to add one."""
