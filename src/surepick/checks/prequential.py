"""Evidence against the logistic model: does somebody who looks at the past alone predict better than its best θ?

log e = Σ log q(answer) − max over θ of the log-likelihood. Each q is fixed before its answer, so under any θ* the ratio
Π q/p is a martingale of mean one, and the maximum only makes it smaller: the chance that e ever reaches 1/α is at most
α whatever chose the questions (Ville). A fixed mixture of predictors and of starting times is as good (docs/checks.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import logsumexp, xlogy

from surepick._arrays import Floats
from surepick.checks.answers import Counted
from surepick.glm import probability_of_yes
from surepick.glm.duality import duality_gap
from surepick.glm.fit import CountProblem
from surepick.linalg import norms, span_of

GROWTH = 0.15
"""A predictor is fitted again when answers have grown by this share."""

FIRST_START = 16
"""Evidence also counts from 16·2^j answers on: what the past cost to learn is then no longer held against it."""

CERTAIN = 1e-6
"""No prediction comes closer to 0 or 1."""

RIDGES = (1e-6, 1e-4, 1e-2)
"""Tried in turn for a point near the maximum of the likelihood, which need not exist; the proof is at the point."""


@dataclass(frozen=True, eq=False)
class Expert:
    """Predicts by a ridge fit of the features and of columns of its own, and by what was said to the same question."""

    extra: Floats | None = None
    """Columns beside the features, one row a distinct question; their ridge weight is one."""
    ridge: float = 0.03
    """Ridge weight of the features, if the longest vector asked before had length one."""
    strengths: tuple[float, ...] = (math.inf,)
    """How many answers to the same question weigh as much as the fit; infinite: the fit alone. A predictor each."""
    forget: float = 0.0
    """Answer s of t weighs (s/t)^forget."""


def log_evidence(counted: Counted, experts: Sequence[Expert]) -> float:
    """Nats by which the mixture of all predictors beats the best logistic model on the rows of `counted`.

    One warm-started fit an expert and growth of the answers, and one a starting time: O(p k²) each for p questions.
    """
    if len(counted) == 0:
        return 0.0
    pulls, wins = _before(counted)
    sums = []
    for expert in experts:
        fitted = forecasts(counted, expert)
        for strength in expert.strengths:
            yes = fitted if math.isinf(strength) else (wins + strength * fitted) / (pulls + strength)
            sums.append(np.cumsum(np.log(np.where(counted.ones == 1, yes, 1 - yes))))
    gained = np.array(sums)
    terms = []
    for j, start in enumerate(_starts(len(counted))):
        before = gained[:, start - 1] if start else 0.0
        mixed = float(logsumexp(gained[:, -1] - before)) - math.log(len(gained))
        best = highest_likelihood(counted.rows, *counted.of(slice(start, None)))
        terms.append(mixed - best - math.log((j + 1) * (j + 2)))
    return float(logsumexp(terms))


def forecasts(counted: Counted, expert: Expert) -> Floats:
    """For each answer the probability of 1 by a fit of earlier answers, made anew when these have grown by GROWTH."""
    count, features = counted.rows.shape
    extra = np.zeros((count, 0)) if expert.extra is None else expert.extra
    columns, lengths = np.hstack([counted.rows, extra]), norms(counted.rows)
    theta = np.zeros(columns.shape[1])
    pulls, wins = np.zeros((2, count))
    result = np.empty(len(counted))
    for start, end in pairwise(_ends(len(counted))):
        asked = np.flatnonzero(pulls)
        longest = float(np.max(lengths[asked], initial=0.0))
        if longest > 0:  # of questions of the past: later ones would tell of answers in between
            unit = np.ones(len(theta))
            unit[:features] = 1 / (longest * math.sqrt(expert.ridge))
            problem = CountProblem(columns[asked] * unit, pulls[asked], wins[asked])
            found = problem.solve(ridge=1.0, start=theta / unit, tolerance=1e-2, max_iterations=20)
            theta = found.theta * unit
        result[start:end] = probability_of_yes(columns[counted.place[start:end]] @ theta)
        more, ones = counted.of(slice(start, end))
        fading = (start / end) ** expert.forget
        pulls, wins = pulls * fading + more, wins * fading + ones
    return np.clip(result, CERTAIN, 1 - CERTAIN)


def highest_likelihood(rows: Floats, pulls: Floats, wins: Floats) -> float:
    """A proven upper bound of the log-likelihood over all θ, also where no θ attains it; exact but for rounding."""
    asked = pulls > 0
    saturated = float(np.sum(xlogy(wins, wins / np.maximum(pulls, 1))))
    saturated += float(np.sum(xlogy(pulls - wins, 1 - wins / np.maximum(pulls, 1))))
    if not rows[asked].any():
        return -float(pulls.sum()) * math.log(2)
    span = span_of(rows[asked])
    problem = CountProblem(span.coordinates(rows[asked]), pulls[asked], wins[asked])
    for ridge in RIDGES:
        found = problem.solve(ridge=ridge * problem.longest**2, start=None, tolerance=1e-7, max_iterations=100)
        gap = duality_gap(problem, found.theta)
        if gap < 0.1:
            return min(saturated, gap - found.loss) + 1e-9 * (1 + abs(found.loss))
    return saturated


def _ends(count: int) -> list[int]:
    """Where fits are made anew: 0, 1, 2, … and then in growing steps, up to the number of answers."""
    ends = [0]
    while ends[-1] < count:
        ends.append(min(count, ends[-1] + max(1, int(GROWTH * ends[-1]))))
    return ends


def _starts(count: int) -> list[int]:
    """Answers with which evidence begins to count: the first, and then at doubling numbers."""
    starts = [0]
    while (following := max(FIRST_START, 2 * starts[-1])) < count:
        starts.append(following)
    return starts


def _before(counted: Counted) -> tuple[Floats, Floats]:
    """For each answer how often the same question was answered before, and how often with 1."""
    order = np.argsort(counted.place, kind="stable")
    place, ones = counted.place[order], counted.ones[order]
    first = np.searchsorted(place, place)  # where the question begins among the sorted answers
    running = np.concatenate([[0], np.cumsum(ones)])
    pulls, wins = np.empty((2, len(counted)))
    pulls[order] = np.arange(len(place)) - first
    wins[order] = running[:-1] - running[first]
    return pulls, wins
