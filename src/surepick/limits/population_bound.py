"""What any method needs that is right for 1 − delta of the people of a population; docs/limits.md, Theorem 5.

A taste s and its mirror image s' across the hyperplane where its two best items are level are equally likely in the
population, and no method that is often right for both can be quick for both.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from surepick import validate
from surepick._arrays import Floats
from surepick.glm.score_posterior import ScorePrior

BLOCK = 500
"""Tastes whose gaps are computed at a time."""

PRICES = np.geomspace(1.0, 1e5, 51)
"""Prices λ of an error, in questions, of which the best one is chosen."""

HALVINGS = 50
"""Steps that find the share of errors at a price."""


@dataclass(frozen=True)
class PopulationBound:
    """At least `questions` on average over the population, but for an error of the draws."""

    questions: float
    level: float
    """Probability that the draws make the bound too large."""
    estimate: float
    """The same without the allowance for the draws; never less."""
    mirrored: float
    """Share of people who have a mirror image that counts; the others are taken to need no question."""


def population_bound(
    prior: ScorePrior, *, delta: float = 0.05, draws: int = 20_000, level: float = 0.001, seed: int = 0
) -> PopulationBound:
    """The least mean number of comparisons of a method that returns the best item for 1 − delta of all people.

    For every price λ ≥ 0 of an error it is at least E[min_m (kl(m, 1 − m)/D + λm)] − λδ over the people who have a
    mirror image, D the largest divergence of an answer between the two. The mean is estimated from draws, λ chosen from
    as many others, and the error of the mean counted by Maurer and Pontil's (2009) bound. O(draws·items²).
    """
    delta, level = validate.probability("delta", delta), validate.probability("level", level)
    half = validate.whole("draws", draws, least=100) // 2
    rng = np.random.default_rng(seed)
    chosen, counted = _divergences(prior, half, rng), _divergences(prior, half, rng)
    price = max(PRICES.tolist(), key=lambda λ: float(_cost(chosen, λ).mean()) - λ * delta)
    cost = _cost(counted, price)
    estimate = float(cost.mean()) - price * delta
    # Every cost lies between 0, and λ/2 for a method that tosses a coin.
    nats = math.log(2 / level)
    error = math.sqrt(2 * float(cost.var(ddof=1)) * nats / half) + 7 * (price / 2) * nats / (3 * (half - 1))
    return PopulationBound(max(estimate - error, 0.0), level, max(estimate, 0.0), float(np.isfinite(counted).mean()))


def _divergences(prior: ScorePrior, count: int, rng: np.random.Generator) -> Floats:
    """D of this many people; infinite where the mirror image has other two best items, or the same best one."""
    found = []
    first, second = np.triu_indices(prior.mean.shape[1], 1)
    for start in range(0, count, BLOCK):
        size = min(BLOCK, count - start)
        component = rng.choice(len(prior.log_weights), size=size, p=np.exp(prior.log_weights))
        noise = rng.normal(size=(size, prior.mean.shape[1]))
        scores = prior.mean[component] + np.einsum("nij,nj->ni", prior.roots[component], noise)
        everyone = np.arange(size)
        best, next_best = np.argsort(-scores, axis=1)[:, :2].T
        K = prior.covariance[component]
        across = K[everyone, best] - K[everyone, next_best]  # K(e_best − e_next)
        away = scores - prior.mean[component]
        gap = away[everyone, best] - away[everyone, next_best]
        mirrored = scores - 2 * across * (gap / (across[everyone, best] - across[everyone, next_best]))[:, None]
        counts = (np.argsort(-mirrored, axis=1)[:, :2] == np.stack([next_best, best], axis=1)).all(axis=1)
        one, other = (each[:, first] - each[:, second] for each in (scores, mirrored))
        divergence = np.maximum(_kl(one, other), _kl(other, one)).max(axis=1)
        found.append(np.where(counts, divergence, np.inf))
    return np.concatenate(found)


def _kl(a: Floats, b: Floats) -> Floats:
    """Divergence of a coin of log-odds a from one of log-odds b; finite and exact where both are nearly certain."""
    return np.asarray(expit(a) * (a - b) + np.logaddexp(0.0, b) - np.logaddexp(0.0, a))


def _cost(divergences: Floats, price: float) -> Floats:
    """min over m in (0, ½) of kl(m, 1 − m)/D + λm for every D: convex in m, so its slope is bisected."""
    mirrored = np.isfinite(divergences)
    D = np.maximum(np.where(mirrored, divergences, 1.0), 1e-12)
    low, high = np.full(len(D), 1e-12), np.full(len(D), 0.5)
    for _ in range(HALVINGS):
        m = (low + high) / 2
        falls = 2 * np.log((1 - m) / m) + (1 - 2 * m) / (m * (1 - m)) > price * D
        low, high = np.where(falls, m, low), np.where(falls, high, m)
    m = (low + high) / 2
    return np.where(mirrored, (1 - 2 * m) * np.log((1 - m) / m) / D + price * m, 0.0)
