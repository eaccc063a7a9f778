"""SupCB-GLM (Li, Lu and Zhou 2017, Algorithm 3), kept with the flaw that Jun et al. 2021 found in it."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.baselines.ucb_glm import li_kappa
from surepick.contextual.history import History
from surepick.contextual.policy import (
    FRESH_CONTEXTS,
    KNOWN_NORM,
    LOGISTIC,
    SHORT_ARMS,
    Choice,
    Facts,
    announced_arms,
    chosen_vector,
    clean_reward,
)
from surepick.contextual.sup_levels import (
    Levels,
    burn_in_length,
    check_levels,
    empty_levels,
    number_of_levels,
    refreshed,
    routed,
    stored,
)
from surepick.guarantee import Guarantee


class SupCbState(NamedTuple):
    """The burn-in answers, which every level uses, and the levels."""

    burn_in: History
    levels: Levels
    burn_in_over: bool


@dataclass(frozen=True)
class SupCbGlm:
    """The levels of SupLogistic with widths α·‖x‖ in V⁻¹, V = Σ xxᵀ, and one burn-in shared by all levels.

    The flaw: the arms that reach level 2 were selected by level 1's estimate, which knows the rewards of the burn-in;
    level 2's estimate uses the same rewards, whose mean given level 2's vectors is then no longer μ(xᵀθ*), so the
    fixed-design bound does not apply to it (`surepick study supcb` shows the shift).
    """

    name = "sup-cb-glm"

    horizon: int
    most_arms: int
    norm_bound: float
    delta: float = 0.05
    alpha: float | None = None
    burn_in: int | None = None

    def __post_init__(self) -> None:
        check_levels(self.horizon, self.delta, self.most_arms, self.alpha, self.burn_in)
        validate.whole("most_arms", self.most_arms)  # others can do without
        validate.positive("norm_bound", self.norm_bound)

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        set_by_hand = self.alpha is not None or self.burn_in is not None
        return Facts(
            Guarantee.HEURISTIC if set_by_hand else Guarantee.AS_PRINTED,
            "Nothing is claimed for a set alpha or burn-in."
            if set_by_hand
            else "Li, Lu and Zhou 2017, Theorem 4, whose proof has a gap: all levels share the burn-in rewards.",
            (LOGISTIC, FRESH_CONTEXTS, SHORT_ARMS, KNOWN_NORM),
            "O(levels·(K d² + d²)) time amortised, O(levels·t d) memory",
        )

    @cached_property
    def number_of_levels(self) -> int:
        """How many levels can be reached."""
        return number_of_levels(self.horizon)

    @property
    def width_factor(self) -> float:
        """α = (3σ/κ)·√(2·log(TK/delta)), σ = 1/2."""
        return self.alpha or 1.5 / li_kappa(self.norm_bound) * math.sqrt(
            2 * math.log(self.horizon * self.most_arms / self.delta)
        )

    def start(self, dimension: int) -> SupCbState:
        """Nothing known."""
        dimension = validate.whole("dimension", dimension)
        return SupCbState(History.empty(dimension), empty_levels(self.number_of_levels, dimension), False)

    def choose(self, state: SupCbState, arms: Floats, rng: np.random.Generator) -> Choice:
        """Uniform during the burn-in, then through the levels."""
        offered = announced_arms(arms, state.levels.thetas.shape[1], self.most_arms)
        if not state.burn_in_over:
            return Choice(int(rng.integers(len(offered))), 1.0 / len(offered), 0)
        return routed(state.levels, offered, self.horizon)

    def learn(self, state: SupCbState, arms: Floats, choice: Choice, reward: float) -> SupCbState:
        """Store the reward; those of the burn-in go to every level, which is the flaw."""
        dimension = state.levels.thetas.shape[1]
        vector = chosen_vector(arms, choice, dimension)
        answer = clean_reward(reward)
        if choice.bucket > 0:
            return state._replace(levels=stored(state.levels, choice.bucket - 1, vector, answer, 1.0, self._multiplier))
        if choice.bucket < 0 or state.burn_in_over:
            return state
        burn_in = state.burn_in.appended(vector, answer)
        if len(burn_in) < burn_in_length(self.horizon, dimension, self.burn_in):
            return state._replace(burn_in=burn_in)
        levels = state.levels
        for s in range(self.number_of_levels):
            for row, known in zip(burn_in.rows, burn_in.answers, strict=True):
                levels = stored(levels, s, row, float(known), 1.0, self._multiplier)
            levels = refreshed(levels, s, self._multiplier)
        return SupCbState(burn_in, levels, True)

    def _multiplier(self, dimension: int, level: int, issued: int, largest: float) -> float:
        return self.width_factor
