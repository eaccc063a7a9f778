"""Study `benchmark`: every method in every world (docs/benchmark.md).

A run is one method in one instance of a world. All methods meet the same instances; their questions and the answers
are their own. One row per run.
"""

from typing import Any

import numpy as np
from scipy.stats import binom

from surepick.errors import InvalidInput
from surepick.linalg import threads_for
from surepick_experiments.benchmark.challenge import CHECKPOINTS
from surepick_experiments.benchmark.figures import draw
from surepick_experiments.benchmark.methods import METHODS, installed, obstacle
from surepick_experiments.benchmark.play import row
from surepick_experiments.benchmark.recorded import recorded_worlds
from surepick_experiments.benchmark.worlds import WORLDS, Family
from surepick_experiments.studies.identification import DELTA, exact_limits, groups
from surepick_experiments.studies.runner import Options, Params, Row, Study

MOST = 100_000
"""Questions after which a run counts as not stopped."""

FALSE_ALARM = 1e-3
"""Chance that the whole benchmark accuses a method that keeps its word (divided evenly over all its tests)."""

PROFILES: dict[str, tuple[int, int]] = {"small": (10, 400), "full": (25, CHECKPOINTS[-1])}
"""Runs in each world, and the last checkpoint; the small one also leaves out some worlds (`Family.small`)."""


def tasks(options: Options) -> list[Params]:
    """One run each; all worlds and methods by turns, so that rows of an interrupted study are of all of them."""
    name = options.profile or "small"
    runs, until = PROFILES[name]
    # A method that is not installed is no task, so that it is run once it is.
    chosen = options.policies or tuple(method for method, entry in METHODS.items() if installed(entry))
    for method in chosen:
        if method not in METHODS:
            raise InvalidInput(f"The benchmark knows no method {method!r}; choose among {', '.join(METHODS)}.")
    families = WORLDS if options.data is None else recorded_worlds(options.data)
    worlds = {world: family for world, family in families.items() if family.small or name == "full"}
    runs = options.runs or runs
    return [
        {"world": world, "method": method, "run": number, "seed": options.seed, "until": until}
        | ({} if options.data is None else {"data": options.data})
        for number in range(runs * max(family.times for family in worlds.values()))
        for world, family in worlds.items()
        for method in chosen
        if number < runs * (family.times if METHODS[method].claim is not None else 1)
    ]


def run_task(task: Params, rng: np.random.Generator) -> list[Row]:
    """One run, or no row where the method cannot take the challenge.

    The instance depends on the seed, the world and the number of the run only: it is the same for all methods.
    """
    family = family_of(task)
    seed = int(np.random.default_rng([task["seed"], task["run"], *task["world"].encode()]).integers(2**31))
    world = family.draw(np.random.default_rng([seed, 3]))
    entry = METHODS[task["method"]]
    if obstacle(entry, world.challenge):
        return []
    with threads_for(0):  # all matrices are small
        return [{"world": task["world"]} | row(task["method"], entry, world, seed, most=MOST, until=task["until"])]


def family_of(task: Params) -> Family:
    """The world of a task."""
    return WORLDS[task["world"]] if "data" not in task else recorded_worlds(task["data"])[task["world"]]


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Every method in every world, with 95% intervals; and which claims are wrong too often beyond doubt."""
    grouped = groups(rows, "world", "method")
    claiming = [key for key in grouped if METHODS[key[1]].claim is not None]
    level = FALSE_ALARM / max(len(claiming), 1)
    cells = [
        {"world": world, "method": method} | _cell(method, group, level) for (world, method), group in grouped.items()
    ]
    return {
        "delta": DELTA,
        "false_alarm_rate": FALSE_ALARM,
        "cells": cells,
        "broken": sorted({cell["method"] for cell in cells if cell["broken"]}),
    }


def _cell(method: str, group: list[Row], level: float) -> Row:
    stops, wrong = [row for row in group if row["stopped"]], sum(row["wrong"] for row in group)
    entry, count = METHODS[method], len(group)
    winners = all(row["has_winner"] for row in group)
    holds = all(row["explained"] for row in group) if entry.assumes == "features" else winners
    low, median, high = median_limits([row["questions"] if row["stopped"] else np.inf for row in group])
    limits = exact_limits(wrong, len(stops)) if stops else (0.0, 1.0)
    cell: Row = {
        "runs": count,
        "stopped": len(stops),
        "questions": _finite(median),
        "questions_low": _finite(low),
        "questions_high": _finite(high),
        "wrong": wrong,
        "error": wrong / len(stops) if stops else None,
        "error_low": limits[0],
        "error_high": limits[1],
        "winner": winners,
        "holds": holds,
        "broken": bool(winners and entry.claim is not None and binom.sf(wrong - 1, count, DELTA) < level),
        "milliseconds": float(np.median([row["milliseconds"] for row in group])),
    }
    for point in CHECKPOINTS:
        if f"right_{point}" not in group[0]:
            break
        right = sum(row[f"right_{point}"] for row in group)
        behind = np.array([row[f"behind_{point}"] for row in group])
        cell[f"right_{point}"] = right / count
        cell[f"right_{point}_low"], cell[f"right_{point}_high"] = exact_limits(right, count)
        cell[f"behind_{point}"] = float(behind.mean())
        cell[f"behind_{point}_error"] = float(behind.std() / np.sqrt(count))
    return cell


def median_limits(values: list[float]) -> tuple[float, float, float]:
    """The median between order statistics that contain that of the population with probability at least 95%.

    Fewer than six values say nothing of that kind: the limits are 0 and infinite.
    """
    ordered = np.sort(values)
    count = len(ordered)
    # The number of values below the median is binomial(count, ½).
    place = int(binom.ppf(0.025, count, 0.5))
    middle = float(ordered[count // 2] if count % 2 else max(ordered[count // 2 - 1 : count // 2 + 1]))
    if place == 0:
        return 0.0, middle, np.inf
    return float(ordered[place - 1]), middle, float(ordered[count - place])


def _finite(value: float) -> float | None:
    """None for a median of runs of which half did not stop."""
    return value if np.isfinite(value) else None


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """One table per world, in few columns, for a terminal."""
    found = []
    for (world,), cells in groups(summary["cells"], "world").items():
        points = [point for point in CHECKPOINTS if f"right_{point}" in cells[0]]
        shown = [
            {
                "method": cell["method"],
                "stopped": f"{cell['stopped']} of {cell['runs']}",
                "questions": None if cell["questions"] is None else f"{cell['questions']:,.0f}",
                "wrong": cell["wrong"],
                "right": " ".join(
                    f"{100 * cell[f'right_{point}']:3.0f}" for point in points if f"right_{point}" in cell
                ),
            }
            for cell in cells
        ]
        title = f"{world}: right guesses in % after {', '.join(map(str, points))} questions"
        found.append((title, shown))
    return found


STUDY = Study(
    "benchmark",
    "Every method in every world: questions to stop, errors, best guesses, time.",
    tasks,
    run_task,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "policies", "data", "profile"),
)
