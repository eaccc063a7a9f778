"""Cutting planes: solve on a few measurement vectors and directions, look for others that matter, repeat.

A round solves the restricted problem by interior points. Then it asks the measurement family which vectors would lower
the value (large g_x) and the directions which of them exceed it, and adds those. The guesses of the families steer the
search; before a design is returned, its value and its bound are computed over all vectors and directions.

Reading order: `WhitenedBasis` (coordinates), `ActiveSet` (the few vectors at work), `MinimaxSearch` (XY-type criteria),
`determinant_search` (G and D). Statements and proofs: docs/design.md.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from surepick._arrays import Booleans, Floats, Integers
from surepick.design.interior_point import maximise_determinant, solve_minimax, whitener
from surepick.design.result import Certificate, SearchLimits, SearchResult
from surepick.design.vector_families import FamilyUnion, VectorFamily, refuse_unmeasurable
from surepick.errors import InvalidInput
from surepick.linalg import (
    Span,
    column_scale,
    factor,
    gram_matrix,
    span_of,
    square_root,
    threads_for,
    triangular_factor,
)

PRUNING_THRESHOLDS = (0.5, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
"""Multiples of the mean weight below which weights are dropped, tried from the largest."""

ROUNDING = 1e-10
"""Taken off a lower bound to cover floating point."""

DROPPING_ROUNDS = 20
"""Rounds in which vectors without weight are dropped. Later the active sets only grow, so the search must end."""

ENTRY_MASS = 0.05
"""Mass of a vector that joins the active ones, as a fraction of their mean: enough to stay off the bound s = 0."""

FEW_ENOUGH_TO_LIST = 20_000
"""Up to this many measurement vectors the design of equal weights is tried first."""


@dataclass(frozen=True)
class WhitenedBasis:
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


def whitened_basis(measurements: VectorFamily) -> WhitenedBasis:
    """The whitened basis of the measurement vectors.

    O(n d²) time; O(d²) memory beyond a block of rows, unless the rows are nearly dependent.
    """
    rows = measurements.spanning_rows()
    span = span_of(rows)
    if span.rank == 0:
        raise InvalidInput("All measurement vectors are zero, so nothing can be measured; check the feature columns.")
    if span.is_full:
        # The quick way: a Cholesky factor of the mean of xxᵀ, refused where its condition is too bad.
        direct = factor(gram_matrix(rows) / len(rows))
        if direct is not None:
            inverse = sl.solve_triangular(direct.lower, np.eye(span.rank), lower=True, check_finite=False)
            return WhitenedBasis(span, inverse.T / direct.diagonal[:, None])
    # The careful way: QR of the rows themselves does not square their condition number.
    inside = span.coordinates(rows)
    scale = column_scale(inside)
    upper = triangular_factor(inside, units=scale) / np.sqrt(len(rows))
    inverse = sl.solve_triangular(upper, np.eye(span.rank), check_finite=False) / scale[:, None]
    return WhitenedBasis(span, np.asarray(inverse if span.basis is None else span.basis @ inverse))


class ActiveSet:
    """The few members of a family that the restricted problem holds, with the mass of each; no vector occurs twice."""

    def __init__(self, family: VectorFamily | FamilyUnion, transform: Floats) -> None:
        self.family = family
        self.transform = transform
        self.members: Integers = np.zeros((0, 3 if isinstance(family, FamilyUnion) else 2), dtype=np.int64)
        self.vectors: Floats = np.zeros((0, transform.shape[1]))
        self.mass: Floats = np.zeros(0)
        self._keys: list[bytes] = []
        self._known: set[bytes] = set()

    def __len__(self) -> int:
        return len(self.members)

    def add(self, members: Integers, *, most: int, mass: float | Floats) -> int:
        """Add up to `most` members, in the order given, whose vectors are new up to their sign; return how many.

        `mass` is what each of them starts with.
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
        """Keep these members and drop the others."""
        self.members, self.vectors, self.mass = self.members[which], self.vectors[which], self.mass[which]
        self._keys = [key for key, stays in zip(self._keys, which, strict=True) if stays]
        self._known = set(self._keys)

    @property
    def entry_mass(self) -> float:
        """Mass for a vector that joins."""
        return ENTRY_MASS * float(self.mass.mean()) if len(self.mass) else 1.0


