"""The arm that looks best now. Fine where contexts explore by themselves; elsewhere it can be stuck for ever."""

from dataclasses import dataclass

import numpy as np

from surepick._arrays import Floats
from surepick.contextual.estimate import Estimate, RidgeLearner
from surepick.contextual.policy import Choice, Facts, clean_arms
from surepick.guarantee import Guarantee


@dataclass(frozen=True)
class Greedy(RidgeLearner):
    """Choose the arm of highest estimated score under a ridge estimate."""

    name = "greedy"

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        return Facts(
            Guarantee.HEURISTIC,
            "Nothing is claimed; with positive probability it settles on a wrong arm (docs/contextual.md).",
            (),
            "O(K d + 100 d²) time amortised, O(t d) memory",
        )

    def choose(self, state: Estimate, arms: Floats, rng: np.random.Generator) -> Choice:
        """The first arm of highest score."""
        return Choice(int(np.argmax(clean_arms(arms, len(state.theta)) @ state.theta)))
