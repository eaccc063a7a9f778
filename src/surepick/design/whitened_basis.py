"""Coordinates in which the uniform design is the identity, and the small set of vectors a solver works on."""

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from surepick._arrays import Booleans, Floats, Integers
from surepick.design.vector_families import Family, Union
from surepick.errors import InvalidInput
from surepick.linalg import Span, column_scale, factor, gram_matrix, span_of, triangular_factor

NEWCOMER = 0.05
"""Mass of a vector that joins the active ones, as a fraction of their mean."""


@dataclass(frozen=True)
class Frame:
    """The span of the measurement vectors and a map to coordinates in which their mean square is the identity.

    The design problem does not depend on the coordinates; these make it indifferent to units and collinearity.
    """

    span: Span
    transform: Floats
    """d × rank: vectors (rows) times this are coordinates."""

    @property
    def rank(self) -> int:
        """Dimension of the span."""
        return self.span.rank


def frame_of(measurements: Family) -> Frame:
    """Find the frame; O(n d²) time, O(d²) memory beyond a block of rows unless the rows are nearly dependent."""
    rows = measurements.spanning_rows()
    span = span_of(rows)
    if span.rank == 0:
        raise InvalidInput("All measurement vectors are zero, so nothing can be measured; check the feature columns.")
    if span.is_full:
        direct = factor(gram_matrix(rows) / len(rows))
        if direct is not None:
            inverse = sl.solve_triangular(direct.lower, np.eye(span.rank), lower=True, check_finite=False)
            return Frame(span, inverse.T / direct.diagonal[:, None])
    inside = span.coordinates(rows)
    scale = column_scale(inside)
    upper = triangular_factor(inside, units=scale) / np.sqrt(len(rows))
    inverse = sl.solve_triangular(upper, np.eye(span.rank), check_finite=False) / scale[:, None]
    return Frame(span, np.asarray(inverse if span.basis is None else span.basis @ inverse))


class Active:
    """The few members of a family that the restricted problem holds, with the mass each carries; no vector twice."""

    def __init__(self, family: Family | Union, transform: Floats) -> None:
        self.family = family
        self.transform = transform
        self.members: Integers = np.zeros((0, 3 if isinstance(family, Union) else 2), dtype=np.int64)
        self.vectors: Floats = np.zeros((0, transform.shape[1]))
        self.mass: Floats = np.zeros(0)
        self._keys: list[bytes] = []
        self._known: set[bytes] = set()

    def __len__(self) -> int:
        return len(self.members)

    def add(self, members: Integers, *, most: int, mass: float | Floats) -> int:
        """Take in the first `most` members whose vectors (or their negatives) are not there yet; return how many.

        The rest are newcomers in the order given; `mass` is what each of them starts with.
        """
        rows = self.family.vectors(members)
        chosen: list[int] = []
        for position, key in enumerate(_keys(rows)):
            if len(chosen) == most:
                break
            if key not in self._known:
                self._known.add(key)
                self._keys.append(key)
                chosen.append(position)
        new = np.array(chosen, dtype=np.int64)
        start = np.broadcast_to(mass, len(members))[new]
        self.members = np.concatenate([self.members, members[new]])
        self.vectors = np.concatenate([self.vectors, rows[new] @ self.transform])
        self.mass = np.concatenate([self.mass, start])
        return len(new)

    def keep(self, which: Booleans) -> None:
        """Drop all others."""
        self.members, self.vectors, self.mass = self.members[which], self.vectors[which], self.mass[which]
        self._keys = [key for key, stays in zip(self._keys, which, strict=True) if stays]
        self._known = set(self._keys)

    @property
    def newcomer(self) -> float:
        """Mass for a vector that joins."""
        return NEWCOMER * float(self.mass.mean()) if len(self.mass) else 1.0


def add_spanning(active: Active, rank: int) -> None:
    """Add vectors of the family until the active ones span all coordinates; they come first and stay.

    Each turn looks at the longest members orthogonal to what is already spanned, and takes those that pivoting finds
    independent; every turn gains at least one dimension.
    """
    family, transform = active.family, active.transform
    nobody = active.members[:0]
    basis = np.zeros((rank, 0))
    while basis.shape[1] < rank:
        free = np.eye(rank) if basis.shape[1] == 0 else sl.null_space(basis.T)
        members, _ = family.longest(transform @ free, 4 * rank, nobody)
        coordinates = family.vectors(members) @ transform
        projected = coordinates @ free
        triangular, order = sl.qr(projected.T, mode="r", pivoting=True, check_finite=False)
        pivots = np.abs(np.diag(triangular))
        good = order[: len(pivots)][pivots > 0.1 * pivots[0]]
        active.add(members[good], most=rank, mass=1.0)
        basis = sl.orth(np.column_stack([basis, coordinates[good].T]))


def _keys(rows: Floats) -> list[bytes]:
    """The same bytes for a vector and its negative, different ones for different vectors."""
    first = np.argmax(rows != 0, axis=1)
    signs = np.where(rows[np.arange(len(rows)), first] < 0, -1.0, 1.0)
    return [row.tobytes() for row in rows * signs[:, None] + 0.0]


def whitener(vectors: Floats, weights: Floats) -> Floats:
    """C with C Cᵀ = H(weights)⁻¹; raises LinAlgError where H is singular to working precision."""
    lower = sl.cholesky((vectors * weights[:, None]).T @ vectors, lower=True, check_finite=False)
    inverse = sl.solve_triangular(lower, np.eye(len(lower)), lower=True, check_finite=False)
    return np.ascontiguousarray(inverse.T)
