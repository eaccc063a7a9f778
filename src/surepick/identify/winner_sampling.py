"""Which comparisons Winner asks next: the likeliest best item against a rival that may be better, or be excluded soon.

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

CHALLENGED = 0.5
"""Share of the questions in which the leader's rival is drawn from the beliefs, to find out who leads."""

TRIES = 16
"""Samples of the beliefs in search of a rival that is better than the leader in one of them."""

SPARE = 0.5
"""Nats beyond the threshold that questions already out are expected to bring before judges wait."""


def choose_questions(
    state: WinnerState, size: int, rng: np.random.Generator, without: Collection[int] | None
) -> dict[int, int] | None:
    """Which comparisons to ask, and how often.

    The leader, the item of the highest estimated score, is always one of the two. Half of the time its rival is a
    challenger, the best of the others in a sample of the beliefs: this finds out who leads (top-two sampling with the
    empirical best as the leader, Jourdan et al. 2022). Otherwise a rival z standard errors behind is drawn with weight
    exp(−z²/2): more often than it is likely to be the best one, so that rivals which were unlucky early are not
    starved. None where the questions out are expected to exclude every rival; empty where no comparison outside
    `without` could. With `without`, even if it is empty, none is asked twice.
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
    challenged = int(rng.binomial(size, CHALLENGED))
    drawn = rng.choice(wanting, size=size - challenged, p=odds / odds.sum()).tolist()
    challengers = [_challenger(beliefs, leader, wanting, rng) for _ in range(challenged)]
    counts = Counter[int]()
    for rival in (*challengers, *drawn):
        counts[int(problem.comparison[opponents[rival], rival])] += 1
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


def _challenger(beliefs: ItemScores, leader: int, rivals: Integers, rng: np.random.Generator) -> int:
    """The best item of a sample of the beliefs in which one is better than the leader.

    If the leader is the best in all samples, it is the one that comes closest to it in any of them. O(TRIES·rivals).
    """
    samples = beliefs.sample(TRIES, np.append(rivals, leader), rng)
    behind = samples[:, [-1]] - samples[:, :-1]
    least = behind.min(axis=1)
    chosen = int(np.argmax(least < 0)) if np.any(least < 0) else int(np.argmin(least))
    return int(rivals[np.argmin(behind[chosen])])


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
