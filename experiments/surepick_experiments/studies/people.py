"""Study `people`: how many questions one person answers until the favourite colour is known.

Simulated people compare 37 or 60 colours by nine features; the gap between favourite and second decides how long it
takes. Also with 50 judges at once, of whom each gets questions planned before the others answered.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from surepick.judges import World
from surepick.registry import policy_named
from surepick.report.figures import figure
from surepick.session import BatchJudge, find_best
from surepick_experiments.studies.identification import (
    COLOURS,
    DELTA,
    chosen_policies,
    groups,
    lower_bound,
    measured,
    row_of,
)
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds import person

GAPS = (1.5, 0.75, 0.35, 0.13, 0.05)
MOST = 200_000
"""Questions after which a run counts as not decided."""


def tasks(options: Options) -> list[Params]:
    """One person a task."""
    policies = chosen_policies(options.policies, ("anytime",))
    return [
        {"colours": colours, "gap": gap, "judges": judges, "run": number, "policies": policies}
        for colours in ((options.items,) if options.items else (37, 60))
        for gap in ((options.gap,) if options.gap else GAPS)
        for judges in (1, 50)
        for number in range(options.runs or 20)
        if judges == 1 or gap >= 0.35  # question by question, a long run takes minutes
    ]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """All policies with one person."""
    # The same person and answers whoever is asked how many questions at once.
    world = person(colours=task["colours"], gap=task["gap"], seed=task["run"])
    bound, seed = lower_bound(world), task["run"]
    known = {"colours": task["colours"], "gap": task["gap"], "judges": task["judges"]}
    rows = []
    for name in task["policies"]:
        policy = policy_named(name, delta=DELTA, budget=MOST)
        if task["judges"] == 1:
            rows.append(known | measured(world, name, policy, seed, bound))
            continue
        began = time.perf_counter()
        verdict = find_best(world.problem, _panel(world, seed), policy=policy, at_once=task["judges"])
        rows.append(known | row_of(world, name, verdict, seed, time.perf_counter() - began, bound))
    return rows


def _panel(world: World, seed: int) -> BatchJudge:
    """Judges of one taste who answer a list of questions at once."""
    judge = world.judge(seed)
    return lambda questions: [judge(question) for question in questions]


def summarise(rows: list[Row]) -> dict[str, Any]:
    """The distribution of questions in every setting."""
    cells = []
    for key, group in groups(rows, "colours", "gap", "judges", "policy").items():
        questions = [row["questions"] for row in group]
        cells.append(
            dict(zip(("colours", "gap", "judges", "policy"), key, strict=True))
            | {
                "runs": len(group),
                "median": float(np.median(questions)),
                "tenth": float(np.quantile(questions, 0.1)),
                "ninetieth": float(np.quantile(questions, 0.9)),
                "over_lower_bound": float(np.median([row["questions"] / row["lower_bound"] for row in group])),
                "undecided": sum(row["status"] != "certain" for row in group),
                "wrong": sum(row["status"] == "certain" and not row["correct"] for row in group),
                "seconds": float(np.median([row["seconds"] for row in group])),
            }
        )
    return {"cells": cells}


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Questions against the gap, every person a dot."""
    path = folder / "people.png"
    with figure(path, size=(7.0, 4.4)) as (axes,):
        for (policy,), group in groups([row for row in rows if row["judges"] == 1], "policy").items():
            axes.plot(
                [row["gap"] for row in group],
                [row["questions"] for row in group],
                "o",
                ms=3,
                alpha=0.5,
                color=COLOURS[policy],
                label=policy,
            )
            axes.plot(
                [row["gap"] for row in group], [row["lower_bound"] for row in group], "k_", ms=6, label="lower bound"
            )
        axes.set(xscale="log", yscale="log", xlabel="gap between favourite and second (log-odds)", ylabel="questions")
        axes.legend(fontsize=8, frameon=False)
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """The distribution of questions."""
    return [("Questions until the favourite colour is known, delta = .05", summary["cells"])]


STUDY = Study(
    "people",
    "The favourite colour of simulated people.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("runs", "policies", "items", "gap"),
)
