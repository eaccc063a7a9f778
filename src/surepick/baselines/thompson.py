"""Thompson sampling with the Laplace approximation of the posterior."""

from dataclasses import dataclass

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.contextual.estimate import Estimate, RidgeLearner
from surepick.contextual.policy import Choice, Facts, clean_arms
from surepick.guarantee import Guarantee


@dataclass(frozen=True)
class LogisticThompson(RidgeLearner):
    """Draw θ from N(ridge estimate, scale²·(information + ridge)⁻¹) and choose the best arm under it.

    The propensity has no closed form: it is estimated from `draws` further draws of θ, as (1 + how many of them prefer
    the same arm)/(1 + draws).
    """

    name = "logistic-thompson"

    scale: float = 1.0
    draws: int = 99

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.positive("scale", self.scale)
        validate.whole("draws", self.draws)

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        return Facts(
            Guarantee.HEURISTIC,
            "Nothing is claimed: the Laplace approximation is not the posterior, and the propensity is an estimate.",
            ("theta is drawn from N(0, I/ridge)",),
            "O(100 K d + d³ + 100 d²) time amortised, O(t d) memory",
        )

    def choose(self, state: Estimate, arms: Floats, rng: np.random.Generator) -> Choice:
        """The best arm under the first draw."""
        offered = clean_arms(arms, len(state.theta))
        root = np.linalg.cholesky(state.inverse)
        thetas = state.theta + self.scale * rng.standard_normal((1 + self.draws, len(root))) @ root.T
        best = np.argmax(thetas @ offered.T, axis=1)
        return Choice(int(best[0]), float(np.mean(best == best[0])))
