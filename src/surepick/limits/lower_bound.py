"""The least number of questions that any method needs on a given instance, with a certificate from both sides.

    E[τ] ≥ kl(1 − δ, δ) / V*,    V* = max over λ of min over rivals z of min {Σ λ_x·KL(x; θ*, θ) : (z* − z)ᵀθ ≤ 0}

for every method that returns the best item with probability 1 − δ whatever θ is (proof: docs/limits.md). Weights λ show
that V* is at least their own value; weights w on alternatives θ_i show that V* ≤ max over x of Σ w_i·KL(x; θ*, θ_i).
Only the second proves a number of questions; the first says that this way of arguing cannot prove much more.

Scale is free: with s = t·λ the problem is to minimise Σ s subject to f_z(s) ≥ 1, f_z concave and homogeneous. It is
solved on few vectors and rivals by the interior-point method of `design`, which then looks for others that matter.
"""

import math
import time
from dataclasses import dataclass

import numpy as np

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick.design import DesignStatus
from surepick.design.cutting_planes import ENTRY_MASS, ActiveSet, add_spanning, batch_size
from surepick.design.interior_point import Iterate, follow_central_path
from surepick.design.vector_families import Rows
from surepick.errors import InvalidInput
from surepick.guarantee import Guarantee
from surepick.limits.alternatives import (
    MeasuredRows,
    NearestAlternatives,
    ScaledInverses,
    nearest_alternatives,
    quadratic_alternatives,
)
from surepick.limits.complexity import rho_opt
from surepick.limits.instance import Instance, kl_divergence
from surepick.linalg import blocks, threads_for

ROUNDING = 1e-9
"""The dual value is raised by this fraction, and by what rounding can do to the constraint (z* − z)ᵀθ ≤ 0."""

ROUNDS, PATIENCE = 60, 8
"""Most rounds, and most consecutive rounds without progress; then the best bounds so far are returned."""

MAX_SECONDS = 60.0
"""Enough for thousands of items. Where answers are all but certain, as in the 1/κ₀ family from 80 items on, the
interior-point method takes tiny steps, and would go on for hours."""

NEAR = 4.0
"""Rivals up to this many times as costly as the hardest are evaluated in every round."""


@dataclass(frozen=True)
class LowerBound:
    """What any method needs, and why.

    The statement is proved in docs/limits.md; it needs `alternatives` and their weights only, which can be checked by
    `dual_of`.
    """

    delta: float
    best: int
    """Index of the best item."""
    questions: float
    """No method of error probability delta asks fewer on average: kl(1 − delta, delta)/dual."""
    value: float
    """V(λ) ≤ V*, the information a question yields against the hardest rival, under `weights`."""
    dual: float
    """V* ≤ dual, by the alternatives."""
    support: Integers
    """Measurement vectors that have weight."""
    weights: Floats
    """λ on them: how an oracle that knows θ* would ask."""
    rivals: Integers
    """The rival of each alternative."""
    alternatives: Floats
    """θ_i, one per row, each making its rival as good as the best."""
    dual_weights: Floats
    status: DesignStatus
    rounds: int
    iterations: int
    seconds: float
    guarantee: Guarantee = Guarantee.PROVED

    @property
    def gap(self) -> float:
        """How far `dual` may be above V*, relatively."""
        return _excess(self.dual, self.value)

    @property
    def questions_at_most(self) -> float:
        """What the best alternatives could prove at most: kl(1 − delta, delta)/value."""
        return nats(self.delta) / self.value if self.value > 0 else math.inf

    @property
    def sentence(self) -> str:
        """How far the search for the bound got."""
        if self.status is DesignStatus.CONVERGED:
            return f"Certified to {100 * self.gap:.2g}% in {self.seconds:.2g} s."
        most = (
            f"at most {self.questions_at_most:,.4g}" if math.isfinite(self.questions_at_most) else "an unknown number"
        )
        return (
            f"Not converged in {self.seconds:.2g} s: {self.questions:,.4g} questions are proved, and alternatives not "
            f"found so far may prove {most}; allow more seconds, or accept this bound."
        )

    def at(self, delta: float) -> float:
        """The bound for another delta; V* does not depend on it."""
        return nats(delta) / self.dual

    def dual_of(self, instance: Instance) -> float:
        """Compute the dual value again from the data; O(n k d) for n measurement vectors and k alternatives."""
        logits = instance.logits[:, None]
        return float((kl_divergence(logits, instance.measurements @ self.alternatives.T) @ self.dual_weights).max())


