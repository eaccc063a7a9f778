"""The likelihood-ratio confidence set, kept up to date one answer at a time, with an ellipsoid around it.

Before every answer a few experts, online ridge estimates, predict it. For each θ the likelihood ratio of their mixture
to θ is a martingale of mean one if θ is the truth, so by Ville's inequality

    E_t(θ) = Σ_j w_j·exp(N_j + loss_j(θ)) < 1/delta   for θ* at all times, with probability 1 − delta,

j running over restarts, N_j the log-probability the experts gave to the answers after restart j, loss_j(θ) the negative
log-likelihood of θ on them. This holds for any way of choosing questions and for any predictions made in time, so
nothing that is rough below (online steps, unfinished fits) can harm it.

From the set to an ellipsoid, on that event:
1. For any shares p, log E ≥ G(θ) = Σ_j p_j(log w_j + N_j − log p_j + loss_j(θ)): a logistic loss with weights.
2. Around an anchor a, G(a+u) ≥ G(a) + gᵀu + (e^{−kr} + kr − 1)/k² with r = ‖u‖ in the Hessian H, k the largest
   ‖x‖ in H⁻¹ of a chosen vector: a first, rough ellipsoid (`outer_radius`).
3. Where |xᵀ(θ* − a)| ≤ D is known from the last ellipsoid, the loss of an answer is at least its tangent plus cz²/2,
   z = xᵀ(θ* − a), c = c(xᵀa, D) of `curvatures`. The sum of these is a quadratic that G exceeds at θ*; its sublevel set
   is the next ellipsoid. Answers that come in are added to it one by one, and now and then everything is done anew.
So the ellipsoids are proved, without any bound on the norm of θ*.
"""

import math
from typing import NamedTuple

import numpy as np

from surepick._arrays import Floats
from surepick.contextual import numerics
from surepick.contextual.history import History
from surepick.contextual.policy import refit_due
from surepick.glm.duality import outer_radius

RIDGES = np.array([1.0, 0.1, 0.01])
"""Experts, in units of the squared length of the longest vector so far."""

ANCHOR_RIDGE = 1e-3
"""Keeps the anchor finite before both answers were seen; any anchor is valid."""

EXPERT_GROWTH = 0.05
ANCHOR_GROWTH = 0.02
"""Full fits are redone after the answers grew by these shares; in between, steps of O(d²)."""

SHARPENINGS = 2
"""How often a fresh ellipsoid is used to sharpen itself."""

RESTARTS_KEPT = 10


class RatioSet(NamedTuple):
    """State of the set; the ellipsoid ‖θ − centre‖ ≤ radius in the inverse of `inverse` is what policies use."""

    history: History
    centre: Floats
    inverse: Floats
    radius: float
    """Infinite as long as the set may be unbounded; then `inverse` only says which directions are unexplored."""
    log_level: float
    """log 1/delta."""
    experts: Floats
    expert_inverses: Floats
    scores: Floats
    """Log-probability that each expert gave to all answers so far."""
    longest: float
    restarts: Floats
    """One row a restart: number of answers before it, log-weight, share p, then the scores at that moment."""
    anchor: Floats
    gradient: Floats
    loss: float
    """Gradient and loss of G at the anchor."""
    expert_fit: int
    anchor_fit: int
    """Number of answers at the last full fits."""


def empty(dimension: int, delta: float) -> RatioSet:
    """The set before any answer: everything."""
    experts = len(RIDGES)
    return RatioSet(
        history=History.empty(dimension),
        centre=np.zeros(dimension),
        inverse=np.eye(dimension),
        radius=math.inf,
        log_level=math.log(1 / delta),
        experts=np.zeros((experts, dimension)),
        expert_inverses=np.eye(dimension) / RIDGES[:, None, None],
        scores=np.zeros(experts),
        longest=0.0,
        restarts=np.array([[0.0, -math.log(2.0), 1.0] + [0.0] * experts]),
        anchor=np.zeros(dimension),
        gradient=np.zeros(dimension),
        loss=0.0,
        expert_fit=0,
        anchor_fit=0,
    )


def absorbed(now: RatioSet, vector: Floats, answer: float) -> RatioSet:
    """The set after one more answer; O(d²) plus full fits whose share of the cost does not grow with t."""
    kernels = numerics.kernels
    experts, expert_inverses, scores = now.experts.copy(), now.expert_inverses.copy(), now.scores.copy()
    kernels.forecast(experts, expert_inverses, scores, vector, answer)
    history = now.history.appended(vector, answer)
    longest = max(now.longest, math.sqrt(float(vector @ vector)))
    expert_fit = now.expert_fit
    if longest > 0 and refit_due(history.count, expert_fit, EXPERT_GROWTH):
        experts, expert_inverses = _refitted_experts(history, experts, longest)
        expert_fit = history.count
    gradient, inverse, centre = now.gradient.copy(), now.inverse.copy(), now.centre.copy()
    loss = now.loss + kernels.add_minorant(now.anchor, gradient, inverse, centre, now.radius, vector, answer)
    after = RatioSet(
        history,
        centre,
        inverse,
        now.radius,
        now.log_level,
        experts,
        expert_inverses,
        scores,
        longest,
        now.restarts,
        now.anchor,
        gradient,
        loss,
        expert_fit,
        now.anchor_fit,
    )
    if not math.isinf(now.radius):
        after = after._replace(radius=_radius(after, gradient, inverse))
    return _anchored_anew(after) if refit_due(history.count, now.anchor_fit, ANCHOR_GROWTH) else after


