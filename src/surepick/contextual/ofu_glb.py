"""OFUGLB (Lee, Yun and Jun 2024): a likelihood-ratio set whose radius does not grow with the norm of θ*."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surepick.contextual import estimate, numerics
from surepick.contextual.estimate import Estimate
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
class OfuGlb(NormBounded):
    """Choose the arm whose score can be largest over {θ : ‖θ‖ ≤ S, L_t(θ) − L_t(best in the ball) ≤ β²}.

    β² = log(1/delta) + d·log(max(e, 2eS·ℓ_t/d)), ℓ_t = (1 + S/2)(t − 1). The best loss in the ball is replaced by that
    of a point in it, which makes the set larger by a hair.
    """

    name = "ofu-glb"

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        return Facts(
            Guarantee.CITED,
            "Lee, Yun and Jun 2024, their unified likelihood-ratio confidence sequence.",
            (LOGISTIC, SHORT_ARMS, KNOWN_NORM),
            "O(t d²) time for each arm in contention, O(t d) memory",
        )

    @property
    def ridge(self) -> float:
        """1/S²."""
        return self.norm_bound**-2

    def start(self, dimension: int) -> Estimate:
        """Nothing known."""
        return estimate.first_estimate(clean_dimension(dimension), self.ridge)

    def beta_squared(self, dimension: int, answers: int) -> float:
        """β² of the paper."""
        slope = (1 + self.norm_bound / 2) * answers
        return math.log(1 / self.delta) + dimension * math.log(
            max(math.e, 2 * math.e * self.norm_bound * slope / dimension)
        )

    def ceiling(self, state: Estimate) -> float:
        """What L + ‖θ‖²/(2S²) is at most on the set."""
        history, theta = state.history, state.theta
        if float(np.linalg.norm(theta)) > self.norm_bound:
            short = estimate.within_ball(state, self.ridge, self.norm_bound)[3]
        else:
            short = float(numerics.kernels.row_losses(history.rows, history.answers, theta).sum())
        return short + self.beta_squared(len(theta), len(history)) + 0.5

    def choose(self, state: Estimate, arms: Floats, rng: np.random.Generator) -> Choice:
        """The arm of largest upper bound."""
        offered = clean_arms(arms, len(state.theta))
        return Choice(LossSet(state, self.ridge, self.ceiling(state), self.norm_bound).most_promising(offered))

    def learn(self, state: Estimate, arms: Floats, choice: Choice, reward: float) -> Estimate:
        """Fit anew: the set is built around the exact minimum."""
        vector = chosen_vector(arms, choice, len(state.theta))
        return estimate.updated(state, vector, clean_reward(reward), self.ridge, growth=0.0)
