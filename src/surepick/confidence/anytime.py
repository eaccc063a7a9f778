"""The anytime-valid likelihood-ratio confidence sequence: true for any way of choosing questions and of stopping.

The set of all θ whose evidence (`evidence.likelihood_ratio`) is below 1/delta contains θ* at all times with probability
1 − delta (docs/theory.md, Theorem 3). log E is a log-sum-exp of convex functions, hence convex, and so is the set; here
it is turned into intervals whose ends are certified.
"""

import math
import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Floats
from surepick._cached import cached_property
from surepick.confidence.result import Condition, Data, Intervals, Tallies, batches_of, unbounded
from surepick.errors import InvalidInput
from surepick.evidence.likelihood_ratio import Evidence, evidence_from_batches
from surepick.glm import Tally
from surepick.glm.duality import duality_gap, outer_radius
from surepick.glm.fit import CountProblem
from surepick.glm.loss import derivatives
from surepick.glm.newton import Progress, minimise
from surepick.glm.separation import unbounded_towards
from surepick.guarantee import Guarantee
from surepick.linalg import Factor, Span, factor

ORDER_UNKNOWN = Condition(
    "order known",
    False,
    "Adaptively collected answers need their order: pass a list of tallies, one per batch, oldest first, instead of a "
    "single tally; or data='fixed' if no question depended on an answer.",
)


