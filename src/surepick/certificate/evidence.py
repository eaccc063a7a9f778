"""What a certificate says was known after some stages: plug-in counts, and the bets, answer group by answer group."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surepick._arrays import Floats
from surepick.certificate.inequalities import mean, softplus
from surepick.errors import CertificateRefused


@dataclass(frozen=True)
class Moment:
    """The plug-in process after some stages: counts since each restart on the vectors asked, and the bets till then."""

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
    ) -> "Moment":
        """The moment at which these were the totals; a snapshot is what had been counted when a restart began."""
        if not snapshots:
            raise CertificateRefused("There are no answers before which anything was predicted.")
        asked = np.flatnonzero(pulls)
        since = [(pulls[asked] - before[asked], wins[asked] - ones[asked]) for before, ones, _ in snapshots]
        offsets = [
            math.log(float(np.mean(np.exp(scores - before - np.max(scores - before)))))
            + float(np.max(scores - before))
            - math.log((j + 1) * (j + 2))
            for j, (_, _, before) in enumerate(snapshots)
        ]
        return cls(asked, rows[asked], since, offsets, bets.copy())

    def minorant(self, shares: Any) -> tuple[Floats, Floats, float]:
        """Counts and constant of the convex function below log E that fixed shares of the restarts give."""
        p = np.asarray(shares, dtype=np.float64)
        if p.shape != (len(self.offsets),) or np.any(p < 0) or abs(p.sum() - 1) > 1e-9:
            raise CertificateRefused("The shares of the restarts are not a distribution.")
        n = sum(share * each[0] for share, each in zip(p, self.since, strict=True))
        k = sum(share * each[1] for share, each in zip(p, self.since, strict=True))
        constant = sum(
            share * (offset - math.log(share)) for share, offset in zip(p, self.offsets, strict=True) if share
        )
        return np.asarray(n), np.asarray(k), float(constant)


@dataclass(frozen=True)
class Bets:
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
