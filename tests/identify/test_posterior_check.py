"""The check that notices a person unlike the population."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from surepick.glm.score_posterior import ScorePosterior, ScorePrior
from surepick.identify import Population, Posterior, Problem
from surepick.identify.posterior_check import unlike_population
from surepick.session import Session

PROBLEM = Problem.from_pairs(np.random.default_rng(4).normal(size=(6, 2)), names=list("abcdef"))
COMMON = np.array([5.0, 3.0, 1.0, -1.0, -3.0, -5.0])
USUAL = Population.usual(PROBLEM)
LEARNED = Population(
    PROBLEM.names,
    ScorePrior(
        np.concatenate([COMMON[None], USUAL.prior.mean]),
        np.concatenate([np.eye(6)[None], USUAL.prior.covariance]),
        np.concatenate([[np.log(0.9)], USUAL.prior.log_weights + np.log(0.1)]),
    ),
    "people who like a",
)
LEVEL = 0.05


def check(population, scores, seed, answers=30):
    rng = np.random.default_rng([seed, 3])
    posterior = ScorePosterior.of(population.prior)
    for _ in range(answers):
        first, second = rng.choice(6, 2, replace=False).tolist()
        won = int(rng.random() < expit(scores[first] - scores[second]))
        posterior = posterior.update(first, second, won, 1 - won)
    return unlike_population(PROBLEM, population, posterior, level=LEVEL)


@pytest.mark.parametrize("population", [USUAL, LEARNED], ids=["usual", "learned"])
def test_people_of_the_population_are_seldom_accused(population):
    core = (
        population
        if population is USUAL
        else Population(PROBLEM.names, ScorePrior(COMMON[None], np.eye(6)[None], np.zeros(1)), "")
    )
    people = core.sample(40, np.random.default_rng(1))
    alarms = sum(check(population, scores, seed).alarm for seed, scores in enumerate(people))
    assert alarms <= binom.isf(1e-4, 40, LEVEL)


def test_unlike_people_are_noticed():
    """The negative control: the opposite taste. The usual people in a learned population must not hide it."""
    found = [check(LEARNED, -COMMON, seed) for seed in range(5)]
    assert all(one.alarm for one in found)
    assert found[0].refutes == ("population",)


def test_an_alarm_is_named_in_the_verdict():
    session = Session(PROBLEM, Posterior(population=LEARNED), seed=3)
    liked = [-COMMON[PROBLEM.index(name)] for name in PROBLEM.names]
    while questions := session.ask(1):
        first, second = PROBLEM.about[questions[0].measurement]
        session.tell(
            questions[0].id, int((liked[first] > liked[second]) == (questions[0].first == PROBLEM.names[first]))
        )
    verdict = session.verdict()
    assert verdict.status.decided
    assert "unlike the population" in verdict.refuted_by
    assert verdict.guarantee == "heuristic"
