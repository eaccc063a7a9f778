"""Study `examples`: two coins that nearly always come up heads, without and with a question that compares them.

Jun et al. 2021, Examples 1 and 2: X = Z = {e₁, e₂}, θ* = (r, r − gap), and X with e₁ − e₂ besides. One informative
vector changes e^r/gap² into 1/gap², apart from the burn-in.
"""

from pathlib import Path
from typing import Any

import numpy as np

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
from surepick_experiments.worlds import example_1, example_2

HEIGHTS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
EXAMPLES = {1: example_1, 2: example_2}


def tasks(options: Options) -> list[Params]:
    """Both examples at every height, all policies on the same seed."""
    policies = chosen_policies(options.policies, ("rage-glm", "rage-glm-halving", "rage-glm-printed", "passive"))
    return [
        {"example": example, "height": height, "run": number, "gap": options.gap or 0.1, "policies": policies}
        for example in EXAMPLES
        for height in HEIGHTS
        for number in range(options.runs or 8)
    ]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """All policies on one instance with one seed."""
    world = EXAMPLES[task["example"]](task["height"], gap=task["gap"])
    bound, seed = lower_bound(world), int(rng.integers(2**31))
    return [
        {
            "example": task["example"],
            "height": task["height"],
            **measured(world, name, informed(name, world), seed, bound),
        }
        for name in task["policies"]
    ]


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Medians, in all and after the burn-in."""
    printed = groups((row for row in rows if row["policy"] == "rage-glm-printed"), "example", "height")
    return {
        "cells": [
            {
                "example": example,
                "height": height,
                "policy": policy,
                **cell_of(group, printed.get((example, height), ())),
                "after_burn_in": float(np.median([row["questions"] - row["burn_in"] for row in group])),
                "mean": float(np.mean([row["questions"] for row in group])),
                "lower_bound": group[0]["lower_bound"],
            }
            for (example, height, policy), group in groups(rows, "example", "height", "policy").items()
        ]
    }


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Questions against r, one panel an example."""
    path = folder / "examples.png"
    with figure(path, columns=2, size=(10.0, 4.4)) as panels:
        for axes, example in zip(panels, EXAMPLES, strict=True):
            cells = [cell for cell in summary["cells"] if cell["example"] == example]
            for (policy,), group in groups(cells, "policy").items():
                heights = [cell["height"] for cell in group]
                axes.plot(
                    heights, [cell["questions"] for cell in group], "-o", color=COLOURS[policy], ms=4, label=policy
                )
                axes.plot(heights, [max(cell["after_burn_in"], 1) for cell in group], ":", color=COLOURS[policy])
            one = [cell for cell in cells if cell["policy"] == cells[0]["policy"]]
            axes.plot([c["height"] for c in one], [c["lower_bound"] for c in one], "--k", lw=1, label="lower bound")
            axes.set(
                yscale="log", xlabel="r", ylabel="questions (dotted: after the burn-in)", title=f"Example {example}"
            )
            axes.set_ylim(1000, None)
        panels[0].legend(fontsize=8, frameon=False)
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Questions over r."""
    names = (
        "example",
        "height",
        "policy",
        "questions",
        "mean",
        "after_burn_in",
        "lower_bound",
        "decided",
        "wrong",
        "runs",
    )
    return [("Questions (median)", [{name: cell[name] for name in names} for cell in summary["cells"]])]


STUDY = Study(
    "examples",
    "Examples 1 and 2 of the paper, by r.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "policies", "gap"),
)
