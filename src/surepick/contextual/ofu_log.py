"""OFULog (Abeille, Faury and Calauzènes 2021), in its convex form."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surepick.contextual import estimate
from surepick.contextual.estimate import Estimate
from surepick.contextual.faury import customary_ridge, faury_gamma
from surepick.contextual.loss_set import most_promising
from surepick.contextual.policy import (
    KNOWN_NORM,
    LOGISTIC,
    SHORT_ARMS,
    Choice,
    Facts,
    NormBounded,
    chosen_vector,
    clean_arms,
    clean_dimension,
    clean_reward,
)
from surepick.guarantee import Guarantee

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OfuLog(NormBounded):
    """Choose the arm whose score can be largest over {θ : L_λ(θ) − min L_λ ≤ (γ + γ²/√λ)²}, L_λ the ridge loss."""

    name = "ofu-log"

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        return Facts(
            Guarantee.CITED,
            "Abeille, Faury and Calauzènes 2021, the convex relaxation of their confidence set.",
            (LOGISTIC, SHORT_ARMS, KNOWN_NORM),
            "O(t d²) time for each arm in contention, O(t d) memory",
        )

    def ridge(self, dimension: int) -> float:
        """λ."""
        return customary_ridge(dimension, self.norm_bound, self.delta)

    def start(self, dimension: int) -> Estimate:
        """Nothing known."""
        dimension = clean_dimension(dimension)
        return estimate.first_estimate(dimension, self.ridge(dimension))

    def room(self, state: Estimate) -> float:
        """How far the loss may rise from its minimum."""
        ridge = self.ridge(len(state.theta))
        gamma = faury_gamma(state, ridge, self.norm_bound, self.delta)
        return (gamma + gamma**2 / math.sqrt(ridge)) ** 2

    def choose(self, state: Estimate, arms: Floats, rng: np.random.Generator) -> Choice:
        """The arm of largest upper bound."""
        offered = clean_arms(arms, len(state.theta))
        return Choice(most_promising(state, offered, self.ridge(len(state.theta)), self.room(state), self.norm_bound))

    def learn(self, state: Estimate, arms: Floats, choice: Choice, reward: float) -> Estimate:
        """Fit anew: the set is built around the exact minimum."""
        vector = chosen_vector(arms, choice, len(state.theta))
        return estimate.updated(state, vector, clean_reward(reward), self.ridge(len(vector)), growth=0.0)
