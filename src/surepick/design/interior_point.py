"""The design problem on a few hundred vectors, by a primal-dual interior-point method.

Scale is free: with s = t·λ the design problem min over λ of max over y of yᵀH(λ)⁻¹y is

    minimise Σ s   subject to   f_y(s) = yᵀH(s)⁻¹y ≤ 1 for all y,   s ≥ 0,

whose optimal Σ s is the value. With multipliers w of the constraints and v of s ≥ 0, and G_yx = (xᵀH⁻¹y)²,
the optimum satisfies 1 = Gᵀw + v, w(1 − f) = 0, v·s = 0. The determinant criterion is the same with no directions:

    minimise Σ s − log det H(s)   subject to   s ≥ 0,      1 = diag(X H⁻¹ Xᵀ) + v, v·s = 0.

Both Hessians are known in closed form, 2(XH⁻¹Xᵀ)∘(XH⁻¹SH⁻¹Xᵀ), S = Σ w yyᵀ, and (XH⁻¹Xᵀ)∘(XH⁻¹Xᵀ), ∘ entry by
entry. A step costs O(m²(k + m + d)) for m measurement vectors and k directions, memory O(m² + mk); five to fifteen
steps suffice. The predictor and corrector follow_central_path Mehrotra (SIAM J. Optim. 2, 1992).
"""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
import scipy.linalg as sl

from surepick._arrays import Floats

BOUNDARY_FRACTION = 0.95
"""Fraction of the way to the nearest bound that a step may go; at 1 an entry would be zero and stay zero."""


@dataclass(frozen=True)
class CentralPoint:
    """A point near the central path of the restricted problem."""

    mass: Floats
    """s, one entry per measurement vector; the weights are s/Σs."""
    dual: Floats
    """w, one entry per direction (empty for the determinant)."""
    iterations: int
    gap: float
    """Relative gap between the value and the bound, both of the restricted problem."""


def solve_minimax(
    x: Floats,
    y: Floats,
    mass: Floats,
    dual: Floats | None,
    *,
    gap: float,
    deadline: float = np.inf,
    max_iterations: int = 60,
) -> CentralPoint:
    """Solve the restricted problem to a relative gap, from a positive start whose H is positive definite.

    `dual` None takes multipliers inversely proportional to the slacks, as on the central path. If the gap is not
    reached, the best point seen is returned.
    """
    start = _Minimax.start(x, y, mass, dual)
    best, iterations = follow_central_path(start, gap=gap, deadline=deadline, max_iterations=max_iterations)
    return CentralPoint(best.s, best.w, iterations, best.gap)


@dataclass(frozen=True)
class _Step:
    s: Floats
    u: Floats
    v: Floats
    w: Floats


