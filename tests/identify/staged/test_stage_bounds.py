"""What an answered stage proves, and how large it must be."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from surepick.confidence.theorem import Budget, radii
from surepick.glm import probability_of_yes, variance
from surepick.identify.staged.stage_bounds import best_budget, level, smallest_stage, stage_bounds
from surepick.judges import World
from surepick_experiments.worlds import soare


def small_stage(seed: int, *, scale: float = 1.0) -> tuple[World, np.ndarray, np.ndarray, np.ndarray, Budget]:
    """Answers to a design for which the theorem applies, barely."""
    world = soare(3)
    rows = world.problem.rows
    budget = best_budget(delta=0.2, rank=3, xi=0.08, asked_lines=4, query_lines=3)
    pulls = np.full(len(rows), int(1500 * scale))
    wins = np.random.default_rng(seed).binomial(pulls, probability_of_yes(rows @ world.theta))
    return world, np.arange(len(rows)), pulls, wins, budget


def test_widths_and_floors_hold_as_often_as_promised() -> None:
    failed, control, runs = 0, 0, 120
    for seed in range(runs):
        world, asked, pulls, wins, budget = small_stage(seed)
        floors = np.full(len(asked), world.kappa)
        proved = stage_bounds(world.problem.rows, asked, pulls, wins, floors, budget)
        assert proved is not None
        best = int(np.argmax(world.scores))
        away = world.problem.points[best] - np.delete(world.problem.points, best, axis=0)
        error = np.abs(away @ (proved.estimate.theta - world.theta))
        width = np.linalg.norm(proved.estimate.white(away), axis=1)
        true = variance(world.problem.rows @ world.theta)
        failed += bool(np.any(error > width) or np.any(proved.floors > true * (1 + 1e-9)))
        control += bool(np.any(error > width / 4))
    # One false alarm in a thousand if the truth were delta = .2; the fourth of the width must be caught.
    assert binom.sf(failed - 1, runs, 0.2) > 1e-3
    assert binom.sf(control - 1, runs, 0.2) < 1e-3


def test_floors_only_rise_and_vectors_outside_the_span_keep_theirs() -> None:
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    budget = best_budget(delta=0.1, rank=1, xi=0.1, asked_lines=1, query_lines=1)
    floors = np.array([0.05, 0.07, 0.02])
    proved = stage_bounds(rows, np.array([0]), np.array([20_000]), np.array([11_000]), floors, budget)
    assert proved is not None
    assert proved.floors[0] > 0.2
    np.testing.assert_array_equal(proved.floors[1:], floors[1:])
    assert not proved.estimate.span.is_full


def test_nothing_is_proved_without_a_burn_in_or_an_estimate() -> None:
    world, asked, _, _, budget = small_stage(0)
    floors = np.full(len(asked), world.kappa)
    few = np.full(len(asked), 5)
    assert stage_bounds(world.problem.rows, asked, few, few // 2, floors, budget) is None
    many = np.full(len(asked), 5000)
    assert stage_bounds(world.problem.rows, asked, many, many, floors, budget) is None  # all ones: separated


def test_smallest_stage_is_enough_and_not_much_more() -> None:
    budget = best_budget(delta=0.05, rank=5, xi=0.05, asked_lines=10, query_lines=20)
    questions = smallest_stage(5, budget, longest=40.0, value=3.0, target=0.1)

    def width(n: float) -> float:
        reached = radii(math.sqrt(40.0 / n), 5, budget)
        return math.inf if reached is None else reached.query * math.sqrt(3.0 / n)

    assert width(questions) <= 0.1
    assert width(0.97 * questions) > 0.1


def test_levels_sum_to_delta() -> None:
    assert sum(level(0.05, number) for number in range(100_000)) == pytest.approx(0.05, rel=1e-4)
