"""A family of instances on which every method must ask in proportion to the number of items, whatever the gaps.

Jun et al. 2021, supplement, "1/κ₀ lower bounds", with the slips corrected (docs/limits.md): n items and n parameters
such that under θ_i only item i ever gets a yes worth mentioning. A method that does not know which must find it.
"""

import math
from dataclasses import dataclass

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.errors import InvalidInput
from surepick.glm import variance

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
    _refuse_few(items)
    epsilon = validate.positive("epsilon", epsilon)
    if epsilon > 0.5:
        raise InvalidInput(f"epsilon must be at most 0.5 for the construction to exist, got {epsilon:g}.")
    dimension = math.ceil(4 * math.log(items) / epsilon**2)
    rng = np.random.default_rng(seed)
    kept = np.zeros((0, dimension - 1))
    while len(kept) < items:
        for vector in rng.normal(size=(items, dimension - 1)):
            unit = vector / np.linalg.norm(vector)
            if len(kept) < items and np.all(np.abs(kept @ unit) <= epsilon):
                kept = np.vstack([kept, unit])
    angle = math.atan(math.sqrt(2 / (1 + epsilon)))
    norm = (3 + epsilon) / (1 - epsilon) * math.log(2 * items - 1)
    first, rest = np.full((items, 1), math.cos(angle)), math.sin(angle) * kept
    return KappaFamily(np.hstack([first, rest]), norm * np.hstack([-first, rest]), epsilon)


def kappa_family_bound(items: int, *, delta: float = 0.05) -> float:
    """n/16: on some θ of the family a method of error probability δ ≤ 0.058 asks more than this on average.

    Proved in the paper, with the constant of its last step corrected; independent of gap and dimension, and of the
    asymptotic bound of `transport`, which is blind to the search for the right item.
    """
    _refuse_few(items)
    if validate.probability("delta", delta) > LARGEST_DELTA:
        raise InvalidInput(f"delta must be at most {LARGEST_DELTA} for this bound, got {delta:g}; 0.05 is customary.")
    return items / 16


def _refuse_few(items: int) -> None:
    if items < FEWEST_ITEMS:
        raise InvalidInput(f"The family needs more than 20 items, got {items}.")