def nats(delta: float) -> float:
    """kl(1 − δ, δ) = (1 − 2δ)·log((1 − δ)/δ); refuses a δ of one half or more, for which nothing must be asked."""
    delta = validate.probability("delta", delta)
    if delta >= 0.5:
        raise InvalidInput(
            f"delta must be below 0.5 for the lower bound to be positive, got {delta:g}; 0.05 is customary."
        )
    return (1 - 2 * delta) * math.log((1 - delta) / delta)


def lower_bound(
    instance: Instance, *, delta: float = 0.05, gap: float = 0.01, max_seconds: float | None = MAX_SECONDS
) -> LowerBound:
    """The least expected number of questions on this instance, certified to a relative `gap`.

    After `max_seconds` (None: never) the best bound so far is returned: proved, with a `sentence` on how far it got.

    Proved for every method that errs with probability at most delta under each θ; see the head of this module. A round
    costs O(k m d²) a Newton step for m active vectors and k rivals, and O(n k d) to evaluate all n vectors; memory is
    O(n + k·d² + m·d²) beyond the data.

    >>> bound = lower_bound(Instance([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]], [1.0, 0.5]), gap=1e-6)
    >>> round(bound.questions, 1), bound.gap < 1e-6
    (391.7, True)
    """
    began = time.perf_counter()
    nats(delta)
    gap = validate.positive("gap", gap)
    seconds = math.inf if max_seconds is None else validate.positive("max_seconds", max_seconds)
    with threads_for(0.0), np.errstate(over="ignore"):  # multipliers of answers that are all but certain
        return _LowerBoundSearch(instance).run(delta, gap, began, seconds)


