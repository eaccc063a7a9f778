"""Designs at the edges: the command and the bench."""

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from surepick.cli import app, main
from surepick.design import pairs_optimal
from surepick_experiments.benches import BENCHES
from surepick_experiments.benches.design import draw_growth, frank_wolfe, mirror_descent

SHOP = "item,label,price,size,stars\na,x,1,2,5\nb,y,2,1,4\nc,z,0.5,3,3\nd,w,2,2,2\ne,v,1.5,0.3,1\n"


@pytest.fixture
def shop(tmp_path):
    path = tmp_path / "shop.csv"
    path.write_text(SHOP)
    return path


def run(*words):
    result = CliRunner().invoke(app, ["design", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_design_json_has_the_stable_fields(shop):
    fields = json.loads(run(shop, "--ask", "items", "--n", 50, "--json"))
    assert {"criterion", "value", "lower_bound", "gap", "support", "weights", "counts", "seconds", "status"} <= set(
        fields
    )
    assert (fields["criterion"], fields["status"]) == ("pairs", "converged")
    assert fields["lower_bound"] <= fields["value"] <= 1.01 * fields["lower_bound"]
    assert sum(fields["counts"]) == 50
    assert set(fields["support"]) <= set("abcde")
    items = np.array([[1, 2, 5], [2, 1, 4], [0.5, 3, 3], [2, 2, 2], [1.5, 0.3, 1]])
    assert fields["value"] == pytest.approx(pairs_optimal(items, items).value)


def test_design_of_comparisons_names_pairs_and_draws_them(shop, tmp_path):
    picture = tmp_path / "weights.png"
    shown = run(shop, "--n", 100, "--plot", picture)
    assert "100 questions in whole numbers" in shown
    assert " − " in shown
    assert picture.stat().st_size > 5000
    fields = json.loads(run(shop, "--criterion", "d", "--json"))
    assert all(len(pair) == 2 for pair in fields["support"])
    assert fields["counts"] is None


def test_design_for_the_best_item_and_for_given_points(shop, tmp_path):
    fields = json.loads(run(shop, "--criterion", "gap", "--score", "stars", "--json"))
    assert fields["criterion"] == "gap"
    for text in ("item_a,item_b\na,b\n", "item\na\nc\n", "price,size,stars\n1,1,1\n"):
        points = tmp_path / "points.csv"
        points.write_text(text)
        fields = json.loads(run(shop, "--criterion", "xy", "--ask", "items", "--at", points, "--json"))
        assert fields["status"] == "converged"


def test_items_without_features_are_compared_equally_often(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("item\n" + "\n".join("abcdef"))
    fields = json.loads(run(path, "--json"))
    assert fields["weights"] == pytest.approx([1 / 15] * 15)


def test_fewer_questions_than_points_reduce_the_support_first(tmp_path):
    rng = np.random.default_rng(1)
    path = tmp_path / "many.csv"
    rows = "\n".join(f"i{place}," + ",".join(map(str, row)) for place, row in enumerate(rng.normal(size=(60, 4))))
    path.write_text("item,a,b,c,d\n" + rows)
    whole = json.loads(run(path, "--criterion", "d", "--gap", 0.1, "--json"))
    assert len(whole["support"]) > 12
    fields = json.loads(run(path, "--criterion", "d", "--gap", 0.1, "--n", 12, "--json"))
    assert len(fields["support"]) <= 4 * 5 // 2 + 1
    assert sum(fields["counts"]) == 12


def test_not_reaching_the_gap_is_exit_code_one(shop):
    words = ["design", str(shop), "--ask", "items", "--gap", "1e-9", "--max-seconds", "1e-9"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert "was not reached" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        (SHOP, ("--n", "1"), "cannot cover"),
        (SHOP, ("--criterion", "xy"), "needs --at FILE"),
        (SHOP, ("--criterion", "gap"), "needs --score COLUMN"),
        (SHOP + "a,x,1,1,1\n", (), "lists the item 'a' more than once"),
        ("item,x\na,1\nb,1\n", (), "are the same"),
        ("item,x\na,1\nb,\n", (), "line 3"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(tmp_path, capsys, monkeypatch, text, words, sentence):
    path = tmp_path / "items.csv"
    path.write_text(text)
    monkeypatch.setattr(sys, "argv", ["surepick", "design", str(path), *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert sentence in capsys.readouterr().err


def test_the_bench_runs_and_its_conic_rival_agrees(tmp_path):
    rows = BENCHES["design"](quick=True)
    assert all({"case", "ours_seconds", "peer", "peer_seconds", "ratio"} <= set(row) for row in rows)
    conic = next(row for row in rows if row["peer"].startswith("cvxpy"))
    assert abs(conic["difference"]) < 1e-3
    draw_growth(rows, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 5000


@pytest.mark.parametrize("method", [frank_wolfe, mirror_descent])
def test_the_dense_baselines_are_no_straw_men(method):
    """They come close within a second, and what they prove is true."""
    x = np.random.default_rng(0).normal(size=(30, 2))
    ours = pairs_optimal(x, x, gap=1e-4)
    run = method(x, x, gap=1e-9, patience=1.0)
    assert ours.lower_bound <= run.value <= 1.05 * ours.value
    assert 0.5 * ours.value <= run.bound <= ours.value
