"""The likelihood-ratio evidence: estimates made before some answers bet against every θ on these answers.

    E(θ) = Σ_j w_j · mean over experts of exp(their log-probability of the answers after restart j − that of θ)

Under θ* every term is a martingale, so E(θ*) ever reaches 1/delta with probability at most delta, by Ville's inequality
(docs/theory.md, Theorem 3; docs/anytime.md, Lemma 1). It holds for any way of choosing questions and of stopping, and
for any predictions made in time; better predictions only make it grow faster.

`PlugIn` is the process, counted stage by stage by the policies and batch by batch by `evidence_from_batches` for the
intervals. `Evidence` is the function log E of θ that both work with, `Minorant` its lower bound for fixed shares.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from surepick._arrays import Floats, Integers
from surepick.errors import InvalidInput
from surepick.glm import Tally, probability_of_yes, softplus, variance
from surepick.glm.batched_newton import minimise_losses
from surepick.glm.fit import CountProblem
from surepick.glm.loss import Derivatives, Vectors, derivatives, losses
from surepick.linalg import Span, norms, span_of

RIDGES = np.array([10.0, 1.0, 0.1, 0.01])
"""Experts of the policies: ridge fits with these weights, the longest vector of the problem scaled to length one."""

INTERVAL_RIDGES = (1.0, 0.1, 0.01)
"""Experts of the intervals: ridge fits with these weights, the longest vector asked so far scaled to length one."""

FIRST_RESTART = 2
"""Restart j ≥ 1 begins with the first stage planned after FIRST_RESTART·2^j·d answers; restart 0 with the first."""

GROWTH = 0.15
"""Batches cut from a long run of answers hold this share of the answers before them."""

RESTARTS_KEPT = 10
"""Terms of the mixture beyond the latest ten are left out of intervals: E only shrinks, so the sets only grow."""


def log_sum(terms: Floats) -> Floats:
    """log Σ exp along the last axis; SciPy's costs more in checks than in sums at this size."""
    most = np.max(terms, axis=-1, keepdims=True)
    return np.asarray(np.log(np.sum(np.exp(terms - most), axis=-1)) + most[..., 0])


@dataclass(frozen=True, eq=False)
class Restart:
    """What had been counted when a restart began."""

    number: int
    """j, which fixes its weight w_j = 1/((j+1)(j+2))."""
    pulls: Floats
    wins: Floats
    scores: Floats


@dataclass(frozen=True, eq=False)
class PlugIn:
    """The process after some stages; counts are on all measurement vectors of the problem."""

    pulls: Floats
    wins: Floats
    scores: Floats = field(default_factory=lambda: np.zeros(len(RIDGES)))
    """N: the log-probability that each expert gave to all answers so far."""
    restarts: tuple[Restart, ...] = ()
    kept: int | None = None
    """Restarts kept, the latest ones; all of them if None."""

    def after(
        self,
        where: Integers,
        pulls: Floats,
        wins: Floats,
        predictions: Floats,
        *,
        restart: bool,
        missing: Floats,
    ) -> "PlugIn":
        """The process with one more stage: counts on the vectors `where`, row e of logits predicted by expert e.

        `restart` says whether a restart begins with this stage. `missing` counts questions whose answers never came:
        each is charged the worse of the two answers, which is valid whatever the reason (docs/anytime.md, section 4).
        """
        yes, no = softplus(-predictions), softplus(predictions)
        scores = self.scores - yes @ wins - no @ (pulls - wins) - np.maximum(yes, no) @ missing
        return self.with_scores(where, pulls, wins, scores, restart=restart)

    def with_scores(self, where: Integers, pulls: Floats, wins: Floats, scores: Floats, *, restart: bool) -> "PlugIn":
        """The process with one more stage, after which the experts' log-probabilities are `scores`."""
        restarts = self.restarts
        if restart:
            number = restarts[-1].number + 1 if restarts else 0
            restarts = (*restarts, Restart(number, self.pulls, self.wins, self.scores))
            restarts = restarts if self.kept is None else restarts[-self.kept :]
        total, ones = self.pulls.copy(), self.wins.copy()
        # Not `+=`: a vector may occur in several batches that were put together.
        np.add.at(total, where, pulls)
        np.add.at(ones, where, wins)
        return replace(self, pulls=total, wins=ones, scores=scores, restarts=restarts)

    def wants_restart(self, begun: int, asked: float, dimension: int) -> bool:
        """Whether the next stage is to begin a restart, `begun` of them having been planned so far.

        Doubling numbers of answers: some restart then covers about half of them at any time, which forgets what the
        first, poor predictions cost, for log w_j ≈ 2·log log of the answers.
        """
        return begun == 0 or asked >= FIRST_RESTART * 2**begun * dimension


