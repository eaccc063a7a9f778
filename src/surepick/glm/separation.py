"""Separation: a direction along which the likelihood never stops growing, found by linear programming."""

import numpy as np
import scipy  # its parts load when first used: scipy.optimize takes longer than importing all of surepick
import scipy.linalg as sl

from surepick._arrays import Floats
from surepick.linalg import column_scale, norms, span_of

TOLERANCE = 1e-12
"""A row counts as on the right side when its cosine with the direction, in the units of the columns, is above
−TOLERANCE: rounding only. Data that overlap ever so little have an estimate, if a far one."""

SOLVER_TOLERANCE = 1e-7
"""What the linear program may be off by before its solution is polished."""

ROWS_PER_CUT = 2000


def separating_direction(
    rows: Floats, pulls: Floats, wins: Floats, *, orthogonal_to: Floats | None = None
) -> Floats | None:
    """Return v ≠ 0 with xᵀv ≥ 0 on rows of ones, ≤ 0 on rows of zeros, = 0 on mixed rows; or None.

    Such a v exists exactly when the maximum-likelihood estimate does not (Albert and Anderson 1984); then
    every θ + c·v is at least as likely as θ. `orthogonal_to` restricts v to a hyperplane, for fits with an
    equality constraint. The rows must span the space. The linear program has d variables; its constraints
    are added in cuts of the most violated rows, so long data cost a few passes.
    """
    free, sides, units = _cone(rows, pulls, wins, orthogonal_to)
    if free.shape[1] == 0:
        return None
    direction = np.eye(free.shape[1])[0] if len(sides) == 0 else _point_on_the_right_side(sides)
    if direction is None:
        return None
    found = free @ direction / units
    return np.asarray(found / np.max(np.abs(found)))


def unbounded_towards(rows: Floats, pulls: Floats, wins: Floats, query: Floats) -> bool:
    """Whether θ can go to infinity with growing queryᵀθ while no answer ever becomes less likely; one linear program.

    Decided up to the tolerance of the solver, in doubt for yes.
    """
    free, sides, units = _cone(rows, pulls, wins, None)
    if free.shape[1] == 0:
        return False
    towards = query / units
    goal = towards @ free / float(np.max(np.abs(towards)))
    solution = scipy.optimize.linprog(-goal, A_ub=-sides, b_ub=np.zeros(len(sides)), bounds=(-1, 1), method="highs")
    return solution.x is None or float(goal @ solution.x) > SOLVER_TOLERANCE


def _cone(rows: Floats, pulls: Floats, wins: Floats, orthogonal_to: Floats | None) -> tuple[Floats, Floats, Floats]:
    """The directions along which no answer becomes less likely, as free @ v / units with sides·v ≥ 0."""
    units = column_scale(rows)
    units = np.where(units > 0, units, 1.0)
    rows = rows / units
    # A row with both answers pins xᵀv = 0; one with a single kind of answer only chooses a side.
    mixed = (wins > 0) & (wins < pulls)
    fixed = rows[mixed] if orthogonal_to is None else np.vstack([rows[mixed], orthogonal_to / units])
    free = _complement(fixed, rows.shape[1])
    pure = (pulls > 0) & ~mixed
    sides = np.where(wins[pure] > 0, 1.0, -1.0)[:, None] * rows[pure] @ free
    lengths = norms(sides)
    usable = lengths > 1e-9 * norms(rows[pure])
    return free, sides[usable] / lengths[usable, None], units


def _point_on_the_right_side(sides: Floats) -> Floats | None:
    """Maximise the sum of all sides·v over the cube, subject to sides·v ≥ 0, by cutting planes."""
    total = sides.sum(axis=0)
    active = np.unique(np.linspace(0, len(sides) - 1, ROWS_PER_CUT).astype(int))
    while True:
        solution = scipy.optimize.linprog(
            -total, A_ub=-sides[active], b_ub=np.zeros(len(active)), bounds=(-1, 1), method="highs"
        )
        # A separating direction has a positive sum, so an optimum of zero proves that there is none.
        if solution.x is None or float(total @ solution.x) <= TOLERANCE * max(1.0, float(np.abs(total).max())):
            return None
        direction = np.asarray(solution.x)
        reached = sides @ direction
        violated = np.flatnonzero(reached < -SOLVER_TOLERANCE)
        fresh = np.setdiff1d(violated[np.argsort(reached[violated])[:ROWS_PER_CUT]], active)
        if fresh.size == 0:  # the solver's own tolerance is all that is left
            return _polished(sides, direction)
        active = np.concatenate([active, fresh])


def _polished(sides: Floats, direction: Floats) -> Floats | None:
    """The direction made orthogonal to the rows it touches, if all rows are then on the right side; else None."""
    for candidate in (direction, _without(sides[np.abs(sides @ direction) <= 10 * SOLVER_TOLERANCE], direction)):
        length = float(np.linalg.norm(candidate))
        reached = sides @ candidate
        if length > 0 and reached.min() >= -TOLERANCE * length and reached.max() > SOLVER_TOLERANCE * length:
            return np.asarray(candidate)
    return None


def _without(rows: Floats, direction: Floats) -> Floats:
    """The part of a direction that is orthogonal to all rows."""
    free = _complement(rows, len(direction))
    return np.asarray(free @ (free.T @ direction))


def _complement(rows: Floats, dimension: int) -> Floats:
    """Orthonormal columns spanning what is orthogonal to all rows."""
    if len(rows) == 0:
        return np.eye(dimension)
    span = span_of(rows)
    if span.basis is None:
        return np.zeros((dimension, 0))
    return np.asarray(sl.qr(span.basis, mode="full")[0][:, span.rank :]) if span.rank else np.eye(dimension)
