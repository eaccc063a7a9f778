"""What a family of instances costs on average because the method does not know which of them is the true one.

`lower_bound` is for one instance, and a method that guesses it right; it can be far too small where the best item is
hard to find. Let P_w, w = 1..M, be instances with different best items. For every T the share of right answers within
T questions, averaged over the family, is at most q_T, and so E[τ] = Σ_T P(τ > T) ≥ Σ_T (1 − δ − q_T) on average.
Proofs: docs/limits.md.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, expit, logit, rel_entr

from surepick import validate
from surepick._arrays import Floats
from surepick.errors import InvalidInput

ONE_BY_ONE = 1_000
"""Up to this many questions every T is a term of its own; beyond, the last term of a block counts for all of it ..."""

GROWTH = 1.001
"""... and T grows by this factor from block to block."""

AT_ONCE = 2_000
"""Blocks computed at once."""

MOST = 1e15
"""Questions up to which the sum is taken: whole numbers are exact."""

HALVINGS = 60


def search_bound(chances: ArrayLike, *, delta: float = 0.05) -> float:
    """The least number of questions on average over the family, for methods that are right with probability 1 − δ.

    `chances` has a row for each instance and a column for each question: the probability of a yes. The best items of
    the instances must differ. Whatever the method, some instance needs at least this average. O(M n).

    >>> family = np.full((100, 100), 0.005) + 0.99 * np.eye(100)  # one item in a hundred gets a yes
    >>> round(search_bound(family, delta=0.05), 1)
    45.1
    """
    p = validate.matrix("chances", chances)
    if np.any((p < 0) | (p > 1)):
        raise InvalidInput(f"chances must be probabilities, got {float(p[(p < 0) | (p > 1)][0]):g}.")
    if len(p) < 2:
        raise InvalidInput("chances must have a row for each of at least two instances, got 1.")
    delta = validate.probability("delta", delta)
    total, ends = 0.0, np.arange(ONE_BY_ONE, dtype=np.float64)
    before = -1.0
    while True:
        left = np.maximum(1 - delta - right_answers(p, ends), 0.0)
        total += float(np.diff(ends, prepend=before) @ left)
        before = float(ends[-1])
        if left[-1] == 0.0 or before > MOST:
            return total
        ends = np.floor(before * GROWTH ** np.arange(1, AT_ONCE + 1))


def right_answers(p: Floats, questions: Floats) -> Floats:
    """q_T: at most this share of right answers is given within T questions, on average over the family."""
    guess = 1 / len(p)
    share = guess * (1 + questions * _total_variation(p))
    share = np.minimum(share, _largest(guess, guess * questions * _from_a_centre(p), reverse=False))
    return np.minimum(share, _largest(guess, questions * _to_a_centre(p), reverse=True))


def _total_variation(p: Floats) -> float:
    """D = max over questions of Σ_w |p_w − m|, m the median: how far a question tells the family from one centre."""
    return float(np.abs(p - np.median(p, axis=0)).sum(axis=0).max())


def _from_a_centre(p: Floats) -> float:
    """K = max over questions of Σ_w kl(m, p_w), least for the m of mean log-odds; infinite for certain answers."""
    if np.any((p == 0) | (p == 1)):
        return 1e300  # a finite number, so that no questions have no information
    centre = expit(logit(p).mean(axis=0))
    return float((rel_entr(centre, p) + rel_entr(1 - centre, 1 - p)).sum(axis=0).max())


def _to_a_centre(p: Floats) -> float:
    """C = max over questions and w of kl(p_w, m), m such that the extreme p_w are equally far: the capacity."""
    low, high = p.min(axis=0), p.max(axis=0)
    width = high - low
    entropies = (entr(high) + entr(1 - high)) - (entr(low) + entr(1 - low))
    # kl(low, m) = kl(high, m) where logit(m)·(high − low) is the difference of entropies with its sign turned.
    tilt = np.divide(-entropies, width, out=np.zeros_like(width), where=width > 0)
    centre = np.clip(np.where(width > 0, expit(tilt), low), 1e-300, 1 - 1e-16)
    return float(np.maximum(_kl(low, centre), _kl(high, centre)).max())


def _kl(p: Floats, q: Floats) -> Floats:
    return np.asarray(rel_entr(p, q) + rel_entr(1 - p, 1 - q))


def _largest(base: float, information: Floats, *, reverse: bool) -> Floats:
    """The largest q ≥ base with kl(base, q) ≤ information (or kl(q, base)), from above by bisection."""
    low, high = np.full(len(information), base), np.ones(len(information))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        centre = np.full(len(middle), base)
        within = (_kl(middle, centre) if reverse else _kl(centre, middle)) <= information
        low, high = np.where(within, middle, low), np.where(within, high, middle)
    return high
