"""Cutting planes: solve on few measurement vectors and directions, look for others that matter, repeat.

A round solves the restricted problem by interior points, then asks the measurement vectors which of them would lower
the value (large g_x) and the directions which of them exceed it. The guesses of the families steer; before a design
is returned, its value and its bound are computed over everything.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from surepick._arrays import Booleans, Floats, Integers
from surepick._threads import threads_for
from surepick.design.interior_point import minimax
from surepick.design.result import Certificate, Limits, Outcome
from surepick.design.vector_families import Family, Union, refuse_unmeasurable
from surepick.design.whitened_basis import Active, Frame, add_spanning, frame_of, whitener
from surepick.errors import InvalidInput
from surepick.linalg import span_of, square_root

PRUNED = (0.5, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
"""Weights below these multiples of the mean are tried to be left out, the largest first."""

ROUNDING = 1e-10
"""Taken off a lower bound to cover floating point."""

FORGETFUL = 20
"""Rounds in which vectors without weight are dropped; afterwards the active sets only grow, so they must settle."""


@dataclass(frozen=True)
class _Look:
    """A design on the active vectors, seen over everything."""

    members: Integers
    vectors: Floats
    weights: Floats
    targets: Integers
    """The active directions, by name."""
    dual: Floats
    """Their weights w."""
    white: Floats
    """C with C Cᵀ = H(weights)⁻¹ in the coordinates of the frame."""
    root: Floats
    """R with R Rᵀ = H⁻¹SH⁻¹, S = Σ w yyᵀ, so that g_x = ‖xᵀR‖²."""
    slopes: Floats
    """g_x of the active measurement vectors."""
    lengths: Floats
    """yᵀH⁻¹y of the active directions."""
    attained: float
    """f_w = Σ w yᵀH⁻¹y."""
    value: float
    """The largest yᵀH⁻¹y met so far."""
    steepest: float
    """The largest g_x met so far."""
    new_x: Integers
    """Measurement vectors that come close to the steepest."""
    new_y: Integers
    """Directions that come close to the value."""

    @property
    def gap(self) -> float:
        """The gap if nothing worse exists than what was met."""
        return self.value * self.steepest / self.attained**2 - 1.0


class MinimaxSearch:
    """The search for min over weights of max over directions; one object per call."""

    def __init__(self, measurements: Family, directions: Union) -> None:
        self.measurements, self.directions = measurements, directions
        self.frame: Frame = frame_of(measurements)
        refuse_unmeasurable(directions, self.frame.span)
        self.x = Active(measurements, self.frame.transform)
        self.y = Active(directions, self.frame.transform)
        self.batch = batch_size(self.frame.rank)
        self.lower_bound = 0.0
        self.certificate: Certificate | None = None

    def run(self, limits: Limits, start: tuple[Integers, Floats] | None) -> Outcome:
        """Rounds until the gap is proved or a limit is reached."""
        self._begin(start)
        # A warm start is worth solving well at once; a cold one meets the vectors that matter only later.
        inner, rounds, iterations = 0.3 if start is None else 0.3 * limits.gap, 0, 0
        best: _Look | None = None
        while True:
            with threads_for(float(len(self.x)) ** 2 * (len(self.x) + len(self.y))):
                central = minimax(
                    self.x.vectors,
                    self.y.vectors,
                    self.x.mass,
                    self.y.mass if rounds else None,
                    gap=inner,
                    deadline=limits.deadline,
                )
            rounds, iterations = rounds + 1, iterations + central.iterations
            self.x.mass, self.y.mass = central.mass, central.dual
            look = self._look()
            best = look if best is None or look.gap < best.gap else best
            stuck = inner < 1e-13
            last = stuck or limits.exceeded(rounds)
            if look.gap <= limits.gap or last:
                chosen = best if last else look
                self._certify(chosen)
                members, weights, value, found = self._finish(chosen, limits.gap)
                if last or value <= self.lower_bound * (1.0 + limits.gap):
                    bound = min(self.lower_bound, value)
                    return Outcome(members, weights, value, bound, iterations, rounds, self.certificate)
                self.y.add(found, most=self.batch, mass=self.y.newcomer)
            inner = max(min(inner, 0.3 * look.gap), 0.2 * limits.gap)
            if not self._revise(look, forget=rounds < FORGETFUL):
                inner *= 0.1  # Nothing to add: only the accuracy of the restricted problem is missing.

    def _begin(self, start: tuple[Integers, Floats] | None) -> None:
        """Choose the first active vectors under the uniform design, or nine parts of the warm start and one of it."""
        rank, transform = self.frame.rank, self.frame.transform
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
        slack = 1.0 - np.einsum("ij,ij->i", image, image) / (1.1 * lengths[0])
        root = white @ square_root((image / slack[:, None]).T @ image)
        members, _ = self.measurements.longest(transform @ root, 4 * self.batch, self.x.members)
        self.x.add(members, most=self.batch, mass=1.0)
        if start is not None:
            self.x.mass *= 0.1 / len(self.x)
            self.x.add(start[0], most=len(start[0]), mass=start[1])

    def _look(self) -> _Look:
        """Find what the restricted problem does not know of."""
        weights, dual = self.x.mass / self.x.mass.sum(), self.y.mass / self.y.mass.sum()
        white = whitener(self.x.vectors, weights)
        image = self.y.vectors @ white
        lengths = np.einsum("ij,ij->i", image, image)
        root = white @ square_root((image * dual[:, None]).T @ image)
        slopes = np.einsum("ij,ij->i", self.x.vectors @ root, self.x.vectors @ root)
        transform = self.frame.transform
        near = self.x.members[np.argsort(-slopes, kind="stable")[: self.batch]]
        new_x, steep = self.measurements.longest(transform @ root, 4 * self.batch, near)
        near = self.y.members[np.argsort(-lengths, kind="stable")[: self.batch]]
        new_y, long = self.directions.longest(transform @ white, 4 * self.batch, near)
        return _Look(
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

    def _revise(self, look: _Look, *, forget: bool) -> int:
        """Drop what carries next to nothing and add what was found; return how many were added."""
        if forget and len(self.x) > 4 * self.batch:
            keep = (look.weights > 1e-4 * look.weights.max()) | (look.slopes > 0.9 * look.steepest)
            keep[: self.frame.rank] = True
            self.x.keep(keep)
        if forget and len(self.y) > 4 * self.batch:
            keep = (look.dual > 1e-4 * look.dual.max()) | (look.lengths > 0.9 * look.value)
            # Directions that the last proof brought in are newer than the look and stay.
            self.y.keep(np.append(keep, np.ones(len(self.y) - len(keep), dtype=np.bool_)))
        # Without a floor, vectors needed only to keep H regular would lose their mass to rounding.
        self.x.mass = np.maximum(self.x.mass, 1e-10 * self.x.mass.mean())
        added = self.x.add(look.new_x, most=self.batch, mass=self.x.newcomer)
        return added + self.y.add(look.new_y, most=self.batch, mass=self.y.newcomer)

    def _certify(self, look: _Look) -> None:
        """Prove a lower bound over all measurement vectors and remember the best one."""
        transform = self.frame.transform
        steepest, _ = self.measurements.maximum(transform @ look.root, look.steepest)
        bound = look.attained**2 / steepest * (1.0 - ROUNDING)
        if bound > self.lower_bound:
            self.lower_bound = bound
            matrix = transform @ look.white
            self.certificate = Certificate(
                self.directions.vectors(look.targets), look.dual, matrix @ matrix.T, look.targets
            )

    def _finish(self, look: _Look, gap: float) -> tuple[Integers, Floats, float, Integers]:
        """Leave out negligible weights where that costs a tenth of the gap at most, and compute the value exactly."""
        targets = self.directions.vectors(look.targets) @ self.frame.transform
        kept, white = np.ones(len(look.weights), dtype=np.bool_), look.white
        for threshold in PRUNED:
            fewer = look.weights >= threshold / len(look.weights)
            slim = self._pruned_whitener(look, fewer)
            if slim is not None and longest(targets @ slim) <= look.value * (1.0 + 0.1 * gap):
                kept, white = fewer, slim
                break
        value, found = self.directions.maximum(self.frame.transform @ white, longest(targets @ white))
        return look.members[kept], look.weights[kept] / look.weights[kept].sum(), value, found

    def _pruned_whitener(self, look: _Look, kept: Booleans) -> Floats | None:
        """C with ‖yᵀC‖² = yᵀH⁺y for all directions, or None where some direction is no longer measured."""
        rank = self.frame.rank
        vectors, weights = look.vectors[kept], look.weights[kept] / look.weights[kept].sum()
        basis = np.eye(rank)
        if len(vectors) < rank or np.linalg.matrix_rank(vectors, tol=1e-9) < rank:
            # The design rightly leaves some of the space alone, as long as no direction of interest points there.
            span = span_of(self.measurements.vectors(look.members[kept]))
            if self.directions.outside(span) is not None:
                return None
            basis = sl.orth(vectors.T)[:, : span.rank]
        try:
            return np.asarray(basis @ whitener(vectors @ basis, weights))
        except np.linalg.LinAlgError:
            return None


def batch_size(rank: int) -> int:
    """How many vectors join at once: enough for few rounds, few enough for fast ones."""
    return max(6 * rank, 24)


def longest(rows: Floats) -> float:
    """The largest squared length of a row."""
    return float(np.max(np.einsum("ij,ij->i", rows, rows)))
