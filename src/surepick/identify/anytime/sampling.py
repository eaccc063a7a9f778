"""Soft top-two sampling: ask what says most about the leader's closest rivals.

No guarantee depends on it, only the number of questions. Rivals weigh exp(−nats/temperature), nats being the evidence
against them. Early, at human scale, the question is asked whose answer is expected to say most against the θ with which
they would have caught up. Later, C is the inverse information at the estimate and y = leader − rival: the vector with
the largest expected decrease of Σ_z weight·log ‖y_z‖² in C is asked, C is updated by it, and so on through the stage.
"""

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.glm import variance
from surepick.identify.anytime.alternatives import CLOSEST, surprise

PICKS = 48
"""Different choices made within a stage; a larger stage repeats each."""

CANDIDATES = 256
"""Vectors among which the choices of a stage are made."""

EARLY_TEMPERATURE, TEMPERATURE = 1.0, 3.0
"""Nats by which a rival may be better refuted than another and still count a third."""

MEMORY = 0.3
"""Share of the old information that counts when choosing: below one, a stage makes up for old neglect."""

LATE_FROM = 30
"""Questions a dimension after which it is no longer early ..."""

FEW_DIMENSIONS = 12
"""... in so many dimensions at most; in more of them it never is ..."""

STRONG = 3.0
"""... nor where by the estimate every answer has smaller log-odds: the quadratic approximation is good there."""


def closeness(points: Floats, leader: int, theta: Floats, inverse: Floats, epsilon: float) -> Floats:
    """q of every item: nats by which it is behind the leader (infinite for the leader itself)."""
    away = points[leader] - points
    squared = np.einsum("zi,ij,zj->z", away, inverse, away)
    gap = np.maximum(away @ theta + epsilon, 0.0)
    result = gap**2 / (2 * np.maximum(squared, 1e-300))
    result[leader] = np.inf
    return np.asarray(result)


def tell_apart(rows: Floats, guess: Floats, points: Floats, nats: Floats, size: int, *, enough: float) -> Integers:
    """How often to ask each measurement to refute the points at which rivals have caught up; O(rows · rivals · d)."""
    weights = _weights(nats, EARLY_TEMPERATURE, enough)
    counted = weights > 0
    gain = surprise(rows, guess, points[counted]) @ weights[counted]
    best = np.argsort(-gain, kind="stable")[:size]
    counts = np.zeros(len(rows), dtype=np.int64)
    counts[best] = 1
    counts[best[0]] += size - len(best)
    return counts


def _weights(nats: Floats, temperature: float, enough: float) -> Floats:
    """Of rivals: those with `enough` nats against them count no more while there are others; they would outweigh it."""
    least = nats.min()
    weights = np.exp(-(nats - least) / temperature)
    weights = np.where((nats > max(enough, least)) | (weights <= 1e-4), 0.0, weights)
    return np.asarray(weights / weights.sum())


def choose(
    rows: Floats,
    points: Floats,
    leader: int,
    theta: Floats,
    information: Floats,
    ridge: float,
    size: int,
    nats: Floats,
    *,
    enough: float,
    doubtful: bool = False,
) -> Integers:
    """How often to ask each measurement, `size` questions in all; O(picks · vectors · rivals).

    `doubtful` takes the variance of an answer as large as one standard error allows: estimates from answers that all
    agree call questions useless that were never asked.
    """
    close = np.argsort(nats, kind="stable")[: min(CLOSEST, len(points) - 1)]
    weights = _weights(nats[close], TEMPERATURE, enough)
    close, weights = close[weights > 0], weights[weights > 0]
    inverse = np.linalg.inv(MEMORY * information + ridge * np.eye(rows.shape[1]))
    away = points[leader] - points[close]
    seen = rows @ inverse
    cross = seen @ away.T
    own = np.einsum("xi,xi->x", seen, rows)
    logits = np.abs(rows @ theta)
    spread = variance(np.maximum(logits - np.sqrt(own), 0.0) if doubtful else logits)
    across = np.einsum("zi,ij,zj->z", away, inverse, away)
    # What is worth little at first is hardly ever worth most later in the stage.
    gain = spread / (1.0 + spread * own) * ((cross**2) @ (weights / across))
    few = np.sort(np.argsort(-gain, kind="stable")[:CANDIDATES])
    asked, seen, cross, own, spread = rows[few], seen[few], cross[few], own[few], spread[few]
    picks = min(size, PICKS)
    repeats = np.full(picks, size // picks)
    repeats[: size % picks] += 1
    counts = np.zeros(len(rows), dtype=np.int64)
    for times in repeats:
        gain = spread / (1.0 + spread * own) * ((cross**2) @ (weights / across))
        chosen = int(np.argmax(gain))
        counts[few[chosen]] += times
        strength = times * spread[chosen]
        shrink = strength / (1.0 + strength * own[chosen])
        column = seen @ asked[chosen]
        cross_row = cross[chosen].copy()
        seen -= shrink * np.outer(column, seen[chosen])
        cross -= shrink * np.outer(column, cross_row)
        own -= shrink * column**2
        across -= shrink * cross_row**2
    return counts


def steady(rows: Floats, theta: Floats, information: Floats, ridge: float, bent: Floats, size: int) -> Integers:
    """How often to ask each vector so that a proof costs less, `size` questions in all.

    `bent` says how much each vector bends the evidence. What a proof loses by not knowing where θ is grows with
    tr(CB), B = Σ bent·s·xxᵀ; the vector of its largest expected decrease is asked.
    """
    spread = variance(rows @ theta)
    inverse = np.linalg.inv(information + ridge * np.eye(rows.shape[1]))
    target = (rows.T * (bent * spread)) @ rows
    counts = np.zeros(len(rows), dtype=np.int64)
    for part in np.array_split(np.arange(size), min(size, PICKS)):
        seen = rows @ inverse
        own = np.einsum("xi,xi->x", seen, rows)
        gain = spread / (1.0 + spread * own) * np.einsum("xi,ij,xj->x", seen, target, seen)
        chosen = int(np.argmax(gain))
        strength = len(part) * spread[chosen]
        inverse -= strength / (1.0 + strength * own[chosen]) * np.outer(seen[chosen], seen[chosen])
        counts[chosen] += len(part)
    return counts


def cover(rows: Floats, theta: Floats, information: Floats, ridge: float, size: int) -> Integers:
    """How often to ask each vector so that none is left without answers: always the one known worst, `size` in all."""
    spread = variance(rows @ theta)
    seen = rows @ np.linalg.inv(information + ridge * np.eye(rows.shape[1]))
    own = np.einsum("xi,xi->x", seen, rows)
    counts = np.zeros(len(rows), dtype=np.int64)
    for part in np.array_split(np.arange(size), min(size, 2 * PICKS)):
        chosen = int(np.argmax(own))
        strength = len(part) * spread[chosen]
        shrink = strength / (1.0 + strength * own[chosen])
        column = seen @ rows[chosen]
        seen -= shrink * np.outer(column, seen[chosen])
        own -= shrink * column**2
        counts[chosen] += len(part)
    return counts
