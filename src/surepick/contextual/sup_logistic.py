"""SupLogistic (Jun, Jain, Mason and Nassif 2021, Algorithm 3): regret √(dT·log K) without the factor 1/κ."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surepick import validate
from surepick._arrays import Floats
from surepick._cached import cached_property
from surepick.confidence.theorem import Budget, radii
from surepick.contextual import kernels
from surepick.contextual.likelihood_ratio import LikelihoodRatioSet
from surepick.contextual.policy import FRESH_CONTEXTS, LOGISTIC, Choice, Facts, announced_arms, clean_reward, row_of
from surepick.contextual.sup_levels import (
    REFRESH,
    TOLERANCE,
    Levels,
    burn_in_length,
    check_levels,
    empty_levels,
    number_of_levels,
    refreshed,
    routed,
    stored,
)
from surepick.glm.kernels import variance
from surepick.guarantee import Guarantee

PHI = 0
"""Bucket of the answers from which variances are estimated; levels are the buckets from 1 on."""

BURN_IN_REACH = 1.0
"""The burn-in ends when no score of an arm is uncertain by more than this."""


class SupState(NamedTuple):
    """What is known after some rewards."""

    learnt: int
    phi: LikelihoodRatioSet
    """Answers of the burn-in bucket, with their confidence set."""
    burn_in_over: bool
    """Whether the burn-in is over."""
    levels: Levels
    contexts: Floats
    """Σ over burn-in steps of the mean of xxᵀ over the arms offered."""
    longest: float
    """Length of the longest arm offered so far."""


@dataclass(frozen=True)
class LevelStatus:
    """One level: how many answers, how much information, and whether its widths are certified."""

    level: int
    answers: int
    smallest_eigenvalue: float
    certified: bool


@dataclass(frozen=True)
class SupStatus:
    """What the theorem says at this point of a run."""

    speaks: bool
    """Whether at least the first level has certified widths; before, arms are only explored."""
    sentence: str
    context_spread: float
    """Estimate of σ₀²: smallest eigenvalue of the mean of xxᵀ over arms and burn-in steps."""
    phi_answers: int
    """How many answers Φ has."""
    phi_separated: bool | None
    """Whether the answers of Φ are separated, so that only a ridge makes its estimate finite; None if there is none."""
    levels: tuple[LevelStatus, ...]


@dataclass(frozen=True)
class SupLogisticBase(ABC):
    """Levels s = 1, 2, … of accuracy 2^{−s}, each with its own answers, and a bucket Φ for the variances.

    A choice passes the levels: (a) if some arm is wider than 2^{−s}, the widest is chosen and its reward goes to
    bucket s; (b) if all are narrower than 1/√T, the arm of highest mean is chosen; (c) otherwise arms within 2·2^{−s}
    of the highest mean go on to level s+1. The answers of a bucket are independent given its vectors because these
    depend on the arms offered, on Φ and on lower buckets only.

    Subclasses say how the burn-in fills the buckets and when it ends, how variances are taken from Φ, and how wide an
    arm is: `SupLogistic` as proved here, `baselines.SupLogisticPrinted` as in the paper.
    """

    horizon: int
    delta: float = 0.05
    most_arms: int | None = None

    COST: ClassVar[str] = "O(levels·(K d² + d²)) time amortised, O(t d) memory"

    def __post_init__(self) -> None:
        check_levels(self.horizon, self.delta, self.most_arms)

    @cached_property
    def number_of_levels(self) -> int:
        """How many levels can be reached."""
        return number_of_levels(self.horizon)

    def start(self, dimension: int) -> SupState:
        """Empty buckets."""
        dimension = validate.whole("dimension", dimension)
        return SupState(
            learnt=0,
            phi=LikelihoodRatioSet.empty(dimension, self.delta / 2),
            burn_in_over=False,
            levels=empty_levels(self.number_of_levels, dimension),
            contexts=np.zeros((dimension, dimension)),
            longest=0.0,
        )

    def choose(self, state: SupState, arms: Floats, rng: np.random.Generator) -> Choice:
        """Uniform during the burn-in, then through the levels."""
        offered = self._offered(state, arms)
        if not state.burn_in_over:
            return Choice(int(rng.integers(len(offered))), 1.0 / len(offered), self._burn_in_bucket(state))
        return routed(state.levels, offered, self.horizon)

    def learn(self, state: SupState, arms: Floats, choice: Choice, reward: float) -> SupState:
        """Store the reward in the bucket that the choice was made for; a choice without a bucket teaches nothing."""
        offered = self._offered(state, arms)
        vector = row_of(offered, choice)
        answer = clean_reward(reward)
        phi, levels = state.phi, state.levels
        if choice.bucket > PHI:
            weight = self.variance_bound(state, vector) if state.burn_in_over else 0.0
            levels = stored(levels, choice.bucket - 1, vector, answer, weight, self._multiplier)
        if state.burn_in_over:  # a straggler of the burn-in must not move the variances that levels rely on
            return state._replace(learnt=state.learnt + 1, levels=levels)
        if choice.bucket == PHI:
            phi = self._phi_after(phi, vector, answer)
        longest = max(state.longest, math.sqrt(float(np.einsum("ij,ij->i", offered, offered).max())))
        contexts = state.contexts + offered.T @ offered / len(offered)
        after = SupState(state.learnt + 1, phi, False, levels, contexts, longest)
        return after if after.learnt < self.burn_in_length(len(contexts)) else self._end_burn_in(after)

    def advance(
        self, state: SupState, arms: Floats, rewards: Floats, rng: np.random.Generator
    ) -> tuple[SupState, NDArray[np.int64]]:
        """Choose and learn many steps at once: the same as one by one, many times faster.

        For simulations, which know what every arm would pay: `arms` is steps × K × d, `rewards` steps × K. Returns the
        state after them and the arms chosen.
        """
        chosen = np.empty(len(arms), dtype=np.int64)
        position = 0
        while position < len(arms) and not state.burn_in_over:
            choice = self.choose(state, arms[position], rng)
            chosen[position] = choice.index
            state = self.learn(state, arms[position], choice, float(rewards[position, choice.index]))
            position += 1
        while position < len(arms):
            taken = self._advanced(state, arms[position:], rewards[position:], chosen[position:])
            state, position = taken, position + taken.learnt - state.learnt
        return state, chosen

    def _advanced(self, state: SupState, arms: Floats, rewards: Floats, chosen: NDArray[np.int64]) -> SupState:
        """Steps up to the next refresh of a level; fills in the arms chosen."""
        now, phi = state.levels, state.phi
        information, current, growth = now.information.copy(), now.current.copy(), now.growth.copy()
        buckets = np.empty(len(arms), dtype=np.int64)
        limit = REFRESH * arms.shape[2]
        steps = kernels.advance(
            arms,
            now.thetas,
            now.inverses,
            now.multipliers,
            1.0 / math.sqrt(self.horizon),
            phi.centre,
            phi.inverse,
            self._variance_radius(phi),
            information,
            current,
            growth,
            limit,
            chosen,
            buckets,
        )
        # Choices of these steps used no reward of theirs, so the rewards can be stored afterwards, in one go.
        histories = list(now.histories)
        for level in range(len(histories)):
            mine = np.flatnonzero(buckets[:steps] == level + 1)
            histories[level] = histories[level].extended(arms[mine, chosen[mine]], rewards[mine, chosen[mine]])
        levels = now._replace(histories=tuple(histories), information=information, current=current, growth=growth)
        for due in np.flatnonzero(growth >= limit):
            levels = refreshed(levels, int(due), self._multiplier)
        return state._replace(learnt=state.learnt + steps, levels=levels)

    def burn_in_length(self, dimension: int) -> int:
        """The least number of uniform steps: ⌈√(dT)⌉."""
        return burn_in_length(self.horizon, dimension)

    def variance_bound(self, state: SupState, vector: Floats) -> float:
        """What a reward at this vector adds to the information: s at the far end of the scores that Φ allows."""
        phi = state.phi
        return float(variance(kernels.far_logit(vector, phi.centre, phi.inverse, self._variance_radius(phi))))

    def status(self, state: SupState) -> SupStatus:
        """Check at run time what the theorem needs."""
        spread = float(np.linalg.eigvalsh(state.contexts)[0]) / max(self._burn_in_steps(state), 1)
        levels = tuple(
            LevelStatus(
                level=s + 1,
                answers=len(state.levels.histories[s]),
                smallest_eigenvalue=float(np.linalg.eigvalsh(state.levels.information[s])[0]),
                certified=self._certifies(state, s),
            )
            for s in range(self.number_of_levels)
        )
        speaks = levels[0].certified and state.learnt <= self.horizon
        sentence = self._sentence(state, levels, spread)
        return SupStatus(speaks, sentence, spread, len(state.phi.history), self.phi_separated(state), levels)

    def phi_separated(self, state: SupState) -> bool | None:
        """Whether the estimate that variances are taken at exists only by its ridge; None for forms without one."""
        return None

    def _offered(self, state: SupState, arms: Floats) -> Floats:
        return announced_arms(arms, len(state.contexts), self.most_arms)

    @abstractmethod
    def _burn_in_bucket(self, state: SupState) -> int:
        """Where the next reward of the burn-in belongs."""

    @abstractmethod
    def _phi_after(self, phi: LikelihoodRatioSet, vector: Floats, answer: float) -> LikelihoodRatioSet:
        """Φ after one more answer of its own."""

    @abstractmethod
    def _end_burn_in(self, state: SupState) -> SupState:
        """End the burn-in, which is long enough, if Φ says enough."""

    @abstractmethod
    def _variance_radius(self, phi: LikelihoodRatioSet) -> float:
        """How far from Φ's estimate, in its norm, the variances are taken."""

    @abstractmethod
    def _burn_in_steps(self, state: SupState) -> int:
        """How many steps of burn-in `contexts` sums up."""

    @abstractmethod
    def _certifies(self, state: SupState, level: int) -> bool:
        """Whether the widths of a level (from 0) are proved."""

    @abstractmethod
    def _multiplier(self, dimension: int, level: int, issued: int, largest: float) -> float:
        """What multiplies ‖x‖ in the inverse information; infinite where the level must go on exploring."""

    @abstractmethod
    def _sentence(self, state: SupState, levels: tuple[LevelStatus, ...], spread: float) -> str:
        """What the theorem says at this point of a run."""


