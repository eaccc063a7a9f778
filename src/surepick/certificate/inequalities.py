"""The inequalities that a certificate rests on (docs/anytime.md, section 3), written plainly: one rival at a time."""

import math

import numpy as np

from surepick._arrays import Floats
from surepick.errors import CertificateRefused


def boxes(
    x: Floats, n: Floats, k: Floats, theta: Floats, y: Floats, multiplier: float, room: float
) -> tuple[Floats, float, float, Floats]:
    """Bounds of |xᵀ(θ' − θ)| and yᵀ(θ − θ'), and an ellipsoid, for θ' of the half-space with loss at most `room` up."""
    if room <= 0:
        raise CertificateRefused("A localiser without room proves nothing.")
    v = x @ theta
    weight = n * mean(v) * mean(-v)
    gradient = x.T @ (n * mean(v) - k) + multiplier * y
    inverse = np.linalg.inv((x.T * weight) @ x)
    squared = np.einsum("xi,ij,xj->x", x, inverse, x)
    largest = math.sqrt(float(np.max(squared[n > 0])))
    tilt = largest * math.sqrt(max(float(gradient @ inverse @ gradient), 0.0))
    if tilt >= 1:
        raise CertificateRefused("The centre of a localiser is too far from its least point.")
    low, high = 0.0, (largest**2 * room + 1) / (1 - tilt)
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if math.exp(-middle) + middle - 1 - tilt * middle < largest**2 * room:
            low = middle
        else:
            high = middle
    half = np.sqrt(squared) * high / largest
    for _ in range(7):
        # softplus(v+w) − softplus(v) − μ(v)w ≥ ½a·w² for |w| ≤ half, with the a of w = half away from zero
        out, wide = np.abs(v), np.maximum(half, 1e-3)
        steep = (
            np.maximum(softplus(out + wide) - softplus(out) - mean(out) * wide - 1e-15 * (out + wide), 0.0)
            * 2
            / wide**2
        )
        inverse = np.linalg.inv((x.T * (n * steep)) @ x)
        slope = math.sqrt(max(float(gradient @ inverse @ gradient), 0.0))
        radius = slope + math.sqrt(slope**2 + 2 * room)
        half = np.minimum(half, np.sqrt(np.einsum("xi,ij,xj->x", x, inverse, x)) * radius)
    depth = root(multiplier, float(y @ inverse @ y), room + slope * radius)
    return np.asarray(half), depth, radius, np.asarray(inverse, dtype=np.float64)


def fall(x: Floats, weights: Floats, gradient: Floats, y: Floats) -> float:
    """How far a function falls at most on the half-space, whose curvature along x is at least weight·e^{−|move|}."""
    inverse = np.linalg.inv((x.T * weights) @ x)
    multiplier = max(-float(y @ inverse @ gradient) / float(y @ inverse @ y), 0.0)
    total = gradient + multiplier * y
    largest = math.sqrt(float(np.max(np.einsum("xi,ij,xj->x", x, inverse, x))))
    product = largest * math.sqrt(max(float(total @ inverse @ total), 0.0))
    if not product < 1:
        return math.inf
    return (product + (1 - product) * math.log1p(-product)) / largest**2


def root(multiplier: float, along: float, room: float) -> float:
    """The largest t with multiplier·t + t²/(2·along) ≤ room."""
    return math.sqrt((multiplier * along) ** 2 + 2 * along * room) - multiplier * along


def onto(theta: Floats, y: Floats, epsilon: float) -> Floats:
    """The nearest point with yᵀθ = −epsilon."""
    return np.asarray(theta - y * ((float(y @ theta) + epsilon) / float(y @ y)))


def loss(x: Floats, n: Floats, k: Floats, theta: Floats) -> float:
    """Minus the log-likelihood of k ones among n answers to each x."""
    v = x @ theta
    return float(k @ softplus(-v) + (n - k) @ softplus(v))


def softplus(v: Floats) -> Floats:
    """log(1+eᵛ)."""
    return np.asarray(np.logaddexp(0.0, v))


def mean(v: Floats) -> Floats:
    """μ(v) = 1/(1+e⁻ᵛ)."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -v)))


def norm(vector: Floats) -> float:
    """Its length."""
    return math.sqrt(float(vector @ vector))


def xlogx(q: Floats) -> Floats:
    """q·log q, zero at zero."""
    return np.where(q > 0, q * np.log(np.where(q > 0, q, 1.0)), 0.0)
