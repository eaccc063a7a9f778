"""Maximum likelihood on counts, with a certificate of how close to the optimum it came."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Floats
from surepick._threads import threads_for
from surepick.errors import InvalidInput, NotIdentifiable
from surepick.glm.loss import CountProblem, FitStatus, cap_norm
from surepick.glm.tally import Tally
from surepick.linalg import Factor, Span, factor, span_of


@dataclass(frozen=True)
class Fit:
    """A fitted logistic model and how far it can be trusted as a minimiser."""

    theta: Floats
    """The estimate, of least length among equals; NaN where it does not exist."""
    information: Floats
    """Fisher information Σ n·s(xᵀθ)·xxᵀ at the estimate, without ridge."""
    status: FitStatus
    gap: float
    """√(gᵀM⁻¹g), M the information plus ridge: distance to the optimum in standard deviations."""
    loss: float
    """Negative log-likelihood at the estimate, without ridge."""
    iterations: int
    span: Span
    """The space the asked vectors span; outside it nothing is known."""
    ridge: float = 0.0
    """The ridge in force; under a norm bound that binds, its multiplier."""
    multiplier: float = 0.0
    """ν of the equality constraint vᵀθ = c: the rate at which the optimal loss changes with c."""
    direction: Floats | None = None
    """For separated data the direction that proves it."""

    @property
    def converged(self) -> bool:
        """Whether the optimum exists and was reached."""
        return self.status is FitStatus.CONVERGED

    @cached_property
    def factor(self) -> Factor | None:
        """Factor of the information (plus ridge) in the coordinates of the span."""
        if not np.isfinite(self.information).all():
            return None
        inside = self.span.coordinates(self.span.coordinates(self.information).T)
        return factor(inside + self.ridge * np.eye(self.span.rank))

    def inverse_norms(self, queries: Floats) -> Floats:
        """√(xᵀ·information⁻¹·x) for every query, infinite outside the span of the data."""
        if self.factor is None:
            return np.full(len(queries), np.inf)
        inside = self.factor.inverse_norms(self.span.coordinates(queries))
        return np.where(self.span.contains(queries), inside, np.inf)


def fit(
    tally: Tally,
    *,
    ridge: float = 0.0,
    norm_bound: float | None = None,
    equality: tuple[ArrayLike, float] | None = None,
    start: ArrayLike | None = None,
    tolerance: float = 1e-9,
    max_iterations: int = 200,
) -> Fit:
    """Minimise Σ n·m(xᵀθ) − k·xᵀθ + (ridge/2)·‖θ‖², optionally over ‖θ‖ ≤ norm_bound and vᵀθ = c.

    `equality` is the pair (v, c). Every Newton iteration costs O(p d² + d³) for p distinct vectors, whatever the
    number of answers; memory beyond the data is O(d²) and one block of rows (plus one copy of the data when they
    do not span the space). Whether the estimate exists is decided, not assumed: see `FitStatus`.

    >>> fit(Tally([[1.0]], pulls=[4], wins=[3])).theta.round(6).tolist()  # log(3/1)
    [1.098612]
    """
    ridge = validate.nonnegative("ridge", ridge)
    tolerance = validate.positive("tolerance", tolerance)
    max_iterations = validate.whole("max_iterations", max_iterations)
    if not isinstance(tally, Tally):
        raise InvalidInput(
            f"A fit needs a Tally, got {type(tally).__name__}; "
            "rows and ones and zeros become one by Tally.from_answers(vectors, answers)."
        )
    data = tally.asked()
    if len(data) == 0:
        raise InvalidInput("The tally holds no answers (every pulls is 0); a fit needs at least one.")
    normal, level = None, 0.0
    if equality is not None:
        if not isinstance(equality, tuple | list) or len(equality) != 2:
            raise InvalidInput(f"equality must be a pair of a vector and a number, got {equality!r}.")
        normal = validate.vector("equality vector", equality[0], length=data.dimension)
        level = validate.real("equality value", equality[1])
        if not normal.any():
            raise InvalidInput("The equality vector must not be zero, got all zeros.")
    if norm_bound is not None:
        norm_bound = validate.positive("norm_bound", norm_bound)
        if normal is not None and abs(level) > norm_bound * float(np.linalg.norm(normal)):
            raise InvalidInput(
                f"No theta of norm at most {norm_bound:g} has v'theta = {level:g}; raise norm_bound to at least "
                f"{abs(level) / float(np.linalg.norm(normal)):g}."
            )
    first = None if start is None else validate.vector("start", start, length=data.dimension, tiny=True)
    span = span_of(data.vectors) if ridge == 0.0 else Span(data.dimension, data.dimension, None)
    if span.rank == 0:
        raise InvalidInput("All asked vectors are zero, so the answers say nothing; check the feature columns.")
    if normal is not None and not span.contains(normal[None, :])[0]:
        raise NotIdentifiable(
            "The equality vector lies outside the span of the asked vectors, so it constrains nothing they measure."
        )
    problem = CountProblem(
        rows=span.coordinates(data.vectors),
        pulls=data.pulls.astype(np.float64),
        wins=data.wins.astype(np.float64),
        normal=None if normal is None else span.coordinates(normal),
        level=level,
    )
    inside = None if first is None else span.coordinates(first)
    with threads_for(0.0):  # passes go block by block, each too small to share
        result = problem.solve(ridge=ridge, start=inside, tolerance=tolerance, max_iterations=max_iterations)
        if norm_bound is not None:
            result = cap_norm(problem, result, ridge, norm_bound, tolerance, max_iterations)
    return Fit(
        theta=span.embed(result.theta),
        information=span.embed(span.embed(result.information).T),
        status=result.status,
        gap=result.gap,
        loss=result.loss,
        iterations=result.iterations,
        span=span,
        ridge=result.ridge,
        multiplier=result.multiplier,
        direction=None if result.direction is None else span.embed(result.direction),
    )
