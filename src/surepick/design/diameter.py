"""The two points of a cloud that lie farthest apart, and each point's farthest partner.

Products run in single precision, twice as fast. For guesses that is accurate enough; where a maximum is promised,
every row that could hold it within the error bound of single precision is computed again in double precision.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surepick._arrays import Floats, Integers

Singles = NDArray[np.float32]

ROWS, COLUMNS = 1024, 4096
"""A block of distances of this shape (16 MB in single precision) is all that is ever held."""

RECHECKED = 32
"""Rows recomputed at once in double precision."""


@dataclass(frozen=True)
class Cloud:
    """Points centred at their mean and scaled to fit the unit ball, with what their distances need.

    ‖p − q‖² = ‖p‖² + (‖q‖² − 2pᵀq); the bracket is one product of a left row (−2p, 1) with a right row (q, ‖q‖²).
    """

    points: Floats
    squares: Floats
    left: Singles
    right: Singles
    unit: float
    """Squared radius of the cloud before it was scaled; a squared distance is `unit` times the one here."""

    @classmethod
    def of(cls, points: Floats) -> "Cloud":
        """Take over freshly made points (the array is overwritten); O(n r) time and memory."""
        points -= points.mean(axis=0)
        squares = np.einsum("ij,ij->i", points, points)
        unit = float(squares.max())
        if unit > 0:
            points /= np.sqrt(unit)
            squares /= unit
        left = np.empty((len(points), points.shape[1] + 1), dtype=np.float32)
        left[:, :-1] = -2.0 * points
        left[:, -1] = 1.0
        right = np.empty_like(left)
        right[:, :-1] = points
        right[:, -1] = squares
        return cls(points, squares, left, right, unit)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def margin(self) -> float:
        """Bound on the error of a squared distance in single precision, all points being in the unit ball.

        An inner product of length r+1 of terms whose absolute values sum to at most 3 errs by (r+1)·2⁻²⁴·3, the
        rounded inputs by 4·2⁻²⁴·3 more; one further unit covers second-order terms and the final sum.
        """
        return 3.0 * 2.0**-24 * float(self.points.shape[1] + 6)

    def distances(self, first: Integers, second: Integers) -> Floats:
        """Squared distances between given points, in the original unit and in double precision."""
        difference = self.points[first] - self.points[second]
        return np.asarray(self.unit * np.einsum("ij,ij->i", difference, difference))


def farthest_partners(cloud: Cloud, rows: Integers) -> Integers:
    """For each of the given points its farthest partner, up to the error of single precision.

    O(rows · n · r) time, one block of memory.
    """
    best = np.full(len(rows), -np.inf, dtype=np.float32)
    partner = np.zeros(len(rows), dtype=np.int64)
    for top in range(0, len(rows), ROWS):
        left = cloud.left[rows[top : top + ROWS]]
        inside = slice(top, top + len(left))
        for start in range(0, len(cloud), COLUMNS):
            block = left @ cloud.right[start : start + COLUMNS].T
            winner = block.argmax(axis=1)
            reached = block[np.arange(len(left)), winner]
            better = reached > best[inside]
            best[inside] = np.where(better, reached, best[inside])
            partner[inside] = np.where(better, winner + start, partner[inside])
    return partner


def farthest_pairs(cloud: Cloud, starts: Integers, *, sweeps: int = 3, most: int = 1024) -> Integers:
    """Pairs found by walking from points to their farthest partners and on from those; rows (i, j).

    A guess from below at the diameter: each sweep costs O(most · n · r). Starting from all points, one sweep suffices.
    """
    found: list[Integers] = []
    searched = np.zeros(len(cloud), dtype=np.bool_)
    rows = np.unique(starts)
    for _ in range(sweeps):
        rows = rows[~searched[rows]]
        if len(rows) == 0:
            break
        if len(rows) > most:
            rows = rows[np.argsort(-cloud.squares[rows], kind="stable")[:most]]
        searched[rows] = True
        partner = farthest_partners(cloud, rows)
        found.append(np.column_stack([rows, partner]))
        rows = np.unique(partner)
    return np.concatenate(found)


def longest_pairs(cloud: Cloud, count: int) -> Integers:
    """About the `count` longest of all pairs, rows (i, j); for few points, O(n²) memory in single precision."""
    block = cloud.left @ cloud.right.T
    block += cloud.squares[:, None].astype(np.float32)
    first, second = np.triu_indices(len(cloud), k=1)
    distances = block[first, second]
    if count < len(distances):
        top = np.argpartition(-distances, count)[:count]
        first, second = first[top], second[top]
    return np.column_stack([first, second]).astype(np.int64)


def diameter(cloud: Cloud, known: float = 0.0) -> tuple[float, Integers]:
    """The largest squared distance of all pairs, exact to double precision, and the pairs found on the way to it.

    `known` is a squared distance already seen. Points are sorted by their radius: where the radii of two add up to
    less than the distance known, the triangle inequality rules the pair and all later ones out. O(n² r) time at
    worst, O(n r) memory and one block. The pairs, rows (i, j), are those that come within rounding of the largest
    distance known when they were met, at most one for each point; the largest is among them unless `known` is.
    """
    if cloud.unit == 0.0:
        return 0.0, np.zeros((0, 2), dtype=np.int64)
    order = np.argsort(-cloud.squares, kind="stable")
    radii = np.sqrt(cloud.squares[order])
    left, right = cloud.left[order], cloud.right[order]
    points, squares = cloud.points[order], cloud.squares[order]
    best = known / cloud.unit
    found: list[Integers] = []
    for top in range(0, len(order), ROWS):
        reach = np.sqrt(best) - radii[top]
        end = len(order) if reach <= 0 else int(np.searchsorted(-radii, -reach * (1 - 1e-9), side="right"))
        if end <= top:
            break
        bottom = min(top + ROWS, len(order))
        largest = np.full(bottom - top, -np.inf, dtype=np.float32)
        for start in range(top, end, COLUMNS):
            block = left[top:bottom] @ right[start : min(start + COLUMNS, end)].T
            np.maximum(largest, block.max(axis=1), out=largest)
        upper = largest + squares[top:bottom] + cloud.margin
        # Recomputed a few rows at a time: mostly one handful is enough, and data full of ties still run as products.
        suspects = top + np.argsort(-upper, kind="stable")
        for first in range(0, len(suspects), RECHECKED):
            rows = suspects[first : first + RECHECKED]
            rows = rows[upper[rows - top] >= best]
            if len(rows) == 0:
                break
            exact = squares[top:end, None] - 2.0 * (points[top:end] @ points[rows].T)
            partner = top + exact.argmax(axis=0)
            distances = np.sum((points[rows] - points[partner]) ** 2, axis=1)
            best = max(best, float(distances.max()))
            found.append(np.column_stack([order[rows], order[partner]]))
    return best * cloud.unit, np.concatenate(found) if found else np.zeros((0, 2), dtype=np.int64)
