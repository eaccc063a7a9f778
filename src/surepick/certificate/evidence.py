"""The evidence of a certificate: the processes after some stages, and the inequalities of docs/anytime.md, section 3.

Written plainly, one rival at a time, and apart from the policy's code on purpose: a mistake there must not repeat here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surepick._arrays import Floats
from surepick.certificate.reading import distribution
from surepick.errors import CertificateRefused


@dataclass(frozen=True)
class EvidenceAfter:
    """The plug-in process after some stages: counts since each restart on the vectors asked, and the bets so far."""

    asked: NDArray[np.int64]
    x: Floats
    since: list[tuple[Floats, Floats]]
    offsets: list[float]
    bets: list[tuple[Mapping[str, Any], Mapping[str, Any]]]

    @classmethod
    def after(
        cls,
        pulls: Floats,
        wins: Floats,
        scores: Floats,
        snapshots: list[tuple[Floats, Floats, Floats]],
        rows: Floats,
        bets: list[tuple[Mapping[str, Any], Mapping[str, Any]]],
    ) -> "EvidenceAfter":
        """From the totals at that time; a snapshot holds the totals when a restart began."""
        if not snapshots:
            raise CertificateRefused("There are no answers before which anything was predicted.")
        asked = np.flatnonzero(pulls)
        since = [(pulls[asked] - before[asked], wins[asked] - ones[asked]) for before, ones, _ in snapshots]
        # Log of the experts' mean score since the restart; restart j has the weight 1/((j+1)(j+2)), which sum to one.
        offsets = [
            math.log(float(np.mean(np.exp(scores - before - np.max(scores - before)))))
            + float(np.max(scores - before))
            - math.log((j + 1) * (j + 2))
            for j, (_, _, before) in enumerate(snapshots)
        ]
        return cls(asked, rows[asked], since, offsets, bets.copy())

    def minorant(self, shares: Any) -> tuple[Floats, Floats, float]:
        """Counts and constant of the convex function below log E that fixed shares of the restarts give."""
        p = distribution(shares, "the restarts", len(self.offsets))
        # log Σ e^{a_j} ≥ Σ p_j(a_j − log p_j) for any distribution p (Jensen): a sum of logistic losses and a constant.
        n = sum(share * pulls for share, (pulls, _) in zip(p, self.since, strict=True))
        k = sum(share * wins for share, (_, wins) in zip(p, self.since, strict=True))
        constant = sum(
            share * (offset - math.log(share)) for share, offset in zip(p, self.offsets, strict=True) if share
        )
        return np.asarray(n), np.asarray(k), float(constant)


@dataclass(frozen=True)
class MixedBets:
    """A mix of bets against one rival: fixed + Σ over its answers; `pulled` and `won` of them were predicted."""

    fixed: float
    at: NDArray[np.int64]
    weights: Floats
    tilts: Floats
    pulled: Floats
    won: Floats

    def value(self, v: Floats) -> float:
        """Log of the mix at v = xᵀθ of every vector asked."""
        tilted = self.weights @ (softplus(v[self.at] + self.tilts) - softplus(v[self.at]))
        return self.fixed - float(tilted) + float(self.pulled @ softplus(v) - self.won @ v)

    def slopes(self, v: Floats) -> Floats:
        """Its derivative by each v."""
        result = self.pulled * mean(v) - self.won
        np.add.at(result, self.at, -self.weights * (mean(v[self.at] + self.tilts) - mean(v[self.at])))
        return result

    def lost(self, low: Floats, high: Floats) -> Floats:
        """P: curvature is at least −P·s(v), by s(v+c)/s(v) ≤ exp(|c|·t), t the largest ∓tanh(v/2) on the box."""
        steepest = np.where(self.tilts > 0, np.tanh(-low[self.at] / 2), np.tanh(high[self.at] / 2))
        result = -self.pulled
        np.add.at(result, self.at, self.weights * np.expm1(np.abs(self.tilts) * steepest))
        return result


def boxes(
    x: Floats, n: Floats, k: Floats, theta: Floats, y: Floats, multiplier: float, room: float
) -> tuple[Floats, float, float, Floats]:
    """Bounds of |xᵀ(θ' − θ)| and yᵀ(θ − θ'), and an ellipsoid, over the half-space where loss(θ') ≤ loss(θ) + room.

    All three hold for every such θ'.
    """
    if room <= 0:
        raise CertificateRefused("The localiser is empty.")
    v = x @ theta
    weight = n * mean(v) * mean(-v)
    gradient = x.T @ (n * mean(v) - k) + multiplier * y
    inverse = np.linalg.inv((x.T * weight) @ x)
    squared = np.einsum("xi,ij,xj->x", x, inverse, x)
    largest = math.sqrt(float(np.max(squared[n > 0])))
    tilt = largest * math.sqrt(max(float(gradient @ inverse @ gradient), 0.0))
    if tilt >= 1:
        raise CertificateRefused("The centre of a localiser is too far from its least point.")
    # Self-concordance: the loss rises by at least (e^{−w} + w − 1 − tilt·w)/ν² at distance w/ν. Bisect for the w where
    # that equals `room`; the end on the safe side is used.
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
    """The most a function can fall on the half-space if its curvature along x is at least weight·e^{−|move|}."""
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
    """The negative log-likelihood of k ones among n answers to each x."""
    v = x @ theta
    return float(k @ softplus(-v) + (n - k) @ softplus(v))


def softplus(v: Floats) -> Floats:
    """log(1+eᵛ)."""
    return np.asarray(np.logaddexp(0.0, v))


def mean(v: Floats) -> Floats:
    """μ(v) = 1/(1+e⁻ᵛ)."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -v)))


def norm(vector: Floats) -> float:
    """‖vector‖."""
    return math.sqrt(float(vector @ vector))


def xlogx(q: Floats) -> Floats:
    """q·log q, zero at zero."""
    return np.where(q > 0, q * np.log(np.where(q > 0, q, 1.0)), 0.0)
