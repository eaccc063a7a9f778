"""Which answers of a judge count as evidence, and what is asked of somebody who may remember."""

import itertools
from collections import Counter
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
    decided = 0
    for seed in range(8):
        session, rng = Session(PROBLEM, Winner(), repeats="spaced", seed=seed), np.random.default_rng(seed)
        while session.answered < 300 and (questions := session.ask(1)):
            gap = strength[str(questions[0].first)] - strength[str(questions[0].second)]
            session.tell(questions[0].id, int(rng.random() < 1 / (1 + np.exp(-gap))))
        verdict = session.verdict()
        decided += (verdict.status, verdict.best) == (Status.CERTAIN, "a")
    assert decided >= 6  # one in twenty may be taken for somebody who remembers


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


def test_a_program_that_varies_is_taken_at_its_word() -> None:
    rng = np.random.default_rng(3)
    chance = {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.0}

    def program(question) -> int:
        return int(rng.random() < 1 / (1 + np.exp(chance[question.second] - chance[question.first])))

    verdict = find_best(PROBLEM, program, repeats="tested", seed=2)
    assert verdict.status is Status.CERTAIN
    assert verdict.best == "a"
    assert any("are repeated ones" in sentence for sentence in verdict.assumptions)


def test_a_program_that_repeats_itself_is_found_out_and_its_copies_prove_nothing() -> None:
    """Each answer is drawn once and kept; the best item may lose its only draw against another."""
    wrong, decided, independent = 0, 0, 0
    for seed in range(40):
        for repeats in ("tested", "independent"):
            rng, kept = np.random.default_rng(seed), dict[frozenset[str], str]()

            def program(question, rng=rng, kept=kept) -> int:
                pair = frozenset((question.first, question.second))
                if pair not in kept:
                    kept[pair] = min(pair) if rng.random() < 0.6 else max(pair)
                return int(kept[pair] == question.first)

            verdict = find_best(PROBLEM, program, repeats=repeats, seed=seed, budget=400)
            if repeats == "tested":
                decided += verdict.status.decided
                wrong += verdict.status.decided and verdict.best != "a"
                assert "Ask somebody else" in verdict.reason
                assert any("gave the same answer every time" in sentence for sentence in verdict.assumptions)
            else:
                independent += verdict.status.final and verdict.best != "a"
    assert wrong == decided == 0
    assert independent >= 10  # the control: with these answers taken as independent the wrong item is named


def test_what_a_tested_program_may_count_is_the_same_after_a_replay() -> None:
    session, rng = Session(PROBLEM, Winner(), repeats="tested", seed=4), np.random.default_rng(1)
    while session.answered < 60 and (questions := session.ask(1)):
        session.tell(questions[0].id, int(rng.random() < 0.5), judge="coin")
    assert 0 < len(session.uncounted) < 30
    again = Session.replay(session.to_lines())
    assert again.uncounted == session.uncounted
    assert again.verdict().to_json() == session.verdict().to_json()


def test_another_answer_in_another_order_is_no_second_answer() -> None:
    """A program that prefers what it is shown first gives two answers to a pair, and repeats itself all the same."""
    history = JudgeHistory("tested", 6)
    history.add(1, "p", 0, 1.0, counted=True, expected=None, swapped=False)
    history.add(2, "p", 0, 0.0, counted=False, expected=0.5, swapped=True)
    assert not history.counts("p", 0)
    history.add(3, "p", 0, 1.0, counted=False, expected=0.5, swapped=True)
    assert history.counts("p", 0)
    history.take_back(3)
    assert not history.counts("p", 0)


def test_a_named_program_that_is_nearly_certain_does_not_keep_the_search_busy() -> None:
    session = Session(PROBLEM, Winner(), repeats="tested", seed=1)
    while questions := session.ask(1):
        session.tell(questions[0].id, int(questions[0].first < questions[0].second), judge="program")
    assert session.answered <= 30
    assert session.exhausted
    assert session.had_by("program")


class TestSets:
    """An answer about a set compares all of its items: two of them are shown to a judge together only once."""

    @staticmethod
    def session(repeats: str = "once", items: int = 12) -> Session:
        return Session(Problem.from_sets(np.eye(items), show=4, top=3), Winner(), repeats=repeats, seed=4)

    def test_no_two_items_are_shown_together_twice_to_one_judge(self) -> None:
        session, rng, seen = self.session(), np.random.default_rng(1), Counter[tuple[str, frozenset[str]]]()
        for number in range(60):
            judge = f"judge {number % 4}"
            for question in session.ask(1, without=session.had_by(judge)):
                seen.update((judge, frozenset(pair)) for pair in itertools.combinations(question.items, 2))
                session.tell(question.id, rng.permutation(question.items).tolist()[:3], judge=judge)
        assert len(seen) > 100
        assert max(seen.values()) == 1

    def test_a_judge_who_has_seen_too_much_is_asked_nothing_more(self) -> None:
        session = self.session(items=5)
        (first,) = session.ask(1, without=session.had_by("ann"))
        session.tell(first.id, list(first.items[:3]), judge="ann")
        assert session.ask(1, without=session.had_by("ann")) == []
        assert len(session.ask(1, without=session.had_by("bob"))) == 1

    @pytest.mark.parametrize(("repeats", "counted"), [("once", False), ("independent", True)])
    def test_an_answer_about_two_items_seen_together_before_does_not_count(self, repeats: str, counted: bool) -> None:
        session = self.session(repeats, items=5)  # any two sets of four out of five share three items
        (first,) = session.ask(1)
        session.tell(first.id, list(first.items[:3]), judge="ann")
        (other,) = session.ask(1, without=session.had_by("bob"))
        session.tell(other.id, list(other.items[:3]), judge="ann")
        assert (other.id not in session.uncounted) is counted
        replayed = Session.replay(session.to_lines())
        assert replayed.uncounted == session.uncounted


@pytest.mark.parametrize("said", [0, 1])
def test_a_repeat_that_is_certain_to_agree_is_recorded(monkeypatch: pytest.MonkeyPatch, said: int) -> None:
    """A prediction that rounds to 1 once stopped the search of a person who had said the same before."""
    monkeypatch.setattr(Winner, "predict", lambda self, state, measurement: 1 - 1e-12 if said else 1e-12)
    session = Session(PROBLEM, Winner(delta=1e-6), repeats="spaced", seed=1)
    expected = []
    for _ in range(200):
        for question in session.ask(1):
            session.tell(question.id, said ^ question.swapped, judge="ann")
            event = session.log[-1]
            expected += [event["expected"]] if "expected" in event else []
    assert set(expected) == {1.0}
