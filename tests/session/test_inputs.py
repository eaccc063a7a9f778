"""Sessions that compare systems: inputs are drawn, logged and replayed, and claims are about the mean over them."""

import json
from collections import Counter

import pytest
from scipy.stats import chisquare

from helpers import FALSE_ALARM, most_failures
from surepick.certificate import verify_certificate
from surepick.errors import InvalidInput
from surepick.identify import Problem, Status, Winner
from surepick.session import Session, find_best

INPUTS = tuple(f"input {number}" for number in range(8))
PROBLEM = Problem.from_systems(["a", "b", "c"], INPUTS)


def answered(session, judge, most=10_000):
    while session.answered < most and (questions := session.ask(1)):
        session.tell(questions[0].id, judge(questions[0]))
    return session


def by_table(table):
    """A judge whose answer to two systems on an input is fixed: who wins, by names in order and input."""

    def judge(question):
        pair = tuple(sorted((question.first, question.second)))
        return int(table[pair, question.input] == question.first)

    return judge


def test_inputs_are_drawn_at_random_logged_and_replayed():
    session = answered(Session(PROBLEM, Winner(delta=1e-9, budget=160), seed=5), lambda question: question.id % 2)
    questions = session.questions.values()
    assert chisquare(list(Counter(question.input for question in questions).values())).pvalue > FALSE_ALARM
    logged = [event["input"] for event in session.log if event["event"] == "question"]
    assert logged == [question.input for question in questions]
    again = Session.replay(json.loads(json.dumps(list(session.log))))
    assert [question.input for question in again.questions.values()] == logged
    assert again.verdict() == session.verdict()
    assert next(iter(questions)).to_json()["input"] == logged[0]


def test_the_draws_before_the_input_are_those_of_a_problem_without_inputs():
    plain = Session(Problem.from_pairs(["a", "b", "c"]), seed=3).ask(5)
    shown = Session(PROBLEM, seed=3).ask(5)
    assert [(one.first, one.second) for one in plain] == [(one.first, one.second) for one in shown]
    assert plain[0].input is None


def test_weights_are_kept():
    problem = Problem.from_systems(["a", "b"], ["rare", "usual"], weights=[1, 9])
    again = Problem.from_json(json.loads(json.dumps(problem.to_json())))
    assert again.to_json() == problem.to_json()
    session = Session(again)
    rare = sum(question.input == "rare" for question in session.ask(200))
    assert 0 < rare <= most_failures(200, 0.1)
    assert "with the weights given" in " ".join(session.verdict().assumptions)


def test_the_winner_on_average_is_named_though_it_loses_on_some_inputs():
    # a wins 6 of 8 inputs against each of the others
    table = {((x, y), name): x if place < 6 else y for x, y in ("ab", "ac", "bc") for place, name in enumerate(INPUTS)}
    session = answered(Session(PROBLEM, Winner(delta=0.05), seed=2), by_table(table))
    verdict = session.verdict()
    assert (verdict.status, verdict.best) == (Status.CERTAIN, "a")
    assert any("on average over these 8 inputs" in sentence for sentence in verdict.assumptions)
    certificate = session.certificate()
    assert certificate["problem"]["inputs"] == list(INPUTS)
    assert verify_certificate(certificate).best == "a"


def test_once_the_first_answer_to_a_pair_on_an_input_stands():
    problem = Problem.from_systems(["a", "b"], ["only", "other"])
    session = Session(problem, Winner(delta=1e-9), repeats="once", seed=1)
    seen = {}
    for question in session.ask(20):
        says = int(question.input not in seen)  # "the first shown" the first time, later "the second shown"
        seen.setdefault(question.input, question.first)
        session.tell(question.id, says)
        event = session.log[-1]
        if "stands" in event:
            assert (question.first if event["stands"] else question.second) == seen[question.input]
    assert session.uncounted == frozenset()
    session.verdict()
    first = sum(session.problem.names[0] == seen[question.input] for question in session.questions.values())
    counted = sum(int(stage.wins.sum()) for stage in session._record.stages)
    assert counted == first
    assert any("stands for later ones: 18" in sentence for sentence in session.verdict().assumptions)
    assert Session.replay(session.to_lines()).verdict() == session.verdict()


def test_an_answer_that_stands_can_be_undone():
    session = Session(Problem.from_systems(["a", "b"], ["only"]), Winner(), repeats="once", seed=1)
    first, second = session.ask(2)
    session.tell(first.id, 1)
    session.tell(second.id, 0 if first.first == second.first else 1)
    before = [stage.wins.tolist() for stage in session._record.stages]
    session.undo(second.id)
    session.tell(second.id, 1 if first.first == second.first else 0)
    assert [stage.wins.tolist() for stage in session._record.stages] == before


def test_once_the_same_pair_on_another_input_is_another_question():
    session = Session(Problem.from_systems(["a", "b"], ["x", "y"]), Winner(delta=1e-9), repeats="once", seed=1)
    question = session.ask(1)[0]
    session.tell(question.id, 1)
    assert session.had_by(None) == frozenset()
    while len({question.input for question in session.questions.values()}) < 2:
        session.tell(session.ask(1)[0].id, 1)
    assert session.had_by(None) == {0}  # nothing new is left to ask
    assert not session.ask(1)
    assert session.exhausted


def test_spaced_repeats_are_refused():
    with pytest.raises(InvalidInput, match="with inputs use 'once'"):
        Session(PROBLEM, repeats="spaced")


def test_find_best_hands_out_the_input():
    seen = []

    def judge(question):
        seen.append(question.input)
        return int(question.first == "b")

    assert find_best(PROBLEM, judge).best == "b"
    assert set(seen) <= set(INPUTS)
    assert len(set(seen)) > 3
