"""Cutting planes: solve on few measurement vectors and directions, look for others that matter, repeat.

A round solves the restricted problem by interior points, then asks the measurement vectors which of them would lower
the value (large g_x) and the directions which of them exceed it. The guesses of the families steer; before a design
is returned, its value and its bound are computed over everything.
"""

import time
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray

from surepick.design.directions import Family, Union, refuse_unmeasurable
from surepick.design.frame import Active, Frame, add_spanning, frame_of
from surepick.design.interior import Central, largest_determinant, minimax
from surepick.design.result import Certificate
from surepick.errors import InvalidInput
from surepick.linalg import span_of
from surepick.threads import threads_for

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PRUNED = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
"""Weights below these multiples of the mean are tried to be left out, the largest first."""

ROUNDING = 1e-10
"""Taken off a lower bound to cover floating point."""


@dataclass(frozen=True)
class Limits:
    """When to stop."""

    gap: float
    rounds: int
    deadline: float

    def exceeded(self, rounds: int) -> bool:
        """Whether no further round may begin."""
        return rounds >= self.rounds or time.perf_counter() > self.deadline


@dataclass(frozen=True)
class Outcome:
    """Weights on members of the measurement family, and what is proved about them."""

    members: Integers
    weights: Floats
    value: float
    lower_bound: float
    iterations: int
    rounds: int
    certificate: Certificate | None


@dataclass(frozen=True)
class _Look:
    """A design on the active vectors, seen over everything."""

    weights: Floats
    dual: Floats
    white: Floats
    """C with C Cᵀ = H(weights)⁻¹ in the coordinates of the frame."""
    root: Floats
    """R with R Rᵀ = H⁻¹SH⁻¹, so that g_x = ‖xᵀR‖²."""
    attained: float
    """f_w = Σ w yᵀH⁻¹y."""
    value: float
    """The largest yᵀH⁻¹y met so far."""
    steepest: float
    """The largest g_x met so far."""

    @property
    def gap(self) -> float:
        return self.value * self.steepest / self.attained**2 - 1.0


