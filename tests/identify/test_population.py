"""Populations: the usual one, and learning one from earlier people."""

import numpy as np
import pytest
from scipy.special import expit

from surepick.errors import InvalidInput
from surepick.glm.score_posterior import PeoplesAnswers, ScorePosterior, ScorePrior
from surepick.identify import Population, Posterior, Problem
from surepick.identify.population import SPREADS
from surepick.identify.population_learning import learn_scores
from surepick_experiments.studies.population import search

NAMES = ["a", "b", "c", "d", "e", "f", "g", "h"]
PROBLEM = Problem.from_pairs(np.random.default_rng(1).normal(size=(8, 2)), names=NAMES)
COMMON = np.array([4.0, 2.5, 1.0, 0.0, -1.0, -2.0, -2.5, -3.0])
ALIKE = Population(PROBLEM.names, ScorePrior(COMMON[None], np.eye(8)[None], np.zeros(1)), "alike")


def answers_of(people, rng, count=25):
    """Answers of people drawn from a population to random pairs."""
    result = {}
    for number, scores in enumerate(people):
        pairs = [rng.choice(8, 2, replace=False) for _ in range(count)]
        result[f"p{number}"] = [
            (NAMES[a], NAMES[b], int(rng.random() < expit(scores[a] - scores[b]))) for a, b in pairs
        ]
    return result


@pytest.fixture(scope="module")
def learned():
    rng = np.random.default_rng(2)
    return Population.learn(PROBLEM, answers_of(ALIKE.sample(24, rng), rng))


def test_the_usual_population_has_the_spreads_it_says():
    people = Population.usual(PROBLEM).sample(6000, np.random.default_rng(0))
    usual = np.sqrt(np.mean(np.square(SPREADS)))
    assert np.sqrt(np.mean(people**2)) == pytest.approx(usual, rel=0.05)
    plain = Population.usual(Problem.from_pairs(NAMES)).sample(6000, np.random.default_rng(0))
    assert np.corrcoef(plain.T)[0, 1] == pytest.approx(0.0, abs=0.05)


def test_a_common_taste_is_learned(learned):
    mean = learned.prior.mean[0] - learned.prior.mean[0].mean()
    assert np.corrcoef(mean, COMMON)[0, 1] > 0.95
    assert "24 people" in learned.source
    assert np.exp(learned.prior.log_weights).sum() == pytest.approx(1.0)
    # What people have besides is less than what they have in common; a score that all items share does not show.
    centring = np.eye(8) - 1 / 8
    assert np.trace(centring @ learned.prior.covariance[0] @ centring) / 8 < 4.0


def test_all_people_at_once_agree_with_one_after_the_other():
    """Expectation propagation has one fixed point, however many questions are changed at a time."""
    usual, rng = Population.usual(PROBLEM).prior, np.random.default_rng(6)
    prior = ScorePrior(usual.mean[[1]], usual.covariance[[1]], np.zeros(1))
    people = [
        [(int(a), int(b), int(rng.integers(3)), 1) for a, b in (rng.choice(8, 2, replace=False) for _ in range(count))]
        for count in (3, 12)
    ]
    means, covariances, _ = PeoplesAnswers.of(people).approximated(prior.mean[0], prior.covariance[0], sweeps=30)
    for person, mean, covariance in zip(people, means, covariances, strict=True):
        exact = ScorePosterior.of(prior)
        for answer in person:
            exact = exact.update(*answer)
        draws = exact.draws(60_000, np.random.default_rng(1))
        assert draws.weights @ draws.scores == pytest.approx(mean, abs=0.15)
        spread = np.sqrt(draws.weights @ (draws.scores - draws.weights @ draws.scores) ** 2)
        assert np.sqrt(np.diag(covariance)) == pytest.approx(spread, rel=0.05)


def test_learning_predicts_people_left_out_better_only_where_there_is_something_to_learn():
    usual, rng = Population.usual(PROBLEM).prior, np.random.default_rng(5)

    def gain(people):
        records = [
            [(NAMES.index(a), NAMES.index(b), won, 1 - won) for a, b, won in answers]
            for answers in answers_of(people.sample(12, rng), rng).values()
        ]
        found = learn_scores(usual, records)
        return found.held_out - found.held_out_usual

    assert gain(ALIKE) > 0.05
    assert abs(gain(Population.usual(PROBLEM))) < 0.1


def test_a_new_person_is_asked_less(learned):
    people = ALIKE.sample(12, np.random.default_rng(9))
    asked = {}
    for name, population in (("usual", None), ("learned", learned)):
        policy = Posterior(population=population, budget=60)
        asked[name] = sum(search(PROBLEM, policy, s, n).questions for n, s in enumerate(people))
    assert asked["learned"] < 0.9 * asked["usual"]


@pytest.mark.parametrize(
    ("people", "words"),
    [
        ({"x": [("a", "b", 1)]}, "at least 4 people"),
        ({"x": [("a", "nobody", 1)]}, "the item 'nobody'"),
        ({"x": [("a", "b", 0.5)]}, "the answer 0.5"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(people, words):
    with pytest.raises(InvalidInput, match=words):
        Population.learn(PROBLEM, people)
