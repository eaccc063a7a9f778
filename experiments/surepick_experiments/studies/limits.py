"""Study `limits`: measured questions over the certified lower bound, for all policies on all worlds with a formula."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from surepick.judges import World
from surepick.limits import rho_opt
from surepick.limits.lower_bound import nats
from surepick.registry import POLICIES
from surepick.report.figures import figure
from surepick_experiments.studies.identification import (
    COLOURS,
    DELTA,
    certified_bound,
    chosen_policies,
    decided,
    groups,
    informed,
    measured,
)
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds import example_1, example_2, gaussian, soare

WORLDS: dict[str, Callable[[], World]] = {
    "soare-5": lambda: soare(5),
    "soare-10": lambda: soare(10),
    "example1-1": lambda: example_1(1.0, gap=0.3),
    "example2-3": lambda: example_2(3.0, gap=0.3),
    "gaussian-4-20": lambda: gaussian(4, 20, gap=0.3),
    "gaussian-8-100": lambda: gaussian(8, 100, gap=0.3),
}
LEFT_OUT = ("gl-gape", "posterior")
"""Unless asked for: one does not stop on most of these within a million questions, one assumes a population."""


def tasks(options: Options) -> list[Params]:
    """All policies on one world with one seed."""
    policies = chosen_policies(options.policies, [name for name in POLICIES if name not in LEFT_OUT])
    return [
        {"world": world, "run": number, "policies": policies} for world in WORLDS for number in range(options.runs or 3)
    ]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """The bound once, then every policy on the same seed."""
    world, seed = WORLDS[task["world"]](), int(rng.integers(2**31))
    bound = certified_bound(world)
    quadratic = 2 * rho_opt(world.instance).value * nats(DELTA)
    rows = []
    for name in task["policies"]:
        row = measured(world, name, informed(name, world), seed, bound.questions)
        rows.append({**row, "ratio": row["questions"] / bound.questions, "gap": bound.gap, "quadratic": quadratic})
    return rows


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Median ratio of every policy on every world; runs that ended without a decision are counted, not averaged."""
    cells = []
    for (instance, policy), group in groups(rows, "instance", "policy").items():
        ended = [row for row in group if decided(row)]
        cells.append(
            {
                "instance": instance,
                "policy": policy,
                "guarantee": group[0]["guarantee"],
                "lower_bound": group[0]["lower_bound"],
                "quadratic": group[0]["quadratic"],
                "questions": float(np.median([row["questions"] for row in ended])) if ended else None,
                "ratio": float(np.median([row["ratio"] for row in ended])) if ended else None,
                "decided": len(ended),
                "wrong": sum(not row["correct"] for row in ended),
                "runs": len(group),
            }
        )
    return {"delta": DELTA, "largest_gap": max(row["gap"] for row in rows), "cells": cells}


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Ratio to the bound by world, one mark a policy."""
    path = folder / "limits.png"
    names = list(dict.fromkeys(cell["instance"] for cell in summary["cells"]))
    with figure(path, size=(8.5, 4.6)) as (axes,):
        for (policy,), group in groups(summary["cells"], "policy").items():
            points = [(names.index(cell["instance"]), cell["ratio"]) for cell in group if cell["ratio"] is not None]
            if points:
                mark = "o" if group[0]["guarantee"] == "proved" else "s"
                label = f"{policy} ({group[0]['guarantee']})"
                axes.plot(*zip(*points, strict=True), mark, color=COLOURS.get(policy, "black"), ms=6, label=label)
        axes.axhline(1.0, color="black", lw=1)
        axes.set_xticks(range(len(names)), names, rotation=20, ha="right", fontsize=8)
        axes.set(yscale="log", ylabel="questions over the lower bound (median)")
        axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """The ratios."""
    names = ("instance", "policy", "guarantee", "lower_bound", "questions", "ratio", "wrong")
    return [
        (
            "Questions over the certified lower bound (median)",
            [{name: cell[name] for name in names} for cell in summary["cells"]],
        )
    ]


STUDY = Study(
    "limits",
    "Questions over the lower bound, by policy and world.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "policies"),
)
