"""Maximum likelihood on counts: the public `fit`, and the minimisation behind every fit, `CountProblem.solve`.

Whether the estimate exists is decided, not assumed: Newton's method proves it where it can (docs/theory.md, Proposition
7), and a linear program decides the rest (`separation`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import scipy  # its parts load when first used: scipy.optimize takes longer than importing all of surepick
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Floats
from surepick._cached import cached_property
from surepick.errors import InvalidInput, NotIdentifiable
from surepick.glm.loss import Derivatives, derivatives
from surepick.glm.newton import Progress, minimise
from surepick.glm.separation import separating_direction
from surepick.glm.tally import Tally
from surepick.linalg import Factor, Span, factor, span_of, threads_for

LONG_DATA = 40_000
"""From this many rows on, a fit of a twentieth of them gives the start: two or three full passes then suffice."""


class FitStatus(StrEnum):
    """How a fit ended; the value is the JSON field `status`."""

    CONVERGED = "converged"
    SEPARATED = "separated"
    NOT_CONVERGED = "not converged"

    @property
    def sentence(self) -> str:
        """What it means and what to do about it."""
        return {
            FitStatus.CONVERGED: "The estimate exists, is unique in the span of the data, and was reached.",
            FitStatus.SEPARATED: (
                "A direction separates the ones from the zeros, so the likelihood has no maximum; "
                "collect more answers, or pass ridge or norm_bound."
            ),
            FitStatus.NOT_CONVERGED: (
                "The optimum was not reached within the iterations; "
                "rescale the features, remove nearly collinear columns, or pass ridge."
            ),
        }[self]


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
        # Outside the span the information is zero and has no inverse; within it, it is positive definite.
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
            "build one from rows of 0 and 1 with Tally.from_answers(vectors, answers)."
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
    # With a ridge every direction has curvature, so there is nothing to project away.
    span = span_of(data.vectors) if ridge == 0.0 else Span(data.dimension, data.dimension, None)
    if span.rank == 0:
        raise InvalidInput(
            "All asked vectors are zero, so the answers carry no information; check the feature columns."
        )
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


@dataclass(frozen=True)
class Solution:
    """Outcome of one solve in the coordinates of the span."""

    theta: Floats
    information: Floats
    status: FitStatus
    gap: float
    loss: float
    iterations: int
    ridge: float
    multiplier: float
    direction: Floats | None = None


@dataclass(frozen=True)
class CountProblem:
    """Logistic loss of (possibly fractional) counts on rows that span their space.

    With a normal, on the hyperplane normalᵀθ = level.
    """

    rows: Floats
    pulls: Floats
    wins: Floats
    normal: Floats | None = None
    level: float = 0.0

    @cached_property
    def longest(self) -> float:
        """Length of the longest row; entries that passed `validate` can be squared."""
        return float(np.sqrt(np.einsum("ij,ij->i", self.rows, self.rows).max()))

    def movement(self, step: Floats) -> float:
        """Largest |xᵀstep|; a bound by lengths where that already settles that the full step is safe."""
        with np.errstate(over="ignore"):  # from far out a full step may be beyond all numbers
            bound = self.longest * math.sqrt(float(step @ step))
        return bound if bound <= 1.0 else float(np.max(np.abs(self.rows @ step)))

    def feasible(self, theta: Floats) -> Floats:
        """The nearest point that satisfies the equality."""
        if self.normal is None:
            return theta
        return theta + self.normal * ((self.level - float(self.normal @ theta)) / float(self.normal @ self.normal))

    def solve(
        self, *, ridge: float, start: Floats | None, tolerance: float = 1e-9, max_iterations: int = 200
    ) -> Solution:
        """Newton's method with the existence of the optimum decided on the way."""

        def function(theta: Floats) -> Derivatives:
            at = derivatives(self.rows, self.pulls, self.wins, theta)
            if ridge == 0.0:
                return at
            # A ridge has no third derivative, so the step rule of `minimise` stays proved.
            penalised = at.hessian + ridge * np.eye(len(theta))
            return Derivatives(at.value + ridge / 2 * float(theta @ theta), at.gradient + ridge * theta, penalised)

        def search(point: Floats, iterations: int, give_up: Callable[[Progress], bool] | None) -> Progress:
            return minimise(
                function,
                self.feasible(point),
                movement=self.movement,
                normal=self.normal,
                tolerance=tolerance,
                max_iterations=iterations,
                give_up=give_up,
            )

        point = self._first_guess(ridge) if start is None else start
        exists_for_sure = ridge > 0  # strongly convex
        progress = search(point, max_iterations, None if exists_for_sure else _diverges)
        spent = progress.iterations
        reached = progress.done and (exists_for_sure or self._optimum_exists(progress))
        if not exists_for_sure and not reached:
            # Newton diverges, or stopped where existence is not certain: the linear program decides.
            direction = separating_direction(self.rows, self.pulls, self.wins, orthogonal_to=self.normal)
            if direction is not None:
                return self._separated(direction, spent)
            progress = search(progress.point, max_iterations - spent, None)
            spent += progress.iterations
            reached = progress.done and self._optimum_exists(progress)
        theta = progress.point
        # Reported without the ridge: the information and loss of the answers alone.
        return Solution(
            theta=theta,
            information=progress.at.hessian - ridge * np.eye(len(theta)),
            status=FitStatus.CONVERGED if reached else FitStatus.NOT_CONVERGED,
            gap=progress.decrement,
            loss=progress.at.value - ridge / 2 * float(theta @ theta),
            iterations=spent,
            ridge=ridge,
            multiplier=progress.multiplier,
        )

    def _optimum_exists(self, progress: Progress) -> bool:
        """Sufficient: decrement times the largest ‖x‖ in the inverse Hessian is below one.

        Along any direction the loss then grows at last, by f(θ+u) ≥ f(θ) − λδ + (e^{−kδ} + kδ − 1)/k² with
        δ = ‖u‖ in the Hessian and k the largest such norm of a row: coercive exactly if kλ < 1. That k is at most the
        longest row times the root of the trace of the inverse Hessian mostly settles it without a pass over the rows.
        Far out on separated data kλ rounds to one, so a tenth is kept as margin; what is lost by it, the linear
        program decides.
        """
        if progress.factor is None:
            return False
        # k² ≤ (longest row)²·(largest eigenvalue of the inverse) ≤ (longest row)²·trace.
        trace = float(np.sum(progress.factor.inverse_norms(np.eye(self.rows.shape[1])) ** 2))
        if self.longest * math.sqrt(trace) * progress.decrement < 0.9:
            return True
        return float(progress.factor.inverse_norms(self.rows).max()) * progress.decrement < 0.9

    def _separated(self, direction: Floats, iterations: int) -> Solution:
        dimension = self.rows.shape[1]
        nothing = np.full(dimension, np.nan)
        return Solution(
            theta=nothing,
            information=np.full((dimension, dimension), np.nan),
            status=FitStatus.SEPARATED,
            gap=np.inf,
            loss=np.nan,
            iterations=iterations,
            ridge=0.0,
            multiplier=np.nan,
            direction=direction,
        )

    def _first_guess(self, ridge: float) -> Floats:
        """Zero, or for long data the rough fit of every twentieth row (any start is valid)."""
        # On a hyperplane the sample need not span what the normal needs, so the start stays zero there.
        dimension = self.rows.shape[1]
        if len(self.rows) < max(LONG_DATA, 400 * dimension) or self.normal is not None:
            return np.zeros(dimension)
        part = slice(None, None, 20)
        sample = CountProblem(np.ascontiguousarray(self.rows[part]), self.pulls[part], self.wins[part])
        # A little ridge keeps the sample's optimum finite whatever was drawn.
        information = derivatives(sample.rows, sample.pulls, sample.wins, np.zeros(dimension)).hessian
        weight = ridge / 20 + 1e-6 * float(np.trace(information)) / dimension
        rough = sample.solve(ridge=weight, start=None, tolerance=1e-2, max_iterations=20)
        return rough.theta


