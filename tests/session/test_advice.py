"""Votes of an advisor: they predict, count for nothing, and their worth is reported."""

import numpy as np
import pytest

from surepick import InvalidInput, Problem, Session, Winner, find_best, verify_certificate
from surepick.session.advice import advice_of

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


def questions(warm, seeds):
    found = [find_best(PROBLEM, judge(seed), policy=Winner(warm=warm), seed=seed) for seed in seeds]
    assert all(verdict.best == "s0" for verdict in found if verdict.status.decided)
    return np.mean([verdict.questions for verdict in found])


def test_a_good_advisor_saves_questions_and_a_bad_one_costs_few():
    seeds = range(6)
    alone = questions((), seeds)
    assert questions(votes(SCORES, 1), seeds) < 0.85 * alone
    assert questions(votes(-SCORES, 1), seeds) < 1.3 * alone


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