def add_spanning(active: ActiveSet, rank: int) -> None:
    """Add vectors of the family until the active ones span all coordinates; they come first and stay.

    Each turn takes the members that are longest orthogonally to what is already spanned, and keeps those that a pivoted
    QR finds independent; every turn gains at least one dimension.
    """
    family, transform = active.family, active.transform
    none = active.members[:0]
    basis = np.zeros((rank, 0))
    while basis.shape[1] < rank:
        free = np.eye(rank) if basis.shape[1] == 0 else sl.null_space(basis.T)
        members, _ = family.longest(transform @ free, 4 * rank, none)
        coordinates = family.vectors(members) @ transform
        projected = coordinates @ free
        triangular, order = sl.qr(projected.T, mode="r", pivoting=True, check_finite=False)
        # A pivot far below the first marks a vector nearly dependent on those before it.
        pivots = np.abs(np.diag(triangular))
        good = order[: len(pivots)][pivots > 0.1 * pivots[0]]
        active.add(members[good], most=rank, mass=1.0)
        basis = sl.orth(np.column_stack([basis, coordinates[good].T]))


def _keys(rows: Floats) -> list[bytes]:
    """The same bytes for a vector and its negative, different ones for different vectors."""
    first = np.argmax(rows != 0, axis=1)
    signs = np.where(rows[np.arange(len(rows)), first] < 0, -1.0, 1.0)
    return [row.tobytes() for row in rows * signs[:, None] + 0.0]


@dataclass(frozen=True)
class _Candidate:
    """A design on the active vectors, evaluated over all vectors and directions that the families found."""

    members: Integers
    vectors: Floats
    weights: Floats
    targets: Integers
    """The active directions, by their indices."""
    dual: Floats
    """Their weights w."""
    white: Floats
    """C with C Cᵀ = H(weights)⁻¹ in whitened coordinates."""
    root: Floats
    """R with R Rᵀ = H⁻¹SH⁻¹, S = Σ w yyᵀ, so that g_x = ‖xᵀR‖²."""
    slopes: Floats
    """g_x of the active measurement vectors."""
    lengths: Floats
    """yᵀH⁻¹y of the active directions."""
    attained: float
    """f_w = Σ w yᵀH⁻¹y."""
    value: float
    """The largest yᵀH⁻¹y found."""
    steepest: float
    """The largest g_x found."""
    new_x: Integers
    """Measurement vectors that come close to the steepest."""
    new_y: Integers
    """Directions that come close to the value."""

    @property
    def gap(self) -> float:
        """The relative gap, provided that the families found the extremes."""
        return self.value * self.steepest / self.attained**2 - 1.0


