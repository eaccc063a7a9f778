"""Systems that answer inputs, and a judge who compares their outputs: a model of item responses.

The output of system s for input i has the quality

    q_si = λ_i·a_s + c_s,k(i) + e_si        λ_i how much the input tells systems apart, k(i) the input's cluster

The judge prefers s to t on input i with probability μ((q_si − q_ti)/noise + place), where place is what being shown
first is worth. A judge of noise 0 always says the same to the same question in the same order. One system is moved
until its mean win rate is ahead by the lead wanted.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.glm import probability_of_yes
from surepick.identify.sets import Order

ABILITY, OUTPUT = 0.5, 0.7
"""Standard deviations of what a system can do, and of how well it happened to do on an input."""


@dataclass(frozen=True)
class Judging:
    """What sort of inputs and judge there is."""

    clusters: int = 0
    """Groups of inputs on which each system has a strength or weakness of its own; 0 for none."""
    noise: float = 1.0
    """0: the same answer to the same question, as a language model at temperature 0."""
    place: float = 0.0
    """What being shown first is worth, in log-odds; for a judge without noise in units of quality."""


KINDS = {
    "plain": Judging(),
    "clustered": Judging(clusters=10),
    "biased": Judging(place=1.0),
    "fixed": Judging(clusters=10, noise=0.0, place=0.5),
}


@dataclass(frozen=True, eq=False)
class ItemResponses:
    """The qualities of all outputs, systems × inputs, and the judge."""

    quality: Floats
    judging: Judging

    @cached_property
    def by_input(self) -> Floats:
        """Probability that the first system of a pair wins on an input, mean of both orders: pairs × inputs."""
        first, second = np.triu_indices(len(self.quality), 1)
        return self._chances(self.quality[first], self.quality[second])

    @cached_property
    def chances(self) -> Floats:
        """Probability that the system of the row beats that of the column, on average over inputs and orders."""
        count = len(self.quality)
        result = np.full((count, count), 0.5)
        first, second = np.triu_indices(count, 1)
        result[first, second] = self.by_input.mean(axis=1)
        result[second, first] = 1 - result[first, second]
        return result

    @property
    def win_rates(self) -> Floats:
        """The mean over its comparisons with the other systems, for each system."""
        count = len(self.quality)
        return np.asarray((self.chances.sum(axis=1) - 0.5) / (count - 1))

    @property
    def best(self) -> int:
        """The system of the highest win rate."""
        return int(np.argmax(self.win_rates))

    @property
    def lead(self) -> float:
        """By how much its win rate is ahead."""
        ordered = np.sort(self.win_rates)
        return float(ordered[-1] - ordered[-2])

    @property
    def has_winner(self) -> bool:
        """Whether the best system beats every other one on average, as the claim "winner" assumes."""
        return bool(np.all(np.delete(self.chances[self.best], self.best) > 0.5))

    def first_answers(self, rng: np.random.Generator) -> Floats:
        """What the judge says first to every pair on every input in both orders: pairs × answers, 1 for the first."""
        first, second = np.triu_indices(len(self.quality), 1)
        chances = np.concatenate(self._in_both_orders(self.quality[first], self.quality[second]), axis=1)
        return np.asarray(rng.random(chances.shape) < chances, dtype=np.float64)

    def rankings(self, shown: Integers, top: int, times: int, rng: np.random.Generator) -> list[Order]:
        """The top places of rankings of some systems, each on an input and in an order of display drawn at random.

        By the model of Plackett and Luce, so that pairs in a ranking are as in comparisons. The place is worth less and
        less from the first, with what it is in comparisons, to the last, with nothing.
        """
        places = self._places(len(shown), times, rng)
        quality = self.quality[shown][:, rng.integers(self.quality.shape[1], size=times)].T
        return self._ranked(quality, places, top, rng)

    def first_rankings(self, rng: np.random.Generator) -> list[Order]:
        """What the judge says first to all systems on every input, in an order of display drawn at random and in its
        reverse."""
        count, inputs = self.quality.shape
        places = self._places(count, inputs, rng)
        both = np.concatenate([places, self.judging.place - places])
        return self._ranked(np.tile(self.quality.T, (2, 1)), both, count - 1, rng)

    def _places(self, k: int, times: int, rng: np.random.Generator) -> Floats:
        """What the place of each of k outputs is worth, in orders of display drawn at random: times × k."""
        return rng.permuted(np.tile(np.linspace(self.judging.place, 0.0, k), (times, 1)), axis=1)

    def _ranked(self, quality: Floats, places: Floats, top: int, rng: np.random.Generator) -> list[Order]:
        noise = self.judging.noise
        worth = quality + places if noise == 0 else quality / noise + places + rng.gumbel(size=places.shape)
        return [tuple(order) for order in np.argsort(-worth, axis=1)[:, :top].tolist()]

    def _chances(self, one: Floats, other: Floats) -> Floats:
        shown_first, shown_second = self._in_both_orders(one, other)
        return (shown_first + shown_second) / 2

    def _in_both_orders(self, one: Floats, other: Floats) -> tuple[Floats, Floats]:
        """Probability that `one` wins if it is shown first, and if it is shown second."""
        gap, place = one - other, self.judging.place
        if self.judging.noise == 0:
            return np.asarray(gap + place > 0, dtype=np.float64), np.asarray(gap - place > 0, dtype=np.float64)
        gap = gap / self.judging.noise
        return probability_of_yes(gap + place), probability_of_yes(gap - place)


def item_responses(kind: str, systems: int, inputs: int, lead: float, rng: np.random.Generator) -> ItemResponses:
    """A random world in which one system wins, and its win rate is ahead by about `lead` (0.04 for four points).

    Worlds in which no shift of the best system gives the lead together with a win against every other are drawn again.
    """
    judging = KINDS[kind]
    while True:
        telling = rng.lognormal(0, 0.5, inputs)
        quality = rng.normal(0, ABILITY, (systems, 1)) * telling + rng.normal(0, OUTPUT, (systems, inputs))
        if judging.clusters:
            strength = rng.normal(0, ABILITY, (systems, judging.clusters))
            quality += strength[:, rng.integers(judging.clusters, size=inputs)]
        best = ItemResponses(quality, judging).best
        low, high = -4.0, 4.0
        for _ in range(25):  # the lead of a system grows with its quality
            middle = (low + high) / 2
            world = ItemResponses(quality + middle * (np.arange(systems) == best)[:, None], judging)
            ahead = world.lead if world.best == best else -world.lead
            low, high = (middle, high) if ahead < lead else (low, middle)
        # A fixed judge has steps: with few inputs the lead can only be met roughly.
        if world.best == best and world.has_winner and abs(world.lead - lead) < 0.1 * lead + 0.5 / inputs:
            return world
