"""Votes: one reader, so every command uses the same rows and reports the same others."""

import json

import pytest
from typer.testing import CliRunner

from surepick import InvalidInput
from surepick.cli import app
from surepick.io.votes import read_votes

ITEMS = "item,size,price\na,0,0\nb,1,0\nc,0,1\ntwin of c,0,1\n"

PAIRS = [
    ("a,b,a", 1),
    ("a,b,B", 0),
    ("a,b,1.0", 1),
    ("a,b,0.0", 0),
    ("a,b,1", 1),
    ("a,b,True", 1),
    ("a,b,False", 0),
    ("b,c,b", 0),  # the word b, not the item of that name
    ("a,c,c", 0),
    ("a,b,model_a", 1),
    ("a,b,model_b", 0),
    ("a,b,first", 1),
    ("c,b,tie", "tie"),
    ("c,b,tie (bothbad)", "tie"),
    ("c,b,skip", None),
    ("a,b,left", "the answer must be"),
    ("a,b,2", "the answer must be"),
    ("a,b,", "neither a winner"),
    ("a,z,a", "there is no item 'z'"),
    ("a,a,a", "compared with itself"),
    ("c,twin of c,a", "their features are equal"),
    ("a,b", "2 cells where the first line names 3"),
]
"""Rows of a file, and the answer they are or why they are none."""

SINGLES = [
    ("a,yes", 1),
    ("b,no", 0),
    ("a,1.0", 1),
    ("b,0.0", 0),
    ("a,TRUE", 1),
    ("b,false", 0),
    ("a,skip", None),
    ("a,tie", "the answer must be"),
    ("z,yes", "there is no item 'z'"),
    ("a,", "neither a winner"),
]


@pytest.fixture(params=["item_a,item_b,winner", "model_a,model_b,winner", "item,answer"])
def votes(request, tmp_path):
    rows = SINGLES if request.param == "item,answer" else PAIRS
    (tmp_path / "items.csv").write_text(ITEMS)
    (tmp_path / "votes.csv").write_text("\n".join([request.param, *(row for row, _ in rows)]) + "\n")
    return tmp_path, [meaning for _, meaning in rows]


def surepick(*words: object) -> dict:
    result = CliRunner().invoke(app, [*map(str, words), "--json"], catch_exceptions=False)
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.stdout)


def reported(sentences: list[str]) -> dict[int, str]:
    return {int(sentence.split("line ")[1].split(":")[0]): sentence for sentence in sentences}


def test_every_command_uses_the_same_rows_and_reports_the_same_others(votes):
    folder, meanings = votes
    items, file = folder / "items.csv", folder / "votes.csv"
    (folder / "points.csv").write_text("item\na\n")
    used = {line: meaning for line, meaning in enumerate(meanings, 2) if meaning in (0, 1)}
    undecided = [line for line, meaning in enumerate(meanings, 2) if meaning in ("tie", None)]
    unusable = {line: meaning for line, meaning in enumerate(meanings, 2) if line not in used and line not in undecided}

    find = surepick("find", items, "--answers", file, "--drop-bad-rows")
    assert find["questions"] == len(used) + find["ties"]  # a tie is half a win
    assert find["ties"] + find["skips"] == len(undecided)
    warm = surepick("find", items, "--simulate", "--warm-start", file, "--budget", 1, "--drop-bad-rows")
    interval = surepick("interval", file, "--items", items, "--at", folder / "points.csv", "--drop-bad-rows")
    assert "twin of c" in items.read_text()
    for said in (find["left_out"], warm["left_out"], interval["left_out"]):
        known = {line: sentence for line, sentence in reported(said).items() if line not in undecided}
        assert set(known) == set(unusable)
        assert all(unusable[line] in sentence for line, sentence in known.items())
    assert set(undecided) <= set(reported(interval["left_out"]))  # no decision, so nothing for a model to fit
    words = ["interval", file, "--items", items, "--at", folder / "points.csv", "--drop-bad-rows"]
    assert f"{len(used)} answers" in CliRunner().invoke(app, list(map(str, words))).output


@pytest.mark.parametrize("command", ["find", "warm start", "interval", "limits"])
def test_a_file_without_a_usable_row_is_refused_by_every_command(tmp_path, command):
    items, file = tmp_path / "items.csv", tmp_path / "votes.csv"
    items.write_text(ITEMS)
    file.write_text("item_a,item_b,winner\na,b,left\nz,a,a\n")
    words = {
        "find": ["find", items, "--answers", file],
        "warm start": ["find", items, "--simulate", "--warm-start", file],
        "interval": ["interval", file, "--items", items, "--at", items],
        "limits": ["limits", items, "--answers", file],
    }[command]
    with pytest.raises(InvalidInput, match=r"no vote that can be used.* line 2: the answer must be"):
        CliRunner().invoke(app, [*map(str, words), "--drop-bad-rows"], catch_exceptions=False)
    with pytest.raises(InvalidInput, match=r"a row that cannot be used: line 2: the answer must be"):
        CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)


def test_votes_keep_their_order_their_judge_and_how_they_were_shown(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("item_a,item_b,winner,item,answer,judge\nb,a,a,,,ann\n,,,a,no,\na,b,b,,,bob\n")
    read = read_votes(file, ("a", "b"))
    assert [(vote.shown, vote.answer, vote.line, vote.judge) for vote in read.votes] == [
        (("b", "a"), 1, 2, "ann"),
        (("a",), 0, 3, None),
        (("a", "b"), 0, 4, "bob"),
    ]
    assert read.unused == ()
