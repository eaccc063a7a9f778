"""What any method needs that assumes only that one item wins its share of every comparison; docs/limits.md."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from surepick import validate
from surepick._arrays import Floats
from surepick.errors import InvalidInput
from surepick.limits.instance import kl_divergence
from surepick.limits.lower_bound import nats


def winner_lower_bound(chances: ArrayLike, *, delta: float = 0.05) -> float:
    """The least expected number of comparisons of any method that assumes only that one item wins its share.

    kl(1 − δ, δ)·Σ over z ≠ z* of 1/max over u of KL(p_zu, ½), u over the items that beat z (docs/limits.md, "Without a
    model"). `chances` is a matrix: the probability that the item of the row beats the item of the column.

    >>> round(winner_lower_bound([[0.5, 0.8], [0.2, 0.5]], delta=0.05), 1)
    13.7
    """
    return nats(delta) * float(np.sum(comparisons_per_nat(chances)))


def comparisons_per_nat(chances: ArrayLike) -> Floats:
    """1/max over u of KL(p_zu, ½) for every item z but the winner: its losses that yield one nat against it."""
    p = validate.matrix("chances", chances)
    if p.shape[0] != p.shape[1] or not np.allclose(p + p.T, 1.0) or np.any((p < 0) | (p > 1)):
        raise InvalidInput(
            f"chances must be a square matrix of probabilities with p_ij + p_ji = 1, got shape {p.shape}; its diagonal "
            "is one half."
        )
    others = ~np.eye(len(p), dtype=bool)
    winners = np.flatnonzero(np.all((p > 0.5) | ~others, axis=1))
    if not len(winners):
        raise InvalidInput(
            "No item wins all of its comparisons with probability above one half, so there is no winner."
        )
    # KL(p, ½) for the losses of each item, from log-odds so that small gaps do not cancel; a comparison tells against
    # its loser only.
    divergence = np.where(p < 0.5, kl_divergence(logit(np.maximum(p, 1e-300)), 0.0), 0.0)
    return np.asarray(1 / np.delete(divergence.max(axis=1), winners[0]))
