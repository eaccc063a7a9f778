"""The likelihood-ratio confidence set, updated one answer at a time, and optimism on it.

Before every answer a few experts, online ridge estimates, predict it. For each θ the likelihood ratio of their mixture
to θ is a martingale of mean one if θ is the truth, so by Ville's inequality

    E_t(θ) = Σ_j w_j·exp(N_j + loss_j(θ)) < 1/delta   for θ* at all times, with probability 1 − delta,

j running over restarts, N_j the log-probability the experts gave to the answers after restart j, loss_j(θ) the negative
log-likelihood of θ on them. This holds for any way of choosing questions and for any predictions made in time, so
nothing that is rough below (online steps, unfinished fits) can harm it.

From the set to an ellipsoid, on that event (docs/contextual.md, "The likelihood-ratio ellipsoid"):
1. For any shares p, log E ≥ G(θ) = Σ_j p_j(log w_j + N_j − log p_j + loss_j(θ)): a logistic loss with weights.
2. Around an anchor a, G(a+u) ≥ G(a) + gᵀu + (e^{−kr} + kr − 1)/k² with r = ‖u‖ in the Hessian H, k the largest
   ‖x‖ in H⁻¹ of a chosen vector (docs/theory.md, Proposition 6): a first, rough ellipsoid (`outer_radius`).
3. Where |xᵀ(θ* − a)| ≤ D is known from the last ellipsoid, the loss of an answer is at least its tangent plus cz²/2,
   z = xᵀ(θ* − a), c = c(xᵀa, D) of Lemma A (`kernels.curvature`). The sum of these is a quadratic that G exceeds at
   θ*; its sublevel set is the next ellipsoid (Proposition B). Answers that come in are added to it one by one, and
   from time to time the anchor and the quadratic are computed afresh from all answers.
So the ellipsoids are proved, without any bound on the norm of θ*.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.contextual import kernels
from surepick.contextual.history import History
from surepick.contextual.policy import LOGISTIC, Choice, Facts, chosen_vector, clean_arms, clean_reward, refit_due
from surepick.glm.duality import outer_radius
from surepick.glm.kernels import inverse, newton
from surepick.guarantee import Guarantee

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


class LikelihoodRatioSet(NamedTuple):
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
    """Length of the longest chosen vector."""
    restarts: Floats
    """A row for each restart: number of answers before it, log w, share p, then the scores at that moment."""
    anchor: Floats
    gradient: Floats
    loss: float
    """Gradient and loss of G at the anchor."""
    expert_fit: int
    anchor_fit: int
    """Number of answers at the last full fits."""

    @classmethod
    def empty(cls, dimension: int, delta: float) -> "LikelihoodRatioSet":
        """The set before any answer: everything."""
        experts = len(RIDGES)
        return cls(
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

    def updated(self, vector: Floats, answer: float) -> "LikelihoodRatioSet":
        """The set after one more answer; O(d²) plus full fits whose share of the cost does not grow with t."""
        experts, expert_inverses, scores = self.experts.copy(), self.expert_inverses.copy(), self.scores.copy()
        # The order matters: the experts predict the answer before anything has seen it.
        kernels.forecast(experts, expert_inverses, scores, vector, answer)
        history = self.history.appended(vector, answer)
        longest = max(self.longest, math.sqrt(float(vector @ vector)))
        expert_fit = self.expert_fit
        if longest > 0 and refit_due(history.count, expert_fit, EXPERT_GROWTH):
            experts, expert_inverses = _refitted_experts(history, experts, longest)
            expert_fit = history.count
        gradient, curved, centre = self.gradient.copy(), self.inverse.copy(), self.centre.copy()
        loss = self.loss + kernels.add_minorant(self.anchor, gradient, curved, centre, self.radius, vector, answer)
        after = LikelihoodRatioSet(
            history,
            centre,
            curved,
            self.radius,
            self.log_level,
            experts,
            expert_inverses,
            scores,
            longest,
            self.restarts,
            self.anchor,
            gradient,
            loss,
            expert_fit,
            self.anchor_fit,
        )
        if not math.isinf(self.radius):
            after = after._replace(radius=_radius(after, gradient, curved))
        return _anchored(after) if refit_due(history.count, self.anchor_fit, ANCHOR_GROWTH) else after


def _radius(now: LikelihoodRatioSet, gradient: Floats, curved: Floats) -> float:
    """Proposition B: the radius of {θ : G(a) + gᵀu + ‖u‖²/2 ≤ log 1/delta} around its centre, in the norm of M."""
    return math.sqrt(2.0 * _slack(now) + max(0.0, float(gradient @ curved @ gradient)))


def _slack(now: LikelihoodRatioSet) -> float:
    """How far G may rise from the anchor; zero where everything is refuted, which has probability delta at most."""
    return max(now.log_level - float(kernels.tangent_offset(now.scores, now.restarts)) - now.loss, 0.0)


def _refitted_experts(history: History, experts: Floats, longest: float) -> tuple[Floats, Floats]:
    """Full fits of all experts and the inverses of their penalised information, warm-started."""
    inverses = np.empty((len(RIDGES), experts.shape[1], experts.shape[1]))
    fitted = np.empty_like(experts)
    for e, ridge in enumerate(RIDGES * longest**2):
        found = newton(history.rows, history.answers, history.ones, experts[e], ridge, 1e-2, 25)
        fitted[e] = found[0]
        inverses[e] = inverse(found[3] + ridge * np.eye(experts.shape[1]))
    return fitted, inverses


def _anchored(now: LikelihoodRatioSet) -> LikelihoodRatioSet:
    """Open a restart if due, choose the shares, fit the anchor to G, and build the ellipsoid from all answers."""
    history, old = now.history, now
    now = _restarted(now)
    weights, first = _weights(now)
    rows, answers = history.rows[first:], history.answers[first:]
    ridge = ANCHOR_RIDGE * now.longest**2
    anchor, loss, gradient, information, _ = newton(rows, answers, weights, now.anchor, ridge, 1e-2, 25)
    now = now._replace(anchor=anchor, loss=loss, gradient=gradient, anchor_fit=history.count)
    if math.isinf(old.radius):
        curved = inverse(information)
        if not np.isfinite(curved[0, 0]):
            return _unbounded(now, information)
        largest = math.sqrt(kernels.squared_norms(rows, curved).max())
        decrement = math.sqrt(max(0.0, float(gradient @ curved @ gradient)))
        radius = outer_radius(largest, decrement, _slack(now))
        if math.isinf(radius):
            return _unbounded(now, information)
        reaches = kernels.reaches_of(rows, anchor, anchor, curved, radius)
    else:
        reaches = kernels.reaches_of(rows, anchor, old.centre, old.inverse, old.radius)
    for sharpening in range(SHARPENINGS):
        curved = inverse(kernels.minorant_matrix(rows, weights, anchor, reaches))
        if not np.isfinite(curved[0, 0]):
            return _unbounded(now, information)
        centre, radius = anchor - curved @ gradient, _radius(now, gradient, curved)
        # Both the old and the new ellipsoid hold θ* on the event, so the smaller reach is right for every row.
        if sharpening + 1 < SHARPENINGS:
            reaches = np.minimum(reaches, kernels.reaches_of(rows, anchor, centre, curved, radius))
    return now._replace(inverse=curved, centre=centre, radius=radius)


def _unbounded(now: LikelihoodRatioSet, information: Floats) -> LikelihoodRatioSet:
    """No ellipsoid yet: a ridge makes the norms finite, largest where nothing is known."""
    ridge = max(ANCHOR_RIDGE * now.longest**2, 1e-12)
    curved = inverse(information + ridge * np.eye(len(now.anchor)))
    return now._replace(inverse=curved, centre=now.anchor, radius=math.inf)


def _restarted(now: LikelihoodRatioSet) -> LikelihoodRatioSet:
    """Restart j covers the answers after the first 2^{j+1}·d; it weighs w_j = 1/((j+1)(j+2)), which sum to one."""
    last = round(math.exp(-now.restarts[-1, 1]))  # (j+1)(j+2) of the last one
    j = round((math.sqrt(1 + 4 * last) - 1) / 2)
    if now.history.count < 2 ** (j + 1) * len(now.anchor):
        return now._replace(restarts=now.restarts.copy())
    fresh = np.concatenate([[now.history.count, -math.log((j + 1) * (j + 2)), 0.0], now.scores])
    # Leaving out the oldest makes E smaller, so the set larger: still valid.
    return now._replace(restarts=np.vstack([now.restarts, fresh])[-RESTARTS_KEPT:].copy())


def _weights(now: LikelihoodRatioSet) -> tuple[Floats, int]:
    """Choose the shares p (the restarts' third column, in place); return the answers' weights, and the first answer.

    The best shares are those of the restarts' evidence where it matters, at the border of the set. There a restart's
    loss has risen above that at the anchor in proportion to its answers (`kernels.border_shares`).
    """
    history = now.history
    totals = np.zeros(history.count + 1)
    np.cumsum(kernels.row_losses(history.rows, history.answers, now.anchor), out=totals[1:])
    starts = now.restarts[:, 0].astype(np.intp)
    terms = kernels.expert_evidence(now.scores, now.restarts) + totals[-1] - totals[starts]
    growth = 1.0 - starts / history.count
    shares = kernels.border_shares(terms, growth, now.log_level)
    shares[(shares < 1e-6) | (growth <= 0)] = 0.0
    shares /= shares.sum()
    now.restarts[:, 2] = shares
    first = int(starts[np.flatnonzero(shares)[0]])
    weights = np.repeat(np.cumsum(shares), np.diff(np.append(starts, history.count)))
    return weights[first - int(starts[0]) :], first


@dataclass(frozen=True)
class LikelihoodRatioUcb:
    """Choose the arm whose score can be largest in the ellipsoid around the likelihood-ratio set.

    The set holds the truth at all times with probability 1 − delta, however the arms come about: no norm bound, no
    burn-in, no horizon.
    """

    name = "likelihood-ratio-ucb"

    delta: float = 0.05

    def __post_init__(self) -> None:
        validate.probability("delta", self.delta)

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost."""
        return Facts(
            Guarantee.PROVED,
            "All scores lie in their intervals at all times with probability 1 − delta, by Ville's inequality and a "
            "self-concordant outer ellipsoid (docs/contextual.md).",
            (LOGISTIC,),
            "O(K d² + 500 d²) time amortised, O(t d) memory",
        )

    def start(self, dimension: int) -> LikelihoodRatioSet:
        """The set before any reward."""
        return LikelihoodRatioSet.empty(validate.whole("dimension", dimension), self.delta)

    def choose(self, state: LikelihoodRatioSet, arms: Floats, rng: np.random.Generator) -> Choice:
        """The arm of largest upper confidence bound."""
        offered = clean_arms(arms, len(state.centre))
        return Choice(kernels.optimistic(offered, state.centre, state.inverse, state.radius))

    def learn(self, state: LikelihoodRatioSet, arms: Floats, choice: Choice, reward: float) -> LikelihoodRatioSet:
        """Let the experts predict the reward, then add it."""
        vector = chosen_vector(arms, choice, len(state.centre))
        return state.updated(vector, clean_reward(reward))
