"""Optimism on the likelihood-ratio confidence set: no norm bound, no burn-in, no horizon."""

from dataclasses import dataclass

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.contextual import likelihood_ratio_set as ratio_set
from surepick.contextual import numerics
from surepick.contextual.likelihood_ratio_set import RatioSet
from surepick.contextual.policy import LOGISTIC, Choice, Facts, chosen_vector, clean_arms, clean_reward
from surepick.guarantee import Guarantee


@dataclass(frozen=True)
class LikelihoodRatioUcb:
    """Choose the arm whose score can be largest in the confidence set of `ratio_set` (its ellipsoid).

    The set holds the truth at all times with probability 1 − delta, however the arms come about.
    """

    name = "likelihood-ratio-ucb"

    delta: float = 0.05

    def __post_init__(self) -> None:
        validate.probability("delta", self.delta)

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        return Facts(
            Guarantee.PROVED,
            "All scores lie in their intervals at all times with probability 1 − delta, by Ville's inequality and a "
            "self-concordant outer ellipsoid (docs/contextual.md).",
            (LOGISTIC,),
            "O(K d² + 500 d²) time amortised, O(t d) memory",
        )

    def start(self, dimension: int) -> RatioSet:
        """The set before any reward."""
        return ratio_set.empty(validate.whole("dimension", dimension), self.delta)

    def choose(self, state: RatioSet, arms: Floats, rng: np.random.Generator) -> Choice:
        """The arm of largest upper confidence bound."""
        offered = clean_arms(arms, len(state.centre))
        return Choice(numerics.kernels.optimistic(offered, state.centre, state.inverse, state.radius))

    def learn(self, state: RatioSet, arms: Floats, choice: Choice, reward: float) -> RatioSet:
        """Let the experts predict the reward, then add it."""
        vector = chosen_vector(arms, choice, len(state.centre))
        return ratio_set.absorbed(state, vector, clean_reward(reward))
