"""The design problem on a few hundred vectors, by a primal-dual interior-point method.

Scale is free: with s = t·λ the design problem min over λ of max over y of yᵀH(λ)⁻¹y is

    minimise Σ s   subject to   f_y(s) = yᵀH(s)⁻¹y ≤ 1 for all y,   s ≥ 0,

whose optimal Σ s is the value. With multipliers w of the constraints and v of s ≥ 0, and G_yx = (xᵀH⁻¹y)²,
the optimum satisfies 1 = Gᵀw + v, w(1 − f) = 0, v·s = 0. The determinant criterion is the same with no directions:

    minimise Σ s − log det H(s)   subject to   s ≥ 0,      1 = diag(X H⁻¹ Xᵀ) + v, v·s = 0.

Both Hessians are known in closed form, 2(XH⁻¹Xᵀ)∘(XH⁻¹SH⁻¹Xᵀ), S = Σ w yyᵀ, and (XH⁻¹Xᵀ)∘(XH⁻¹Xᵀ), ∘ entry by
entry. A step costs O(m²(k + m + d)) for m measurement vectors and k directions, memory O(m² + mk); five to fifteen
steps suffice. The predictor and corrector follow Mehrotra (SIAM J. Optim. 2, 1992).
"""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
import scipy.linalg as sl

from surepick._arrays import Floats
from surepick.design.whitened_basis import whitener

TO_THE_BOUNDARY = 0.95
"""Fraction of the way to the nearest bound that a step may go."""


@dataclass(frozen=True)
class Central:
    """A point near the central path of the restricted problem."""

    mass: Floats
    """s, one entry a measurement vector; the weights are s/Σs."""
    dual: Floats
    """w, one entry a direction (empty for the determinant)."""
    iterations: int
    gap: float
    """Relative gap between the value and the bound, both of the restricted problem."""


def minimax(
    x: Floats, y: Floats, mass: Floats, dual: Floats | None, *, gap: float, deadline: float = np.inf, most: int = 60
) -> Central:
    """Solve the restricted problem to a relative gap, from a positive start whose H is positive definite.

    `dual` None takes multipliers inversely proportional to the slacks, as on the central path. The best point seen
    is returned also where the gap is not reached.
    """
    best, iterations = follow(_Minimax.start(x, y, mass, dual), gap=gap, deadline=deadline, most=most)
    return Central(best.s, best.w, iterations, best.gap)


@dataclass(frozen=True)
class _Step:
    s: Floats
    u: Floats
    v: Floats
    w: Floats


class Iterate(ABC):
    """A point of the method for any problem: minimise Σ s subject to s ≥ 0 and concave slacks f(s) ≥ 0.

    At the optimum u = f(s), 1 = gᵀw + v, w·u = 0 and v·s = 0, where g = ∂f/∂s. u = f(s) holds in the limit only. Tied
    to it at every step, a curved f would allow tiny steps once some slacks are small; and as scale is free, an iterate
    need not be feasible to be of use.
    """

    s: Floats
    v: Floats
    """Multipliers of s ≥ 0."""
    w: Floats
    """Multipliers of the slacks."""
    u: Floats
    missed: Floats
    """u − f(s)."""
    g: Floats
    """Slopes of the slacks, one row a slack."""

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
        slopes = self.g * np.sqrt(self.w / self.u)[:, None]
        matrix += slopes.T @ slopes
        matrix[np.diag_indices(len(matrix))] += self.v / self.s
        return matrix

    def direction(
        self, newton: "_Newton", centre: float, products_w: Floats | float, products_v: Floats | float
    ) -> _Step:
        """Newton's step towards w·u = v·s = centre, with the given products of steps carried to the right side."""
        right_w, right_v = centre - products_w, centre - products_v
        s = newton.solve(((right_w + self.w * self.missed) / self.u) @ self.g + right_v / self.s - 1.0)
        u = self.g @ s - self.missed
        w = (right_w - self.w * u) / self.u - self.w
        v = (right_v - self.v * s) / self.s - self.v
        return _Step(s, u, v, w)

    def move(self, step: _Step) -> Self | None:
        """Go along the step as far as everything stays positive."""
        primal = min(1.0, TO_THE_BOUNDARY * min(_room(self.s, step.s), _room(self.u, step.u)))
        below = min(1.0, TO_THE_BOUNDARY * min(_room(self.w, step.w), _room(self.v, step.v)))
        v, w = self.v + below * step.v, self.w + below * step.w
        while primal > 1e-3:
            moved = self.at(self.s + primal * step.s, self.u + primal * step.u, v, w)
            if moved is not None:
                return moved
            primal *= 0.7
        return None


Point = TypeVar("Point", bound=Iterate)


