"""The leaderboard: estimated scores of all items with heuristic intervals, and the ranks that are proved."""

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick.display import Displayed, View
from surepick.errors import InvalidInput
from surepick.guarantee import Guarantee
from surepick.leaderboard.bradley_terry import Ties, fit_scores, groups
from surepick.leaderboard.counts import VoteCounts
from surepick.leaderboard.pooled_evidence import log_wealth, pooled_ranks
from surepick.leaderboard.proved_ranks import (
    Data,
    better_in_every_vote,
    better_on_average,
    cycle,
    possible_ranks,
    transitive,
)

STATEMENTS = {
    "adaptive": "All ranks hold at once with probability 1 − delta (docs/rank.md, Theorem 1). The rank is the item's "
    "place in an order in which the better of two items scores at least ½ on average.",
    "fixed": "All ranks hold at once with probability 1 − delta (docs/rank.md, Theorem 2). The rank is by the mean "
    "score against all other items.",
}

ASSUMPTIONS = {
    "adaptive": (
        "The items have an order such that in every vote, given all earlier votes, the expected score of the better "
        "item is at least ½ (1 for a win, ½ for a tie).",
        "Votes are listed in their order. Pairs may have been chosen, and the voting ended, by any rule.",
    ),
    "fixed": (
        "Votes are independent, and votes on the same pair have the same expected score.",
        "Which pairs were shown how often did not depend on the answers.",
    ),
}

REFUTED = {
    "adaptive": ": there is no order in which the better of two items scores at least ½ on average",
    "fixed": "; votes may depend on each other, or on what changed between them",
}

SCORES = {
    "half": "Scores are Bradley–Terry estimates in log-odds against the mean of all items, a tie counting as half a "
    "win of each",
    "davidson": "Scores are estimates of Davidson's model of ties, in log-odds against the mean of all items",
}


@dataclass(frozen=True)
class LeaderboardRow:
    """One item of a leaderboard."""

    item: str
    score: float | None
    """The estimate in log-odds against the mean of the item's group; None where there is none."""
    low: float
    high: float
    """Ends of the score's interval, infinite where nothing is known; `interval_guarantee` says what they are worth."""
    rank_low: int
    """The best rank that the item may have ..."""
    rank_high: int
    """... and the worst; `guarantee` is that of the ranks."""
    wins: int
    losses: int
    ties: int
    group: int
    """Scores of items of different groups cannot be compared; group 1 is the largest."""
    guarantee: Guarantee = Guarantee.PROVED
    interval_guarantee: Guarantee = Guarantee.HEURISTIC

    @property
    def ranks(self) -> str:
        """The ranks that the item may have, in a few characters."""
        return str(self.rank_low) if self.rank_low == self.rank_high else f"{self.rank_low}–{self.rank_high}"

    def to_json(self) -> dict[str, Any]:
        """As plain values; an infinite end is null."""
        fields = vars(self) | {end: _finite(getattr(self, end)) for end in ("low", "high")}
        return fields | {name: str(fields[name]) for name in ("guarantee", "interval_guarantee")}


@dataclass(frozen=True)
class Leaderboard(Displayed):
    """All items, best first: by estimated score within a group, the largest group first."""

    rows: tuple[LeaderboardRow, ...]
    delta: float
    data: Data
    ties: Ties
    votes: int
    """Answered votes, ties included."""
    skips: int
    statement: str
    """What the ranks claim ..."""
    assumptions: tuple[str, ...]
    """... and under which assumptions."""
    scores: str
    """What the scores and their intervals are."""
    notes: tuple[str, ...] = ()
    """What to know about these votes: items without an estimate, claims that contradict each other."""
    left_out: tuple[str, ...] = ()
    """Sentences about rows that could not be used, with their line."""

    def view(self) -> View:
        """All items with their ranks and scores."""
        names = ("item", "rank_low", "rank_high", "score", "low", "high", "wins", "losses", "ties")
        return View(
            f"{len(self.rows):,} items, {self.votes:,} votes; ranks proved at delta = {self.delta:g}",
            {name: [getattr(row, name) for row in self.rows] for name in names},
            (self.statement, *self.notes),
            labels="item",
            values="score",
            ends=("low", "high"),
        )

    def to_json(self) -> dict[str, Any]:
        """The fields of `surepick rank --json`."""
        return {
            "items": [row.to_json() for row in self.rows],
            "delta": self.delta,
            "data": self.data,
            "ties": self.ties,
            "votes": self.votes,
            "skips": self.skips,
            "statement": self.statement,
            "assumptions": list(self.assumptions),
            "scores": self.scores,
            "notes": list(self.notes),
            "left_out": list(self.left_out),
        }

    def __str__(self) -> str:
        return json.dumps(self.to_json(), ensure_ascii=False)


