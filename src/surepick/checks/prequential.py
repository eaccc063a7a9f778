"""Misfit and drift: does a predictor that knows only the past predict better than the best θ of the logistic model?

log e = Σ log q(answer) − max over θ of the log-likelihood. Each q is fixed before its answer, so under any θ* the ratio
Π q/p is a martingale of mean one, and the maximum only makes it smaller: the chance that e ever reaches 1/α is at most
α however the questions were chosen (Ville). A fixed mixture of predictors and of starting times is as good
(docs/checks.md). `misfit` and `drift` differ only in who predicts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import logsumexp, xlogy

from surepick._arrays import Floats, Integers
from surepick.checks.table import Answers, Check, Counted, e_value, exceeds, once_per_table
from surepick.glm import probability_of_yes
from surepick.glm.duality import duality_gap
from surepick.glm.fit import CountProblem
from surepick.guarantee import Guarantee
from surepick.linalg import Span, norms, span_of

GROWTH = 0.15
"""A predictor is fitted again when answers have grown by this share."""

FIRST_START = 16
"""Evidence also counts from answer 16·2^j on: what it cost to learn from the answers before is then left out."""

CERTAIN = 1e-6
"""Predictions are kept this far from 0 and 1."""

RIDGES = (1e-6, 1e-4, 1e-2)
"""Tried in turn for a point near the maximum of the likelihood, which need not exist; the proof is made at it."""

MOST_ITEMS = 120
"""With more items than this they get no coordinates of their own: the fits would take minutes."""

ITEM_SPREAD = 0.7
"""How far an item's score may be expected to lie from what its features say, in log-odds."""

FORGETTING = (1.0, 4.0)
"""With these exponents an answer in the middle weighs a half, or a sixteenth, of the latest one."""


def misfit(answers: Answers, *, level: float = 0.05) -> Check:
    """Predictors that allow every item and every question a deviation of its own, against the best logistic model.

    Proved (docs/checks.md, 1) for any choice of questions: a true model is accused with probability at most `level`.
    """
    counted = answers.counted
    pulls, wins = before(counted.place, counted.ones)
    by_features, *by_items = fits_of_the_past(answers)
    yes = [(wins + strength * by_features) / (pulls + strength) for strength in (4.0, 16.0, 64.0)]
    for fitted in by_items:
        yes += [(wins + 32.0 * fitted) / (pulls + 32.0), fitted]
    nats = beyond_one_theta(counted, yes)
    alarm = exceeds(nats, level)
    if alarm:
        sentence = (
            "The answers do not follow the model: no weights of the features explain them as well as each item or "
            'question by itself does. The claim "features" is then about the nearest model and not proved; features '
            'that matter may mend that. The claim "winner" does not assume that features explain anything.'
        )
    else:
        sentence = f"Nothing in {len(counted):,} answers speaks against the model so far."
    return Check(
        "misfit",
        level,
        alarm,
        e_value(nats),
        sentence,
        "One θ and the features explain all answers: P(yes) = 1/(1+exp(−xᵀθ)).",
        Guarantee.PROVED,
        ("features",),
    )


@once_per_table
def fits_of_the_past(answers: Answers) -> tuple[Floats, ...]:
    """For each decisive answer the probability of 1 by fits of those before: by features, and with scores of items."""
    counted, items = answers.counted, len(answers.names)
    experts = [Expert()]
    # Not where the features alone can give every item its own score. It is decided by what is fixed beforehand.
    if counted.rows.shape[1] + 1 < items <= MOST_ITEMS:
        experts.append(Expert(extra=ITEM_SPREAD * of_items(counted, items)))
    return tuple(forecasts(counted, expert) for expert in experts)


def of_items(counted: Counted, count: int) -> Floats:
    """One coordinate per item: 1 for the first of a question, −1 for the second."""
    result = np.zeros((len(counted.rows), count))
    numbers = np.arange(len(counted.rows))
    for place, sign in ((0, 1.0), (1, -1.0)):
        there = counted.items[:, place] >= 0
        result[numbers[there], counted.items[there, place]] += sign
    return result


def drift(answers: Answers, *, level: float = 0.05) -> Check:
    """Predictors that forget old answers, against the best single θ for all of them.

    Proved (docs/checks.md, 1), as for `misfit`.
    """
    experts = [Expert(forget=exponent) for exponent in FORGETTING]
    nats = beyond_one_theta(answers.counted, [forecasts(answers.counted, expert) for expert in experts])
    alarm = exceeds(nats, level)
    if alarm:
        sentence = (
            "The answers changed over time: recent answers alone predict better than any one taste for all of them. "
            "The verdict mixes then and now; start again, or ask within a shorter time."
        )
    else:
        sentence = "Early and late answers agree, as far as they can tell."
    return Check(
        "drift",
        level,
        alarm,
        e_value(nats),
        sentence,
        "One θ for all times.",
        Guarantee.PROVED,
        ("features", "population"),
    )


