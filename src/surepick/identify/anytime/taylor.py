"""Sums over answers of functions of a small tilt c, by powers of c: exact up to a remainder that is bounded.

m(v) = log(1+eᵛ). Its derivatives are polynomials of μ = μ(v), m⁽ᵏ⁾ = P_k(μ), P_1 = μ, P_{k+1} = P_k'·μ(1−μ), and for
k ≥ 2 they are s(v) times a bounded polynomial. A process needs Σ n·[m(v+c) − m(v)] over all its stages for every rival
and vector; with the power sums S_k = Σ n·cᵏ it is Σ_k S_k·m⁽ᵏ⁾(v)/k!, whatever the number of stages.
"""

import math

import numpy as np
from numpy.polynomial import Polynomial

from surepick._arrays import Floats

TERMS = 6
"""Powers kept."""

LARGEST_TILT = 0.5
"""The remainders below are stated for |c| up to this."""


def _polynomials(count: int) -> list[Polynomial]:
    spread = Polynomial([0.0, 1.0, -1.0])
    found = [Polynomial([0.0, 1.0])]
    while len(found) < count:
        found.append(found[-1].deriv() * spread)
    return found


_P = _polynomials(TERMS + 2)
_COEFFICIENTS = np.array([np.pad(each.coef, (0, TERMS + 3 - len(each.coef))) for each in _P])
"""P_1, …, P_8 by powers of μ."""


def _largest(polynomial: Polynomial) -> float:
    """Its largest absolute value on [0, 1], rounded up."""
    roots = polynomial.deriv().roots()
    inside = [
        float(root.real) for root in np.atleast_1d(roots) if abs(root.imag) < 1e-6 and -1e-6 < root.real < 1 + 1e-6
    ]
    return 1.001 * max(abs(float(polynomial(at))) for at in [0.0, 1.0, *inside])


VALUE_REMAINDER = _largest(_P[TERMS]) / math.factorial(TERMS + 1)
"""|Σ_{k>6} cᵏ m⁽ᵏ⁾(v)/k!| ≤ this · |c|⁷ (Taylor, with the largest seventh derivative)."""

SLOPE_REMAINDER = (
    math.exp(LARGEST_TILT) * _largest(_P[TERMS + 1] // Polynomial([0.0, 1.0, -1.0])) / math.factorial(TERMS + 1)
)
"""The same for the derivative by v, relative to s(v): s(v+t) ≤ e^|t|·s(v)."""


def powers(tilts: Floats) -> Floats:
    """cᵏ/k! for k = 1, …, TERMS, and |c|^{TERMS+1} last; a new leading axis."""
    result = np.empty((TERMS + 1, *tilts.shape))
    result[0] = tilts
    for k in range(1, TERMS):
        result[k] = result[k - 1] * tilts / (k + 1)
    result[TERMS] = np.abs(tilts) ** (TERMS + 1)
    return result


def rise(sums: Floats, yes: Floats, derivative: int) -> Floats:
    """Σ_k S_k/k!·m⁽ᵏ⁺ʲ⁾(v), j = 0, 1 or 2: the sum of m(v+c) − m(v), of its derivative by v, or of the second.

    `sums` has the powers on its first axis (as `powers` gives them, times n and summed), `yes` is μ(v).
    """
    return horner(by_powers_of_yes(sums, derivative), yes)


def by_powers_of_yes(sums: Floats, derivative: int) -> Floats:
    """The same as a polynomial of μ(v), its coefficients on the first axis: what depends on the sums alone."""
    return np.tensordot(_COEFFICIENTS[derivative : derivative + TERMS].T, sums[:TERMS], axes=1)


def horner(coefficients: Floats, yes: Floats) -> Floats:
    """A polynomial of μ(v)."""
    result = coefficients[-1]
    for each in coefficients[-2::-1]:
        result = result * yes + each
    return np.asarray(result)
