"""The bench of leaderboards runs, on a short file, and its rows say what it promises."""

import pytest

from surepick_experiments.benches import BENCHES


@pytest.mark.posix  # its memory is measured by the module resource
def test_the_bench_measures_the_command_and_compares_the_order():
    steps: list[str] = []
    rows = BENCHES["rank"](quick=True, progress=steps.append)
    assert [row["case"].split(", ")[-1] for row in rows] == ["csv"]
    assert all(row["same_order"] for row in rows)
    assert all(0 < row["core_seconds"] < 60 and row["megabytes"] < 500 for row in rows)
    assert len(steps) == 3
