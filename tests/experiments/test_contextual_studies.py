"""Studies and bench of the contextual policies: they run, report what they should, and would notice broken promises."""

import json

import numpy as np
import pytest

from surepick import InvalidInput
from surepick.contextual import LikelihoodRatioUcb
from surepick.registry import NAMES, policy_by_name
from surepick_experiments.benches import BENCHES
from surepick_experiments.studies import Options, find_study, run_study
from surepick_experiments.studies.contextual import _overall_coverage
from surepick_experiments.worlds.contextual import ball_world, simulate, trap_world


def test_study_contextual_reports_regret_time_and_coverage(tmp_path):
    study = find_study("contextual")
    options = Options(runs=2, seed=3, horizon=60, policies=("likelihood-ratio-ucb", "greedy", "uniform"))
    rows, summary = run_study(study, options, out=tmp_path)
    assert {row["instance"] for row in rows} == {"ball", "trap", "norm", "arms"}
    for row in rows:
        assert row["horizon"] == 60
        assert row["microseconds_per_step"] > 0
        assert row["regret"] == row["curve"][-1] >= row["curve"][0]
    assert summary["best_proved"]["policy"] == "likelihood-ratio-ucb"
    assert {cell["norm"] for cell in summary["cells"] if cell["instance"] == "norm"} == {1.0, 2.0, 4.0, 8.0}
    assert {cell["arms"] for cell in summary["cells"] if cell["instance"] == "arms"} == {2, 20, 200, 1000}
    assert summary["trap_ratio_to_greedy"]["greedy"] == 1
    assert all(path.stat().st_size > 5000 for path in study.draw(rows, summary, tmp_path))
    assert all(table for _, table in study.tables(summary))
    json.dumps(summary)
    with pytest.raises(InvalidInput, match="no contextual policy 'linucb'"):
        study.tasks(Options(policies=("linucb",)))


def test_study_contextual_would_notice_a_radius_that_is_too_small():
    rows = [{"policy": "wrong", "worst_misfit": 1.2 if run % 4 == 0 else 0.4} for run in range(40)]
    (found,) = _overall_coverage(rows)
    assert found["broken"]
    assert found["control_caught"]
    (found,) = _overall_coverage([{**row, "worst_misfit": row["worst_misfit"] / 10} for row in rows])
    assert not found["broken"]
    assert not found["control_caught"]


SUP_LOGISTIC = ("sup-logistic", "sup-logistic-printed", "sup-logistic-tuned")


def test_study_contextual_says_how_much_of_the_regret_is_phi(tmp_path):
    """Beside each regret of SupLogistic: what was lost while Phi was filled, and what a separated Phi costs."""
    study = find_study("contextual")
    options = Options(runs=6, seed=2026, horizon=500, policies=(*SUP_LOGISTIC, "uniform"))
    rows, summary = run_study(study, options, out=tmp_path)
    title, table = study.tables(summary)[-1]
    assert "Phi" in title
    assert {(row["instance"], row["policy"]) for row in table} == {
        (i, p) for i in ("ball", "trap") for p in SUP_LOGISTIC
    }
    for row in table:
        mine = [one for one in rows if (one["instance"], one["policy"]) == (row["instance"], row["policy"])]
        assert row["phi_regret"] == pytest.approx(np.mean([one["phi_regret"] for one in mine]))
        assert 0 < row["phi_regret"] <= row["regret"]
        if row["policy"] == "sup-logistic":  # its burn-in is all Phi, and needs no ridge
            assert {row["phi_separated"], *(one["phi_separated"] for one in mine)} == {None}
            continue
        separated = [one["regret"] for one in mine if one["phi_separated"]]
        assert row["phi_separated"] == len(separated)
        assert row["regret_if_separated"] == (pytest.approx(np.mean(separated)) if separated else None)
    printed = [row for row in rows if row["policy"] == "sup-logistic-printed" and row["instance"] == "ball"]
    # Phi gets one of L + 1 answers of the burn-in: ⌈√(5·500)⌉ = 50 over the six buckets
    assert {row["phi_answers"] for row in printed} == {9}
    assert 0 < sum(row["phi_separated"] for row in printed) < len(printed)
    assert all(row["phi_regret"] < row["regret"] / 10 for row in printed)
    corrected = [row for row in rows if row["policy"] == "sup-logistic" and row["instance"] == "ball"]
    assert all(row["phi_regret"] == pytest.approx(row["regret"]) for row in corrected)  # 500 steps: nothing but Phi
    assert all(row["phi_regret"] is None for row in rows if row["policy"] == "uniform")


