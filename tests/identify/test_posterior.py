"""Posterior: stopping by the posterior probability, for people drawn from a population."""

import json

import numpy as np
import pytest
from scipy.stats import binom

from surepick.errors import InvalidInput
from surepick.glm.score_posterior import ScorePrior
from surepick.identify import Plan, Population, Posterior, Problem, Status, Winner
from surepick.identify.posterior import CUT_SHARE, DRAWS, LOOKS_SHARE, MORE_DRAWS
from surepick.registry import policy_from_json
from surepick.session import Session, find_best
from surepick_experiments.studies.population import search

FEATURES = np.random.default_rng(4).normal(size=(5, 2))
PROBLEM = Problem.from_pairs(FEATURES, names=["a", "b", "c", "d", "e"])
FANS = Population(
    PROBLEM.names, ScorePrior(np.array([[9.0, 0.0, 0.0, 0.0, 0.0]]), 0.5 * np.eye(5)[None], np.zeros(1)), "fans of a"
)


def searched(policy, scores, seed):
    """A whole search with the answers of somebody who has these scores."""
    return search(PROBLEM, policy, scores, seed)


def wrong_verdicts(population, people, *, runs, delta, **options):
    """How many of the people get a decided verdict for an item that is not (nearly) their best."""
    policy = Posterior(delta=delta, population=population, budget=40, **options)
    wrong = 0
    for number, scores in enumerate(people.sample(runs, np.random.default_rng(11))):
        verdict = searched(policy, scores, 5000 + number)
        behind = scores.max() - scores[PROBLEM.index(verdict.best)]
        wrong += verdict.status.decided and behind > policy.epsilon
    return wrong


class TestGuarantee:
    RUNS, DELTA = 100, 0.2

    def test_people_of_the_population_are_seldom_told_wrong(self):
        """On average over people at most delta; the test falsely alarms with probability 1e-4."""
        people = Population.usual(PROBLEM)
        wrong = wrong_verdicts(None, people, runs=self.RUNS, delta=self.DELTA)
        assert wrong <= binom.isf(1e-4, self.RUNS, self.DELTA)
        assert wrong > binom.ppf(1e-4, self.RUNS, self.DELTA / 4)  # it does not ask far too much either

    def test_other_people_are_told_wrong_more_often(self):
        """The negative control: people who are not of the population, and the same count shows it."""
        wrong = wrong_verdicts(FANS, Population.usual(PROBLEM), runs=self.RUNS, delta=self.DELTA)
        assert wrong > binom.isf(1e-4, self.RUNS, self.DELTA)

    def test_within_epsilon(self):
        people = Population.usual(PROBLEM)
        wrong = wrong_verdicts(None, people, runs=40, delta=0.1, epsilon=1.0)
        assert wrong <= binom.isf(1e-4, 40, 0.1)


def test_epsilon_ends_searches_sooner():
    rng = np.random.default_rng(3)
    asked = {0.0: 0, 2.0: 0}
    for number, scores in enumerate(Population.usual(PROBLEM).sample(8, rng)):
        for epsilon in asked:
            verdict = searched(Posterior(epsilon=epsilon, budget=80), scores, number)
            asked[epsilon] += verdict.questions
    assert asked[2.0] < 0.8 * asked[0.0]


def test_a_known_favourite_needs_no_question():
    """A population whose members all like one item best is sure before it asks."""
    verdict = searched(Posterior(population=FANS), FANS.prior.mean[0], 1)
    assert (verdict.status, verdict.best, verdict.questions) == (Status.CERTAIN, "a", 0)
    assert any("fans of a" in sentence for sentence in verdict.assumptions)


def test_looks_share_the_numerical_error():
    """Reading a verdict twice is one look; every further stage may be another one, with a smaller share."""
    policy = Posterior()
    state = policy.start(PROBLEM)
    levels = []
    for _ in range(4):
        levels.append(state.evaluated.numerical_level)
        assert state.evaluated.look is state.evaluated.look
        counts = np.zeros(len(PROBLEM.about), dtype=np.int64)
        counts[0] = 1
        plan = policy.stage_of(state, counts, prove=False)
        state = policy.update(policy.apply(state, plan), plan.stage, plan.tally(PROBLEM, [1]))
    share = LOOKS_SHARE * policy.delta
    assert levels == pytest.approx([share / (j * (j + 1)) for j in range(1, 5)])
    assert state.allowed + share + CUT_SHARE * policy.delta == pytest.approx(policy.delta)


def test_looks_that_confirm_nothing_cost_nothing():
    policy = Posterior(delta=0.01)
    state = policy.start(PROBLEM)
    for _ in range(3):
        plan = policy.plan(state, np.random.default_rng(0))
        assert plan.memo["looks"] == 0
        state = policy.update(policy.apply(state, plan), plan.stage, plan.tally(PROBLEM, [1]))
        assert state.evaluated.look_number == 1


def test_the_credible_items_have_the_best_one():
    """At a fixed number of answers the items that are left have the best one, but for a share delta of the people."""
    people = Population.usual(PROBLEM).sample(60, np.random.default_rng(5))
    policy = Posterior(delta=0.2, budget=3)
    verdicts = [searched(policy, scores, 5000 + number) for number, scores in enumerate(people)]
    missed = sum(PROBLEM.names[np.argmax(s)] not in v.surviving for s, v in zip(people, verdicts, strict=True))
    assert missed <= binom.isf(1e-4, 60, 0.2)
    assert np.mean([len(verdict.surviving) for verdict in verdicts]) < 4.5