class MinimaxSearch:
    """The search for min over weights of max over directions; one object per call."""

    def __init__(self, measurements: Family, directions: Union) -> None:
        self.measurements, self.directions = measurements, directions
        self.frame: Frame = frame_of(measurements)
        refuse_unmeasurable(directions, self.frame.span)
        self.x = Active(measurements, self.frame.transform)
        self.y = Active(directions, self.frame.transform)
        self.batch = max(6 * self.frame.rank, 24)
        self.iterations = 0
        self.lower_bound = 0.0
        self.certificate: Certificate | None = None

    def run(self, limits: Limits, start: tuple[Integers, Floats] | None) -> Outcome:
        """Rounds until the gap is proved or a limit is reached."""
        self._begin(start)
        inner, rounds = 0.3, 0
        dual: Floats | None = None
        best: tuple[_Look, Integers, Floats] | None = None
        while True:
            with threads_for(float(len(self.x)) ** 2 * (len(self.x) + len(self.y))):
                central = minimax(self.x.vectors, self.y.vectors, self.x.mass, dual, gap=inner)
            self.iterations += central.iterations
            rounds += 1
            look, new_x, new_y = self._look(central)
            if best is None or look.gap < best[0].gap:
                best = (look, self.x.members, self.x.vectors)
            last = limits.exceeded(rounds)
            if look.gap <= limits.gap or last:
                self._certify(best[0] if last else look)
                outcome, found = self._finish(
                    *(best if last else (look, self.x.members, self.x.vectors)), rounds, limits
                )
                if last or outcome.value <= self.lower_bound * (1.0 + limits.gap):
                    return outcome
                new_y = np.concatenate([found, new_y])
            inner = max(min(inner, 0.3 * look.gap), 0.2 * limits.gap)
            if not self._revise(central, look, new_x, new_y, forget=rounds < 20):
                inner *= 0.1  # Nothing to add: only the accuracy of the restricted problem is missing.
            dual = self.y.mass

    def _begin(self, start: tuple[Integers, Floats] | None) -> None:
        """Choose the first active vectors under the uniform design, or nine parts of the warm start and one of it."""
        rank = self.frame.rank
        add_spanning(self.x, rank)
        white = np.eye(rank)
        if start is not None:
            warm = self.measurements.vectors(start[0]) @ self.frame.transform
            mixed = 0.9 * (warm * start[1][:, None]).T @ warm + 0.1 * np.eye(rank)
            white = np.linalg.inv(np.linalg.cholesky(mixed)).T
        members, lengths = self.directions.longest(self.frame.transform @ white, 4 * self.batch, self.y.members)
        if not lengths[0] > 0:
            raise InvalidInput("All directions are zero, so there is nothing to measure; check the items.")
        self.y.add(members[lengths > 1e-9 * lengths[0]], most=self.batch, mass=1.0)
        image = self.y.vectors @ white
        slack = 1.0 - np.einsum("ij,ij->i", image, image) / (1.1 * lengths[0])
        root = white @ _root((image / slack[:, None]).T @ image)
        members, _ = self.measurements.longest(self.frame.transform @ root, 4 * self.batch, self.x.members)
        self.x.add(members, most=self.batch, mass=1.0)
        if start is not None:
            self.x.mass *= 0.1 / len(self.x)
            self.x.add(start[0], most=len(start[0]), mass=start[1])

    def _look(self, central: Central) -> tuple[_Look, Integers, Integers]:
        """Find what the restricted problem does not know of."""
        weights, dual = central.mass / central.mass.sum(), central.dual / central.dual.sum()
        white = _whitener(self.x.vectors, weights)
        image = self.y.vectors @ white
        lengths = np.einsum("ij,ij->i", image, image)
        root = white @ _root((image * dual[:, None]).T @ image)
        inside = self.x.vectors @ root
        here = np.einsum("ij,ij->i", inside, inside)
        transform = self.frame.transform
        near = self.x.members[np.argsort(-here, kind="stable")[: self.batch]]
        new_x, steep = self.measurements.longest(transform @ root, 4 * self.batch, near)
        near = self.y.members[np.argsort(-lengths, kind="stable")[: self.batch]]
        new_y, long = self.directions.longest(transform @ white, 4 * self.batch, near)
        look = _Look(
            weights,
            dual,
            white,
            root,
            attained=float(dual @ lengths),
            value=max(float(lengths.max()), float(long[0])),
            steepest=max(float(here.max()), float(steep[0])),
        )
        return look, new_x[steep > 0.9 * here.max()], new_y[long > 0.9 * lengths.max()]

    def _revise(self, central: Central, look: _Look, new_x: Integers, new_y: Integers, *, forget: bool) -> int:
        """Drop what carries next to nothing (not for ever, so that the active sets must settle), add what was found."""
        self.x.mass, self.y.mass = central.mass, central.dual
        if forget:
            keep = look.weights > 1e-4 * look.weights.max()
            keep[: self.frame.rank] = True
            self.x.keep(keep)
            self.y.keep(look.dual > 1e-4 * look.dual.max())
        added = self.x.add(new_x, most=self.batch, mass=self.x.newcomer)
        return added + self.y.add(new_y, most=self.batch, mass=self.y.newcomer)

    def _certify(self, look: _Look) -> None:
        """Prove a lower bound over all measurement vectors and remember the best one."""
        transform = self.frame.transform
        steepest, _ = self.measurements.maximum(transform @ look.root, look.steepest)
        bound = look.attained**2 / steepest * (1.0 - ROUNDING)
        if bound > self.lower_bound:
            self.lower_bound = bound
            matrix = transform @ look.white
            self.certificate = Certificate(
                self.directions.vectors(self.y.members), look.dual, matrix @ matrix.T, self.y.members
            )

    def _finish(
        self, look: _Look, members: Integers, vectors: Floats, rounds: int, limits: Limits
    ) -> tuple[Outcome, Integers]:
        """Leave out negligible weights where that costs a tenth of the gap at most, and compute the value exactly."""
        transform = self.frame.transform
        for threshold in (*PRUNED, 0.0):
            kept = look.weights >= threshold / len(look.weights)
            weights = look.weights[kept] / look.weights[kept].sum()
            white = self._pruned_whitener(vectors[kept], weights, self.measurements.vectors(members[kept]))
            if white is None:
                continue
            image = self.y.vectors @ white
            known = float(np.max(np.einsum("ij,ij->i", image, image)))
            if threshold == 0.0 or known <= look.value * (1.0 + 0.1 * limits.gap):
                break
        assert white is not None
        value, found = self.directions.maximum(transform @ white, known)
        outcome = Outcome(
            members[kept], weights, value, min(self.lower_bound, value), self.iterations, rounds, self.certificate
        )
        return outcome, found

    def _pruned_whitener(self, vectors: Floats, weights: Floats, rows: Floats) -> Floats | None:
        """C with ‖yᵀC‖² = yᵀH⁺y for all directions, or None where some direction is no longer measured."""
        rank = self.frame.rank
        basis = np.eye(rank)
        if len(vectors) < rank or np.linalg.matrix_rank(vectors * np.sqrt(weights)[:, None], tol=1e-9) < rank:
            span = span_of(rows)
            if span.rank < rank:
                if self.directions.outside(span) is not None:
                    return None
                basis = sl.orth(vectors.T)[:, : span.rank]
        inside = vectors @ basis
        try:
            return np.asarray(basis @ _whitener(inside, weights))
        except np.linalg.LinAlgError:
            return None


