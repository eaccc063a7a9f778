"""Sup policies as printed: SupLogistic with the paper's constants, and SupCB-GLM, which it was to mend.

SupLogistic is Algorithm 3 of Jun, Jain, Mason and Nassif 2021; SupCB-GLM is Algorithm 3 of Li, Lu and Zhou 2017, kept
with the flaw that Jun et al. found in it.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick._cached import cached_property
from surepick.baselines.ucb_glm import li_kappa
from surepick.contextual.history import History
from surepick.contextual.likelihood_ratio import LikelihoodRatioSet
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
    repeated,
    routed,
    stored,
)
from surepick.contextual.sup_logistic import LevelStatus, SupLogisticBase, SupState
from surepick.errors import InvalidInput
from surepick.glm import Tally, fit
from surepick.glm.kernels import newton
from surepick.guarantee import Guarantee

VARIANCE_FACTOR = math.sqrt(2.2)
"""How much the variance estimated from Φ may change a width of SupLogistic."""

PHI_RIDGE = 1e-6
"""Ridge on θ_Φ, per squared length of the longest arm: the paper has none, and no θ_Φ where answers are separated."""

SET_BY_HAND = "Nothing is claimed for a set alpha or burn-in."


@dataclass(frozen=True)
class SupLogisticPrinted(SupLogisticBase):
    """SupLogistic as in the paper: widths α·√2.2·‖x‖ with α = 3.5·√log(2(2+τ)·2LTK/delta), K = `most_arms`.

    √(dT) uniform steps are dealt out to all buckets in turn. The widths are valid only with 2+T, 2(L+1)TK and a far
    larger burn-in. With `alpha` or `burn_in` set by hand nothing is claimed, and the policy goes by the plain name.
    """

    alpha: float | None = None
    burn_in: int | None = None

    def __post_init__(self) -> None:
        check_levels(self.horizon, self.delta, self.most_arms, alpha=self.alpha, burn_in=self.burn_in)
        if self.alpha is None and self.most_arms is None:
            raise InvalidInput("The printed constants depend on the number of arms; pass most_arms or alpha.")

    @property
    def name(self) -> str:
        """Name on the command line; there `sup-logistic-tuned` sets alpha."""
        return "sup-logistic" if self._is_set_by_hand else "sup-logistic-printed"

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        assumptions = (LOGISTIC, FRESH_CONTEXTS)
        if self._is_set_by_hand:
            return Facts(Guarantee.HEURISTIC, SET_BY_HAND, assumptions, self.COST)
        return Facts(
            Guarantee.AS_PRINTED,
            "Jun et al. 2021, Theorem 3, whose union bound and burn-in are too small (docs/contextual.md).",
            (*assumptions, SHORT_ARMS),
            self.COST,
        )

    @property
    def _is_set_by_hand(self) -> bool:
        return self.alpha is not None or self.burn_in is not None

    def burn_in_length(self, dimension: int) -> int:
        """The number of uniform steps: ⌈√(dT)⌉ unless set."""
        return burn_in_length(self.horizon, dimension, self.burn_in)

    def printed_alpha(self, dimension: int) -> float:
        """α = 3.5·√log(2(2+τ)·2STK/delta) with S = ⌊log₂T⌋, τ = √(dT)."""
        tau, levels = self.burn_in_length(dimension), math.floor(math.log2(self.horizon))
        events = 2 * (2 + tau) * 2 * levels * self.horizon * (self.most_arms or 1)
        return 3.5 * math.sqrt(math.log(events / self.delta))

    def _burn_in_bucket(self, state: SupState) -> int:
        return state.learnt % (self.number_of_levels + 1)

    def _phi_after(self, phi: LikelihoodRatioSet, vector: Floats, answer: float) -> LikelihoodRatioSet:
        return phi._replace(history=phi.history.appended(vector, answer))

    def _end_burn_in(self, state: SupState) -> SupState:
        """Fit θ_Φ by maximum likelihood, and give the burn-in answers of every level their variances."""
        dimension, history = len(state.contexts), state.phi.history
        # The paper's θ_Φ is the plain maximum; the ridge only keeps it finite where the answers are separated.
        ridge = PHI_RIDGE * max(state.longest, 1e-6) ** 2
        theta = newton(history.rows, history.answers, history.ones, np.zeros(dimension), ridge, 1e-6, 60)[0]
        state = state._replace(phi=state.phi._replace(centre=theta), burn_in_over=True)
        levels = empty_levels(self.number_of_levels, dimension)
        for s, old in enumerate(state.levels.histories):
            for vector, answer in zip(old.rows, old.answers, strict=True):
                weight = self.variance_bound(state, vector)
                levels = stored(levels, s, vector, float(answer), weight, self._multiplier)
            levels = refreshed(levels, s, self._multiplier)
        return state._replace(levels=levels)

    def _variance_radius(self, phi: LikelihoodRatioSet) -> float:
        return 0.0

    def _burn_in_steps(self, state: SupState) -> int:
        return min(state.learnt, self.burn_in_length(len(state.contexts)))

    def _certifies(self, state: SupState, level: int) -> bool:
        return False

    def _multiplier(self, dimension: int, level: int, issued: int, largest: float) -> float:
        return VARIANCE_FACTOR * (self.alpha or self.printed_alpha(dimension))

    def phi_separated(self, state: SupState) -> bool | None:
        """Whether θ_Φ exists only by its ridge; None before the end of the burn-in, when it is fitted."""
        if not state.burn_in_over:
            return None
        history = state.phi.history
        return not fit(Tally.from_answers(history.rows, history.answers.astype(np.int64))).converged

    def _sentence(self, state: SupState, levels: tuple[LevelStatus, ...], spread: float) -> str:
        said = f"These constants are {self.facts.guarantee}: no width is certified."
        separated = self.phi_separated(state)
        if separated is None:
            return said
        return (
            f"{said} Variances are taken at a theta fitted to the {len(state.phi.history)} answers of Phi with a ridge "
            f"of {PHI_RIDGE:g}, which the paper does not have"
            + (": these answers are separated, so without it there would be no estimate." if separated else ".")
        )


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
        check_levels(self.horizon, self.delta, self.most_arms, alpha=self.alpha, burn_in=self.burn_in)
        validate.whole("most_arms", self.most_arms)  # others can do without
        validate.positive("norm_bound", self.norm_bound)

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        set_by_hand = self.alpha is not None or self.burn_in is not None
        return Facts(
            Guarantee.HEURISTIC if set_by_hand else Guarantee.AS_PRINTED,
            SET_BY_HAND
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
        # All levels start from the same answers, so one is filled and the others are copies of it.
        first = empty_levels(1, dimension)
        for row, known in zip(burn_in.rows, burn_in.answers, strict=True):
            first = stored(first, 0, row, float(known), 1.0, self._multiplier)
        levels = repeated(refreshed(first, 0, self._multiplier), self.number_of_levels)
        return SupCbState(burn_in, levels, True)

    def _multiplier(self, dimension: int, level: int, issued: int, largest: float) -> float:
        return self.width_factor
