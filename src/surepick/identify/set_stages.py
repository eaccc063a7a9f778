"""What Winner makes of answers to questions about sets: predictions, evidence, beliefs and its record of pairs.

A ranking is picks one after the other, each from what is left (docs/assumptions.md, "Picks and rankings").
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from scipy.special import softmax

from surepick.evidence.betting import Predicted, WinnerEvidence
from surepick.glm.item_scores import ItemScores
from surepick.identify.problem import Problem
from surepick.identify.sets import Order, picks_of

DIGITS = 6
"""Predicted shares are kept to this many decimals: in logs and certificates they are fixed as written."""

LEAST_KEPT = 1e-6
"""No share is written as zero, so that shares of what is left are always defined."""


def predict_set(beliefs: ItemScores, shown: Sequence[int]) -> list[list[float]]:
    """Predicted shares of the items of a set: by the model, and by its means as if they were certain."""
    w = beliefs.weights
    bold = w @ softmax(beliefs.mean[:, list(shown)], axis=1)
    return [
        [round(max(float(share), LEAST_KEPT), DIGITS) for share in shares]
        for shares in (w @ beliefs.shares(shown), bold)
    ]


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
    for order in orders:
        process = process.after_order(shown, shares, order)
        # A tie is an answer in which nobody is preferred. A judge who stops after some places leaves picks missing.
        if charged is not None and 0 < len(order) < problem.top:
            process = process.charge_order(shown, shares, [place for place in everything if place not in order])
    for _ in range(charged or 0):
        process = process.charge_order(shown, shares, everything)
    return process


def scores_after(scores: ItemScores, shown: Sequence[int], orders: Sequence[Order]) -> ItemScores:
    """Beliefs after these answers to one question."""
    for order in orders:
        for left, picked in picks_of(order, len(shown)):
            scores = scores.update_pick([shown[place] for place in left], left.index(picked))
    return scores


def pairs_after(
    record: Mapping[int, tuple[float, float]], problem: Problem, shown: Sequence[int], orders: Sequence[Order]
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
