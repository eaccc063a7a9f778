"""The Bradley–Terry estimate from counts per pair, with ties as half wins or by Davidson's model.

Scores s are in log-odds, with mean 0. In both models P(i beats j | one of them wins) = μ(s_i − s_j).

- Half wins: a tie is half a win of each, P(i over j) = μ(s_i − s_j). This is what arena-rank does, and evalica by
  default.
- Davidson (1970): win, loss and tie have weights e^{s_i}, e^{s_j} and e^{η + (s_i + s_j)/2}, with one η for all pairs.

Both are multinomial logistic models, so the negative log-likelihood is convex and Newton's method finds its minimum.
The intervals are Wald's with the sandwich covariance H⁻¹BH⁻¹, H the Hessian and B the sum of squared scores of single
votes. They are valid for many votes only, and each separately: heuristic.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse.csgraph import connected_components

from surepick._arrays import Floats, Integers
from surepick.glm.loss import Derivatives, probability_of_yes, softplus
from surepick.glm.newton import minimise
from surepick.leaderboard.counts import VoteCounts

Ties = Literal["half", "davidson"]


@dataclass(frozen=True, eq=False)
class PairwiseFit:
    """Scores of items that the votes connect."""

    scores: Floats
    """In log-odds, with mean 0."""
    deviations: Floats
    """Standard errors of the scores, by the sandwich covariance."""
    decrement: float
    """Distance to the optimum in standard deviations, about 1e-9."""


def groups(votes: VoteCounts, ties: Ties) -> Integers:
    """The group of each item. Scores of items can be compared exactly if they have the same group.

    The estimate of a difference is finite exactly if there is a chain of items, each of which won a vote against the
    next, from either item to the other (Ford 1957): groups are the strongly connected components of "won against".
    A tie is half a win of each. In Davidson's model a tie alone does not bound a difference, so only wins connect.
    """
    beats = votes.wins + votes.ties if ties == "half" else votes.wins
    return np.asarray(connected_components(beats > 0, directed=True, connection="strong")[1], dtype=np.int64)


def fit_scores(wins: Integers, tied: Integers, ties: Ties) -> PairwiseFit:
    """Fit the items of one group: O(K²) memory, O(K³) time per iteration, whatever the number of votes.

    Args:
        wins: wins[i, j], votes that i won against j.
        tied: symmetric numbers of ties.
        ties: how ties count.
    """
    # Without ties Davidson's η is −∞, and what is left is Bradley–Terry.
    model = Davidson(wins, tied) if ties == "davidson" and tied.any() else HalfWins(wins, tied)
    count = len(wins)
    # Adding a constant to all scores changes nothing, so the last score is held at 0 and the mean removed afterwards.
    free = np.delete(np.arange(model.dimension), count - 1)

    def whole(point: Floats) -> Floats:
        theta = np.zeros(model.dimension)
        theta[free] = point
        return theta

    def function(point: Floats) -> Derivatives:
        at = model.derivatives(whole(point))
        return Derivatives(at.value, at.gradient[free], at.hessian[np.ix_(free, free)])

    found = minimise(
        function, np.zeros(model.dimension - 1), movement=lambda step: model.movement(whole(step)), tolerance=1e-9
    )
    theta = whole(found.point)
    inverse = np.linalg.inv(found.at.hessian)
    sandwich = inverse @ model.squared_scores(theta)[np.ix_(free, free)] @ inverse
    covariance = np.zeros((model.dimension, model.dimension))
    covariance[np.ix_(free, free)] = sandwich
    centred = np.eye(count) - 1 / count
    variances = np.einsum("ij,jk,ik->i", centred, covariance[:count, :count], centred, optimize=True)
    scores = theta[:count] - theta[:count].mean()
    return PairwiseFit(scores, np.sqrt(np.maximum(variances, 0.0)), found.decrement)


class HalfWins:
    """Logistic model in which a tie is half a win of each."""

    def __init__(self, wins: Integers | Floats, tied: Integers | Floats) -> None:
        self.wins, self.tied = wins, tied
        self.points = wins + tied / 2
        self.shown = self.points + self.points.T
        self.dimension = len(wins)

    def derivatives(self, s: Floats) -> Derivatives:
        """Of the negative log-likelihood."""
        gaps = s[:, None] - s[None, :]
        expected = self.shown * probability_of_yes(gaps)
        # μ(v)·(1 − μ(v)) with μ(−v) = 1 − μ(v), which keeps its accuracy where μ rounds to 1.
        weights = expected * probability_of_yes(-gaps)
        value = float(np.sum(self.points * softplus(-gaps)))
        return Derivatives(value, (expected - self.points).sum(axis=1), _laplacian(weights))

    def movement(self, step: Floats) -> float:
        """The largest change of a difference of scores."""
        return float(np.ptp(step))

    def squared_scores(self, s: Floats) -> Floats:
        """Σ (y − p)²·(e_i − e_j)(e_i − e_j)ᵀ over the votes, y = 1, 0 or ½."""
        p = probability_of_yes(s[:, None] - s[None, :])
        return _laplacian(self.wins * p.T**2 + self.wins.T * p**2 + self.tied * (p - 0.5) ** 2)


class Davidson:
    """Win, loss and tie with utilities s_i, s_j and η + (s_i + s_j)/2; the parameters are (s, η).

    Relative to (s_i + s_j)/2 the utilities are d·(s_i − s_j)/2 + z·η with (d, z) = (1, 0), (−1, 0) and (0, 1). So all
    derivatives are moments of d and z over the three answers.
    """

    def __init__(self, wins: Integers | Floats, tied: Integers | Floats) -> None:
        self.wins, self.tied = wins, tied
        self.shown = wins + wins.T + tied
        self.dimension = len(wins) + 1

    def _chances(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Half the difference of scores, the log of the sum of weights, and the probability of a tie."""
        half = (theta[:-1, None] - theta[None, :-1]) / 2
        total = np.logaddexp(np.logaddexp(half, -half), theta[-1])
        return half, total, np.exp(theta[-1] - total)

    def derivatives(self, theta: Floats) -> Derivatives:
        """Of the negative log-likelihood."""
        half, total, tie = self._chances(theta)
        p, n = np.exp(half - total), self.shown
        lead = p - p.T  # mean of d
        value = float(np.sum(self.wins * (total - half)) + np.sum(self.tied * (total - theta[-1])) / 2)
        gradient = np.append(
            (n * lead - (self.wins - self.wins.T)).sum(axis=1) / 2, (np.sum(n * tie) - np.sum(self.tied)) / 2
        )
        scores = _laplacian(n * (p + p.T - lead**2) / 4)
        across = -(n * lead * tie).sum(axis=1) / 2
        return Derivatives(value, gradient, _bordered(scores, across, float(np.sum(n * tie * (1 - tie))) / 2))

    def movement(self, step: Floats) -> float:
        """At least the largest change of a difference of utilities."""
        widest = float(np.ptp(step[:-1]))
        return max(widest, abs(float(step[-1])) + widest / 2)

    def squared_scores(self, theta: Floats) -> Floats:
        """Σ gg' over the votes, g = (d − E d)/2·(e_i − e_j) + (z − E z)·e_η."""
        half, total, tie = self._chances(theta)
        p = np.exp(half - total)
        lead = p - p.T
        # Votes for i, votes for j, and ties, each with its d and z.
        answers = ((self.wins, 1.0, 0.0), (self.wins.T, -1.0, 0.0), (self.tied, 0.0, 1.0))
        scores = sum(count * (d - lead) ** 2 for count, d, _ in answers) / 4
        across = sum(count * (d - lead) * (z - tie) for count, d, z in answers) / 2
        last = sum(float(np.sum(count * (z - tie) ** 2)) for count, _, z in answers) / 2
        return _bordered(_laplacian(np.asarray(scores)), np.asarray(across).sum(axis=1), last)


def _laplacian(weights: Floats) -> Floats:
    """Σ over pairs of weight·(e_i − e_j)(e_i − e_j)ᵀ, for symmetric weights."""
    result = -weights
    np.fill_diagonal(result, 0.0)
    np.fill_diagonal(result, -result.sum(axis=1))
    return np.asarray(result)


def _bordered(inside: Floats, edge: Floats, corner: float) -> Floats:
    """A symmetric matrix with one more row and column."""
    return np.block([[inside, edge[:, None]], [edge[None, :], np.array([[corner]])]])
