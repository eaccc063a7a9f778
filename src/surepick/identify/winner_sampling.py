"""Which comparisons Winner asks next: the likeliest best item, or first one that may be it, against its rivals.

No guarantee depends on it, only the number of questions (docs/assumptions.md, "The questions").
"""

from collections import Counter
from collections.abc import Collection

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.glm.item_scores import ItemScores
from surepick.identify.problem import NOTHING, Problem
from surepick.identify.winner_state import WinnerState

TELLING = 0.05
"""A judge who may be asked each pair once is not asked one whose answer is expected to be nearly a coin toss."""

TRIES = 16
"""Samples of the beliefs in search of a rival that is better than the first item in one of them."""

EARLY, EARLY_PER_ITEM = 100, 4
"""Questions in which both items are drawn from the beliefs, at least and per item; later the leader meets its rivals.
With 100 items the guess after 200 questions was right in 44 of 60 worlds, and in 31 with a hundred early ones."""

SPARE = 0.5
"""Nats beyond the threshold that questions already out are expected to bring before judges wait."""


def choose_questions(
    state: WinnerState, size: int, rng: np.random.Generator, without: Collection[int] | None
) -> dict[int, int] | None:
    """Which comparisons to ask, and how often.

    First two items that may be the best one (`_top_two`), which finds a good leader soon; after the `EARLY` ones the
    leader against rivals drawn by how likely they are to be as good, which excludes them soon. A rival z standard
    errors behind is drawn with weight exp(−z²/2): more often than it is likely to be the best one, so that rivals which
    were unlucky early are not starved. None where the questions out are expected to exclude every rival; empty where no
    comparison outside `without` could. With `without`, even if it is empty, none is asked twice.
    """
    if len(state.alive) == 1:
        return _confirming_questions(state, without or ())
    leader, beliefs, problem = state.leader, state.beliefs, state.problem
    rivals = state.rivals
    wanting = rivals[_expected_nats(state)[rivals] < state.needed + SPARE]
    if not len(wanting):
        return None
    blocked = frozenset(without or ())
    opponents = np.full(len(problem.items), leader)
    if blocked or np.any(problem.comparison[leader, wanting] == NOTHING):
        opponents[wanting] = _opponents(problem, beliefs, leader, wanting, blocked)
        wanting = wanting[opponents[wanting] != NOTHING]
        if not len(wanting):
            return {}
    scores = beliefs.scores()
    z = (np.maximum(scores[leader] - scores, 0.0) / beliefs.deviations_from(leader))[wanting]
    odds = np.exp(-(z**2 - np.min(z) ** 2) / 2)
    early = max(EARLY, EARLY_PER_ITEM * len(problem.items)) - state.asked
    pairs = [_top_two(beliefs, leader, wanting, rng) for _ in range(min(size, early))]
    drawn = rng.choice(wanting, size=size - len(pairs), p=odds / odds.sum()).tolist()
    counts = Counter[int]()
    for first, second in (*pairs, *((leader, rival) for rival in drawn)):
        row = int(problem.comparison[first, second])
        if row == NOTHING or row in blocked:
            row = int(problem.comparison[opponents[second], second])
        counts[row] += 1
    return counts if without is None else dict.fromkeys(counts, 1)


def _opponents(
    problem: Problem, beliefs: ItemScores, leader: int, rivals: Integers, blocked: frozenset[int]
) -> Integers:
    """With whom each rival is compared: the leader, or, where that may not be asked, the best item that may be.

    `NOTHING` where nobody may be compared with a rival any more, or nobody who is expected to beat it by more than
    `TELLING`. O(rivals·items).
    """
    rows = problem.comparison[rivals]
    possible = rows != NOTHING
    if blocked:
        forbidden = np.zeros(len(problem.about) + 1, dtype=np.bool_)
        forbidden[[row for row in blocked if row < len(problem.about)]] = True
        possible &= ~forbidden[rows]
    others = np.where(possible, beliefs.scores(), -np.inf).argmax(axis=1)
    others = np.where(possible[:, leader], leader, others)
    met = possible[np.arange(len(rivals)), others]
    if blocked:
        met &= possible[:, leader] | (beliefs.predict_all(others, rivals) >= 0.5 + TELLING)
    return np.where(met, others, NOTHING)


def _top_two(beliefs: ItemScores, leader: int, rivals: Integers, rng: np.random.Generator) -> tuple[int, int]:
    """The best items of two samples of the beliefs, the leader first (top-two Thompson sampling, Russo 2016).

    Where one item is the best in all samples, the other is the one that comes closest to it in any of them.
    """
    items = np.append(rivals, leader)
    samples = beliefs.sample(TRIES, items, rng)
    first = int(np.argmax(samples[0]))
    behind = samples[:, [first]] - samples
    behind[:, first] = np.inf
    least = behind.min(axis=1)
    chosen = int(np.argmax(least < 0)) if np.any(least < 0) else int(np.argmin(least))
    one, other = int(items[first]), int(items[np.argmin(behind[chosen])])
    return (other, one) if other == leader else (one, other)


def _confirming_questions(state: WinnerState, without: Collection[int]) -> dict[int, int] | None:
    """One comparison of the last survivor that needs it and is not out already; None where all of them are out."""
    out = {row for stage in state.stages[state.evaluated_stages :] for row in stage.plan.measurements.tolist()}
    rows = state.problem.comparison[int(state.alive[0]), state.unconfirmed].tolist()
    wanted = [row for row in rows if row not in out]
    return dict.fromkeys([row for row in wanted if row not in without][:1], 1) if wanted else None


def _expected_nats(state: WinnerState) -> Floats:
    """Evidence against each item that is there or expected from the questions that are out."""
    nats = state.evidence.reached.copy()
    out = [stage.plan for stage in state.stages[state.evaluated_stages :]]
    if out:
        first, second = state.problem.about[np.concatenate([plan.measurements for plan in out])].T
        chance = state.beliefs.predict_all(first, second)
        q = np.maximum(chance, 1 - chance)
        gained = np.concatenate([plan.pulls for plan in out]) * (q * np.log(2 * q) + (1 - q) * np.log(2 * (1 - q)))
        np.add.at(nats, np.where(chance > 0.5, second, first), gained)
    return nats
