"""Families of vectors that are never listed in full: rows of a matrix, or all differences of items.

The vectors that can be measured and the directions to be known are each such a family. A solver asks two things of a
family: which members are longest under a linear map (a guess, usually right), and what the largest length is (a proved
value). For all pairs of items the second is the diameter of a point cloud, computed in the last part of this file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick.errors import InvalidInput, NotIdentifiable
from surepick.linalg import Span, blocks, norms, squared_lengths, threads_for

Singles = NDArray[np.float32]

EVERY_ITEM = 4096
"""Up to this many items the guess is every item's farthest partner; beyond, it walks from promising items."""

ROWS, COLUMNS = 1024, 4096
"""Shape of the block of distances held in memory: 16 MB in single precision."""

RECHECKED = 32
"""Rows recomputed together in double precision."""


class VectorFamily(Protocol):
    """What the solver needs of a set of vectors; a member is given by two indices (i, j), i = j for a row."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def __len__(self) -> int:
        """Number of members."""

    def all_members(self) -> Integers:
        """The indices (i, j) of all members, one row per member."""

    def spanning_rows(self) -> Floats:
        """Vectors that span the same space as all members."""

    def outside(self, span: Span) -> Integers | None:
        """A member that does not lie in the span, if there is one."""

    def longest(self, matrix: Floats, count: int, near: Integers) -> tuple[Integers, Floats]:
        """About `count` members y with large ‖yᵀ·matrix‖², as rows (i, j), and those squared lengths; largest first.

        `near` holds members that were long under a similar map.
        """

    def maximum(self, matrix: Floats, known: float) -> tuple[float, Integers]:
        """The largest ‖yᵀ·matrix‖² of all members, and members found that come close to it or above `known`.

        `known` is a squared length that some member is known to attain.
        """

    def vectors(self, members: Integers) -> Floats:
        """The vectors of these members."""

    def describe(self, member: Integers) -> str:
        """How a message to the user names a member."""


class Rows:
    """The rows of a matrix, optionally relative to a reference and scaled: √scale · factor · (row − reference).

    Nothing is copied: the rows are read in blocks, O(n d r) time for a map to r coordinates.
    """

    def __init__(
        self,
        matrix: ArrayLike,
        *,
        scale: float = 1.0,
        reference: ArrayLike | None = None,
        factors: ArrayLike | None = None,
        name: str = "directions",
    ) -> None:
        self.matrix = validate.matrix(name, matrix)
        self.scale = validate.positive("scale", scale)
        self.name = name
        count, dimension = self.matrix.shape
        self.reference = None if reference is None else validate.vector("reference", reference, length=dimension)
        self.factors = None if factors is None else validate.vector("factors", factors, length=count)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.matrix)

    def all_members(self) -> Integers:
        """The indices (i, i) of all rows."""
        return np.column_stack([np.arange(len(self), dtype=np.int64)] * 2)

    def spanning_rows(self) -> Floats:
        """The rows themselves; a copy only where a reference or factors apply."""
        if self.reference is None and self.factors is None:
            return self.matrix
        return self._block(slice(None))

    def outside(self, span: Span) -> Integers | None:
        """A row that does not lie in the span, if there is one."""
        found = _first_outside(self.matrix, self.reference, span)
        return None if found is None else np.array([found, found], dtype=np.int64)

    def longest(self, matrix: Floats, count: int, near: Integers) -> tuple[Integers, Floats]:
        """The `count` longest rows under the map, exactly."""
        lengths = self._lengths(matrix)
        top = np.argpartition(-lengths, count)[:count] if count < len(lengths) else np.arange(len(lengths))
        top = top[np.argsort(-lengths[top], kind="stable")].astype(np.int64)
        return np.column_stack([top, top]), lengths[top]

    def maximum(self, matrix: Floats, known: float) -> tuple[float, Integers]:
        """The largest squared length, exactly."""
        members, lengths = self.longest(matrix, 1, _NO_MEMBERS)
        return float(lengths[0]), members

    def vectors(self, members: Integers) -> Floats:
        """The rows at these indices."""
        return self._block(members[:, 0])

    def describe(self, member: Integers) -> str:
        """How a message to the user names a row."""
        return f"row {member[0]} of {self.name}"

    def _lengths(self, matrix: Floats) -> Floats:
        lengths = squared_lengths(self.matrix, matrix * np.sqrt(self.scale), reference=self.reference)
        return lengths if self.factors is None else lengths * self.factors**2

    def _block(self, which: slice | Integers) -> Floats:
        rows = self.matrix[which]
        if self.reference is not None:
            rows = rows - self.reference
        if self.factors is not None:
            rows = rows * self.factors[which][:, None]
        return rows if self.scale == 1.0 else rows * np.sqrt(self.scale)


class Pairs:
    """All n(n−1)/2 differences √scale · (z − z') of n items; only the items are held in memory."""

    def __init__(self, items: ArrayLike, *, scale: float = 1.0, name: str = "items") -> None:
        self.items = validate.matrix(name, items)
        self.scale = validate.positive("scale", scale)
        self.name = name
        if len(self.items) < 2:
            raise InvalidInput(
                f"{name} holds {len(self.items)} item, so there is no pair to compare; pass at least two."
            )
        if not np.any(self.items != self.items[0]):
            raise InvalidInput(
                f"All rows of {name} are the same, so there is nothing to tell apart; check the features."
            )
        # Differences do not depend on the origin; centring keeps digits where items lie far from zero.
        self.centre = self.items.mean(axis=0)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.items.shape[1])

    def __len__(self) -> int:
        return len(self.items) * (len(self.items) - 1) // 2

    def all_members(self) -> Integers:
        """The indices (i, j), i < j, of all pairs; O(n²) memory."""
        return np.column_stack(np.triu_indices(len(self.items), k=1)).astype(np.int64)

    def spanning_rows(self) -> Floats:
        """The items less their mean: they span what the differences span."""
        return np.asarray(self.items - self.centre)

    def outside(self, span: Span) -> Integers | None:
        """A pair whose difference does not lie in the span, if there is one."""
        # All differences lie in the span exactly if those to the first item do.
        found = _first_outside(self.items, self.items[0], span)
        return None if found is None else np.array([0, found], dtype=np.int64)

    def longest(self, matrix: Floats, count: int, near: Integers) -> tuple[Integers, Floats]:
        """Pairs far apart under the map: every item's farthest partner, or a walk from promising items."""
        cloud = self._cloud(matrix)
        with threads_for(2.0 * min(len(cloud), EVERY_ITEM) * len(cloud) * matrix.shape[1]):
            if len(cloud) <= EVERY_ITEM:
                pairs = farthest_pairs(cloud, np.arange(len(cloud)), sweeps=1, most=len(cloud))
                # One partner per item gives fewer than `count` pairs of few items: list all pairs then.
                if len(cloud) < 2 * count:
                    pairs = np.concatenate([pairs, longest_pairs(cloud, count)])
            else:
                # The farthest pairs consist of outer points, and of those that were far apart under the last map.
                outer = np.argsort(-cloud.squares, kind="stable")[:count]
                pairs = farthest_pairs(cloud, np.concatenate([near.ravel(), outer]).astype(np.int64))
        pairs = np.unique(np.sort(pairs, axis=1), axis=0)
        distances = cloud.distances(pairs[:, 0], pairs[:, 1])
        top = np.argsort(-distances, kind="stable")[:count]
        return pairs[top], distances[top]

    def maximum(self, matrix: Floats, known: float) -> tuple[float, Integers]:
        """The largest squared distance of all pairs under the map, exactly; O(n² r) time at worst."""
        with threads_for(1.0 * len(self.items) ** 2 * matrix.shape[1]):
            # `known` may have been computed by another order of summation: allow for its rounding.
            value, pairs = diameter(self._cloud(matrix), known * (1 - 1e-12))
        return max(value, known), np.unique(np.sort(pairs, axis=1), axis=0)

    def vectors(self, members: Integers) -> Floats:
        """The differences z_i − z_j at these indices."""
        difference = self.items[members[:, 0]] - self.items[members[:, 1]]
        return difference if self.scale == 1.0 else difference * np.sqrt(self.scale)

    def describe(self, member: Integers) -> str:
        """How a message to the user names a pair."""
        return f"the difference of rows {member[0]} and {member[1]} of {self.name}"

    def _cloud(self, matrix: Floats) -> "PointCloud":
        scaled = matrix * np.sqrt(self.scale)
        points = np.empty((len(self.items), matrix.shape[1]))
        for part in blocks(self.items):
            points[part] = (self.items[part] - self.centre) @ scaled
        return PointCloud.of(points)


