"""Constants of the corrected fixed-design theorem (docs/theory.md): how far the estimate may be from the truth.

Setting: independent yes/no answers on a fixed design, H = Σ s(xᵀθ*)·xxᵀ of rank d, ξ = max ‖x‖ in H⁻¹ over the asked
vectors, W = H^{-1/2}·(score at θ*). Two events carry everything: ‖W‖ ≤ b, and |aᵀW| ≤ τ for single unit vectors a.
Every function here is non-decreasing in ξ, so an upper bound of the true ξ may be passed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import scipy  # its parts load when first used: scipy.optimize takes longer than importing all of surepick

from surepick.glm.newton import root_from_above

Version = Literal["union", "norm"]

ROUNDING = 1.0 + 1e-9
"""Constants are raised by this factor, which covers the rounding of the formulas above them."""


def direction_radius(xi: float, nats: float) -> float:
    """τ(ξ, L): the u > 0 with h(ξu)/ξ² = L, h(v) = (1+v)·log(1+v) − v (Bennett's inequality).

    A fixed unit vector has |aᵀW| ≤ τ except with probability 2·e^{−L} (docs/theory.md, 3.4). h is convex and
    increasing, and approached from above: every iterate is a valid radius.
    """

    def excess(u: float) -> tuple[float, float]:
        v = xi * u
        if v <= 1e-12:  # h(v)/ξ² is u²/2 to the last digit
            return u * u / 2 - nats, u
        return _bennett(v) / xi**2 - nats, math.log1p(v) / xi

    # The start lies beyond the root: h⁻¹(L) ≤ √(2L) + L/3 (Boucheron, Lugosi and Massart 2013, section 2.7).
    return root_from_above(excess, math.sqrt(2 * nats) + xi * nats / 3, tolerance=1e-15, iterations=50)


def _bennett(v: float) -> float:
    """h(v) = (1+v)·log(1+v) − v, by its series where the closed form cancels."""
    if v > 0.05:
        return (1 + v) * math.log1p(v) - v
    total, power = 0.0, v * v
    for k in range(2, 20):
        total += power / (k * (k - 1)) * (1 if k % 2 == 0 else -1)
        power *= v
    return total


def norm_radius(xi: float, dimension: int, nats: float) -> float:
    """b(ξ, d, L): ‖W‖ ≤ b except with probability e^{−L}; the smallest of the bounds that hold for this dimension."""
    candidates = [pac_bayes_radius(xi, dimension, nats)]
    if dimension == 1:
        candidates.append(direction_radius(xi, nats + math.log(2)))
    if dimension == 2:  # the norm in the plane is at most the largest of N projections over cos(π/N)
        candidates += [
            direction_radius(xi, nats + math.log(sides)) / math.cos(math.pi / sides) for sides in range(3, 40)
        ]
    return min(candidates)


@lru_cache(maxsize=4096)
def pac_bayes_radius(xi: float, dimension: int, nats: float) -> float:
    """The bound on ‖W‖ for any dimension: the minimum over r, β > 0 of [(d−1)F(0) + F(r) + βr²/2 + L]/r.

    F(m) = ξ⁻²·E φ(ξ|m + G/√β|), φ(v) = eᵛ − 1 − v, G standard normal. Every (r, β) gives a valid bound, so the
    optimiser cannot break the proof. As ξ → 0 the value tends to √d + √(2L).
    """
    beta = math.sqrt(dimension / (2 * nats))
    r = math.sqrt(2 * (dimension / (2 * beta) + nats) / (1 + beta))

    def bound(log_r: float, log_beta: float) -> float:
        try:
            r, beta = math.exp(log_r), math.exp(log_beta)
            spread = 1 / math.sqrt(beta)
            at_zero, at_r = _expected_excess(xi, 0.0, spread), _expected_excess(xi, r, spread)
            return ((dimension - 1) * at_zero + at_r + beta * r * r / 2 + nats) / r
        except OverflowError:
            return math.inf

    return _least_found(bound, math.log(r), math.log(beta))


def _least_found(function: Callable[[float, float], float], x: float, y: float) -> float:
    """The least value met by Newton's method with differences on a smooth function of two variables.

    Not `newton.minimise`: there are no derivatives, the function may overflow, and any value met is a valid bound. A
    step below 1e-3 is followed by an error of about its square, so the value is right to some 1e-12.
    """
    h, best = 0.02, math.inf
    for _ in range(40):
        centre = function(x, y)
        best = min(best, centre)
        right, left, up, down = function(x + h, y), function(x - h, y), function(x, y + h), function(x, y - h)
        corner = function(x + h, y + h)
        if not math.isfinite(centre + right + left + up + down + corner):
            return best
        gx, gy = (right - left) / (2 * h), (up - down) / (2 * h)
        hxx, hyy = (right - 2 * centre + left) / h**2, (up - 2 * centre + down) / h**2
        hxy = (corner - right - up + centre) / h**2
        determinant = hxx * hyy - hxy * hxy
        if hxx > 0 and determinant > 0:
            dx, dy = (hxy * gy - hyy * gx) / determinant, (hxy * gx - hxx * gy) / determinant
        else:
            dx, dy = -gx, -gy
        longest = max(abs(dx), abs(dy))
        shrink = min(1.0, 0.7 / longest) if longest > 0 else 1.0
        x, y = x + shrink * dx, y + shrink * dy
        if longest < 1e-3:
            return min(best, function(x, y))
    return best


def _expected_excess(xi: float, mean: float, spread: float) -> float:
    """F(m) = ξ⁻²·E φ(ξ|c|) for c normal with this mean ≥ 0 and spread."""
    ratio = mean / spread
    density = math.sqrt(2 / math.pi) * math.exp(-ratio * ratio / 2)
    sign = math.erf(ratio / math.sqrt(2))
    first = spread * density + mean * sign
    if xi * (mean + 6 * spread) > 1.0:
        centre = xi * xi * spread * spread / 2
        upper = math.exp(xi * mean + centre) * _normal_cdf(ratio + xi * spread)
        lower = math.exp(-xi * mean + centre) * _normal_cdf(-ratio + xi * spread)
        return (upper + lower - 1 - xi * first) / xi**2
    # Taylor series in ξ with the absolute moments A_k = E|c|^k, B_k = E|c|^k·sign(c); all terms are positive,
    # so nothing cancels. They fall off like (ξ|c|)^k/k!; what is below 1e-20 of the sum is left out.
    a_before, b_before, a, b = 1.0, sign, first, mean
    total, weight = 0.0, 1.0
    for k in range(2, 26):
        a_before, a, b_before, b = (
            a,
            mean * b + (k - 1) * spread * spread * a_before,
            b,
            mean * a + (k - 1) * spread * spread * b_before,
        )
        weight /= k
        total += weight * a
        if weight * a < 1e-20 * total and k > 6:
            break
        weight *= xi
    return total


def _normal_cdf(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def curvature_excess(shift: float) -> float:
    """K(D) = D/(1 − e^{−D}) − 1: how much the mean information may differ from H when logits move by D."""
    if shift < 1e-3:
        return shift / 2 + shift**2 / 12
    return shift / -math.expm1(-shift) - 1


@dataclass(frozen=True)
class Budget:
    """How the failure probability is spent; to be chosen without looking at the answers."""

    version: Version
    """"union": every asked line gets its own event; "norm": the asked lines ride on the bound of ‖W‖."""
    direction_nats: float
    """L₁, for every single line."""
    norm_nats: float
    """L₂, for the norm."""

    @classmethod
    def split(cls, version: Version, delta: float, share: float, asked_lines: int, query_lines: int) -> "Budget":
        """Spend share·delta on the norm and the rest evenly on the lines (two sides each)."""
        lines = query_lines + (asked_lines if version == "union" else 0)
        return cls(version, math.log(2 * max(lines, 1) / ((1 - share) * delta)), math.log(1 / (share * delta)))

    @classmethod
    def as_in_the_paper(cls, delta: float, asked_lines: int) -> "Budget":
        """delta/(2 + t_eff) for each of t_eff asked lines, one query and the norm (Jun et al. 2021)."""
        share = delta / (2 + asked_lines)
        return cls("union", math.log(2 / share), math.log(1 / share))


@dataclass(frozen=True)
class Radii:
    """What the theorem gives once its burn-in condition holds, outside one failure event."""

    shift: float
    """D*: no logit of an asked vector is off by more; e^{−D*}·H ≤ H(estimate) ≤ e^{D*}·H."""
    query: float
    """c: |xᵀ(estimate − θ*)| ≤ c·‖x‖ in H⁻¹ for each query line that was counted."""
    ellipsoid: float
    """The same for all x at once."""


def radii(xi: float, dimension: int, budget: Budget, *, slack: float = 0.0) -> Radii | None:
    """The corrected theorem at ξ, or None where its burn-in condition fails.

    The condition: some D > 0 satisfies ξ(τ_s + b·K(D)) < D, where τ_s = min(τ, b) for "union" and b for "norm".
    `slack` bounds what the score at the estimate lacks to zero, in standard deviations at θ*; it is added to τ and b.
    """
    if xi > 1e3:  # far beyond any burn-in, and squares would overflow
        return None
    tau = direction_radius(xi, budget.direction_nats) * ROUNDING + slack
    b = norm_radius(xi, dimension, budget.norm_nats) * ROUNDING + slack
    shift = largest_shift(xi, b if budget.version == "norm" else min(tau, b), b)
    if shift is None:
        return None
    excess = b * curvature_excess(shift)
    return Radii(shift=shift * ROUNDING, query=(min(tau, b) + excess) * ROUNDING, ellipsoid=(b + excess) * ROUNDING)


def largest_shift(xi: float, asked: float, norm: float) -> float | None:
    """D*, the smallest root of D = ξ(τ_s + b·K(D)), rounded up; None where ξ(τ_s + b·K(D)) ≥ D for all D."""
    product = xi * norm
    if asked >= norm:  # then D* = −log(1 − ξb) in closed form
        return -math.log1p(-product) if product < 1 else None

    def excess(shift: float) -> float:
        return shift - xi * (asked + norm * curvature_excess(shift))

    # excess is concave with slope 1 − ξb·K'(D), and K' runs from 1/2 to 1.
    if product < 1:
        high = -math.log1p(-product)  # D* of the norm version, which is never smaller
        if not excess(high) > 0:  # only by rounding, where τ_s and b all but agree
            return high
    elif product < 2:
        high = float(scipy.optimize.brentq(lambda shift: _curvature_slope(shift) - 1 / product, 0.0, 700.0))
        if not excess(high) > 0:
            return None
    else:
        return None
    root = float(scipy.optimize.brentq(excess, 0.0, high, xtol=1e-14, rtol=1e-14))
    while excess(root) < 0 and root < high:
        root += 1e-13 + 1e-12 * root
    return min(root, high)


def _curvature_slope(shift: float) -> float:
    """K'(D)."""
    if shift < 1e-3:
        return 0.5 + shift / 6
    decay = -math.expm1(-shift)
    return 1 / decay - shift * math.exp(-shift) / decay**2


def largest_xi(dimension: int, budget: Budget) -> float:
    """The largest ξ at which the burn-in condition still holds, to a relative 1e-4 from below."""
    low, high = 1e-6, 2.0
    while high / low > 1 + 1e-4:
        middle = math.sqrt(low * high)
        if radii(middle, dimension, budget) is None:
            high = middle
        else:
            low = middle
    return low


def printed_gamma(dimension: int, events: int, delta: float) -> float:
    """γ = d + log(6·events/δ) of Jun et al. 2021, Theorem 1, as printed: 1/ξ² is to be at least this.

    One event for each asked line, one for each query and one more. As printed the condition is too weak, see
    docs/theory.md, section 2; `largest_xi` is the corrected one.
    """
    return dimension + math.log(6 * events / delta)
