"""What an advisor voted and what people were like: it predicts, counts for nothing, and its worth is reported."""

from itertools import combinations

import numpy as np
import pytest

from surepick import InvalidInput, Population, Problem, Session, Winner, find_best, verify_certificate
from surepick.glm.score_posterior import ScorePrior
from surepick.registry import policy_from_json
from surepick.session.advice import advice_of
from surepick.session.judges_needed import judges_needed

SCORES = np.concatenate([[2.6], np.linspace(1.6, -2.0, 19)])
PROBLEM = Problem.from_pairs([f"s{n}" for n in range(20)])


def judge(seed, scores=SCORES):
    rng = np.random.default_rng(seed)

    def answer(question):
        gap = scores[int(question.first[1:])] - scores[int(question.second[1:])]
        return int(rng.random() < 1 / (1 + np.exp(-gap)))

    return answer


def votes(scores, seed, times=3):
    """This many votes on every pair by an advisor with these scores."""
    first, second = PROBLEM.about.T
    wins = np.random.default_rng(seed).binomial(times, 1 / (1 + np.exp(scores[second] - scores[first])))
    return tuple((row, times, int(won)) for row, won in enumerate(wins))


def people(mean):
    """A population of people who are nearly alike."""
    return Population(PROBLEM.names, ScorePrior(mean[None], 0.25 * np.eye(20)[None], np.zeros(1)), "alike")


def questions(seeds, **known):
    found = [find_best(PROBLEM, judge(seed), policy=Winner(**known), seed=seed) for seed in seeds]
    assert all(verdict.best == "s0" for verdict in found if verdict.status.decided)
    return np.mean([verdict.questions for verdict in found])


def test_a_good_advisor_saves_questions_and_a_bad_one_costs_few():
    seeds = range(6)
    alone = questions(seeds)
    assert questions(seeds, warm=votes(SCORES, 1)) < 0.85 * alone
    assert questions(seeds, warm=votes(-SCORES, 1)) < 1.3 * alone
    assert questions(seeds, population=people(SCORES)) < 0.85 * alone
    assert questions(seeds, population=people(-SCORES)) < 1.3 * alone
    both = questions(seeds, population=people(SCORES), warm=votes(-SCORES, 1))
    assert both < 0.95 * alone  # the population is believed as much as votes that are wrong, and soon more


def test_the_worth_of_advice_is_reported():
    session = Session(PROBLEM, Winner(warm=votes(SCORES, 1)), seed=2)
    answer = judge(2)
    while asked := session.ask(1):
        session.tell(asked[0].id, answer(asked[0]))
    verdict = session.verdict()
    assert verdict.best == "s0"
    worth = advice_of(session)
    assert worth is not None
    assert 0.5 * worth.compared < worth.agreed <= worth.compared <= verdict.questions
    assert set(worth.left_without) >= {"s0"}
    assert f"{worth.agreed:,} of {worth.compared:,} answers" in worth.sentence
    assert verify_certificate(session.certificate()).answers == verdict.questions  # 570 votes are no evidence
    assert Session.replay(session.to_lines()).verdict() == verdict
    assert advice_of(Session(PROBLEM)) is None


@pytest.mark.parametrize("systems", [True, False])
def test_the_worth_is_reported_for_rankings(systems):
    """A ranking of three has three pairs; advice that is always right agrees with them as often as the judge does."""
    names, scores = [f"s{n}" for n in range(5)], np.array([2.5, 1.0, 0.5, 0.0, -1.0])
    of_sets = Problem.from_sets(names, show=3, answer="rank")
    problem = Problem.from_systems(names, ["u", "v"], show=3) if systems else of_sets
    warm = tuple((row, 3, 3 * int(scores[first] > scores[second])) for row, (first, second) in enumerate(problem.about))
    rng = np.random.default_rng(3)
    session = Session(problem, Winner(warm=warm), seed=2)
    agreed = rankings = 0
    while asked := session.ask(1):
        items = asked[0].items
        worth = {name: scores[int(name[1:])] + rng.gumbel() for name in items}
        order = sorted(items, key=lambda name: -worth[name])
        session.tell(asked[0].id, order)
        rankings += 1
        agreed += sum(scores[int(a[1:])] > scores[int(b[1:])] for a, b in combinations(order, 2))
    found = advice_of(session)
    assert found is not None
    assert (found.compared, found.agreed) == (3 * rankings, agreed)
    assert set(found.left_without) >= {"s0"}
    assert f"{agreed:,} of {3 * rankings:,} pairs in the answers" in found.sentence
    fooled = Session(problem, Winner(warm=tuple((row, 3, 3 - ones) for row, _, ones in warm)), seed=2)
    assert len(advice_of(fooled).left_without) == 5


def test_a_search_that_knows_people_is_replayed_and_certified():
    session = Session(PROBLEM, Winner(population=people(SCORES)), seed=3)
    answer = judge(3)
    while asked := session.ask(1):
        session.tell(asked[0].id, answer(asked[0]))
    verdict = session.verdict()
    assert verdict.best == "s0"
    assert verify_certificate(session.certificate()).answers == verdict.questions
    again = Session.replay(session.to_lines())
    assert again.verdict() == verdict
    assert again.policy.to_json()["population"]["mean"] == [SCORES.tolist()]
    assert "population" not in Winner().to_json()  # logs and certificates of others stay as they are


def test_judges_needed_are_simulated_on_other_items():
    assert judges_needed(Session(PROBLEM, Winner(population=people(SCORES)), repeats="once")) is not None


def test_a_population_of_other_items_is_refused():
    with pytest.raises(InvalidInput, match="about 20 other items"):
        Session(Problem.from_pairs(["x", "y"]), Winner(population=people(SCORES)))
    with pytest.raises(InvalidInput, match="must be a Population"):
        policy_from_json({"name": "winner", "population": 3})


def test_the_worth_is_reported_where_pairs_are_not_all_listed():
    problem = Problem.from_pairs([f"s{n}" for n in range(210)])
    assert problem.every_pair
    session = Session(problem, Winner(warm=((len(problem.about) - 1, 3, 3),), budget=5), seed=1)
    while asked := session.ask(1):
        session.tell(asked[0].id, 1)
    worth = advice_of(session)
    assert worth is not None
    assert len(worth.left_without) == 210


def test_impossible_votes_are_refused():
    with pytest.raises(InvalidInput, match="warm must hold"):
        Session(PROBLEM, Winner(warm=((999, 1, 1),)))
    with pytest.raises(InvalidInput, match="more wins than pulls"):
        Session(PROBLEM, Winner(warm=((0, 1, 2),)))
