"""What the formulas of the literature promise for a known θ*, in questions and in information.

The complexity terms of Jun et al. 2021 and of what it compares with: H(λ, θ*) = Σ λ_x·s(xᵀθ*)·xxᵀ; Δ is the smallest
gap; S₁ = Z and S_k = {z : gap ≤ 4·2^{−k}}, the items that may be left in round k (the supplement's index, and all items
in the first round; docs/limits.md). Every term is a design problem and costs what `surepick.design` states for it.

The burn-in: how much information a confidence bound needs before it says anything, by four theorems. Information is
1/ξ², ξ = max ‖x_s‖ in H(θ*)⁻¹ over the asked vectors: what the answers tell about the vector they tell least about. Li
et al. ask for λ_min(Σ xxᵀ) instead, in units of κ⁻⁴.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from surepick import validate
from surepick._arrays import Integers
from surepick.confidence.theorem import Budget, largest_xi, printed_gamma
from surepick.design import Design, Pairs, Rows, gap_optimal, max_optimal, pairs_optimal
from surepick.design.vector_families import VectorFamily
from surepick.errors import InvalidInput
from surepick.glm import variance
from surepick.guarantee import Guarantee
from surepick.limits.instance import Instance
from surepick.linalg import factor, gram_matrix, norms

GUARANTEES = {
    "corrected": Guarantee.PROVED,
    "proof": Guarantee.AS_PRINTED,
    "printed": Guarantee.AS_PRINTED,
    "li": Guarantee.CITED,
}
"""What stands behind each theorem's burn-in."""

THEOREMS = tuple(GUARANTEES)


@dataclass(frozen=True)
class Terms:
    """A sum over rounds, each term a design problem; the designs certify it from both sides."""

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

    As the gaps tend to zero V* of `lower_bound` tends to 1/(2ρ), so that about 2ρ·kl(1 − δ, δ) questions are needed.
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
    # The factor keeps items whose gap is 4·2^{−k} exactly but for rounding.
    return np.flatnonzero(instance.gaps <= 4 * 2.0**-number * (1 + 1e-12))


def rho_star(instance: Instance, *, gap: float = 0.01) -> Terms:
    """ρ* = Σ_k 4^k·min_λ max over pairs in S_k of ‖z − z'‖²_{H(λ,θ*)⁻¹}, the leading term of RAGE-GLM.

    Proved: ρ* ≤ `rho_star_factor`·ρ_opt. (Printed with the factor ln(2/Δ), which is false; and ‖·‖_H for ‖·‖_{H⁻¹}.)
    """
    designs = [
        pairs_optimal(instance.informative, instance.items[items_left(instance, k)], gap=gap)
        for k in range(1, number_of_rounds(instance) + 1)
    ]
    scales = [4.0 ** (k + 1) for k in range(len(designs))]
    return Terms(
        tuple(scale * design.value for scale, design in zip(scales, designs, strict=True)),
        tuple(scale * design.lower_bound for scale, design in zip(scales, designs, strict=True)),
    )


def rho_star_factor(instance: Instance) -> float:
    """The proved factor of ρ* ≤ factor·ρ_opt: 64·(K − 1) + max(64, 16·gap²) with the largest gap (docs/limits.md)."""
    # Round 1 has all items, whose gaps may exceed 2; from round 2 on a rival in S_k has gap² ≤ 16·4^{−k}.
    return 64.0 * (number_of_rounds(instance) - 1) + max(64.0, 16.0 * float(instance.gaps.max()) ** 2)


def beta_terms(instance: Instance, *, delta: float = 0.05, gap: float = 0.01) -> Terms:
    """β_k = min_λ max[4^k·max over pairs in S_k of ‖z − z'‖²_{H⁻¹}, γ(d)·max_x ‖x‖²_{H⁻¹}], k = 1, …, K.

    γ(d) = d + log(6(2 + |X|)/δ), the printed burn-in; Theorem 2 of the paper says O(Σ β_k·log) questions.
    """
    designs = [_round_design(instance, k, delta, 1.0, gap) for k in range(1, number_of_rounds(instance) + 1)]
    return Terms(tuple(design.value for design in designs), tuple(design.lower_bound for design in designs))


