"""Contextual policies that promise nothing: uniform, greedy, Thompson sampling, SquareCB."""

import math
from dataclasses import dataclass

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.contextual.history import RidgeEstimate, RidgeLearner
from surepick.contextual.policy import Choice, Facts, chosen_vector, clean_arms, clean_reward
from surepick.glm import probability_of_yes
from surepick.guarantee import Guarantee


@dataclass(frozen=True)
class UniformArms:
    """Every arm with the same probability: the yardstick, and the cleanest log for off-policy evaluation.

    It learns nothing; the state is the dimension.
    """

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


@dataclass(frozen=True)
class Greedy(RidgeLearner):
    """Choose the arm of highest estimated score under a ridge estimate.

    Fine where contexts explore by themselves; elsewhere it can be stuck for ever (docs/contextual.md, "Where greed
    fails").
    """

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

    def choose(self, state: RidgeEstimate, arms: Floats, rng: np.random.Generator) -> Choice:
        """The first arm of highest score."""
        return Choice(int(np.argmax(clean_arms(arms, len(state.theta)) @ state.theta)))


@dataclass(frozen=True)
class LogisticThompson(RidgeLearner):
    """Draw θ from N(ridge estimate, scale²·(information + ridge)⁻¹) and choose the best arm under it.

    This is Thompson sampling with the Laplace approximation of the posterior. The propensity has no closed form: it is
    estimated from `draws` further draws of θ, as (1 + how many of them prefer the same arm)/(1 + draws).
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

    def choose(self, state: RidgeEstimate, arms: Floats, rng: np.random.Generator) -> Choice:
        """The best arm under the first draw."""
        offered = clean_arms(arms, len(state.theta))
        root = np.linalg.cholesky(state.inverse)
        thetas = state.theta + self.scale * rng.standard_normal((1 + self.draws, len(root))) @ root.T
        best = np.argmax(thetas @ offered.T, axis=1)
        return Choice(int(best[0]), float(np.mean(best == best[0])))


@dataclass(frozen=True)
class SquareCb(RidgeLearner):
    """SquareCB (Foster and Rakhlin 2020): turn predicted rewards into probabilities by inverse gap weighting.

    An arm whose predicted reward lies g below the best has probability 1/(K + γg), the best one all the rest.
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

    def probabilities(self, state: RidgeEstimate, arms: Floats) -> Floats:
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

    def choose(self, state: RidgeEstimate, arms: Floats, rng: np.random.Generator) -> Choice:
        """Draw an arm."""
        shares = self.probabilities(state, arms)
        index = min(int(np.searchsorted(np.cumsum(shares), rng.random(), side="right")), len(shares) - 1)
        return Choice(index, float(shares[index]))