@dataclass(frozen=True)
class SupLogistic(SupLogisticBase):
    """SupLogistic with every width proved, by corrected constants.

    Φ is a likelihood-ratio set (no norm bound; uniform arms for at least √(dT) steps and until all scores are known to
    ±1); it bounds each vector's variance from below; with these the corrected fixed-design theorem gives a level's
    widths as soon as its burn-in condition holds, and until then the level explores its widest arm. `most_arms`, if
    given, sharpens them by single directions (the paper's √(log K)).
    """

    name: ClassVar[str] = "sup-logistic"

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        return Facts(
            Guarantee.PROVED,
            "With probability 1 − delta every certified width holds at all times, so the best arm is never dropped and "
            "an arm chosen at level s > 1 is within 8·2^(−s) log-odds of it (docs/contextual.md).",
            (LOGISTIC, FRESH_CONTEXTS),
            self.COST,
        )

    def _burn_in_bucket(self, state: SupState) -> int:
        return PHI

    def _phi_after(self, phi: LikelihoodRatioSet, vector: Floats, answer: float) -> LikelihoodRatioSet:
        return phi.updated(vector, answer)

    def _end_burn_in(self, state: SupState) -> SupState:
        return state._replace(burn_in_over=self._reach(state) <= BURN_IN_REACH)

    def _reach(self, state: SupState) -> float:
        """How uncertain the score of any arm as long as the longest so far can be, by Φ alone."""
        return state.phi.radius * state.longest * math.sqrt(float(np.linalg.eigvalsh(state.phi.inverse)[-1]))

    def _variance_radius(self, phi: LikelihoodRatioSet) -> float:
        return phi.radius

    def _burn_in_steps(self, state: SupState) -> int:
        return len(state.phi.history)

    def _certifies(self, state: SupState, level: int) -> bool:
        return math.isfinite(state.levels.multipliers[level])

    def _multiplier(self, dimension: int, level: int, issued: int, largest: float) -> float:
        # A certificate is only issued where it is precise enough for its level, so that few share the budget. Half of
        # delta is Φ's; the rest is shared by the levels, and within a level by its certificates.
        budget = self.delta / (2 * self.number_of_levels) * share_of_certificate(issued)
        lines = (self.most_arms or 0) * self.horizon
        radius = certified_radius(rounded_up(largest), dimension, budget, lines)
        return radius if radius * largest <= math.ldexp(0.5, -level) else math.inf

    def _sentence(self, state: SupState, levels: tuple[LevelStatus, ...], spread: float) -> str:
        if state.learnt > self.horizon:
            return f"{state.learnt} steps are more than the horizon of {self.horizon}: nothing is claimed beyond it."
        if not state.burn_in_over:
            reach = self._reach(state)
            return (
                f"Burn-in after {state.learnt} of {self.horizon} steps: scores are known to ±{reach:.3g}, ±1 is needed"
                + (
                    "; the arms offered do not span all features, so it may never end."
                    if spread <= 1e-9 * state.longest**2 and state.learnt > len(state.contexts)
                    else "; a horizon below that is too short for the theorem to apply."
                )
            )
        certified = sum(level.certified for level in levels)
        if certified == 0:
            return (
                f"After {state.learnt} of {self.horizon} steps no level is certified yet, so the theorem says nothing "
                "so far: arms are explored by width alone."
            )
        return f"{certified} of {len(levels)} levels are certified: arms are separated to ±{0.5**certified:g}."


