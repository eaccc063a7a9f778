"""The command line: what people type, what they see, and how it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from surepick import __version__
from surepick.cli import app, main
from surepick.registry import METHODS

EXAMPLES = Path(__file__).parents[2] / "examples"
CLICKS = [str(EXAMPLES / "clicks.csv"), "--at", str(EXAMPLES / "clicks_points.csv")]


def surepick(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def refused(capsys, monkeypatch, *words: str) -> str:
    """Run through the entry point; return the one sentence on standard error."""
    monkeypatch.setattr(sys, "argv", ["surepick", *words])
    with pytest.raises(SystemExit) as exit_code:
        main()
    assert exit_code.value.code == 2
    return capsys.readouterr().err


def test_interval_table_names_methods_and_guarantees():
    shown = surepick("interval", *CLICKS, "--data", "fixed")
    for word in ("32,000 answers", "corrected", "anytime", "wald", "proved", "heuristic", "short"):
        assert word in shown


def test_interval_json_has_the_stable_fields():
    fields = json.loads(
        surepick("interval", *CLICKS, "--data", "fixed", "--method", "all", "--norm-bound", "3", "--json")
    )
    assert [method["name"] for method in fields["methods"]] == list(METHODS)
    assert fields["fit"]["status"] == "converged"
    assert fields["fit"]["gap"] < 1e-6
    assert fields["d"] == 4
    assert 0 < fields["xi"] < 1
    for method in fields["methods"]:
        assert set(method) >= {"name", "guarantee", "valid", "reason", "intervals"}
        assert method["valid"] == (method["reason"] == "")
        for interval in method["intervals"]:
            if method["valid"]:
                assert interval["low"] <= interval["centre"] <= interval["high"]
            else:
                assert interval["low"] is None or interval["guarantee"] != "proved"


def test_counts_without_order_are_not_proved_for_adaptive_data():
    fields = json.loads(surepick("interval", *CLICKS, "--json"))
    anytime = next(method for method in fields["methods"] if method["name"] == "anytime")
    assert not anytime["valid"]
    assert "order" in anytime["reason"]


def test_interval_draws_a_picture(tmp_path):
    picture = tmp_path / "deep" / "intervals.svg"
    surepick("interval", *CLICKS, "--data", "fixed", "--plot", str(picture))
    assert "corrected" in picture.read_text()


@pytest.fixture
def votes(tmp_path):
    """Items, votes between them with a tie and a skip, and pairs to look at."""
    (tmp_path / "items.csv").write_text("item,label,size,price\na,A,1,0\nb,B,0,1\nc,C,1,1\n")
    lines = ["item_a,item_b,winner,judge"]
    lines += [f"a,b,{'a' if i % 3 else 'b'},7\nb,c,{'a' if i % 4 else 'b'},8" for i in range(60)]
    (tmp_path / "votes.csv").write_text("\n".join([*lines, "a,c,tie,7", "a,c,skip,7"]) + "\n")
    (tmp_path / "pairs.csv").write_text("item_a,item_b\na,b\nb,c\n")
    return tmp_path


def test_votes_between_items(votes):
    words = [str(votes / "votes.csv"), "--items", str(votes / "items.csv"), "--at", str(votes / "pairs.csv"), "--json"]
    fields = json.loads(surepick("interval", *words))
    assert fields["points"] == ["a − b", "b − c"]
    file = votes / "votes.csv"
    assert fields["left_out"] == [f"{file}, line 122: tie.", f"{file}, line 123: skip."]
    first, second = next(m for m in fields["methods"] if m["name"] == "anytime")["intervals"]
    assert first["low"] < first["centre"] < first["high"]
    assert 0 < second["low"] < second["centre"] < second["high"]


def test_raw_rows_without_an_answer_are_reported(tmp_path):
    (tmp_path / "raw.csv").write_text("x,answer\n" + "1,True\n1,0.0\n" * 30 + "1,maybe\n1,skip\n1\n")
    (tmp_path / "at.csv").write_text("x\n1\n")
    fields = json.loads(
        surepick("interval", str(tmp_path / "raw.csv"), "--at", str(tmp_path / "at.csv"), "--json", "--drop-bad-rows")
    )
    lines = sorted(int(sentence.split("line ")[1].split(":")[0]) for sentence in fields["left_out"])
    assert lines == [62, 63, 64]


def test_raw_rows_are_read_in_order(tmp_path):
    (tmp_path / "raw.csv").write_text("x,answer\n" + "1,yes\n1,no\n1,1\n1,0\n" * 30)
    (tmp_path / "at.csv").write_text("x\n1\n2\n")
    fields = json.loads(surepick("interval", str(tmp_path / "raw.csv"), "--at", str(tmp_path / "at.csv"), "--json"))
    one, two = next(m for m in fields["methods"] if m["name"] == "anytime")["intervals"]
    assert one["low"] < 0 < one["high"]
    assert two["high"] == pytest.approx(2 * one["high"], rel=1e-3)


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        (
            "votes.csv",
            "item_a,item_b,winner\na,b,left\n",
            "line 2: the answer must be a, b, tie, skip, a number from 0 to 1,",
        ),
        ("votes.csv", "item_a,item_b,winner\na,z,a\n", "line 2: there is no item 'z'"),
        ("votes.csv", "item_a,item_b,winner\na,b,tie\n", "no decisive answer"),
        ("items.csv", "item,size,price\na,1,0\na,0,1\n", "line 3: the item 'a' was already on line 2"),
        ("items.csv", "item,size,price\na,1,0\nb,big,2\nc,2,3\n", "line 3: item 'b' has 'big' for the number 'size'"),
        ("pairs.csv", "size\n1\n", "lacks the feature column 'price'"),
    ],
)
def test_bad_files_get_one_sentence(votes, capsys, monkeypatch, file, text, sentence):
    (votes / file).write_text(text)
    words = [str(votes / "votes.csv"), "--items", str(votes / "items.csv"), "--at", str(votes / "pairs.csv")]
    said = refused(capsys, monkeypatch, "interval", *words)
    assert sentence in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["interval", *CLICKS, "--delta", "1.5"], "delta must lie strictly between 0 and 1, got 1.5"),
        (["interval", *CLICKS, "--method", "magic"], "method must be one of"),
        (["interval", *CLICKS, "--data", "fixed", "--kappa", "0.3"], "kappa"),
        (["interval", *CLICKS, "--plot", "figure.doc"], ".png, .svg or .pdf"),
        (["study", "nothing"], "There is no study 'nothing'; choose one of"),
        (["study", "coverage", "--dims", "two"], "--dims takes whole numbers"),
        (["study", "coverage", "--runs", "0"], "--runs must be at least 1, got 0"),
    ],
)
def test_bad_options_get_one_sentence(capsys, monkeypatch, words, sentence):
    assert sentence in refused(capsys, monkeypatch, *words)


def test_the_installed_command_starts():
    script = Path(sys.executable).parent / "surepick"
    shown = subprocess.run([script, "--help"], capture_output=True, text=True, check=True).stdout
    assert "interval" in shown
    assert "study" in shown


@pytest.fixture
def catalogue(tmp_path):
    (tmp_path / "items.csv").write_text("item,size,price\na,1,0\nb,0,1\nc,1,1\nd,0.2,0.3\n")
    (tmp_path / "theta.csv").write_text("feature,theta\nprice,-0.5\nsize,1.0\n")
    votes = ["a,b,a", "a,b,a", "a,b,b", "c,a,b", "c,a,a", "b,d,b", "b,d,a", "d,c,a", "d,c,b"]
    (tmp_path / "votes.csv").write_text("item_a,item_b,winner\n" + "\n".join(votes) + "\n")
    return tmp_path


def test_limits_table_and_json_agree(catalogue):
    words = ["limits", str(catalogue / "items.csv"), "--theta", str(catalogue / "theta.csv")]
    words += ["--policies", "uniform", "--runs", "2", "--price", "0.5"]
    fields = json.loads(surepick(*words, "--json"))
    assert fields["best"] == "a"
    assert fields["guarantee"] == "proved"
    assert 0 <= fields["gap"] <= 0.01
    assert fields["lower_bound"] <= fields["lower_bound_at_most"]
    assert fields["measurements"] == 6
    assert {each["name"] for each in fields["formulas"]} == {"rage-glm", "rage-glm-2", "gl-gape", "g-optimal"}
    (simulated,) = fields["forecasts"]
    assert simulated["policy"] == "uniform"
    assert simulated["ratio"] > 1
    assert simulated["cost"] == pytest.approx(simulated["questions"] / 2)
    assert all((each["ratio"] is None) == each["order_only"] for each in fields["formulas"])
    shown = surepick(*words, "--plot", str(catalogue / "limits.png"))
    assert fields["lower_bound"] < fields["shared_error_bound"] < fields["winner_shared_error_bound"]
    assert fields["winner_lower_bound"] < fields["winner_shared_error_bound"]
    assert f"at least {fields['shared_error_bound']:,.1f}" in " ".join(shown.split())
    assert (catalogue / "limits.png").stat().st_size > 1000


def test_limits_from_answers_are_called_heuristic(catalogue):
    words = [
        "limits",
        str(catalogue / "items.csv"),
        "--answers",
        str(catalogue / "votes.csv"),
        "--json",
        "--policies",
        "",
    ]
    fields = json.loads(surepick(*words))
    assert fields["guarantee"] == "heuristic"
    assert fields["assumed"] == "estimate"


@pytest.mark.parametrize(
    ("theta", "options", "sentence"),
    [
        ("feature,theta\nprice,0\nsize,1\n", [], "Items a and c tie for the best under theta"),
        ("feature,theta\nsize,1\n", [], "one number for each of the 2 features, got 1"),
        ("feature,theta\nsize,1\nweight,2\n", [], "line 3: the items have no feature 'weight'"),
        ("feature,theta\nsize,1\nsize,2\n", [], "line 3: feature 'size' is listed twice"),
        ("feature,theta\nprice,-0.5\nsize,1\n", ["--delta", "0.55"], "delta must be below 0.5"),
        ("feature,theta\nprice,-0.5\nsize,1\n", ["--answers", "votes.csv"], "Pass either --theta FILE"),
    ],
)
def test_impossible_limits_get_one_sentence(catalogue, capsys, monkeypatch, theta, options, sentence):
    (catalogue / "theta.csv").write_text(theta)
    words = [str(catalogue / "items.csv"), "--theta", str(catalogue / "theta.csv"), *options]
    said = refused(capsys, monkeypatch, "limits", *words)
    assert sentence in said
    assert said.count("\n") == 1


def test_the_version_is_printed():
    assert CliRunner().invoke(app, ["--version"]).stdout == f"surepick {__version__}\n"
