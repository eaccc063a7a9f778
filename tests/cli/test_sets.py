"""Picks and rankings on the command line: simulated, by a program, recorded, and at the terminal."""

import json
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from surepick import InvalidInput, Session, verify_certificate
from surepick.cli import app
from surepick.io.votes import read_votes

ITEMS = "item,bright\nplum,2.5\nteal,1\nblue,0.5\nred,0\ngrey,-1\npink,-1.5\n"

JUDGE = """
import json, sys
bright = {"plum": 2.5, "teal": 1, "blue": 0.5, "red": 0, "grey": -1, "pink": -1.5}
for line in sys.stdin:
    q = json.loads(line)
    assert q["version"] == 1 and len(q["show"]) == len(q["items"])
    order = sorted(q["items"], key=lambda name: -bright[name])
    said = order[: q["top"]] if q["kind"] == "rank" else q["items"].index(order[0]) + 1
    print(json.dumps({"id": q["id"], "answer": said}), flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items.csv").write_text(ITEMS)
    (tmp_path / "judge.py").write_text(JUDGE)
    return tmp_path


def command(*words: str, typed: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(words), input=typed)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_simulated_rankings_have_a_certificate_and_a_report(folder: Path) -> None:
    words = ("find", "items.csv", "--simulate", "--rank", "--seed", "3", "--json", "--report", "r.html")
    code, shown, _ = command(*words, "--certificate", "c.json", "--ranks")
    fields = json.loads(shown)
    assert (code, fields["best"]) == (0, fields["truth"])
    assert verify_certificate(json.loads(Path("c.json").read_text(encoding="utf-8"))).best == fields["best"]
    assert [claim["assume"] for claim in fields["claims"]] == ["winner", "features"]
    assert "at least as likely to be picked" in fields["claims"][0]["assumption"]
    assert Path("r.html").stat().st_size > 1000


@pytest.mark.parametrize("options", [("--rank",), ("--rank", "--top", "2"), ("--pick", "--show", "3")])
def test_a_program_is_shown_several_items(folder: Path, options: tuple[str, ...]) -> None:
    words = ("find", "items.csv", "--judge", f"{sys.executable} judge.py", "--state", "log.jsonl", *options)
    code, shown, _ = command(*words, "--json")
    assert (code, json.loads(shown)["best"]) == (0, "plum")
    answers = [event["answer"] for event in Session.resume("log.jsonl").log if event["event"] == "answer"]
    assert {len(answer) for answer in answers} == {1 if "--pick" in options else 2 if "--top" in options else 3}


def test_recorded_rankings_of_any_format(folder: Path) -> None:
    sets = [["plum", "teal", "blue", "red"], ["grey", "plum", "pink", "teal"], ["red", "grey", "plum", "blue"]] * 14
    order = ["plum", "teal", "blue", "red", "grey", "pink"]
    rows = [{"items": shown, "ranking": sorted(shown, key=order.index)} for shown in sets]
    Path("v.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(rows), "v.parquet")
    lines = ["items,ranking"] + ["|".join(row["items"]) + "," + " > ".join(row["ranking"][:2]) for row in rows]
    Path("v.csv").write_text("\n".join([*lines, "plum|teal|blue,plum", "plum|teal|blue|mauve,plum"]), encoding="utf-8")
    for name in ("v.jsonl", "v.parquet", "v.csv"):
        code, shown, _ = command("find", "items.csv", "--answers", name, "--rank", "--json")
        fields = json.loads(shown)
        assert (code, fields["best"]) == (0, "plum"), name
    told = " ".join(fields["left_out"])
    assert "line 45: there is no item 'mauve'" in told
    assert "line 44: shows 3 items, and this search shows 4" in told
    with pytest.raises(InvalidInput, match="has picks or rankings of several items; use --pick or --rank"):
        command("find", "items.csv", "--answers", "v.csv")
    with pytest.raises(InvalidInput, match="in the order of the file"):
        command("find", "items.csv", "--answers", "v.csv", "--rank", "--order", "policy")
    with pytest.raises(InvalidInput, match="no pick or ranking of 5 items"):
        command("find", "items.csv", "--answers", "v.csv", "--rank", "--show", "5")


def test_rows_of_rankings_in_the_documentation_are_read(folder: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "votes.md").read_text(encoding="utf-8")
    found = re.findall(r"<!-- rankings: (\S+); total (\d+); places (.*?) -->\n```text\n(.*?)```", text, re.S)
    assert len(found) == 2
    for name, total, places, content in found:
        Path(name).write_text(content, encoding="utf-8")
        votes = read_votes(name, ["red", "blue", "teal", "plum"]).votes
        assert len(votes) == int(total)
        assert [len(vote.answer) if isinstance(vote.answer, tuple) else 0 for vote in votes] == [
            int(place) for place in places.split(", ")
        ]


def test_a_person_types_numbers_in_order(folder: Path) -> None:
    # No two items are shown together twice, so it takes several items for several questions.
    more = "".join(f"shade {number},{number / 10}\n" for number in range(14))
    Path("items.csv").write_text(ITEMS + more, encoding="utf-8")
    _, _, asked = command("ask", "items.csv", "--rank", "--state", "log.jsonl", typed="3142\nu\n31\n9\nt\n2\nq\n")
    assert "In which order do you like them" in asked
    assert "'9' is not a number that is left" in asked
    log = [event for event in Session.resume("log.jsonl").log if event["event"] in ("answer", "tie")]
    assert [event.get("answer", "tie") for event in log] == [[3, 1], "tie", [2]]


def test_options_that_do_not_go_together_are_refused(folder: Path) -> None:
    for words, why in (
        (("--pick", "--rank"), "choose one of them"),
        (("--pick", "--top", "2"), "give --rank as well"),
        (("--rank", "--kind", "items"), "leave these out"),
        (("--rank", "--show", "9"), "got 9"),
        (("--rank", "--policy", "rage-glm", "--kappa", "0.1"), "by the policy winner, not by rage-glm"),
    ):
        with pytest.raises(InvalidInput, match=why):
            command("find", "items.csv", "--simulate", *words)
