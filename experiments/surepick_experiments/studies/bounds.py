"""Study `bounds`: how far each policy is from what any method needs in the same world (docs/limits.md).

Lower bounds of both assumptions, by the change of measure alone and with the error shared among the rivals; then what
methods take that are told the truth, which no bound for one instance can exceed, or who leads and how clearly the
others lose, but not which; then the policies.
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logit

from surepick.identify import run
from surepick.limits import (
    Instance,
    lower_bound,
    shared_error_bound,
    winner_lower_bound,
    winner_shared_error_bound,
)
from surepick.registry import policy_named
from surepick.report.figures import figure
from surepick_experiments.studies.identification import COLOURS, DELTA, chosen_policies, groups
from surepick_experiments.studies.ladder import MOST, SETTINGS
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.studies.told import told_features, told_leader, told_winner
from surepick_experiments.worlds.preferences import PEOPLE, PLAIN, preferences

ASSUMPTION = {"winner": "winner", "anytime": "features"}
"""Whose bounds and told method a policy is compared with."""

MEANS = ("questions", "bound", "shared", "told", "leader", "model_bound", "model_shared")

TOLD_RUNS = 200
"""Simulated searches of the method that is told all probabilities; they take microseconds."""


def tasks(options: Options) -> list[Params]:
    """One world a task, for all policies that can do it."""
    policies = chosen_policies(options.policies, tuple(ASSUMPTION))
    return [
        {
            "world": world,
            "items": items,
            "gap": gap,
            "run": number,
            # Without features "winner" ends the search whatever is assumed.
            "policies": [name for name in policies if name == "winner" or world == PEOPLE],
        }
        for world, items, gap in SETTINGS
        if world in (PLAIN, PEOPLE) and options.items in (None, items) and options.gap in (None, gap)
        for number in range(options.runs or 20)
    ]


def run_task(task: Params, rng: np.random.Generator) -> list[Row]:
    """Bounds and told methods of one world, then all policies in it."""
    known = {name: task[name] for name in ("world", "items", "gap")}
    seed = int(rng.integers(2**31))
    world = preferences(task["world"], task["items"], task["gap"], np.random.default_rng([seed, 3]))
    problem, chances = world.problem, world.chances
    # The log-odds of every comparison determine θ up to what no comparison sees.
    first, second = problem.about.T
    theta = np.linalg.lstsq(problem.measurements, logit(chances[first, second]), rcond=None)[0]
    instance = Instance(problem.measurements, problem.items, theta)
    plain = lower_bound(instance, delta=DELTA)
    model = {"bound": plain.questions, "shared": shared_error_bound(instance, plain)}
    told = np.random.default_rng([seed, 5])
    facts: dict[str, dict[str, float]] = {
        "winner": {
            "bound": winner_lower_bound(chances, delta=DELTA),
            "shared": winner_shared_error_bound(chances, delta=DELTA),
            "told": told_winner(chances, delta=DELTA, runs=TOLD_RUNS, rng=told),
            "leader": told_leader(chances, delta=DELTA),
            **{f"model_{name}": value for name, value in model.items()},
        }
    }
    if "anytime" in task["policies"]:
        facts["features"] = {**model, "told": float(told_features(instance, delta=DELTA, rng=told))}
    rows = []
    for name in task["policies"]:
        verdict = run(problem, policy_named(name, delta=DELTA, budget=MOST), world.judge(seed), seed=seed)
        rows.append(
            known
            | {"policy": name, "seed": seed, "questions": verdict.questions, "status": str(verdict.status)}
            | {"wrong": str(verdict.status) == "certain" and problem.index(verdict.best) != world.best}
            | facts[ASSUMPTION[name]]
        )
    return rows


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Means by world and policy, since bounds are about means, and ratios of these.

    In no-feature worlds "winner" also proves the claim of a model (Bradley–Terry), whose bounds are `model_...`.
    """
    names = ("world", "items", "gap", "policy")
    cells = []
    for key, group in groups(rows, *names).items():
        numbers = [name for name in MEANS if name in group[0]]
        means = {name: float(np.mean([row[name] for row in group])) for name in numbers}
        cells.append(
            dict(zip(names, key, strict=True))
            | {"runs": len(group), "median": float(np.median([row["questions"] for row in group]))}
            | means
            | {f"over_{name}": means["questions"] / means[name] for name in numbers if name != "questions"}
            | {"wrong": sum(row["wrong"] for row in group), "undecided": sum(r["status"] != "certain" for r in group)}
        )
    return {"delta": DELTA, "cells": cells}


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Questions, and those of the told method, over the bound with shared error; every run a dot."""
    path = folder / "bounds.png"
    with figure(path, size=(7.0, 4.4)) as (axes,):
        for (policy,), group in groups(rows, "policy").items():
            shared = [row["shared"] for row in group]
            colour = COLOURS[policy]
            axes.plot(shared, [row["questions"] for row in group], "o", ms=3, alpha=0.5, color=colour, label=policy)
            label = f"told the truth, as {policy} assumes"
            axes.plot(shared, [row["told"] for row in group], "x", ms=3, alpha=0.5, color=colour, label=label)
        ends = [min(row["shared"] for row in rows), max(row["shared"] for row in rows)]
        axes.plot(ends, ends, "k-", lw=1, label="lower bound, error shared")
        axes.set(xscale="log", yscale="log", xlabel="lower bound, error shared", ylabel="questions")
        axes.legend(fontsize=8, frameon=False)
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Means and their ratios, in few columns for a terminal."""
    shown = [
        {
            "world": f"{cell['world']}, {cell['items']}, gap {cell['gap']:g}",
            "policy": cell["policy"],
            "questions": round(cell["questions"]),
            "bound, shared, told": " ".join(f"{cell[name]:,.0f}" for name in ("bound", "shared", "told")),
            "ratios": " ".join(f"{cell[f'over_{name}']:.2f}" for name in ("bound", "shared", "told")),
            "wrong": cell["wrong"],
        }
        for cell in summary["cells"]
    ]
    return [("Questions over what any method needs (means), delta = .05", shown)]


STUDY = Study(
    "bounds",
    "Policies, methods that are told the truth, and lower bounds.",
    tasks,
    run_task,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "policies", "items", "gap"),
)