def _diverges(progress: Progress) -> bool:
    """Ten iterations on and still moving: time to ask whether there is an optimum at all."""
    return progress.iterations >= 10 and progress.moved > 0.3


def cap_norm(
    problem: CountProblem, free: Solution, ridge: float, bound: float, tolerance: float, max_iterations: int
) -> Solution:
    """Minimise over ‖θ‖ ≤ bound: the ridge whose minimiser has just that length (Lagrange), if the bound binds."""
    if free.status is FitStatus.CONVERGED and float(np.linalg.norm(free.theta)) <= bound:
        return free
    best = problem.feasible(np.zeros(problem.rows.shape[1]))
    if float(np.linalg.norm(best)) >= bound * (1 - 1e-9):  # the hyperplane touches the ball in one point
        return _only_point(problem, best, ridge)
    solutions: dict[float, Solution] = {}

    def excess(log_ridge: float) -> float:
        if log_ridge not in solutions:
            start = solutions[min(solutions, key=lambda known: abs(known - log_ridge))].theta if solutions else best
            solutions[log_ridge] = problem.solve(
                ridge=float(np.exp(log_ridge)), start=start, tolerance=tolerance, max_iterations=max_iterations
            )
        return float(np.linalg.norm(solutions[log_ridge].theta)) / bound - 1.0

    # Without equality, ridge·θ equals the gradient of the loss at the optimum, which bounds the multiplier.
    size = float(np.sum(problem.pulls)) * problem.longest
    high = float(np.log(max(size / bound, ridge, 1e-300))) + 1.0
    # The length of the ridge fit falls as the ridge grows; bracket the bound in steps of e⁵, then find it by Brent.
    while excess(high) >= 0:
        high += 5.0
    low = high - 5.0
    while excess(low) < 0 and low > high - 400:
        low -= 5.0
    if solutions[low].status is not FitStatus.CONVERGED or excess(low) < 0:
        # Far out on separated data nothing is left to gain: the gap is within the tolerance before the bound binds.
        return solutions[low]
    root = float(scipy.optimize.brentq(excess, low, high, xtol=1e-13, rtol=1e-15))
    # Brent's last point may lie just outside of the ball; the nearest one inside is returned.
    inside = [key for key in solutions if excess(key) <= 1e-9]
    found = solutions[min(inside, key=lambda key: abs(key - root))]
    return replace(found, iterations=sum(solution.iterations for solution in solutions.values()))


def _only_point(problem: CountProblem, theta: Floats, ridge: float) -> Solution:
    """The solution where the constraints leave a single point; its multiplier is that of the nearest gradient."""
    at = derivatives(problem.rows, problem.pulls, problem.wins, theta)
    normal = theta if problem.normal is None else problem.normal
    return Solution(
        theta=theta,
        information=at.hessian,
        status=FitStatus.CONVERGED,
        gap=0.0,
        loss=at.value,
        iterations=0,
        ridge=ridge,
        multiplier=float(normal @ (at.gradient + ridge * theta)) / float(normal @ normal),
    )
