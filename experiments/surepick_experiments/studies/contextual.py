"""Study `contextual`: regret of every policy, where greed fails, and what norm and number of arms do.

Families of instances: `ball` (fresh arms uniform in the unit ball, random direction of θ*), the same with other norms
and other numbers of arms, and `trap`, where Greedy gets stuck.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from surepick.contextual.policy import AnyPolicy
from surepick.contextual.sup_logistic import SupLogisticBase
from surepick.errors import InvalidInput
from surepick.guarantee import Guarantee
from surepick.registry import NAMES, policy_by_name
from surepick.report.figures import figure
from surepick_experiments.studies.identification import groups
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds.contextual import (
    ContextualWorld,
    Run,
    ball_world,
    distance_in_radii,
    simulate,
    trap_world,
)

NORMS = (1.0, 2.0, 4.0, 8.0)
ARMS = (2, 20, 200, 1000)
FEW = ("likelihood-ratio-ucb", "one-pass-ucb", "ofu-glb", "eco-log", "logistic-thompson", "greedy", "uniform")
"""Policies that the sweeps over norm and arms compare; the others hardly differ from uniform there."""

DELTA = 0.05
SHRUNK = 0.25
"""Share of the proved radius that serves as the negative control."""

FALSE_ALARM = 1e-3

PHI_COLUMNS = ("phi_answers", "phi_regret", "phi_separated", "regret_if_separated", "regret_otherwise")

FAMILIES = {"ball": ("fresh arms in the unit ball", "#0b6e4f"), "trap": ("greedy's trap", "#c1121f")}
"""What the figure of regret shows for every policy."""


def tasks(options: Options) -> list[Params]:
    """Every family, policy and seed."""
    names = options.policies or NAMES
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise InvalidInput(f"There is no contextual policy {unknown[0]!r}; choose one of {', '.join(NAMES)}.")
    runs, horizon = options.runs or 20, options.horizon or 2000
    d = options.dimension(5)
    arms = options.items or 20
    families: list[Params] = [{"family": "ball", "d": d, "arms": arms, "norm": 3.0}]
    families += [{"family": "trap", "d": 2, "arms": 2, "norm": 2.5}]
    families += [{"family": "norm", "d": d, "arms": arms, "norm": norm} for norm in NORMS]
    families += [{"family": "arms", "d": d, "arms": many, "norm": 3.0} for many in ARMS]
    return [
        {**family, "policy": name, "horizon": horizon, "study_seed": options.seed, "seed": seed}
        for family in families
        for name in names
        if family["family"] in ("ball", "trap") or name in FEW
        for seed in range(runs if family["family"] in ("ball", "trap") else max(1, runs // 4))
    ]


def checkpoints(horizon: int) -> list[int]:
    """Twenty-five steps, evenly spaced on a logarithmic scale."""
    return sorted({round(step) for step in np.geomspace(min(10, horizon), horizon, 25)})


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """One policy on one stream; streams of equal seed are alike for all policies."""
    # not from `rng`, which differs between policies
    world_rng = np.random.default_rng([task["study_seed"], task["seed"], round(10 * task["norm"]), task["arms"]])
    world = _world(task, world_rng)
    policy = policy_by_name(
        task["policy"], horizon=task["horizon"], arms=task["arms"], norm_bound=task["norm"] + 1.0, delta=DELTA
    )
    worst: list[float] = []
    proved = policy.facts.guarantee is Guarantee.PROVED
    step = 0

    def watch(state: Any) -> None:
        nonlocal step
        step += 1
        if step % 20 == 0 and proved and (found := distance_in_radii(state, world.theta)) is not None:
            worst.append(found)

    result = simulate(policy, world, task["horizon"], world_rng, checkpoints=checkpoints(task["horizon"]), watch=watch)
    return [
        {
            **{key: task[key] for key in ("policy", "seed", "horizon", "d", "arms", "norm")},
            "instance": task["family"],
            "guarantee": str(policy.facts.guarantee),
            "regret": float(result.regret[-1]),
            **phi_columns(policy, result),
            "microseconds_per_step": result.microseconds_per_step,
            "worst_misfit": max(worst) if worst else None,
            "curve": [float(value) for value in result.regret],
        }
    ]


def phi_columns(policy: AnyPolicy, result: Run) -> Row:
    """How much of a SupLogistic run's regret was lost while Φ was filled, and whether Φ's answers are separated."""
    if not isinstance(policy, SupLogisticBase):
        return {"phi_answers": None, "phi_regret": None, "phi_separated": None}
    status = policy.status(result.state)
    return {
        "phi_answers": status.phi_answers,
        "phi_regret": result.phi_regret,
        "phi_separated": status.phi_separated,
    }


def phi_means(group: list[Row]) -> Row:
    """Over the runs of a policy: mean answers and regret of Φ, runs with a separated Φ, mean regret of both.

    Empty where the policy has no Φ.
    """
    if any(row["phi_answers"] is None for row in group):
        return {}
    fits_phi = all(row["phi_separated"] is not None for row in group)
    separated = [row["regret"] for row in group if row["phi_separated"]]
    others = [row["regret"] for row in group if row["phi_separated"] is False]
    return {
        "phi_answers": float(np.mean([row["phi_answers"] for row in group])),
        "phi_regret": float(np.mean([row["phi_regret"] for row in group])),
        "phi_separated": len(separated) if fits_phi else None,
        "regret_if_separated": float(np.mean(separated)) if separated else None,
        "regret_otherwise": float(np.mean(others)) if others else None,
    }


def _world(task: Params, rng: np.random.Generator) -> ContextualWorld:
    if task["family"] == "trap":
        return trap_world(dimension=task["d"])
    return ball_world(rng, dimension=task["d"], arms=task["arms"], norm=task["norm"])


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Mean regret with its standard error, microseconds a step, coverage, for every instance and policy."""
    cells = []
    for (instance, norm, arms, policy), group in groups(rows, "instance", "norm", "arms", "policy").items():
        regrets = np.array([row["regret"] for row in group])
        cells.append(
            {
                "instance": instance,
                "norm": norm,
                "arms": arms,
                "policy": policy,
                "guarantee": group[0]["guarantee"],
                "runs": len(group),
                "regret": float(regrets.mean()),
                "standard_error": float(regrets.std(ddof=1) / math.sqrt(len(regrets))) if len(regrets) > 1 else None,
                "microseconds_per_step": float(np.median([row["microseconds_per_step"] for row in group])),
                **_coverage(group),
                **phi_means(group),
            }
        )
    proved = [cell for cell in cells if cell["guarantee"] == "proved" and cell["instance"] == "ball"]
    trapped = {cell["policy"]: cell["regret"] for cell in cells if cell["instance"] == "trap"}
    return {
        "best_proved": min(proved, key=lambda cell: cell["regret"]) if proved else None,
        "trap_ratio_to_greedy": {
            name: value / trapped["greedy"] for name, value in trapped.items() if trapped.get("greedy")
        },
        "coverage": _overall_coverage(rows),
        "cells": cells,
    }