class MinimaxSearch:
    """The search for min over weights of max over directions; one object per call."""

    def __init__(self, measurements: VectorFamily, directions: FamilyUnion) -> None:
        self.measurements, self.directions = measurements, directions
        self.basis: WhitenedBasis = whitened_basis(measurements)
        refuse_unmeasurable(directions, self.basis.span)
        self.x = ActiveSet(measurements, self.basis.transform)
        self.y = ActiveSet(directions, self.basis.transform)
        self.batch = batch_size(self.basis.rank)
        self.lower_bound = 0.0
        self.certificate: Certificate | None = None

    def run(self, limits: SearchLimits, start: tuple[Integers, Floats] | None) -> SearchResult:
        """Rounds until the gap is proved or a limit is reached."""
        self._begin(start)
        # A warm start is worth solving accurately at once; a cold one finds the vectors that matter only later.
        inner, rounds, iterations = 0.3 if start is None else 0.3 * limits.gap, 0, 0
        best: _Candidate | None = None
        while True:
            with threads_for(float(len(self.x)) ** 2 * (len(self.x) + len(self.y))):
                central = solve_minimax(
                    self.x.vectors,
                    self.y.vectors,
                    self.x.mass,
                    self.y.mass if rounds else None,
                    gap=inner,
                    deadline=limits.deadline,
                )
            rounds, iterations = rounds + 1, iterations + central.iterations
            self.x.mass, self.y.mass = central.mass, central.dual
            candidate = self._evaluate()
            best = candidate if best is None or candidate.gap < best.gap else best
            stuck = inner < 1e-13
            last = stuck or limits.exceeded(rounds)
            # The exact maxima cost O(n d²) and more, so they are computed only where the guesses say it is over.
            if candidate.gap <= limits.gap or last:
                chosen = best if last else candidate
                self._certify(chosen)
                members, weights, value, found = self._finish(chosen, limits.gap)
                if last or value <= self.lower_bound * (1.0 + limits.gap):
                    bound = min(self.lower_bound, value)
                    return SearchResult(members, weights, value, bound, iterations, rounds, self.certificate)
                self.y.add(found, most=self.batch, mass=self.y.entry_mass)
            # Solving the restricted problem much better than it approximates the whole would be wasted.
            inner = max(min(inner, 0.3 * candidate.gap), 0.2 * limits.gap)
            if not self._revise(candidate, drop=rounds < DROPPING_ROUNDS):
                inner *= 0.1  # Nothing to add: only the accuracy of the restricted problem is missing.

    def _begin(self, start: tuple[Integers, Floats] | None) -> None:
        """Choose the first active vectors under the uniform design, or under 0.9·(warm start) + 0.1·(uniform)."""
        rank, transform = self.basis.rank, self.basis.transform
        add_spanning(self.x, rank)
        white = np.eye(rank)
        if start is not None:
            warm = self.measurements.vectors(start[0]) @ transform
            mixed = 0.9 * (warm * start[1][:, None]).T @ warm + 0.1 * np.eye(rank)
            white = np.linalg.inv(np.linalg.cholesky(mixed)).T
        members, lengths = self.directions.longest(transform @ white, 4 * self.batch, self.y.members)
        if not lengths[0] > 0:
            raise InvalidInput("All directions are zero, so there is nothing to find out; check the items.")
        self.y.add(members[lengths > 1e-9 * lengths[0]], most=self.batch, mass=1.0)
        image = self.y.vectors @ white
        # Initial multipliers as on the central path, 1/slack; they rank the measurement vectors by g_x.
        slack = 1.0 - np.einsum("ij,ij->i", image, image) / (1.1 * lengths[0])
        root = white @ square_root((image / slack[:, None]).T @ image)
        members, _ = self.measurements.longest(transform @ root, 4 * self.batch, self.x.members)
        self.x.add(members, most=self.batch, mass=1.0)
        if start is not None:
            self.x.mass *= 0.1 / len(self.x)
            self.x.add(start[0], most=len(start[0]), mass=start[1])

    def _evaluate(self) -> _Candidate:
        """The design of the restricted problem, and what the families find beyond its vectors and directions."""
        weights, dual = self.x.mass / self.x.mass.sum(), self.y.mass / self.y.mass.sum()
        white = whitener(self.x.vectors, weights)
        image = self.y.vectors @ white
        lengths = np.einsum("ij,ij->i", image, image)
        # H⁻¹SH⁻¹ = C(Σ w·CᵀyyᵀC)Cᵀ, so g_x is the squared length of xᵀR with R = C·(…)^(1/2).
        root = white @ square_root((image * dual[:, None]).T @ image)
        slopes = np.einsum("ij,ij->i", self.x.vectors @ root, self.x.vectors @ root)
        transform = self.basis.transform
        near = self.x.members[np.argsort(-slopes, kind="stable")[: self.batch]]
        new_x, steep = self.measurements.longest(transform @ root, 4 * self.batch, near)
        near = self.y.members[np.argsort(-lengths, kind="stable")[: self.batch]]
        new_y, long = self.directions.longest(transform @ white, 4 * self.batch, near)
        return _Candidate(
            members=self.x.members,
            vectors=self.x.vectors,
            weights=weights,
            targets=self.y.members,
            dual=dual,
            white=white,
            root=root,
            slopes=slopes,
            lengths=lengths,
            attained=float(dual @ lengths),
            value=max(float(lengths.max()), float(long[0])),
            steepest=max(float(slopes.max()), float(steep[0])),
            new_x=new_x[steep > 0.9 * slopes.max()],
            new_y=new_y[long > 0.9 * lengths.max()],
        )

    def _revise(self, candidate: _Candidate, *, drop: bool) -> int:
        """Drop what carries next to nothing and add what was found; return how many were added."""
        if drop and len(self.x) > 4 * self.batch:
            keep = (candidate.weights > 1e-4 * candidate.weights.max()) | (candidate.slopes > 0.9 * candidate.steepest)
            keep[: self.basis.rank] = True  # the vectors of `add_spanning`, without which H would be singular
            self.x.keep(keep)
        if drop and len(self.y) > 4 * self.batch:
            keep = (candidate.dual > 1e-4 * candidate.dual.max()) | (candidate.lengths > 0.9 * candidate.value)
            # Directions that the last proof brought in are not among the candidate's; they stay.
            self.y.keep(np.append(keep, np.ones(len(self.y) - len(keep), dtype=np.bool_)))
        # Without a floor, vectors needed only to keep H regular would lose their mass to rounding.
        self.x.mass = np.maximum(self.x.mass, 1e-10 * self.x.mass.mean())
        added = self.x.add(candidate.new_x, most=self.batch, mass=self.x.entry_mass)
        return added + self.y.add(candidate.new_y, most=self.batch, mass=self.y.entry_mass)

    def _certify(self, candidate: _Candidate) -> None:
        """Prove a lower bound over all measurement vectors and remember the best one."""
        transform = self.basis.transform
        steepest, _ = self.measurements.maximum(transform @ candidate.root, candidate.steepest)
        # docs/design.md, "The certificate": no design attains less than (Σ w yᵀMy)²/max g, M = H⁻¹.
        bound = candidate.attained**2 / steepest * (1.0 - ROUNDING)
        if bound > self.lower_bound:
            self.lower_bound = bound
            matrix = transform @ candidate.white
            self.certificate = Certificate(
                self.directions.vectors(candidate.targets), candidate.dual, matrix @ matrix.T, candidate.targets
            )

    def _finish(self, candidate: _Candidate, gap: float) -> tuple[Integers, Floats, float, Integers]:
        """Drop negligible weights as long as that costs at most a tenth of the gap, and compute the value exactly."""
        targets = self.directions.vectors(candidate.targets) @ self.basis.transform
        kept, white = np.ones(len(candidate.weights), dtype=np.bool_), candidate.white
        for threshold in PRUNING_THRESHOLDS:
            fewer = candidate.weights >= threshold / len(candidate.weights)
            slim = self._pruned_whitener(candidate, fewer)
            if slim is not None and longest(targets @ slim) <= candidate.value * (1.0 + 0.1 * gap):
                kept, white = fewer, slim
                break
        value, found = self.directions.maximum(self.basis.transform @ white, longest(targets @ white))
        return candidate.members[kept], candidate.weights[kept] / candidate.weights[kept].sum(), value, found

    def _pruned_whitener(self, candidate: _Candidate, kept: Booleans) -> Floats | None:
        """C with ‖yᵀC‖² = yᵀH⁺y for all directions, or None where some direction is no longer measured."""
        rank = self.basis.rank
        vectors, weights = candidate.vectors[kept], candidate.weights[kept] / candidate.weights[kept].sum()
        basis = np.eye(rank)
        if len(vectors) < rank or np.linalg.matrix_rank(vectors, tol=1e-9) < rank:
            # A singular H is fine as long as every direction lies in its range.
            span = span_of(self.measurements.vectors(candidate.members[kept]))
            if self.directions.outside(span) is not None:
                return None
            basis = sl.orth(vectors.T)[:, : span.rank]
        try:
            return np.asarray(basis @ whitener(vectors @ basis, weights))
        except np.linalg.LinAlgError:
            return None


