"""What Winner makes of answers to questions about sets: predictions, evidence, beliefs and its record of pairs.

A ranking is picks one after the other, each from what is left (docs/assumptions.md, "Picks and rankings"). Where
questions show an input it counts by who is placed above whom instead ("Rankings of systems").
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from scipy.special import softmax

from surepick._arrays import Floats
from surepick.evidence.betting import SHARED, Predicted, WinnerEvidence, above_in
from surepick.glm.item_scores import ItemScores
from surepick.identify.problem import Problem
from surepick.identify.sets import Order, picks_of

DIGITS = 6
"""Predicted shares are kept to this many decimals: in logs and certificates they are fixed as written."""

LEAST_KEPT = 1e-6
"""No share is written as zero, so that shares of what is left are always defined."""


PairRecord = Mapping[int, tuple[float, float]]
"""For each comparison how often its items met, and how often the first was preferred."""


def predict_set(problem: Problem, beliefs: ItemScores, record: PairRecord, shown: Sequence[int]) -> list[list[float]]:
    """Predicted shares of the items of a set: by the model, and by its means as if they were certain.

    Where a ranking counts by places, for all pairs of the items the probability that the first is above the second: by
    the model, and by how often it was.
    """
    if problem.by_places:
        pairs = list(combinations(shown, 2))
        first, second = np.array(pairs).T
        return [
            [round(float(chance), DIGITS) for chance in beliefs.predict_all(first, second)],
            [round(_by_record(problem, record, *pair), DIGITS) for pair in pairs],
        ]
    w = beliefs.weights
    bold = w @ softmax(beliefs.mean[:, list(shown)], axis=1)
    return [
        [round(max(float(share), LEAST_KEPT), DIGITS) for share in shares]
        for shares in (w @ beliefs.shares(shown), bold)
    ]


def _by_record(problem: Problem, record: PairRecord, first: int, second: int) -> float:
    """How often the first item was above the second, after Krichevsky and Trofimov."""
    row = int(problem.comparison[first, second])
    met, above = record.get(row, (0.0, 0.0))
    if problem.about[row, 0] != first:
        above = met - above
    return (above + 0.5) / (met + 1)


def evidence_after(
    process: WinnerEvidence,
    problem: Problem,
    shown: Sequence[int],
    shares: Predicted,
    orders: Sequence[Order],
    *,
    charged: int | None,
) -> WinnerEvidence:
    """After these answers to one question; `charged` answers are missing for what they would have been, if not None."""
    everything = range(len(shown))
    if problem.by_places:
        return process.after_rankings(shown, shares, _placed(orders, problem, charged))
    for order in orders:
        process = process.after_order(shown, shares, order)
        # A tie is an answer in which nobody is preferred. A judge who stops after some places leaves picks missing.
        if charged is not None and 0 < len(order) < problem.top:
            process = process.charge_order(shown, shares, [place for place in everything if place not in order])
    for _ in range(charged or 0):
        process = process.charge_order(shown, shares, everything)
    return process


def _placed(orders: Sequence[Order], problem: Problem, charged: int | None) -> list[tuple[Floats, int]]:
    """Who was placed above whom, and how often; what is charged for missing answers is the most for every item."""
    answers = []
    for order, times in sorted(Counter(orders).items()):
        above = above_in(order, problem.show)
        if charged is not None and 0 < len(order) < problem.top:
            left = [place for place in range(problem.show) if place not in order]
            above[np.ix_(left, left)] = 1.0
        answers.append((above, times))
    return [*answers, (np.ones((problem.show, problem.show)), charged or 0)]


def scores_after(scores: ItemScores, problem: Problem, shown: Sequence[int], orders: Sequence[Order]) -> ItemScores:
    """Beliefs after these answers to one question.

    A ranking that counts by places is taken for comparisons of all pairs. Those of one item with the k − 1 others are
    worth (k − 1)/(1 + (k − 2)·ρ) independent ones, as they share what happened to this item.
    """
    if problem.by_places:
        said = [above_in(order, len(shown)) for order in orders if order]
        worth = 1 / (1 + (len(shown) - 2) * SHARED)
        return (
            scores.update_ranked(shown, worth * np.sum([above * (above != 0.5) for above in said], axis=0))
            if said
            else scores
        )
    for order in orders:
        for left, picked in picks_of(order, len(shown)):
            scores = scores.update_pick([shown[place] for place in left], left.index(picked))
    return scores


def pairs_after(
    record: PairRecord, problem: Problem, shown: Sequence[int], orders: Sequence[Order]
) -> dict[int, tuple[float, float]]:
    """How often the items of each pair met, and the first was preferred: a pick is preferred to all that are left."""
    after = dict(record)
    for order in orders:
        for left, picked in picks_of(order, len(shown)):
            for place in left:
                if place != picked:
                    winner, loser = shown[picked], shown[place]
                    row = int(problem.comparison[winner, loser])
                    asked, wins = after.get(row, (0.0, 0.0))
                    after[row] = asked + 1, wins + bool(problem.about[row, 0] == winner)
    return after


def counted_orders(orders: Sequence[Order]) -> list[list[object]]:
    """Orders and how often each occurred, as plain lists in ascending order: as a certificate has them."""
    return [[list(order), times] for order, times in sorted(Counter(orders).items())]