def determinant_search(
    measurements: Family, limits: Limits, start: tuple[Integers, Floats] | None
) -> tuple[Outcome, Frame, Floats]:
    """Weights of largest det H; the value is max xᵀH⁻¹x, at best the rank. Also returns the vectors' coordinates."""
    frame = frame_of(measurements)
    rank, batch = frame.rank, max(6 * frame.rank, 24)
    active = Active(measurements, frame.transform)
    add_spanning(active, rank)
    members, _ = measurements.longest(frame.transform, 4 * batch, active.members)
    active.add(members, most=batch, mass=1.0)
    if start is not None:
        active.mass *= 0.1 / len(active)
        active.add(start[0], most=len(start[0]), mass=start[1])
    inner, rounds, iterations = 0.3, 0, 0
    while True:
        with threads_for(float(len(active)) ** 3):
            central = largest_determinant(active.vectors, active.mass, gap=inner)
        iterations, rounds = iterations + central.iterations, rounds + 1
        active.mass = central.mass
        weights = central.mass / central.mass.sum()
        white = _whitener(active.vectors, weights)
        here = float(np.max(np.einsum("ij,ij->i", active.vectors @ white, active.vectors @ white)))
        members, lengths = measurements.longest(frame.transform @ white, 4 * batch, active.members)
        value = max(here, float(lengths[0]))
        last = limits.exceeded(rounds)
        if value <= rank * (1.0 + limits.gap) or last:
            for threshold in (*PRUNED, 0.0):
                kept = weights >= threshold / len(weights)
                fewer = weights[kept] / weights[kept].sum()
                try:
                    slim = _whitener(active.vectors[kept], fewer)
                except np.linalg.LinAlgError:
                    continue
                known = float(np.max(np.einsum("ij,ij->i", active.vectors @ slim, active.vectors @ slim)))
                if threshold == 0.0 or known <= value + 0.1 * limits.gap * rank:
                    break
            exact, found = measurements.maximum(frame.transform @ slim, known)
            if last or exact <= rank * (1.0 + limits.gap):
                outcome = Outcome(active.members[kept], fewer, exact, min(float(rank), exact), iterations, rounds, None)
                return outcome, frame, active.vectors[kept]
            members = np.concatenate([found, members])
        inner = max(min(inner, 0.3 * (value / rank - 1.0)), 0.2 * limits.gap)
        if rounds < 20:
            keep = weights > 1e-4 * weights.max()
            keep[:rank] = True
            active.keep(keep)
        if not active.add(members, most=batch, mass=active.newcomer):
            inner *= 0.1


def _whitener(vectors: Floats, weights: Floats) -> Floats:
    """C with C Cᵀ = H(weights)⁻¹."""
    lower = np.linalg.cholesky((vectors * weights[:, None]).T @ vectors)
    return np.asarray(sl.solve_triangular(lower, np.eye(len(lower)), lower=True, check_finite=False).T)


def _root(matrix: Floats) -> Floats:
    """R with R Rᵀ = matrix, for a positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
