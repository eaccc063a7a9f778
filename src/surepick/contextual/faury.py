"""The Bernstein-type confidence set of Faury et al. 2020, shared by Logistic-UCB and OFULog."""

import math

from surepick.contextual.estimate import Estimate


def customary_ridge(dimension: int, norm_bound: float, delta: float) -> float:
    """λ = (d + log(1/delta))/(S + 1/2), which balances the terms of γ (Jun et al. 2021)."""
    return (dimension + math.log(1 / delta)) / (norm_bound + 0.5)


def faury_gamma(now: Estimate, ridge: float, norm_bound: float, delta: float) -> float:
    """γ_t = √λ·(S + 1/2) + (2/√λ)·[log(1/delta) + ½·log det H_t − (d/2)·log λ + d·log 2].

    With probability 1 − delta at all times ‖g_t(θ*) − g_t(estimate)‖ ≤ γ_t in H_t(θ*)⁻¹ (Faury et al. 2020), where
    g_t(θ) = Σ μ(xᵀθ)x + λθ and H_t is its derivative.
    """
    dimension, root = len(now.theta), math.sqrt(ridge)
    spread = now.log_det / 2 - dimension / 2 * math.log(ridge) + dimension * math.log(2)
    return root * (norm_bound + 0.5) + 2 / root * (math.log(1 / delta) + spread)
