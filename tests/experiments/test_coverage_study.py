"""The study runner keeps its word, and the coverage study would notice a method that does not."""

import json

import pytest

from surepick_experiments.studies import Options, coverage, find_study, run_study
from surepick_experiments.studies.runner import Study

SMALL = {"design": "orthogonal", "d": 2, "relative_xi": 0.05, "delta": 0.05, "runs": 200, "slow_runs": 3}
FEW = {"runs": 2, "slow_runs": 0}


def small_study(tasks) -> Study:
    whole = find_study("coverage")
    return Study("coverage", whole.about, lambda options: tasks, whole.run, whole.summarise, whole.draw, whole.tables)


def test_rows_depend_on_the_seed_alone_and_resume_runs_only_what_is_left(tmp_path):
    tasks = [{**SMALL, **FEW}, {**SMALL, **FEW, "design": "rare"}]
    whole, _ = run_study(small_study(tasks), Options(seed=3), out=tmp_path / "whole", jobs=2)
    run_study(small_study(tasks[:1]), Options(seed=3), out=tmp_path / "part", jobs=1)
    with (tmp_path / "part" / "rows.jsonl").open("a") as journal:
        journal.write('{"task": "cut off by an interr')
    seen = []
    again, _ = run_study(
        small_study(tasks),
        Options(seed=3),
        out=tmp_path / "part",
        progress=lambda done, total: seen.append((done, total)),
    )
    assert json.dumps(again) == json.dumps(whole)
    assert seen == [(1, 2), (2, 2)]
    other, _ = run_study(small_study(tasks), Options(seed=4), out=tmp_path / "whole")
    assert json.dumps(other) != json.dumps(whole)
    assert (tmp_path / "whole" / "rows.csv").exists()
    assert (tmp_path / "whole" / "rows.parquet").exists()


def test_proved_methods_pass_and_a_third_of_their_width_is_caught_at_every_delta(tmp_path):
    both = [SMALL | {"delta": delta} for delta in coverage.DELTAS]
    rows, summary = run_study(small_study(both), Options(seed=1), out=tmp_path)
    assert summary["proved_broken"] == 0
    assert {control["delta"]: control["broken"] for control in summary["negative_control"]} == {0.05: True, 0.2: True}
    corrected = next(cell for cell in summary["cells"] if cell["method"] == "corrected")
    assert corrected["applies"] == 1
    assert corrected["coverage_low"] < corrected["coverage"] <= corrected["coverage_high"]
    for path in find_study("coverage").draw(
        rows, {**summary, "cells": [{**c, "design": "gaussian"} for c in summary["cells"]]}, tmp_path
    ):
        assert path.stat().st_size > 1000


def test_the_decision_rule_accuses_only_beyond_doubt():
    """Exact binomial test at the level of one test among all."""
    rows = [
        {
            "method": "corrected",
            "guarantee": "proved",
            "design": "rare",
            "d": 2,
            "relative_xi": 0.05,
            "delta": delta,
            "valid": True,
            "half_width": 1.0,
            "covered": number >= missed,
            "covered_by_shrunk": number >= 2 * missed,
        }
        for delta, missed in ((0.05, 5), (0.2, 20))
        for number in range(100)
    ]
    rows += [row | {"method": "wald", "guarantee": "heuristic"} for row in rows]
    summary = coverage.summarise(rows)
    assert summary["proved_broken"] == 0  # exactly 1 − delta
    # Twice delta: 10 of 100 at 5% is no proof at this level (p = .03), 40 of 100 at 20% is one (p = 6e-6).
    assert [control["broken"] for control in summary["negative_control"]] == [False, True]


@pytest.mark.parametrize(("delta", "failure"), [(0.05, 0.0899), (0.01, 0.0315), (0.001, 0.0176), (1e-6, 0.0084)])
def test_the_printed_theorem_fails_at_its_own_condition(delta, failure):
    found = coverage.counterexample(delta)
    assert found["xi2_gamma"] < 1
    assert found["failure"] == pytest.approx(failure, abs=5e-5)
    assert found["failure"] > min(delta * 1.7, 0.9)


def test_the_event_of_the_printed_theorem_needs_a_smaller_xi_than_printed_only_in_few_dimensions():
    at_condition = {row["d"]: row["failure"] for row in coverage.tightness() if row["relative_xi"] == pytest.approx(1)}
    assert at_condition[1] > 0.05
    assert at_condition[5] > 0.05
    assert at_condition[50] < 0.05
    small = [row["failure"] for row in coverage.tightness() if row["relative_xi"] <= 0.35]
    assert max(small) < 1e-4