@dataclass(frozen=True, eq=False)
class Expert:
    """Predicts by a ridge fit of the features and of extra columns."""

    extra: Floats | None = None
    """Columns beside the features, one row per distinct question; their ridge weight is one."""
    ridge: float = 0.03
    """Ridge weight of the features, if the longest vector asked before had length one."""
    forget: float = 0.0
    """Answer s of t weighs (s/t)^forget."""


def beyond_one_theta(counted: Counted, predictions: Sequence[Floats], same: Counted | None = None) -> float:
    """Nats by which the mixture of all predictors beats the best logistic model on the rows of `counted`.

    A predictor is the probability of 1 for each answer, stated before it. `same` has the same answers in the same order
    with some questions turned round, which changes no likelihood: the highest ones, if they are known of it, are not
    computed again. One fit per starting time.
    """
    if len(counted) == 0:
        return 0.0
    gained = np.cumsum(log_chances(counted, np.array(predictions)), axis=1)
    terms = []
    for j, (start, best) in enumerate(
        zip(_starts(len(counted)), _highest_from_each_start(counted if same is None else same), strict=True)
    ):
        before = gained[:, start - 1] if start else 0.0
        mixed = float(logsumexp(gained[:, -1] - before)) - math.log(len(gained))
        # Starting time j has the weight 1/((j+1)(j+2)); these sum to one.
        terms.append(mixed - best - math.log((j + 1) * (j + 2)))
    return float(logsumexp(terms))


def log_chances(counted: Counted, yes: Floats) -> Floats:
    """Log-probability of each answer where 1 was predicted with probability `yes`."""
    return np.asarray(np.log(np.where(counted.ones == 1, yes, 1 - yes)))


def forecasts(counted: Counted, expert: Expert) -> Floats:
    """For each answer the probability of 1 by a fit of earlier answers, repeated when they have grown by GROWTH.

    Each fit starts from the last one and takes O(p k²) for p distinct questions and k columns.
    """
    count, features = counted.rows.shape
    extra = np.zeros((count, 0)) if expert.extra is None else expert.extra
    columns, lengths = np.hstack([counted.rows, extra]), norms(counted.rows)
    theta = np.zeros(columns.shape[1])
    pulls, wins = np.zeros((2, count))
    result = np.empty(len(counted))
    for start, end in pairwise(_ends(len(counted))):
        asked = np.flatnonzero(pulls)
        longest = float(np.max(lengths[asked], initial=0.0))
        if longest > 0:  # the scale is that of past questions: later ones may depend on answers to be predicted
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


@once_per_table  # misfit and drift both need them, and the fits are most of their time
def _highest_from_each_start(counted: Counted) -> tuple[float, ...]:
    """`highest_likelihood` of the answers from each starting time on."""
    span = span_of(counted.rows) if counted.rows.any() else None
    return tuple(
        highest_likelihood(counted.rows, *counted.of(slice(start, None)), span) for start in _starts(len(counted))
    )


def highest_likelihood(rows: Floats, pulls: Floats, wins: Floats, span: Span | None = None) -> float:
    """A proved upper bound of the log-likelihood over all θ, even where no θ attains it; exact up to rounding.

    `span`, of all rows, saves finding that of the rows asked; where these span less, the bound is found in their own.
    """
    asked = pulls > 0
    # One probability for every question, free of θ: an upper bound of any model's likelihood.
    saturated = float(np.sum(xlogy(wins, wins / np.maximum(pulls, 1))))
    saturated += float(np.sum(xlogy(pulls - wins, 1 - wins / np.maximum(pulls, 1))))
    if not rows[asked].any():
        return -float(pulls.sum()) * math.log(2)
    for basis in (span, None) if span is not None else (None,):
        inside = (basis or span_of(rows[asked])).coordinates(rows[asked])
        problem = CountProblem(inside, pulls[asked], wins[asked])
        for ridge in RIDGES[:1] if basis is not None else RIDGES:
            found = problem.solve(ridge=ridge * problem.longest**2, start=None, tolerance=1e-7, max_iterations=100)
            # Loss less duality gap is below the least loss, wherever the iteration stopped.
            gap = duality_gap(problem, found.theta)
            if gap < 0.1:
                return min(saturated, gap - found.loss) + 1e-9 * (1 + abs(found.loss))
    return saturated


def _ends(count: int) -> list[int]:
    """Numbers of answers after which the fit is repeated: 0, 1, 2, … and then in growing steps up to `count`."""
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


def before(place: Integers, ones: Integers) -> tuple[Floats, Floats]:
    """For each answer how often the same place was answered before, and how often with 1."""
    order = np.argsort(place, kind="stable")
    place, ones = place[order], ones[order]
    first = np.searchsorted(place, place)  # where the place begins among the sorted answers
    running = np.concatenate([[0], np.cumsum(ones)])
    pulls, wins = np.empty((2, len(place)))
    pulls[order] = np.arange(len(place)) - first
    wins[order] = running[:-1] - running[first]
    return pulls, wins
