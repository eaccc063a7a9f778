"""The anytime-valid likelihood-ratio confidence sequence: true for any way of choosing questions and of stopping.

Before every batch of answers, estimates made from earlier batches alone predict it. For every θ the likelihood ratio
of these predictions to θ's own is a non-negative martingale of mean one under θ; a mixture over experts and restarts
is one too, so by Ville's inequality it exceeds 1/delta under the true θ* with probability at most delta, ever
(docs/theory.md). log E is a log-sum-exp of convex functions, hence convex, and its sublevel set is the confidence set.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax

from surepick import validate
from surepick._arrays import Floats
from surepick.confidence.result import Condition, Data, Intervals, Tallies, batches_of, unbounded
from surepick.errors import InvalidInput
from surepick.glm import Tally, probability_of_yes, softplus
from surepick.glm.duality import duality_gap, outer_radius
from surepick.glm.fit import CountProblem
from surepick.glm.loss import Derivatives, derivatives
from surepick.glm.newton import Progress, minimise
from surepick.glm.separation import unbounded_towards
from surepick.guarantee import Guarantee
from surepick.linalg import Factor, Span, factor, norms, span_of

Integers = NDArray[np.intp]

RIDGES = (1.0, 0.1, 0.01)
"""Experts: ridge fits with these weights, after scaling the longest vector asked so far to length one."""

GROWTH = 0.15
"""Batches cut from a long run of answers hold this share of the answers before them."""

RESTARTS_KEPT = 10
"""Terms of the mixture beyond the latest ten are left out: E only shrinks, so the sets only grow."""

ORDER_UNKNOWN = Condition(
    "order known",
    False,
    "Adaptively collected answers need their order: pass a list of tallies, one a batch, oldest first, instead of a "
    "single tally; or data='fixed' if no question depended on an answer.",
)


@dataclass(frozen=True)
class Evidence:
    """E(θ) = Σ_j exp(offset_j + loss_j(θ)): the evidence of all answers so far against θ.

    loss_j is the negative log-likelihood of the answers after restart j; offset_j its log-weight plus the
    log-probability that the experts gave to these answers.
    """

    span: Span
    rows: Floats
    """Asked vectors, in coordinates of their span."""
    pulls: Floats
    """Restarts × vectors: how often each was asked after the restart."""
    wins: Floats
    offsets: Floats

    def log_evidence(self, theta: ArrayLike) -> float:
        """log E(θ); θ* exceeds log(1/delta) at any time with probability at most delta."""
        point = validate.vector("theta", theta, length=self.span.dimension, tiny=True)
        return self._derivatives(self.span.coordinates(point)).value

    def contains(self, theta: ArrayLike, *, delta: float = 0.05) -> bool:
        """Whether θ is in the confidence set of level 1 − delta."""
        return self.log_evidence(theta) < math.log(1 / validate.probability("delta", delta))

    def bounds(self, query: Floats, *, delta: float) -> tuple[float, float]:
        """Certified outer bounds of xᵀθ over the confidence set; a few convex programs of O(p(d² + restarts)) each."""
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
        """Where the evidence is least: the θ that the answers refute least."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._minimise(np.zeros(self.rows.shape[1]))

    @cached_property
    def is_open(self) -> bool:
        """Whether the evidence may be least only at infinity, as where the answers are separated."""
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
        G(θ+u) ≥ G(θ) − λδ + (e^{−kδ} + kδ − 1)/k², δ = ‖u‖ in the Hessian of G, k the largest inverse norm of a row.
        """
        problem = self._tangent(self.least.point)
        at = derivatives(problem.rows, problem.pulls, problem.wins, self.least.point)
        shape = factor(at.hessian)
        if shape is None:
            return None, math.inf
        k = float(shape.inverse_norms(self.rows).max())
        decrement = shape.inverse_norm(at.gradient)
        room = math.log(1 / delta) - self.least.at.value
        radius = outer_radius(k, decrement, room) if room > 0 else math.inf
        return (shape, radius) if math.isfinite(radius) else (None, math.inf)

    def _support(self, query: Floats, delta: float) -> float:
        """Upper bound of queryᵀθ over the set: Newton from outside on the convex c ↦ min {log E : queryᵀθ = c}."""
        threshold = math.log(1 / delta)
        # The oldest restart covers all answers of the others.
        if self.is_open and unbounded_towards(self.rows, self.pulls[0], self.wins[0], query):
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
        shape = self.least.factor
        if shape is None:
            return 1.0 / float(np.max(np.abs(self.rows @ query))) * float(query @ query)
        across = shape.solve(query)
        squared = float(query @ across)
        width = 1.2 * math.sqrt(2 * squared * max(threshold - self.least.at.value, 1.0))
        return min(width, 3.0 * squared / float(np.max(np.abs(self.rows @ across))))

    def _minimise(self, start: Floats, *, normal: Floats | None = None, level: float = 0.0) -> Progress:
        problem = CountProblem(self.rows, self.pulls[0], self.wins[0], normal, level)
        return minimise(
            self._derivatives,
            problem.feasible(start),
            movement=problem.movement,
            normal=normal,
            tolerance=1e-4,  # 5e-9 nats; the duality gap says exactly how much
            max_iterations=60,
        )

    def _certified(self, found: Progress, normal: Floats | None = None) -> float:
        """A proven lower bound of log E over all θ, or over the hyperplane through the point found."""
        return found.at.value - duality_gap(self._tangent(found.point), found.point, normal=normal)

    def _tangent(self, point: Floats) -> CountProblem:
        """The minorant of log E at a point: by convexity of exp, a logistic loss with mixed counts."""
        shares = self._shares(point)
        return CountProblem(self.rows, shares @ self.pulls, shares @ self.wins)

    def _terms(self, point: Floats) -> tuple[Floats, Floats]:
        logits = self.rows @ point
        misses = self.pulls - self.wins
        return self.offsets + self.wins @ softplus(-logits) + misses @ softplus(logits), logits

    def _shares(self, point: Floats) -> Floats:
        return np.asarray(softmax(self._terms(point)[0]))

    def _derivatives(self, point: Floats) -> Derivatives:
        terms, logits = self._terms(point)
        shares = softmax(terms)
        mixed = derivatives(self.rows, shares @ self.pulls, shares @ self.wins, point)
        gradients = (self.pulls * probability_of_yes(logits) - self.wins) @ self.rows
        spread = gradients - mixed.gradient
        return Derivatives(float(logsumexp(terms)), mixed.gradient, mixed.hessian + (spread.T * shares) @ spread)


def plug_in_evidence(answers: Tallies, *, data: Data = "adaptive", order_seed: int = 0) -> Evidence:
    """Build the evidence process from batches of answers in their order.

    Restart 0 covers all batches, restart j those after the first 2^{j+1} answers a column; it weighs 1/((j+1)(j+2)). A
    batch much larger than what came before it is split in a seeded random order, which is valid because its questions
    were fixed before its answers; counts without any order can only be used if the whole design was (data="fixed").
    Costs three warm-started ridge fits for every GROWTH of the answers; memory of RESTARTS_KEPT counts a vector.
    """
    validate.one_of("data", data, ("adaptive", "fixed"))
    if isinstance(answers, Tally) and data == "adaptive":
        raise InvalidInput(ORDER_UNKNOWN.detail)
    vectors, batches = _indexed(batches_of(answers))
    span = span_of(vectors)
    if span.rank == 0:
        raise InvalidInput("All asked vectors are zero, so the answers say nothing; check the feature columns.")
    rows = span.coordinates(vectors)
    return _accumulate(span, rows, _regrouped(batches, np.random.default_rng(order_seed)))


def in_given_order(tally: Tally) -> list[Tally]:
    """Rows of a tally, in the order in which they were answered, as the list of batches that `answers` may be.

    The questions of a row may depend on all rows before it. Rows share a batch only while they hold at most GROWTH of
    the answers before it, so that no batch of several rows is ever split at random.
    """
    before = np.concatenate([[0], np.cumsum(tally.pulls)])
    bounds = [0]
    while bounds[-1] < len(tally):
        most = before[bounds[-1]] + max(1, int(GROWTH * before[bounds[-1]]))
        bounds.append(max(bounds[-1] + 1, int(np.searchsorted(before, most, side="right")) - 1))
    parts = [slice(low, high) for low, high in pairwise(bounds)]
    return [Tally(tally.vectors[part], tally.pulls[part], tally.wins[part]) for part in parts]


@dataclass(frozen=True)
class _Batch:
    """Counts on some of the rows."""

    index: Integers
    pulls: Floats
    wins: Floats

    @property
    def size(self) -> float:
        return float(self.pulls.sum())


def _indexed(answers: Sequence[Tally]) -> tuple[Floats, list[_Batch]]:
    """Asked vectors, equal ones once (unless there are very many), and the batches as counts on them."""
    asked = [batch.asked() for batch in answers]
    asked = [batch for batch in asked if len(batch)]
    if not asked:
        raise InvalidInput("There are no answers; at least one is needed.")
    vectors = np.vstack([batch.vectors for batch in asked])
    places = np.arange(len(vectors))
    if len(asked) > 1 and len(vectors) <= 200_000:
        vectors, inverse = np.unique(vectors + 0.0, axis=0, return_inverse=True)
        places = inverse.ravel()
    ends = np.cumsum([len(batch) for batch in asked])
    return vectors, [
        _Batch(places[end - len(batch) : end], batch.pulls.astype(float), batch.wins.astype(float))
        for end, batch in zip(ends, asked, strict=True)
    ]


def _regrouped(batches: Iterable[_Batch], rng: np.random.Generator) -> Iterator[_Batch]:
    """Batches of about GROWTH of all answers before: small ones put together, large ones split at random."""
    answered, waiting = 0.0, list[_Batch]()
    for batch in batches:
        wanted = max(1.0, GROWTH * answered)
        if batch.size > 2 * wanted:
            if waiting:  # together, as without the large batch: later questions must not change earlier predictions
                yield _join(waiting)
                answered += sum(each.size for each in waiting)
                waiting = []
            yield from _split(batch, answered, rng)
            answered += batch.size
            continue
        waiting.append(batch)
        if sum(each.size for each in waiting) >= wanted:
            joined = _join(waiting)
            yield joined
            answered += joined.size
            waiting = []
    if waiting:
        yield _join(waiting)


def _join(batches: Sequence[_Batch]) -> _Batch:
    index = np.concatenate([batch.index for batch in batches])
    return _Batch(
        index,
        np.concatenate([batch.pulls for batch in batches]),
        np.concatenate([batch.wins for batch in batches]),
    )


def _split(batch: _Batch, answered: float, rng: np.random.Generator) -> Iterator[_Batch]:
    """Give every answer of a batch a part, independently of what it is; parts grow with what came before."""
    wins, misses = batch.wins.astype(np.int64), (batch.pulls - batch.wins).astype(np.int64)
    while (left := float(wins.sum() + misses.sum())) > 0:
        share = min(1.0, max(1.0, GROWTH * answered) / left)
        taken_wins, taken_misses = rng.binomial(wins, share), rng.binomial(misses, share)
        wins, misses = wins - taken_wins, misses - taken_misses
        pulls = taken_wins + taken_misses
        here = pulls > 0
        if here.any():
            yield _Batch(batch.index[here], pulls[here].astype(float), taken_wins[here].astype(float))
            answered += float(pulls.sum())


def _accumulate(span: Span, rows: Floats, batches: Iterable[_Batch]) -> Evidence:
    """Predict every batch from those before it, and open restarts at doubling numbers of answers.

    Nothing here may look ahead: where questions depend on answers, so do the longest vector and the rank of them all.
    """
    pulls, wins = np.zeros(len(rows)), np.zeros(len(rows))
    score = np.zeros(len(RIDGES))
    experts = np.zeros((len(RIDGES), rows.shape[1]))
    snapshots: deque[tuple[int, Floats, Floats, Floats]] = deque(maxlen=RESTARTS_KEPT)
    number, next_restart = 0, 0.0
    for batch in batches:
        if pulls.sum() >= next_restart:
            snapshots.append((number, pulls.copy(), wins.copy(), score.copy()))
            number, next_restart = number + 1, 2.0 ** (number + 2) * span.dimension
        experts = _refitted(rows, pulls, wins, experts)
        logits = rows[batch.index] @ experts.T
        score -= batch.wins @ softplus(-logits) + (batch.pulls - batch.wins) @ softplus(logits)
        np.add.at(pulls, batch.index, batch.pulls)
        np.add.at(wins, batch.index, batch.wins)
    # Beyond 10¹² answers rounding of the scores reaches nats; what it may have added is taken off.
    rounding = 16 * np.finfo(float).eps * float(np.max(np.abs(score)))
    offsets = [
        float(logsumexp(score - before)) - math.log(len(RIDGES)) - math.log((j + 1) * (j + 2)) - rounding
        for j, _, _, before in snapshots
    ]
    return Evidence(
        span,
        rows,
        np.array([pulls - before for _, before, _, _ in snapshots]),
        np.array([wins - before for _, _, before, _ in snapshots]),
        np.array(offsets),
    )


def _refitted(rows: Floats, pulls: Floats, wins: Floats, experts: Floats) -> Floats:
    """Ridge fits on all answers so far, from where they were. Any prediction is valid, so a rough optimum will do."""
    here = np.flatnonzero(pulls)
    longest = float(norms(rows[here]).max(initial=0.0))
    if longest == 0.0:
        return experts
    problem = CountProblem(rows[here] / longest, pulls[here], wins[here])
    solutions = [
        problem.solve(ridge=ridge, start=start * longest, tolerance=1e-2, max_iterations=25)
        for ridge, start in zip(RIDGES, experts, strict=True)
    ]
    return np.array([solution.theta for solution in solutions]) / longest


def interval_anytime(
    answers: Tallies,
    queries: ArrayLike,
    *,
    delta: float = 0.05,
    data: Data = "adaptive",
    order_seed: int = 0,
    evidence: Evidence | None = None,
) -> Intervals:
    """Intervals that hold for all queries and all times at once, however the questions were chosen.

    Needs no norm bound and no burn-in. `evidence` reuses a process already built from the same answers. All times are
    meant of batches in their order; a single tally is shuffled anew at every call, so it counts as one look.

    >>> tally = Tally([[1.0]], pulls=[200], wins=[150])
    >>> result = interval_anytime(tally, [[1.0]], data="fixed")
    >>> bool(result.low[0] < np.log(3) < result.high[0])
    True
    """
    delta = validate.probability("delta", delta)
    validate.one_of("data", data, ("adaptive", "fixed"))
    scope = "All queries at once" if isinstance(answers, Tally) else "All queries and all times at once"
    statement = f"{scope}, by Ville's inequality (docs/theory.md, anytime sequence)."
    if evidence is None and isinstance(answers, Tally) and data == "adaptive":
        points = validate.matrix("queries", queries, columns=answers.dimension)
        return unbounded("anytime", Guarantee.PROVED, statement, delta, len(points), ORDER_UNKNOWN)
    evidence = evidence or plug_in_evidence(answers, data=data, order_seed=order_seed)
    points = validate.matrix("queries", queries, columns=evidence.span.dimension)
    empty = evidence.is_empty(delta=delta)
    ends = [(-math.inf, math.inf) if empty else evidence.bounds(point, delta=delta) for point in points]
    low, high = np.array(ends).T
    # With an open end the least refuted point is at infinity, and no centre means anything.
    centre = np.where(np.isfinite(high - low), evidence.span.coordinates(points) @ evidence.least.point, np.nan)
    return Intervals(
        method="anytime",
        guarantee=Guarantee.PROVED,
        statement=statement,
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
        details={"least_log_evidence": evidence.least.at.value},
    )
