"""Complexity terms of Jun et al. 2021 and of what it compares with, for a known θ*.

H(λ, θ*) = Σ λ_x·s(xᵀθ*)·xxᵀ; Δ is the smallest gap; S₁ = Z and S_k = {z : gap ≤ 4·2^{−k}}, the items that may be left
in round k (the supplement's index, and all items in the first round; docs/limits.md). Every term is a design problem
and costs what `surepick.design` states for it.
"""

import math
from dataclasses import dataclass

import numpy as np

from surepick import validate
from surepick._arrays import Integers
from surepick.design import Design, Pairs, Rows, gap_optimal, max_optimal, pairs_optimal
from surepick.design.vector_families import VectorFamily
from surepick.errors import InvalidInput
from surepick.glm import variance
from surepick.guarantee import Guarantee
from surepick.limits.burn_in import printed_information
from surepick.limits.instance import Instance
from surepick.linalg import norms


@dataclass(frozen=True)
class Terms:
    """A sum over rounds, each a design problem; both ends are certified by the designs."""

    values: tuple[float, ...]
    """Attained by a design, so each is at least the optimum."""
    lower_bounds: tuple[float, ...]

    @property
    def total(self) -> float:
        """Sum of the attained values."""
        return sum(self.values)

    @property
    def total_at_least(self) -> float:
        """Sum of the lower bounds."""
        return sum(self.lower_bounds)


@dataclass(frozen=True)
class Formula:
    """A number of questions as a paper gives it."""

    name: str
    questions: float
    guarantee: Guarantee
    statement: str
    order_only: bool = False
    """Whether constants and logarithms are left out, so that only its growth says something."""


def rho_opt(instance: Instance, *, gap: float = 0.01) -> Design:
    """The quadratic form of the lower bound: the least ρ = max over z ≠ z* of ‖z* − z‖²_{H(λ,θ*)⁻¹}/gap_z².

    As the gaps tend to zero V* of `lower_bound` tends to 1/(2ρ), so that about 2ρ·log(1/(2.4·δ)) questions are needed.
    For larger gaps it is an approximation from neither side. The design's certificate bounds ρ from below.
    """
    return gap_optimal(instance.informative, instance.items, best=instance.best, gaps=instance.gaps, gap=gap)


def number_of_rounds(instance: Instance) -> int:
    """K = max(1, ⌈log₂(2/Δ)⌉): by then a method that halves its error has excluded every rival."""
    return max(1, math.ceil(math.log2(2 / instance.smallest_gap)))


def items_left(instance: Instance, number: int) -> Integers:
    """S_k: items that may be left in round k."""
    if number == 1:
        return np.arange(len(instance.items))
    return np.flatnonzero(instance.gaps <= 4 * 2.0**-number * (1 + 1e-12))


def rho_star(instance: Instance, *, gap: float = 0.01) -> Terms:
    """ρ* = Σ_k 4^k·min_λ max over pairs in S_k of ‖z − z'‖²_{H(λ,θ*)⁻¹}, the leading term of RAGE-GLM.

    Proved: ρ* ≤ 64·K·ρ_opt. (Printed without the 64 and with ln(2/Δ) for K, which is false; and ‖·‖_H for ‖·‖_{H⁻¹}.)
    """
    designs = [
        pairs_optimal(instance.informative, instance.items[items_left(instance, k)], gap=gap)
        for k in range(1, number_of_rounds(instance) + 1)
    ]
    scales = [4.0 ** (k + 1) for k in range(len(designs))]
    return Terms(
        tuple(scale * each.value for scale, each in zip(scales, designs, strict=True)),
        tuple(scale * each.lower_bound for scale, each in zip(scales, designs, strict=True)),
    )


def beta_terms(instance: Instance, *, delta: float = 0.05, gap: float = 0.01) -> Terms:
    """β_k = min_λ max[4^k·max over pairs in S_k of ‖z − z'‖²_{H⁻¹}, γ(d)·max_x ‖x‖²_{H⁻¹}], k = 1, …, K.

    γ(d) = d + log(6(2 + |X|)/δ), the printed burn-in; Theorem 2 of the paper says O(Σ β_k·log) questions.
    """
    designs = [_round_design(instance, k, delta, 1.0, gap) for k in range(1, number_of_rounds(instance) + 1)]
    return Terms(tuple(each.value for each in designs), tuple(each.lower_bound for each in designs))


def rage_glm_formula(instance: Instance, *, delta: float = 0.05, rounding: float = 0.1, gap: float = 0.01) -> Formula:
    """What RAGE-GLM asks with the paper's constants if every design were made at θ* and left exactly S_k.

    n₀ + Σ_k ⌈max(3(1+ε)·f_k·log(1/δ_k), d²/ε)⌉ with f_k = min_λ max[γ·max ‖x‖², 3.5²·4^k·max ‖z − z'‖²] and n₀ of
    BurnIn at the true κ₀. The proof gives an error of 4.29·δ.
    """
    delta, rounding = validate.probability("delta", delta), validate.positive("rounding", rounding)
    count = len(instance.measurements)
    total = _burn_in(instance, delta, rounding)
    for k in range(1, number_of_rounds(instance) + 1):
        value = _round_design(instance, k, delta, 3.5**2, gap).value
        nats = math.log(2 * k**2 * max(len(instance.items), count) * (2 + count) / delta)
        total += math.ceil(max(3 * (1 + rounding) * value * nats, _least_questions(instance, rounding)))
    return Formula("rage-glm", total, Guarantee.AS_PRINTED, "Jun et al. 2021, Algorithm 1 at θ*")


