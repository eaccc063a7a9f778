"""Families of vectors that are never listed in full: rows of a matrix, or all differences of items.

What is measured and what is to be known are both such a family, and a solver asks two things of it: which members
are longest under a linear map (a guess that is right most of the time), and what the largest length is (a promise).
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick._threads import threads_for
from surepick.design.diameter import Cloud, diameter, farthest_pairs, longest_pairs
from surepick.errors import InvalidInput, NotIdentifiable
from surepick.linalg import Span, blocks, norms, squared_lengths

EVERY_ITEM = 4096
"""Up to this many items the guess looks at every item's farthest partner; beyond, it walks from promising ones."""


class Family(Protocol):
    """What the solver needs to know of a set of vectors; a member is named by two indices (i, j)."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def __len__(self) -> int:
        """Number of members."""

    def everyone(self) -> Integers:
        """All members, by name."""

    def spanning_rows(self) -> Floats:
        """Vectors that span the same space as all members."""

    def outside(self, span: Span) -> Integers | None:
        """A member that does not lie in the span, if there is one."""

    def longest(self, matrix: Floats, count: int, near: Integers) -> tuple[Integers, Floats]:
        """About `count` members y, rows (i, j), with large ‖yᵀ·matrix‖², and that; the largest first.

        `near` names members known to have been long under a similar map.
        """

    def maximum(self, matrix: Floats, known: float) -> tuple[float, Integers]:
        """The largest ‖yᵀ·matrix‖² of all members, and members found that come close to it or above `known`.

        `known` is a value that some member has been seen to attain.
        """

    def vectors(self, members: Integers) -> Floats:
        """The members named, one a row."""

    def describe(self, member: Integers) -> str:
        """How a message to the user names a member."""


class Rows:
    """The rows of a matrix, optionally seen from a reference and stretched: √scale · factor · (row − reference).

    Nothing is copied: the rows are passed over in blocks, O(n d r) time for a map to r coordinates.
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

    def everyone(self) -> Integers:
        """All rows, by name."""
        return np.column_stack([np.arange(len(self), dtype=np.int64)] * 2)

    def spanning_rows(self) -> Floats:
        """The rows themselves; a copy only where they are seen from a reference or stretched."""
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
        members, lengths = self.longest(matrix, 1, _NOBODY)
        return float(lengths[0]), members

    def vectors(self, members: Integers) -> Floats:
        """The rows named, one a row."""
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
    """All differences √scale · (z − z') of items, n(n−1)/2 of them, of which only the items are ever held."""

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
        self.centre = self.items.mean(axis=0)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.items.shape[1])

    def __len__(self) -> int:
        return len(self.items) * (len(self.items) - 1) // 2

    def everyone(self) -> Integers:
        """All pairs, by name; O(n²) memory."""
        return np.column_stack(np.triu_indices(len(self.items), k=1)).astype(np.int64)

    def spanning_rows(self) -> Floats:
        """The items seen from their mean: they span what the differences span."""
        return np.asarray(self.items - self.centre)

    def outside(self, span: Span) -> Integers | None:
        """A pair whose difference does not lie in the span, if there is one."""
        found = _first_outside(self.items, self.items[0], span)
        return None if found is None else np.array([0, found], dtype=np.int64)

    def longest(self, matrix: Floats, count: int, near: Integers) -> tuple[Integers, Floats]:
        """Pairs far apart under the map: every item's farthest partner, or a walk from promising items."""
        cloud = self._cloud(matrix)
        with threads_for(2.0 * min(len(cloud), EVERY_ITEM) * len(cloud) * matrix.shape[1]):
            if len(cloud) <= EVERY_ITEM:
                pairs = farthest_pairs(cloud, np.arange(len(cloud)), sweeps=1, most=len(cloud))
                if len(cloud) < 2 * count:
                    pairs = np.concatenate([pairs, longest_pairs(cloud, count)])
            else:
                outer = np.argsort(-cloud.squares, kind="stable")[:count]
                pairs = farthest_pairs(cloud, np.concatenate([near.ravel(), outer]).astype(np.int64))
        pairs = np.unique(np.sort(pairs, axis=1), axis=0)
        distances = cloud.distances(pairs[:, 0], pairs[:, 1])
        top = np.argsort(-distances, kind="stable")[:count]
        return pairs[top], distances[top]

    def maximum(self, matrix: Floats, known: float) -> tuple[float, Integers]:
        """The largest squared distance of all pairs under the map, exactly; O(n² r) time at worst."""
        with threads_for(1.0 * len(self.items) ** 2 * matrix.shape[1]):
            value, pairs = diameter(self._cloud(matrix), known * (1 - 1e-12))
        return max(value, known), np.unique(np.sort(pairs, axis=1), axis=0)

    def vectors(self, members: Integers) -> Floats:
        """The differences named, one a row."""
        difference = self.items[members[:, 0]] - self.items[members[:, 1]]
        return difference if self.scale == 1.0 else difference * np.sqrt(self.scale)

    def describe(self, member: Integers) -> str:
        """How a message to the user names a pair."""
        return f"the difference of rows {member[0]} and {member[1]} of {self.name}"

    def _cloud(self, matrix: Floats) -> Cloud:
        scaled = matrix * np.sqrt(self.scale)
        points = np.empty((len(self.items), matrix.shape[1]))
        for part in blocks(self.items):
            points[part] = (self.items[part] - self.centre) @ scaled
        return Cloud.of(points)


class Union:
    """Several families as one: the largest length is the largest over all of them. A member is (family, i, j)."""

    def __init__(self, families: Sequence[Family]) -> None:
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
        for number, family in enumerate(self.families):
            value, found = family.maximum(matrix, known)
            known = max(known, value)
            members.append(_tag(number, found))
        return known, np.concatenate(members)

    def vectors(self, members: Integers) -> Floats:
        """The members named, one a row."""
        result = np.empty((len(members), self.families[0].dimension))
        for number, family in enumerate(self.families):
            here = members[:, 0] == number
            result[here] = family.vectors(members[here, 1:])
        return result


def refuse_unmeasurable(directions: Union, span: Span) -> None:
    """Raise a sentence naming a direction that no measurement sees, if there is one."""
    member = directions.outside(span)
    if member is not None:
        raise NotIdentifiable(
            f"{member[0].upper()}{member[1:]} lies outside the span of the measurement vectors (rank {span.rank} of "
            f"{span.dimension}), so no number of answers tells about it; add measurements that see it, or leave it out."
        )


_NOBODY = np.zeros((0, 2), dtype=np.int64)


def _tag(number: int, members: Integers) -> Integers:
    return np.column_stack([np.full(len(members), number, dtype=np.int64), members])


def _first_outside(matrix: Floats, reference: Floats | None, span: Span) -> int | None:
    """The first row that, seen from the reference, leaves the span, if there is one; O(n d rank) time.

    By more than 1e-7 of its length and more than the rounding of its entries.
    """
    if span.is_full:
        return None
    noise = 1e-13 * float(np.max(np.abs(matrix)))
    for part in blocks(matrix):
        rows = matrix[part] if reference is None else matrix[part] - reference
        residual = rows - span.embed(span.coordinates(rows))
        bad = np.flatnonzero(norms(residual) > 1e-7 * norms(rows) + noise)
        if bad.size:
            return int(part.start + bad[0])
    return None
