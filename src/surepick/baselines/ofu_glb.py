"""OFUGLB (Lee, Yun and Jun 2024): a likelihood-ratio set whose radius does not grow with the norm of θ*."""

import math
from dataclasses import dataclass

import numpy as np

from surepick.baselines.loss_set import LossSetPolicy
from surepick.contextual import estimate, numerics
from surepick.contextual.estimate import Estimate


@dataclass(frozen=True)
class OfuGlb(LossSetPolicy):
    """Choose the arm whose score can be largest over {θ : ‖θ‖ ≤ S, L_t(θ) − L_t(best in the ball) ≤ β²}.

    β² = log(1/delta) + d·log(max(e, 2eS·ℓ_t/d)), ℓ_t = (1 + S/2)(t − 1). The best loss in the ball is replaced by that
    of a point in it, which makes the set larger by a hair.
    """

    name = "ofu-glb"
    source = "Lee, Yun and Jun 2024, their unified likelihood-ratio confidence sequence."

    def ridge(self, dimension: int) -> float:
        """1/S²."""
        return self.norm_bound**-2

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
            short = estimate.within_ball(state, self.ridge(len(theta)), self.norm_bound)[3]
        else:
            short = float(numerics.kernels.row_losses(history.rows, history.answers, theta).sum())
        return short + self.beta_squared(len(theta), len(history)) + 0.5
