"""From weights to whole numbers of measurements, and to fewer measurement vectors."""

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick.errors import InvalidInput


@dataclass(frozen=True)
class Allocation:
    """Whole numbers of measurements for a design of p points."""

    counts: Integers
    """How often each point of the support is measured; they sum to n."""
    ratio: float
    """min n_j/(n·w_j): the counts give at least `ratio` times the information of n measurements by weight."""

    @property
    def total(self) -> int:
        """Number of measurements."""
        return int(self.counts.sum())

    @property
    def promised(self) -> float:
        """1 − p/n, which the ratio never falls below."""
        return 1.0 - len(self.counts) / self.total


def apportion(weights: ArrayLike, n: int) -> Allocation:
    """Round n·weights to whole numbers, each at least one, with the largest possible min n_j/w_j.

    Efficient apportionment (Pukelsheim and Rieder, Biometrika 79, 1992). The counts are reached when no measurement
    can be moved to advantage: (n_i − 1)/w_i ≤ n_j/w_j for all i, j. Then min n_j/w_j is at least the w-average of
    (n_i − 1)/w_i, which is n − p, so the ratio is at least 1 − p/n. Per point this holds for every information
    matrix at once: Σ n_j x_j x_jᵀ ⪰ ratio · n · H(w). O(p) moves of O(p) each.

    >>> apportion([0.5, 0.3, 0.2], 7).counts.tolist()
    [3, 2, 2]
    """
    shares = validate.vector("weights", weights, length=int(np.size(weights)))
    if len(shares) == 0:
        raise InvalidInput("weights is empty; a design has at least one point.")
    if shares.min() <= 0:
        raise InvalidInput(
            f"weights must all be greater than 0, got {shares.min():g}; leave out points without weight."
        )
    total, points = validate.whole("n", n), len(shares)
    if total < points:
        raise InvalidInput(
            f"n = {total} measurements cannot cover the {points} points of the design, so some would never be "
            f"measured; take n of at least {points} (n = {10 * points} keeps nine tenths of the information), or "
            "shrink the support first with reduce_support."
        )
    shares = shares / shares.sum()
    counts = apportion_rows(shares[None, :], np.array([float(total)]))[0]
    return Allocation(counts.astype(np.int64), float(np.min(counts / shares) / total))


def apportion_rows(shares: Floats, totals: Floats) -> Floats:
    """Round every row of shares (each summing to one) to its total, at least the number of columns; see `apportion`."""
    # Pukelsheim and Rieder's start, ⌈(n − p/2)·w⌉; what its sum misses is moved one measurement at a time, to the
    # smallest n_j/w_j or from the largest (n_i − 1)/w_i.
    counts: Floats = np.maximum(np.ceil((totals - shares.shape[1] / 2)[:, None] * shares), 1.0)
    for sign in (1.0, -1.0):
        while True:
            rows = np.flatnonzero(sign * (counts.sum(axis=1) - totals) > 0)
            if len(rows) == 0:
                break
            after = (counts[rows] - 1) / shares[rows] if sign > 0 else -counts[rows] / shares[rows]
            counts[rows, after.argmax(axis=1)] -= sign
    # The counts are optimal now except where rounding in the ceiling misplaced one: exchange until no move helps.
    while True:
        losing, having = (counts - 1) / shares, counts / shares
        giver, taker = losing.argmax(axis=1), having.argmin(axis=1)
        rows = np.flatnonzero(losing.max(axis=1) > having.min(axis=1) * (1 + 1e-12))
        if len(rows) == 0:
            return counts
        counts[rows, giver[rows]] -= 1
        counts[rows, taker[rows]] += 1


def reduce_support(vectors: ArrayLike, weights: ArrayLike) -> tuple[Integers, Floats]:
    """Keep at most r(r+1)/2 + 1 of the vectors, r their rank, with new weights and the same H = Σ w xxᵀ.

    Carathéodory: the matrices xxᵀ live in r(r+1)/2 dimensions, so with more points some combination of them that
    sums to zero can be taken from the weights until one vanishes. All such combinations are found at once and each
    is used up; O(p³) time and O(p²) memory for p points, whatever the dimension. Returns the positions kept and their
    weights, which sum to one like the given ones.
    """
    rows = validate.matrix("vectors", vectors)
    shares = validate.vector("weights", weights, length=len(rows))
    if np.any(shares < 0) or not shares.any():
        raise InvalidInput(
            f"weights must not be negative and not all zero, got a smallest of {shares.min():g} and a sum of "
            f"{shares.sum():g}; pass those of a design."
        )
    shares = shares / shares.sum()
    kept = np.flatnonzero(shares > 0)
    moments = _moments(rows[kept])
    rest = shares[kept]
    null = sl.null_space(moments.T, rcond=1e-11)
    alive = np.ones(len(kept), dtype=np.bool_)
    while null.shape[1]:
        direction = null[:, -1]
        if direction.max() < -direction.min():
            direction = -direction
        # Go along the combination until the first weight vanishes; H and the sum of the weights do not change.
        falling = direction > 1e-12 * np.abs(direction).max()
        ratios = np.where(falling, rest / np.where(falling, direction, 1.0), np.inf)
        gone = int(np.argmin(ratios))
        rest = np.maximum(rest - ratios[gone] * direction, 0.0)
        rest[gone] = 0.0
        alive[gone] = False
        # The other combinations must not use the vanished point: eliminate it with the pivot of largest entry.
        pivot = int(np.argmax(np.abs(null[gone])))
        null = null - np.outer(null[:, pivot] / null[gone, pivot], null[gone])
        null = np.delete(null, pivot, axis=1)
        null[gone] = 0.0
        if null.shape[1] and null.shape[1] % 16 == 0:
            null = np.linalg.qr(null)[0]  # elimination lets the columns become nearly dependent
    final = kept[alive]
    # The elimination accumulates rounding errors; the matrix to reproduce is known, so solve for it directly.
    polished = np.linalg.lstsq(moments[alive].T, moments.T @ shares[kept], rcond=None)[0]
    chosen = polished if np.all(polished > 0) else rest[alive]
    positive = chosen > 0
    return final[positive].astype(np.int64), chosen[positive] / chosen[positive].sum()


def _moments(rows: Floats) -> Floats:
    """Upper triangles of xxᵀ in coordinates of the span, scaled to comparable size, with a 1 for the sum of weights."""
    _, singular, right = np.linalg.svd(rows, full_matrices=False)
    rank = int(np.sum(singular > 1e-9 * singular[0]))
    white = rows @ (right[:rank].T / singular[:rank]) * np.sqrt(len(rows))
    first, second = np.triu_indices(rank)
    return np.column_stack([white[:, first] * white[:, second], np.ones(len(rows))])
