"""Misfit: do the features and one θ explain the answers at all?"""

import math

import numpy as np

from surepick._arrays import Floats
from surepick.checks.answers import Answers, Counted
from surepick.checks.prequential import Expert, log_evidence
from surepick.checks.result import Check, e_value, exceeds
from surepick.guarantee import Guarantee

MOST_ITEMS = 120
"""With more items than this there is no coordinate an item: the fits would take minutes."""

ITEM_SPREAD = 0.7
"""How far an item's score may be expected to lie from what its features say, in log-odds."""


def misfit(answers: Answers, *, level: float = 0.05) -> Check:
    """Predictors that allow every item and every question a deviation of its own, against the best logistic model.

    Proved (docs/checks.md, 1) for any choice of questions: a true model is accused with probability at most `level`.
    """
    counted = answers.counted
    experts = [Expert(strengths=(4.0, 16.0, 64.0))]
    if 2 < len(answers.names) <= MOST_ITEMS:
        own = ITEM_SPREAD * of_items(counted, len(answers.names))
        experts.append(Expert(extra=own, strengths=(32.0, math.inf)))
    nats = log_evidence(counted, experts)
    alarm = exceeds(nats, level)
    if alarm:
        sentence = (
            "The answers do not follow the model: no weights of the features explain them as well as each item or "
            "question by itself does. The verdict is about the nearest model, and its guarantee does not hold; add "
            "features that matter, or give each item a score of its own."
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
    )


def of_items(counted: Counted, count: int) -> Floats:
    """One coordinate an item: 1 for the first of a question, −1 for the second."""
    result = np.zeros((len(counted.rows), count))
    numbers = np.arange(len(counted.rows))
    for place, sign in ((0, 1.0), (1, -1.0)):
        there = counted.items[:, place] >= 0
        result[numbers[there], counted.items[there, place]] += sign
    return result
