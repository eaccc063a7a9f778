"""The ridge estimate kept up to date: online Newton steps, and a full warm-started fit whenever answers grew by 1%."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.contextual import numerics
from surepick.contextual.history import History
from surepick.contextual.policy import Choice, chosen_vector, clean_reward, refit_due

GROWTH = 0.01


class Estimate(NamedTuple):
    """θ minimises loss + (ridge/2)‖θ‖² over the history, exactly at the last full fit and nearly so in between."""

    history: History
    theta: Floats
    inverse: Floats
    """Inverse of the information at θ plus ridge·I."""
    fitted: int
    """Number of answers at the last full fit."""


def first_estimate(dimension: int, ridge: float) -> Estimate:
    """Zero, before any answer."""
    return Estimate(History.empty(dimension), np.zeros(dimension), np.eye(dimension) / ridge, 0)


def updated(now: Estimate, vector: Floats, answer: float, ridge: float, *, growth: float = GROWTH) -> Estimate:
    """The estimate after one more answer; O(d²), and O(d²/growth) amortised for the full fits."""
    kernels = numerics.kernels
    history = now.history.appended(vector, answer)
    theta, inverse = now.theta.copy(), now.inverse.copy()
    if not refit_due(history.count, now.fitted, growth):
        kernels.online_step(theta, inverse, vector, answer)
        return now._replace(history=history, theta=theta, inverse=inverse)
    theta, _, _, information, _ = kernels.newton(history.rows, history.answers, history.ones, theta, ridge, 1e-6, 50)
    return Estimate(history, theta, kernels.inverse(information + ridge * np.eye(len(theta))), history.count)


def within_ball(now: Estimate, ridge: float, bound: float) -> tuple[Floats, Floats, Floats, float]:
    """A point of norm at most `bound` near the estimate: (θ, inverse of information plus ridge, gradient, loss) there.

    The ridge is doubled until the estimate is short enough; any point of the ball is valid where this is used, because
    the gradient of the penalised loss there says how far it is from the estimate.
    """
    kernels, history, theta, weight = numerics.kernels, now.history, now.theta, ridge
    identity = np.eye(len(theta))
    while True:
        theta, loss, gradient, information, _ = kernels.newton(
            history.rows, history.answers, history.ones, theta, weight, 1e-4, 50
        )
        if float(np.linalg.norm(theta)) <= bound or weight > 1e12:
            break
        weight = max(2.0 * weight, 1e-3)
    return theta, kernels.inverse(information + ridge * identity), gradient + ridge * theta, loss


@dataclass(frozen=True)
class RidgeLearner:
    """Policies whose state is the ridge estimate; they differ in how they choose."""

    ridge: float = 1.0

    def __post_init__(self) -> None:
        validate.positive("ridge", self.ridge)

    def start(self, dimension: int) -> Estimate:
        """The estimate before any reward."""
        return first_estimate(validate.whole("dimension", dimension), self.ridge)

    def learn(self, state: Estimate, arms: Floats, choice: Choice, reward: float) -> Estimate:
        """Update the estimate."""
        vector = chosen_vector(arms, choice, len(state.theta))
        return updated(state, vector, clean_reward(reward), self.ridge)
