"""Optimism in O(d²) time and memory a step: no answer is kept, and the ellipsoid is still proved."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.contextual import kernels
from surepick.contextual.likelihood_ratio import RIDGES
from surepick.contextual.policy import (
    KNOWN_NORM,
    LOGISTIC,
    Choice,
    Facts,
    NormBounded,
    chosen_vector,
    clean_arms,
    clean_reward,
)
from surepick.guarantee import Guarantee


class OnePassState(NamedTuple):
    """A quadratic that lies below the loss at θ*, and the experts' predictions; nothing grows with the answers."""

    centre: Floats
    """Minimiser of the quadratic."""
    inverse: Floats
    """Of its curvature."""
    floor: float
    """Its minimum."""
    radius: float
    experts: Floats
    expert_inverses: Floats
    scores: Floats


@dataclass(frozen=True)
class OnePassUcb(NormBounded):
    """Choose the arm whose score can be largest in an ellipsoid around a likelihood-ratio set.

    For any forecasts made in time, L_t(θ*) ≤ Σ(forecasters' losses) + log 1/delta at all times with probability
    1 − delta. Each answer's loss is bounded from below by a quadratic around the centre of the moment, whose curvature
    is right as far as the ellipsoid of that moment reaches (`likelihood_ratio`, step 3). norm_bound starts this off, as
    a first term (‖θ*‖²/norm_bound² − 1)/2 ≤ 0 and as a cap of every reach.
    """

    name = "one-pass-ucb"

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        return Facts(
            Guarantee.PROVED,
            "All scores lie in their intervals at all times with probability 1 − delta, by Ville's inequality and "
            "quadratic lower bounds of the losses (docs/contextual.md).",
            (LOGISTIC, KNOWN_NORM),
            "O(K d² + d²) time, O(d²) memory",
        )

    def start(self, dimension: int) -> OnePassState:
        """The ball of radius norm_bound."""
        dimension = validate.whole("dimension", dimension)
        experts = len(RIDGES)
        return OnePassState(
            centre=np.zeros(dimension),
            inverse=np.eye(dimension) * self.norm_bound**2,
            floor=-0.5,
            radius=math.sqrt(1.0 + 2.0 * math.log(1 / self.delta)),
            experts=np.zeros((experts, dimension)),
            expert_inverses=np.eye(dimension) / RIDGES[:, None, None],
            scores=np.zeros(experts),
        )

    def choose(self, state: OnePassState, arms: Floats, rng: np.random.Generator) -> Choice:
        """The arm of largest upper confidence bound."""
        offered = clean_arms(arms, len(state.centre))
        return Choice(kernels.optimistic(offered, state.centre, state.inverse, state.radius))

    def learn(self, state: OnePassState, arms: Floats, choice: Choice, reward: float) -> OnePassState:
        """Let the experts predict the reward, then add its quadratic."""
        vector = chosen_vector(arms, choice, len(state.centre))
        answer = clean_reward(reward)
        experts, expert_inverses, scores = state.experts.copy(), state.expert_inverses.copy(), state.scores.copy()
        # The order matters: the experts predict the answer before anything has seen it.
        kernels.forecast(experts, expert_inverses, scores, vector, answer)
        centre, inverse = state.centre.copy(), state.inverse.copy()
        # |xᵀ(θ* − centre)| ≤ |xᵀcentre| + ‖x‖·S, whatever the ellipsoid says.
        cap = abs(float(vector @ centre)) + self.norm_bound * math.sqrt(float(vector @ vector))
        floor = state.floor + kernels.add_minorant_at_centre(centre, inverse, state.radius, cap, vector, answer)
        forecast = float(scores.max() + math.log(np.exp(scores - scores.max()).mean()))
        radius = math.sqrt(max(0.0, 2.0 * (math.log(1 / self.delta) - forecast - floor)))
        return OnePassState(centre, inverse, floor, radius, experts, expert_inverses, scores)