def rage_glm_2_formula(
    instance: Instance,
    *,
    delta: float = 0.05,
    rounding: float = 0.1,
    norm_bound: float | None = None,
    gap: float = 0.01,
) -> Formula:
    """What RAGE-GLM-2 asks with the paper's constants if every design were made at θ* and left exactly S_k.

    n_k = max{⌈4^k·c²·f·(√d·log(c²·4^k·(2S+1)·f/d) + √log(k²|Z|²/δ))²⌉, d²/ε}, c² = 48²·(1+ε)·(2S+1)³, f = min_λ max
    over pairs in S_k of ‖z − z'‖²_{H⁻¹}. S bounds ‖θ*‖ times the longest vector; without a bound it is taken at θ*.
    """
    delta, rounding = validate.probability("delta", delta), validate.positive("rounding", rounding)
    bound = float(np.linalg.norm(instance.theta)) if norm_bound is None else validate.positive("norm_bound", norm_bound)
    if bound < np.linalg.norm(instance.theta) * (1 - 1e-12):
        raise InvalidInput(
            f"norm_bound must be at least the length of theta, {np.linalg.norm(instance.theta):.4g}, got {bound:g}."
        )
    ball = 2 * bound * float(norms(instance.measurements).max()) + 1
    squared = 48**2 * (1 + rounding) * ball**3
    total, d = _burn_in(instance, delta, rounding), instance.basis.rank
    for k, value in enumerate(rho_star(instance, gap=gap).values, start=1):
        root = math.sqrt(d) * math.log(squared * ball * value / d)
        root += math.sqrt(math.log(k**2 * len(instance.items) ** 2 / delta))
        total += max(math.ceil(squared * value * root**2), math.ceil(_least_questions(instance, rounding)))
    return Formula("rage-glm-2", total, Guarantee.AS_PRINTED, "Jun et al. 2021, supplement, at θ*")


def kazerouni_wein_formula(instance: Instance) -> Formula:
    """d·|X|/(κ²Δ²), κ = min over ‖x‖ ≤ longest of s(xᵀθ*): Kazerouni and Wein 2019 less constants and logarithms."""
    longest = float(norms(instance.measurements).max())
    kappa = float(variance(np.array(longest * np.linalg.norm(instance.theta))))
    count = instance.basis.rank * len(instance.measurements)
    questions = count / (kappa * instance.smallest_gap) ** 2 if kappa > 1e-150 else math.inf
    return Formula("gl-gape", questions, Guarantee.AS_PRINTED, "Kazerouni and Wein 2019, d|X|/(κ²Δ²)", True)


def fixed_g_optimal_formula(instance: Instance) -> Formula:
    """d/(κ₀Δ²): the G-optimal design until all are told apart; constants and logarithms left out."""
    questions = instance.basis.rank / (instance.kappa * instance.smallest_gap**2) if instance.kappa > 0 else math.inf
    return Formula("g-optimal", questions, Guarantee.AS_PRINTED, "Soare et al. 2014, d/(κ₀Δ²)", True)


def printed_gamma(instance: Instance, delta: float) -> float:
    """γ(d) = d + log(6(2 + |X|)/δ), the printed burn-in of a design that may ask every vector."""
    return printed_information(instance.basis.rank, len(instance.measurements), delta)


def _round_design(instance: Instance, number: int, delta: float, width: float, gap: float) -> Design:
    """The design of a round: predict all vectors well enough for Theorem 1, and tell the items left apart."""
    families: list[VectorFamily] = [
        Rows(instance.measurements, scale=printed_gamma(instance, delta)),
        Pairs(instance.items[items_left(instance, number)], scale=4.0**number * width),
    ]
    return max_optimal(instance.informative, families, gap=gap)


def _burn_in(instance: Instance, delta: float, rounding: float) -> int:
    """n₀ = ⌈max{3(1+ε)·d·γ(d)·log(2|X|(2+|X|)/δ)/κ₀, d²/ε}⌉ of Algorithm 2."""
    count = len(instance.measurements)
    questions = 3 * (1 + rounding) * instance.basis.rank * printed_gamma(instance, delta)
    questions *= math.log(2 * count * (2 + count) / delta) / instance.kappa
    return math.ceil(max(questions, _least_questions(instance, rounding)))


def _least_questions(instance: Instance, rounding: float) -> float:
    """r(ε) = d²/ε, what the rounding is said to need."""
    return instance.basis.rank**2 / rounding
