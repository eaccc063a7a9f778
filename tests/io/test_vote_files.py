"""Every example of docs/votes.md is read as the page says; JSON, Parquet and long files are read row by row."""

import json
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.cli import app
from surepick.io.tables import read_table
from surepick.io.votes import read_votes
from surepick_experiments.benches.rank import draw_battles, write

PAGE = (Path(__file__).parents[2] / "docs" / "votes.md").read_text()
EXAMPLES = re.findall(r"<!-- votes: (\S+); (.*?) -->\n```text\n(.*?)```", PAGE, re.DOTALL)
"""Name of the file, what the page says about it, and the file."""


def test_the_page_shows_the_formats_of_all_tools():
    assert [name for name, _, _ in EXAMPLES] == [
        "words.csv",
        "sheet.csv",
        "battles.jsonl",
        "battles.csv",
        "label_studio.json",
        "argilla.json",
        "argilla_flat.jsonl",
        "promptfoo.json",
        "inspect.json",
        "deepeval.jsonl",
    ]


@pytest.mark.parametrize(("name", "said", "text"), EXAMPLES, ids=[name for name, _, _ in EXAMPLES])
def test_an_example_of_the_page_gives_the_stated_counts(tmp_path, name, said, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    votes = sp.count_votes(tmp_path / name, drop_bad_rows=True)
    number = {item: place for place, item in enumerate(votes.names)}
    stated = {"left out": 0, "skips": 0, "wins": 0, "ties": 0, "total": 0}
    for phrase in said.split("; "):
        *words, count = phrase.split()
        if words[0] in ("wins", "ties") and len(words) > 1:
            kind, one, _, other = words
            assert getattr(votes, kind)[number[one], number[other]] == int(count), phrase
            stated[kind] += int(count)
        else:
            stated[" ".join(words)] = int(count)
    assert votes.total == stated["total"]
    assert votes.skips == stated["skips"]
    assert len(votes.unused) == stated["left out"]
    if name != "words.csv":  # nothing beyond what the page lists
        assert votes.wins.sum() + votes.ties.sum() // 2 == stated["wins"] + stated["ties"]
        # The same file is read by the commands that need the votes in their order.
        read = read_votes(tmp_path / name, votes.names)
        assert len(read.votes) == votes.total + votes.skips
        assert read.votes[0].judge or name == "battles.csv"


def test_the_page_shows_what_is_reported(tmp_path):
    (tmp_path / "words.csv").write_text(EXAMPLES[0][2])
    reported = [
        sentence.replace(f"{tmp_path}/", "")
        for sentence in sp.count_votes(tmp_path / "words.csv", drop_bad_rows=True).unused
    ]
    assert "\n".join(reported) in PAGE


def test_all_formats_give_the_same_counts(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(1)
    names, words = np.array(["gpt", "llama", "mixtral"]), np.array(["model_a", "model_b", "tie", "tie (bothbad)"])
    first = rng.integers(3, size=2000)
    columns = {
        "model_a": names[first].tolist(),
        "model_b": names[(first + rng.integers(1, 3, size=2000)) % 3].tolist(),
        "winner": words[rng.integers(4, size=2000)].tolist(),
    }
    rows = list(zip(*columns.values(), strict=True))
    csv, lines, array = (tmp_path / f"votes.{ending}" for ending in ("csv", "jsonl", "json"))
    csv.write_text("\n".join(map(",".join, [tuple(columns), *rows])))
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    lines.write_text("\n".join(map(json.dumps, records)))
    array.write_text(json.dumps(records))
    parquet.write_table(pyarrow.table(columns | {"turn": [1] * 2000}), tmp_path / "votes.parquet")
    direct = sp.VoteCounts.of(rows)
    for path in (csv, lines, array, tmp_path / "votes.parquet"):
        found = sp.count_votes(path)
        assert found.names == direct.names
        assert np.array_equal(found.wins, direct.wins)
        assert np.array_equal(found.ties, direct.ties)
        assert len(read_table(path)) == 2000


def test_more_votes_of_the_same_kinds_take_less_memory_than_their_rows(tmp_path):
    battles, peaks, sizes = draw_battles(500, seed=1), [], []
    for times in (4, 40):
        path = write(battles * times, tmp_path / f"{times}.csv")
        tracemalloc.start()
        assert sp.count_votes(path).total == 500 * times
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        sizes.append(path.stat().st_size)
    assert peaks[1] - peaks[0] < 0.5 * (sizes[1] - sizes[0])


def test_an_output_of_promptfoo_is_named_by_what_differs(tmp_path):
    def result(provider, prompt, *, best):
        selected = {"pass": best, "assertion": {"type": "select-best"}}
        return {
            "testIdx": 0,
            "provider": {"id": provider},
            "prompt": {"label": prompt},
            "gradingResult": {"componentResults": [selected]},
        }

    for outputs, names in (
        ([("m1", "p", True), ("m2", "p", False)], ("m1", "m2")),
        ([("m1", "p", False), ("m2", "q", True)], ("m1, p", "m2, q")),
    ):
        results = [result(provider, prompt, best=best) for provider, prompt, best in outputs]
        (tmp_path / "results.json").write_text(json.dumps({"results": {"results": results}}))
        votes = sp.count_votes(tmp_path / "results.json")
        winner = next(place for place, output in enumerate(outputs) if output[2])
        assert votes.names == names
        assert votes.wins[winner, 1 - winner] == votes.total == 1


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("votes.csv", "", "is empty"),
        ("votes.csv", "item_a,item_b,winner\n", "no rows that can be read"),
        ("votes.csv", "left,right,winner\na,b,a\n", "does not name the items"),
        ("votes.csv", "item_a,item_b,winner\na,b,left\n", "a row that cannot be used: line 2: the answer must be"),
        ("votes.csv", "item,answer\na,yes\n", "line 2: an answer about one item; a leaderboard needs comparisons"),
        ("votes.jsonl", "{}\n", "does not name the items"),
        ("votes.jsonl", "[1]\n{\n", "no rows that can be read"),
        ("votes.json", '{"a": 1}', "must hold one JSON array of records.*got dict"),
        ("votes.json", "[", "is not a JSON file"),
        ("votes.json", '{"results": {"results": []}}', "no rows that can be read"),
        ("votes.jsonl", '{"contestants": ["a", "b", "c"], "winner": "a"}', "does not name the items of its votes"),
    ],
)
def test_unusable_files_are_refused_with_a_reason(tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    with pytest.raises(sp.InvalidInput, match=sentence):
        sp.count_votes(tmp_path / name)


def test_files_that_do_not_exist_are_refused(tmp_path):
    for name in ("nothing.csv", "nothing.json", "nothing.jsonl", "nothing.parquet"):
        with pytest.raises(sp.InvalidInput, match="There is no file"):
            sp.count_votes(tmp_path / name)


def test_a_line_that_is_no_json_is_reported(tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_text(
        '{"item_a": "a", "item_b": "b", "winner": 1}\n\nnot json\n{"item_a": "a", "item_b": "b", "winner": 2}\n'
    )
    with pytest.raises(sp.InvalidInput, match=r"2 rows that cannot be used \(lines 3, 4\); the first is line 3: not a"):
        sp.count_votes(path)
    votes = sp.count_votes(path, drop_bad_rows=True)
    assert votes.total == 1
    assert "line 3: not a JSON record" in votes.unused[0]
    assert "line 4: the answer must be" in votes.unused[1]
    with pytest.raises(sp.InvalidInput, match="line 3: not a JSON record"):
        read_table(path)


def surepick(*words: object) -> dict:
    result = CliRunner().invoke(app, [*map(str, words), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


VOTES = """item_a,item_b,winner
red,blue,a
blue,red,a
red,green,a
green,red,tie
green,blue,a
blue,green,a
red,green,b
"""


@pytest.mark.parametrize("items", ["", "item,label\nred,Red\nblue,Blue\ngreen,Green\n"])
def test_intervals_of_items_without_features(tmp_path, items):
    """Scores against the mean of all items, and differences, as fitted with one coordinate per item."""
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "items.csv").write_text(items)
    (tmp_path / "one.csv").write_text("item\nred\nblue\ngreen\n")
    (tmp_path / "two.csv").write_text("item_a,item_b\nred,blue\n")
    more = ["--items", tmp_path / "items.csv"] if items else []
    one, two = (
        surepick("interval", tmp_path / "votes.csv", "--at", tmp_path / name, "--method", "anytime,wald", *more)
        for name in ("one.csv", "two.csv")
    )
    decisive = [row.split(",") for row in VOTES.splitlines()[1:] if "tie" not in row]
    board = {row.item: row.score for row in sp.rank_votes(sp.VoteCounts.of(decisive)).rows}
    centres = [interval["centre"] for interval in one["methods"][1]["intervals"]]
    assert centres == pytest.approx([board["red"], board["blue"], board["green"]], abs=1e-6)
    assert two["methods"][1]["intervals"][0]["centre"] == pytest.approx(board["red"] - board["blue"], abs=1e-6)
    proved = one["methods"][0]
    assert proved["guarantee"] == "proved"
    assert all(
        interval["low"] < centre < interval["high"]
        for interval, centre in zip(proved["intervals"], centres, strict=True)
    )
    assert one["d"] == 2


def test_yes_and_no_about_items_without_features(tmp_path):
    (tmp_path / "votes.csv").write_text("item,answer\n" + "red,yes\n" * 3 + "red,no\nblue,no\nblue,yes\n")
    (tmp_path / "at.csv").write_text("item\nred\nblue\n")
    found = surepick("interval", tmp_path / "votes.csv", "--at", tmp_path / "at.csv", "--method", "wald")
    centres = [interval["centre"] for interval in found["methods"][0]["intervals"]]
    assert centres == pytest.approx([np.log(3), 0.0], abs=1e-6)
