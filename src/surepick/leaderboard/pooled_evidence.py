"""Ranks from all votes of an item together, by bets that earlier votes suggest (docs/rank.md, Theorem 1, part b).

Pairs with few votes each prove nothing by themselves. But an item that keeps losing as predicted, to whomever, cannot
be among the first. W_ij multiplies over the votes on the pair (i, j) for which i was predicted to win with probability
q > ½: by 2q if it won, 2(1 − q) if it lost, 1 for a tie. Predictions come from a Bradley–Terry fit to earlier votes; no
proof depends on how good they are.
"""

import math
from collections.abc import Iterator

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.glm.loss import Derivatives, probability_of_yes
from surepick.glm.newton import minimise
from surepick.leaderboard.bradley_terry import HalfWins
from surepick.leaderboard.counts import VoteCounts

GROWTH = 1.2
"""A fit serves for the next fifth of the votes: a million votes on sixty items take about fifty fits."""

PRIOR_VARIANCE = 1.0
"""Of the scores, in the fits that predict: Gaussian around 0."""

MOST_CERTAIN = 0.97
"""No prediction is surer than this, so that one surprise costs at most log(2·0.03) = −2.8."""

PROBIT = math.pi / 8
"""The mean of μ(v) over v ~ N(a, b) is about μ(a/√(1 + πb/8)) (MacKay 1992)."""


def log_wealth(votes: VoteCounts) -> Floats:
    """log W_ij for all pairs: evidence that i is better than j, predictions fixed before each batch of votes."""
    count = len(votes.names)
    wealth, wins, ties = np.zeros((3, count, count))
    scores = np.zeros(count)
    for won, tied in _batches(votes):
        if wins.any() or ties.any():  # before the first votes nothing is predicted
            scores, chances = _predicted(wins, ties, scores)
            sure = np.minimum(chances, MOST_CERTAIN)
            gained = won * np.log(2 * sure) + won.T * np.log(2 * (1 - sure))
            wealth += np.where(chances > 0.5, gained, 0.0)
        wins, ties = wins + won, ties + tied
    return wealth


def pooled_ranks(wealth: Floats, delta: float) -> tuple[Integers, Integers]:
    """The best and the worst possible rank of each item, all at once with probability 1 − delta.

    If m items are better than i, the product of W_ki over the other k has mean at most 1. Whichever the m are, its
    logarithm is at least the sum of all log W_ki less the m largest positive ones. If that exceeds log(2K/delta), more
    than m items are better. The same with log W_ik for items that are worse.
    """
    needed = math.log(2 * len(wealth) / delta) + 1e-6
    return np.asarray(1 + _at_least(wealth, needed)), np.asarray(len(wealth) - _at_least(wealth.T, needed))


def _at_least(evidence: Floats, needed: float) -> Integers:
    """For each column: how many of its entries must be true claims, by what remains without the largest ones."""
    positive = -np.sort(-np.maximum(evidence, 0.0), axis=0)
    dropped = np.vstack([np.zeros(evidence.shape[1]), np.cumsum(positive, axis=0)[:-1]])
    return np.asarray((evidence.sum(axis=0) - dropped >= needed).sum(axis=0))


def _batches(votes: VoteCounts) -> Iterator[tuple[Integers, Integers]]:
    """Wins and ties of successive parts of the votes, each a fifth as long as all before it."""
    assert votes.sequence is not None
    first, second, outcome = votes.sequence
    start, count = 0, len(votes.names)
    while start < len(first):
        end = max(start + 1, count, int(GROWTH * start))
        i, j, said = first[start:end], second[start:end], outcome[start:end]
        won, tied = np.zeros((2, count, count), dtype=np.int64)
        np.add.at(won, (np.where(said == 1, i, j)[said >= 0], np.where(said == 1, j, i)[said >= 0]), 1)
        np.add.at(tied, (i[said < 0], j[said < 0]), 1)
        yield won, tied + tied.T
        start = end


def _predicted(wins: Floats, ties: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Scores by penalised likelihood, and the probability that each item beats each other one, by Laplace."""
    model, ridge = HalfWins(wins, ties), np.eye(len(wins)) / PRIOR_VARIANCE

    def function(s: Floats) -> Derivatives:
        at = model.derivatives(s)
        return Derivatives(at.value + float(s @ ridge @ s) / 2, at.gradient + ridge @ s, at.hessian + ridge)

    found = minimise(function, start, movement=model.movement, tolerance=1e-2)
    covariance = np.linalg.inv(found.at.hessian)
    own = np.diag(covariance)
    variances = own[:, None] + own[None, :] - 2 * covariance
    gaps = found.point[:, None] - found.point[None, :]
    return found.point, probability_of_yes(gaps / np.sqrt(1 + PROBIT * variances))
