"""`surepick ask`: the person at the terminal."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from surepick import Session
from surepick.cli import app
from surepick.judges.terminal import TerminalJudge

COLOURS = Path(__file__).parents[2] / "examples" / "colours.csv"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items.csv").write_text("item,size,text\nsmall,0,few words\nlarge,1,many words\n")
    return tmp_path


def typed(keys: str, *words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["ask", *words], input="\n".join(keys) + "\n", catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def events(path: str) -> list[str]:
    return [event["event"] for event in Session.resume(path).log if event["event"] not in ("stage", "question", "look")]


def test_answers_are_kept_and_the_next_call_goes_on(here):
    code, shown, asked = typed("abtq", str(COLOURS))
    assert code == 1
    assert "to go on from there" in " ".join(shown.split())
    assert "Question 1" in asked
    log = "colours.answers.jsonl"
    kept = events(log)
    assert kept.count("answer") == 2
    assert kept.count("tie") == 1
    code, _, asked = typed("aq", str(COLOURS))
    assert "Question 3" in asked
    assert "Question 1" not in asked
    assert events(log).count("answer") == 3


def test_the_last_answer_can_be_taken_back(here):
    typed("a" * 12 + "buaq", str(COLOURS))
    answers = [event for event in Session.resume("colours.answers.jsonl").log if event["event"] == "answer"]
    assert len(answers) == 13
    assert all(event["answer"] == 1 for event in answers)


def test_the_favourite_is_found_and_told(here, monkeypatch):
    monkeypatch.setattr(
        TerminalJudge, "ask", lambda self, question, can_undo: "first" if question.first == "large" else "second"
    )
    code, shown, _ = typed("", "items.csv", "--kind", "both", "--json", "--report", "report.html")
    fields = json.loads(shown)
    assert code == 0
    assert (fields["best"], fields["status"]) == ("large", "certain")
    assert "large" in Path("report.html").read_text()


def test_ctrl_c_keeps_the_answer_held_back(here, monkeypatch):
    def stop_at_the_third(self, question, can_undo):
        if self.answered() + can_undo == 2:
            raise KeyboardInterrupt
        return "first"

    monkeypatch.setattr(TerminalJudge, "ask", stop_at_the_third)
    code, shown, _ = typed("", str(COLOURS))
    assert code == 130
    assert "interrupted" in shown
    assert events("colours.answers.jsonl").count("answer") == 2


def test_the_budget_counts_answers_of_earlier_calls(here):
    typed("ab", str(COLOURS), "--budget", "2")
    _, _, asked = typed("aaaa", str(COLOURS), "--budget", "3")
    assert "Question 3" in asked
    assert "Question 4" not in asked
    assert events("colours.answers.jsonl").count("answer") == 3


def test_what_was_skipped_does_not_come_again_at_once(here):
    typed("s" * 6 + "q", str(COLOURS))
    questions = [
        event["measurement"] for event in Session.resume("colours.answers.jsonl").log if event["event"] == "question"
    ]
    assert len(set(questions)) == len(questions) == 7


def test_no_question_comes_twice_in_a_row_and_nothing_is_skipped_for_it(here):
    typed("ab" * 10 + "q", str(COLOURS))
    log = Session.resume("colours.answers.jsonl").log
    questions = [event["measurement"] for event in log if event["event"] == "question"]
    assert all(one != other for one, other in pairwise(questions))
    assert not any(event["event"] == "skip" for event in log)


def test_other_keys_are_named(here):
    _, _, asked = typed("xq", str(COLOURS))
    assert "'x' is not one of these keys" in asked


def test_arrow_keys_and_colours_on_a_terminal(here):
    leader, follower = pty.openpty()
    command = [sys.executable, "-c", "from surepick.cli import main; main()", "ask", str(COLOURS)]
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    process = subprocess.Popen(command, stdin=follower, stdout=subprocess.DEVNULL, stderr=follower, env=environment)
    os.close(follower)
    seen = b""
    for number, key in ((1, b"\x1b[D"), (2, b"\x1b[C"), (3, b"q")):
        deadline = time.monotonic() + 20
        while f"Question {number}".encode() not in seen:
            assert time.monotonic() < deadline
            if select.select([leader], [], [], 0.5)[0]:
                seen += os.read(leader, 65536)
        time.sleep(0.2)  # until the key is waited for
        os.write(leader, key)
    process.wait(timeout=20)
    os.close(leader)
    assert b"48;2;" in seen  # truecolour
    assert events("colours.answers.jsonl").count("answer") == 2
