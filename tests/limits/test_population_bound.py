"""The bound for people of a population, against methods whose error is known exactly."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from surepick.errors import InvalidInput
from surepick.glm.score_posterior import ScorePrior
from surepick.limits import population_bound

SPREAD = 1.5
TWO = ScorePrior(np.zeros((1, 2)), SPREAD**2 * np.eye(2)[None] / 2, np.zeros(1))
"""Two items, whose gap is N(0, SPREAD²)."""

GAPS, DENSITY = np.polynomial.hermite_e.hermegauss(201)
GAPS, DENSITY = SPREAD * GAPS, DENSITY / DENSITY.sum()


def error_of_majority(questions: int) -> float:
    """How often the item with more wins of an odd number of questions is not the better one."""
    return float(DENSITY @ binom.cdf(questions // 2, questions, expit(np.abs(GAPS))))


@pytest.mark.parametrize("questions", [9, 25, 75, 201])
def test_asking_a_fixed_number_of_questions_is_no_better(questions):
    bound = population_bound(TWO, delta=error_of_majority(questions), draws=40_000)
    assert 0.02 * questions < bound.questions < bound.estimate < questions
    assert bound.mirrored == 1.0


def test_three_times_the_bound_is_refuted_by_stopping_early():
    """The negative control: who stops at a lead of four questions contradicts three times the bound."""
    lead, gaps = 4, np.abs(GAPS)
    odds = np.exp(lead * gaps)
    wrong = 1 / (1 + odds)  # the random walk leaves at the wrong end
    steps = np.where(gaps > 1e-9, lead * (1 - 2 * wrong) / np.maximum(2 * expit(gaps) - 1, 1e-12), lead**2)
    needed, error = float(DENSITY @ steps), float(DENSITY @ wrong)
    bound = population_bound(TWO, delta=error, draws=40_000)
    assert bound.questions < needed < 3 * bound.questions


def test_the_mean_is_that_of_the_formula():
    gaps = np.abs(GAPS)
    D = np.maximum(gaps * (2 * expit(gaps) - 1), 1e-12)  # kl of p from 1 − p, either way
    m = np.linspace(1e-4, 0.5, 4000)
    f = (1 - 2 * m) * np.log((1 - m) / m)
    exact = max(
        float(DENSITY @ np.min(f[None] / D[:, None] + price * m[None], axis=1)) - price * 0.1
        for price in np.geomspace(1, 1e4, 60)
    )
    assert population_bound(TWO, delta=0.1, draws=100_000).estimate == pytest.approx(exact, rel=0.1)


def test_people_of_another_mean_have_mirror_images_only_near_the_border():
    sure = ScorePrior(np.array([[3.0, 0.0]]), np.eye(2)[None] / 2, np.zeros(1))
    bound = population_bound(sure, draws=10_000)
    assert 0 < bound.mirrored < 0.01  # the image of a gap near 3 is near 3, and likes the same item
    assert bound.questions == 0.0


@pytest.mark.parametrize("wrong", [{"delta": 0.0}, {"level": 2.0}, {"draws": 10}])
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        population_bound(TWO, **wrong)