@dataclass(frozen=True, eq=False)
class Evidence:
    """log E(θ) = log Σ_j exp(offset_j + loss_j(θ)) on the vectors asked so far; convex in θ.

    loss_j is the negative log-likelihood of the answers after restart j; offset_j its log-weight plus the
    log-probability that the experts gave to these answers (docs/theory.md, 5.2).
    """

    where: Integers
    """Measurements of the problem that were asked."""
    vectors: Vectors
    """The same as vectors x."""
    pulls: Floats
    """Restarts × vectors: how often each was asked after the restart."""
    wins: Floats
    offsets: Floats

    @classmethod
    def of(cls, process: PlugIn, rows: Floats) -> "Evidence":
        """The evidence of all answers in the process; `rows` are the vectors of its counts."""
        where = np.flatnonzero(process.pulls)
        asked = rows if len(where) == len(rows) else rows[where]  # long data are not copied
        offsets = [
            # log w_j + log of the mean over experts; both sum to at most one, as the mixture requires.
            float(log_sum(process.scores - restart.scores))
            - np.log(len(process.scores))
            - np.log((restart.number + 1) * (restart.number + 2))
            for restart in process.restarts
        ]
        return cls(
            where,
            Vectors(np.ascontiguousarray(asked)),
            np.array([process.pulls[where] - restart.pulls[where] for restart in process.restarts]),
            np.array([process.wins[where] - restart.wins[where] for restart in process.restarts]),
            np.array(offsets),
        )

    def terms(self, theta: Floats) -> Floats:
        """offset_j + loss_j(θ): a row for each θ, a column for each restart."""
        logits = theta @ self.vectors.rows.T
        return np.asarray(
            self.offsets + softplus(-logits) @ self.wins.T + softplus(logits) @ (self.pulls - self.wins).T
        )

    def log_evidence(self, theta: Floats) -> Floats:
        """log E(θ) for each row θ."""
        return log_sum(self.terms(theta))

    def derivatives(self, theta: Floats) -> Derivatives:
        """log E, its gradient and its Hessian at one θ; O(p(d² + restarts)) for p vectors."""
        terms = self.terms(theta[None, :])[0]
        shares = softmax(terms)
        mixed = derivatives(self.vectors.rows, shares @ self.pulls, shares @ self.wins, theta)
        gradients = (self.pulls * probability_of_yes(self.vectors.rows @ theta) - self.wins) @ self.vectors.rows
        # The Hessian of a log-sum-exp is the mean of the Hessians plus the covariance of the gradients.
        spread = gradients - mixed.gradient
        return Derivatives(float(log_sum(terms)), mixed.gradient, mixed.hessian + (spread.T * shares) @ spread)

    def tangent(self, theta: Floats) -> CountProblem:
        """The logistic loss with mixed counts that touches log E at one θ from below, up to a constant (Prop. 5, i)."""
        shares = softmax(self.terms(theta[None, :])[0])
        return CountProblem(self.vectors.rows, shares @ self.pulls, shares @ self.wins)

    def mixed(self, shares: Floats) -> "Minorant":
        """For fixed shares p of the restarts, the convex minorant Σ p_j(offset_j + loss_j) + entropy(p) of log E.

        Jensen's inequality, with equality where p is the softmax of the terms; one minorant for each row of shares.
        """
        safe = np.where(shares > 0, shares, 1.0)
        constant = shares @ self.offsets - np.sum(shares * np.log(safe), axis=1)
        return Minorant(self.vectors, shares @ self.pulls, shares @ self.wins, constant)


