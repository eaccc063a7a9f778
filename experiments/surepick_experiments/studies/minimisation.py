"""Study `minimisation`: does a certified bound of Anytime ever lie above what a global search finds?

On random small problems, played for a while, every bound proved for a rival is compared with the least value of the
true, nonconvex objective that a search from many starts finds in the rival's null (and the localiser). None may lie
below. Control: bounds raised by a little would be found out, so the search is sharp and the bounds are not vacuous.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logsumexp

from surepick._arrays import Floats
from surepick.identify import Plan, Problem
from surepick.identify.anytime.directional import BETS
from surepick.identify.anytime.state import State
from surepick.identify.anytime.stopping import THOROUGH, rival_bounds
from surepick.judges import World
from surepick.report.figures import figure
from surepick_experiments.studies.delta_anytime import Hasty
from surepick_experiments.studies.identification import groups
from surepick_experiments.studies.runner import Options, Params, Row, Study

RAISED = (0.1, 0.5, 1.0)
"""Nats by which the control raises every bound."""

ROUNDING = 1e-6
STARTS, ROUNDS, CLOUD = 3, 9, 300
BLOCK = 10


def played(world: World, stages: int, rng: np.random.Generator) -> State:
    """The state of Anytime after `stages` stages of growing size."""
    policy, judge = Hasty(growth=0.5), world.judge(rng)
    state = policy.start(world.problem)
    for _ in range(stages):
        plan = policy.plan(state, rng)
        if not isinstance(plan, Plan):
            break
        wins = judge.wins(world.problem.measurements[plan.measurements], plan.pulls)
        state = policy.update(policy.apply(state, plan), plan.stage, plan.tally(world.problem, wins))
    return state.evaluated


def bounds(state: State, rng: np.random.Generator) -> list[Row]:
    """Each proved bound, and the least value a search finds."""
    leader, problem = state.leader, state.problem
    others = np.array([item for item in range(len(problem.items)) if item != leader])
    weighed = rival_bounds(state, leader, others, THOROUGH)
    rows = []
    for rule, proved in (("plug-in", weighed.plug_in), ("directional", weighed.directional)):
        for item, bound in zip(others, proved, strict=True):
            if np.isfinite(bound):
                rows.append({"rule": rule, "bound": float(bound), "found": least_found(state, int(item), rule, rng)})
    return rows


def least_found(state: State, item: int, rule: str, rng: np.random.Generator) -> float:
    """The least value of the true objective over the null, by clouds of points that shrink around the best so far."""
    normal = state.problem.points[state.leader] - state.problem.points[item]
    best = math.inf
    for start in range(STARTS):
        centre, scale = (state.theta, 4.0) if start == 0 else (state.theta * rng.normal(1.0, 1.0), 8.0)
        reached = math.inf
        for _ in range(ROUNDS):
            theta = centre + scale * rng.standard_t(3, size=(CLOUD, len(normal)))
            ahead = np.maximum(theta @ normal, 0.0)
            theta -= np.outer(ahead / float(normal @ normal), normal)  # onto the half-space, many onto its boundary
            values = objective(state, item, rule, theta)
            if np.min(values) < reached:
                reached, centre = float(np.min(values)), theta[int(np.argmin(values))]
            scale *= 0.5
        best = min(best, reached)
    return best


def objective(state: State, item: int, rule: str, theta: Floats) -> Floats:
    """What the rule bounds from below: the evidence at each θ; infinite outside the localiser for bets."""
    evidence = state.evidence.log_evidence(theta)
    if rule == "plug-in":
        return evidence
    bets = state.process.log_bets(np.full(len(theta), item), state.problem.rows, theta)
    return np.where(evidence < state.threshold, logsumexp(bets, axis=1) - math.log(BETS), math.inf)


def tasks(options: Options) -> list[Params]:
    """Blocks of problems, 500 in all by default."""
    runs = options.runs or 500
    return [{"block": number, "runs": min(BLOCK, runs - number * BLOCK)} for number in range(-(-runs // BLOCK))]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """Random items and tastes of several sizes, played for several lengths."""
    rows = []
    for number in range(task["runs"]):
        dimension, norm = int(rng.integers(2, 4)), float(rng.uniform(0.2, 4.0))
        theta = rng.normal(size=dimension)
        world = World(
            "small",
            Problem.from_pairs(rng.normal(size=(4, dimension)) / 2),
            norm * theta / float(np.linalg.norm(theta)),
        )
        state = played(world, int(rng.integers(10, 20)), rng)
        problem = {"problem": task["block"] * BLOCK + number, "dimension": dimension, "norm": norm}
        rows += [problem | row for row in bounds(state, rng)]
    return rows


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Bounds above what was found, and problems in which a raised bound would have been found out."""
    cells = []
    for (rule,), group in groups(rows, "rule").items():
        problems = groups(group, "problem")
        slack = np.array([row["found"] - row["bound"] for row in group])
        cells.append(
            {
                "rule": rule,
                "problems": len(problems),
                "bounds": len(group),
                "too_high": int(np.sum(slack < -ROUNDING)),
                "median_slack": float(np.median(slack)),
            }
            | {
                f"caught_if_raised_by_{raised:g}": float(
                    np.mean(
                        [any(row["found"] < row["bound"] + raised for row in proved) for proved in problems.values()]
                    )
                )
                for raised in RAISED
            }
        )
    return {
        "problems": len({row["problem"] for row in rows}),
        "too_high": sum(cell["too_high"] for cell in cells),
        "cells": cells,
    }


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """How far the search stays above the bounds."""
    path = folder / "minimisation.png"
    with figure(path) as (axes,):
        for (rule,), group in groups(rows, "rule").items():
            slack = np.sort([max(row["found"] - row["bound"], 1e-9) for row in group])
            axes.plot(slack, np.arange(1, len(slack) + 1) / len(slack), label=rule)
        axes.set(xscale="log", xlabel="nats between a bound and the least value found", ylabel="share of bounds")
        axes.legend(frameon=False)
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Bounds that were too high, by rule."""
    return [("Certified bounds and a global search", summary["cells"])]


STUDY = Study("minimisation", "Certified bounds of Anytime and a global search.", tasks, run, summarise, draw, tables)