class Iterate(ABC):
    """A point of the method for any problem: minimise Σ s subject to s ≥ 0 and concave slacks f(s) ≥ 0.

    At the optimum u = f(s), 1 = gᵀw + v, w·u = 0 and v·s = 0, where g = ∂f/∂s. u = f(s) holds only in the limit: if it
    were forced at every step, a curved f would allow only tiny steps once some slacks are small. Because scale is free,
    an infeasible iterate is still useful.
    """

    s: Floats
    v: Floats
    """Multipliers of s ≥ 0."""
    w: Floats
    """Multipliers of the slacks."""
    u: Floats
    residual: Floats
    """u − f(s)."""
    g: Floats
    """Gradients of the slacks, one row per slack."""

    @property
    @abstractmethod
    def gap(self) -> float:
        """Relative distance of the value from a bound."""

    @abstractmethod
    def curvature(self) -> Floats:
        """Hessian of −Σ w·f(s), positive semidefinite; the array may be overwritten."""

    @abstractmethod
    def at(self, s: Floats, u: Floats, v: Floats, w: Floats) -> Self | None:
        """The iterate at another point; None where it cannot be computed or is infeasible by a half or more."""

    def hessian(self) -> Floats:
        """The matrix of Newton's system in s, the other unknowns eliminated."""
        matrix = self.curvature()
        # Eliminating du and dw leaves gᵀ diag(w/u) g; eliminating dv leaves diag(v/s).
        slopes = self.g * np.sqrt(self.w / self.u)[:, None]
        matrix += slopes.T @ slopes
        matrix[np.diag_indices(len(matrix))] += self.v / self.s
        return matrix

    def direction(
        self, newton: "_NewtonMatrix", target: float, products_w: Floats | float, products_v: Floats | float
    ) -> _Step:
        """Newton's step towards w·u = v·s = target, with the given products of steps carried to the right side."""
        right_w, right_v = target - products_w, target - products_v
        s = newton.solve(((right_w + self.w * self.residual) / self.u) @ self.g + right_v / self.s - 1.0)
        # Back-substitution, in the order in which the unknowns were eliminated.
        u = self.g @ s - self.residual
        w = (right_w - self.w * u) / self.u - self.w
        v = (right_v - self.v * s) / self.s - self.v
        return _Step(s, u, v, w)

    def move(self, step: _Step) -> Self | None:
        """Go along the step as far as everything stays positive; None where even a thousandth of it is too far."""
        # Primal and dual steps have lengths of their own, so that one side at its bound does not stop the other.
        primal = min(1.0, BOUNDARY_FRACTION * min(max_step(self.s, step.s), max_step(self.u, step.u)))
        dual = min(1.0, BOUNDARY_FRACTION * min(max_step(self.w, step.w), max_step(self.v, step.v)))
        v, w = self.v + dual * step.v, self.w + dual * step.w
        while primal > 1e-3:
            moved = self.at(self.s + primal * step.s, self.u + primal * step.u, v, w)
            if moved is not None:
                return moved
            primal *= 0.7
        return None


Point = TypeVar("Point", bound=Iterate)


def follow_central_path(
    state: Point, *, gap: float, deadline: float = np.inf, max_iterations: int = 60
) -> tuple[Point, int]:
    """Follow the central path from a point until the gap is reached; the best point seen, and the steps taken."""
    size = len(state.s) + len(state.u)
    best, iterations = state, 0
    while best.gap > gap and iterations < max_iterations and time.perf_counter() < deadline:
        iterations += 1
        newton = _factor(state.hessian())
        if newton is None:
            break
        mean_product = float(state.v @ state.s + state.w @ state.u) / size
        # Predictor: aim at the optimum (all products zero) and see how far the bounds allow to go.
        aimed = state.direction(newton, 0.0, 0.0, 0.0)
        primal = min(1.0, max_step(state.s, aimed.s), max_step(state.u, aimed.u))
        dual = min(1.0, max_step(state.w, aimed.w), max_step(state.v, aimed.v))
        predicted = float((state.v + dual * aimed.v) @ (state.s + primal * aimed.s))
        predicted += float((state.w + dual * aimed.w) @ (state.u + primal * aimed.u))
        # Mehrotra's cube: a predictor that goes far needs little centring, one that is blocked needs much. With
        # the floor of 1e-3 no step aims at the boundary itself.
        target = mean_product * min(max((predicted / size / mean_product) ** 3, 1e-3), 1.0)
        # Corrector: the products the linearisation left out, and as much centring as the predictor found necessary.
        step = state.direction(newton, target, aimed.w * aimed.u, aimed.v * aimed.s)
        moved = state.move(step)
        if moved is None:
            # Blocked: a pure centring step moves away from the bounds at the same duality gap.
            moved = state.move(state.direction(newton, mean_product, 0.0, 0.0))
        if moved is None:
            break
        state = moved
        if state.gap < best.gap:
            best = state
    return best, iterations