@dataclass(frozen=True, eq=False)
class Minorant:
    """constant + logistic loss with mixed counts, for each of several rivals (first axis of the arrays)."""

    vectors: Vectors
    pulls: Floats
    wins: Floats
    constant: Floats

    def values(self, theta: Floats) -> Floats:
        """Its value for every rival at its own θ."""
        return self.constant + losses(self.vectors, self.pulls, self.wins, theta)

    def rows_of(self, which: NDArray[np.intp]) -> "Minorant":
        """For some of the rivals."""
        return Minorant(self.vectors, self.pulls[which], self.wins[which], self.constant[which])


# Experts of the policies: all ridges in one batched Newton, on the few hundred vectors of a problem.


def ridge_experts(rows: Floats, pulls: Floats, wins: Floats, start: Floats) -> Floats:
    """Ridge fits on all answers arrived, RIDGES × dimension, from where they were.

    Any prediction is valid, so a rough optimum will do.
    """
    where = np.flatnonzero(pulls)
    if not len(where):
        return start
    longest = np.sqrt(np.max(np.einsum("xi,xi->x", rows, rows)))  # of the whole problem: fixed before any answer
    some = Vectors(np.ascontiguousarray(rows[where]))
    count = len(RIDGES)
    return minimise_losses(
        some,
        np.broadcast_to(pulls[where], (count, len(where))),
        np.broadcast_to(wins[where], (count, len(where))),
        start,
        ridge=RIDGES * longest**2,
        tolerance=1e-2,
        iterations=25,
    )


def predicted(rows: Floats, pulls: Floats, fits: Floats, asked: Floats) -> Floats:
    """Logits that the experts predict for vectors `asked`: less extreme than their fits, by how uncertain these are.

    The mean of μ(v) over v ~ N(a, b) is about μ(a/√(1 + πb/8)) (MacKay 1992); b is the variance of the ridge posterior.
    """
    where = np.flatnonzero(pulls)
    some = Vectors(np.ascontiguousarray(rows[where]))
    longest = np.max(np.einsum("xi,xi->x", rows, rows))
    information = some.information(pulls[where] * variance(fits @ some.rows.T))
    inverse = np.linalg.inv(information + (RIDGES * longest)[:, None, None] * np.eye(rows.shape[1]))
    doubt = np.einsum("xi,eij,xj->ex", asked, inverse, asked)
    return np.asarray(fits @ asked.T / np.sqrt(1 + np.pi / 8 * doubt))


# The process of the intervals: from batches of answers in their order.