def _radius(now: RatioSet, gradient: Floats, inverse: Floats) -> float:
    """Of {θ : G(a) + gᵀu + ‖u‖²/2 ≤ log 1/delta} around its centre, the norm being that of the curvature."""
    return math.sqrt(2.0 * _room(now) + max(0.0, float(gradient @ inverse @ gradient)))


def _room(now: RatioSet) -> float:
    """How far G may rise from the anchor; zero where everything is refuted, which has probability delta at most."""
    return max(now.log_level - float(numerics.kernels.tangent_offset(now.scores, now.restarts)) - now.loss, 0.0)


def _refitted_experts(history: History, experts: Floats, longest: float) -> tuple[Floats, Floats]:
    inverses = np.empty((len(RIDGES), experts.shape[1], experts.shape[1]))
    fitted = np.empty_like(experts)
    for e, ridge in enumerate(RIDGES * longest**2):
        found = numerics.kernels.newton(history.rows, history.answers, history.ones, experts[e], ridge, 1e-2, 25)
        fitted[e] = found[0]
        inverses[e] = numerics.kernels.inverse(found[3] + ridge * np.eye(experts.shape[1]))
    return fitted, inverses


def _anchored_anew(now: RatioSet) -> RatioSet:
    """Open a restart if due, choose the shares, fit the anchor to G, and build the ellipsoid from all answers."""
    kernels, history = numerics.kernels, now.history
    now = _restarted(now)
    weights, first = _weights(now)
    rows, answers = history.rows[first:], history.answers[first:]
    ridge = ANCHOR_RIDGE * now.longest**2
    anchor, loss, gradient, information, _ = kernels.newton(rows, answers, weights, now.anchor, ridge, 1e-2, 25)
    old = now
    now = now._replace(anchor=anchor, loss=loss, gradient=gradient, anchor_fit=history.count)
    if math.isinf(old.radius):
        inverse = kernels.inverse(information)
        if not np.isfinite(inverse[0, 0]):
            return _unbounded(now, information)
        largest = math.sqrt(kernels.squared_norms(rows, inverse).max())
        decrement = math.sqrt(max(0.0, float(gradient @ inverse @ gradient)))
        radius = outer_radius(largest, decrement, _room(now))
        if math.isinf(radius):
            return _unbounded(now, information)
        reaches = kernels.reaches_of(rows, anchor, anchor, inverse, radius)
    else:
        reaches = kernels.reaches_of(rows, anchor, old.centre, old.inverse, old.radius)
    for sharpening in range(SHARPENINGS):
        inverse = kernels.inverse(kernels.minorant_matrix(rows, weights, anchor, reaches))
        if not np.isfinite(inverse[0, 0]):
            return _unbounded(now, information)
        centre, radius = anchor - inverse @ gradient, _radius(now, gradient, inverse)
        if sharpening + 1 < SHARPENINGS:
            reaches = np.minimum(reaches, kernels.reaches_of(rows, anchor, centre, inverse, radius))
    return now._replace(inverse=inverse, centre=centre, radius=radius)


def _unbounded(now: RatioSet, information: Floats) -> RatioSet:
    """No ellipsoid yet: a ridge makes the norms finite, largest where nothing is known."""
    ridge = max(ANCHOR_RIDGE * now.longest**2, 1e-12)
    inverse = numerics.kernels.inverse(information + ridge * np.eye(len(now.anchor)))
    return now._replace(inverse=inverse, centre=now.anchor, radius=math.inf)


def _restarted(now: RatioSet) -> RatioSet:
    """Restart j covers the answers after the first 2^{j+1}·d; it weighs 1/((j+1)(j+2))."""
    weighed = round(math.exp(-now.restarts[-1, 1]))  # (j+1)(j+2) of the last one
    j = round((math.sqrt(1 + 4 * weighed) - 1) / 2)
    if now.history.count < 2 ** (j + 1) * len(now.anchor):
        return now._replace(restarts=now.restarts.copy())
    fresh = np.concatenate([[now.history.count, -math.log((j + 1) * (j + 2)), 0.0], now.scores])
    return now._replace(restarts=np.vstack([now.restarts, fresh])[-RESTARTS_KEPT:].copy())


def _weights(now: RatioSet) -> tuple[Floats, int]:
    """Choose the shares p (in place of the restarts' third column) and return the answers' weights, and the first one.

    The best shares are those of the restarts' evidence where it matters, at the border of the set. There a restart's
    loss has risen above that at the anchor in proportion to its answers (`border_shares`).
    """
    history = now.history
    totals = np.zeros(history.count + 1)
    np.cumsum(numerics.kernels.row_losses(history.rows, history.answers, now.anchor), out=totals[1:])
    starts = now.restarts[:, 0].astype(np.intp)
    terms = numerics.kernels.expert_evidence(now.scores, now.restarts) + totals[-1] - totals[starts]
    growth = 1.0 - starts / history.count
    shares = numerics.kernels.border_shares(terms, growth, now.log_level)
    shares[(shares < 1e-6) | (growth <= 0)] = 0.0
    shares /= shares.sum()
    now.restarts[:, 2] = shares
    first = int(starts[np.flatnonzero(shares)[0]])
    weights = np.repeat(np.cumsum(shares), np.diff(np.append(starts, history.count)))
    return weights[first - int(starts[0]) :], first