class _Minimax(Iterate):
    """An iterate: s, v of the measurement vectors, w and slack 1 − f of the directions."""

    def __init__(
        self, x: Floats, y: Floats, s: Floats, u: Floats | None, v: Floats, w: Floats, xw: Floats, yw: Floats
    ) -> None:
        self.x, self.y, self.s, self.v, self.w = x, y, s, v, w
        # Whitened by H(s), so that inner products of rows are those of H⁻¹.
        self.xw, self.yw = xw, yw
        self.f = np.einsum("ij,ij->i", yw, yw)
        self.u = 1.0 - self.f if u is None else u
        self.residual = self.u + self.f - 1.0
        # −∂f_y/∂s_x = (xᵀH⁻¹y)², the slope of the slack 1 − f_y.
        self.g = (yw @ xw.T) ** 2
        self.g_w = w @ self.g

    @classmethod
    def start(cls, x: Floats, y: Floats, mass: Floats, dual: Floats | None) -> "_Minimax":
        """Scale into the interior of both problems, and lift products that lag far behind the others."""
        white = whitener(x, mass)
        xw, yw = x @ white, y @ white
        f = np.einsum("ij,ij->i", yw, yw)
        # f is homogeneous of degree −1: multiplying s by 1.1·max f makes every slack at least 1 − 1/1.1.
        stretch = 1.1 * float(f.max())
        s, f = mass * stretch, f / stretch
        xw, yw = xw / np.sqrt(stretch), yw / np.sqrt(stretch)
        w = 1.0 / (1.0 - f) if dual is None else dual
        # Likewise the dual: with gᵀw ≤ 1/1.1 the multipliers v = 1 − gᵀw are positive.
        g_w = w @ (yw @ xw.T) ** 2
        w = w / (1.1 * float(g_w.max()))
        v = 1.0 - g_w / (1.1 * float(g_w.max()))
        # Products far below the mean would block the first steps.
        mean_product = (v @ s + w @ (1.0 - f)) / (len(x) + len(y))
        w = np.maximum(w, 0.1 * mean_product / (1.0 - f))
        v = np.maximum(v, 0.1 * mean_product / s)
        return cls(x, y, s, None, v, w, xw, yw)

    @property
    def gap(self) -> float:
        """Relative distance of the value from the bound f_w²/max g, both of the restricted problem."""
        # The certificate of docs/design.md with M = H⁻¹; both numbers are free of the scale of s and of w.
        weighted = float(self.w @ self.f)
        bound = weighted**2 / (float(self.g_w.max()) * float(self.w.sum()))
        return float(self.s.sum()) * float(self.f.max()) / bound - 1.0

    def curvature(self) -> Floats:
        """2(XH⁻¹Xᵀ)∘(XH⁻¹SH⁻¹Xᵀ)."""
        weighted = (self.yw * self.w[:, None]).T @ self.yw
        matrix = np.asarray(self.xw @ (2.0 * weighted) @ self.xw.T)
        matrix *= self.xw @ self.xw.T
        return matrix

    def at(self, s: Floats, u: Floats, v: Floats, w: Floats) -> "_Minimax | None":
        """The iterate at s, whitened by H(s)."""
        try:
            white = whitener(self.x, s)
        except sl.LinAlgError:
            return None
        moved = _Minimax(self.x, self.y, s, u, v, w, self.x @ white, self.y @ white)
        # Infeasible by a half or more: the linearisation does not hold there, so a shorter step is taken.
        return moved if moved.f.max() <= 1.5 else None


