"""Positive definite solves, weighted norms, the space a set of vectors spans, and one thread for small products."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from threading import Lock

import numpy as np
import scipy.linalg as sl
from scipy.linalg import lapack
from threadpoolctl import LibController, ThreadpoolController

from surepick._arrays import Booleans, Floats
from surepick.errors import InvalidInput

RANK_TOLERANCE = 1e-9
"""A direction counts as absent when its singular value, after scaling every column to length one,
is below this fraction of the largest."""

ROWS_PER_BLOCK = 4096
"""Long matrices are processed in blocks of this many rows, so that temporaries stay in the cache."""


def blocks(rows: Floats) -> Iterator[slice]:
    """The rows in parts of ROWS_PER_BLOCK."""
    for start in range(0, len(rows), ROWS_PER_BLOCK):
        yield slice(start, start + ROWS_PER_BLOCK)


@dataclass(frozen=True)
class Span:
    """The space spanned by the rows of a matrix, as orthonormal columns of `basis` (d × rank).

    `basis` is None when the rows span everything, so that the common case costs no product.
    """

    dimension: int
    rank: int
    basis: Floats | None
    units: Floats | None = None
    """Size of every column of the rows, zero where there is nothing; None where it does not matter."""

    @property
    def is_full(self) -> bool:
        """Whether the rows span the whole space."""
        return self.basis is None

    def coordinates(self, rows: Floats) -> Floats:
        """Express vectors (rows, or one vector) in the basis."""
        return rows if self.basis is None else rows @ self.basis

    def embed(self, coordinates: Floats) -> Floats:
        """Return from coordinates in the basis to vectors of the whole space."""
        return coordinates if self.basis is None else coordinates @ self.basis.T

    def contains(self, rows: Floats) -> Booleans:
        """Tell for every row whether it lies in the span, to a relative error of 1e-7.

        The tolerance is wider than that of the rank: a query is typed in by people, and a query outside
        by less than 1e-7 of its length is taken as its projection. Lengths are measured in the units of the
        columns, and a column that is zero throughout has none: there, only zero is inside.
        """
        if self.basis is None:
            return np.ones(len(rows), dtype=np.bool_)
        residual = rows - self.embed(self.coordinates(rows))
        if self.units is None:
            return np.asarray(norms(residual) <= 1e-7 * norms(rows))
        known = self.units > 0
        near = norms(residual[:, known] / self.units[known]) <= 1e-7 * norms(rows[:, known] / self.units[known])
        return np.asarray(near & ~rows[:, ~known].any(axis=1))


def span_of(rows: Floats) -> Span:
    """Find the space spanned by the rows; O(n d²) time, O(d²) memory beyond a block of rows.

    A well-conditioned Gram matrix of the scaled columns proves full rank in one pass; only otherwise is
    the triangular factor of the rows decomposed, whose singular values resolve RANK_TOLERANCE.
    """
    dimension = rows.shape[1]
    if len(rows) >= dimension and _clearly_full_rank(gram_matrix(rows)):
        return Span(dimension, dimension, None)
    scale = column_scale(rows)
    triangular = triangular_factor(rows, units=np.where(scale > 0, scale, 1.0))
    lengths = norms(triangular, axis=0)
    triangular = triangular / np.where(lengths > 0, lengths, 1.0)
    _, singular, right = sl.svd(triangular, full_matrices=False, check_finite=False)
    rank = int(np.sum(singular > RANK_TOLERANCE * singular[0])) if singular[0] > 0 else 0
    if rank == dimension:
        return Span(dimension, dimension, None)
    # The rows are (combinations of right) × column lengths; scaling is undone before orthonormalising.
    weights = scale * lengths
    weights = weights / max(float(weights.max(initial=0.0)), np.finfo(float).tiny)
    # Columns may differ by many orders of magnitude. With the largest first and pivoting, Householder's method
    # keeps the small ones accurate (Cox and Higham 1998).
    order = np.argsort(-weights, kind="stable")
    basis = np.zeros((dimension, rank))
    if rank:
        basis[order] = sl.qr((right[:rank] * weights).T[order], mode="economic", pivoting=True)[0]
    span = Span(dimension, rank, basis, scale)
    # A column repeated in units that differ by the precision of numbers leaves rows outside.
    if not all(span.contains(rows[part]).all() for part in blocks(rows)):
        raise InvalidInput(
            "Columns are combinations of one another in units too different to tell, largest entries from "
            f"{scale[scale > 0].min():.2g} to {scale.max():.2g}; scale them to similar size or remove repeated ones."
        )
    return span


def _clearly_full_rank(gram: Floats) -> bool:
    """Whether a Gram matrix, its columns scaled to length one, is far from singular; False if it was out of range."""
    # Squares outside this range have lost digits to under- or overflow.
    squares = gram.diagonal()
    if not (squares.min() > 1e-200 and squares.max() < 1e200):
        return False
    lengths = np.sqrt(squares)
    return bool(np.linalg.eigvalsh(gram / lengths / lengths[:, None])[0] > 1e-8 * len(gram))


def column_scale(rows: Floats) -> Floats:
    """Largest absolute entry of every column, as a power of two so that dividing by it is exact."""
    largest = np.maximum(rows.max(axis=0, initial=0.0), -rows.min(axis=0, initial=0.0))
    exponent = np.frexp(largest)[1]
    return np.where(largest > 0, np.ldexp(1.0, exponent), 0.0)


def gram_matrix(rows: Floats, weights: Floats | None = None) -> Floats:
    """Sum of weight · row rowᵀ, no weight negative, in O(n d²) time and O(d²) memory beyond one block of rows."""
    dimension = rows.shape[1]
    total = np.zeros((dimension, dimension))
    for part in blocks(rows):
        block = rows[part]
        if weights is not None:
            block = block * np.sqrt(weights[part, None])
        total += block.T @ block  # of one array with itself: half the work, and symmetric
    return total


def triangular_factor(rows: Floats, *, units: Floats) -> Floats:
    """Upper triangular R with RᵀR = Σ row rowᵀ of the rows over the units of their columns, by orthogonal steps.

    It never squares the condition number, unlike a factor of the Gram matrix. O(n d²) time, one block of memory.
    """
    dimension = rows.shape[1]
    upper = np.zeros((0, dimension))
    for part in blocks(rows):
        stacked = np.vstack([upper, rows[part] / units])
        upper = np.asarray(sl.qr(stacked, mode="r", overwrite_a=True, check_finite=False)[0][:dimension])
    return upper


def square_root(matrix: Floats) -> Floats:
    """R with R Rᵀ = matrix, for a positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def squared_lengths(rows: Floats, matrix: Floats, *, reference: Floats | None = None) -> Floats:
    """‖(row − reference)ᵀ · matrix‖² for every row; O(n d r) time, O(n) memory beyond one block of rows."""
    result = np.empty(len(rows))
    for part in blocks(rows):
        mapped = (rows[part] if reference is None else rows[part] - reference) @ matrix
        result[part] = np.einsum("ij,ij->i", mapped, mapped)
    return result


