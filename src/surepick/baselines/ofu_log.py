"""OFULog (Abeille, Faury and Calauzènes 2021), in its convex form."""

import math
from dataclasses import dataclass

from surepick.baselines.intervals import faury_gamma, faury_ridge
from surepick.baselines.loss_set import LossSetPolicy
from surepick.contextual import numerics
from surepick.contextual.estimate import Estimate


@dataclass(frozen=True)
class OfuLog(LossSetPolicy):
    """Choose the arm whose score can be largest over {θ : ‖θ‖ ≤ S, L_λ(θ) − min L_λ ≤ (γ + γ²/√λ)²}.

    L_λ is the loss plus (λ/2)‖θ‖².
    """

    name = "ofu-log"
    source = "Abeille, Faury and Calauzènes 2021, the convex relaxation of their confidence set."

    def ridge(self, dimension: int) -> float:
        """λ."""
        return faury_ridge(dimension, self.norm_bound, self.delta)

    def ceiling(self, state: Estimate) -> float:
        """What L_λ is at most on the set."""
        history, theta, ridge = state.history, state.theta, self.ridge(len(state.theta))
        gamma = faury_gamma(len(theta), self.norm_bound, len(history), self.delta)
        least = float(numerics.kernels.row_losses(history.rows, history.answers, theta).sum())
        return least + ridge / 2 * float(theta @ theta) + (gamma + gamma**2 / math.sqrt(ridge)) ** 2
