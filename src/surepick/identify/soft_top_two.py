"""Soft top-two sampling: ask what most shrinks the uncertainty about the leader's closest rivals.

No guarantee depends on it, only the number of questions. C is the inverse information at the estimate, y = leader −
rival, q = gap²/(2‖y‖²) the nats by which the rival is behind. Rivals weigh exp(−q/temperature); the vector with the
largest expected decrease of Σ_z weight·log ‖y_z‖² is asked, then C is updated by it, and so on through the stage.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surepick.logistic import variance

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PICKS = 48
"""Different choices made within a stage; a larger stage repeats each."""

RIVALS = 96
"""Closest rivals considered."""


CANDIDATES = 256
"""Vectors among which the choices of a stage are made."""


@dataclass(frozen=True)
class Form:
    """How to weigh rivals and old information."""

    temperature: float
    memory: float
    """Share of the old information that counts when choosing: below one, a stage makes up for old neglect."""


EARLY = Form(temperature=1.0, memory=1.0)
LATE = Form(temperature=3.0, memory=0.3)
LATE_FROM = 30
"""Answers a dimension after which the late form is used ..."""

FEW_DIMENSIONS = 12
"""... in so many dimensions at most; in more of them it is used from the start."""


def closeness(points: Floats, leader: int, theta: Floats, inverse: Floats, epsilon: float) -> Floats:
    """q of every item: nats by which it is behind the leader (infinite for the leader itself)."""
    away = points[leader] - points
    squared = np.einsum("zi,ij,zj->z", away, inverse, away)
    gap = np.maximum(away @ theta + epsilon, 0.0)
    result = gap**2 / (2 * np.maximum(squared, 1e-300))
    result[leader] = np.inf
    return np.asarray(result)


def choose(
    rows: Floats,
    points: Floats,
    leader: int,
    theta: Floats,
    information: Floats,
    ridge: float,
    size: int,
    nats: Floats,
    form: Form,
    *,
    enough: float,
    doubtful: bool = False,
) -> Integers:
    """How often to ask each measurement, `size` questions in all; O(picks · vectors · rivals).

    Rivals with `enough` nats against them count no more while there are others: many of them would outweigh the last.
    `doubtful` takes the variance of an answer as large as one standard error allows: estimates from answers that all
    agree call questions useless that were never asked.
    """
    close = np.argsort(nats, kind="stable")[: min(RIVALS, len(points) - 1)]
    weights = np.exp(-(nats[close] - nats[close[0]]) / form.temperature)
    weights = np.where(nats[close] > max(enough, nats[close[0]]), 0.0, weights)
    close, weights = close[weights > 1e-4], weights[weights > 1e-4]
    weights /= weights.sum()
    inverse = np.linalg.inv(form.memory * information + ridge * np.eye(rows.shape[1]))
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