class FamilyUnion:
    """Several families as one: the largest length is the largest over all of them. A member is (family, i, j)."""

    def __init__(self, families: Sequence[VectorFamily]) -> None:
        self.families = families

    def outside(self, span: Span) -> str | None:
        """The description of a member that does not lie in the span, if there is one."""
        for family in self.families:
            member = family.outside(span)
            if member is not None:
                return family.describe(member)
        return None

    def longest(self, matrix: Floats, count: int, near: Integers) -> tuple[Integers, Floats]:
        """About `count` long members of every family, the longest first."""
        members, lengths = [], []
        for number, family in enumerate(self.families):
            found, length = family.longest(matrix, count, near[near[:, 0] == number, 1:])
            members.append(_tag(number, found))
            lengths.append(length)
        joined = np.concatenate(lengths)
        order = np.argsort(-joined, kind="stable")
        return np.concatenate(members)[order], joined[order]

    def maximum(self, matrix: Floats, known: float) -> tuple[float, Integers]:
        """The largest squared length over all families, exactly, and members that come close to it."""
        members = []
        # The maximum so far is passed on: what it rules out in one family need not be computed in the next.
        for number, family in enumerate(self.families):
            value, found = family.maximum(matrix, known)
            known = max(known, value)
            members.append(_tag(number, found))
        return known, np.concatenate(members)

    def vectors(self, members: Integers) -> Floats:
        """The vectors of these members."""
        result = np.empty((len(members), self.families[0].dimension))
        for number, family in enumerate(self.families):
            here = members[:, 0] == number
            result[here] = family.vectors(members[here, 1:])
        return result


