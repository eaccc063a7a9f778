"""The minimisation behind every fit: the loss of counts on rows that span their space, and whether it has a minimum."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
import scipy  # its parts load when first used: scipy.optimize takes longer than importing all of surepick
from scipy.special import xlog1py

from surepick._arrays import Floats
from surepick.glm.link import Derivatives, derivatives, probability_of_yes
from surepick.glm.newton import Progress, minimise
from surepick.glm.separation import separating_direction
from surepick.linalg import factor, span_of

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
        exists_for_sure = ridge > 0
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

    def duality_gap(self, theta: Floats, *, normal: Floats | None = None) -> float:
        """At most how many nats the loss at θ lies above its infimum (over normalᵀθ' = normalᵀθ, if given).

        For any probabilities q with Σ(n·q − k)·x = ν·normal, Fenchel's inequality n·m(v) ≥ n(q·v + entropy(q))
        bounds the infimum from below, and the loss exceeds that bound by Σ n·KL(q ‖ μ(xᵀθ)). A Newton step in the
        dual makes q = μ − s·xᵀu feasible; it proves a bound even where the infimum is not attained. Infinite where
        no such q is found in [0, 1]. O(p d²).
        """
        at = derivatives(self.rows, self.pulls, self.wins, theta)
        hessian = at.hessian
        if normal is not None:  # curvature across the hyperplane changes no step along it, but may be all there is
            unit = normal / float(np.linalg.norm(normal))
            hessian = hessian + float(np.trace(hessian)) * np.outer(unit, unit)
        shape = factor(hessian)
        if shape is None:
            return self._gap_beside_settled_rows(theta, normal)
        step = shape.solve(at.gradient)
        if normal is not None:
            across = shape.solve(normal)
            step = step - across * (float(normal @ step) / float(normal @ across))
        logits, change = self.rows @ theta, self.rows @ step
        yes, no = probability_of_yes(logits), probability_of_yes(-logits)
        # q = μ(1 + lower) and 1 − q = (1−μ)(1 + upper); the linear terms of the divergence cancel.
        lower, upper = -no * change, yes * change
        if np.any((np.minimum(lower, upper) < -1.0 - 1e-12) & (self.pulls > 0)):
            return self._gap_beside_settled_rows(theta, normal)
        return float(self.pulls @ (yes * bennett(lower) + no * bennett(upper)))

    def _gap_beside_settled_rows(self, theta: Floats, normal: Floats | None) -> float:
        """The duality gap where rows all but certain of their answers leave the Hessian singular, or nearly so.

        For them q = k/n is feasible by itself at a cost of n·log(1/μ); the others are a problem in their own span.
        A normal outside of that span constrains nothing of them.
        """
        logits = self.rows @ theta
        right = np.where(self.wins >= self.pulls, logits, np.where(self.wins <= 0, -logits, 0.0))
        cost = self.pulls * np.log1p(np.exp(-np.abs(logits)))
        settled = (self.pulls <= 0) | ((right > 0) & (cost < 1e-3))
        if not settled.any():
            return np.inf
        total = float(cost[settled].sum())
        if settled.all():
            return total
        rest = self.rows[~settled]
        span = span_of(rest)
        if span.rank == 0:
            return np.inf
        inside = None if normal is None or not span.contains(normal[None, :])[0] else span.coordinates(normal)
        others = CountProblem(span.coordinates(rest), self.pulls[~settled], self.wins[~settled])
        return total + others.duality_gap(span.coordinates(theta), normal=inside)

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


def bennett(u: Floats) -> Floats:
    """(1+u)·log(1+u) − u for u ≥ −1, by its series where the closed form cancels."""
    inside = np.maximum(u, -1.0)
    with np.errstate(divide="ignore"):
        closed = xlog1py(1.0 + inside, inside) - inside
    small = np.clip(inside, -1e-3, 1e-3)
    series = small**2 * (1 / 2 - small * (1 / 6 - small * (1 / 12 - small * (1 / 20 - small / 30))))
    return np.where(np.abs(inside) < 1e-3, series, closed)


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
    while excess(high) >= 0:
        high += 5.0
    low = high - 5.0
    while excess(low) < 0 and low > high - 400:
        low -= 5.0
    if solutions[low].status is not FitStatus.CONVERGED or excess(low) < 0:
        # Far out on separated data nothing is left to gain: the gap is within the tolerance before the bound binds.
        return solutions[low]
    root = float(scipy.optimize.brentq(excess, low, high, xtol=1e-13, rtol=1e-15))
    inside = [key for key in solutions if excess(key) <= 1e-9]
    found = solutions[min(inside, key=lambda key: abs(key - root))]
    return replace(found, iterations=sum(each.iterations for each in solutions.values()))


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