class _BoundIterate(Iterate):
    """Masses s on active vectors, w and slack u = f − 1 of active rivals, and the alternatives in between."""

    def __init__(
        self,
        measured: MeasuredRows,
        normals: Floats,
        gaps: Floats,
        nearest: NearestAlternatives,
        u: Floats | None,
        v: Floats,
        w: Floats,
        tolerance: float,
    ) -> None:
        self.measured, self.normals, self.gaps, self.nearest, self.tolerance = (
            measured,
            normals,
            gaps,
            nearest,
            tolerance,
        )
        self.s, self.v, self.w = measured.mass, v, w
        self.u = nearest.cost - 1.0 if u is None else u
        self.residual = self.u - (nearest.cost - 1.0)
        # By the envelope theorem ∂f_z/∂s_x is KL(x; θ*, θ_z) at the minimiser.
        self.g = measured.divergences(nearest.shift)
        self.g_w = w @ self.g

    @classmethod
    def start(
        cls, measured: MeasuredRows, normals: Floats, gaps: Floats, shift: Floats, w: Floats | None, tolerance: float
    ) -> "_BoundIterate":
        """Scale into the interior of both problems, and lift products far below the mean."""
        nearest = nearest_alternatives(measured, normals, gaps, shift, tolerance=tolerance)
        # The cost is homogeneous of degree one in s: scale it so that every slack f − 1 is at least 0.1.
        stretch = 1.1 / float(nearest.cost.min())
        measured = measured.with_mass(measured.mass * stretch)
        nearest = NearestAlternatives(nearest.shift, nearest.cost * stretch, nearest.floor * stretch)
        slack, g = nearest.cost - 1.0, measured.divergences(nearest.shift)
        w = 1.0 / slack if w is None else w
        g_w = w @ g
        # Likewise the dual, so that v = 1 − gᵀw is positive; then lift products that would block the first steps.
        w = w / (1.1 * float(g_w.max()))
        v = 1.0 - g_w / (1.1 * float(g_w.max()))
        centre = float(v @ measured.mass + w @ slack) / (len(v) + len(w))
        w = np.maximum(w, 0.1 * centre / slack)
        v = np.maximum(v, 0.1 * centre / measured.mass)
        return cls(measured, normals, gaps, nearest, None, v, w, tolerance)

    @property
    def gap(self) -> float:
        """Dual over primal value of the restricted problem, less one."""
        dual = float(self.g_w.max()) / float(self.w.sum())
        return dual * float(self.s.sum()) / float(self.nearest.cost.min()) - 1.0

    def curvature(self) -> Floats:
        """Σ w·RPRᵀ with rows r_x·x of R and P the inverse Hessian of the rival within its hyperplane."""
        x, shift = self.measured.x, self.nearest.shift
        inverses = ScaledInverses(self.measured.hessians(shift))
        across = inverses.times(self.normals)
        lengths = np.sqrt(np.einsum("ij,ij->i", self.normals, across))
        along = across / lengths[:, None]
        # P = H⁻¹ − H⁻¹vvᵀH⁻¹/(vᵀH⁻¹v): θ_z moves within its hyperplane only.
        inside = inverses.matrices() - along[:, :, None] * along[:, None, :]
        # Roots of P make the sum one product of tall matrices; rounding may leave eigenvalues just below zero.
        values, vectors = np.linalg.eigh(inside)
        roots = vectors * np.sqrt(np.maximum(values, 0.0) * self.w[:, None])[:, None, :]
        images = np.matmul(x, roots) * self.measured.slopes(shift)[:, :, None]
        stacked = np.ascontiguousarray(images.transpose(1, 0, 2)).reshape(len(x), -1)
        return np.asarray(stacked @ stacked.T)

    def at(self, s: Floats, u: Floats, v: Floats, w: Floats) -> "_BoundIterate | None":
        """Solve the rivals at masses s, starting from their present alternatives."""
        measured = self.measured.with_mass(s)
        nearest = nearest_alternatives(measured, self.normals, self.gaps, self.nearest.shift, tolerance=self.tolerance)
        moved = _BoundIterate(measured, self.normals, self.gaps, nearest, u, v, w, self.tolerance)
        # Infeasible by a half or more: outside the reach of the linearisation, so a shorter step is taken.
        return moved if nearest.cost.min() >= 0.5 else None


@dataclass(frozen=True)
class _PrimalDual:
    """The restricted problem's solution, evaluated over all vectors and rivals: the value and the dual."""

    value: float
    dual: float
    x: Integers
    weights: Floats
    y: Integers
    dual_weights: Floats
    shift: Floats
    """θ_z − θ* of the active rivals."""
    information: Floats
    """Σ w·KL of every vector: those above the dual of the active ones should have weight."""
    cost: Floats
    """Cost of every rival: those below the value of the active ones should be active."""


