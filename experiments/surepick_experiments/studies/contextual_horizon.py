"""Study `horizon`: SupLogistic over ever longer horizons, regret over √T.

The proved constants need long horizons before the algorithm does anything but explore; here they get them. `--horizon
10000000` takes a few minutes and about a gigabyte.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from surepick.contextual.sup_logistic import SupLogisticBase
from surepick.glm import variance
from surepick.limits import sup_logistic_regret
from surepick.registry import policy_by_name
from surepick.report.figures import figure
from surepick_experiments.studies.contextual import PHI_COLUMNS, phi_columns, phi_means
from surepick_experiments.studies.identification import groups
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds.contextual import ball_world, simulate

POLICIES = ("sup-logistic", "sup-logistic-printed", "sup-logistic-tuned")
D, ARMS, NORM = 5, 20, 3.0


def tasks(options: Options) -> list[Params]:
    """Horizons from 1,000 to the longest (a million by default), half a power of ten apart."""
    longest = options.horizon or 10**6
    horizons = [round(10 ** (3 + half / 2)) for half in range(20)]
    horizons = sorted({min(horizon, longest) for horizon in horizons})
    names = options.policies or POLICIES
    d = options.dimension(D)
    return [
        {"policy": name, "horizon": horizon, "seed": seed, "d": d, "arms": options.items or ARMS, "norm": NORM}
        for horizon in horizons
        for name in names
        for seed in range(options.runs or 1)
    ]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """One run with the policy made for this horizon."""
    world = ball_world(rng, dimension=task["d"], arms=task["arms"], norm=task["norm"])
    policy = policy_by_name(task["policy"], horizon=task["horizon"], arms=task["arms"], norm_bound=task["norm"] + 1)
    result = simulate(policy, world, task["horizon"], rng)
    row = {
        **task,
        "instance": "ball",
        "regret": float(result.regret[-1]),
        "regret_over_root": float(result.regret[-1]) / math.sqrt(task["horizon"]),
        **phi_columns(policy, result),
        "microseconds_per_step": result.microseconds_per_step,
        "seconds": result.microseconds_per_step * task["horizon"] / 1e6,
    }
    if isinstance(policy, SupLogisticBase):
        status = policy.status(result.state)
        row |= {
            "speaks": status.speaks,
            "certified_levels": sum(level.certified for level in status.levels),
            "answers_by_level": [level.answers for level in status.levels],
            "status": status.sentence,
        }
    return [row]


def regret_bounds(run: Row) -> Row:
    """Theorem 3 with its printed constants (10·α…) and the corrected ones (13·α…), κ that of the unit ball."""
    kappa, result = float(variance(np.array(run["norm"]))), Row()
    for constants in ("printed", "corrected"):
        bound = sup_logistic_regret(run["d"], run["horizon"], run["arms"], kappa=kappa, constants=constants)
        result |= {f"leading_{constants}": bound.leading, f"bound_{constants}": bound.total}
    return result


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Means over seeds, and how time and regret grow: slopes on logarithmic scales over the upper half of horizons."""
    cells = []
    for (policy,), runs in groups(rows, "policy").items():
        for (horizon,), group in sorted(groups(runs, "horizon").items()):
            cells.append(
                {
                    "policy": policy,
                    "horizon": horizon,
                    "runs": len(group),
                    **{
                        key: float(np.mean([row[key] for row in group]))
                        for key in ("regret", "regret_over_root", "microseconds_per_step", "seconds")
                    },
                    **dict.fromkeys(PHI_COLUMNS),
                    **phi_means(group),
                    **regret_bounds(group[0]),
                    "certified_levels": min(row.get("certified_levels", 0) for row in group),
                }
            )
    growth = {}
    for (policy,), mine in groups(cells, "policy").items():
        upper = mine[len(mine) // 2 :]
        if len(upper) > 1:
            steps = np.log([cell["horizon"] for cell in upper])
            growth[policy] = {
                "seconds": float(np.polyfit(steps, np.log([cell["seconds"] for cell in upper]), 1)[0]),
                "regret": float(np.polyfit(steps, np.log([cell["regret"] for cell in upper]), 1)[0]),
            }
    return {"cells": cells, "growth_exponents": growth}


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Regret over √T, and microseconds a step."""
    path = folder / "horizon.png"
    with figure(path, columns=2, size=(12.5, 4.2)) as panels:
        labels = (("regret_over_root", "regret over √T"), ("microseconds_per_step", "microseconds a step"))
        for axes, (key, label) in zip(panels, labels, strict=True):
            for (policy,), mine in groups(summary["cells"], "policy").items():
                points = [(cell["horizon"], cell[key]) for cell in mine]
                axes.plot(*zip(*points, strict=True), "-o", ms=4, label=policy)
            if key == "regret_over_root":
                _draw_bounds(axes, summary["cells"])
            axes.set(xscale="log", yscale="log", xlabel="horizon T", ylabel=label)
        panels[-1].legend(
            *panels[0].get_legend_handles_labels(),
            fontsize=8,
            frameon=False,
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
        )
    return [path]


def _draw_bounds(axes: Any, cells: list[Row]) -> None:
    """Theorem 3, printed and corrected, and T, which regret cannot exceed: a bound above it says nothing."""
    by_horizon = {cell["horizon"]: cell for cell in cells}
    horizons = sorted(by_horizon)
    for constants, style in (("printed", "k--"), ("corrected", "k-")):
        values = [by_horizon[horizon][f"leading_{constants}"] / math.sqrt(horizon) for horizon in horizons]
        axes.plot(horizons, values, style, lw=1, label=f"Theorem 3, leading term, {constants}")
    axes.plot(horizons, [math.sqrt(horizon) for horizon in horizons], "k:", lw=1, label="T (any policy)")


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """What the terminal shows."""
    names = [
        "policy",
        "horizon",
        "runs",
        "regret",
        "phi_regret",
        "phi_separated",
        "leading_printed",
        "leading_corrected",
    ]
    names += ["bound_printed", "bound_corrected", "regret_over_root", "certified_levels", "seconds"]
    shown = [{name: cell[name] for name in names} for cell in summary["cells"]]
    return [("Regret by horizon, and Theorem 3 for SupLogistic with its printed and corrected constants", shown)]


STUDY = Study(
    "horizon",
    "SupLogistic at growing horizons.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "dims", "policies", "items", "horizon"),
)
