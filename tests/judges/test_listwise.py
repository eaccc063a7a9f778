"""A language model that picks from several texts or ranks them: what it is shown, and what of its replies counts."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fake_model_server import Canned, FakeModelServer, chat
from surepick import InvalidInput, Problem, Session, Winner
from surepick.cli import app
from surepick.judges import LanguageModel, model_calls
from surepick.judges.listwise import ListPrompt
from surepick.judges.model_prompts import Candidate
from surepick.session import AskLoop

TEXTS = {"one": "a", "two": "a b", "three": "a b c", "four": "a b c d", "five": "a b c d e", "six": "a b c d e f"}

RANK = ListPrompt(tuple(map(Candidate, "wxyz")), 3)
PICK = ListPrompt(tuple(map(Candidate, "wxyz")), 1)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ('{"ranking": ["C", "A", "B", "D"]}', (3, 1, 2)),
        ('<think>{"ranking": ["A"]}</think>{"ranking": ["C", "A", "B"]}', (3, 1, 2)),
        ("Some words.\n\nAnswer: C > A > D > B", (3, 1, 4)),
        ("**Ranking:** C, A, D, B", (3, 1, 4)),
        ("[[B > A > C > D]]", (2, 1, 3)),
        ("D > C > B > A", (4, 3, 2)),
        ("Answer: TIE", "TIE"),
        ('{"ranking": ["TIE"]}', "TIE"),
        ("I'm sorry, but I can't help with that.", "REFUSED"),
        ("Answer: C > A", None),  # one place is missing
        ("Answer: C = A > B > D", None),
        ("Answer: C > C > B > D", None),
        ("Answer: C > E > B > D", None),
        ("C is better than A, and B is better than D.", None),
        ('{"ranking": ["C", "A", "B"]} {"ranking": ["A", "C", "B"]}', None),
        ('{"ranking": [["C", "A"], "B"]}', None),
        ("<think>A > B > C > D", None),
        ("", None),
    ],
)
def test_a_ranking_is_read_rightly_or_not_at_all(reply, said):
    assert RANK.read(reply) == said


def test_a_pick_is_one_letter():
    assert [PICK.read(reply) for reply in ('{"answer": "C"}', "Answer: B", "B", "Answer: B > A", "A or B")] == [
        (3,),
        (2,),
        (2,),
        (2,),
        None,
    ]
    assert PICK.response_format["json_schema"]["schema"]["required"] == ["answer"]
    assert "name the best 2" in ListPrompt(RANK.candidates, 2).messages(True)[0]["content"]


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(model_calls, "PAUSE", 0.01)
    with FakeModelServer() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        running.reply = lambda sent, key: canned(sent)
        yield running


def canned(sent):
    shown = re.findall(r"<candidate_([A-J])>\n(.*?)\n</candidate_", sent["messages"][-1]["content"], re.S)
    order = [letter for letter, text in sorted(shown, key=lambda one: -len(one[1]))]
    schema = sent["response_format"]["json_schema"]["schema"]["required"]
    return Canned(200, chat(json.dumps({"ranking": order} if schema == ["ranking"] else {"answer": order[0]})))


@pytest.mark.parametrize("answer", ["pick", "rank"])
def test_the_longest_text_is_found_among_four_at_a_time(server, answer):
    problem = Problem.from_sets(list(TEXTS), show=4, answer=answer)
    loop = AskLoop(Session(problem, Winner(), seed=1), LanguageModel("judge-1", TEXTS, at_once=2), budget=100)
    loop.run()
    assert loop.session.verdict().best == "six"
    assert not loop.troubles
    told = [event for event in loop.session.log if event["event"] == "answer"]
    assert {len(event["answer"]) for event in told} == {1 if answer == "pick" else 3}
    assert json.loads(told[0]["raw"])  # the model's own words are kept


def test_from_the_command_line(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("items.csv").write_text(
        "item,text\n" + "".join(f"{name},{text}\n" for name, text in TEXTS.items()), encoding="utf-8"
    )
    result = CliRunner().invoke(app, ["find", "items.csv", "--llm", "judge-1", "--rank", "--json"])
    assert json.loads(result.stdout)["best"] == "six"
    loop = AskLoop(Session(Problem.from_sets(list(TEXTS)), seed=1), LanguageModel("judge-1", TEXTS, swap=True))
    with pytest.raises(InvalidInput, match="leave it out"):
        loop.run()
