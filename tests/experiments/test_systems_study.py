"""The study of systems on inputs: its worlds are what they say, and its rivals do what they say."""

import numpy as np
import pytest

from surepick.errors import InvalidInput
from surepick_experiments.studies.runner import Options
from surepick_experiments.studies.systems import (
    METHODS,
    ONCE,
    OTHERS,
    RANK_ONCE,
    bradley_terry,
    draw,
    posterior,
    run_task,
    summarise,
    tables,
    tasks,
)
from surepick_experiments.worlds.item_response import KINDS, item_responses


@pytest.mark.parametrize("kind", KINDS)
def test_a_world_has_a_winner_with_the_lead_wanted(kind):
    world = item_responses(kind, 6, 200, 0.06, np.random.default_rng(1))
    assert world.has_winner
    assert world.lead == pytest.approx(0.06, abs=0.01)
    assert np.allclose(world.chances + world.chances.T, 1)
    assert (set(np.unique(world.by_input)) <= {0.0, 0.5, 1.0}) == (kind == "fixed")


def test_clusters_of_inputs_matter_to_pairs_and_place_does_not():
    plain, clustered = (item_responses(kind, 6, 400, 0.06, np.random.default_rng(2)) for kind in ("plain", "clustered"))
    assert clustered.by_input.std(axis=1).mean() > plain.by_input.std(axis=1).mean()
    biased = item_responses("biased", 6, 400, 0.06, np.random.default_rng(2))
    # What the first place is worth makes both orders together less decisive, and favours nobody.
    assert np.abs(biased.chances - 0.5).mean() < np.abs(plain.chances - 0.5).mean()


def test_bradley_terry_finds_the_scores_and_the_posterior_its_mode():
    theta = np.array([1.0, 0.0, -1.0])
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    wins = 1e6 / (1 + np.exp(theta[pairs[:, 1]] - theta[pairs[:, 0]]))
    assert bradley_terry(pairs, wins[None], 1e6 - wins[None], 3)[0] == pytest.approx(theta, abs=1e-3)
    centre = np.zeros(3)
    for _ in range(5):
        centre, spread = posterior(pairs, wins, 1e6 - wins, centre)
    assert centre == pytest.approx(theta, abs=1e-3)
    chance = wins / 1e6
    x = np.eye(3)[pairs[:, 0]] - np.eye(3)[pairs[:, 1]]
    assert np.linalg.inv(spread @ spread.T) == pytest.approx(
        (x.T * (1e6 * chance * (1 - chance))) @ x + np.eye(3), rel=1e-3
    )


def test_a_clear_world_is_decided_by_all_and_rows_are_counted():
    task = next(task for task in tasks(Options(runs=1)) if task["systems"] == 5) | {"worlds": 2, "lead": 0.2}
    rows = run_task(task, np.random.default_rng(5))
    assert [row["policy"] for row in rows] == [name for name in METHODS if name not in (ONCE, RANK_ONCE, "rank 6")] * 2
    assert all(row["correct"] for row in rows)
    cells = {cell["policy"]: cell for cell in summarise(rows)["cells"]}
    assert cells["winner"]["runs"] == cells["winner"]["claimed"] == 2
    assert cells["all pairs"]["calls"] == 10 * 100
    assert cells["rank 4"]["calls"] < cells["winner"]["calls"]
    assert cells["rank all"]["outputs"] == 5 * cells["rank all"]["calls"]
    assert cells["winner"]["calls"] < cells["duels"]["calls"] == 1500
    titles = [title for title, _ in tables(summarise(rows))]
    assert titles == ["Calls among 5 systems (medians), delta = .05", "Errors over all worlds of 5 systems"]
    worse = summarise([row | {"correct": False} for row in rows])
    assert {error["policy"]: error["wrong_claims"] for error in worse["errors"]}["winner"] == 2


def test_questions_are_drawn_once_where_the_judge_always_says_the_same():
    task = {"kind": "fixed", "systems": 5, "inputs": 100, "lead": 0.2, "worlds": 1, "policies": (ONCE, RANK_ONCE)}
    rows = run_task(next(iter(tasks(Options(runs=1)))) | task, np.random.default_rng(5))
    assert [row["policy"] for row in rows] == [ONCE, RANK_ONCE, *OTHERS]
    assert all(row["correct"] for row in rows)


def test_a_thousand_small_worlds_are_counted():
    small = [task for task in tasks(Options()) if task["systems"] == 5 and task["lead"] == 0.05]
    assert sum(task["worlds"] for task in small) == 1000
    assert {task["kind"] for task in small} == set(KINDS)


def test_some_of_the_methods_can_be_chosen_by_name(tmp_path):
    chosen = tasks(Options(runs=1, policies=("rank all",)))[-1] | {"worlds": 1, "lead": 0.2}
    assert [row["policy"] for row in run_task(chosen, np.random.default_rng(6))] == ["rank all", *OTHERS]
    large = tasks(Options(runs=1, policies=("rank all",)))[2] | {"lead": 0.2}
    rows = run_task(large, np.random.default_rng(6))
    assert draw(rows, summarise(rows), tmp_path)[0].exists()
    with pytest.raises(InvalidInput, match="There is no policy 'rank 3' in this study"):
        tasks(Options(policies=("rank 3",)))


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_in_rankings_are_as_in_comparisons(kind):
    """Exactly so without a place effect; with one the order of two systems is the same, whoever is shown between."""
    world = item_responses(kind, 5, 100, 0.06, np.random.default_rng(3))
    orders = np.array(world.rankings(np.arange(5), 4, 40_000, np.random.default_rng(4)))
    places = np.full((len(orders), 5), 4)
    np.put_along_axis(places, orders, np.arange(4)[None], axis=1)
    above = (places[:, :, None] < places[:, None, :]).mean(axis=0)
    off = ~np.eye(5, dtype=bool)
    assert np.abs(above - world.chances)[off].max() < (0.012 if world.judging.place == 0 else 0.05)
    assert np.all(above[world.best][off[world.best]] > 0.5 - 0.01)