def rage_glm_formula(instance: Instance, *, delta: float = 0.05, rounding: float = 0.1, gap: float = 0.01) -> Formula:
    """What RAGE-GLM asks with the paper's constants if every design were made at θ* and left exactly S_k.

    n₀ + Σ_k ⌈max(3(1+ε)·f_k·log(1/δ_k), d²/ε)⌉ with f_k = min_λ max[γ·max ‖x‖², 3.5²·4^k·max ‖z − z'‖²] and n₀ of
    BurnIn at the true κ₀. The proof gives an error of 4.29·δ.
    """
    delta, rounding = validate.probability("delta", delta), validate.positive("rounding", rounding)
    count = len(instance.measurements)
    total = _burn_in(instance, delta, rounding)
    # Round k spends δ_k = δ/(2k²·max(|Z|, |X|)·(2 + |X|)); 3.5 is the width of Theorem 1, squared in the design.
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
    # 2S + 1, the self-concordance factor of the supplement, which takes the longest vector as the unit of length.
    ball = 2 * bound * float(norms(instance.measurements).max()) + 1
    squared = 48**2 * (1 + rounding) * ball**3
    total, d = _burn_in(instance, delta, rounding), instance.basis.rank
    for k, value in enumerate(rho_star(instance, gap=gap).values, start=1):
        # `value` of rho_star already carries the factor 4^k.
        root = math.sqrt(d) * math.log(squared * ball * value / d)
        root += math.sqrt(math.log(k**2 * len(instance.items) ** 2 / delta))
        total += max(math.ceil(squared * value * root**2), math.ceil(_least_questions(instance, rounding)))
    return Formula("rage-glm-2", total, Guarantee.AS_PRINTED, "Jun et al. 2021, supplement, at θ*")


def kazerouni_wein_formula(instance: Instance) -> Formula:
    """d·|X|/(κ²Δ²), κ = min over ‖x‖ ≤ longest of s(xᵀθ*): Kazerouni and Wein 2019 less constants and logarithms."""
    longest = float(norms(instance.measurements).max())
    kappa = float(variance(np.array(longest * np.linalg.norm(instance.theta))))
    count = instance.basis.rank * len(instance.measurements)
    # Below 1e-150 the square of κ underflows.
    questions = count / (kappa * instance.smallest_gap) ** 2 if kappa > 1e-150 else math.inf
    return Formula("gl-gape", questions, Guarantee.AS_PRINTED, "Kazerouni and Wein 2019, d|X|/(κ²Δ²)", True)


def fixed_g_optimal_formula(instance: Instance) -> Formula:
    """d/(κ₀Δ²): the G-optimal design until all items are separated, without constants and logarithms."""
    questions = instance.basis.rank / (instance.kappa * instance.smallest_gap**2) if instance.kappa > 0 else math.inf
    return Formula("g-optimal", questions, Guarantee.AS_PRINTED, "Soare et al. 2014, d/(κ₀Δ²)", True)


def gamma_of(instance: Instance, delta: float) -> float:
    """γ(d) = d + log(6(2 + |X|)/δ), the printed burn-in of a design that may ask every vector."""
    return printed_information(instance.basis.rank, len(instance.measurements), delta)


def _round_design(instance: Instance, number: int, delta: float, width: float, gap: float) -> Design:
    """The design of a round: predict all vectors well enough for Theorem 1, and separate the items left."""
    families: list[VectorFamily] = [
        Rows(instance.measurements, scale=gamma_of(instance, delta)),
        Pairs(instance.items[items_left(instance, number)], scale=4.0**number * width),
    ]
    return max_optimal(instance.informative, families, gap=gap)


def _burn_in(instance: Instance, delta: float, rounding: float) -> int:
    """n₀ = ⌈max{3(1+ε)·d·γ(d)·log(2|X|(2+|X|)/δ)/κ₀, d²/ε}⌉ of Algorithm 2."""
    count = len(instance.measurements)
    questions = 3 * (1 + rounding) * instance.basis.rank * gamma_of(instance, delta)
    questions *= math.log(2 * count * (2 + count) / delta) / instance.kappa
    return math.ceil(max(questions, _least_questions(instance, rounding)))


def _least_questions(instance: Instance, rounding: float) -> float:
    """r(ε) = d²/ε, what the rounding is said to need."""
    return instance.basis.rank**2 / rounding


def printed_information(dimension: int, lines: int, delta: float) -> float:
    """γ = d + log(6(2+t)/δ) for t distinct asked lines and one query: Jun et al. 2021, Theorem 1, printed and false."""
    return printed_gamma(validate.whole("dimension", dimension), 2 + lines, validate.probability("delta", delta))


def proof_information(dimension: int, lines: int, delta: float) -> float:
    """γ/0.17², what the proof of that theorem uses; its argument does not prove its norm lemma."""
    return printed_information(dimension, lines, delta) / 0.17**2


