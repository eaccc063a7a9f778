"""The evidence must be predicted without looking ahead, whatever rule chooses the questions (docs/theory.md, 5.3).

Exact, not statistical: all answers to an adaptive rule are enumerated, and the mean of the likelihood ratio under θ,
given the answers before, must be one. A predictor that sees later questions sees answers in them and misses it.
"""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from surepick.confidence import ConfidenceSet, in_given_order
from surepick.glm import Tally

THETA = np.array([0.8, -1.5])
FIRST = Tally([[1.0, 0.0], [0.6, 0.8]], pulls=[20, 20], wins=[14, 7])

Rule = Callable[[tuple[int, ...]], list[float]]


def log_ratio(batches: list[Tally], theta: np.ndarray) -> float:
    """Log-ratio of the process that never restarted, at θ."""
    found = ConfidenceSet.of(batches, order_seed=0)
    return float(found.evidence.terms(found.span.coordinates(theta)[None, :])[0, 0])


def mean_growth(rule: Rule, steps: int, last: Callable[[tuple[int, ...]], list[Tally]]) -> float:
    """E_θ exp(log-ratio at the end − log-ratio after FIRST), over all answers to the questions of the rule."""
    before = log_ratio([FIRST], THETA)
    total = 0.0
    for answers in product((0, 1), repeat=steps):
        batches, probability = [FIRST], 1.0
        for step, answer in enumerate(answers):
            question = rule(answers[:step])
            yes = 1 / (1 + math.exp(-float(np.dot(question, THETA))))
            probability *= yes if answer else 1 - yes
            batches.append(Tally([question], [1], [answer]))
        total += probability * math.exp(log_ratio(batches + last(answers), THETA) - before)
    return total


def nothing(answers: tuple[int, ...]) -> list[Tally]:
    return []


def longer_after_yes(past: tuple[int, ...]) -> list[float]:
    return [3.0, 1.0] if past and past[-1] else [0.3, -0.5]


def constant(past: tuple[int, ...]) -> list[float]:
    return [0.5, 0.5]


def large_batch_of_nothing_after_yes(answers: tuple[int, ...]) -> list[Tally]:
    """Answers to the zero vector are fair coins under every θ: only what they change elsewhere can matter."""
    return [Tally([[0.0, 0.0]], [60], [30])] if answers[-1] else []


@pytest.mark.parametrize(
    ("rule", "last"),
    [
        (longer_after_yes, nothing),
        (constant, large_batch_of_nothing_after_yes),
        (longer_after_yes, large_batch_of_nothing_after_yes),
    ],
)
def test_the_likelihood_ratio_is_a_martingale_under_adaptive_questions(
    rule: Rule, last: Callable[[tuple[int, ...]], list[Tally]]
) -> None:
    assert mean_growth(rule, 3, last) == pytest.approx(1.0, abs=1e-6)


def test_a_predictor_that_looks_ahead_is_caught() -> None:
    """Negative control: an answer that is known from an earlier one has no conditional mean of its own."""

    def repeated(answers: tuple[int, ...]) -> list[Tally]:
        return [Tally([[1.0, 1.0]], [1], [answers[0]])]

    assert abs(mean_growth(constant, 2, repeated) - 1.0) > 1e-3


def test_the_rank_of_later_questions_does_not_move_the_restarts() -> None:
    flat = [Tally([[1.0, 0.0, 0.0]], [8], [5]) for _ in range(4)]
    steep = [*flat, Tally([[0.0, 1.0, 1.0]], [1], [1])]
    covered, covered_later = (
        ConfidenceSet.of(batches, order_seed=0).evidence.pulls.sum(axis=1) for batches in (flat, steep)
    )
    assert covered.tolist() == (covered_later[: len(covered)] - 1).tolist()


def test_rows_in_given_order_share_a_batch_only_where_it_is_never_split() -> None:
    rng = np.random.default_rng(3)
    pulls = np.concatenate([np.ones(60, dtype=int), rng.integers(1, 5000, size=40), np.ones(60, dtype=int)])
    batches = in_given_order(Tally(rng.normal(size=(160, 2)), pulls, np.zeros(160)))
    assert sum(batch.total for batch in batches) == pulls.sum()
    before = 0
    for batch in batches:
        assert len(batch) == 1 or batch.total <= 0.15 * before
        before += batch.total
