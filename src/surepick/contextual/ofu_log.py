"""OFULog (Abeille, Faury and Calauzènes 2021), in its convex form."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surepick.contextual import estimate, numerics
from surepick.contextual.estimate import Estimate
from surepick.contextual.faury import customary_ridge, faury_gamma
from surepick.contextual.loss_set import LossSet
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
    """Choose the arm whose score can be largest over {θ : ‖θ‖ ≤ S, L_λ(θ) − min L_λ ≤ (γ + γ²/√λ)²}.

    L_λ is the loss plus (λ/2)‖θ‖².
    """

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

    def ceiling(self, state: Estimate) -> float:
        """What L_λ is at most on the set."""
        history, theta, ridge = state.history, state.theta, self.ridge(len(state.theta))
        gamma = faury_gamma(state, ridge, self.norm_bound, self.delta)
        least = float(numerics.kernels.row_losses(history.rows, history.answers, theta).sum())
        return least + ridge / 2 * float(theta @ theta) + (gamma + gamma**2 / math.sqrt(ridge)) ** 2

    def choose(self, state: Estimate, arms: Floats, rng: np.random.Generator) -> Choice:
        """The arm of largest upper bound."""
        offered = clean_arms(arms, len(state.theta))
        within = LossSet(state, self.ridge(len(state.theta)), self.ceiling(state), self.norm_bound)
        return Choice(within.most_promising(offered))

    def learn(self, state: Estimate, arms: Floats, choice: Choice, reward: float) -> Estimate:
        """Fit anew: the set is built around the exact minimum."""
        vector = chosen_vector(arms, choice, len(state.theta))
        return estimate.updated(state, vector, clean_reward(reward), self.ridge(len(vector)), growth=0.0)
