"""Lower bounds for moderate confidence: a method may err by δ in all, not by δ in favour of every rival.

The bounds of `lower_bound` and `winner_bound` let the method return each rival with probability δ, and so ask for
kl(δ, 1 − δ) nats against each. But the ε_z = P(returns z) of all rivals sum to δ at most, and against z it takes
kl(ε_z, 1 − δ) nats, up to log(1/δ). With W_z the questions that a nat against z costs, a method needs

    min { Σ W_z·kl(ε_z, 1 − δ) : Σ ε_z ≤ δ }  =  max over a ≥ 0 of  Σ W_z·g(a/W_z) − a·δ,

g(t) = −log(δ + (1 − δ)·e⁻ᵗ) = min over ε of kl(ε, 1 − δ) + t·ε. Every a proves a bound. Proofs: docs/limits.md.
"""

import math

import numpy as np
import scipy  # its parts load when first used: scipy.optimize takes longer than importing all of surepick
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from surepick._arrays import Floats
from surepick.limits.instance import Instance
from surepick.limits.lower_bound import LowerBound, nats
from surepick.limits.winner_bound import comparisons_per_nat

ROUNDING = 1e-12
"""Bounds are lowered by this fraction."""

TIED = 1e-9
"""Items whose scores under an alternative differ from the best by this fraction may be the best near it."""


def winner_shared_error_bound(chances: ArrayLike, *, delta: float = 0.05) -> float:
    """The least expected number of comparisons if only a winner is assumed; at least `winner_lower_bound`.

    `chances` is a matrix: the probability that the item of the row beats the item of the column. A method that is told
    the matrix needs few more (docs/limits.md), so no bound for a given matrix can be much higher.

    >>> round(winner_shared_error_bound([[0.5, 0.8, 0.8], [0.2, 0.5, 0.5], [0.2, 0.5, 0.5]], delta=0.05), 1)
    29.1
    """
    return questions_for(comparisons_per_nat(chances), delta)


def shared_error_bound(instance: Instance, bound: LowerBound) -> float:
    """The least expected number of questions with features, from the alternatives of `lower_bound`; at least its own.

    O(n·d) for n alternatives and items. Proved where `bound` is.
    """
    weights = np.zeros(len(instance.items))
    unclear = 0.0
    for alternative, weight in zip(bound.alternatives, bound.dual_weights, strict=True):
        scores = instance.items @ alternative
        scores[bound.best] = -np.inf  # only a tie with the others: the alternatives nearby are beyond it
        leaders = np.flatnonzero(scores >= scores.max() - TIED * (1.0 + np.abs(alternative).sum()))
        # Where several may be the best near this alternative, their ε is bounded by δ and not shared.
        if len(leaders) == 1:
            weights[leaders[0]] += weight
        else:
            unclear += weight
    clear = questions_for(weights[weights > 0], bound.delta) if weights.any() else 0.0
    return max((clear + unclear * nats(bound.delta)) / bound.dual, bound.questions)


def questions_for(weights: Floats, delta: float) -> float:
    """Least Σ W_z·kl(ε_z, 1 − δ) over ε with Σ ε ≤ δ, from below, for positive weights W."""
    least = nats(delta)
    confident = float(logit(1 - delta))
    # Between these the ε_z of the minimum sum to δ: for one rival of the largest weight, and for as many of it.
    low = float(weights.max()) * 2 * confident
    high = float(weights.max()) * (confident + float(logit(1 - delta / len(weights))))

    def unspent(a: float) -> float:
        return delta - float(np.sum(expit(confident - a / weights)))

    # At the ends rounding decides the sign; any slope proves a bound.
    slope = (
        low if unspent(low) >= 0 else high if unspent(high) <= 0 else float(scipy.optimize.brentq(unspent, low, high))
    )
    found = float(np.sum(-weights * np.log(delta + (1 - delta) * np.exp(-slope / weights)))) - slope * delta
    return max(found, least * math.fsum(weights)) * (1 - ROUNDING)