def norms(rows: Floats, *, axis: int = 1) -> Floats:
    """Euclidean lengths, without overflow or underflow of the squares."""
    largest = np.max(np.abs(rows), axis=axis, initial=0.0, keepdims=True)
    safe = np.where(largest > 0, largest, 1.0)
    return np.asarray(np.squeeze(safe, axis) * np.sqrt(np.sum((rows / safe) ** 2, axis=axis)))


def distinct_lines(vectors: Floats) -> Floats:
    """One representative for every line through the origin (x and c·x lie on one), none for zero; O(p d log p).

    Every coordinate is rounded to twelve digits of its own: one line may be counted twice, but never two lines as one,
    however different the units of the coordinates.
    """
    some = vectors[vectors.any(axis=1)]
    largest = np.argmax(np.abs(some), axis=1)
    mantissa, exponent = np.frexp(some / some[np.arange(len(some)), largest][:, None])
    return np.asarray(np.unique(np.ldexp(np.round(mantissa, 12), exponent) + 0.0, axis=0))


@dataclass(frozen=True)
class Factor:
    """Cholesky factor of a positive definite matrix M = D C D, D diagonal, C of unit diagonal.

    Scaling first makes the factor indifferent to the units of the coordinates.
    """

    diagonal: Floats
    lower: Floats

    def solve(self, right: Floats) -> Floats:
        """M⁻¹ · right, for a vector or a matrix of columns."""
        solution, _ = lapack.dpotrs(self.lower, (right.T / self.diagonal).T, lower=1)
        return np.asarray((solution.T / self.diagonal).T)

    def whitened(self, rows: Floats) -> Floats:
        """Rows y with y·y' = xᵀ M⁻¹ x' for all pairs of the given rows x, x'."""
        white, _ = lapack.dtrtrs(self.lower, (rows / self.diagonal).T, lower=1)
        return np.asarray(white.T)

    def inverse_norms(self, rows: Floats) -> Floats:
        """√(xᵀ M⁻¹ x) for every row x; O(n d²) time, O(block · d) memory."""
        result = np.empty(len(rows))
        for part in blocks(rows):
            white = self.whitened(rows[part])
            result[part] = np.sqrt(np.einsum("ij,ij->i", white, white))
        return result

    def inverse_norm(self, vector: Floats) -> float:
        """√(vᵀ M⁻¹ v)."""
        return float(self.inverse_norms(vector[None, :])[0])


def factor(matrix: Floats) -> Factor | None:
    """Factor a symmetric positive definite matrix, or return None where it is numerically singular."""
    squares = matrix.diagonal()
    if not (squares.min() > 1e-260 and squares.max() < np.inf):  # below, dividing by the root overflows
        return None
    diagonal = np.sqrt(squares)
    lower, failed = lapack.dpotrf(matrix / diagonal / diagonal[:, None], lower=1)
    # A pivot this small means that rounding, not the data, decides the result.
    if failed or lower.diagonal().min() < 1e-7:
        return None
    return Factor(diagonal, np.asarray(lower))


for _library in ("numpy.linalg", "scipy.linalg"):
    import_module(_library)  # both pools must be loaded before they are looked up

LARGE = 2e9
"""From this many floating-point operations on, several threads are faster than one."""

_lock = Lock()
_small, _large = 0, 0


@contextmanager
def threads_for(operations: float) -> Iterator[None]:
    """Run the products inside on one thread, or on all if they take this many operations together.

    Contexts nest: large work inside small work has all threads. The number of threads belongs to the whole process,
    so where several of its threads compute at once, one large product is enough to keep the pools awake.
    """
    large = operations >= LARGE
    _count(large, 1)
    try:
        yield
    finally:
        _count(large, -1)


def _count(large: bool, change: int) -> None:
    """Enter or leave a context; the pools are set only when the rule (small work and no large work) changes."""
    global _small, _large
    with _lock:
        before = _small > 0 and _large == 0
        _small, _large = _small + (0 if large else change), _large + (change if large else 0)
        after = _small > 0 and _large == 0
        if before != after:
            for pool, usual in _pools():
                pool.set_num_threads(1 if after else usual)


@cache
def _pools() -> list[tuple[LibController, int]]:
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [(pool, pool.get_num_threads()) for pool in found]
