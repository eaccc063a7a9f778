"""UCB-GLM (Li, Lu and Zhou 2017, Algorithm 1)."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.contextual import kernels
from surepick.contextual.history import RidgeEstimate
from surepick.contextual.policy import (
    KNOWN_NORM,
    LOGISTIC,
    SHORT_ARMS,
    Choice,
    Facts,
    chosen_vector,
    clean_arms,
    clean_reward,
)
from surepick.glm import variance
from surepick.guarantee import Guarantee

RIDGE = 1e-4
"""Keeps the estimate finite while the answers are separated; the paper's is the plain maximum of the likelihood."""


def li_kappa(norm_bound: float) -> float:
    """κ of Li et al.: the least slope of μ over ‖x‖ ≤ 1 and ‖θ − θ*‖ ≤ 1."""
    return float(variance(np.array(norm_bound + 1.0)))


class UcbGlmState(NamedTuple):
    """The estimate, and the inverse of V = Σ xxᵀ."""

    estimate: RidgeEstimate
    inverse: Floats
    burn_in_over: bool
    """Whether λ_min(V) has reached 1."""


@dataclass(frozen=True)
class UcbGlm:
    """Choose the arm of largest xᵀθ + α·‖x‖ in V⁻¹, after uniform steps until λ_min(V) ≥ 1.

    α = (3σ/κ)·√((d/2)·log(1 + 2T/d) + log(1/delta)) with σ = 1/2.
    """

    name = "ucb-glm"

    horizon: int
    norm_bound: float
    delta: float = 0.05
    alpha: float | None = None

    def __post_init__(self) -> None:
        validate.whole("horizon", self.horizon, least=2)
        validate.positive("norm_bound", self.norm_bound)
        validate.probability("delta", self.delta)
        if self.alpha is not None:
            validate.positive("alpha", self.alpha)

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        return Facts(
            Guarantee.CITED if self.alpha is None else Guarantee.HEURISTIC,
            "Li, Lu and Zhou 2017, Theorem 2." if self.alpha is None else "Nothing is claimed for a set alpha.",
            (LOGISTIC, SHORT_ARMS, KNOWN_NORM, "contexts are independent and spread over all directions"),
            "O(K d² + t d²) time, O(t d) memory",
        )

    def radius(self, dimension: int) -> float:
        """α."""
        spread = dimension / 2 * math.log(1 + 2 * self.horizon / dimension) + math.log(1 / self.delta)
        return self.alpha or 1.5 / li_kappa(self.norm_bound) * math.sqrt(spread)

    def start(self, dimension: int) -> UcbGlmState:
        """Nothing known."""
        dimension = validate.whole("dimension", dimension)
        return UcbGlmState(RidgeEstimate.empty(dimension, RIDGE), np.eye(dimension) / RIDGE, False)

    def choose(self, state: UcbGlmState, arms: Floats, rng: np.random.Generator) -> Choice:
        """Uniform at first, then the arm of largest upper bound."""
        theta = state.estimate.theta
        offered = clean_arms(arms, len(theta))
        if not state.burn_in_over:
            return Choice(int(rng.integers(len(offered))), 1.0 / len(offered))
        return Choice(kernels.optimistic(offered, theta, state.inverse, self.radius(len(theta))))

    def learn(self, state: UcbGlmState, arms: Floats, choice: Choice, reward: float) -> UcbGlmState:
        """Update the estimate and V."""
        vector = chosen_vector(arms, choice, len(state.inverse))
        now = state.estimate.updated(vector, clean_reward(reward), RIDGE, growth=0.0)
        inverse = state.inverse.copy()
        kernels.add_outer(inverse, vector, 1.0)
        # λ_min(V) ≥ 1 is λ_max(V⁻¹) ≤ 1; RIDGE in V is too small to matter.
        burn_in_over = state.burn_in_over or float(np.linalg.eigvalsh(inverse)[-1]) <= 1.0
        return UcbGlmState(now, inverse, burn_in_over)
