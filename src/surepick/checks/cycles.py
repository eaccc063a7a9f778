"""Cycles: do majorities go round in a circle, a over b over c over a?"""

import math
from collections import defaultdict

import numpy as np
from scipy.special import betainc, betaln, logsumexp

from surepick._arrays import Floats
from surepick.checks.prequential import highest_likelihood
from surepick.checks.table import Answers, Check, e_value, exceeds
from surepick.guarantee import Guarantee

Triple = tuple[int, int, int]

WEIGHED = 100
"""Triples evaluated exactly: those of most evidence against a coin; leaving others out only makes e smaller."""

SUM_ZERO = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
"""Logits of a over b, b over c, c over a if there are scores: they sum to zero."""


def cycles(answers: Answers, *, level: float = 0.05) -> Check:
    """For every triple the bet that each of its three majorities is real, against the best scores of the three items.

    If items have scores at all, with features or without, the ratio is below a martingale from one; the mean over all
    triples of the problem is the e-value, which accounts for their number. Proved (docs/checks.md, 3).
    """
    majorities = _majorities(answers)
    nats, worst = _log_evidence(majorities, len(answers.names))
    alarm = exceeds(nats, level)
    about: tuple[str, ...] = ()
    if alarm and worst is not None:
        a, b, c = about = tuple(answers.names[item] for item in worst)
        shown = ", ".join(
            f"{answers.names[x]} beats {answers.names[y]} ({majorities[x, y][1]:,} of {majorities[x, y][0]:,})"
            for x, y in _around(worst)
        )
        sentence = (
            f"Preferences go round in a circle: {shown}. No scores explain that, so there need not be a best item; "
            f"look at what {a}, {b} and {c} are compared by."
        )
    else:
        sentence = "No three items beat each other in a circle beyond chance."
    return Check(
        "cycles",
        level,
        alarm,
        e_value(nats),
        sentence,
        "Every item has a score, and a comparison depends on the difference of two of them.",
        Guarantee.PROVED,
        ("features", "population"),  # a fourth item may beat all three, so "winner" may hold
        about,
    )


def _majorities(answers: Answers) -> dict[tuple[int, int], tuple[int, int]]:
    """For winner and loser of every pair with a majority: answers, and how many of them the winner won."""
    asked, won = defaultdict[tuple[int, int], int](int), defaultdict[tuple[int, int], int](int)
    rows = answers.of_a_pair
    for (first, second), one in zip(answers.items[rows].tolist(), answers.first_won.tolist(), strict=True):
        asked[min(first, second), max(first, second)] += 1
        won[(first, second) if one else (second, first)] += 1
    result = {}
    for (a, b), count in asked.items():
        ahead = won[a, b]
        if 2 * ahead != count:
            result[(a, b) if 2 * ahead > count else (b, a)] = (count, max(ahead, count - ahead))
    return result


def _log_evidence(majorities: dict[tuple[int, int], tuple[int, int]], items: int) -> tuple[float, Triple | None]:
    """Nats of the mean over all triples, and the triple of most evidence."""
    if items < 3:
        return 0.0, None
    found = _circles(majorities)
    # A triple that is not a circle counts as zero although its evidence is positive: that only lowers the mean.
    if not found:
        return -math.inf, None
    counts = np.array([[majorities[edge] for edge in _around(triple)] for triple in found], dtype=float)
    bets = np.sum(_log_bet(counts[:, :, 0], counts[:, :, 1]), axis=1) - math.log(2)  # a circle can go two ways
    promising = np.argsort(-(bets + counts[:, :, 0].sum(axis=1) * math.log(2)), kind="stable")[:WEIGHED]
    nats = [bets[one] - highest_likelihood(SUM_ZERO, counts[one, :, 0], counts[one, :, 1]) for one in promising]
    return float(logsumexp(nats)) - math.log(math.comb(items, 3)), found[promising[int(np.argmax(nats))]]


def _log_bet(pulls: Floats, wins: Floats) -> Floats:
    """Log-probability of the answers to a pair if the winner's share is drawn evenly from (1/2, 1)."""
    with np.errstate(divide="ignore"):
        above = np.log(betainc(pulls - wins + 1, wins + 1, 0.5))
    return np.asarray(math.log(2) + betaln(wins + 1, pulls - wins + 1) + above)


def _circles(majorities: dict[tuple[int, int], tuple[int, int]]) -> list[Triple]:
    """All a, b, c with a over b over c over a, each once."""
    beats, beaten_by = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
    for winner, loser in majorities:
        beats[winner].add(loser)
        beaten_by[loser].add(winner)
    return [(a, b, c) for a, b in sorted(majorities) for c in sorted(beats[b] & beaten_by[a]) if a == min(a, b, c)]


def _around(triple: Triple) -> tuple[tuple[int, int], ...]:
    a, b, c = triple
    return (a, b), (b, c), (c, a)
