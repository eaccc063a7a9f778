"""Which item is proved better than which, from counts of votes and without a model of scores (docs/rank.md, section 2).

With P = K(K − 1)/2 pairs of items, each pair has the risk delta/P, so that all claims hold at once with probability
1 − delta. What "better" means, and what is assumed, depends on how the votes came about:

- `data="adaptive"`, assumption (O): the items have an order such that in every vote, given all earlier ones, the
  expected score of the better item is at least ½. Any rule may have chosen the pairs and the end of the voting.
  `pooled_evidence` has more claims under the same assumption.
- `data="fixed"`, assumption (I): votes are independent, votes on a pair have one mean, and which pairs were shown how
  often did not depend on answers. Items are ordered by their mean score against all others. Preferences may be cyclic.

A score is 1 for a win, ½ for a tie and 0 for a loss.
"""

import math
from typing import Literal

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import betaincc, betaln

from surepick._arrays import Booleans, Floats, Integers
from surepick.leaderboard.counts import VoteCounts

Data = Literal["adaptive", "fixed"]

ROUNDING = 1e-6
"""A claim must exceed its threshold by this much, and by 1e-13 per vote, which is more than rounding can add."""


def log_evidence(wins: Integers, losses: Integers) -> Floats:
    """log E for "this item is better than that one", by their decisive votes (docs/rank.md, Lemma 1).

    E = ∫ (2p)^w·(2(1 − p))^l over p uniform on (½, 1) = 2^{w+l+1}·B(w+1, l+1)·P(Beta(w+1, l+1) > ½). A tie is a
    factor of 1. If the expected score is at most ½ in every vote, E has mean at most 1 whenever the voting stops.
    """
    w, n = wins + 1.0, wins + losses
    # Where the item lost most votes the probability underflows; its logarithm −∞ is a lower bound, which is safe.
    with np.errstate(divide="ignore"):
        above_half = np.log(betaincc(w, losses + 1.0, 0.5))
    return np.asarray((n + 1) * math.log(2) + betaln(w, losses + 1.0) + above_half)


def better_in_every_vote(votes: VoteCounts, delta: float) -> Booleans:
    """better[i, j]: item i is proved to precede item j in the order of assumption (O)."""
    pairs = len(votes.names) * (len(votes.names) - 1) / 2
    # log B is a difference of terms of size n·log n.
    needed = math.log(max(pairs, 1.0) / delta) + ROUNDING + 1e-13 * votes.shown
    return np.asarray(log_evidence(votes.wins, votes.wins.T) >= needed)


def better_on_average(votes: VoteCounts, delta: float) -> Booleans:
    """better[i, j]: the mean score of item i against all others is proved to be larger than that of item j.

    With c = 1/(K − 1) the difference of the two means is a sum over pairs of items of c_s times the mean score of the
    pair, c_s = 2c for the pair (i, j) itself. Its estimate exceeds it by more than √(V·log(P/delta)/2), V = Σ c_s²/n_s,
    with probability at most delta/P (Hoeffding). A pair without votes counts as the worst, a score of 0. O(K²) memory
    and O(K³) time for the matrix products.
    """
    count = len(votes.names)
    if count < 2:
        return np.zeros((count, count), dtype=np.bool_)
    shown = votes.shown
    seen = shown > 0
    mean = np.where(seen, (votes.wins + votes.ties / 2) / np.maximum(shown, 1), 0.0)
    lowest, highest = mean, np.where(seen, mean, 1.0)  # without a vote a mean score is only known to be in [0, 1]
    for bound in (lowest, highest):
        np.fill_diagonal(bound, 0.0)
    # For i against j: at least Σ_k lowest[i, k] less at most Σ_k highest[j, k]; both sums include the pair itself.
    gap = (lowest.sum(axis=1)[:, None] - highest.sum(axis=1)[None, :]) / (count - 1)
    inverse = np.where(seen, 1.0 / np.maximum(shown, 1), 0.0)
    # Each item's other pairs have the coefficient c. The pair itself has 2c, so 4c² in place of c² from either sum.
    spread = (inverse.sum(axis=1)[:, None] + inverse.sum(axis=1)[None, :] + 2 * inverse) / (count - 1) ** 2
    pairs = count * (count - 1) / 2
    margin = np.sqrt(spread * math.log(pairs / delta) / 2)
    better = gap > margin + ROUNDING
    np.fill_diagonal(better, False)
    return np.asarray(better)


def transitive(better: Booleans) -> Booleans:
    """What follows from the claims: whoever is better than a better item is better. O(K³ log K)."""
    closure = better.copy()
    while True:
        further = closure | ((closure.astype(np.float32) @ closure.astype(np.float32)) > 0)
        if np.array_equal(further, closure):
            return closure
        closure = further


def cycle(better: Booleans) -> list[int] | None:
    """Items of which each is claimed to be better than the next, and the last than the first; None if there are none.

    Claims in a circle cannot all be true, so that the assumption is refuted: if it holds, this has probability at most
    delta.
    """
    number, label = connected_components(better, directed=True, connection="strong")
    if number == len(better):
        return None
    sizes = np.bincount(label)
    inside = label == np.flatnonzero(sizes > 1)[0]
    walk = [int(np.flatnonzero(inside)[0])]
    while True:
        following = int(np.flatnonzero(better[walk[-1]] & inside)[0])
        if following in walk:
            return walk[walk.index(following) :]
        walk.append(following)


def possible_ranks(better: Booleans) -> tuple[Integers, Integers]:
    """The best and the worst rank of each item that the claims leave: 1 + those better, and K less those worse."""
    return np.asarray(1 + better.sum(axis=0)), np.asarray(len(better) - better.sum(axis=1))
