"""The study `guess`: every method names an item after each number of questions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surepick.errors import InvalidInput
from surepick.glm.item_scores import FEATURE_SCALES, OWN_SCALES
from surepick_experiments.studies import Options, guess
from surepick_experiments.studies.guess import (
    DISGUISED,
    LOOK_ALIKE,
    METHODS,
    NEARLY,
    RECORDED,
    USELESS,
    FeaturesAlone,
    OwnScores,
    make_world,
    run_task,
    summarise,
    tasks,
)


@pytest.fixture(autouse=True)
def few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough to see that it works."""
    monkeypatch.setattr(guess, "AFTER", (10, 20, 60))


def test_all_methods_find_a_clear_winner() -> None:
    world = make_world(USELESS, 5, 4.0, None, np.random.default_rng(1))
    named = {name: METHODS[name](world, 2) for name in METHODS if name not in ("features alone", "top-two", "anytime")}
    assert {guesses[-1] for guesses in named.values()} == {world.best}
    assert all(len(METHODS[name](world, 2)) == 3 for name in ("features alone", "top-two", "anytime"))


@pytest.mark.parametrize("world", [USELESS, DISGUISED, NEARLY])
def test_the_best_is_ahead_by_the_gap(world: str) -> None:
    made = make_world(world, 15, 0.7, None, np.random.default_rng(3))
    least = float(np.delete(made.chances[made.best], made.best).min())
    assert np.log(least / (1 - least)) == pytest.approx(0.7)


def test_the_disguised_winner_is_hidden_from_the_features() -> None:
    made = make_world(DISGUISED, 15, 1.0, None, np.random.default_rng(4))
    scores = np.log(made.chances[:, 0] / (1 - made.chances[:, 0]))
    others = np.delete(np.arange(15), made.best)
    theta = np.linalg.lstsq(np.column_stack([made.problem.items[others], np.ones(14)]), scores[others], rcond=None)[0]
    told = made.problem.items @ theta[:-1] + theta[-1]
    assert np.allclose(told[others], scores[others])
    assert told[made.best] < scores[made.best] - 1


def test_half_beliefs() -> None:
    problem = make_world(DISGUISED, 12, 1.0, None, np.random.default_rng(5)).problem
    assert len(OwnScores().start(problem).scores.log_weights) == len(OWN_SCALES)
    trusting = FeaturesAlone().start(problem).scores
    own = trusting.variance - np.einsum("gii->gi", trusting.written - 0.1**2 * np.eye(12))
    assert len(trusting.mean) == sum(tau == 0.1 for _, tau in FEATURE_SCALES)
    assert np.allclose(own, 0.1**2)
    assert np.linalg.matrix_rank(trusting.written[0] - 0.1**2 * np.eye(12), tol=1e-6) == problem.items.shape[1]


def test_recorded_votes_answer_by_their_shares(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "my_items.csv").write_text("item,size,price\na,1,0\nb,2,1\nc,4,0\nd,3,5\n")
    votes = ["a,b,a"] * 3 + ["b,a,a"] + ["a,c,tie", "a,c,a", "c,b,a", "b,d,a"]
    (tmp_path / "set" / "my_answers.csv").write_text("\n".join(["item_a,item_b,winner", *votes]))
    made = make_world(RECORDED, 0, 0.0, str(tmp_path), np.random.default_rng(0))
    assert made.chances[0, 1] == 0.75
    assert made.chances[0, 2] == 0.75
    assert made.chances[1, 2] == 0
    assert 0.5 < made.chances[0, 3] < 1  # nobody voted on it; a beats b, and b beats d
    model = make_world(LOOK_ALIKE, 0, 0.0, str(tmp_path), np.random.default_rng(0))
    odds = np.log(model.chances / (1 - model.chances))
    assert np.allclose(odds[0, 1] + odds[1, 2], odds[0, 2])
    with pytest.raises(InvalidInput, match="has no file"):
        make_world(RECORDED, 0, 0.0, str(tmp_path / "nothing"), np.random.default_rng(0))


def test_rows_and_summary() -> None:
    (task, *_) = tasks(Options(runs=1, policies=("uniform", "own scores")))
    rows: list[dict[str, Any]] = run_task(task | {"items": 12, "world": USELESS}, np.random.default_rng(6))
    assert [row["after"] for row in rows] == [10, 20, 60] * 2
    assert all(row["correct"] == (row["behind"] == 0) for row in rows)
    (cell, _) = summarise(rows)["cells"]
    assert cell["right_60"] == float(rows[2]["correct"])
    with pytest.raises(InvalidInput, match="no method"):
        tasks(Options(policies=("nonsense",)))
    recorded = tasks(Options(runs=1, data="somewhere"))
    assert [task["world"] for task in recorded] == [RECORDED, LOOK_ALIKE]
