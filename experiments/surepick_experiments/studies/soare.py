"""Study `soare`: the standard benchmark of linear best-arm identification, d = 10 to 50, all policies.

Jun et al. 2021, Figure 1. The paper states neither θ* nor δ; here θ* = 2e₁ and δ = .05. It reports that all runs were
correct and that RAGE-GLM took about a tenth of the questions of "Random", which must be its passive baseline.
"""

from pathlib import Path
from typing import Any

import numpy as np

from surepick.registry import POLICIES
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
from surepick_experiments.worlds import soare

USUAL = tuple(name for name in POLICIES if name not in ("winner", "posterior"))
"""All policies but the one for comparisons of two items, which are not asked here."""


def tasks(options: Options) -> list[Params]:
    """One run of all policies on the same seed, for each dimension."""
    policies = chosen_policies(options.policies, USUAL)
    return [
        {"d": d, "run": number, "policies": policies}
        for d in options.dims or (10, 20, 30, 40, 50)
        for number in range(options.runs or 10)
    ]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """All policies on one instance with one seed."""
    world = soare(task["d"])
    bound, seed = lower_bound(world), int(rng.integers(2**31))
    return [{"d": task["d"], **measured(world, name, informed(name, world), seed, bound)} for name in task["policies"]]


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Medians by dimension and policy."""
    printed = groups((row for row in rows if row["policy"] == "rage-glm-printed"), "d")
    return {
        "lower_bound": {d: group[0]["lower_bound"] for (d,), group in groups(rows, "d").items()},
        "cells": [
            {
                "d": d,
                "policy": policy,
                **cell_of(group, printed.get((d,), ())),
                "burn_in_share": float(np.median([row["burn_in"] / row["questions"] for row in group])),
            }
            for (d, policy), group in groups(rows, "d", "policy").items()
        ],
    }


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Questions against the dimension."""
    path = folder / "soare.png"
    with figure(path, size=(8.5, 4.8)) as (axes,):
        for (policy,), group in groups(summary["cells"], "policy").items():
            decided = all(cell["decided"] for cell in group)
            # A policy that ends undecided at its cap has no number of questions: marks without a line.
            style = "x" if not decided else "-o" if group[0]["guarantee"] == "proved" else "--s"
            points = [(cell["d"], cell["questions"]) for cell in group]
            stopped = "" if decided else f", undecided at its cap of {group[0]['questions']:,.0f}"
            axes.plot(
                *zip(*points, strict=True),
                style,
                color=COLOURS[policy],
                ms=4 if decided else 7,
                label=f"{policy} ({group[0]['guarantee']}{stopped})",
            )
        bound = summary["lower_bound"]
        axes.plot(list(bound), list(bound.values()), ":", color="black", label="lower bound (any policy)")
        axes.set(yscale="log", xlabel="dimension", ylabel="questions (median)", title="Soare's benchmark, delta = .05")
        axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Questions and correctness of every policy."""
    names = (
        "d",
        "policy",
        "guarantee",
        "questions",
        "printed_over_this",
        "burn_in_share",
        "decided",
        "wrong",
        "runs",
        "seconds",
    )
    title = "Questions (median); the paper: all correct, RAGE-GLM about a tenth of “Random”"
    return [(title, [{name: cell[name] for name in names} for cell in summary["cells"]])]


STUDY = Study(
    "soare",
    "All policies on Soare's benchmark, d = 10 to 50.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "dims", "policies"),
)
