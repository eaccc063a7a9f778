"""Bounds that hold for the worst instance of a class, not for a given one: identification and regret.

`kappa_family` (Jun et al. 2021, supplement, "1/κ₀ lower bounds", with the slips corrected; docs/limits.md): n items and
n parameters such that under θ_i only item i gets a yes with more than negligible probability. A method that does not
know i must find it, so it asks in proportion to n, whatever the gaps. `sup_logistic_regret` is the regret bound of
SupLogistic (Theorem 3 there), as printed and with its constants corrected.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.errors import InvalidInput
from surepick.glm import variance
from surepick.guarantee import Guarantee

LARGEST_DELTA = 0.058
"""The proof needs (1 − 1/2n)^{n/4}·(1/8 − δ) > δ, which holds up to 0.0585 for n > 20; 1/16 is printed."""

FEWEST_ITEMS = 21


@dataclass(frozen=True, eq=False)
class KappaFamily:
    """Items z_i (which are also what can be measured) and parameters θ_i, under which item i is the best."""

    items: Floats
    thetas: Floats
    epsilon: float
    """Bound of the cosines between the directions the items are built from."""

    @property
    def norm(self) -> float:
        """S = ‖θ_i‖, the same for all."""
        return float(np.linalg.norm(self.thetas[0]))

    @property
    def kappa(self) -> float:
        """κ₀ = the least variance of an answer, over all items and all parameters."""
        return float(variance(self.items @ self.thetas.T).min())

    @property
    def items_by_kappa(self) -> float:
        """½·[(1/(2κ₀) − 1)^{(1−ε)/(1+3ε)} + 1] ≤ n: how 1/κ₀ enters; the printed exponent has the wrong sign."""
        exponent = (1 - self.epsilon) / (1 + 3 * self.epsilon)
        return (math.pow(1 / (2 * self.kappa) - 1, exponent) + 1) / 2


def kappa_family(items: int, *, epsilon: float = 0.5, seed: int = 0) -> KappaFamily:
    """Build the family in the smallest dimension the theorem admits, d = ⌈4·log(n)/ε²⌉.

    Unit vectors a_i of R^{d−1} with |a_iᵀa_j| ≤ ε are drawn and kept where they fit; then z_i = (cos u, sin u·a_i) and
    θ_i = S·(−cos u, sin u·a_i), tan²u = 2/(1+ε), S = (3+ε)/(1−ε)·log(2n−1), so that μ(z_iᵀθ_i) ≥ 1 − 1/(2n) and
    μ(z_jᵀθ_i) ≤ 1/(2n) for j ≠ i. O(n² d) time a draw of n vectors.
    """
    _require_enough_items(items)
    epsilon = validate.positive("epsilon", epsilon)
    if epsilon > 0.5:
        raise InvalidInput(f"epsilon must be at most 0.5 for the construction to exist, got {epsilon:g}.")
    dimension = math.ceil(4 * math.log(items) / epsilon**2)
    rng = np.random.default_rng(seed)
    # Random unit vectors of this dimension are nearly orthogonal, so few draws are rejected.
    kept = np.zeros((0, dimension - 1))
    while len(kept) < items:
        for vector in rng.normal(size=(items, dimension - 1)):
            unit = vector / np.linalg.norm(vector)
            if len(kept) < items and np.all(np.abs(kept @ unit) <= epsilon):
                kept = np.vstack([kept, unit])
    # z_iᵀθ_i = S(sin²u − cos²u) and z_jᵀθ_i ≤ S(ε·sin²u − cos²u): tan²u = 2/(1+ε) makes them equal with opposite signs,
    # and S is the least norm that brings both to ±log(2n − 1), that is to probabilities 1 − 1/(2n) and 1/(2n).
    angle = math.atan(math.sqrt(2 / (1 + epsilon)))
    norm = (3 + epsilon) / (1 - epsilon) * math.log(2 * items - 1)
    first, rest = np.full((items, 1), math.cos(angle)), math.sin(angle) * kept
    return KappaFamily(np.hstack([first, rest]), norm * np.hstack([-first, rest]), epsilon)


def kappa_family_bound(items: int, *, delta: float = 0.05) -> float:
    """n/16: on some θ of the family a method of error probability δ ≤ 0.058 asks more than this on average.

    Proved in the paper, with the constant of its last step corrected; independent of gap and dimension, and of the
    asymptotic bound of `lower_bound`, which does not count the search for the right item.
    """
    _require_enough_items(items)
    if validate.probability("delta", delta) > LARGEST_DELTA:
        raise InvalidInput(f"delta must be at most {LARGEST_DELTA} for this bound, got {delta:g}; 0.05 is customary.")
    return items / 16


def _require_enough_items(items: int) -> None:
    if items < FEWEST_ITEMS:
        raise InvalidInput(f"The family needs more than 20 items, got {items}.")


@dataclass(frozen=True)
class RegretBound:
    """Regret ≤ leading + second, for horizons beyond an unknown multiple of `burn_in`."""

    leading: float
    """Grows with √T, free of κ."""
    second: float
    """Grows with 1/κ and powers of log T; as printed, the constant hidden by O(·) is taken as one."""
    burn_in: float
    """Z·log⁴Z, Z = d/κ² + log²(K/δ)/(dκ²): the order of the horizon from which the bound is claimed."""
    width: float
    """α, by which the confidence widths are multiplied."""
    guarantee: Guarantee

    @property
    def total(self) -> float:
        """Leading and second term."""
        return self.leading + self.second


def sup_logistic_regret(
    dimension: int,
    horizon: int,
    arms: int,
    *,
    kappa: float,
    delta: float = 0.05,
    constants: Literal["corrected", "printed"] = "corrected",
) -> RegretBound:
    """C·α·√(d·T·ln(T/d)·log₂T) plus a term in α²d/κ.

    Printed: C = 10, α = 3.5·√ln(2(2+√(dT))·2STK/δ), second term α²d/κ·ln(α²T/κ). Corrected: C = 13; the union has to
    count 2 + T vectors and 2(S+1)TK events, S = ⌊log₂T⌋; second term 160·α²d/κ·ln(T/d)·log₂T. The corrected
    constants are the result of bookkeeping on the printed proof, which hides the length of the burn-in, so they
    are not called proved.
    """
    validate.one_of("constants", constants, ("corrected", "printed"))
    delta = validate.probability("delta", delta)
    kappa = validate.positive("kappa", kappa)
    dimension, arms = validate.whole("dimension", dimension), validate.whole("arms", arms)
    if horizon < 3 * dimension or horizon < 4:
        raise InvalidInput(
            f"horizon must be at least 4 and three times the dimension for the bound to make sense, got {horizon}."
        )
    d, levels, log2 = dimension, math.floor(math.log2(horizon)), math.log2(horizon)
    scale = d / kappa**2 + math.log(arms / delta) ** 2 / (d * kappa**2)
    spread = math.sqrt(d * horizon * math.log(horizon / d) * log2)
    # α counts the events of the union bound; the two versions differ in what they count and in C (docs/limits.md).
    if constants == "printed":
        events = 2 * (2 + math.sqrt(d * horizon)) * 2 * levels * horizon * arms
        width = 3.5 * math.sqrt(math.log(events / delta))
        leading = 10 * width * spread
        second = width**2 / kappa * d * math.log(width**2 * horizon / kappa)
        guarantee = Guarantee.AS_PRINTED
    else:
        events = 2 * (2 + horizon) * 2 * (levels + 1) * horizon * arms
        width = 3.5 * math.sqrt(math.log(events / delta))
        leading = 13 * width * spread
        second = 160 * width**2 / kappa * d * math.log(horizon / d) * log2
        guarantee = Guarantee.HEURISTIC  # the burn-in is hidden by the printed proof, so this is not proved
    return RegretBound(leading, second, scale * math.log(scale) ** 4, width, guarantee)
