"""Study `zappos`: the shoe catalogue of Jun et al. 2021, Table 1, on a synthetic catalogue of the same sizes.

With `--data DIR` on the real one, from the files of UT-Zap50K in that folder, where θ* is fitted to its votes.

25 principal components, 2,932 to 3,374 items, 5,000 pairs, κ₀ = .1. The paper's numbers stand beside ours: at κ₀ = .1
its burn-in alone would take 5.95e5 questions. It states no gaps, so ours are a choice.

Only the claim "features" can be decided here, so its policy Anytime is run: for the claim "winner", which is the
default for comparisons, hundreds of items are the better one in each of their few pairs (`unbeaten`).
"""

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
from surepick_experiments.worlds import CATALOGUE, catalogue, load_zappos

PAPER = {
    "rage-glm-r": {"open": 9.17e7, "pointy": 2.38e5, "sporty": 2.29e5, "comfort": 3.34e6},
    "rage-glm-printed": {"open": 9.17e7, "pointy": 2.38e5, "sporty": 2.29e5, "comfort": 4.55e6},
    "passive-printed": {"open": 2.69e8, "pointy": 2.38e5, "sporty": 2.29e5, "comfort": 8.54e6},
}
"""Questions as reported."""

USUAL = ("anytime", "rage-glm", "rage-glm-halving", "rage-glm-printed", "rage-glm-r", "passive", "passive-printed")
LARGEST_KAPPA = 0.25
"""Of any logistic answer. The printed forms are also run with it, since the paper's numbers agree with it in part."""


def tasks(options: Options) -> list[Params]:
    """One run of all policies on the same seed, for each column."""
    policies = chosen_policies(options.policies, USUAL)
    real = {} if options.data is None else {"data": options.data}
    runs = [(number, [name for name in policies if name != "anytime"]) for number in range(options.runs or 5)]
    # The default policy takes minutes a run here, where the others take a second: one run of it, at the end.
    runs += [(0, ["anytime"])] if "anytime" in policies else []
    return [
        {
            "column": column,
            "run": number,
            "policies": names,
            "items": options.items,
            "gap": options.gap,
            **real,
        }
        for number, names in runs
        for column in CATALOGUE
        if names
    ]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """All policies on one column with one seed."""
    column, seed = task["column"], task["run"]
    if "data" in task:
        world = load_zappos(Path(task["data"]), column, items=task["items"], seed=seed)
    else:
        world = catalogue(column, items=task["items"], gap=task["gap"], seed=seed)
    bound, seed, never_lose = lower_bound(world), int(rng.integers(2**31)), unbeaten(world)
    return [
        {
            "column": column,
            "unbeaten": never_lose,
            "real": "data" in task,
            "items": len(world.problem.items),
            "gap": world.gap,
            "kappa": kappa or world.kappa,
            "told": "a quarter" if kappa else "true",
            **measured(world, name, informed(name, world, **({"kappa": kappa} if kappa else {})), seed, bound),
            "paper": PAPER.get(name, {}).get(column),
        }
        for name in task["policies"]
        for kappa in ((None, LARGEST_KAPPA) if name in PAPER else (None,))
    ]


def unbeaten(world: World) -> int:
    """Items that are the better one in every listed pair that shows them; "winner" excludes one only by error.

    It excludes items that lose too often, and these win at least half the time in all that may be asked of them.
    """
    scores, about = world.problem.items @ world.theta, world.problem.about[: world.problem.listed]
    first, second = scores[about].T
    return len(scores) - len(np.union1d(about[first < second, 0], about[second < first, 1]))


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Medians by column and policy, the paper's number beside."""
    printed = groups((row for row in rows if row["policy"] == "rage-glm-printed" and row["told"] == "true"), "column")
    return {
        "seconds": sum(row["seconds"] for row in rows),
        "real": rows[0]["real"],
        "cells": [
            {
                "column": column,
                "policy": policy,
                "kappa_0": "nothing" if policy == "anytime" else told,
                "items": group[0]["items"],
                "gap": group[0]["gap"],
                **cell_of(group, printed.get((column,), ())),
                "lower_bound": float(np.median([row["lower_bound"] for row in group])),
                "burn_in": float(np.median([row["burn_in"] for row in group])),
                "least": float(min(row["questions"] for row in group)),
                "most": float(max(row["questions"] for row in group)),
                "paper": group[0]["paper"],
            }
            for (column, policy, told), group in groups(rows, "column", "policy", "told").items()
        ],
        "unbeaten": [
            {
                "column": column,
                "items": group[0]["items"],
                "least_unbeaten": min(row["unbeaten"] for row in group),
                "most_unbeaten": max(row["unbeaten"] for row in group),
            }
            for (column,), group in groups(rows, "column").items()
        ],
    }


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """One group of bars a column; the paper's numbers as marks."""
    path, kind = folder / "zappos.png", "UT-Zap50K" if summary["real"] else "synthetic"
    by_policy = groups((cell for cell in summary["cells"] if cell["kappa_0"] != "a quarter"), "policy")
    columns = list(dict.fromkeys(cell["column"] for cell in summary["cells"]))
    width = 0.8 / len(by_policy)
    with figure(path, size=(9.0, 4.4)) as (axes,):
        for place, ((policy,), group) in enumerate(by_policy.items()):
            at = np.array([columns.index(cell["column"]) for cell in group]) + (place + 0.5) * width - 0.4
            label = f"{policy} ({group[0]['guarantee']})"
            axes.bar(at, [cell["questions"] for cell in group], width, color=COLOURS[policy], label=label)
            reported = [(x, cell["paper"]) for x, cell in zip(at, group, strict=True) if cell["paper"]]
            if reported:
                axes.plot(*zip(*reported, strict=True), "k_", ms=12, mew=2)
        axes.plot([], [], "k_", ms=12, mew=2, label="reported in the paper")
        if all(column["least_unbeaten"] > 1 for column in summary["unbeaten"]):
            axes.plot([], [], " ", label="winner: cannot be decided on these pairs")
        axes.set_xticks(range(len(columns)), columns)
        axes.set(yscale="log", ylabel="questions", title=f"Shoe catalogue ({kind}), delta = .05")
        axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Questions beside the paper's."""
    names = ["column", "gap", "policy", "guarantee", "kappa_0", "questions", "burn_in", "least", "most", "paper"]
    names += ["printed_over_this", "decided", "wrong", "runs", "seconds"]
    title = "Questions (median); κ₀ as told to the policy: nothing, the true one, or a quarter"
    cells = [{name: cell[name] for name in names} for cell in summary["cells"]]
    return [(title, cells), ("Items that are the better one in all of their listed pairs", summary["unbeaten"])]


STUDY = Study(
    "zappos",
    "Table 1 of the paper, on synthetic or real shoes.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "policies", "items", "gap", "data"),
)
