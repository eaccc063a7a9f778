"""SquareCB (Foster and Rakhlin 2020): turn predicted rewards into probabilities by inverse gap weighting."""

import math
from dataclasses import dataclass

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.contextual.estimate import Estimate, RidgeLearner
from surepick.contextual.policy import Choice, Facts, clean_arms
from surepick.glm import probability_of_yes
from surepick.guarantee import Guarantee


@dataclass(frozen=True)
class SquareCb(RidgeLearner):
    """An arm whose predicted reward lies g below the best has probability 1/(K + γg), the best one all the rest.

    γ = sharpness·√(K·t/(d·log(t+1))): the theorem's γ = √(K·T/R) with the regret R of the predictions put at d·log T
    and T at the steps so far.
    """

    name = "square-cb"

    sharpness: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.positive("sharpness", self.sharpness)

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        return Facts(
            Guarantee.HEURISTIC,
            "Foster and Rakhlin 2020 bound the regret by √(K·T·R) for γ = √(K·T/R), R a proved regret of the "
            "predictions; here R is only put at its usual size.",
            ("the predictions' squared error exceeds the best possible by d·log t at most",),
            "O(K d + 100 d²) time amortised, O(t d) memory",
        )

    def probabilities(self, state: Estimate, arms: Floats) -> Floats:
        """With which probability each arm is chosen."""
        offered = clean_arms(arms, len(state.theta))
        predicted = probability_of_yes(offered @ state.theta)
        best = int(np.argmax(predicted))
        steps = state.history.count + 1
        gamma = self.sharpness * math.sqrt(len(offered) * steps / (len(state.theta) * math.log(steps + 1)))
        shares = 1.0 / (len(offered) + gamma * (predicted[best] - predicted))
        shares[best] = 0.0
        shares[best] = 1.0 - shares.sum()
        return np.asarray(shares)

    def choose(self, state: Estimate, arms: Floats, rng: np.random.Generator) -> Choice:
        """Draw an arm."""
        shares = self.probabilities(state, arms)
        index = min(int(np.searchsorted(np.cumsum(shares), rng.random(), side="right")), len(shares) - 1)
        return Choice(index, float(shares[index]))