class _LowerBoundSearch:
    """Rounds of solving on active vectors and rivals; one object per call."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        transform = instance.basis.transform
        self.rows = instance.measurements @ transform
        self.rivals = instance.rivals
        self.gaps = instance.gaps[self.rivals]
        self.normals = (instance.items[instance.best] - instance.items[self.rivals]) @ transform
        self.batch = batch_size(instance.basis.rank)
        differences = np.abs(instance.items[instance.best] - instance.items[self.rivals]) @ np.abs(instance.theta)
        # How far rounding of z* − z may push an alternative over to the wrong side, relative to the gap.
        self.rounding = 1e-14 * float(np.max(differences / self.gaps))
        self.spanning, self.x, self.mass, self.y = self._begin()
        self.w: Floats | None = None
        first = MeasuredRows.of(self.rows[self.x], instance.logits[self.x], self.mass)
        self.shift = quadratic_alternatives(first, self.normals, self.gaps)
        """θ_z − θ* of all rivals as last computed: the next Newton iteration starts there."""
        cost = first.divergences(self.shift) @ first.mass
        self.near = np.union1d(self.y, np.argsort(cost, kind="stable")[: 4 * self.batch])
        """Rivals that are evaluated in every round; the others only before a bound is returned."""

    def run(self, delta: float, gap: float, began: float, seconds: float) -> LowerBound:
        """Rounds until the gap is proved or a limit is reached; the best bound of either side counts."""
        inner, rounds, iterations = 0.1, 0, 0
        least, stale = math.inf, 0
        primal: _PrimalDual | None = None
        dual: _PrimalDual | None = None
        while True:
            measured = MeasuredRows.of(self.rows[self.x], self.instance.logits[self.x], self.mass)
            start = _BoundIterate.start(
                measured, self.normals[self.y], self.gaps[self.y], self.shift[self.y], self.w, _precision(inner)
            )
            state, steps = follow_central_path(start, gap=inner, deadline=began + seconds)
            rounds, iterations = rounds + 1, iterations + steps
            self.mass, self.w = state.s, state.w
            evaluated = self._evaluate(state, self.near, 1e-3 * min(inner, gap))
            dual = evaluated if dual is None or evaluated.dual < dual.dual else dual
            excess = _excess(dual.dual, evaluated.value)
            least, stale = (excess, 0) if excess < 0.9 * least else (least, stale + 1)
            last = stale == PATIENCE or rounds == ROUNDS or inner < 1e-12 or time.perf_counter() - began >= seconds
            if last or excess <= gap:  # only now is it worth evaluating every rival
                evaluated = self._evaluate(state, np.arange(len(self.rivals)), 1e-3 * gap)
                primal = evaluated if primal is None or evaluated.value > primal.value else primal
                self.near = np.flatnonzero(evaluated.cost < NEAR * evaluated.cost.min())
            reached = math.inf if primal is None else _excess(dual.dual, primal.value)
            if primal is not None and (last or reached <= gap):
                status = DesignStatus.CONVERGED if reached <= gap else DesignStatus.NOT_CONVERGED
                return self._result(delta, primal, dual, status, rounds, iterations, began)
            # Solving the restricted problem much better than it approximates the whole would be wasted.
            inner = max(min(inner, 0.3 * _excess(evaluated.dual, evaluated.value)), 0.3 * gap)
            if not self._revise(evaluated):
                inner *= 0.1  # Nothing to add: only the accuracy of the restricted problem is missing.

    def _begin(self) -> tuple[Integers, Integers, Floats, Integers]:
        """Vectors, masses and rivals of the quadratic approximation, and vectors that span the space."""
        instance, rank = self.instance, self.instance.basis.rank
        spanning = ActiveSet(Rows(instance.measurements), instance.basis.transform)
        add_spanning(spanning, rank)
        first = spanning.members[:, 0]
        try:
            design = rho_opt(instance, gap=0.1)
        except InvalidInput:  # not measurable to working precision, where some answers are all but certain
            return first, first, np.full(rank, 1.0 / rank), np.argsort(self.gaps, kind="stable")[: self.batch]
        others = np.setdiff1d(first, design.support)
        mass = np.concatenate([design.weights, np.full(len(others), 1e-3 / rank)])
        assert design.certificate is not None
        matter = design.certificate.weights > 1e-3 * design.certificate.weights.max()
        hardest = np.unique(design.certificate.members[matter, 1])
        return first, np.concatenate([design.support, others]), mass, np.searchsorted(self.rivals, hardest)

    def _evaluate(self, state: _BoundIterate, rivals: Integers, tolerance: float) -> _PrimalDual:
        """The dual over all vectors, and the value over the given rivals."""
        weights, dual_weights = state.s / state.s.sum(), state.w / state.w.sum()
        shift = state.nearest.shift
        information = np.empty(len(self.rows))
        for part in blocks(self.rows):
            logits = self.instance.logits[part, None]
            information[part] = kl_divergence(logits, logits + self.rows[part] @ shift.T) @ dual_weights
        cost, floor = self._costs(state.measured.with_mass(weights), rivals, tolerance)
        return _PrimalDual(
            value=float(floor.min()),
            dual=float(information.max()) * (1.0 + ROUNDING + self.rounding),
            x=self.x,
            weights=weights,
            y=self.y,
            dual_weights=dual_weights,
            shift=shift,
            information=information,
            cost=cost,
        )

    def _costs(self, measured: MeasuredRows, rivals: Integers, tolerance: float) -> tuple[Floats, Floats]:
        """Cost of the given rivals from both sides, precise for those that may be the hardest; infinite for others."""
        cost, floor = np.full(len(self.rivals), np.inf), np.full(len(self.rivals), np.inf)
        again, wanted = rivals, 0.0
        # A floor below the smallest cost may be the true minimum or mere inaccuracy: solve those rivals again, better.
        while again.size:
            with threads_for(20.0 * len(again) * len(self.x) * self.rows.shape[1] ** 2):
                found = nearest_alternatives(
                    measured, self.normals[again], self.gaps[again], self.shift[again], tolerance=tolerance
                )
            self.shift[again] = found.shift
            floor[again] = np.where(np.isfinite(cost[again]), np.maximum(floor[again], found.floor), found.floor)
            cost[again] = found.cost
            wanted = (1.0 - tolerance) * float(cost.min()) if wanted == 0.0 else wanted
            again = rivals[floor[rivals] < wanted] if tolerance > 1e-22 else rivals[:0]
            tolerance *= 1e-6
        return cost, floor

    def _revise(self, evaluated: _PrimalDual) -> int:
        """Drop what carries next to nothing and add what was found; return how many were added."""
        assert self.w is not None
        keep = (evaluated.weights > 1e-4 * evaluated.weights.max()) | (
            evaluated.information[self.x] > 0.9 * evaluated.dual
        )
        keep |= np.isin(self.x, self.spanning)  # without them the Hessians could be singular
        self.x, self.mass = self.x[keep], self.mass[keep]
        keep = (evaluated.dual_weights > 1e-4 * evaluated.dual_weights.max()) | (
            evaluated.cost[self.y] < 1.1 * evaluated.value
        )
        self.y, self.w = self.y[keep], self.w[keep]
        new_x = _first_others(-evaluated.information, self.x, self.batch)
        new_x = new_x[evaluated.information[new_x] > 0.95 * float(evaluated.information[self.x].max())]
        new_y = _first_others(evaluated.cost, self.y, self.batch)
        new_y = new_y[evaluated.cost[new_y] < 1.05 * float(evaluated.cost[self.y].min())]
        self.x, self.y = np.append(self.x, new_x), np.append(self.y, new_y)
        self.mass = np.append(self.mass, np.full(len(new_x), ENTRY_MASS * self.mass.mean()))
        self.w = np.append(self.w, np.full(len(new_y), ENTRY_MASS * self.w.mean()))
        return len(new_x) + len(new_y)

    def _result(
        self,
        delta: float,
        primal: _PrimalDual,
        dual: _PrimalDual,
        status: DesignStatus,
        rounds: int,
        iterations: int,
        began: float,
    ) -> LowerBound:
        matter = dual.dual_weights > 0
        alternatives = self.instance.theta + dual.shift[matter] @ self.instance.basis.transform.T
        order = np.argsort(primal.x, kind="stable")
        return LowerBound(
            delta=delta,
            best=self.instance.best,
            questions=nats(delta) / dual.dual,
            value=primal.value,
            dual=dual.dual,
            support=primal.x[order],
            weights=primal.weights[order],
            rivals=self.rivals[dual.y[matter]],
            alternatives=alternatives,
            dual_weights=dual.dual_weights[matter],
            status=status,
            rounds=rounds,
            iterations=iterations,
            seconds=time.perf_counter() - began,
        )


def _excess(dual: float, value: float) -> float:
    return dual / value - 1.0 if value > 0 else math.inf


def _precision(gap: float) -> float:
    """The dual value depends on the alternatives to first order, the cost to second: hence the square."""
    return max((0.01 * gap) ** 2, 1e-22)


def _first_others(keys: Floats, known: Integers, most: int) -> Integers:
    """Indices of the smallest keys that are not known yet."""
    order = np.argsort(keys, kind="stable")[: most + len(known)]
    return order[~np.isin(order, known)][:most]
