"""Every arm with the same probability: the yardstick, and the cleanest log for off-policy evaluation."""

from dataclasses import dataclass

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.contextual.policy import Choice, Facts, chosen_vector, clean_arms, clean_reward
from surepick.guarantee import Guarantee


@dataclass(frozen=True)
class UniformArms:
    """Choose at random and learn nothing; the state is the dimension."""

    name = "uniform"

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        return Facts(Guarantee.HEURISTIC, "Nothing is claimed; regret grows linearly.", (), "O(1)")

    def start(self, dimension: int) -> int:
        """Only the dimension is kept, to check the arms."""
        return validate.whole("dimension", dimension)

    def choose(self, state: int, arms: Floats, rng: np.random.Generator) -> Choice:
        """Any arm."""
        offered = clean_arms(arms, state)
        return Choice(int(rng.integers(len(offered))), 1.0 / len(offered))

    def learn(self, state: int, arms: Floats, choice: Choice, reward: float) -> int:
        """Nothing to learn, but input is checked as everywhere."""
        chosen_vector(arms, choice, state)
        clean_reward(reward)
        return state