def refuse_unmeasurable(directions: FamilyUnion, span: Span) -> None:
    """Raise NotIdentifiable with the name of a direction outside the span of the measurements, if there is one."""
    member = directions.outside(span)
    if member is not None:
        raise NotIdentifiable(
            f"{member[0].upper()}{member[1:]} lies outside the span of the measurement vectors (rank {span.rank} of "
            f"{span.dimension}), so no number of answers tells about it; add measurements that see it, or leave it out."
        )


_NO_MEMBERS = np.zeros((0, 2), dtype=np.int64)


def _tag(number: int, members: Integers) -> Integers:
    return np.column_stack([np.full(len(members), number, dtype=np.int64), members])


def _first_outside(matrix: Floats, reference: Floats | None, span: Span) -> int | None:
    """The first row whose difference to the reference leaves the span, or None; O(n d rank) time.

    It leaves the span by more than 1e-7 of its length and by more than the rounding of its entries.
    """
    if span.is_full:
        return None
    # Rounding of the entries, which differences of nearly equal rows consist of.
    noise = 1e-13 * float(np.max(np.abs(matrix)))
    for part in blocks(matrix):
        rows = matrix[part] if reference is None else matrix[part] - reference
        residual = rows - span.embed(span.coordinates(rows))
        bad = np.flatnonzero(norms(residual) > 1e-7 * norms(rows) + noise)
        if bad.size:
            return int(part.start + bad[0])
    return None


@dataclass(frozen=True)
class PointCloud:
    """Points centred at their mean and scaled to fit the unit ball, prepared for fast distances.

    Products run in single precision, which is twice as fast. That is accurate enough for guesses; where a maximum is
    promised, every row that could hold it within the error bound of single precision is computed again in double
    precision.

    ‖p − q‖² = ‖p‖² + (‖q‖² − 2pᵀq); the bracket is one product of a left row (−2p, 1) with a right row (q, ‖q‖²).
    """

    points: Floats
    squares: Floats
    left: Singles
    right: Singles
    unit: float
    """Squared radius of the cloud before scaling; an original squared distance is `unit` times the one here."""

    @classmethod
    def of(cls, points: Floats) -> "PointCloud":
        """Build the cloud; the array of points is overwritten. O(n r) time and memory."""
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


def farthest_partners(cloud: PointCloud, rows: Integers) -> Integers:
    """For each of the given points its farthest partner, up to the error of single precision.

    O(rows · n · r) time, one block of memory.
    """
    best = np.full(len(rows), -np.inf, dtype=np.float32)
    partner = np.zeros(len(rows), dtype=np.int64)
    for top in range(0, len(rows), ROWS):
        left = cloud.left[rows[top : top + ROWS]]
        inside = slice(top, top + len(left))
        for start in range(0, len(cloud), COLUMNS):
            # ‖p‖² is the same for all partners of p, so the bracket of the class docstring decides.
            block = left @ cloud.right[start : start + COLUMNS].T
            winner = block.argmax(axis=1)
            reached = block[np.arange(len(left)), winner]
            better = reached > best[inside]
            best[inside] = np.where(better, reached, best[inside])
            partner[inside] = np.where(better, winner + start, partner[inside])
    return partner


def farthest_pairs(cloud: PointCloud, starts: Integers, *, sweeps: int = 3, most: int = 1024) -> Integers:
    """Pairs found by going from points to their farthest partners, and on from those; rows (i, j).

    The longest is a lower bound of the diameter. Each sweep costs O(most · n · r); one sweep from all points suffices.
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


def longest_pairs(cloud: PointCloud, count: int) -> Integers:
    """About the `count` longest of all pairs, rows (i, j); for few points, O(n²) memory in single precision."""
    block = cloud.left @ cloud.right.T
    block += cloud.squares[:, None].astype(np.float32)
    first, second = np.triu_indices(len(cloud), k=1)
    distances = block[first, second]
    if count < len(distances):
        top = np.argpartition(-distances, count)[:count]
        first, second = first[top], second[top]
    return np.column_stack([first, second]).astype(np.int64)


def diameter(cloud: PointCloud, known: float = 0.0) -> tuple[float, Integers]:
    """The largest squared distance of all pairs, exact to double precision, and the pairs found on the way to it.

    `known` is a squared distance that some pair attains. Points are sorted by their radius: where the radii of two add
    up to less than the largest distance known, the triangle inequality rules the pair and all later ones out. O(n² r)
    time at worst, O(n r) memory and one block. The pairs, rows (i, j), came within rounding of the largest distance
    known when they were computed, at most one for each point; the largest is among them unless it is `known`.
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
        # ‖p − q‖ ≤ ‖p‖ + ‖q‖: partners of smaller radius than `reach` cannot beat the best. The factor covers rounding.
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
        # Most suspects fall away once the first few have raised the best; data full of ties still run as products.
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