def test_the_tuned_form_loses_by_the_length_of_an_estimate_from_fifteen_answers():
    """What docs/contextual.md says of the 20 seeds of the study."""
    policy = policy_by_name("sup-logistic-tuned", horizon=2000, arms=20, norm_bound=4.0)
    found = []
    for seed in range(20):
        rng = np.random.default_rng([2026, seed, 30, 20])
        result = simulate(policy, ball_world(rng), 2000, rng)
        status = policy.status(result.state)
        norm = np.linalg.norm(result.state.phi.centre)
        found.append((norm, result.regret[-1], status.phi_separated, status.levels[1].answers))
    short, long = [one for one in found if one[0] < 5], [one for one in found if one[0] > 7]
    assert (len(short), round(max(regret for _, regret, _, _ in short))) == (7, 341)
    assert (len(long), round(min(regret for _, regret, _, _ in long))) == (9, 733)
    assert sum(separated for *_, separated, _ in long) == sum(separated for *_, separated, _ in found) == 3
    assert max(beyond for *_, beyond in long) < 25 < min(beyond for *_, beyond in short)  # answers of the second level


def test_a_run_at_once_and_one_by_one_lose_the_same_in_phi():
    policy = policy_by_name("sup-logistic-tuned", horizon=3000, arms=4, norm_bound=4.0)
    runs = [
        simulate(
            policy, ball_world(np.random.default_rng(1), dimension=2, arms=4), 3000, np.random.default_rng(2), **more
        )
        for more in ({}, {"watch": lambda state: None})
    ]
    assert runs[0].phi_regret == pytest.approx(runs[1].phi_regret)
    assert runs[0].regret == pytest.approx(runs[1].regret)
    assert 0 < runs[0].phi_regret < runs[0].regret[-1]


def test_study_supcb_shows_the_flaw_and_clears_suplogistic(tmp_path):
    study = find_study("supcb")
    rows, summary = run_study(study, Options(runs=100, seed=1), out=tmp_path)
    flawed, sound = summary["policies"]
    assert (flawed["policy"], sound["policy"]) == ("sup-cb-glm", "sup-logistic")
    assert flawed["depends"]
    assert flawed["given_only_second"] < 0 < flawed["given_only_first"]
    assert not sound["depends"]
    assert study.draw(rows, summary, tmp_path)[0].stat().st_size > 5000


def test_study_horizon_reports_regret_over_root(tmp_path):
    study = find_study("horizon")
    rows, summary = run_study(study, Options(horizon=4000, dims=(2,), items=4), out=tmp_path)
    assert {row["horizon"] for row in rows} == {1000, 3162, 4000}
    for row in rows:
        assert row["regret_over_root"] == pytest.approx(row["regret"] / np.sqrt(row["horizon"]))
        assert row["status"].endswith(".")
    assert study.draw(rows, summary, tmp_path)[0].stat().st_size > 5000
    assert set(summary["growth_exponents"]) == {row["policy"] for row in rows}


def test_bench_times_every_policy_and_its_growth():
    rows = BENCHES["contextual"](quick=True)
    assert {row["policy"] for row in rows} == set(NAMES)
    for name in NAMES:
        mine = [row for row in rows if row["policy"] == name]
        assert len({(row["horizon"], row["d"], row["arms"]) for row in mine}) == 5
        assert mine[0]["peer"] == "the same in NumPy"
        assert mine[1]["ratio"] == 1
    for row in rows:
        assert row["microseconds_per_step"] == pytest.approx(row["ours_seconds"] * 1e6)
    json.dumps(rows)


def test_worlds_are_what_they_say():
    rng = np.random.default_rng(0)
    world = ball_world(rng, dimension=4, arms=7, norm=2.5)
    arms = world.draw(rng, 4000)
    assert np.linalg.norm(world.theta) == pytest.approx(2.5)
    lengths = np.linalg.norm(arms, axis=2)
    assert lengths.max() <= 1
    assert np.mean(lengths**4) == pytest.approx(0.5, abs=0.02)  # the volume inside is uniform
    probabilities = next(trap_world(dimension=4).blocks(3, rng))[1]
    assert probabilities[0].argmax() == 3
    assert probabilities[0, 0] > 0.5


def test_simulation_counts_the_regret_of_what_was_chosen():
    """A policy that always takes the best arm has none; the steps of two blocks are all counted."""

    class Oracle(LikelihoodRatioUcb):
        def choose(self, state, arms, rng):
            from surepick.contextual import Choice

            return Choice(int(np.argmax(arms @ np.array([0.4, -1.0, -1.0, 2.0]))))

        def learn(self, state, arms, choice, reward):
            return state

    run = simulate(Oracle(), trap_world(dimension=4), 5000, np.random.default_rng(0), checkpoints=(10, 5000))
    assert run.regret.tolist() == [0.0, 0.0]
