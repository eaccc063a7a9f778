"""`surepick ask`: the person at the terminal."""

import json
import os
import re
import select
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick import InvalidInput, Session
from surepick.cli import app
from surepick.judges.terminal import KEYS, SINGLE_KEYS, TerminalJudge

PAGE_KEY = re.compile(r'(\w+): (?:kind === "compare" \? )?"(\w+)"(?: : "(\w+)")?')
"""A key of the page, and the word it stands for in comparisons and in yes/no questions."""

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
    assert "run the same command to continue" in " ".join(shown.split())
    assert "Question 1" in asked
    log = "colours.answers.jsonl"
    kept = events(log)
    assert kept.count("answer") == 2
    assert kept.count("tie") == 1
    code, _, asked = typed("aq", str(COLOURS))
    assert "Question 4" in asked  # the third was a tie, which is an answer to its question
    assert "Question 3" not in asked
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
    assert "large" in Path("report.html").read_text(encoding="utf-8")


def test_ctrl_c_keeps_the_answer_held_back(here, monkeypatch):
    def stop_at_the_third(self, question, can_undo):
        if question.id == 3:
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


@pytest.fixture
def terminal(here):
    """`surepick ask` on a terminal of its own: what it shows up to some words, and what is typed."""
    pty, running = pytest.importorskip("pty"), []

    class Terminal:
        def __init__(self, *words):
            self.leader, follower = pty.openpty()
            environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": "80"}
            command = [sys.executable, "-c", "from surepick.cli import main; main()", "ask", *words]
            self.process = subprocess.Popen(
                command, stdin=follower, stdout=follower, stderr=follower, env=environment, close_fds=True
            )
            os.close(follower)
            running.append(self)

        def until(self, *words):
            """What is shown until one of the words came."""
            seen, deadline = "", time.monotonic() + 60
            while not any(word in seen for word in words):
                assert time.monotonic() < deadline, seen
                if select.select([self.leader], [], [], 0.5)[0]:
                    seen += os.read(self.leader, 65536).decode("utf-8", "replace")
            return seen

        def type(self, key):
            os.write(self.leader, key.encode())

    yield Terminal
    for terminal in running:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.leader)


@pytest.mark.posix
def test_arrow_keys_and_colours_on_a_terminal(terminal):
    ask = terminal(str(COLOURS))
    seen = ask.until("quit")
    assert "rough estimates" in seen  # what was said before the first question is still there
    assert "\x1b[2J" not in seen
    ask.type("\x1b[D")  # at once: a key typed after the question is shown is never lost
    seen += ask.until("quit")
    ask.type("\x1b")  # the key Escape alone swallows nothing
    seen += ask.until("not one of these keys")
    ask.type("\x1b[C")
    seen += ask.until("quit")
    ask.type("q")
    assert ask.process.wait(timeout=60) == 1
    assert "\x1b[2J" in seen
    assert "48;2;" in seen  # truecolour
    assert "^[" not in seen  # keys are not printed
    assert events("colours.answers.jsonl").count("answer") == 2


@pytest.mark.posix
def test_a_person_on_a_terminal_answers_to_the_verdict(terminal, here):
    (here / "words.csv").write_text("item,text\nlong,very many words\nshort,one\nmiddle,three words here\n")
    ask, keys, shown = terminal("words.csv", "--delta", "0.2", "--question", "Shorter?"), 0, ""
    while "is the best" not in (shown := ask.until("quit", "is the best")):
        cards = re.findall(r"very many words|one\b|three words here", shown[shown.rindex("Question") :])
        assert keys < 200
        ask.type("\x1b[D" if len(cards[0]) < len(cards[1]) else "\x1b[C")
        keys += 1
    assert "short is the best of 3 items" in re.sub(
        r"\x1b\[[0-9;]*m|\s+", lambda match: " " * match[0].isspace(), shown
    )
    assert keys > 5


def test_the_question_is_asked_in_your_words_and_blind(here):
    _, _, asked = typed("aq", "items.csv", "--question", "Which [reply] is kinder?", "--blind", "--no-features")
    assert "Which [reply] is kinder?" in asked
    assert "few words" in asked
    assert "small" not in asked
    (here / "bare.csv").write_text("item,size\nsmall,0\nlarge,1\n")
    with pytest.raises(InvalidInput, match="nothing to show of the item 'small'"):
        typed("q", "bare.csv", "--blind")


def test_keys_are_those_of_the_judge_page():
    script = (Path(sp.__file__).parent / "service" / "static" / "judge.js").read_text()
    words = re.search(r"const words = \{(.*?)\}", script, re.DOTALL)[1]
    pages = {key: (pair, single or pair) for key, pair, single in PAGE_KEY.findall(words)}
    assert len(pages) == 8
    meaning = {"a": "first", "b": "second", "yes": "first", "no": "second", "tie": "tie", "skip": "skip"}
    for key, (pair, single) in pages.items():
        typed_key = {"ArrowLeft": "\x1b[D", "ArrowRight": "\x1b[C", "ArrowUp": "\x1b[A", "ArrowDown": "\x1b[B"}.get(
            key, key
        )
        assert KEYS[typed_key] == meaning[pair]
        assert SINGLE_KEYS[typed_key] == meaning[single]