def covering_information(dimension: int, lines: int, delta: float) -> float:
    """(d·log 6 + log((2+t)/δ))/0.0897²: the same proof with the union over the cover counted correctly."""
    nats = math.log((2 + lines) / validate.probability("delta", delta))
    return (validate.whole("dimension", dimension) * math.log(6) + nats) / 0.0897**2


def corrected_information(dimension: int, lines: int, delta: float) -> float:
    """1/ξ² at the largest ξ the corrected theorem admits, for one query; the better of its two versions.

    Which version is better depends on dimension, lines and delta only, so it may be chosen. The largest ξ is found to a
    relative 1e-4 from the safe side.
    """
    delta = validate.probability("delta", delta)
    # The choice depends on nothing random, so it costs no union bound.
    budgets = (Budget.as_in_the_paper(delta, lines), Budget.split("norm", delta, 0.5, lines, 1))
    return max(largest_xi(validate.whole("dimension", dimension), budget) for budget in budgets) ** -2


def li_eigenvalue(dimension: int, kappa: float, delta: float) -> float:
    """8κ⁻⁴·(d² + log(3/δ)) ≤ λ_min(Σ xxᵀ), ‖x‖ ≤ 1: Li, Lu and Zhou 2017, Theorem 1, at error probability δ.

    κ is the least slope within distance one of θ*, s(‖θ*‖ + 1). Since H ≥ κ·Σ xxᵀ, it implies 1/ξ² ≥ κ times this.
    """
    nats = math.log(3 / validate.probability("delta", delta))
    return 8 * (validate.whole("dimension", dimension) ** 2 + nats) / validate.positive("kappa", kappa) ** 4


@dataclass(frozen=True)
class GaussianBurnIn:
    """Answers needed on Gaussian measurement vectors until each theorem applies."""

    dimension: int
    norm: float
    answers: dict[str, float]
    """By theorem: the number of vectors (one answer each) after which its condition holds."""
    extrapolated: tuple[str, ...]
    """Theorems that need more vectors than were drawn; their number is extrapolated in proportion."""


def gaussian_burn_in(
    dimension: int, norm: float, *, delta: float = 0.05, seed: int = 0, most: int = 400_000
) -> GaussianBurnIn:
    """How many x_s ~ N(0, I/d), one answer each, until each theorem's condition holds at ‖θ*‖ = norm.

    No asymptotics: ξ of the drawn vectors is computed, and the least t is found by bisection over their first t to half
    a per cent, O(t·d²) a step; beyond `most` vectors information is extrapolated in proportion to their number. Li's
    theorem is given the benefit of κ = s(norm + 1), as if no vector were longer than one. Jun et al. 2021 show that the
    number is polynomial in the norm for d ≥ norm², while Li's is exponential.
    """
    d, norm = validate.whole("dimension", dimension), validate.positive("norm", norm)
    vectors = np.random.default_rng(seed).normal(size=(most, d)) / math.sqrt(d)
    weights = variance(norm * vectors[:, 0])  # θ* = norm·e₁, without loss by symmetry

    def excess(theorem: str, t: int) -> float:
        """What t vectors have over what the theorem needs; it applies from one on."""
        if theorem == "li":
            smallest = float(np.linalg.eigvalsh(gram_matrix(vectors[:t]))[0])
            return smallest / li_eigenvalue(d, float(variance(np.array(norm + 1.0))), delta)
        # 1/ξ² = min over asked x of 1/‖x‖²_{H⁻¹}; a singular H gives no information at all.
        shape = factor(gram_matrix(vectors[:t], weights[:t]))
        information = 0.0 if shape is None else float(shape.inverse_norms(vectors[:t]).max()) ** -2
        return information / INFORMATION[theorem](d, t, delta)

    answers = {theorem: _first(excess, theorem, 2 * d, most) for theorem in THEOREMS}
    return GaussianBurnIn(d, norm, answers, tuple(name for name in THEOREMS if answers[name] > most))


def _first(excess: Callable[[str, int], float], theorem: str, low: int, most: int) -> float:
    """The least number whose excess is one or more, by doubling and bisection; beyond `most` by proportion."""
    high = low
    while excess(theorem, high) < 1:
        if high == most:
            # Information grows in proportion to the number of vectors drawn from one distribution.
            return most / excess(theorem, most)
        low, high = high, min(2 * high, most)
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if excess(theorem, middle) >= 1 else (middle, high)
    return float(high)


INFORMATION: dict[str, Callable[[int, int, float], float]] = {
    "corrected": corrected_information,
    "proof": proof_information,
    "printed": printed_information,
}
