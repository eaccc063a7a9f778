"""Is the posterior probability of an event small? A test by weighted draws whose error is counted.

A draw has the weight w: prior times likelihood over the density it is drawn from, of mean Z. With a cut c that is fixed
before the draws, a bound α and a bet b < 1/(1 − α), and 1 for a draw that shows the event or weighs more than the cut,

    X = min(w, c)·(1{event or w > c} − α),    wealth = product over the draws of 1 − b·X/c.

−α ≤ X/c ≤ 1 − α, so no factor is negative. If E[min(w, c)·1{event or w > c}] ≥ αZ, then E[X] ≥ αZ − α·E[min(w, c)] ≥ 0
and every factor has a mean of at most one: the wealth ever reaches 1/level with probability at most `level` (Ville).
Nothing is assumed about the weights; what is not counted is the excess of weights over the cut. docs/population.md,
Lemma 1, has the proof.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from surepick._arrays import Booleans, Floats
from surepick.glm.score_posterior import Draws, ScorePosterior

CUT = 50.0
"""The cut, as a multiple of the mean weight. A larger one says more and takes more draws."""

LARGER_CUT = 1_000.0
"""Tried where draws above the first cut hide a small probability. Without it a person who never errs, whose answers no
Gaussian fits well, was not decided after 800 questions; with it such a person answers 99 (40 items, no features)."""

BET = 0.9
"""Bet, as a share of the largest that is allowed; near a small probability the largest grows fastest."""

BATCH, MOST, LARGER_MOST = 4_000, 200_000, 1_000_000
"""Draws at a time, and at most with each of the cuts."""


@dataclass(frozen=True)
class Confirmation:
    """What the draws say of the event."""

    estimate: float
    """Its probability, estimated."""
    small: bool
    """Whether it is shown to be small."""
    draws: int


def factors(draws: Draws, event: Booleans, *, log_cut: float, bound: float) -> Floats:
    """Logarithm of the factor of every draw."""
    weights = np.exp(np.minimum(draws.log_weights - log_cut, 0.0))
    lost = np.where(event | (draws.log_weights > log_cut), weights, 0.0) - bound * weights
    return np.asarray(np.log1p(-BET / (1 - bound) * lost))


def confirm(
    posterior: ScorePosterior,
    event: Callable[[Floats], Booleans],
    *,
    log_evidence: float,
    bound: float,
    level: float,
    rng: np.random.Generator,
) -> Confirmation:
    """Whether E[min(w, c)·1{event or w > c}] < bound·Z, by fresh draws; said wrongly with probability at most `level`.

    `log_evidence` is an estimate from other draws, which fixes the cuts. The larger one is tried where the event seems
    rare and draws above the smaller one hide it; each of the two tests has half of `level`.
    """
    found = _test(posterior, event, log_evidence + math.log(CUT), bound, level / 2, rng, MOST)
    if found.small or found.estimate > bound / 2:
        return found
    return _test(posterior, event, log_evidence + math.log(LARGER_CUT), bound, level / 2, rng, LARGER_MOST)


def _test(
    posterior: ScorePosterior,
    event: Callable[[Floats], Booleans],
    log_cut: float,
    bound: float,
    level: float,
    rng: np.random.Generator,
    most: int,
) -> Confirmation:
    """The test with one cut. It ends when the wealth is large enough, or when the draws say that it will not be."""
    needed = -math.log(level)
    wealth, total, shown, drawn = 0.0, 0.0, 0.0, 0
    while drawn < most:
        batch = posterior.draws(BATCH, rng)
        happened = event(batch.scores)
        weights = np.exp(batch.log_weights - log_cut)
        total, shown = total + float(weights.sum()), shown + float(weights @ happened)
        wealth += float(factors(batch, happened, log_cut=log_cut, bound=bound).sum())
        drawn += BATCH
        if wealth >= needed:
            return Confirmation(shown / total, True, drawn)
        if wealth * most < needed * drawn / 2:  # half of what is missing may be chance
            break
    return Confirmation(shown / total, False, drawn)
