"""The worlds of the study `ladder`, and that each policy gets those it can do."""

from typing import Any

import numpy as np
import pytest

from surepick_experiments.studies import Options
from surepick_experiments.studies.ladder import run_task, tasks
from surepick_experiments.worlds.preferences import CIRCLE, MISLEADING, PEOPLE, PLAIN, preferences


@pytest.mark.parametrize(("world", "items"), [(PLAIN, 5), (PEOPLE, 12), (MISLEADING, 10), (CIRCLE, 10)])
def test_every_world_has_a_winner_by_the_gap(world: str, items: int) -> None:
    made = preferences(world, items, 0.8, np.random.default_rng(4))
    assert np.allclose(made.chances + made.chances.T, 1)
    against_others = np.delete(made.chances[made.best], made.best)
    assert np.log(against_others.min() / (1 - against_others.min())) == pytest.approx(0.8, rel=0.1)


def test_the_circle_has_no_order() -> None:
    made = preferences(CIRCLE, 10, 1.0, np.random.default_rng(0))
    below = [item for item in range(10) if item != made.best]
    assert all((made.chances[item, below] > 0.5).sum() == 4 for item in below)


def test_judges_answer_by_the_pair_and_not_by_its_features() -> None:
    made = preferences(MISLEADING, 10, 1.0, np.random.default_rng(1))
    asked = np.full(45, 100_000)
    wins: Any = made.judge(0).wins(made.problem.measurements, asked)
    first, second = made.problem.about.T
    assert np.max(np.abs(wins / asked - made.chances[first, second])) < 0.01


def test_without_features_only_small_problems_are_given_to_the_feature_model() -> None:
    listed = tasks(Options(runs=1))
    assert {task["items"] for task in listed if task["world"] == PLAIN and "anytime" in task["policies"]} == {5, 10}
    assert {task["gap"] for task in tasks(Options(runs=1, gap=0.35))} == {0.35}
    assert {tuple(task["policies"]) for task in tasks(Options(runs=1, policies=("winner",)))} == {("winner",)}


def test_the_same_world_and_answers_whichever_policies_are_compared() -> None:
    (task,) = tasks(Options(runs=1, items=5, gap=1.0, policies=("winner",)))
    (row,) = run_task(task, np.random.default_rng(2))
    again, other = run_task(task | {"policies": ["winner", "anytime"]}, np.random.default_rng(2))
    assert row | {"seconds": 0} == again | {"seconds": 0}
    assert other["seed"] == row["seed"]
    assert row["ratio"] == row["questions"] / row["lower_bound"]
