"""The loop that asks and files answers, and the log it writes to."""

import numpy as np
import pytest

from surepick import InvalidInput, Problem, Session, find_best
from surepick.session import AskLoop, FunctionJudge, Reply
from surepick.session.journal import Journal, read_journal

ITEMS = {"a": [0.0, 1.0], "b": [1.0, 0.0], "c": [0.4, 0.5]}


def prefers_b(question) -> int:
    return int(ITEMS[question.first][0] > ITEMS[question.second][0])


class Failing:
    """A judge who never answers, two questions at a time."""

    at_once = 2
    asked, closed = 0, False

    def replies(self, next_question):
        try:
            while (question := next_question()) is not None:
                self.asked += 1
                yield question, Reply(None, trouble="out of order")
        finally:
            self.closed = True


def test_one_question_at_a_time_or_lists_of_them():
    sizes = []

    def answers(questions):
        sizes.append(len(questions))
        return [prefers_b(question) for question in questions]

    assert find_best(Problem.from_pairs(ITEMS), prefers_b).best == "b"
    assert find_best(Problem.from_pairs(ITEMS), answers, at_once=4).best == "b"
    assert max(sizes) == 4
    with pytest.raises(ValueError, match="zip"):  # an answer is missing
        find_best(Problem.from_pairs(ITEMS), lambda questions: [1], at_once=4)


@pytest.mark.parametrize("at_once", [0, -1, 2.5])
def test_an_impossible_number_of_questions_is_refused(at_once):
    with pytest.raises(InvalidInput, match="at_once must be a whole number"):
        find_best(Problem.from_pairs(ITEMS), lambda questions: [1 for _ in questions], at_once=at_once)


def test_a_judge_who_always_fails_is_given_up():
    judge = Failing()
    loop = AskLoop(Session(Problem.from_pairs(ITEMS)), judge)
    loop.run()
    assert (judge.asked, loop.ended, judge.closed) == (6, "judges failed", True)
    assert loop.troubles[0] == "Question 1 was skipped: out of order."
    assert not loop.session.outstanding


def test_a_judge_is_closed_where_somebody_else_fails():
    judge = Failing()

    def progress(loop):
        raise RuntimeError("no screen")

    with pytest.raises(RuntimeError, match="no screen"):
        AskLoop(Session(Problem.from_pairs(ITEMS)), judge).run(progress)
    assert judge.closed


def test_open_questions_of_an_earlier_call_come_first():
    session = Session(Problem.from_pairs(ITEMS))
    (open_question,) = session.ask()
    asked = []

    def judge(question):
        asked.append(question.id)
        return prefers_b(question)

    AskLoop(session, FunctionJudge(judge), budget=3).run()
    assert asked == [open_question.id, 2, 3]
    assert session.answered == 3


def test_a_journal_is_appended_to_after_a_crash(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"event": "one"}\n{"event": "tw')
    assert read_journal(path) == [{"event": "one"}]
    journal = Journal(path, default=str)
    journal.append({"event": "two", "who": np.float64(0.1)})
    journal.append({"event": "three", "who": {1}})
    assert path.read_text() == '{"event": "one"}\n{"event": "two", "who": 0.1}\n{"event": "three", "who": "{1}"}\n'
    journal.close()
    with pytest.raises(ValueError, match="closed"):
        journal.append({"event": "four"})


def test_a_broken_line_is_named(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"event": "one"}\nnonsense\n')
    with pytest.raises(InvalidInput, match="Line 2 of the log is not JSON"):
        read_journal(path)
