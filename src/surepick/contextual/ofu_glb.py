"""OFUGLB (Lee, Yun and Jun 2024): a likelihood-ratio set whose radius does not grow with the norm of θ*."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surepick.contextual import estimate, numerics
from surepick.contextual.estimate import Estimate
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
class OfuGlb(NormBounded):
    """Choose the arm whose score can be largest over {θ : ‖θ‖ ≤ S, L_t(θ) − L_t(best in the ball) ≤ β²}.

    β² = log(1/delta) + d·log(max(e, 2eS·ℓ_t/d)), ℓ_t = (1 + S/2)(t − 1). Two enlargements keep the set valid
    and its programs easy: the ball enters as a ridge of weight 1/S² (which θ* pays with at most 1/2) and as a cap of
    scores; the best loss in the ball is replaced by that of a point in it.
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

    def room(self, state: Estimate) -> float:
        """How far the ridge loss may rise from its minimum."""
        history, theta = state.history, state.theta
        best = float(numerics.kernels.row_losses(history.rows, history.answers, theta).sum())
        short = best
        if float(np.linalg.norm(theta)) > self.norm_bound:
            short = estimate.within_ball(state, self.ridge, self.norm_bound)[3]
        # L(θ*) + ‖θ*‖²/(2S²) ≤ L(point in the ball) + β² + 1/2
        return short - best + self.beta_squared(len(theta), len(history)) + 0.5 - self.ridge / 2 * float(theta @ theta)

    def choose(self, state: Estimate, arms: Floats, rng: np.random.Generator) -> Choice:
        """The arm of largest upper bound."""
        offered = clean_arms(arms, len(state.theta))
        return Choice(most_promising(state, offered, self.ridge, self.room(state), self.norm_bound))

    def learn(self, state: Estimate, arms: Floats, choice: Choice, reward: float) -> Estimate:
        """Fit anew: the set is built around the exact minimum."""
        vector = chosen_vector(arms, choice, len(state.theta))
        return estimate.updated(state, vector, clean_reward(reward), self.ridge, growth=0.0)