def _coverage(group: list[Row]) -> Row:
    watched = [row["worst_misfit"] for row in group if row["worst_misfit"] is not None]
    return {"covered": float(np.mean([value <= 1 for value in watched])) if watched else None}


def _overall_coverage(rows: list[Row]) -> list[Row]:
    """For every policy with a proved radius: runs covered at all times, and the same for a shrunk radius."""
    found = []
    for policy in dict.fromkeys(row["policy"] for row in rows):
        worst = [row["worst_misfit"] for row in rows if row["policy"] == policy and row["worst_misfit"] is not None]
        if not worst or not any(worst):
            continue
        misses, control = sum(value > 1 for value in worst), sum(value > SHRUNK for value in worst)
        limit = int(binom.isf(FALSE_ALARM, len(worst), DELTA))
        found.append(
            {
                "policy": policy,
                "runs": len(worst),
                "covered": 1 - misses / len(worst),
                "broken": misses > limit,
                "control_covered": 1 - control / len(worst),
                "control_caught": control > limit,
            }
        )
    return found


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Regret over time, one panel a policy, and the sweeps."""
    paths = [folder / "regret.png", folder / "sweeps.png"]
    colours = _colours([row["policy"] for row in rows])
    names = [name for name in NAMES if any(row["policy"] == name for row in rows)]
    across = min(4, len(names))
    down = math.ceil(len(names) / across)
    with figure(paths[0], columns=across, rows=down, size=(2.9 * across, 2.3 * down)) as panels:
        top = 2 * max(row["regret"] for row in rows if row["instance"] in FAMILIES)
        for axes, policy in zip(panels, names, strict=False):
            for other in names:  # the others in grey, so that each panel compares with all
                _draw_curves(axes, rows, other, "0.85", 0.8)
            _draw_curves(axes, rows, policy, None, 1.8)
            axes.set(xscale="log", yscale="log", ylim=(0.5, top))
            axes.set_title(policy, fontsize=9)
        for axes in panels[len(names) :]:
            axes.set_axis_off()
        for axes in panels[max(0, len(names) - across) : len(names)]:
            axes.set_xlabel("step")
        for axes in panels[::across]:
            axes.set_ylabel("mean regret")
        panels[0].legend(fontsize=7, frameon=False)
    with figure(paths[1], columns=2, size=(11.0, 4.4)) as panels:
        for axes, instance, at in zip(panels, ("norm", "arms"), ("norm", "arms"), strict=True):
            for policy in FEW:
                points = sorted(
                    (cell[at], cell["regret"])
                    for cell in summary["cells"]
                    if cell["instance"] == instance and cell["policy"] == policy
                )
                if points:
                    axes.plot(*zip(*points, strict=True), "-o", ms=4, color=colours[policy], label=policy)
            label = "norm of theta" if at == "norm" else "number of arms"
            axes.set(xscale="log", yscale="log", xlabel=label, ylabel="mean regret")
            axes.set_xticks(*((NORMS, [f"{norm:g}" for norm in NORMS]) if at == "norm" else (ARMS, ARMS)), minor=False)
            axes.minorticks_off()
        if panels[-1].lines:
            panels[-1].legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return paths


def _draw_curves(axes: Any, rows: list[Row], policy: str, grey: str | None, width: float) -> None:
    """Mean regret of a policy in both families, with the band of the middle half unless it is one of the others."""
    for instance, (label, colour) in FAMILIES.items():
        chosen = [row for row in rows if row["policy"] == policy and row["instance"] == instance]
        if not chosen or (grey and instance != "ball"):
            continue
        steps = checkpoints(chosen[0]["horizon"])
        curves = np.maximum(np.array([row["curve"] for row in chosen]), 1e-2)
        # The mean, which a few runs that are stuck dominate as they should.
        axes.plot(steps, curves.mean(axis=0), color=grey or colour, lw=width, label=None if grey else label)
        if not grey:
            axes.fill_between(steps, *np.quantile(curves, [0.25, 0.75], axis=0), color=colour, alpha=0.2, lw=0)


def _colours(names: list[str]) -> dict[str, Any]:
    import matplotlib

    wheel = matplotlib.colormaps["tab20"]
    ordered = [name for name in NAMES if name in set(names)]
    return {name: wheel(place % 20) for place, name in enumerate(ordered)}


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """What the terminal shows."""
    shown = ("policy", "guarantee", "runs", "regret", "standard_error", "microseconds_per_step", "covered")
    found = [
        (title, [{key: cell[key] for key in shown} for cell in summary["cells"] if cell["instance"] == instance])
        for title, instance in (("Arms in the unit ball, norm 3", "ball"), ("Greedy's trap", "trap"))
    ]
    found.append(
        ("Coverage of proved radii along all runs; the control shrinks them to a quarter", summary["coverage"])
    )
    in_phi = [
        {key: cell[key] for key in ("instance", "policy", "runs", "regret", *PHI_COLUMNS)}
        for cell in summary["cells"]
        if "phi_regret" in cell
    ]
    if in_phi:
        title = (
            "SupLogistic: how much of the regret was lost while Phi was filled, and runs with separated answers in Phi"
        )
        found.append((title, in_phi))
    return found


STUDY = Study(
    "contextual",
    "Regret of every contextual policy over time.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "dims", "policies", "items", "horizon"),
)
