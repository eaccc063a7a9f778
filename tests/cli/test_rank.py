"""`surepick rank`: table, JSON, figure and page."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.cli import app
from surepick.report.leaderboard_page import leaderboard_page
from surepick_experiments.benches.rank import draw_battles, write


@pytest.fixture(scope="module")
def battles(tmp_path_factory):
    """Twenty thousand votes on sixty items, as Arena writes them."""
    return write(draw_battles(20_000, seed=4), tmp_path_factory.mktemp("arena") / "battles.csv")


def run(*words: object):
    return CliRunner().invoke(app, ["rank", *map(str, words)], catch_exceptions=False)


def test_json_has_all_items_best_first_and_agrees_with_evalica(battles):
    evalica = pytest.importorskip("evalica")
    found = json.loads(run(battles, "--json").stdout)
    assert found["votes"] == 20_000
    assert found["left_out"] == []
    items = found["items"]
    assert {"item", "score", "low", "high", "rank_low", "rank_high", "guarantee"} <= set(items[0])
    words = {"model_a": evalica.Winner.X, "model_b": evalica.Winner.Y}
    firsts, seconds, said = zip(*draw_battles(20_000, seed=4), strict=True)
    winners = [words.get(word, evalica.Winner.Draw) for word in said]
    peer = np.log(evalica.bradley_terry(firsts, seconds, winners, tolerance=1e-14, limit=10**6).scores)
    peer = (peer - peer.mean()).sort_values(ascending=False)
    assert [row["item"] for row in items] == list(peer.index)
    assert max(abs(row["score"] - peer[row["item"]]) for row in items) < 1e-6
    assert all(row["low"] < row["score"] < row["high"] for row in items)
    assert all(1 <= row["rank_low"] <= row["rank_high"] <= 60 for row in items)
    assert {row["guarantee"] for row in items} == {"proved"}
    assert {row["interval_guarantee"] for row in items} == {"heuristic"}


def test_fixed_data_prove_more(battles):
    def width(data: str) -> float:
        items = json.loads(run(battles, "--data", data, "--json").stdout)["items"]
        return float(np.mean([row["rank_high"] - row["rank_low"] for row in items]))

    assert width("fixed") < 40 < width("adaptive")


def test_table_figure_and_page(tmp_path):
    names = [f"item-{number}" for number in range(6)]
    rows = [f"{one},{other},{word}" for one in names for other in names if one != other for word in "aab"]
    (tmp_path / "votes.csv").write_text("\n".join(["item_a,item_b,winner", *rows]))
    result = run(tmp_path / "votes.csv", "--plot", tmp_path / "board.svg", "--html", tmp_path / "board.html")
    assert "6 items, 90 votes" in result.stdout
    assert "heuristic" in result.stdout
    for file in ("board.svg", "board.html"):
        text = (tmp_path / file).read_text()
        assert all(name in text for name in names), file
    assert (tmp_path / "board.html").read_text().count("<svg") == 1


def test_items_give_labels_and_those_without_votes_are_listed(tmp_path):
    (tmp_path / "votes.csv").write_text("item_a,item_b,winner\n" + "r,b,a\n" * 40 + "b,r,a\nz,r,a\n")
    (tmp_path / "items.csv").write_text("item,label,colour\nr,Red & more,#ff0000\nb,Blue,#0000ff\ng,Green,#00ff00\n")
    words = (tmp_path / "votes.csv", "--items", tmp_path / "items.csv", "--html", tmp_path / "board.html", "--json")
    found = json.loads(run(*words).stdout)
    assert [(row["item"], row["rank_low"], row["rank_high"]) for row in found["items"]] == [
        ("r", 1, 2),
        ("b", 2, 3),
        ("g", 1, 3),
    ]
    assert found["items"][2]["score"] is None
    assert found["notes"] == ["g: no votes, so there is no score, and every rank is possible."]
    assert "there is no item 'z'" in found["left_out"][0]
    page = (tmp_path / "board.html").read_text()
    assert "Red &amp; more" in page
    assert "background:#ff0000" in page


def test_a_page_without_scores_and_a_figure_of_nothing(tmp_path):
    board = sp.rank_votes(sp.VoteCounts.of([("<b>", "c", "a")]))
    page = leaderboard_page(board)
    assert "&lt;b&gt;" in page
    assert "unbounded" in page
    assert "<svg" not in page
    (tmp_path / "votes.csv").write_text("item_a,item_b,winner\na,b,a\n")
    with pytest.raises(sp.InvalidInput, match="nothing to draw"):
        run(tmp_path / "votes.csv", "--plot", tmp_path / "board.png")


def test_davidson_and_half_wins_differ_where_ties_are_many(tmp_path):
    (tmp_path / "votes.csv").write_text("item_a,item_b,winner\n" + "r,b,a\n" * 30 + "b,r,a\n" * 10 + "r,b,tie\n" * 40)

    def score(ties: str) -> float:
        return json.loads(run(tmp_path / "votes.csv", "--ties", ties, "--json").stdout)["items"][0]["score"]

    assert 2 * score("davidson") == pytest.approx(np.log(3))
    assert 2 * score("half") == pytest.approx(np.log(5 / 3))
