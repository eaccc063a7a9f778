"""What Winner makes of answers to questions about sets: predictions, evidence, beliefs and its record of pairs.

A ranking is picks one after the other, each from what is left (docs/assumptions.md, "Picks and rankings"). Where
questions show an input it counts by who is placed above whom instead ("Rankings of systems").
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import softmax

from surepick._arrays import Floats, Integers
from surepick.evidence.betting import SHARED, Drawn, Predicted, WinnerEvidence, above_in, place_bets
from surepick.glm.item_scores import ItemScores
from surepick.glm.loss import probability_of_yes
from surepick.identify.problem import Problem
from surepick.identify.sets import Order, picks_of

DIGITS = 6
"""Predicted shares are kept to this many decimals: in logs and certificates they are fixed as written."""

CERTAIN = 1.0
"""Standard errors by which a loss is taken to be narrower than it is believed to be."""

LEAST_KEPT = 1e-6
"""No share is written as zero, so that shares of what is left are always defined."""


PairRecord = Mapping[int, tuple[float, float]]
"""For each comparison how often its items met, and how often the first was preferred."""


def predict_set(beliefs: ItemScores, shown: Sequence[int]) -> list[list[float]]:
    """Predicted shares of the items of a set: by the model, and by its means as if they were certain."""
    w = beliefs.weights
    bold = w @ softmax(beliefs.mean[:, list(shown)], axis=1)
    return [
        [round(max(float(share), LEAST_KEPT), DIGITS) for share in shares]
        for shares in (w @ beliefs.shares(shown), bold)
    ]


def bets_on_ranking(
    process: WinnerEvidence,
    problem: Problem,
    beliefs: ItemScores,
    record: PairRecord,
    shown: Sequence[int],
    margin: float,
    drawn: Drawn | None = None,
) -> list[list[float]]:
    """What every item of a set bets on a ranking that counts by places: against which place, and how much.

    `margin` is what the frozen leader of the process, if it has one, may be behind the winner, in log-odds; `drawn`
    what was drawn before, if answers are drawn without replacement.
    """
    each = np.arange(len(shown))
    pairs = np.asarray(shown)[each[:, None]], np.asarray(shown)[None, each]
    ahead, deviation = _gaps(beliefs, *np.broadcast_arrays(*pairs))
    least = probability_of_yes(-ahead - CERTAIN * deviation)
    rows = problem.comparison[pairs]
    met = np.array([[record.get(row, (0.0, 0.0))[0] for row in line] for line in rows.tolist()])
    raised = {process.against: margin} if process.against >= 0 else {}
    stretch = 1.0 if drawn is None else drawn.total / (drawn.total - drawn.before)
    lost, fair = losing_to(beliefs, shown, raised), process.place_shares(shown, drawn)
    bets = place_bets(lost, least, met, fair, stretch)
    return [[other, round(bet, DIGITS)] for other, bet in bets]


def losing_to(beliefs: ItemScores, shown: Sequence[int], raised: Mapping[int, float]) -> Floats:
    """How far each item shown is taken to lose to each other one if it is not the winner, from −1 to 1.

    Twice the probability, less one, that the other one is better. The evidence against an item only has to grow if
    it is not the winner. So where it is the best of all items in a sample of the beliefs, it is taken to be a little
    worse than the second. `raised` is added to the scores of some items. O(samples·(items + k²)).
    """
    mirrored = np.concatenate([beliefs.drawn, -beliefs.drawn], axis=1)
    samples = beliefs.mean[:, None, :] + mirrored
    for item, margin in raised.items():
        samples[:, :, item] += margin
    weights = np.repeat(beliefs.weights / samples.shape[1], samples.shape[1])
    samples = samples.reshape(len(weights), -1)
    those = samples[:, list(shown)]
    better = np.tensordot(weights, those[:, None, :] > those[:, :, None], axes=1)
    second, best = np.argpartition(samples, -2, axis=1)[:, -2:].T
    place = np.full(samples.shape[1], -1)
    place[list(shown)] = np.arange(len(shown))
    both = (place[best] >= 0) & (place[second] >= 0)
    np.add.at(better, (place[best][both], place[second][both]), weights[both])
    return np.asarray(2 * better - 1)


def _gaps(beliefs: ItemScores, first: Integers, second: Integers) -> tuple[Floats, Floats]:
    """Mean and standard deviation of score differences, all scales together."""
    mean, variance = beliefs.gap(first, second)
    together = np.tensordot(beliefs.weights, mean, axes=1)
    squares = np.tensordot(beliefs.weights, variance + mean**2, axes=1)
    return together, np.sqrt(np.maximum(squares - together**2, 0.0))


def evidence_after(
    process: WinnerEvidence,
    problem: Problem,
    shown: Sequence[int],
    shares: Predicted,
    orders: Sequence[Order],
    *,
    charged: int | None,
) -> WinnerEvidence:
    """After these answers to one question, a pick or a ranking that counts as picks one after the other.

    `charged` answers are missing for what they would have been, if not None.
    """
    everything = range(len(shown))
    for order in orders:
        process = process.after_order(shown, shares, order)
        # A tie is an answer in which nobody is preferred. A judge who stops after some places leaves picks missing.
        if charged is not None and 0 < len(order) < problem.top:
            process = process.charge_order(shown, shares, [place for place in everything if place not in order])
    for _ in range(charged or 0):
        process = process.charge_order(shown, shares, everything)
    return process


def placed(
    orders: Sequence[Order], problem: Problem, charged: int | None, missing: int | None = None
) -> list[tuple[Floats, int]]:
    """Answers to a ranking that counts by places (`WinnerEvidence.after_rankings`).

    Who was placed above whom, and how often; what is charged for missing answers is the most for every item. `missing`
    answers are added in this way whether or not they are charged, if given.
    """
    answers = []
    for order, times in sorted(Counter(orders).items()):
        above = above_in(order, problem.show)
        if charged is not None and 0 < len(order) < problem.top:
            left = [place for place in range(problem.show) if place not in order]
            above[np.ix_(left, left)] = 1.0
        answers.append((above, times))
    lost = charged if missing is None else missing
    return [*answers, (np.ones((problem.show, problem.show)), lost or 0)]


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
