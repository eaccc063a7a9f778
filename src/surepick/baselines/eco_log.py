"""ECOLog (Faury, Abeille, Jun and Calauzènes 2022): optimism with an online estimate, in its adaptive form."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.contextual import kernels
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
from surepick.glm import softplus, variance
from surepick.guarantee import Guarantee


class EcoLogState(NamedTuple):
    """The online estimate, its information W and what the radius depends on."""

    theta: Floats
    information: Floats
    inverse: Floats
    excess: float
    """Σ loss(θ̄) − loss(θ) so far."""
    learnt: int


@dataclass(frozen=True)
class EcoLog(NormBounded):
    """Choose the arm of largest xᵀθ + r·‖x‖ in W⁻¹, θ an online estimate.

    Each step θ moves to the minimiser over ‖θ‖ ≤ S of ‖θ − θ_t‖²_W/(2+S) + loss(θ), and W gains μ'(xᵀθ)·xxᵀ; θ̄ is the
    same with both possible answers' losses. r² = 4S²λ + 2(2+S)[(2+S)ν/4 + S²/(2+S) + Σ(loss(θ̄) − loss(θ))] +
    4·log(1+t), ν = ½ + 2·log(2√(1 + t/(4λ))/delta), λ = 1: the radius as the authors corrected it in their code.
    """

    name = "eco-log"

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        return Facts(
            Guarantee.CITED,
            "Faury et al. 2022, with the radius of the authors' later code.",
            (LOGISTIC, SHORT_ARMS, KNOWN_NORM),
            "O(K d² + d²) time (O(d³) where the estimate meets the ball), O(d²) memory",
        )

    def radius(self, state: EcoLogState) -> float:
        """r."""
        s, t = self.norm_bound, state.learnt
        nu = 0.5 + 2 * math.log(2 * math.sqrt(1 + t / 4) / self.delta)
        square = 4 * s**2 + 2 * (2 + s) * ((2 + s) * nu / 4 + s**2 / (2 + s) + state.excess) + 4 * math.log(1 + t)
        return math.sqrt(max(square, 0.0))

    def start(self, dimension: int) -> EcoLogState:
        """θ = 0, W = I."""
        dimension = validate.whole("dimension", dimension)
        return EcoLogState(np.zeros(dimension), np.eye(dimension), np.eye(dimension), 0.0, 0)

    def choose(self, state: EcoLogState, arms: Floats, rng: np.random.Generator) -> Choice:
        """The arm of largest upper bound."""
        offered = clean_arms(arms, len(state.theta))
        return Choice(kernels.optimistic(offered, state.theta, state.inverse, self.radius(state)))

    def learn(self, state: EcoLogState, arms: Floats, choice: Choice, reward: float) -> EcoLogState:
        """One online step."""
        vector = chosen_vector(arms, choice, len(state.theta))
        answer = clean_reward(reward)
        theta = self._moved(state, vector, 1.0 - answer, answer)
        both = self._moved(state, vector, 1.0, 1.0)
        weight = float(variance(vector @ theta))
        inverse = state.inverse.copy()
        kernels.add_outer(inverse, vector, weight)
        information = state.information + weight * np.outer(vector, vector)
        sign = 1.0 - 2.0 * answer
        excess = float(softplus(sign * (vector @ both)) - softplus(sign * (vector @ theta)))
        return EcoLogState(theta, information, inverse, state.excess + excess, state.learnt + 1)

    def _moved(self, state: EcoLogState, vector: Floats, noes: float, yeses: float) -> Floats:
        """Minimise ‖θ − θ_t‖²_W/(2+S) + noes·m(v) + yeses·m(−v) over the ball."""
        across = state.inverse @ vector * (2 + self.norm_bound) / 2
        squared = float(vector @ across)
        before = float(vector @ state.theta)
        v = _stationary(before, squared, noes, yeses)
        theta = state.theta + across * ((v - before) / squared) if squared > 0 else state.theta
        if float(np.linalg.norm(theta)) <= self.norm_bound:
            return np.asarray(theta)
        # The objective is convex: where its minimum lies outside the ball, that over the ball is on the sphere.
        return _on_sphere(state, vector, noes, yeses, 2 / (2 + self.norm_bound), self.norm_bound)


def _stationary(before: float, squared: float, noes: float, yeses: float) -> float:
    """The v with v = before − squared·(noes·μ(v) − yeses·μ(−v)), by bisection: the right side falls with v."""
    low, high = before - squared * noes, before + squared * yeses
    for _ in range(60):
        v = (low + high) / 2
        yes = 1 / (1 + math.exp(-v)) if v > -700 else 0.0
        if v > before - squared * (noes * yes - yeses * (1 - yes)):
            high = v
        else:
            low = v
        if high - low < 1e-12:
            break
    return (low + high) / 2


def _on_sphere(state: EcoLogState, vector: Floats, noes: float, yeses: float, weight: float, bound: float) -> Floats:
    """The same minimum on ‖θ‖ = bound, `weight` being 2/(2+S): the multiplier ν of (ν/2)‖θ‖² is found by bisection.

    With A = weight·W + νI the minimiser is A⁻¹(weight·W·θ_t) − slope(v)·A⁻¹x, so that v = xᵀθ is again `_stationary`.
    """
    identity, pull = np.eye(len(vector)), weight * (state.information @ state.theta)

    def minimiser(nu: float) -> Floats:
        free, across = np.linalg.solve(weight * state.information + nu * identity, np.stack([pull, vector], axis=1)).T
        before, squared = float(vector @ free), float(vector @ across)
        v = _stationary(before, squared, noes, yeses)
        return np.asarray(free + across * ((v - before) / squared)) if squared > 0 else np.asarray(free)

    low, high = 0.0, 1.0
    while float(np.linalg.norm(minimiser(high))) > bound and high < 1e12:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        if float(np.linalg.norm(minimiser(middle))) > bound:
            low = middle
        else:
            high = middle
    return minimiser(high)
