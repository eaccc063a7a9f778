"""The arm that looks best now. Fine where contexts explore by themselves; elsewhere it can be stuck for ever."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surepick import validate
from surepick.contextual import estimate
from surepick.contextual.estimate import Estimate
from surepick.contextual.policy import Choice, Facts, chosen_vector, clean_arms, clean_dimension, clean_reward
from surepick.guarantee import Guarantee

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Greedy:
    """Choose the arm of highest estimated score under a ridge estimate."""

    ridge: float = 1.0

    def __post_init__(self) -> None:
        validate.positive("ridge", self.ridge)

    @property
    def name(self) -> str:
        """Name on the command line."""
        return "greedy"

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        return Facts(
            Guarantee.HEURISTIC,
            "Nothing is claimed; with positive probability it settles on a wrong arm (docs/contextual.md).",
            (),
            "O(K d + 100 d²) time amortised, O(t d) memory",
        )

    def start(self, dimension: int) -> Estimate:
        """The estimate before any reward."""
        return estimate.first_estimate(clean_dimension(dimension), self.ridge)

    def choose(self, state: Estimate, arms: Floats, rng: np.random.Generator) -> Choice:
        """The first arm of highest score."""
        return Choice(int(np.argmax(clean_arms(arms, len(state.theta)) @ state.theta)))

    def learn(self, state: Estimate, arms: Floats, choice: Choice, reward: float) -> Estimate:
        """Update the estimate."""
        vector = chosen_vector(arms, choice, len(state.theta))
        return estimate.updated(state, vector, clean_reward(reward), self.ridge)
