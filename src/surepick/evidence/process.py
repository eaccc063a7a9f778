"""The plug-in evidence process: estimates made before a stage bet against every θ on the answers to it.

E(θ) = Σ_j w_j · mean over experts of exp(their log-probability of the answers after restart j − that of θ). Under θ*
every term is a martingale, so E(θ*) ever reaches 1/delta with probability at most delta (docs/anytime.md, section 1).
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from surepick._arrays import Floats, Integers
from surepick.glm import softplus, variance
from surepick.glm.batched_newton import minimise_losses
from surepick.glm.loss import Vectors, losses

RIDGES = np.array([10.0, 1.0, 0.1, 0.01])
"""Experts: ridge fits with these weights, after scaling the longest vector of the problem to length one."""

FIRST_RESTART = 2
"""Restart j ≥ 1 begins with the first stage planned after FIRST_RESTART·2^j·d answers; restart 0 with the first."""


def log_sum(terms: Floats) -> Floats:
    """log Σ exp along the last axis; SciPy's costs more in checks than in sums at this size."""
    most = np.max(terms, axis=-1, keepdims=True)
    return np.asarray(np.log(np.sum(np.exp(terms - most), axis=-1)) + most[..., 0])


@dataclass(frozen=True, eq=False)
class Restart:
    """What had been counted when a restart began."""

    pulls: Floats
    wins: Floats
    scores: Floats


@dataclass(frozen=True, eq=False)
class PlugIn:
    """The process after some stages; counts are on all measurement vectors of the problem."""

    pulls: Floats
    wins: Floats
    scores: Floats = field(default_factory=lambda: np.zeros(len(RIDGES)))
    """Log-probability that each expert gave to all answers so far."""
    restarts: tuple[Restart, ...] = ()

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
        """With one more stage, of which expert e predicted row e of logits; `missing` ones are charged the worst."""
        restarts = self.restarts
        if restart:
            restarts = (*restarts, Restart(self.pulls, self.wins, self.scores))
        yes, no = softplus(-predictions), softplus(predictions)
        scores = self.scores - yes @ wins - no @ (pulls - wins) - np.maximum(yes, no) @ missing
        total, ones = self.pulls.copy(), self.wins.copy()
        total[where] += pulls
        ones[where] += wins
        return replace(self, pulls=total, wins=ones, scores=scores, restarts=restarts)

    def wants_restart(self, begun: int, asked: int, dimension: int) -> bool:
        """Whether the next stage is to begin a restart, `begun` of them having been planned so far."""
        return begun == 0 or asked >= FIRST_RESTART * 2**begun * dimension


@dataclass(frozen=True, eq=False)
class Evidence:
    """log E on the vectors asked so far: Σ_j exp(offset_j + loss_j(θ))."""

    where: Integers
    """Measurements of the problem that were asked."""
    vectors: Vectors
    pulls: Floats
    """Restarts × vectors."""
    wins: Floats
    offsets: Floats

    @classmethod
    def of(cls, process: PlugIn, rows: Floats) -> "Evidence":
        """The evidence of all answers in the process."""
        where = np.flatnonzero(process.pulls)
        offsets = [
            float(log_sum(process.scores - each.scores)) - np.log(len(RIDGES)) - np.log((j + 1) * (j + 2))
            for j, each in enumerate(process.restarts)
        ]
        return cls(
            where,
            Vectors(np.ascontiguousarray(rows[where])),
            np.array([process.pulls[where] - each.pulls[where] for each in process.restarts]),
            np.array([process.wins[where] - each.wins[where] for each in process.restarts]),
            np.array(offsets),
        )

    def terms(self, theta: Floats) -> Floats:
        """offset_j + loss_j(θ), one row a θ."""
        logits = theta @ self.vectors.rows.T
        return np.asarray(
            self.offsets + softplus(-logits) @ self.wins.T + softplus(logits) @ (self.pulls - self.wins).T
        )

    def mixed(self, shares: Floats) -> "Minorant":
        """For fixed shares p of the restarts, the convex minorant Σ p_j(offset_j + loss_j) + entropy(p) of log E."""
        safe = np.where(shares > 0, shares, 1.0)
        constant = shares @ self.offsets - np.sum(shares * np.log(safe), axis=1)
        return Minorant(self.vectors, shares @ self.pulls, shares @ self.wins, constant)

    def log_evidence(self, theta: Floats) -> Floats:
        """log E(θ), one number a θ."""
        return log_sum(self.terms(theta))

    @cached_property
    def least(self) -> tuple[Floats, "Minorant", Floats]:
        """About where log E is least, the minorant whose least point it is to a millionth of a nat, and its shares."""
        theta = np.zeros((1, self.vectors.rows.shape[1]))
        shares = softmax(self.terms(theta), axis=1)
        for tolerance in (0.1, 0.1, 1e-3):
            below = self.mixed(shares)
            theta = minimise_losses(self.vectors, below.pulls, below.wins, theta, tolerance=tolerance, iterations=20)
            used, shares = shares, (shares + softmax(self.terms(theta), axis=1)) / 2
        return theta, below, used


@dataclass(frozen=True, eq=False)
class Minorant:
    """constant + logistic loss with mixed counts, one row a rival."""

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


def predicted(rows: Floats, pulls: Floats, fits: Floats, asked: Floats) -> Floats:
    """Logits that the experts predict for vectors: less extreme than their fits, by how uncertain these are.

    The mean of μ(v) over v ~ N(a, b) is about μ(a/√(1 + πb/8)) (MacKay 1992); b is the variance of the ridge posterior.
    """
    where = np.flatnonzero(pulls)
    some = Vectors(np.ascontiguousarray(rows[where]))
    longest = np.max(np.einsum("xi,xi->x", rows, rows))
    information = some.information(pulls[where] * variance(fits @ some.rows.T))
    inverse = np.linalg.inv(information + (RIDGES * longest)[:, None, None] * np.eye(rows.shape[1]))
    doubt = np.einsum("xi,eij,xj->ex", asked, inverse, asked)
    return np.asarray(fits @ asked.T / np.sqrt(1 + np.pi / 8 * doubt))


def ridge_experts(rows: Floats, pulls: Floats, wins: Floats, start: Floats) -> Floats:
    """Ridge fits on all answers arrived; any prediction is valid, so a rough optimum from where they were will do."""
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
