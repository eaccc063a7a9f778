"""Optimism over a sublevel set of the loss: OFULog (Abeille et al. 2021) and OFUGLB (Lee et al. 2024).

The set is {θ : F(θ) ≤ ceiling, ‖θ‖ ≤ S}, F a penalised logistic loss; the question is which arm's score can be largest
on it. The ball enters by duality: for every ν ≥ 0 the set lies in {F(θ) + (ν/2)‖θ‖² ≤ ceiling + νS²/2}, and the
smallest of the maxima over these is the maximum over the set. Every ν gives a valid bound, so a short ladder of them is
searched.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.baselines.intervals import faury_gamma, faury_ridge
from surepick.contextual.history import RidgeEstimate
from surepick.contextual.kernels import row_losses, squared_norms
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
from surepick.glm.duality import outer_radius
from surepick.glm.kernels import inverse, kernel, newton
from surepick.guarantee import Guarantee

RUNG = 4.0
"""Factor between the ridges of the ladder: at the best of them the bound is within a percent or so of the maximum."""

RUNGS = 8
FIRST_RUNG = 3
"""Where the search starts; on the lowest rungs the bounds hardly differ, so from there it would not get going."""


@kernel
def penalised_loss(rows: Floats, answers: Floats, theta: Floats, ridge: float) -> float:
    """F(θ): the loss of all answers plus (ridge/2)‖θ‖²."""
    return float(row_losses(rows, answers, theta).sum()) + ridge / 2 * float(theta @ theta)


@kernel
def largest_score(
    rows: Floats, answers: Floats, ridge: float, start: Floats, direction: Floats, inverse: Floats, ceiling: float
) -> float:
    """An upper bound of directionᵀθ over {F(θ) ≤ ceiling}, tight to about 1%; O(t d²) for each of a few Newton steps.

    By duality every η > 0 gives the bound (ceiling − min{F − η·directionᵀθ})/η, least where F at that minimiser
    equals the ceiling, and flat around; η is led there by F − F(start) ≈ η²·‖direction‖²/2. `start` minimises F,
    `inverse` is its inverse Hessian there.
    """
    across = inverse @ direction
    squared = float(direction @ across)
    floor = penalised_loss(rows, answers, start, ridge)
    slack = ceiling - floor
    if squared <= 0.0 or slack <= 0.0:
        return float(direction @ start)
    eta = math.sqrt(2.0 * slack / squared)
    farthest = float(np.abs(rows @ across).max()) if len(rows) else 0.0
    theta = start + eta * across * min(1.0, 1.0 / max(eta * farthest, 1e-300))
    weights = np.ones(len(rows))
    bound = math.inf
    for _ in range(8):
        theta, loss, _, _, decrement = newton(rows, answers, weights, theta, ridge, 0.1, 29, eta * direction)
        if math.isinf(decrement):
            break
        value = loss + ridge / 2 * float(theta @ theta)
        # decrement² covers what the minimum may lie below the value found
        bound = min(bound, (ceiling - value + eta * float(direction @ theta) + decrement * decrement) / eta)
        if abs(value - ceiling) <= 0.1 * slack:
            break
        eta *= math.sqrt(slack / max(value - floor, 0.01 * slack))
    return bound


class LossSet:
    """The set of one step; `ceiling` bounds F, the loss plus (ridge/2)‖θ‖², whose minimiser is `now`."""

    def __init__(self, now: RidgeEstimate, ridge: float, ceiling: float, bound: float) -> None:
        self.now = now
        self.ridge = ridge
        self.ceiling = ceiling
        self.bound = bound
        self._fits: dict[int, tuple[Floats, Floats]] = {0: (now.theta, now.inverse)}
        self._rung = FIRST_RUNG

    def most_promising(self, arms: Floats) -> int:
        """The first arm of largest score over the set.

        Scores are bounded (`upper_bound`) only for arms that a self-concordant ellipsoid does not rule out, from the
        most to the least promising; O(t d²) for each of these few.
        """
        upper = self._outer(arms)
        best, highest = 0, -math.inf
        for arm in np.argsort(-upper, kind="stable"):
            if upper[arm] <= highest:
                break
            value = self.upper_bound(arms[arm], float(upper[arm]), highest)
            if value > highest:
                best, highest = int(arm), value
        return best

    def upper_bound(self, arm: Floats, upper: float = math.inf, enough: float = -math.inf) -> float:
        """An upper bound of the arm's score over the set, tight to about a percent unless it is below `enough`.

        `upper` is a bound known already. Starts at the rung of the ladder that was best for the arm before, and climbs
        or descends while that helps.
        """
        length = math.sqrt(float(arm @ arm))
        # Where the farthest point of the ball lies in the set, it is the maximum.
        farthest = arm * (self.bound / length) if length else arm
        if length == 0.0 or self._loss(farthest) <= self.ceiling:
            return upper if len(self.now.history) == 0 else self.bound * length
        best, start = min(upper, self._support(arm, self._rung)), self._rung
        for direction in (1, -1):
            while best > enough and 0 <= self._rung + direction < RUNGS:
                value = self._support(arm, self._rung + direction)
                if value >= best:
                    break
                best, self._rung = value, self._rung + direction
            if self._rung != start:
                break
        return best

    def _outer(self, arms: Floats) -> Floats:
        """Upper bounds of all scores at once: an ellipsoid around the set, and the ball."""
        now = self.now
        squared = squared_norms(arms, now.inverse)
        if len(now.history) == 0:
            return squared
        lengths = np.sqrt(np.einsum("ij,ij->i", arms, arms))
        reach = math.sqrt(float(squared_norms(now.history.rows, now.inverse).max()))
        radius = outer_radius(reach, 0.0, self.ceiling - self._loss(now.theta))
        return np.asarray(np.minimum(arms @ now.theta + radius * np.sqrt(squared), self.bound * lengths))

    def _loss(self, theta: Floats) -> float:
        """F(θ)."""
        return penalised_loss(self.now.history.rows, self.now.history.answers, theta, self.ridge)

    def _support(self, arm: Floats, rung: int) -> float:
        """The bound that one ν gives."""
        history = self.now.history
        ridge = self.ridge * RUNG**rung
        if rung not in self._fits:
            nearest = self._fits[min(self._fits, key=lambda known: abs(known - rung))][0]
            theta, _, _, information, _ = newton(history.rows, history.answers, history.ones, nearest, ridge, 1e-6, 50)
            self._fits[rung] = theta, inverse(information + ridge * np.eye(len(theta)))
        theta, theta_inverse = self._fits[rung]
        ceiling = self.ceiling + (ridge - self.ridge) / 2 * self.bound**2
        return largest_score(history.rows, history.answers, ridge, theta, arm, theta_inverse, ceiling)


@dataclass(frozen=True)
class LossSetPolicy(NormBounded, ABC):
    """Choose the arm whose score can be largest over such a set; policies differ in the ridge and the ceiling."""

    source: ClassVar[str]
    """Where the set is proved to hold the truth."""

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        cost = "O(t d²) time for each arm in contention, O(t d) memory"
        return Facts(Guarantee.CITED, self.source, (LOGISTIC, SHORT_ARMS, KNOWN_NORM), cost)

    @abstractmethod
    def ridge(self, dimension: int) -> float:
        """The ridge in F."""

    @abstractmethod
    def ceiling(self, state: RidgeEstimate) -> float:
        """What F is at most on the set."""

    def start(self, dimension: int) -> RidgeEstimate:
        """Nothing known."""
        dimension = validate.whole("dimension", dimension)
        return RidgeEstimate.empty(dimension, self.ridge(dimension))

    def choose(self, state: RidgeEstimate, arms: Floats, rng: np.random.Generator) -> Choice:
        """The arm of largest upper bound."""
        offered = clean_arms(arms, len(state.theta))
        within = LossSet(state, self.ridge(len(state.theta)), self.ceiling(state), self.norm_bound)
        return Choice(within.most_promising(offered))

    def learn(self, state: RidgeEstimate, arms: Floats, choice: Choice, reward: float) -> RidgeEstimate:
        """A full fit at every answer, because the set is built around the exact minimum."""
        vector = chosen_vector(arms, choice, len(state.theta))
        return state.updated(vector, clean_reward(reward), self.ridge(len(vector)), growth=0.0)


@dataclass(frozen=True)
class OfuLog(LossSetPolicy):
    """OFULog in its convex form: the set {θ : ‖θ‖ ≤ S, L_λ(θ) − min L_λ ≤ (γ + γ²/√λ)²}.

    L_λ is the loss plus (λ/2)‖θ‖², γ that of Faury et al. 2020.
    """

    name = "ofu-log"
    source = "Abeille, Faury and Calauzènes 2021, the convex relaxation of their confidence set."

    def ridge(self, dimension: int) -> float:
        """λ."""
        return faury_ridge(dimension, self.norm_bound, self.delta)

    def ceiling(self, state: RidgeEstimate) -> float:
        """What L_λ is at most on the set."""
        ridge = self.ridge(len(state.theta))
        gamma = faury_gamma(len(state.theta), self.norm_bound, len(state.history), self.delta)
        least = penalised_loss(state.history.rows, state.history.answers, state.theta, ridge)
        return least + (gamma + gamma**2 / math.sqrt(ridge)) ** 2


@dataclass(frozen=True)
class OfuGlb(LossSetPolicy):
    """OFUGLB: the set {θ : ‖θ‖ ≤ S, L_t(θ) − L_t(best in the ball) ≤ β²}; its radius hardly grows with ‖θ*‖.

    β² = log(1/delta) + d·log(max(e, 2eS·ℓ_t/d)), ℓ_t = (1 + S/2)(t − 1). The best loss in the ball is replaced by that
    of a point in it, which makes the set slightly larger.
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

    def ceiling(self, state: RidgeEstimate) -> float:
        """What L + ‖θ‖²/(2S²) is at most on the set: on the ball the penalty is at most ½."""
        history, theta = state.history, state.theta
        if float(np.linalg.norm(theta)) > self.norm_bound:
            short = state.within_ball(self.ridge(len(theta)), self.norm_bound)[3]
        else:
            short = penalised_loss(history.rows, history.answers, theta, 0.0)
        return short + self.beta_squared(len(theta), len(history)) + 0.5
