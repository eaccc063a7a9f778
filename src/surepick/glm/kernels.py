"""The logistic model for streams: many small problems, one answer at a time, compiled where numba is installed.

One source serves both ways of running. A `kernel` is written in what Python and numba understand alike; its first call
compiles it if numba can be imported, otherwise it runs as it stands. NumPy does the work over rows (products, whole
columns at once), so that it is quick without numba too; what is left to Python is O(d²) numbers and short loops.

This is the third form of Newton's method, beside `newton` (any convex function, one point) and `batched_newton` (many
problems at once): those call Python functions and SciPy, which numba cannot compile, and cost 100 µs on problems that
take 10 µs here. Notation as in `loss`: v = xᵀθ, μ(v) = 1/(1+e⁻ᵛ), s = μ(1−μ), m(v) = log(1+eᵛ).
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, update_wrapper
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar

import numpy as np

from surepick._arrays import Floats
from surepick._cached import cached_property

P = ParamSpec("P")
R = TypeVar("R")
Numbers: TypeAlias = Any
"""A float or an array of floats: ufuncs take both and return the same kind, in NumPy and in numba."""

ROWS_PER_BLOCK = 4096
"""Long data are passed over in blocks of this many rows, so that temporaries stay in the cache."""


class Kernel(Generic[P, R]):
    """A function that numba compiles at its first call, if there is numba; see `kernel`."""

    interpreted = False
    """Whether all kernels run as plain Python even though numba is there; set by `interpreted`."""

    def __init__(self, function: Callable[P, R]) -> None:
        update_wrapper(self, function)
        self.function = function

    @cached_property
    def compiled(self) -> Callable[P, R]:
        """The machine code (kept on disk beside the source), or the function itself where numba is missing."""
        numba = _numba()
        if numba is None:
            return self.function
        made: Callable[P, R] = numba.njit(cache=True, error_model="numpy")(self.function)
        return made

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the machine code, compiling it first if this is the first call."""
        run = self.function if Kernel.interpreted else self.compiled
        return run(*args, **kwargs)


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Let numba compile this function at its first call, if numba is installed.

    Not at definition, because importing numba takes as long as importing all of surepick. Machine code is kept beside
    the sources. Numba notices a change in a function's own file, not in the files of the kernels it calls: after
    editing this one, delete the `__pycache__` of those that use it (the tests do).
    """
    return Kernel(function)


@cache
def _numba() -> Any:
    try:
        import numba
        from numba.extending import typeof_impl
    except ImportError:
        return None
    # Kernels call kernels: numba is told to see the machine code behind a Kernel.
    module: Any = numba  # it has no types
    typeof_impl.register(Kernel)(lambda value, _: module.typeof(value.compiled))
    return module


def is_compiled() -> bool:
    """Whether kernels run as machine code."""
    return not Kernel.interpreted and _numba() is not None


@contextmanager
def interpreted() -> Iterator[None]:
    """Run all kernels as without numba; for comparisons of the two, in tests and benches."""
    before, Kernel.interpreted = Kernel.interpreted, True
    try:
        yield
    finally:
        Kernel.interpreted = before


@kernel
def probability_of_yes(v: Numbers) -> Numbers:
    """μ(v), written with e^{−|v|} so that it keeps its relative accuracy at any v."""
    return np.exp(np.minimum(v, 0.0)) / (1.0 + np.exp(-np.abs(v)))


@kernel
def variance(v: Numbers) -> Numbers:
    """s(v)."""
    small = np.exp(-np.abs(v))
    return small / ((1.0 + small) * (1.0 + small))


@kernel
def softplus(v: Numbers) -> Numbers:
    """m(v)."""
    return np.maximum(v, 0.0) + np.log1p(np.exp(-np.abs(v)))


@kernel
def inverse(matrix: Floats) -> Floats:
    """M⁻¹ of a symmetric positive definite matrix; NaN throughout where it is numerically singular. O(d³)."""
    squares = np.diag(matrix)
    if not (squares.min() > 1e-260 and squares.max() < np.inf):  # below, dividing by the root overflows
        return matrix * np.nan
    # With a unit diagonal the result does not depend on the units of the coordinates.
    scale = 1.0 / np.sqrt(squares)
    scales = scale.reshape(-1, 1) * scale
    scaled = matrix * scales
    try:
        lower = np.linalg.cholesky(scaled)
    except Exception:  # numba knows no narrower one; there is nothing else to catch than LinAlgError
        return matrix * np.nan
    # A pivot this small means that rounding, not the data, decides the result (the test of `linalg.factor`).
    if not np.diag(lower).min() >= 1e-7:
        return matrix * np.nan
    return np.linalg.inv(scaled) * scales


@kernel
def derivatives(rows: Floats, answers: Floats, weights: Floats, theta: Floats) -> tuple[float, Floats, Floats]:
    """Σ w·(m(v) − y·v), its gradient Σ w(μ(v) − y)x and its Hessian Σ w·s(v)·xxᵀ, over the rows x; O(n d²)."""
    d = len(theta)
    value, gradient, hessian = 0.0, np.zeros(d), np.zeros((d, d))
    for first in range(0, len(rows), ROWS_PER_BLOCK):
        x, y = rows[first : first + ROWS_PER_BLOCK], answers[first : first + ROWS_PER_BLOCK]
        w = weights[first : first + ROWS_PER_BLOCK]
        v = x @ theta
        small = np.exp(-np.abs(v))
        larger = 1.0 / (1.0 + small)  # probability of the likelier answer
        mu = np.where(v >= 0.0, larger, small * larger)
        value += float(w @ (np.log1p(small) + np.maximum(v, 0.0) - y * v))
        gradient += (w * (mu - y)) @ x
        hessian += (x * (w * small * larger * larger).reshape(-1, 1)).T @ x
    return value, gradient, hessian


@kernel
def newton(
    rows: Floats,
    answers: Floats,
    weights: Floats,
    start: Floats,
    ridge: float,
    tolerance: float,
    iterations: int,
    tilt: Floats | None = None,
) -> tuple[Floats, float, Floats, Floats, float]:
    """Minimise Σ w·(m(v) − y·v) + (ridge/2)‖θ‖² − tiltᵀθ from `start`, by steps that provably descend.

    Stops at a Newton decrement (the distance to the minimum in standard deviations) of `tolerance`, or after this many
    steps. Returns θ and, there, the loss, its gradient and its Hessian (all three of the sum alone, without ridge and
    tilt), and the decrement; infinite where the Hessian is numerically singular. O(n d²) a step.
    """
    theta = start.copy()
    value, gradient, hessian = derivatives(rows, answers, weights, theta)
    diagonal = ridge * np.eye(len(theta))
    decrement = math.inf
    for iteration in range(iterations + 1):
        slope = gradient + ridge * theta
        if tilt is not None:
            slope = slope - tilt
        step = inverse(hessian + diagonal) @ slope
        if np.isnan(step[0]):
            return theta, value, gradient, hessian, math.inf
        decrement = math.sqrt(max(0.0, float(step @ slope)))
        if decrement <= tolerance or iteration == iterations:
            break
        # The step rule of `newton.minimise`: beyond a change R = 1 of some logit, the fraction log(1+R)/R descends.
        moved = np.abs(rows @ step).max() if len(rows) else 0.0
        theta = theta - step * (1.0 if moved <= 1.0 else max(1.0, math.log1p(moved)) / moved)
        value, gradient, hessian = derivatives(rows, answers, weights, theta)
    return theta, value, gradient, hessian, decrement
