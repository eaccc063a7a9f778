"""Truths that may be behind the answers so far: what a simulated search is told, never what a proof is built on."""

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray

from surepick.design import Rows
from surepick.design.frame import frame_of
from surepick.identify.problem import Problem
from surepick.linalg import factor
from surepick.logistic import Tally, fit

Floats = NDArray[np.float64]

USUAL_LOGIT = 2.0
"""Standard deviation of the log-odds of an answer before any is in: pooled crowds have a κ₀ of .03 to .2."""


def plausible_truths(problem: Problem, answers: Tally, draws: int, seed: int) -> Floats:
    """A sample of θ given answers, one a row: normal, by Laplace's approximation, in the span of the measurements."""
    frame = frame_of(Rows(problem.measurements))
    ridge = frame.rank / USUAL_LOGIT**2  # the mean of xxᵀ is the identity in the frame
    inside = Tally(answers.vectors @ frame.transform, answers.pulls, answers.wins)
    centre, information = np.zeros(frame.rank), np.zeros((frame.rank, frame.rank))
    if answers.pulls.any():
        estimate = fit(inside, ridge=ridge)
        centre, information = estimate.theta, estimate.information
    shape = factor(information + ridge * np.eye(frame.rank))
    assert shape is not None  # the ridge sees to it
    noise = np.random.default_rng([seed, 7]).normal(size=(draws, frame.rank))
    spread = sl.solve_triangular(shape.lower, noise.T, lower=True, trans="T").T / shape.diagonal
    return np.asarray((centre + spread) @ frame.transform.T)
