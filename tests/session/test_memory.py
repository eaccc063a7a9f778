"""A held session keeps little of what was evaluated for good, and shows all of it as before."""

import gc
import tracemalloc

import numpy as np
import pytest

from surepick import Problem, Session
from surepick.identify import Anytime, Exclusion, Posterior, Winner
from surepick.identify.policy import Plan
from surepick.identify.stage_list import StageList, asked_counts
from surepick.session.columns import AnswerColumns, NumberSet
from surepick.session.event_log import RECENT, EventLog


def answered(session: Session, answers: int, seed: int = 0) -> None:
    """Two judges in turn; some skip, and some take their answer back."""
    chance = np.random.default_rng(seed)
    for _ in range(answers):
        (question,) = session.ask(1)
        judge = "ann" if chance.random() < 0.5 else "bob"
        what = chance.random()
        if what < 0.1:
            session.skip(question.id, judge=judge)
        elif what < 0.2:
            session.tie(question.id, judge=judge)
        else:
            session.tell(question.id, int(chance.integers(2)), judge=judge)
            if what > 0.9:
                session.undo(question.id)
                session.tell(question.id, 0.25, judge=judge)


def open_session(**options: object) -> Session:
    """Nearly equal items, so that coin tosses decide nothing."""
    problem = Problem.from_pairs({str(item): [item % 3, item // 3] for item in range(9)})
    return Session(problem, Winner(delta=1e-9), seed=3, **options)  # type: ignore[arg-type]


def judged(session: Session, until: int) -> None:
    """As in a service: twenty judges who hold a question each, none of whom is asked the same twice."""
    chance, judges = np.random.default_rng(until), 0
    while session.answered < until:
        held = []
        for place in range(20):
            asked = session.ask(1, without=session.had_by(f"judge {judges + place}"))
            held += [(question, f"judge {judges + place}") for question in asked]
        judges += 0 if held else 20  # they have had all that helps: others come
        for place in chance.permutation(len(held)).tolist():
            session.tell(held[place][0].id, int(chance.integers(2)), judge=held[place][1])
        session.verdict()


def test_an_answer_takes_about_a_hundred_bytes() -> None:
    problem = Problem.from_pairs({str(item): [item % 5, item // 5] for item in range(25)})
    tracemalloc.start()
    try:
        session, sizes = Session(problem, Winner(delta=1e-9), repeats="once", seed=3), []
        for answers in (1_000, 3_000):
            judged(session, answers)
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # Lines that are packed next, and the beliefs of a few open stages, are up to 200 kB more or less at one moment.
    assert (sizes[1] - sizes[0]) / 2_000 < 250


@pytest.mark.parametrize("policy", [Winner(), Anytime(), Exclusion(), Posterior()])
def test_states_that_are_replaced_are_freed_at_once(policy: Winner | Anytime | Exclusion | Posterior) -> None:
    """Their arrays are large, and the collection of cycles counts objects, not bytes."""
    session = Session(Problem.from_pairs({str(item): [item % 3, item // 3] for item in range(9)}), policy, seed=3)
    gc.collect()
    gc.disable()
    try:
        for number in range(30):
            for question in session.ask(1):
                session.tell(question.id, number % 2)
            assert session.verdict().claims
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_claim_that_follows_keeps_little_of_each_stage() -> None:
    # Of few items every comparison was made after 150 answers. A new one takes more: its answers are counted by item.
    problem = Problem.from_pairs(np.random.default_rng(2).normal(size=(10, 4)))
    session = Session(problem, Winner(delta=1e-9), seed=3)
    tracemalloc.start()
    try:
        sizes = []
        for answers in (150, 250):
            while session.answered < answers:
                (question,) = session.ask(1)
                session.tell(question.id, session.answered % 2)
            assert session.verdict().claims
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert (sizes[1] - sizes[0]) / 100 < 3_500


@pytest.mark.parametrize("repeats", ["independent", "once"])
def test_what_is_shown_of_a_long_session_is_what_its_log_says(repeats: str) -> None:
    session = open_session(repeats=repeats)
    chance = np.random.default_rng(5)
    shown = {}
    for number in range(300):
        judge = f"judge {number % 20}"
        for question in session.ask(1, without=session.had_by(judge)):
            shown[question.id] = question
            session.tell(question.id, int(chance.integers(2)), judge=judge)
    events = list(session.log)
    assert len(events) > 2 * RECENT
    assert {event["id"]: event["answer"] for event in events if event["event"] == "answer"} == session.answers
    assert list(session.questions) == list(shown)
    for number, question in session.questions.items():
        then = shown[number]
        assert (question.first, question.second, question.stage, question.asked, question.swapped) == (
            *(then.first, then.second, then.stage, then.asked, then.swapped),
        )
        assert question.vector.tolist() == then.vector.tolist()
    again = Session.replay(session.to_lines())
    assert again.log == session.log
    assert again.had_by("judge 3") == session.had_by("judge 3")
    assert again.verdict().to_json() == session.verdict().to_json()
    for one, two in zip(again.evaluated_stages, session.evaluated_stages, strict=True):
        assert (one.plan.to_json(), one.pulls.tolist(), one.wins.tolist()) == (
            *(two.plan.to_json(), two.pulls.tolist(), two.wins.tolist()),
        )


def test_the_log_is_a_sequence_across_what_is_packed() -> None:
    events = [{"event": "answer", "id": number, "answer": number % 2} for number in range(3 * RECENT + 7)]
    log = EventLog()
    for event in events:
        log.append(event)
    assert log == events
    assert len(log) == len(events)
    assert list(log) == events
    assert [log[place] for place in (0, 5, RECENT, 2 * RECENT - 1, -1)] == [
        events[place] for place in (0, 5, RECENT, 2 * RECENT - 1, -1)
    ]
    for part in (
        slice(3, 9),
        slice(RECENT - 2, 2 * RECENT + 3),
        slice(-5, None),
        slice(None, 4),
        slice(None, None, 100),
    ):
        assert log[part] == events[part]
    assert log != events[:-1]
    with pytest.raises(IndexError):
        log[len(events)]


def test_answers_keep_their_order_and_kind() -> None:
    answers, plain = AnswerColumns(), dict[int, object]()
    for number, answer in ((3, 1), (1, 0), (2, 0.5), (7, (2, 1)), (5, 1)):
        answers[number] = plain[number] = answer
    for gone in (1, 7):
        del answers[gone], plain[gone]
    answers[1] = plain[1] = 1
    assert list(answers.items()) == list(plain.items())
    assert list(reversed(answers)) == list(reversed(plain))
    assert [type(answer) for answer in answers.values()] == [int, float, int, int]
    assert answers.get(4) is None
    assert 7 not in answers


def test_a_set_of_numbers_is_a_set() -> None:
    chance, numbers, plain = np.random.default_rng(1), NumberSet(), set[int]()
    for number in chance.integers(0, 30, 200).tolist():
        for one in (numbers, plain):
            (one.add if number % 3 else one.discard)(number // 2)
        assert (set(numbers), len(numbers)) == (plain, len(plain))


def test_two_searches_that_go_on_from_one_state_do_not_meet() -> None:
    def grown(stages: StageList, asked: list[int]) -> StageList:
        for number in asked:
            stages = stages.planned(Plan(len(stages), np.array([number]), np.array([1]), {"shares": [[0.5, number]]}))
            stages = stages.pack(len(stages))
        return stages

    common = grown(StageList(), [1, 2])
    one, two = grown(common, [3]), grown(common, [4, 4])
    assert [int(stage.plan.measurements[0]) for stage in one] == [1, 2, 3]
    assert [int(stage.plan.measurements[0]) for stage in two] == [1, 2, 4, 4]
    assert [stage.plan.memo["shares"][0][1] for stage in common] == [1, 2]
    assert asked_counts(two, 6).tolist() == asked_counts(tuple(two), 6).tolist() == [0, 1, 1, 0, 2, 0]
