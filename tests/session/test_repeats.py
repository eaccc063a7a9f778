"""Which answers of a judge count as evidence, and what is asked of somebody who may remember."""

from typing import ClassVar

import numpy as np
import pytest

from surepick.errors import InvalidInput
from surepick.identify import Anytime, Problem, RageGlm, Status, Winner
from surepick.session import Session, find_best
from surepick.session.repeats import SPACING, JudgeHistory

PROBLEM = Problem.from_pairs(["a", "b", "c", "d"])
GUIDED = Problem.from_pairs({name: [float(place), float(place % 2)] for place, name in enumerate("abcdefgh")})


@pytest.mark.parametrize("policy", [Winner(), Anytime()])
def test_once_never_asks_the_same_pair_twice_and_says_when_nothing_is_left(policy: Winner | Anytime) -> None:
    session = Session(GUIDED, policy, repeats="once", seed=1)
    asked = []
    while questions := session.ask(1):
        asked.append(questions[0].measurement)
        session.tell(questions[0].id, len(asked) % 2)
    assert len(set(asked)) == len(asked) <= 28
    verdict = session.verdict()
    assert verdict.status is Status.OPEN
    assert "Ask somebody else" in verdict.reason
    assert len(verdict.surviving) > 1


def test_a_repeated_answer_is_logged_and_does_not_count() -> None:
    session = Session(PROBLEM, Winner(), repeats="once", seed=1)
    first, second = session.ask(1)[0], session.ask(1, without=())[0]
    while second.measurement != first.measurement:
        second = session.ask(1, without=())[0]
    session.tell(first.id, 1, judge="ann")
    session.tell(second.id, 1, judge="ann")
    assert session.uncounted == {second.id}
    assert session.verdict().questions + session.answered >= 2
    assert any("not counted" in sentence for sentence in session.verdict().assumptions)
    again = Session.replay(session.to_lines())
    assert again.uncounted == session.uncounted
    assert again.verdict().to_json() == session.verdict().to_json()


def test_another_judge_may_answer_the_same_pair() -> None:
    session = Session(PROBLEM, Winner(), repeats="once", seed=1)
    one = session.ask(1)[0]
    session.tell(one.id, 1, judge="ann")
    assert session.had_by("ann") == {one.measurement}
    assert session.had_by("bob") == frozenset()


def test_an_undone_answer_is_no_first_answer() -> None:
    session = Session(PROBLEM, Winner(), repeats="once", seed=1)
    question = session.ask(1)[0]
    session.tell(question.id, 1)
    session.undo(question.id)
    session.tell(question.id, 0)
    assert session.uncounted == frozenset()
    assert session.verdict().questions == 1


def test_spaced_repeats_count_after_enough_other_questions() -> None:
    history = JudgeHistory("spaced", 100)
    history.add(1, None, 0, 1, counted=True, expected=None)
    for number in range(SPACING):
        assert not history.counts(None, 0)
        history.add(2 + number, None, 1 + number, 1, counted=True, expected=None)
    assert history.counts(None, 0)


def test_spaced_repeats_stop_counting_when_they_are_remembered() -> None:
    history = JudgeHistory("spaced", 4)  # few questions: half of them lie between
    assert history.spacing == 2
    rng = np.random.default_rng(0)
    first = rng.integers(2, size=4)
    for number in range(60):
        history.add(
            number, None, number % 4, int(first[number % 4]), counted=True, expected=0.55 if number > 3 else None
        )
    assert not history.counts(None, 0)
    assert any("no longer count" in sentence for sentence in history.sentences)


def test_independent_answers_are_not_taken_for_remembered_ones() -> None:
    found = 0
    for seed in range(400):
        rng, history = np.random.default_rng([7, seed]), JudgeHistory("spaced", 4)
        for number in range(80):
            history.add(
                number, None, number % 4, int(rng.random() < 0.5), counted=True, expected=0.5 if number > 3 else None
            )
        found += not history.counts(None, 0)
    assert found <= 34  # at most 20 are expected; P(Binomial(400, .05) > 34) < .002


def test_one_person_who_answers_afresh_is_asked_on_until_the_winner_is_proved() -> None:
    """Where all that could decide was asked lately, other questions let time pass; the search used to end there."""
    strength = {"a": 3.0, "b": 0.0, "c": -0.5, "d": -1.0}
    verdicts = []
    for seed in range(5):
        session, rng = Session(PROBLEM, Winner(), repeats="spaced", seed=seed), np.random.default_rng(seed)
        while session.answered < 300 and (questions := session.ask(1)):
            gap = strength[str(questions[0].first)] - strength[str(questions[0].second)]
            session.tell(questions[0].id, int(rng.random() < 1 / (1 + np.exp(-gap))))
        verdicts.append(session.verdict())
    # One of them agrees with earlier answers so often that it is taken for memory, which ends without a verdict.
    assert sum(verdict.status is Status.CERTAIN and verdict.best == "a" for verdict in verdicts) >= 4


class TestStickyPeople:
    """People who give their first answer again, whatever they are asked: an answer repeated is no evidence."""

    scores: ClassVar = {"a": 0.1, "b": 0.0, "c": 0.0, "d": 0.0}

    def judge(self, seed: int):  # type: ignore[no-untyped-def]  # a closure for the tests
        rng, first = np.random.default_rng([3, seed]), {}

        def answer(question):  # type: ignore[no-untyped-def]
            pair = tuple(sorted((question.first, question.second)))
            if pair not in first:
                chance = 1 / (1 + np.exp(self.scores[pair[1]] - self.scores[pair[0]]))
                first[pair] = pair[0] if rng.random() < chance else pair[1]
            return int(first[pair] == question.first)

        return answer

    def wrong(self, repeats: str, runs: int) -> int:
        problem = Problem.from_pairs(list(self.scores))
        verdicts = [
            find_best(problem, self.judge(seed), delta=0.05, repeats=repeats, seed=seed, budget=400)  # type: ignore[arg-type]
            for seed in range(runs)
        ]
        return sum(verdict.stands and verdict.best != "a" for verdict in verdicts)

    def test_once_is_not_fooled_and_independent_is(self) -> None:
        assert self.wrong("once", 40) == 0
        assert self.wrong("independent", 40) >= 6  # the control: counting what is remembered goes wrong


def test_refuses_what_cannot_be_meant() -> None:
    with pytest.raises(InvalidInput, match="repeats must be one of"):
        Session(PROBLEM, repeats="never")  # type: ignore[arg-type]  # what a caller may pass by mistake
    with pytest.raises(InvalidInput, match="not rage-glm"):
        Session(PROBLEM, RageGlm(), repeats="once")
