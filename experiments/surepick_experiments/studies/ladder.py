"""Study `ladder`: what each assumption costs, and what happens where it fails.

Items without features, people who compare colours, features that explain most of the answers or nothing, preferences
that go in circles below a winner, and judges of two camps. "winner" assumes only that one item wins its share of every
comparison, "anytime" that the answers are logistic in the features (docs/assumptions.md). The lower bound is that of
the weaker assumption.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from surepick.identify import run
from surepick.limits import winner_lower_bound
from surepick.registry import policy_named
from surepick.report.figures import figure
from surepick_experiments.studies.identification import COLOURS, DELTA, chosen_policies, groups
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds.preferences import CAMPS, CIRCLE, MISLEADING, NEARLY, PEOPLE, PLAIN, preferences

SETTINGS: tuple[tuple[str, int, float], ...] = (
    *((PLAIN, items, gap) for items in (5, 10, 20, 37) for gap in (1.0, 0.4)),
    *((PLAIN, items, 1.0) for items in (100, 200)),
    *((PEOPLE, 37, gap) for gap in (1.5, 0.35)),
    (NEARLY, 37, 0.5),
    (MISLEADING, 10, 1.0),
    (CIRCLE, 10, 1.0),
    (CAMPS, 10, 1.0),
)
"""World, items, and the gap between the best and the second in log-odds."""

MOST_ITEMS = 10
"""Without features "anytime" takes thousands of questions and minutes beyond this number of items."""

MEDIANS = ("questions", "lower_bound", "ratio", "seconds")

MOST = 20_000
"""Questions after which a run counts as not decided."""


def tasks(options: Options) -> list[Params]:
    """One world a task, for all policies that can do it."""
    policies = chosen_policies(options.policies, ("winner", "anytime"))
    return [
        {
            "world": world,
            "items": items,
            "gap": gap,
            "run": number,
            "policies": [name for name in policies if name == "winner" or world != PLAIN or items <= MOST_ITEMS],
        }
        for world, items, gap in SETTINGS
        if options.items in (None, items) and options.gap in (None, gap)
        for number in range(options.runs or 20)
    ]


def run_task(task: Params, rng: np.random.Generator) -> list[Row]:
    """All policies in one world, with the same stream of answers."""
    known = {name: task[name] for name in ("world", "items", "gap")}
    # All policies of a task meet the same world and the same seed of answers.
    seed = int(rng.integers(2**31))
    world = preferences(task["world"], task["items"], task["gap"], np.random.default_rng([seed, 3]))
    bound = winner_lower_bound(world.chances, delta=DELTA)
    rows = []
    for name in task["policies"]:
        began = time.perf_counter()
        policy = policy_named(name, delta=DELTA, budget=MOST)
        verdict = run(world.problem, policy, world.judge(seed), seed=seed)
        rows.append(
            known
            | {
                "policy": name,
                "instance": f"{task['world']}-{task['items']}-{task['gap']:g}",
                "seed": seed,
                "questions": verdict.questions,
                "best": verdict.best,
                "correct": world.problem.index(verdict.best) == world.best,
                "status": str(verdict.status),
                "guarantee": str(verdict.guarantee),
                "seconds": time.perf_counter() - began,
                "lower_bound": bound,
                "ratio": verdict.questions / bound,
            }
        )
    return rows


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Medians by world and policy."""
    names = ("world", "items", "gap", "policy")
    return {
        "cells": [
            dict(zip(names, key, strict=True))
            | {
                "runs": len(group),
                **{name: float(np.median([row[name] for row in group])) for name in MEDIANS},
                "undecided": sum(row["status"] != "certain" for row in group),
                "wrong": sum(row["status"] == "certain" and not row["correct"] for row in group),
            }
            for key, group in groups(rows, *names).items()
        ]
    }


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Questions against the lower bound, every run a dot."""
    path = folder / "ladder.png"
    with figure(path, size=(7.0, 4.4)) as (axes,):
        for (policy,), group in groups(rows, "policy").items():
            bounds, questions = [row["lower_bound"] for row in group], [row["questions"] for row in group]
            axes.plot(bounds, questions, "o", ms=3, alpha=0.5, color=COLOURS[policy], label=policy)
        ends = [min(row["lower_bound"] for row in rows), max(row["lower_bound"] for row in rows)]
        axes.plot(ends, ends, "k-", lw=1, label="lower bound if only a winner is assumed")
        axes.set(xscale="log", yscale="log", xlabel="lower bound", ylabel="questions")
        axes.legend(fontsize=8, frameon=False)
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Questions, ratio to the bound, and wrong verdicts."""
    return [("Questions until the best item is known (medians), delta = .05", summary["cells"])]


STUDY = Study(
    "ladder",
    "What each assumption costs, and where it fails.",
    tasks,
    run_task,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "policies", "items", "gap"),
)
