"""How much information a confidence bound needs before it says anything, by four theorems.

Information is 1/ξ², ξ = max ‖x_s‖ in H(θ*)⁻¹ over the asked vectors: what the answers tell about the vector they tell
least about. Li et al. ask for λ_min(Σ xxᵀ) instead, in units of κ⁻⁴.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from surepick import validate
from surepick.confidence.theorem import Budget, largest_xi, printed_gamma
from surepick.glm import variance
from surepick.guarantee import Guarantee
from surepick.linalg import factor, gram_matrix

GUARANTEES = {
    "corrected": Guarantee.PROVED,
    "proof": Guarantee.AS_PRINTED,
    "printed": Guarantee.AS_PRINTED,
    "li": Guarantee.CITED,
}
"""What stands behind each theorem's burn-in."""

THEOREMS = tuple(GUARANTEES)


def printed_information(dimension: int, lines: int, delta: float) -> float:
    """γ = d + log(6(2+t)/δ) for t distinct asked lines and one query: Jun et al. 2021, Theorem 1, printed and false."""
    return printed_gamma(validate.whole("dimension", dimension), 2 + lines, validate.probability("delta", delta))


def proof_information(dimension: int, lines: int, delta: float) -> float:
    """γ/0.17², what the proof of that theorem uses; its norm lemma is not proved by its argument."""
    return printed_information(dimension, lines, delta) / 0.17**2


def covering_information(dimension: int, lines: int, delta: float) -> float:
    """(d·log 6 + log((2+t)/δ))/0.0897²: the same proof with the union over the cover counted right."""
    nats = math.log((2 + lines) / validate.probability("delta", delta))
    return (validate.whole("dimension", dimension) * math.log(6) + nats) / 0.0897**2


def corrected_information(dimension: int, lines: int, delta: float) -> float:
    """1/ξ² at the largest ξ the corrected theorem admits, for one query; the better of its two versions.

    Which version is better depends on dimension, lines and delta only, so it may be chosen. The largest ξ is found to a
    relative 1e-4 from the safe side.
    """
    delta = validate.probability("delta", delta)
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
    """Theorems whose number was continued in proportion, because so many vectors were not drawn."""


def gaussian_burn_in(
    dimension: int, norm: float, *, delta: float = 0.05, seed: int = 0, most: int = 400_000
) -> GaussianBurnIn:
    """How many x_s ~ N(0, I/d), one answer each, until each theorem's condition holds at ‖θ*‖ = norm.

    No asymptotics: ξ of the drawn vectors is computed, and the least t found by bisection over their beginnings to half
    a per cent, O(t·d²) a step; beyond `most` vectors information is continued in proportion to their number. Li's
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
        shape = factor(gram_matrix(vectors[:t], weights[:t]))
        information = 0.0 if shape is None else float(shape.inverse_norms(vectors[:t]).max()) ** -2
        return information / INFORMATION[theorem](d, t, delta)

    answers = {theorem: _first(excess, theorem, 2 * d, most) for theorem in THEOREMS}
    return GaussianBurnIn(d, norm, answers, tuple(name for name in THEOREMS if answers[name] > most))


def _first(excess: Callable[[str, int], float], theorem: str, low: int, most: int) -> float:
    """The number from which on the excess is one or more: by doubling and bisection, or by proportion beyond `most`."""
    high = low
    while excess(theorem, high) < 1:
        if high == most:
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