def maximise_determinant(
    x: Floats, mass: Floats, *, gap: float, deadline: float = np.inf, max_iterations: int = 60
) -> CentralPoint:
    """Maximise det H on the given vectors until max xᵀH(λ)⁻¹x ≤ d(1 + gap) among them.

    The start needs the same as that of `solve_minimax`. There is only one kind of constraint (s ≥ 0), so the iterate is
    held in plain variables: s, its multipliers v, and k = diag(XH⁻¹Xᵀ), which at the optimum is 1 − v.
    """
    dimension = x.shape[1]
    # At the optimum Σ s = tr(H⁻¹H) = d, so begin on that scale.
    s = mass * (dimension / float(mass.sum()))
    xw = x @ whitener(x, s)
    k = np.einsum("ij,ij->i", xw, xw)
    v = np.maximum(1.0 - k, 0.1)
    iterations = 0
    # max xᵀH(λ)⁻¹x with λ = s/Σs is Σs·max k. Kiefer and Wolfowitz: it is at least d, with equality at the optimum.
    while float(s.sum()) * float(k.max()) > dimension * (1.0 + gap) and iterations < max_iterations:
        if time.perf_counter() >= deadline:
            break
        iterations += 1
        # Hessian of −log det H(s), and the diagonal v/s that eliminating dv from v·s = target leaves.
        matrix = (xw @ xw.T) ** 2
        matrix[np.diag_indices(len(matrix))] += v / s
        newton = _factor(matrix)
        if newton is None:
            break
        mean_product = float(v @ s) / len(s)
        # Predictor towards v·s = 0, then the corrector, as in `follow_central_path`.
        ds = newton.solve(k - 1.0)
        dv = -v - v * ds / s
        predicted = (v + min(1.0, max_step(v, dv)) * dv) @ (s + min(1.0, max_step(s, ds)) * ds) / len(s)
        target = mean_product * min(max((predicted / mean_product) ** 3, 1e-3), 1.0)
        right = target - dv * ds
        ds = newton.solve(k - 1.0 + right / s)
        dv = (right - v * ds) / s - v
        v = v + min(1.0, BOUNDARY_FRACTION * max_step(v, dv)) * dv
        s = s + min(1.0, BOUNDARY_FRACTION * max_step(s, ds)) * ds
        try:
            xw = x @ whitener(x, s)
        except sl.LinAlgError:
            break
        k = np.einsum("ij,ij->i", xw, xw)
    return CentralPoint(s, np.zeros(0), iterations, float(s.sum()) * float(k.max()) / dimension - 1.0)


def whitener(vectors: Floats, weights: Floats) -> Floats:
    """C with C Cᵀ = H(weights)⁻¹; raises LinAlgError where H is singular to working precision."""
    lower = sl.cholesky((vectors * weights[:, None]).T @ vectors, lower=True, check_finite=False)
    inverse = sl.solve_triangular(lower, np.eye(len(lower)), lower=True, check_finite=False)
    return np.ascontiguousarray(inverse.T)


@dataclass(frozen=True)
class _NewtonMatrix:
    """A Cholesky factor of the matrix with its diagonal scaled to one."""

    scale: Floats
    lower: Floats

    def solve(self, right: Floats) -> Floats:
        inner = sl.cho_solve((self.lower, True), self.scale * right, check_finite=False)
        return np.asarray(self.scale * inner)


def _factor(matrix: Floats) -> _NewtonMatrix | None:
    """Factor a Newton matrix, overwriting it, after scaling its diagonal to one; a small ridge answers rounding."""
    diagonal = np.diag(matrix).copy()
    if not (np.isfinite(diagonal).all() and (diagonal > 0).all()):
        return None
    scale = 1.0 / np.sqrt(diagonal)
    matrix *= scale
    matrix *= scale[:, None]
    # Near the optimum the matrix is singular to rounding; a slightly wrong Newton step still descends, and the gap is
    # measured afresh at every point, so a ridge costs accuracy of the step and never of the result.
    for ridge in (1e-13, 1e-11, 1e-9, 1e-7):
        matrix[np.diag_indices(len(matrix))] = 1.0 + ridge
        try:
            return _NewtonMatrix(scale, np.asarray(sl.cholesky(matrix, lower=True, check_finite=False)))
        except sl.LinAlgError:
            continue
    return None


def max_step(values: Floats, step: Floats) -> float:
    """The largest multiple of the step that keeps the values nonnegative."""
    shrinking = step < 0
    return float(np.min(values[shrinking] / -step[shrinking], initial=np.inf))
