"""Which comparisons Winner asks next: the likeliest best item against rivals that may be as good.

No guarantee depends on it, only the number of questions (docs/assumptions.md, "The bets").
"""

import math
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from surepick._arrays import Floats
from surepick.glm.item_scores import ItemScores
from surepick.identify.problem import NOTHING, Problem

if TYPE_CHECKING:
    from surepick.identify.winner import WinnerState

TELLING = 0.05
"""A judge who may be asked each pair once is not asked one whose answer is expected to be nearly a coin toss."""

SPARE = 0.5
"""Nats beyond the threshold that questions already out are expected to bring before judges wait."""


def choose_questions(
    state: "WinnerState", size: int, rng: np.random.Generator, without: Collection[int] | None
) -> dict[int, int] | None:
    """Which comparisons to ask, and how often: the leader against rivals drawn by how likely they are to be as good.

    A rival z standard errors behind is drawn with weight exp(−z²/2). Drawing is better than taking the closest, which
    starves rivals that were unlucky early. None where the questions out are expected to exclude every rival; empty
    where no comparison outside `without` could. With `without`, even if it is empty, none is asked twice.
    """
    if len(state.alive) == 1:
        return _confirming_questions(state, without or ())
    leader, beliefs, problem = state.leader, state.beliefs, state.problem
    rivals = state.alive[state.alive != leader]
    for named in state.named:
        if named.against == leader:
            rivals = state.rivals_of(named)
    wanting = rivals[_expected_nats(state)[rivals] < state.needed + SPARE]
    if not len(wanting):
        return None
    if without:
        askable = [_comparison(problem, beliefs, leader, rival, without) is not None for rival in wanting.tolist()]
        wanting = wanting[askable]
        if not len(wanting):
            return {}
    scores = beliefs.scores()
    z = np.maximum(scores[leader] - scores[wanting], 0.0) / beliefs.deviations_from(leader)[wanting]
    odds = np.exp(-(z**2 - np.min(z) ** 2) / 2)
    times = rng.multinomial(size, odds / odds.sum())
    counts = Counter[int]()  # two rivals that the leader cannot meet may be compared with one another
    for drawn in np.flatnonzero(times).tolist():
        row = _comparison(problem, beliefs, leader, int(wanting[drawn]), without or ())
        assert row is not None  # items that cannot be compared any more were left out above
        counts[row] += int(times[drawn])
    return counts if without is None else dict.fromkeys(counts, 1)


def _confirming_questions(state: "WinnerState", without: Collection[int]) -> dict[int, int] | None:
    """One comparison of the last survivor that needs it and is not out already; None where all of them are out."""
    out = {row for stage in state.stages[state.evaluated_stages :] for row in stage.plan.measurements.tolist()}
    rows = state.problem.comparison[int(state.alive[0]), state.unconfirmed].tolist()
    wanted = [row for row in rows if row not in out]
    return dict.fromkeys([row for row in wanted if row not in without][:1], 1) if wanted else None


def _comparison(problem: Problem, beliefs: ItemScores, leader: int, rival: int, without: Collection[int]) -> int | None:
    """The comparison of leader and rival, or, where it may not be asked, of the rival and who beats it likeliest.

    None where nobody may be compared with it any more who is expected to beat it by more than `TELLING`.
    """
    possible = problem.comparison[rival]
    if possible[leader] != NOTHING and possible[leader] not in without:
        return int(possible[leader])
    rows = np.argsort(possible)[np.count_nonzero(possible == NOTHING) :]  # opponents, in the order of the questions
    opponents = [int(item) for item in rows if int(possible[item]) not in without]
    if not opponents:
        return None
    likeliest = max(opponents, key=lambda opponent: beliefs.predict(opponent, rival))
    if without and beliefs.predict(likeliest, rival) < 0.5 + TELLING:
        return None
    return int(possible[likeliest])


def _expected_nats(state: "WinnerState") -> Floats:
    """Evidence against each item that is there or expected from the questions that are out."""
    nats = state.evidence.reached.copy()
    for stage in state.stages[state.evaluated_stages :]:
        for place, measurement in enumerate(stage.plan.measurements):
            first, second = state.problem.about[measurement].tolist()
            chance = state.beliefs.predict(first, second)
            loser, q = (second, chance) if chance > 0.5 else (first, 1 - chance)
            nats[loser] += stage.plan.pulls[place] * (q * math.log(2 * q) + (1 - q) * math.log(2 * (1 - q)))
    return nats