def share_of_certificate(issued: int) -> float:
    """Share of a level's budget for its next certificate; over all certificates these sum to one.

    Equal within epochs of doubling length, so that few different budgets occur.
    """
    epoch = (issued + 1).bit_length() - 1
    return math.ldexp(1.0, -epoch) / ((epoch + 1) * (epoch + 2))


def rounded_up(xi: float) -> float:
    """The next power of 1.01: a slightly larger ξ is valid, and lets results be looked up."""
    return float(1.01 ** math.ceil(math.log(xi) / math.log(1.01))) if xi > 0 else 1e-12


@lru_cache(maxsize=4096)
def certified_radius(xi: float, dimension: int, delta: float, lines: int) -> float:
    """The corrected theorem for one bucket: |xᵀ(estimate − θ*)| ≤ radius·‖x‖ in the inverse information, or inf.

    For all x at once or, where that is smaller, for `lines` fixed vectors. The slack covers that the estimate is an
    optimum to TOLERANCE only, at its own information, which is within e^{D*} of that at θ*.
    """
    # The cache holds numbers only, keyed by numbers: no policy or state lives on in it.
    if xi >= 1.0:  # far beyond the burn-in condition of the theorem
        return math.inf
    found = radii(xi, dimension, Budget.split("norm", delta, 0.5, 0, lines), slack=1e3 * TOLERANCE)
    if found is None or found.shift > 10.0:
        return math.inf
    return min(found.ellipsoid, found.query) if lines else found.ellipsoid