def batch_size(rank: int) -> int:
    """The number of vectors added in one round: enough for few rounds, few enough for fast ones."""
    return max(6 * rank, 24)


def longest(rows: Floats) -> float:
    """The largest squared length of a row."""
    return float(np.max(np.einsum("ij,ij->i", rows, rows)))


def determinant_search(
    measurements: VectorFamily, basis: WhitenedBasis, limits: SearchLimits, start: tuple[Integers, Floats] | None
) -> SearchResult:
    """Rounds until max xᵀH(λ)⁻¹x ≤ rank·(1 + gap) over all x, or a limit is reached; the value is that maximum.

    The bound is the rank: for any weights the largest xᵀH⁻¹x is at least the average Σ λ xᵀH⁻¹x = tr(H⁻¹H). By the
    theorem of Kiefer and Wolfowitz (Canad. J. Math. 12, 1960) the weights of largest determinant attain it.
    """
    rank, batch = basis.rank, batch_size(basis.rank)
    even = _equal_weights(measurements, basis, limits.gap)
    if even is not None:
        return even
    active = ActiveSet(measurements, basis.transform)
    add_spanning(active, rank)
    members, _ = measurements.longest(basis.transform, 4 * batch, active.members)
    active.add(members, most=batch, mass=1.0)
    if start is not None:
        active.mass *= 0.1 / len(active)
        active.add(start[0], most=len(start[0]), mass=start[1])
    inner, rounds, iterations = 0.3 if start is None else 0.3 * limits.gap, 0, 0
    while True:
        with threads_for(float(len(active)) ** 3):
            central = maximise_determinant(active.vectors, active.mass, gap=inner, deadline=limits.deadline)
        rounds, iterations = rounds + 1, iterations + central.iterations
        active.mass = central.mass
        weights = central.mass / central.mass.sum()
        white = whitener(active.vectors, weights)
        members, lengths = measurements.longest(basis.transform @ white, 4 * batch, active.members[-batch:])
        value = max(longest(active.vectors @ white), float(lengths[0]))
        last = inner < 1e-13 or limits.exceeded(rounds)
        if last or value <= rank * (1.0 + limits.gap):
            kept, white = _prune(active.vectors, weights, white, value + 0.1 * limits.gap * rank)
            exact, found = measurements.maximum(basis.transform @ white, longest(active.vectors @ white))
            if last or exact <= rank * (1.0 + limits.gap):
                fewer = weights[kept] / weights[kept].sum()
                bound = min(float(rank), exact)
                return SearchResult(active.members[kept], fewer, exact, bound, iterations, rounds, None)
            members = np.concatenate([found, members])
        inner = max(min(inner, 0.3 * (value / rank - 1.0)), 0.2 * limits.gap)
        if rounds < DROPPING_ROUNDS and len(active) > 4 * batch:
            here = np.einsum("ij,ij->i", active.vectors @ white, active.vectors @ white)
            keep = (weights > 1e-4 * weights.max()) | (here > 0.9 * value)
            keep[:rank] = True
            active.keep(keep)
        if not active.add(members, most=batch, mass=active.entry_mass):
            inner *= 0.1  # Nothing to add: only the accuracy of the restricted problem is missing.


