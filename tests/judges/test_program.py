"""Programs as judges: what they may say, and that none outlives its search."""

import os
import sys

import pytest

from surepick import Session
from surepick.io.items import read_items
from surepick.judges.program import ProgramJudge
from surepick.session import AskLoop

SCRIPT = """
import json, os, sys
open(os.path.join(os.path.dirname(__file__), f"{os.getpid()}.pid"), "w").close()
for line in sys.stdin:
    question = json.loads(line)
    print(json.dumps({"id": question["id"], "answer": eval(sys.argv[1])}), flush=True)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "items.csv").write_text("item,size\nsmall,0\nlarge,1\n")
    (tmp_path / "judge.py").write_text(SCRIPT)
    return tmp_path


def judge(folder, answer: str, **options) -> ProgramJudge:
    command = f"{sys.executable} {folder / 'judge.py'} '{answer}'"
    return ProgramJudge(command, read_items(folder / "items.csv"), **options)


@pytest.mark.parametrize(
    "answer", ['["b", "a"][question["first"] == "large"]', '"large"', 'float(question["first"] == "large")']
)
def test_an_answer_is_a_letter_a_name_or_a_number(folder, answer):
    session = Session(read_items(folder / "items.csv").problem())
    AskLoop(session, judge(folder, answer, retries=0)).run()
    assert session.verdict().best == "large"


@pytest.mark.parametrize(("kind", "answer"), [("pairs", "yes"), ("items", "a"), ("items", "tie"), ("pairs", None)])
def test_a_word_for_another_kind_of_question_is_named(folder, kind, answer):
    session = Session(read_items(folder / "items.csv").problem(kind))
    said = "None" if answer is None else f'"{answer}"'
    loop = AskLoop(session, judge(folder, said, retries=0))
    loop.run()
    assert loop.ended == "judges failed"
    assert "the answer must be" in loop.troubles[0]


def test_no_process_outlives_its_search(folder):
    session = Session(read_items(folder / "items.csv").problem())
    panel = judge(folder, "1", at_once=3)

    def progress(loop):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        AskLoop(session, panel).run(progress)
    numbers = [int(path.stem) for path in folder.glob("*.pid")]
    assert numbers
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)
