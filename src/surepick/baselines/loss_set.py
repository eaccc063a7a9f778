"""Optimism over {θ : F(θ) ≤ ceiling, ‖θ‖ ≤ S}, F a penalised logistic loss: which arm's score can be largest?

The ball enters by duality: for every ν ≥ 0 the set lies in {F(θ) + (ν/2)‖θ‖² ≤ ceiling + νS²/2}, and the smallest of
the maxima over these is the maximum over the set. Every ν gives a valid bound, so a short ladder of them is searched.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.contextual import estimate, numerics
from surepick.contextual.estimate import Estimate
from surepick.contextual.policy import (
    KNOWN_NORM,
    LOGISTIC,
    SHORT_ARMS,
    Choice,
    Facts,
    NormBounded,
    chosen_vector,
    clean_arms,
    clean_reward,
)
from surepick.glm.duality import outer_radius
from surepick.guarantee import Guarantee

RUNG = 4.0
"""Factor between the ridges of the ladder: at the best of them the bound is within a percent or so of the maximum."""

RUNGS = 8
FIRST_RUNG = 3
"""Where the search starts; of the lowest rungs one looks like the next, so that from there it would not get going."""


class LossSet:
    """The set of one step; `ceiling` bounds F, the loss plus (ridge/2)‖θ‖², whose minimiser is `now`."""

    def __init__(self, now: Estimate, ridge: float, ceiling: float, bound: float) -> None:
        self.now = now
        self.ridge = ridge
        self.ceiling = ceiling
        self.bound = bound
        self._fits: dict[int, tuple[Floats, Floats]] = {0: (now.theta, now.inverse)}
        self._rung = FIRST_RUNG

    def most_promising(self, arms: Floats) -> int:
        """The first arm of largest score over the set.

        Scores are bounded (`_largest`) only for arms that a self-concordant ellipsoid does not rule out, from the most
        to the least promising; O(t d²) for each of these few.
        """
        upper = self._outer(arms)
        best, highest = 0, -math.inf
        for arm in np.argsort(-upper, kind="stable"):
            if upper[arm] <= highest:
                break
            value = self._largest(arms[arm], float(upper[arm]), highest)
            if value > highest:
                best, highest = int(arm), value
        return best

    def _outer(self, arms: Floats) -> Floats:
        """Upper bounds of all scores at once: an ellipsoid around the set, and the ball."""
        kernels, now = numerics.kernels, self.now
        squared = kernels.squared_norms(arms, now.inverse)
        if len(now.history) == 0:
            return np.asarray(squared)
        lengths = np.sqrt(np.einsum("ij,ij->i", arms, arms))
        reach = math.sqrt(float(kernels.squared_norms(now.history.rows, now.inverse).max()))
        radius = outer_radius(reach, 0.0, self.ceiling - self._penalised_loss(now.theta))
        return np.asarray(np.minimum(arms @ now.theta + radius * np.sqrt(squared), self.bound * lengths))

    def _largest(self, arm: Floats, upper: float, enough: float) -> float:
        """An upper bound of the arm's score over the set, tight to about a percent unless it is below `enough`.

        Starts at the rung of the ladder that was best for the arm before, and climbs or descends while that helps.
        """
        length = math.sqrt(float(arm @ arm))
        if length == 0.0 or self._penalised_loss(arm * (self.bound / length)) <= self.ceiling:
            return upper if len(self.now.history) == 0 else self.bound * length
        best, start = min(upper, self._support(arm, self._rung)), self._rung
        for direction in (1, -1):
            while best > enough and 0 <= self._rung + direction < RUNGS:
                value = self._support(arm, self._rung + direction)
                if value >= best:
                    break
                best, self._rung = value, self._rung + direction
            if self._rung != start:
                break
        return best

    def _support(self, arm: Floats, rung: int) -> float:
        """The bound that one ν gives."""
        kernels, history = numerics.kernels, self.now.history
        ridge = self.ridge * RUNG**rung
        if rung not in self._fits:
            nearest = self._fits[min(self._fits, key=lambda known: abs(known - rung))][0]
            theta, _, _, information, _ = kernels.newton(
                history.rows, history.answers, history.ones, nearest, ridge, 1e-6, 50
            )
            self._fits[rung] = theta, kernels.inverse(information + ridge * np.eye(len(theta)))
        theta, inverse = self._fits[rung]
        ceiling = self.ceiling + (ridge - self.ridge) / 2 * self.bound**2
        return float(kernels.support(history.rows, history.answers, ridge, theta, arm, inverse, ceiling))

    def _penalised_loss(self, theta: Floats) -> float:
        history = self.now.history
        loss = float(numerics.kernels.row_losses(history.rows, history.answers, theta).sum())
        return loss + self.ridge / 2 * float(theta @ theta)


@dataclass(frozen=True)
class LossSetPolicy(NormBounded, ABC):
    """Choose the arm whose score can be largest over such a set; policies differ in the ridge and the ceiling."""

    source: ClassVar[str]
    """Where the set is proved to hold the truth."""

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        cost = "O(t d²) time for each arm in contention, O(t d) memory"
        return Facts(Guarantee.CITED, self.source, (LOGISTIC, SHORT_ARMS, KNOWN_NORM), cost)

    @abstractmethod
    def ridge(self, dimension: int) -> float:
        """Of F."""

    @abstractmethod
    def ceiling(self, state: Estimate) -> float:
        """What F is at most on the set."""

    def start(self, dimension: int) -> Estimate:
        """Nothing known."""
        dimension = validate.whole("dimension", dimension)
        return estimate.first_estimate(dimension, self.ridge(dimension))

    def choose(self, state: Estimate, arms: Floats, rng: np.random.Generator) -> Choice:
        """The arm of largest upper bound."""
        offered = clean_arms(arms, len(state.theta))
        within = LossSet(state, self.ridge(len(state.theta)), self.ceiling(state), self.norm_bound)
        return Choice(within.most_promising(offered))

    def learn(self, state: Estimate, arms: Floats, choice: Choice, reward: float) -> Estimate:
        """Fit anew: the set is built around the exact minimum."""
        vector = chosen_vector(arms, choice, len(state.theta))
        return estimate.updated(state, vector, clean_reward(reward), self.ridge(len(vector)), growth=0.0)
