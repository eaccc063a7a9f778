"""The study `bounds`: no policy and no method that is told the truth beats the lower bounds on average."""

from pathlib import Path

import numpy as np

from surepick.identify import Problem, Winner, run
from surepick.limits import Instance, lower_bound, shared_error_bound, winner_shared_error_bound
from surepick_experiments.studies import Options, find_study, run_study
from surepick_experiments.studies.told import told_features, told_leader, told_winner
from surepick_experiments.worlds.preferences import PLAIN, preferences


def test_being_told_all_probabilities_saves_all_but_the_bound() -> None:
    """Between the bound and a quarter more, so a bound a quarter higher would be caught; errors of means are 1%."""
    for seed in range(3):
        chances = preferences(PLAIN, 8, 1.0, np.random.default_rng(seed)).chances
        shared = winner_shared_error_bound(chances, delta=0.05)
        told = told_winner(chances, delta=0.05, runs=1000, rng=np.random.default_rng(seed))
        assert shared < told < 1.25 * shared


def test_being_told_the_leader_is_worth_less_than_all_probabilities_unless_they_are_equal() -> None:
    equal = np.full((5, 5), 0.5)
    equal[0, 1:], equal[1:, 0] = 0.75, 0.25
    known = told_winner(equal, delta=0.05, runs=4000, rng=np.random.default_rng(1))
    # One probability for all rivals is one that is known; only the overshoot is saved.
    assert 0.85 * known < told_leader(equal, delta=0.05) < known
    different = equal.copy()
    different[0, 1:], different[1:, 0] = [0.6, 0.7, 0.8, 0.95], [0.4, 0.3, 0.2, 0.05]
    known = told_winner(different, delta=0.05, runs=4000, rng=np.random.default_rng(1))
    assert 1.05 * known < told_leader(different, delta=0.05) < 1.5 * known


def test_no_policy_beats_the_bound_on_average_and_three_times_the_bound_is_caught() -> None:
    asked, least = [], []
    for seed in range(8):
        world = preferences(PLAIN, 5, 1.5, np.random.default_rng(seed))
        asked.append(run(world.problem, Winner(delta=0.05), world.judge(seed), seed=seed).questions)
        least.append(winner_shared_error_bound(world.chances, delta=0.05))
    assert sum(least) < sum(asked) < 3 * sum(least)


def test_being_told_the_features_truth_is_not_enough_to_beat_the_bound() -> None:
    rng = np.random.default_rng(2)
    problem = Problem.from_pairs(rng.normal(size=(6, 2)))
    instance = Instance(problem.measurements, problem.items, [2.0, -1.0])
    shared = shared_error_bound(instance, lower_bound(instance, delta=0.05))
    told = [told_features(instance, delta=0.05, rng=np.random.default_rng(seed)) for seed in range(20)]
    assert shared < np.mean(told) < 4 * shared


def test_the_study_has_both_bounds_of_both_assumptions(tmp_path: Path) -> None:
    study = find_study("bounds")
    rows, summary = run_study(study, Options(runs=1, items=5, gap=1.0), out=tmp_path)
    (row,), (cell,) = rows, summary["cells"]
    assert row["model_bound"] < row["bound"] < row["shared"] < row["told"]
    assert row["model_bound"] < row["model_shared"] < row["shared"]
    assert cell["over_shared"] < cell["over_bound"]
    assert study.draw(rows, summary, tmp_path)[0].stat().st_size > 5000
    assert [task["policies"] for task in study.tasks(Options(runs=1, gap=1.5))] == [["winner", "anytime"]]
