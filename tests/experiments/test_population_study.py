"""The study of people drawn from a population, in small."""

from dataclasses import replace

import numpy as np
import pytest

from surepick.errors import InvalidInput
from surepick_experiments.studies import Options, find_study, population, run_study


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(population, "COLOURS", 8)
    monkeypatch.setattr(population, "MOST", 25)
    monkeypatch.setattr(population, "BLOCK", 2)
    monkeypatch.setattr(population, "ALIKE_BLOCK", 2)
    monkeypatch.setattr(population, "EARLIER", 6)
    monkeypatch.setattr(population, "ANSWERS", 10)


def test_every_setting_is_counted(tmp_path):
    study = find_study("population")
    settings = list(population.SHARE_OF_RUNS["posterior"])
    few = replace(study, tasks=lambda options: [{"setting": setting, "block": 0} for setting in settings])
    rows, summary = run_study(few, Options(), out=tmp_path)
    cells = {(cell["setting"], cell["population"]): cell for cell in summary["cells"]}
    assert {setting for setting, _ in cells} == set(settings)
    assert (population.ALIKE, "learned") in cells
    assert all(row["questions"] <= 25 for row in rows)
    assert all(row["bound"] > 1 for row in rows)  # no weight exceeds it, so the mean weight does not
    assert all(row["gap"] == 0 and row["wrong"] == row["decided"] for row in rows if row["setting"] == population.TIED)
    assert all(abs(row["gap"] - 0.05) < 1e-9 for row in rows if row["setting"] == population.HAIRLINE)
    assert study.draw(rows, summary, tmp_path)[0].stat().st_size > 1000
    assert study.tables(summary)[0][1]


def test_most_tasks_are_usual_people():
    tasks = population.tasks(Options(runs=200))
    assert sum(task["setting"] == population.USUAL for task in tasks) == 100
    assert len(tasks) < 140


def test_the_claim_winner_is_searched_with_and_without_a_population(tmp_path, monkeypatch):
    monkeypatch.setattr(population, "MOST_BY_WINNER", 60)
    study = find_study("population")
    assert {task["policy"] for task in study.tasks(Options(policies=("winner",)))} == {"winner"}
    few = replace(study, tasks=lambda options: study.tasks(replace(options, runs=1)))
    rows, summary = run_study(few, Options(policies=("winner",)), out=tmp_path)
    cells = {(cell["setting"], cell["population"]): cell for cell in summary["cells"]}
    settings = (population.ALIKE, population.BARE, population.OPPOSITE)
    assert set(cells) == {(setting, known) for setting in settings for known in ("none", "learned")}
    logs = [
        np.log(with_them["questions"] / without["questions"])
        for without, with_them in zip(rows[::2], rows[1::2], strict=True)
        if without["setting"] == population.ALIKE
    ]
    assert cells[population.ALIKE, "learned"]["log_ratio"] == pytest.approx(np.mean(logs))
    assert study.draw(rows, summary, tmp_path) == []
    with pytest.raises(InvalidInput, match="--policies"):
        study.tasks(Options(policies=("uniform",)))
