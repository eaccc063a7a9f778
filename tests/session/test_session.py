import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surepick import (
    Anytime,
    InvalidInput,
    Problem,
    Question,
    RageGlm,
    RageLinear,
    Session,
    Status,
    Verdict,
    Winner,
    find_best,
)
from surepick.identify import CannotClose
from surepick.judges import World

WORLD = World("three", Problem.from_pairs({"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [-1.0, -1.0]}), np.array([1.5, -0.5]))


def answer(question: Question) -> int:
    return int(np.random.default_rng([1, question.id]).random() < 1 / (1 + np.exp(-question.vector @ WORLD.theta)))


def session(**options: Any) -> Session:
    return Session(WORLD.problem, RageLinear(delta=0.3), seed=5, **options)


def test_shown_order_is_random_logged_and_undone_in_the_counts() -> None:
    one = session()
    questions = one.ask(40)
    assert {question.swapped for question in questions} == {True, False}
    for question in questions:
        first, second = WORLD.problem.index(question.first or ""), WORLD.problem.index(question.second or "")
        np.testing.assert_array_equal(question.vector, WORLD.problem.items[first] - WORLD.problem.items[second])
        one.tell(question.id, int(first < second))  # the one listed first in the problem always wins
    stage = one._record.stages[0]
    np.testing.assert_array_equal(stage.wins, stage.pulls)
    logged = [event["swapped"] for event in one.log if event["event"] == "question"]
    assert logged == [question.swapped for question in questions]


def test_with_a_position_the_order_shown_is_the_question() -> None:
    """A judge who mostly takes the first item shown: the model knows, and the best item is found all the same."""
    problem = Problem.from_pairs({"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [-1.0, -1.0]}, position=True)
    world = World("left", problem, np.array([1.0, -0.5, 1.2]))
    one = Session(problem, RageLinear(delta=0.3), seed=5)
    questions = one.ask(60)
    assert not any(question.swapped for question in questions)
    orders = {(question.first, question.second) for question in questions}
    assert any((second, first) in orders for first, second in orders)
    for question in questions:
        first, second = problem.index(question.first or ""), problem.index(question.second or "")
        np.testing.assert_array_equal(question.vector, problem.items[first] - problem.items[second] + [0, 0, 1])
    verdict = find_best(problem, world.judge(3), policy=RageGlm(kappa=world.kappa))
    assert (verdict.status, verdict.best) == (Status.CERTAIN, "a")


def test_the_plan_is_handed_out_exactly() -> None:
    one = session()
    total = 0
    while questions := one.ask(7):
        total += len(questions)
    stage = one._record.stages[0]
    assert total == stage.plan.total
    assert one.ask(1) == []  # waits for answers
    assert len(one.outstanding) == total
    counted = np.bincount([question.measurement for question in one.outstanding], minlength=3)
    np.testing.assert_array_equal(counted[stage.plan.measurements], stage.plan.pulls)


def test_randomness_depends_on_seed_and_number_alone() -> None:
    one, two = session(), session()
    together = one.ask(6)
    apart = [two.ask(1)[0] for _ in range(6)]
    assert [q.to_json() for q in together] == [q.to_json() for q in apart]
    other = Session(WORLD.problem, RageLinear(delta=0.3), seed=6).ask(6)
    assert [q.to_json() for q in together] != [q.to_json() for q in other]


def test_the_same_answer_twice_is_one_and_another_is_refused() -> None:
    one = session()
    question = one.ask(1)[0]
    one.tell(question.id, 1)
    before = one.to_lines()
    one.tell(question.id, 1)
    assert one.to_lines() == before
    with pytest.raises(InvalidInput, match="answered 1 before and 0 now"):
        one.tell(question.id, 0)
    assert one.to_lines() == before


@pytest.mark.parametrize("wrong", [2, -1, "2", "yes", None, 0.5])
def test_an_answer_is_zero_or_one(wrong: Any) -> None:
    one = session()
    question = one.ask(1)[0]
    with pytest.raises(InvalidInput, match=r"must be (0 or 1|a, b, tie)"):
        one.tell(question.id, wrong)
    assert one.answered == 0


def test_unknown_questions_are_refused() -> None:
    one = session()
    one.ask(2)
    for call in (lambda: one.tell(3, 1), lambda: one.skip(3), lambda: one.tie(99), lambda: one.undo(3)):
        with pytest.raises(InvalidInput, match=r"There is no question \d+; 2 were asked"):
            call()
    with pytest.raises(InvalidInput, match="at least 1, got 0"):
        one.ask(0)


def test_undo_ends_when_the_stage_is_evaluated() -> None:
    one = session()
    with pytest.raises(InvalidInput, match="no answer to undo"):
        one.undo()
    first = one.ask(1)[0]
    one.tell(first.id, 1)
    assert one.undo() is first
    assert one.outstanding == [first]
    one.tell(first.id, 0)
    while questions := one.ask(50):
        if questions[-1].stage > 0:
            break
        for question in questions:
            if question.id != first.id:
                one.tell(question.id, answer(question))
    with pytest.raises(InvalidInput, match="can no longer be undone"):
        one.undo(first.id)


def test_looking_at_a_complete_stage_seals_it_for_good() -> None:
    one = session()
    questions = one.ask(10**4)
    for question in questions:
        one.tell(question.id, answer(question))
    one.undo(questions[0].id)
    one.tell(questions[0].id, 1)
    one.verdict()
    for each in (one, Session.replay(one.to_lines())):
        with pytest.raises(InvalidInput, match="can no longer be undone"):
            each.undo(questions[0].id)


def test_skips_and_ties_close_a_stage_and_are_logged_raw() -> None:
    one = session()
    questions = one.ask(10**4)
    for question in questions[3:]:
        one.tell(question.id, answer(question))
    one.skip(questions[0].id, judge="ann")
    one.tie(questions[1].id)
    one.tie(questions[1].id)
    assert one.verdict().questions == 0  # the third is still out
    one.skip(questions[2].id)
    assert one.verdict().questions == len(questions) - 3
    assert any("3 questions were closed" in assumption for assumption in one.verdict().assumptions)
    kinds = [event["event"] for event in one.log]
    assert kinds.count("skip") == 2
    assert kinds.count("tie") == 1
    assert {"event": "skip", "id": questions[0].id, "judge": "ann"} in one.log


def test_a_late_answer_to_a_skipped_question_counts_until_the_stage_is_evaluated() -> None:
    one = session()
    questions = one.ask(10**4)
    for question in questions[1:]:
        one.tell(question.id, answer(question))
    one.skip(questions[0].id)
    one.tell(questions[0].id, 1)
    assert one.verdict().questions == len(questions)
    with pytest.raises(InvalidInput, match="has the answer 1"):
        one.skip(questions[0].id)


def test_an_answer_after_the_stage_was_closed_is_logged_and_changes_nothing() -> None:
    one = session()
    questions = one.ask(10**4)
    for question in questions[1:]:
        one.tell(question.id, answer(question))
    one.skip(questions[0].id)
    said = one.ask(1) and one.verdict().to_json()
    one.tell(questions[0].id, 1)
    assert one.verdict().to_json() == said
    assert Session.replay(one.to_lines()).verdict().to_json() == said


@pytest.mark.parametrize("evaluate", [Session.verdict, Session.progress, lambda one: one.ask(1)])
def test_an_answer_after_its_stage_was_evaluated_is_late_and_changes_no_evidence(evaluate: Any) -> None:
    one = Session(Problem.from_pairs({"red": [1.0, 0.0], "blue": [0.0, 1.0], "grey": [0.5, 0.6]}), seed=3)
    questions = one.ask(6)
    for question in questions[1:]:
        one.tell(question.id, question.id % 2)
    one.skip(questions[0].id)
    evaluate(one)
    # What an answer that never came would have led to.
    without = Session.replay(one.to_lines()).verdict().to_json()
    one.tell(questions[0].id, 1, judge="ann")
    assert one.late == {questions[0].id}
    assert one.log[-1] == {"event": "answer", "id": questions[0].id, "answer": 1, "late": True, "judge": "ann"}
    assert one.answered == 6
    again = Session.replay(one.to_lines())
    for session in (one, again):
        assert session.verdict().to_json() == without
        assert session.late == {questions[0].id}
        with pytest.raises(InvalidInput, match="can no longer be undone"):
            session.undo(questions[0].id)


def test_a_policy_that_cannot_close_says_so() -> None:
    one = Session(WORLD.problem, RageLinear(delta=0.3, missing="refuse"), seed=5)
    questions = one.ask(10**4)
    for question in questions[1:]:
        one.tell(question.id, answer(question))
    one.skip(questions[0].id)
    with pytest.raises(CannotClose, match="1 questions of stage 0 have no answer"):
        one.ask(1)
    one.tell(questions[0].id, 1)
    assert one.ask(1)


def test_the_verdict_is_latched() -> None:
    one = Session(Problem.from_pairs([[1.0], [1.0]]))
    verdict = one.verdict()
    assert verdict.status is Status.CERTAIN
    assert one.ask(3) == []
    assert Session.replay(one.to_lines()).verdict() == verdict
    assert [event["event"] for event in one.log] == ["session", "verdict"]


def test_a_replay_takes_stages_as_logged() -> None:
    """A plan in the log is followed even where planning anew would give another."""
    one = session()
    one.ask(1)
    lines = [json.loads(line) for line in one.to_lines()]
    stage = next(event for event in lines if event["event"] == "stage")
    stage["pulls"] = [pulls + 5 for pulls in stage["pulls"]]
    again = Session.replay([json.dumps(event) for event in lines])
    assert again._record.stages[0].plan.total == one._record.stages[0].plan.total + 5 * len(stage["pulls"])


def test_a_file_can_be_resumed_after_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    one = session(path=path)
    for question in one.ask(9):
        one.tell(question.id, answer(question))
    with path.open("a") as file:
        file.write('{"event": "answer", "id"')  # the power went
    two = Session.resume(path)
    assert two.answered == 9
    assert two.ask(1)[0].id == 10
    assert Session.resume(path).to_lines() == two.to_lines() == path.read_text().splitlines()
    with pytest.raises(InvalidInput, match="already holds a session"):
        session(path=path)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "begins with an event 'session'"),
        (['{"event": "answer"}'], "begins with an event 'session'"),
        (["nonsense"], "Line 1 of the log is not JSON"),
        (["[1]"], "not an event"),
    ],
)
def test_a_broken_log_is_refused(lines: list[str], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        Session.replay(lines)


def test_an_unknown_event_or_format_is_refused() -> None:
    head = session().log[0]
    with pytest.raises(InvalidInput, match="format 99"):
        Session.replay([json.dumps(head | {"format": 99})])
    with pytest.raises(InvalidInput, match="event 'dance'"):
        Session.replay([json.dumps(head), '{"event": "dance"}'])
    with pytest.raises(InvalidInput, match="Line 1 of the log does not follow"):
        Session.replay([json.dumps({key: value for key, value in head.items() if key != "seed"})])
    with pytest.raises(InvalidInput, match=r"Line 2 of the log does not follow .* restore the log"):
        Session.replay([json.dumps(head), '{"event": "answer", "id": 5, "answer": 1}'])


def test_find_best_one_by_one_in_batches_and_by_plans() -> None:
    liking = {"a": 2, "b": 1, "c": 0}

    def judge(question: Question) -> int:
        return int(liking[question.first or ""] > liking[question.second or ""])

    policy = RageGlm(delta=0.05, budget=60)  # its stages do not depend on how many questions are handed out at once
    single = find_best(WORLD.problem, judge, policy=policy, seed=3)
    batches = find_best(WORLD.problem, lambda many: [judge(one) for one in many], policy=policy, seed=3, at_once=8)
    assert single == batches
    assert (single.best, single.questions, single.status) == ("a", 60, Status.BUDGET_SPENT)
    whole = find_best(WORLD.problem, WORLD.judge(0), policy=RageGlm(kappa=WORLD.kappa, delta=0.1))
    assert (whole.best, whole.status) == ("a", Status.CERTAIN)


def test_find_best_takes_ties_and_silence() -> None:
    def judge(question: Question) -> Any:
        return ["tie", None, 1, 0][question.id % 4]

    verdict = find_best(WORLD.problem, judge, budget=80)
    assert verdict.status is Status.BUDGET_SPENT
    assert verdict.questions == 60  # a tie is an answer of one half, silence is none


def test_a_skip_or_tie_can_be_undone_until_its_stage_is_evaluated() -> None:
    one = Session(WORLD.problem, Anytime(), seed=3)
    first, second = one.ask(2)  # stages of one question
    assert second.stage > first.stage
    one.skip(second.id)
    one.ask(1)  # plans on; the skipped stage must not be taken as complete behind the open one before it
    assert one.undo(second.id) is second
    assert second in one.outstanding
    one.tell(first.id, answer(first))
    one.tell(second.id, answer(second))
    assert sum(one.verdict().questions_by_stage) == 2
    with pytest.raises(InvalidInput, match="can no longer be undone"):
        one.undo(second.id)
    again = Session.replay(one.to_lines())
    assert [each.id for each in again.outstanding] == [each.id for each in one.outstanding]
    assert again.verdict() == one.verdict()


@pytest.mark.parametrize(
    "show",
    [lambda one: one.verdict(), lambda one: one.forecast(draws=3), lambda one: one.progress(), Session.certificate],
)
def test_what_shows_something_of_the_answers_refuses_undo_live_and_resumed(show: Callable[[Session], object]):
    """An evaluation must be in the log, so that a replay knows of it."""
    session = Session(Problem.from_pairs({"red": [1.0, 0.0], "blue": [0.0, 1.0]}), seed=7)
    question = session.ask(1)[0]
    session.tell(question.id, 1)
    with suppress(InvalidInput):  # there is no certificate yet; what it says shows something all the same
        show(session)
    for one in (session, Session.replay(session.to_lines())):
        with pytest.raises(InvalidInput, match="can no longer be undone"):
            one.undo(question.id)


@pytest.mark.parametrize("policy", [Winner(), Anytime(), RageLinear(delta=0.3)], ids=lambda policy: policy.name)
def test_one_open_question_does_not_freeze_the_best_guess(policy: Any) -> None:
    problem = Problem.from_pairs({"a": [0.0, 1.0], "b": [1.0, 0.0], "c": [0.3, 0.2]})
    for favourite in ("a", "b"):
        session = Session(problem, policy, seed=3)
        left_open, *others = session.ask(30 if policy.name != "rage-linear" else 10**4)
        for question in others:
            session.tell(question.id, int(question.first == favourite or question.second == "c"))
        verdict = session.verdict()
        assert verdict.best == favourite
        assert (verdict.questions, verdict.not_evaluated) == (0, len(others))
        assert "Evaluated up to question 1, which is still open; " in verdict.reason
        assert Verdict.from_json(verdict.to_json()).not_evaluated == len(others)
        session.tell(left_open.id, int(left_open.first == favourite or left_open.second == "c"))
        assert session.verdict().not_evaluated == 0
        assert session.verdict().best == favourite
