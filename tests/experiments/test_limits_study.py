"""Studies of limits: few runs, the shape of what they find, and their figures."""

import pytest

from surepick_experiments.studies import Options, burnin, find_study, kappa, limits, run_study
from surepick_experiments.studies.runner import Study


def few(name: str, tasks) -> Study:
    whole = find_study(name)
    return Study(name, whole.about, lambda options: tasks, whole.run, whole.summarise, whole.draw, whole.tables)


def test_burn_in_grows_like_a_power_and_li_exponentially(tmp_path, monkeypatch):
    monkeypatch.setattr(burnin, "MOST", 20_000)
    tasks = [{"case": burnin.GROWING, "d": norm**2, "norm": norm, "run": 0} for norm in (2, 3, 4)]
    rows, summary = run_study(few("burnin", tasks), Options(), out=tmp_path)
    assert len(rows) == 12
    growth = {row["theorem"]: row for row in summary["growth"]}
    assert growth["corrected"]["power_at_last"] < 4
    assert growth["li"]["power_at_last"] > 1.3 * growth["li"]["power_at_first"] > 10
    assert find_study("burnin").draw(rows, summary, tmp_path)[0].stat().st_size > 1000
    assert len(burnin.tasks(Options(runs=1))) == 2 * len(burnin.NORMS)
    assert burnin.tables(summary)[0][1]


def test_the_family_costs_more_than_its_bounds(tmp_path):
    tasks = [{"items": 21, "run": 0, "policies": ["anytime", "uniform"]}]  # the best of all, and the slowest
    rows, summary = run_study(few("kappa", tasks), Options(), out=tmp_path)
    for cell in summary["cells"]:
        assert cell["questions"] > cell["search_bound"] == 21 / 16
        assert cell["questions"] > cell["lower_bound"]
        assert cell["inverse_kappa"] > 1e6
    adaptive, static = (cell["questions"] for cell in summary["cells"])
    assert adaptive < static / 1000
    assert find_study("kappa").draw(rows, summary, tmp_path)[0].stat().st_size > 1000
    assert len(kappa.tasks(Options(runs=2, items=30))) == 2


@pytest.mark.parametrize("world", ["example2-3", "soare-5"])
def test_policies_stay_above_the_bound(tmp_path, world):
    tasks = [{"world": world, "run": 0, "policies": ["rage-glm", "uniform"]}]
    rows, summary = run_study(few("limits", tasks), Options(), out=tmp_path)
    assert all(cell["ratio"] > 1 for cell in summary["cells"])
    assert summary["largest_gap"] <= 0.01
    assert find_study("limits").draw(rows, summary, tmp_path)[0].stat().st_size > 1000
    assert limits.tables(summary)[0][1][0]["instance"] == world