@dataclass(frozen=True)
class ConfidenceSet:
    """All θ that the answers so far do not refute: {θ : E(θ) < 1/delta}, for any delta.

    Numbers of one θ are in coordinates of `span`, the space of the asked vectors; methods take and return vectors of
    the whole space unless they say otherwise.
    """

    span: Span
    evidence: Evidence
    order_seed: int | None = None
    """The seed of the random order; None where no batch was split."""

    @classmethod
    def of(cls, answers: Tallies, *, data: Data = "adaptive", order_seed: int | None = None) -> "ConfidenceSet":
        """Build the evidence from batches of answers in their order.

        A batch much larger than what came before it is split in a random order, seeded by `order_seed`, or by a seed
        that is drawn and kept where none is given: the probability is over that order, too. Counts without
        any order can only be used if the whole design was fixed (data="fixed"). Costs three warm-started ridge fits for
        every 15% more answers (`evidence_from_batches`).
        """
        validate.one_of("data", data, ("adaptive", "fixed"))
        if isinstance(answers, Tally) and data == "adaptive":
            raise InvalidInput(ORDER_UNKNOWN.detail)
        # Not a constant: for one fixed order of a small tally, the mean of E(θ*) may exceed one.
        seed = secrets.randbits(32) if order_seed is None else order_seed
        rng = np.random.default_rng(seed)
        unused = rng.bit_generator.state
        span, evidence = evidence_from_batches(batches_of(answers), rng)
        return cls(span, evidence, None if rng.bit_generator.state == unused else seed)

    @property
    def rows(self) -> Floats:
        """Asked vectors, in coordinates of their span."""
        return self.evidence.vectors.rows

    def log_evidence(self, theta: ArrayLike) -> float:
        """log E(θ); θ* exceeds log(1/delta) at any time with probability at most delta."""
        point = validate.vector("theta", theta, length=self.span.dimension, tiny=True)
        return float(self.evidence.log_evidence(self.span.coordinates(point)[None, :])[0])

    def contains(self, theta: ArrayLike, *, delta: float = 0.05) -> bool:
        """Whether θ is in the confidence set of level 1 − delta."""
        return self.log_evidence(theta) < math.log(1 / validate.probability("delta", delta))

    def bounds(self, query: Floats, *, delta: float) -> tuple[float, float]:
        """Certified outer bounds of xᵀθ over the set; a few convex programs of O(p(d² + restarts)) each."""
        if not query.any():
            return 0.0, 0.0
        if not self.span.contains(query[None, :])[0]:
            return -math.inf, math.inf
        if self.least.at.value >= math.log(1 / delta):  # convexity says what lies outside only from a point inside
            return -math.inf, math.inf
        inside = self.span.coordinates(query)
        # In units far apart a step may overflow; what it leads to certifies nothing, and the bound stays infinite.
        with np.errstate(over="ignore", invalid="ignore"):
            return -self._support(-inside, delta), self._support(inside, delta)

    @cached_property
    def least(self) -> Progress:
        """Where the evidence is least: the θ that the answers refute least, in coordinates of the span."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._minimise(np.zeros(self.rows.shape[1]))

    @cached_property
    def is_open(self) -> bool:
        """Whether the evidence may be least only at infinity, as where the answers are separated."""
        # Proposition 7: a minimum exists where kλ < 1; half of it leaves room for rounding far out.
        shape = self.least.factor
        return shape is None or float(shape.inverse_norms(self.rows).max()) * self.least.decrement > 0.5

    def is_empty(self, *, delta: float) -> bool:
        """Whether every θ is refuted: no logistic model fits, or the event of probability delta happened."""
        return self._certified(self.least) >= math.log(1 / delta)

    def reach(self, *, delta: float) -> float:
        """D with max |xᵀ(θ − least)| ≤ D over all asked vectors and all θ of the set."""
        shape, radius = self.ellipsoid(delta=delta)
        return math.inf if shape is None else radius * float(shape.inverse_norms(self.rows).max())

    def ellipsoid(self, *, delta: float) -> tuple[Factor | None, float]:
        """Shape M and radius r such that ‖θ − least‖ ≤ r in M for all θ of the set; no shape where none is proved.

        For the weights p of the mixture at the least point, log E ≥ G = Σ p_j(offset_j + loss_j) + entropy(p), and
        G(θ+u) ≥ G(θ) − λr + (e^{−kr} + kr − 1)/k², r = ‖u‖ in the Hessian of G, k the largest inverse norm of a row
        (docs/theory.md, Proposition 6).
        """
        problem = self.evidence.tangent(self.least.point)
        at = derivatives(problem.rows, problem.pulls, problem.wins, self.least.point)
        # The Hessian of G, not of log E: the covariance of the gradients is curvature that G does not have.
        shape = factor(at.hessian)
        room = math.log(1 / delta) - self.least.at.value
        if shape is None or room <= 0:
            return None, math.inf
        k = float(shape.inverse_norms(self.rows).max())
        radius = outer_radius(k, shape.inverse_norm(at.gradient), room)
        return (shape, radius) if math.isfinite(radius) else (None, math.inf)

    def _support(self, query: Floats, delta: float) -> float:
        """Upper bound of queryᵀθ over the set: Newton from outside on the convex Φ(c) = min {log E : queryᵀθ = c}.

        Any c beyond the least point at which a lower bound of Φ(c) reaches the threshold is a valid end (Proposition
        4), so every level kept below is one, however the iteration ends.
        """
        threshold = math.log(1 / delta)
        # The oldest restart covers all answers of the others.
        if self.is_open and unbounded_towards(self.rows, self.evidence.pulls[0], self.evidence.wins[0], query):
            return math.inf
        start = self.least.point
        centre = float(query @ start)
        width = self._first_width(query, threshold)
        level = centre + width
        outside = self._minimise(start, normal=query, level=level)
        doublings = 0
        while not self._certified(outside, query) >= threshold:
            doublings, width = doublings + 1, width * 2
            level = centre + width
            if doublings == 25:
                return math.inf
            outside = self._minimise(outside.point, normal=query, level=level)
        for _ in range(30):
            # Φ'(c) is the multiplier of the hyperplane. A convex function from outside: Newton stays outside.
            excess, slope = outside.at.value - threshold, outside.multiplier
            closer = level - excess / slope if slope > 0 else centre
            if not centre < closer < level - 1e-4 * (level - centre):
                break
            candidate = self._minimise(outside.point, normal=query, level=closer)
            if not self._certified(candidate, query) >= threshold:
                break
            outside, level = candidate, closer
        return level

    def _first_width(self, query: Floats, threshold: float) -> float:
        """Where a quadratic would put the end, but no farther than moves a logit by three."""
        # Beyond a few logits the quadratic says nothing; from there doubling finds the outside.
        shape = self.least.factor
        if shape is None:
            return 1.0 / float(np.max(np.abs(self.rows @ query))) * float(query @ query)
        across = shape.solve(query)
        squared = float(query @ across)
        width = 1.2 * math.sqrt(2 * squared * max(threshold - self.least.at.value, 1.0))
        return min(width, 3.0 * squared / float(np.max(np.abs(self.rows @ across))))

    def _minimise(self, start: Floats, *, normal: Floats | None = None, level: float = 0.0) -> Progress:
        """The least log E, on normalᵀθ = level if given; the counts of the problem only say how far a step moves."""
        problem = CountProblem(self.rows, self.evidence.pulls[0], self.evidence.wins[0], normal, level)
        return minimise(
            self.evidence.derivatives,
            problem.feasible(start),
            movement=problem.movement,
            normal=normal,
            tolerance=1e-4,  # 5e-9 nats; the duality gap says exactly how much
            max_iterations=60,
        )

    def _certified(self, found: Progress, normal: Floats | None = None) -> float:
        """A proven lower bound of log E over all θ, or over the hyperplane through the point found (Proposition 5)."""
        return found.at.value - duality_gap(self.evidence.tangent(found.point), found.point, normal=normal)


def interval_anytime(
    answers: Tallies,
    queries: ArrayLike,
    *,
    delta: float = 0.05,
    data: Data = "adaptive",
    order_seed: int | None = None,
    confidence_set: ConfidenceSet | None = None,
) -> Intervals:
    """Intervals that hold for all queries and all times at once, however the questions were chosen.

    Needs no norm bound and no burn-in. `confidence_set` reuses one already built from the same answers. All times are
    meant of batches in their order; a single tally is shuffled at every call, so its guarantee is for one call only.
    The result has the `order_seed`, by default a drawn one. Where large batches are split, all times are covered only
    if every call is given the same one: another order is another process.

    >>> tally = Tally([[1.0]], pulls=[200], wins=[150])
    >>> result = interval_anytime(tally, [[1.0]], data="fixed")
    >>> bool(result.low[0] < np.log(3) < result.high[0])
    True
    """
    delta = validate.probability("delta", delta)
    validate.one_of("data", data, ("adaptive", "fixed"))
    if confidence_set is None and isinstance(answers, Tally) and data == "adaptive":
        points = validate.matrix("queries", queries, columns=answers.dimension)
        return unbounded("anytime", Guarantee.PROVED, _statement(False), delta, len(points), ORDER_UNKNOWN)
    found = confidence_set or ConfidenceSet.of(answers, data=data, order_seed=order_seed)
    points = validate.matrix("queries", queries, columns=found.span.dimension)
    empty = found.is_empty(delta=delta)
    ends = [(-math.inf, math.inf) if empty else found.bounds(point, delta=delta) for point in points]
    low, high = np.array(ends).T
    # With an open end the least refuted point is at infinity, and no centre means anything.
    centre = np.where(np.isfinite(high - low), found.span.coordinates(points) @ found.least.point, np.nan)
    return Intervals(
        method="anytime",
        guarantee=Guarantee.PROVED,
        statement=_statement(not isinstance(answers, Tally) and (found.order_seed is None or order_seed is not None)),
        delta=delta,
        centre=centre,
        low=low,
        high=high,
        conditions=(
            Condition(
                "some model fits",
                not empty,
                "Every logistic model is refuted by the answers at this delta; check for changing judges, "
                "missing features or miscoded answers."
                if empty
                else "Some logistic model is not refuted.",
            ),
        ),
        details={"least_log_evidence": found.least.at.value},
        order_seed=found.order_seed,
    )


def _statement(all_times: bool) -> str:
    scope = "All queries and all times at once" if all_times else "All queries at once"
    return f"{scope}, by Ville's inequality (docs/theory.md, anytime sequence)."
