"""Small helpers shared by tests: data with a known truth, and thresholds for statistical tests."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import savemat
from scipy.stats import binom

from surepick import Tally
from surepick.glm import probability_of_yes
from surepick.identify import Plan

FALSE_ALARM = 1e-4
"""Chance that a statistical test fails although what it tests is true."""


def most_failures(runs: int, probability: float) -> int:
    """Failures in `runs` runs; a true rate of at most `probability` gives more with chance FALSE_ALARM at most."""
    return int(binom.isf(FALSE_ALARM, runs, probability))


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def write_zappos(folder: Path, *, images: int = 60, features: int = 12, votes: int = 900) -> np.ndarray:
    """Small files in the format of UT-Zap50K."""
    rng = np.random.default_rng(0)
    gist = rng.normal(size=(images, features)) / np.arange(1, features + 1)
    theta = rng.normal(size=features) * 2
    labels = np.empty((1, 4), dtype=object)
    for attribute in range(4):
        pairs = rng.integers(images, size=(votes, 2))
        first = rng.random(votes) < probability_of_yes((gist[pairs[:, 0]] - gist[pairs[:, 1]]) @ theta)
        answers = np.where(first, 1, 2)
        answers[:5] = 3  # "equal" is left out
        rest = np.ones((votes, 2))
        labels[0, attribute] = np.column_stack([pairs + 1, np.full(votes, attribute + 1), answers, rest])
    savemat(folder / "zappos-labels.mat", {"mturkOrder": labels})
    savemat(folder / "zappos-gist.mat", {"gistfeats": gist})
    return gist @ theta


def random_tally(rng, rows=40, dimension=3, most=20, scale=1.0) -> Tally:
    """Counts drawn from a logistic model, overlapping so that the estimate exists."""
    vectors = rng.normal(size=(rows, dimension))
    pulls = rng.integers(2, most + 1, size=rows)
    wins = rng.binomial(pulls, probability_of_yes(scale * vectors @ rng.normal(size=dimension)))
    wins[: dimension + 1] = np.clip(wins[: dimension + 1], 1, pulls[: dimension + 1] - 1)
    return Tally(vectors, pulls, wins)


def planned(policy: Any, state: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Plan the next stage and apply it: the new state, and the plan, the wait or the verdict."""
    outcome = policy.plan(state, rng)
    return (policy.apply(state, outcome) if isinstance(outcome, Plan) else state), outcome
