"""A study uses the options it declares, and refuses the others."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import write_zappos
from surepick import InvalidInput
from surepick_experiments.studies import MODULES, Options, find_study, run_study

SET: dict[str, Any] = {
    "runs": 2,
    "seed": 1,
    "dims": (3,),
    "policies": ("rage-glm-printed",),
    "items": 9,
    "gap": 0.5,
    "horizon": 50,
    "data": "somewhere",
    "profile": "full",
}
CONTEXTUAL = {"contextual": ("greedy",), "horizon": ("sup-logistic-tuned",)}
METHODS = CONTEXTUAL | {"guess": ("top-two",), "systems": ("rank 4",), "population": ("winner",)}


def value(study: str, option: str) -> Any:
    return METHODS.get(study, SET[option]) if option == "policies" else SET[option]


@pytest.mark.parametrize("name", MODULES)
def test_a_study_refuses_what_it_does_not_use(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = find_study(name)
    usual = study.tasks(Options())
    if name == "benchmark":  # it looks which sets are in the folder
        monkeypatch.chdir(tmp_path)
        Path("somewhere").mkdir()
        Path("somewhere/items.csv").write_text("item,size\na,1\nb,2\n", encoding="utf-8")
        Path("somewhere/answers.csv").write_text("item_a,item_b,winner\na,b,a\n", encoding="utf-8")
    for option in (entry.name for entry in fields(Options)):
        options = Options(**{option: value(name, option)})
        if option not in study.uses:
            with pytest.raises(InvalidInput, match=f"The study {name} does not use --{option}; it takes --"):
                run_study(study, options, out=tmp_path)
            assert study.tasks(options) == usual, f"{option} is used and not declared"
        elif option != "seed":  # the runner draws from it; what is declared changes what is run
            assert study.tasks(options) != usual


@pytest.mark.parametrize("name", ["people", "crossing"])
def test_where_the_seed_is_refused_it_changes_nothing(name: str) -> None:
    study = find_study(name)
    small = Options(dims=(2,), policies=("rage-glm-printed",)) if name == "crossing" else Options(items=6, gap=2.0)
    task = study.tasks(small)[0]
    first, second = (study.run(task, np.random.default_rng(seed)) for seed in (0, 1))
    assert [row | {"seconds": 0} for row in first] == [row | {"seconds": 0} for row in second]


def test_insight_uses_the_real_catalogue_where_there_is_one(tmp_path: Path) -> None:
    write_zappos(tmp_path)
    study = find_study("insight")
    known = {"items": 40, "policies": ("rage-glm-halving",)}
    real = study.tasks(Options(data=str(tmp_path), **known))[0]
    rows = study.run(real, np.random.default_rng(0))
    assert rows != study.run(study.tasks(Options(**known, gap=0.5))[0], np.random.default_rng(0))
    names = {f"image {number}" for number in range(1, 61)}
    (final,) = (row for row in rows if row["kind"] == "run")
    assert final["best"] in names
    assert {name for row in rows if row.get("items") for name in row["items"]} <= names


def test_values_that_would_be_dropped_are_refused() -> None:
    with pytest.raises(InvalidInput, match="--gap is of synthetic items"):
        Options(data="shoes", gap=0.1)
    for name in CONTEXTUAL:
        with pytest.raises(InvalidInput, match="one dimension at a time, got --dims 2,3"):
            find_study(name).tasks(Options(dims=(2, 3)))
