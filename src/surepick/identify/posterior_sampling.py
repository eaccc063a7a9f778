"""Which comparison Posterior asks next: the one whose answer says most about which item is best.

No guarantee depends on it, only the number of questions (docs/population.md).
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import entr

from surepick._arrays import Floats, Integers
from surepick.glm.score_posterior import Draws

if TYPE_CHECKING:
    from surepick.identify.posterior import PosteriorState

LIKELIEST = 8
"""Only comparisons of one of this many items that are likeliest to be the best are considered."""

MOST_PAIRS = 4
"""A stage of many questions asks at most this many different ones."""


def choose_questions(
    state: "PosteriorState", size: int, rng: np.random.Generator, without: Collection[int] | None
) -> Integers:
    """How often to ask each measurement, `size` questions in all; all zero where none may be asked.

    The information that an answer Y gives about the best item B is I(Y; B) = H(Y) − H(Y | B), estimated from draws of
    the posterior. A question that is out already is worth less: it is divided by the number of times plus one.
    """
    counts = np.zeros(len(state.problem.about), dtype=np.int64)
    rows = _candidates(state, without or ())
    if not len(rows):
        return counts
    draws, leader = state.look.draws, state.look.leader
    good = draws.scores[:, leader] >= np.max(draws.scores, axis=1) - state.epsilon
    best = np.where(good, leader, np.argmax(draws.scores, axis=1))
    halves = draws.scores.T.astype(np.float32) / 2  # accurate enough for a choice, and several times as fast
    first, second = state.problem.about[rows].T
    worth = _information((1 + np.tanh(halves[first] - halves[second])) / 2, best, draws)
    worth /= 1 + _open_questions(state)[rows]
    if size == 1:
        counts[rows[np.argmax(worth)]] = 1
        return counts
    top = np.argsort(-worth, kind="stable")[:MOST_PAIRS]
    shares = np.maximum(worth[top], 1e-12).astype(np.float64)
    counts[rows[top]] = rng.multinomial(size, shares / shares.sum())
    return counts if without is None else np.minimum(counts, 1)


def _candidates(state: "PosteriorState", without: Collection[int]) -> Integers:
    """Measurements to choose among: of the likeliest items, or, where none of these may be asked, of any."""
    about = state.problem.about
    free = np.ones(len(about), dtype=np.bool_)
    free[list(without)] = False
    likely = np.zeros(len(state.problem.items), dtype=np.bool_)
    likely[np.argsort(-state.look.best_chances, kind="stable")[:LIKELIEST]] = True
    rows = np.flatnonzero(free & likely[about].any(axis=1))
    return rows if len(rows) else np.flatnonzero(free)


def _information(chances: Floats, best: Integers, draws: Draws) -> Floats:
    """I(Y; B) of every question: `chances` has the probability of a win, questions × draws, `best` the best items.

    All draws count by their weights: drawing some of them again, with equal weights, took about a tenth more questions.
    """
    items, kind = np.unique(best, return_inverse=True)
    shown = np.zeros((len(best), len(items)), dtype=chances.dtype)
    shown[np.arange(len(best)), kind] = draws.weights
    share = shown.sum(axis=0)
    won = chances @ shown
    mean = won.sum(axis=1)
    # One draw of the mean is added to each: with few draws, chance would look like information.
    one = 1 / draws.effective
    given_best = (won + one * mean[:, None]) / (share + one)
    return np.asarray(_entropy(mean) - _entropy(given_best) @ share)


def _entropy(p: Floats) -> Floats:
    p = np.clip(p, 0.0, 1.0)  # sums in single precision may exceed one
    return np.asarray(entr(p) + entr(1 - p))


def _open_questions(state: "PosteriorState") -> Integers:
    """How often each measurement is out without an answer."""
    result = np.zeros(len(state.problem.about), dtype=np.int64)
    for stage in state.stages[state.evaluated_stages :]:
        result[stage.plan.measurements] += np.maximum(stage.plan.pulls - stage.pulls, 0)
    return result
