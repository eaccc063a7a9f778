"""The studies of best-arm policies, at a size that takes seconds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import write_zappos
from surepick import InvalidInput
from surepick_experiments.studies import Options, find_study, run_study
from surepick_experiments.studies.delta import CONTROL, FAMILIES, Shrunk
from surepick_experiments.studies.identification import lower_bound
from surepick_experiments.studies.insight import windowed
from surepick_experiments.worlds import soare

SMALL: dict[str, Options] = {
    "anytime": Options(runs=1, dims=(3,), policies=("anytime", "rage-glm-printed")),
    "people": Options(runs=1, items=12, gap=1.5),
    "soare": Options(runs=1, dims=(3,), policies=("rage-glm", "rage-glm-printed", "gl-gape")),
    "zappos": Options(runs=1, items=60, gap=0.5, policies=("rage-glm-printed",)),
    "examples": Options(runs=1, gap=0.5, policies=("rage-glm",)),
    "insight": Options(items=120, gap=0.3, policies=("rage-glm-halving",)),
    "ladder": Options(runs=1, items=5, gap=1.0),
    "crossing": Options(dims=(2,), policies=("rage-glm-printed", "rage-glm-2")),
}


@pytest.mark.parametrize("name", SMALL)
def test_studies_write_rows_summary_and_figures(name: str, tmp_path: Path) -> None:
    study = find_study(name)
    rows, summary = run_study(study, SMALL[name], out=tmp_path)
    figures = study.draw(rows, summary, tmp_path)
    assert all(path.stat().st_size > 5000 for path in figures)
    assert all(table for _, table in study.tables(summary))
    runs = [row for row in rows if row.get("status")]
    assert {"policy", "instance", "seed", "questions", "best", "correct", "seconds", "lower_bound"} <= set(runs[0])
    assert all(row["correct"] for row in runs if row["guarantee"] == "proved" and row["status"] == "certain")


def test_the_real_catalogue_is_used_where_there_is_one(tmp_path: Path) -> None:
    write_zappos(tmp_path)
    study = find_study("zappos")
    tasks = study.tasks(Options(data=str(tmp_path), policies=("rage-glm-printed",), runs=1))
    assert [task["column"] for task in tasks] == ["open", "pointy", "sporty", "comfort"]
    row, told_a_quarter = study.run(tasks[1], np.random.default_rng(0))
    assert (row["told"], told_a_quarter["kappa"]) == ("true", 0.25)
    assert (row["instance"], row["items"], row["correct"]) == ("zappos-pointy", 60, True)
    assert row["questions"] > row["lower_bound"]
    assert study.summarise([row])["real"]
    with pytest.raises(InvalidInput, match="no file"):
        study.run(tasks[1] | {"data": str(tmp_path / "nowhere")}, np.random.default_rng(0))


def test_policies_meet_the_same_answers(tmp_path: Path) -> None:
    options = Options(runs=1, dims=(3,), policies=("rage-glm-printed", "rage-glm-halving"))
    rows, summary = run_study(find_study("soare"), options, out=tmp_path)
    assert rows[0]["seed"] == rows[1]["seed"]
    cell = next(each for each in summary["cells"] if each["policy"] == "rage-glm-halving")
    assert cell["printed_over_this"] == pytest.approx(rows[0]["questions"] / rows[1]["questions"])


def test_the_control_is_caught_and_the_policy_is_not() -> None:
    study = find_study("delta")
    rows: list[dict[str, Any]] = []
    for policy in ("rage-glm", CONTROL):
        for family in ("near ties", "exact tie"):
            task = {"family": family, "delta": 0.05, "policy": policy, "block": 0, "runs": 8}
            rows += study.run(task, np.random.default_rng(3))
    summary = study.summarise(rows)
    assert summary["broken"] == 0
    assert summary["control_caught"] >= 1
    assert set(FAMILIES) >= {"near ties", "exact tie"}
    assert Shrunk().name == "rage-glm"


def test_lower_bound_of_soare_is_that_of_the_first_trial() -> None:
    # The trial had log(1/2.4δ) = 2.12 nats where kl(1 − δ, δ) is 2.65.
    assert lower_bound(soare(10)) == pytest.approx(2.0e3 * 2.65 / 2.12, rel=0.05)


def test_windows_are_means_of_neighbours() -> None:
    np.testing.assert_allclose(windowed(np.arange(6.0), 2), [0.5, 0.5, 1.5, 2.5, 3.5, 4.5])


def test_unknown_policies_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no policy 'magic'"):
        find_study("soare").tasks(Options(policies=("magic",)))
