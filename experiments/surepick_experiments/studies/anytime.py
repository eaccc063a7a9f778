"""Study `anytime`: the default policy beside the others on worlds of every kind: questions over the lower bound."""

from pathlib import Path
from typing import Any

import numpy as np

from surepick.judges import World
from surepick.report.figures import figure
from surepick_experiments.studies.identification import (
    COLOURS,
    cell_of,
    chosen_policies,
    groups,
    informed,
    lower_bound,
    measured,
)
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds import catalogue, example_2, gaussian, person, soare

INSTANCES = ("soare-10", "soare-20", "soare-50", "catalogue", "person-1.5", "person-0.35", "gaussian", "example-2")
USUAL = ("anytime", "rage-glm", "rage-glm-printed", "rage-glm-r", "passive")


def instance(name: str, number: int, items: int) -> World:
    """The world of this name; where worlds are random, the one of this number."""
    kind, _, detail = name.partition("-")
    if kind == "soare":
        return soare(int(detail))
    if kind == "catalogue":
        return catalogue("comfort", items=items, pairs=500, gap=0.35, seed=number)
    if kind == "person":
        return person(gap=float(detail), seed=number)
    if kind == "gaussian":
        return gaussian(10, 50, gap=0.3, seed=number)
    return example_2(3.0)


def tasks(options: Options) -> list[Params]:
    """All policies on the same seed, for each instance."""
    policies = chosen_policies(options.policies, USUAL)
    names = INSTANCES if options.dims is None else tuple(f"soare-{d}" for d in options.dims)
    return [
        {"world": name, "run": number, "items": options.items or 300, "policies": policies}
        for name in names
        for number in range(options.runs or 20)
    ]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """All policies on one instance with one seed."""
    world = instance(task["world"], task["run"], task["items"])
    bound, seed = lower_bound(world), int(rng.integers(2**31))
    return [
        {"world": task["world"], **measured(world, name, informed(name, world), seed, bound)}
        for name in task["policies"]
    ]


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Medians by instance and policy."""
    printed = groups((row for row in rows if row["policy"] == "rage-glm-printed"), "world")
    return {
        "cells": [
            {
                "world": world,
                "policy": policy,
                **cell_of(group, printed.get((world,), ())),
                "over_lower_bound": float(np.median([row["questions"] / row["lower_bound"] for row in group])),
            }
            for (world, policy), group in groups(rows, "world", "policy").items()
        ]
    }


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Questions over the lower bound, one row of dots an instance."""
    path = folder / "anytime.png"
    worlds = list(dict.fromkeys(cell["world"] for cell in summary["cells"]))
    with figure(path, size=(8.5, 4.4)) as (axes,):
        for (policy,), group in groups(summary["cells"], "policy").items():
            places = [worlds.index(cell["world"]) for cell in group]
            axes.plot([cell["over_lower_bound"] for cell in group], places, "o", color=COLOURS[policy], label=policy)
        axes.set(xscale="log", xlabel="questions over the lower bound (median)", yticks=range(len(worlds)))
        axes.set_yticklabels(worlds)
        axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Questions and correctness of every policy."""
    names = ("world", "policy", "guarantee", "questions", "over_lower_bound", "decided", "wrong", "runs", "seconds")
    return [("Questions (median), delta = .05", [{name: cell[name] for name in names} for cell in summary["cells"]])]


STUDY = Study(
    "anytime",
    "The default policy and the others, on all worlds.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "dims", "policies", "items"),
)
