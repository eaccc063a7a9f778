"""Truths that may be behind the answers so far: what a simulated search is told, never what a proof is built on."""

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl
from scipy.special import softmax

from surepick._arrays import Floats
from surepick.design import Rows
from surepick.design.cutting_planes import whitened_basis
from surepick.glm import Tally, fit
from surepick.identify.problem import Problem
from surepick.linalg import factor

USUAL_LOGIT = 2.0
"""Standard deviation of the log-odds of an answer before any is in: pooled crowds have a κ₀ of .03 to .2."""

SPREADS = (USUAL_LOGIT / 2, USUAL_LOGIT, 2 * USUAL_LOGIT)
"""Standard deviations thought equally likely beforehand: single people are surer of their answers than crowds."""


def plausible_truths(problem: Problem, answers: Tally, draws: int, seed: int) -> Floats:
    """A sample of θ given answers, as rows, in the span of the measurements.

    Beforehand θ is normal with one of `SPREADS`; given the answers each is normal by Laplace's approximation, and the
    spreads have the weights of their approximate evidence.
    """
    frame = whitened_basis(Rows(problem.measurements))  # the mean of xxᵀ is the identity in it
    inside = Tally(answers.vectors @ frame.transform, answers.pulls, answers.wins)
    # In that basis, with the prior N(0, I·spread²/rank), the variance of xᵀθ is spread² on average over the rows x.
    guesses = [_guess(inside, frame.rank, frame.rank / spread**2) for spread in SPREADS]
    weights = softmax([guess.log_evidence for guess in guesses])
    rng = np.random.default_rng([seed, 7])
    chosen = rng.choice(len(guesses), size=draws, p=weights)
    noise = rng.normal(size=(draws, frame.rank))
    sample = np.array(
        [guesses[place].centre + guesses[place].spread @ one for place, one in zip(chosen, noise, strict=True)]
    )
    return np.asarray(sample @ frame.transform.T)


@dataclass(frozen=True, eq=False)
class _Guess:
    """A normal distribution of θ, and how well it explains the answers."""

    centre: Floats
    spread: Floats
    """A root of the covariance."""
    log_evidence: float


def _guess(answers: Tally, rank: int, ridge: float) -> _Guess:
    centre, information, loss = np.zeros(rank), np.zeros((rank, rank)), 0.0
    if answers.pulls.any():
        estimate = fit(answers, ridge=ridge)
        centre, information, loss = estimate.theta, estimate.information, estimate.loss
    shape = factor(information + ridge * np.eye(rank))
    assert shape is not None  # the ridge sees to it
    root = sl.solve_triangular(shape.lower, np.eye(rank), lower=True, trans="T") / shape.diagonal[:, None]
    # Laplace: log evidence = −loss − (ridge/2)‖θ̂‖² + (d/2)·log ridge − ½·log det(H + ridge·I), up to a constant.
    volume = float(np.sum(np.log(shape.lower.diagonal() * shape.diagonal)))
    return _Guess(centre, root, -loss - ridge / 2 * float(centre @ centre) + rank / 2 * math.log(ridge) - volume)