def evidence_from_batches(batches: Sequence[Tally], rng: np.random.Generator) -> tuple[Span, Evidence]:
    """The evidence of batches of answers in their order, in coordinates of the span of the asked vectors.

    Restart 0 covers all batches, restart j those after the first 2^{j+1} answers a column. A batch much larger than
    what came before it is split at random by `rng`, which is valid because its questions were fixed before its answers
    (docs/theory.md, 5.3). Costs three warm-started ridge fits for every GROWTH of the answers; memory of RESTARTS_KEPT
    counts a vector.
    """
    vectors, counted = _indexed(batches)
    span = span_of(vectors)
    if span.rank == 0:
        raise InvalidInput("All asked vectors are zero, so the answers say nothing; check the feature columns.")
    rows = span.coordinates(vectors)
    nothing = np.zeros(len(rows))
    process = PlugIn(nothing, nothing, np.zeros(len(INTERVAL_RIDGES)), kept=RESTARTS_KEPT)
    experts = np.zeros((len(INTERVAL_RIDGES), rows.shape[1]))
    for batch in _regrouped(counted, rng):
        # Nothing here may look ahead: where questions depend on answers, so do the longest vector and the rank of them
        # all. Hence the scale of the vectors asked so far, and restarts by columns instead of rank.
        begun = process.restarts[-1].number + 1 if process.restarts else 0
        restart = process.wants_restart(begun, float(process.pulls.sum()), span.dimension)
        experts = _refitted(rows, process.pulls, process.wins, experts)
        logits = rows[batch.index] @ experts.T
        cost = batch.wins @ softplus(-logits) + (batch.pulls - batch.wins) @ softplus(logits)
        process = process.with_scores(batch.index, batch.pulls, batch.wins, process.scores - cost, restart=restart)
    evidence = Evidence.of(process, rows)
    # Beyond 10¹² answers rounding of the scores reaches nats; what it may have added is taken off.
    rounding = 16 * np.finfo(float).eps * float(np.max(np.abs(process.scores)))
    return span, replace(evidence, offsets=evidence.offsets - rounding)


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

    index: NDArray[np.intp]
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
    answered, pending, waiting = 0.0, 0.0, list[_Batch]()
    for batch in batches:
        wanted = max(1.0, GROWTH * answered)
        is_large = batch.size > 2 * wanted
        if not is_large:
            waiting.append(batch)
            pending += batch.size
        # Before a large batch the waiting ones go as they are: later questions must not change earlier predictions.
        if waiting and (is_large or pending >= wanted):
            yield _join(waiting)
            answered, pending, waiting = answered + pending, 0.0, []
        if is_large:
            yield from _split(batch, answered, rng)
            answered += batch.size
    if waiting:
        yield _join(waiting)


def _join(batches: Sequence[_Batch]) -> _Batch:
    return _Batch(
        np.concatenate([batch.index for batch in batches]),
        np.concatenate([batch.pulls for batch in batches]),
        np.concatenate([batch.wins for batch in batches]),
    )


def _split(batch: _Batch, answered: float, rng: np.random.Generator) -> Iterator[_Batch]:
    """Give every answer of a batch a part, independently of what it is; parts grow with what came before."""
    wins, misses = batch.wins.astype(np.int64), (batch.pulls - batch.wins).astype(np.int64)
    while (left := float(wins.sum() + misses.sum())) > 0:
        share = min(1.0, max(1.0, GROWTH * answered) / left)
        # The share depends on numbers of answers only, so the parts are independent of what the answers were.
        taken_wins, taken_misses = rng.binomial(wins, share), rng.binomial(misses, share)
        wins, misses = wins - taken_wins, misses - taken_misses
        pulls = taken_wins + taken_misses
        here = pulls > 0
        if here.any():
            yield _Batch(batch.index[here], pulls[here].astype(float), taken_wins[here].astype(float))
            answered += float(pulls.sum())


def _refitted(rows: Floats, pulls: Floats, wins: Floats, experts: Floats) -> Floats:
    """Ridge fits on all answers so far, from where they were. Any prediction is valid, so a rough optimum will do.

    One by one, because data may be long: the scalar Newton passes over them in blocks, a batch would hold them thrice.
    """
    here = np.flatnonzero(pulls)
    longest = float(norms(rows[here]).max(initial=0.0))
    if longest == 0.0:
        return experts
    problem = CountProblem(rows[here] / longest, pulls[here], wins[here])
    solutions = [
        problem.solve(ridge=ridge, start=start * longest, tolerance=1e-2, max_iterations=25)
        for ridge, start in zip(INTERVAL_RIDGES, experts, strict=True)
    ]
    return np.array([solution.theta for solution in solutions]) / longest