def test_a_population_goes_through_json():
    policy = Posterior(delta=0.1, population=Population.usual(PROBLEM))
    again = policy_from_json(json.loads(json.dumps(policy.to_json())))
    scores = np.array([2.0, 1.0, 0.0, -1.0, -2.0])
    assert searched(policy, scores, 1).to_json() == searched(again, scores, 1).to_json()


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"covariance": [[[1.0, 2.0], [2.0, 1.0]]]}, "positive definite"),
        ({"mean": [[0.0]]}, "means of shape"),
        ({"weights": [0.0]}, "positive weights"),
        ({"names": None}, "not a population"),
    ],
)
def test_a_broken_population_is_refused(broken, words):
    fields = {"names": ["a", "b"], "mean": [[0, 0]], "covariance": [np.eye(2).tolist()], "weights": [1.0], "source": ""}
    Population.from_json(fields)
    with pytest.raises(InvalidInput, match=words):
        Population.from_json(fields | broken)


def test_what_it_cannot_do_is_refused():
    with pytest.raises(InvalidInput, match="comparisons"):
        Posterior().start(Problem.from_items(FEATURES))
    with pytest.raises(InvalidInput, match="picks, rankings"):
        Posterior().start(Problem.from_sets(["a", "b", "c"], show=3))
    with pytest.raises(InvalidInput, match="at most 200 items"):
        Posterior().start(Problem.from_pairs([f"item {number}" for number in range(201)]))
    with pytest.raises(InvalidInput, match="'x' that it lacks"):
        Posterior(population=Population.usual(PROBLEM)).start(Problem.from_pairs(["x", "y"]))
    with pytest.raises(InvalidInput, match="must be a Population"):
        Posterior(population=3)


def test_ties_count_as_drawn_wins_and_a_replay_agrees():
    session = Session(PROBLEM, Posterior(budget=12), seed=3)
    while questions := session.ask(1):
        session.tie(questions[0].id)
    again = Session.replay(session.to_lines())
    assert again.verdict().to_json() == session.verdict().to_json()
    posterior = session.progress()[0].evaluated.posterior
    assert posterior.wins.sum() + posterior.losses.sum() == 12
    assert 0 < posterior.wins.sum() < 12


def test_a_judge_is_not_asked_the_same_twice():
    session = Session(PROBLEM, Posterior(delta=1e-6), repeats="once", seed=1)
    asked = []
    while questions := session.ask(1):
        asked.append(questions[0].measurement)
        session.tell(questions[0].id, 1)
    assert len(asked) == len(set(asked)) == len(PROBLEM.about)
    assert session.exhausted


def test_it_takes_far_fewer_questions_than_a_proof_for_everybody():
    scores = FEATURES @ [3.0, -2.0]
    assert searched(Posterior(), scores, 2).questions < 0.6 * searched(Winner(), scores, 2).questions


def test_draws_are_kept_between_questions_while_they_are_effective():
    policy, scores = Posterior(budget=60), np.array([3.0, 2.5, -1.0, -2.0, 0.0])
    rng, state = np.random.default_rng(1), policy.start(PROBLEM)
    drawn, sizes = 0, set()
    while isinstance(plan := policy.plan(state, rng), Plan):
        before = state.evaluated.pool
        drawn += before is None or state.evaluated.draws.scores is not before.scores
        sizes.add(len(state.evaluated.draws.weights))
        assert state.evaluated.draws.effective >= 0.05 * len(state.evaluated.draws.weights)
        first, second = PROBLEM.about[plan.measurements[0]]
        won = int(rng.random() < 1 / (1 + np.exp(scores[second] - scores[first])))
        state = policy.update(policy.apply(state, plan), plan.stage, plan.tally(PROBLEM, [won]))
    assert 1 < drawn < 0.7 * state.asked
    assert sizes <= {DRAWS, MORE_DRAWS}


def test_questions_with_a_certain_answer_are_not_asked():
    """Where most answers are certain, sums of their probabilities round to more than one."""
    mean = np.array([[40.0, 39.0, 0.0, -40.0, -80.0]])
    population = Population(PROBLEM.names, ScorePrior(mean, np.eye(5)[None], np.zeros(1)), "people who know")
    policy = Posterior(population=population, budget=30)
    state, rng = policy.start(PROBLEM), np.random.default_rng(2)
    for _ in range(8):
        plan = policy.plan(state, rng)
        assert isinstance(plan, Plan)
        assert PROBLEM.about[plan.measurements[0]].tolist() == [0, 1]
        state = policy.update(policy.apply(state, plan), plan.stage, plan.tally(PROBLEM, [len(state.stages) % 2]))


def test_a_person_who_never_errs_is_decided() -> None:
    """Gaussians fit such answers poorly: many draws are above the first cut."""
    problem = Problem.from_pairs([f"{number:02}" for number in range(40)])
    verdict = find_best(
        problem, lambda question: int(question.first > question.second), policy=Posterior(budget=150), repeats="spaced"
    )
    assert (verdict.status, verdict.best) == (Status.CERTAIN, "39")
