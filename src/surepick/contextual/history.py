"""Chosen vectors and their rewards in the order of learning, and the ridge estimate that follows them.

The estimate is kept up to date by online Newton steps, and by a full warm-started fit whenever answers grew by 1%.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.contextual import kernels
from surepick.contextual.policy import Choice, chosen_vector, clean_reward, refit_due
from surepick.glm.kernels import inverse, newton


class _Buffer:
    """Memory shared by histories of which each is the beginning of the next."""

    __slots__ = ("answers", "filled", "rows")

    def __init__(self, rows: Floats, answers: Floats, filled: int) -> None:
        self.rows = rows
        self.answers = answers
        self.filled = filled


@dataclass(frozen=True, slots=True)
class History:
    """The first `count` entries of a buffer. Appending takes O(d) amortised and leaves this history as it was.

    The next entry goes into the shared buffer if nobody has written there yet, else into a copy.
    """

    buffer: _Buffer
    count: int

    @classmethod
    def empty(cls, dimension: int) -> "History":
        """No entries yet."""
        return cls(_Buffer(np.empty((16, dimension)), np.empty(16), 0), 0)

    def __len__(self) -> int:
        return self.count

    @property
    def rows(self) -> Floats:
        """Chosen vectors (read only by agreement)."""
        return self.buffer.rows[: self.count]

    @property
    def answers(self) -> Floats:
        """Rewards, 0.0 or 1.0."""
        return self.buffer.answers[: self.count]

    @property
    def ones(self) -> Floats:
        """A weight of one for every entry."""
        return np.ones(self.count)

    def extended(self, rows: Floats, answers: Floats) -> "History":
        """This history and many entries more."""
        if len(rows) == 0:
            return self
        buffer, count, total = self.buffer, self.count, self.count + len(rows)
        if buffer.filled != count or total > len(buffer.rows):
            buffer = self._copied(max(16, 2 * total))
        buffer.rows[count:total], buffer.answers[count:total] = rows, answers
        buffer.filled = total
        return History(buffer, total)

    def _copied(self, size: int) -> _Buffer:
        rows, answers = np.empty((size, self.buffer.rows.shape[1])), np.empty(size)
        rows[: self.count], answers[: self.count] = self.rows, self.answers
        return _Buffer(rows, answers, self.count)

    def appended(self, vector: Floats, answer: float) -> "History":
        """This history and one entry more."""
        # Somebody else may have gone on from this history: what stands behind `count` is then theirs.
        buffer, count = self.buffer, self.count
        if buffer.filled != count or count == len(buffer.rows):
            buffer = self._copied(max(16, 2 * count))
        buffer.rows[count] = vector
        buffer.answers[count] = answer
        buffer.filled = count + 1
        return History(buffer, count + 1)


GROWTH = 0.01


class RidgeEstimate(NamedTuple):
    """θ minimises loss + (ridge/2)‖θ‖² over the history, exactly at the last full fit and nearly so in between."""

    history: History
    theta: Floats
    inverse: Floats
    """Inverse of the information at θ plus ridge·I."""
    fitted: int
    """Number of answers at the last full fit."""

    @classmethod
    def empty(cls, dimension: int, ridge: float) -> "RidgeEstimate":
        """Zero, before any answer."""
        return cls(History.empty(dimension), np.zeros(dimension), np.eye(dimension) / ridge, 0)

    def updated(self, vector: Floats, answer: float, ridge: float, *, growth: float = GROWTH) -> "RidgeEstimate":
        """The estimate after one more answer; O(d²), and O(d²/growth) amortised for the full fits."""
        history = self.history.appended(vector, answer)
        if refit_due(history.count, self.fitted, growth):
            found = newton(history.rows, history.answers, history.ones, self.theta, ridge, 1e-6, 50)
            return RidgeEstimate(history, found[0], inverse(found[3] + ridge * np.eye(len(vector))), history.count)
        theta, after = self.theta.copy(), self.inverse.copy()
        kernels.online_step(theta, after, vector, answer)
        return RidgeEstimate(history, theta, after, self.fitted)

    def within_ball(self, ridge: float, bound: float) -> tuple[Floats, Floats, Floats, float]:
        """A point of norm at most `bound` near the estimate.

        Returns θ and, there, the inverse of the information plus ridge·I, the gradient of the penalised loss, and the
        loss. The weight of ‖θ‖²/2 is doubled until θ is short enough: any point of the ball is valid where this is
        used, because the gradient there says how far it is from the estimate.
        """
        history, theta, weight = self.history, self.theta, ridge
        while True:
            theta, loss, gradient, information, _ = newton(
                history.rows, history.answers, history.ones, theta, weight, 1e-4, 50
            )
            if float(np.linalg.norm(theta)) <= bound or weight > 1e12:
                break
            weight = max(2.0 * weight, 1e-3)
        return theta, inverse(information + ridge * np.eye(len(theta))), gradient + ridge * theta, loss


@dataclass(frozen=True)
class RidgeLearner:
    """Policies whose state is the ridge estimate; they differ in how they choose."""

    ridge: float = 1.0

    def __post_init__(self) -> None:
        validate.positive("ridge", self.ridge)

    def start(self, dimension: int) -> RidgeEstimate:
        """The estimate before any reward."""
        return RidgeEstimate.empty(validate.whole("dimension", dimension), self.ridge)

    def learn(self, state: RidgeEstimate, arms: Floats, choice: Choice, reward: float) -> RidgeEstimate:
        """Update the estimate."""
        vector = chosen_vector(arms, choice, len(state.theta))
        return state.updated(vector, clean_reward(reward), self.ridge)