def rank_votes(votes: VoteCounts, *, delta: float = 0.05, data: Data = "adaptive", ties: Ties = "half") -> Leaderboard:
    """The leaderboard of recorded votes.

    Args:
        votes: counts per pair, from `VoteCounts.of` or `surepick.io.votes.count_votes`.
        delta: allowed probability that any rank interval is wrong; also the level of each score's interval.
        data: "fixed" if which pairs were shown how often did not depend on answers, else "adaptive". It decides what
            is assumed and what a rank is (docs/rank.md, section 2).
        ties: "half" counts a tie as half a win of each in the scores; "davidson" models ties. The proved ranks do not
            depend on it.

    >>> votes = VoteCounts.of([("red", "blue", "a")] * 30 + [("red", "blue", "b")] * 2)
    >>> [(row.item, round(row.score, 3), row.rank_low, row.rank_high) for row in rank_votes(votes).rows]
    [('red', 1.354, 1, 1), ('blue', -1.354, 2, 2)]
    """
    delta = validate.probability("delta", delta)
    validate.one_of("data", data, ("adaptive", "fixed"))
    validate.one_of("ties", ties, ("half", "davidson"))
    if not isinstance(votes, VoteCounts):
        raise InvalidInput(
            f"A leaderboard needs VoteCounts, got {type(votes).__name__}; "
            "build them with VoteCounts.of(votes) or count_votes(file)."
        )
    if votes.total == 0:
        raise InvalidInput("There is no answered vote; a leaderboard needs at least one win, loss or tie.")
    group = _by_size(groups(votes, ties))
    score, low, high = _scores(votes, group, ties, delta)
    best, worst, contradiction = _ranks(votes, data, delta)
    order = np.lexsort((-np.nan_to_num(score), group))
    won, lost, tied = votes.wins.sum(axis=1), votes.wins.sum(axis=0), votes.ties.sum(axis=1)
    rows = tuple(
        LeaderboardRow(
            item=votes.names[i],
            score=_finite(float(score[i])),
            low=float(low[i]),
            high=float(high[i]),
            rank_low=int(best[i]),
            rank_high=int(worst[i]),
            wins=int(won[i]),
            losses=int(lost[i]),
            ties=int(tied[i]),
            group=int(group[i]) + 1,
        )
        for i in order
    )
    level = f"; each interval is Wald's with a robust variance, at {100 * (1 - delta):g}% for itself alone (heuristic)."
    notes = (*contradiction, *_about_groups(votes, group, order))
    return Leaderboard(
        rows,
        delta,
        data,
        ties,
        votes.total,
        votes.skips,
        STATEMENTS[data],
        ASSUMPTIONS[data],
        SCORES[ties] + level,
        notes,
        votes.unused,
    )


def _by_size(label: Integers) -> Integers:
    """Groups numbered from 0, the largest first, equal ones by their first item."""
    names, first, sizes = np.unique(label, return_index=True, return_counts=True)
    place = np.empty(len(names), dtype=np.int64)
    place[np.lexsort((first, -sizes))] = np.arange(len(names))
    return np.asarray(place[label])


def _scores(votes: VoteCounts, group: Integers, ties: Ties, delta: float) -> tuple[Floats, Floats, Floats]:
    """Estimates within each group and their intervals; an item alone in its group has none."""
    score = np.full(len(group), np.nan)
    low, high = np.full(len(group), -np.inf), np.full(len(group), np.inf)
    for number in range(int(group.max()) + 1):
        inside = np.flatnonzero(group == number)
        if len(inside) < 2:
            continue
        block = np.ix_(inside, inside)
        found = fit_scores(votes.wins[block], votes.ties[block], ties)
        width = float(norm.isf(delta / 2)) * found.deviations
        score[inside], low[inside], high[inside] = found.scores, found.scores - width, found.scores + width
    return score, low, high


def _ranks(votes: VoteCounts, data: Data, delta: float) -> tuple[Integers, Integers, list[str]]:
    """The ranks that the proved claims leave, and a sentence if the claims contradict each other."""
    count = len(votes.names)
    pooled = data == "adaptive" and votes.sequence is not None
    # Claims about pairs and claims from all votes of an item have half of delta each.
    share = delta / 2 if pooled else delta
    claims = better_in_every_vote(votes, share) if data == "adaptive" else better_on_average(votes, share)
    circle = cycle(claims)
    best, worst = possible_ranks(transitive(claims))
    if pooled:
        pooled_best, pooled_worst = pooled_ranks(log_wealth(votes), share)
        best, worst = np.maximum(best, pooled_best), np.minimum(worst, pooled_worst)
    if circle is None and (best <= worst).all():
        return best, worst, []
    why = "the votes contradict each other"
    if circle is not None:
        why = f"the votes go in a circle, {' > '.join(votes.names[item] for item in (*circle, circle[0]))}"
    sentence = (
        f"No ranks are proved: {why}. If the assumption holds, this has probability at most {delta:g}, so it is "
        f"refuted{REFUTED[data]}."
    )
    return np.ones(count, dtype=np.int64), np.full(count, count), [sentence]


def _about_groups(votes: VoteCounts, group: Integers, order: Integers) -> list[str]:
    """Sentences about items whose scores cannot be compared with those of the largest group."""
    shown = votes.shown.sum(axis=1)
    silent = [votes.names[i] for i in order if shown[i] == 0]
    apart = [i for i in order if group[i] > 0 and shown[i] > 0]
    sentences = []
    if silent:
        sentences.append(f"{_listed(silent)}: no votes, so there is no score, and every rank is possible.")
    if not apart:
        return sentences
    if group[order[0]] == 0 and np.sum(group == 0) == 1:
        return [
            *sentences,
            "No scores can be estimated: between any two items, one won every vote or there is no chain of votes.",
        ]
    always = [i for i in apart if np.sum(group == group[i]) == 1 and _is_one_sided(votes, i)]
    if always:
        won = [f"{votes.names[i]} ({'won' if votes.wins[i].any() else 'lost'} all)" for i in always]
        sentences.append(f"{_listed(won)}: an item that won or lost every vote has no finite estimate.")
    rest = [votes.names[i] for i in apart if i not in always]
    if rest:
        sentences.append(
            f"{_listed(rest)}: wins and losses do not connect them with the other items in both directions, so their "
            "scores cannot be compared with those of other groups."
        )
    return sentences


def _is_one_sided(votes: VoteCounts, item: int) -> bool:
    won, lost, tied = votes.wins[item].any(), votes.wins[:, item].any(), votes.ties[item].any()
    return bool((won ^ lost) and not tied)


def _listed(names: list[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
