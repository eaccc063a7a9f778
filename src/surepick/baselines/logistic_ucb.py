"""Logistic-UCB-1 and Logistic-UCB-2 (Faury, Abeille, Calauzènes and Fercoq 2020)."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.baselines.intervals import faury_gamma, faury_ridge
from surepick.contextual import kernels
from surepick.contextual.history import RidgeEstimate
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
from surepick.errors import InvalidInput
from surepick.glm import probability_of_yes, variance
from surepick.guarantee import Guarantee

LIPSCHITZ = 0.25
"""L and M of the paper: bounds of μ' and |μ''|."""


class LogisticUcbState(NamedTuple):
    """The ridge estimate, the point of the ball that stands for it, and the norms of both kinds."""

    estimate: RidgeEstimate
    design: Floats
    """Inverse of V = Σ xxᵀ + κλI."""
    theta: Floats
    """The estimate, or a point of the ball near it."""
    local: Floats
    """Inverse of H(θ) there."""
    attained: float
    """‖g(θ) − g(estimate)‖ in that inverse: zero for the estimate itself."""


@dataclass(frozen=True)
class LogisticUcb(NormBounded):
    """Choose the arm of largest μ(xᵀθ) + bonus, θ the ridge estimate moved into the ball ‖θ‖ ≤ S.

    With γ of Faury et al. and b = γ + (what moving into the ball costs), the mean value theorem gives for all x at once
    |xᵀ(θ − θ*)| ≤ √(1+2S)·b·‖x‖ in G⁻¹, G the mean information between the two, which is at least V/κ and at least
    H(θ)/(1+2S). Version 1 uses the first: bonus L·√(κ(1+2S))·b·‖x‖ in V⁻¹. Version 2 the second, to first order:
    bonus μ'(xᵀθ)·(1+2S)·b·‖x‖ in H(θ)⁻¹ + M·κ(1+2S)·b²·‖x‖² in V⁻¹. (κ is the inverse of the least slope.) The paper
    bounds the cost of moving by γ, hence its factor 2, and restricts θ further for its regret bound.
    """

    version: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.version not in (1, 2):
            raise InvalidInput(f"version must be 1 or 2, got {self.version!r}.")

    @property
    def name(self) -> str:
        """Name on the command line."""
        return f"logistic-ucb-{self.version}"

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        return Facts(
            Guarantee.CITED,
            f"Faury et al. 2020, Theorem {self.version + 1}; their confidence set is not re-derived here. The bonus is "
            "our derivation from it: the computed cost of moving into the ball stands in place of their factor 2, and "
            "the ridge is that of Jun et al. 2021. Their regret bound is for their constants.",
            (LOGISTIC, SHORT_ARMS, KNOWN_NORM),
            "O(K d² + t d²) time, O(t d) memory",
        )

    @property
    def kappa(self) -> float:
        """1 over the least slope of μ for ‖x‖ ≤ 1, ‖θ‖ ≤ S."""
        return float(1 / variance(np.array(self.norm_bound)))

    def ridge(self, dimension: int) -> float:
        """λ."""
        return faury_ridge(dimension, self.norm_bound, self.delta)

    def gamma(self, state: LogisticUcbState) -> float:
        """γ: ‖g(θ*) − g(estimate)‖ in H(θ*)⁻¹ is at most this at all times, with probability 1 − delta."""
        return faury_gamma(len(state.theta), self.norm_bound, len(state.estimate.history), self.delta)

    def start(self, dimension: int) -> LogisticUcbState:
        """Nothing known."""
        dimension = validate.whole("dimension", dimension)
        ridge = self.ridge(dimension)
        first = RidgeEstimate.empty(dimension, ridge)
        return LogisticUcbState(first, np.eye(dimension) / (self.kappa * ridge), first.theta, first.inverse, 0.0)

    def choose(self, state: LogisticUcbState, arms: Floats, rng: np.random.Generator) -> Choice:
        """The arm of largest upper bound."""
        offered = clean_arms(arms, len(state.theta))
        return Choice(int(np.argmax(self.upper_bounds(state, offered))))

    def upper_bounds(self, state: LogisticUcbState, arms: Floats) -> Floats:
        """Of the probability of a reward, for every arm."""
        slack = 1 + 2 * self.norm_bound
        radius = self.gamma(state) + state.attained
        logits = arms @ state.theta
        squared = kernels.squared_norms(arms, state.design)
        if self.version == 1:
            bonus = LIPSCHITZ * math.sqrt(self.kappa * slack) * radius * np.sqrt(squared)
        else:
            local = np.sqrt(kernels.squared_norms(arms, state.local))
            bonus = variance(logits) * slack * radius * local + LIPSCHITZ * self.kappa * slack * radius**2 * squared
        return np.asarray(probability_of_yes(logits) + bonus)

    def learn(self, state: LogisticUcbState, arms: Floats, choice: Choice, reward: float) -> LogisticUcbState:
        """Update the estimate, move it into the ball, update V."""
        vector = chosen_vector(arms, choice, len(state.theta))
        ridge = self.ridge(len(vector))
        now = state.estimate.updated(vector, clean_reward(reward), ridge, growth=0.0)
        design = state.design.copy()
        kernels.add_outer(design, vector, 1.0)
        if float(np.linalg.norm(now.theta)) <= self.norm_bound:
            return LogisticUcbState(now, design, now.theta, now.inverse, 0.0)
        # The gradient at θ is g(θ) − g(estimate), because it vanishes at the estimate.
        theta, local, gradient, _ = now.within_ball(ridge, self.norm_bound)
        attained = math.sqrt(max(0.0, float(gradient @ local @ gradient)))
        return LogisticUcbState(now, design, theta, local, attained)