def follow(state: Point, *, gap: float, deadline: float = np.inf, most: int = 60) -> tuple[Point, int]:
    """Follow the central path from a point until the gap is reached; the best point seen, and the steps taken."""
    size = len(state.s) + len(state.u)
    best, iterations = state, 0
    while best.gap > gap and iterations < most and time.perf_counter() < deadline:
        iterations += 1
        newton = _factor(state.hessian())
        if newton is None:
            break
        centre = float(state.v @ state.s + state.w @ state.u) / size
        # Predictor: aim at the optimum, and see how far one gets.
        aimed = state.direction(newton, 0.0, 0.0, 0.0)
        primal = min(1.0, _room(state.s, aimed.s), _room(state.u, aimed.u))
        below = min(1.0, _room(state.w, aimed.w), _room(state.v, aimed.v))
        ahead = float((state.v + below * aimed.v) @ (state.s + primal * aimed.s))
        ahead += float((state.w + below * aimed.w) @ (state.u + primal * aimed.u))
        target = centre * min(max((ahead / size / centre) ** 3, 1e-3), 1.0)
        # Corrector: the products the linearisation left out, and as much centring as the predictor found necessary.
        step = state.direction(newton, target, aimed.w * aimed.u, aimed.v * aimed.s)
        moved = state.move(step)
        if moved is None:
            moved = state.move(state.direction(newton, centre, 0.0, 0.0))
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
        self.missed = self.u + self.f - 1.0
        self.g = (yw @ xw.T) ** 2
        self.reached = w @ self.g

    @classmethod
    def start(cls, x: Floats, y: Floats, mass: Floats, dual: Floats | None) -> "_Minimax":
        """Scale into the interior of both problems, and lift products that lag far behind the others."""
        white = whitener(x, mass)
        xw, yw = x @ white, y @ white
        f = np.einsum("ij,ij->i", yw, yw)
        stretch = 1.1 * float(f.max())
        s, f = mass * stretch, f / stretch
        xw, yw = xw / np.sqrt(stretch), yw / np.sqrt(stretch)
        w = 1.0 / (1.0 - f) if dual is None else dual
        reached = w @ (yw @ xw.T) ** 2
        w = w / (1.1 * float(reached.max()))
        v = 1.0 - reached / (1.1 * float(reached.max()))
        centre = (v @ s + w @ (1.0 - f)) / (len(x) + len(y))
        w = np.maximum(w, 0.1 * centre / (1.0 - f))
        v = np.maximum(v, 0.1 * centre / s)
        return cls(x, y, s, None, v, w, xw, yw)

    @property
    def gap(self) -> float:
        """Relative distance of the value from the bound f_w²/max g, both of the restricted problem."""
        weighted = float(self.w @ self.f)
        bound = weighted**2 / (float(self.reached.max()) * float(self.w.sum()))
        return float(self.s.sum()) * float(self.f.max()) / bound - 1.0

    def curvature(self) -> Floats:
        """2(XH⁻¹Xᵀ)∘(XH⁻¹SH⁻¹Xᵀ)."""
        weighted = (self.yw * self.w[:, None]).T @ self.yw
        matrix = np.asarray(self.xw @ (2.0 * weighted) @ self.xw.T)
        matrix *= self.xw @ self.xw.T
        return matrix

    def at(self, s: Floats, u: Floats, v: Floats, w: Floats) -> "_Minimax | None":
        """Whiten anew."""
        try:
            white = whitener(self.x, s)
        except sl.LinAlgError:
            return None
        moved = _Minimax(self.x, self.y, s, u, v, w, self.x @ white, self.y @ white)
        return moved if moved.f.max() <= 1.5 else None


def largest_determinant(x: Floats, mass: Floats, *, gap: float, deadline: float = np.inf, most: int = 60) -> Central:
    """Maximise det H on the given vectors until max xᵀH(λ)⁻¹x ≤ d(1 + gap) among them, from a start like `minimax`."""
    dimension = x.shape[1]
    s = mass * (dimension / float(mass.sum()))
    xw = x @ whitener(x, s)
    k = np.einsum("ij,ij->i", xw, xw)
    v = np.maximum(1.0 - k, 0.1)
    iterations = 0
    while float(s.sum()) * float(k.max()) > dimension * (1.0 + gap) and iterations < most:
        if time.perf_counter() >= deadline:
            break
        iterations += 1
        matrix = (xw @ xw.T) ** 2
        matrix[np.diag_indices(len(matrix))] += v / s
        newton = _factor(matrix)
        if newton is None:
            break
        centre = float(v @ s) / len(s)
        ds = newton.solve(k - 1.0)
        dv = -v - v * ds / s
        ahead = (v + min(1.0, _room(v, dv)) * dv) @ (s + min(1.0, _room(s, ds)) * ds) / len(s)
        target = centre * min(max((ahead / centre) ** 3, 1e-3), 1.0)
        right = target - dv * ds
        ds = newton.solve(k - 1.0 + right / s)
        dv = (right - v * ds) / s - v
        v = v + min(1.0, TO_THE_BOUNDARY * _room(v, dv)) * dv
        s = s + min(1.0, TO_THE_BOUNDARY * _room(s, ds)) * ds
        try:
            xw = x @ whitener(x, s)
        except sl.LinAlgError:
            break
        k = np.einsum("ij,ij->i", xw, xw)
    return Central(s, np.zeros(0), iterations, float(s.sum()) * float(k.max()) / dimension - 1.0)


@dataclass(frozen=True)
class _Newton:
    scale: Floats
    lower: Floats

    def solve(self, right: Floats) -> Floats:
        inner = sl.cho_solve((self.lower, True), self.scale * right, check_finite=False)
        return np.asarray(self.scale * inner)


def _factor(matrix: Floats) -> _Newton | None:
    """Factor a Newton matrix, overwriting it, after scaling its diagonal to one; a small ridge answers rounding."""
    diagonal = np.diag(matrix).copy()
    if not (np.isfinite(diagonal).all() and (diagonal > 0).all()):
        return None
    scale = 1.0 / np.sqrt(diagonal)
    matrix *= scale
    matrix *= scale[:, None]
    for ridge in (1e-13, 1e-11, 1e-9, 1e-7):
        matrix[np.diag_indices(len(matrix))] = 1.0 + ridge
        try:
            return _Newton(scale, np.asarray(sl.cholesky(matrix, lower=True, check_finite=False)))
        except sl.LinAlgError:
            continue
    return None


def _room(values: Floats, step: Floats) -> float:
    """The largest multiple of the step that keeps the values nonnegative."""
    shrinking = step < 0
    return float(np.min(values[shrinking] / -step[shrinking], initial=np.inf))