def _equal_weights(measurements: VectorFamily, basis: WhitenedBasis, gap: float) -> SearchResult | None:
    """Equal weights, if they are good enough; by symmetry they are optimal for items without features."""
    if len(measurements) > FEW_ENOUGH_TO_LIST:
        return None
    members = measurements.all_members()
    vectors = measurements.vectors(members) @ basis.transform
    weights = np.full(len(members), 1.0 / len(members))
    value = longest(vectors @ whitener(vectors, weights))
    all_members = ActiveSet(measurements, basis.transform)
    if value > basis.rank * (1.0 + gap) or all_members.add(members, most=len(members), mass=1.0) < len(members):
        return None
    return SearchResult(members, weights, value, min(float(basis.rank), value), 0, 1, None)


def _prune(vectors: Floats, weights: Floats, white: Floats, allowed: float) -> tuple[Booleans, Floats]:
    """Drop as many small weights as possible while all active vectors stay within the allowed length."""
    for threshold in PRUNING_THRESHOLDS:
        kept = weights >= threshold / len(weights)
        try:
            slim = whitener(vectors[kept], weights[kept] / weights[kept].sum())
        except np.linalg.LinAlgError:
            continue
        if longest(vectors @ slim) <= allowed:
            return kept, slim
    return np.ones(len(weights), dtype=np.bool_), white
