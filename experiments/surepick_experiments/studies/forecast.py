"""Study `forecast`: does the number of questions fall into the interval forecast after a quarter of them?

People-sized searches of the default policy: a world is drawn, the whole search is run, then run again up to a quarter
of its questions and forecast from there. The forecaster knows the answers so far and nothing else. No search is left
out for its length: an epsilon ends near ties, and the budget the rest. Of N searches about 80% should end within their
80% interval.
"""

import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from surepick.identify import Problem
from surepick.judges import World
from surepick.registry import policy_named
from surepick.report.figures import figure
from surepick.session import Session
from surepick_experiments.studies.identification import DELTA, chosen_policies, decided, exact_limits, groups, row_of
from surepick_experiments.studies.runner import Options, Params, Row, Study

COVERAGE = 0.8
EPSILON = 0.5
BUDGET = 4000
FEWEST_QUESTIONS = 8
"""In shorter searches a quarter is too little to predict from."""

DRAWS = 9
AT_ONCE = 0.04
"""Questions handed out at a time, as a share of the answers so far."""


def drawn(kind: str, seed: int) -> World:
    """Three to six items without features, or twelve of three features; log-odds of answers with a spread of 1 to 4."""
    rng = np.random.default_rng([seed, 11])
    spread = math.exp(rng.uniform(0.0, math.log(4.0)))
    features = np.eye(int(rng.integers(3, 7))) if kind == "items" else rng.normal(size=(12, 3))
    problem = Problem.from_pairs(features)
    theta = np.asarray(rng.normal(size=features.shape[1]))
    usual = float(np.sqrt(np.mean((problem.measurements @ theta) ** 2)))
    return World(kind, problem, spread / usual * theta)


WORLDS = ("items", "catalogue")


def tasks(options: Options) -> list[Params]:
    """Worlds in turn; the whole study has `runs` searches (200 by default)."""
    policies = chosen_policies(options.policies, ("anytime",))
    return [
        {"world": WORLDS[number % len(WORLDS)], "run": number, "policy": policy}
        for policy in policies
        for number in range(options.runs or 200)
    ]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """One search in full, and the forecast made after a quarter of its questions."""
    seed = int(rng.integers(2**31))
    world = drawn(task["world"], seed)
    policy = policy_named(task["policy"], delta=DELTA, epsilon=EPSILON, budget=BUDGET)
    began = time.perf_counter()
    session = Session(world.problem, policy, seed=seed)
    judge = world.judge([seed, 1])
    while questions := session.ask(max(1, int(AT_ONCE * session.answered))):
        for question in questions:
            session.tell(question.id, judge(question))
    verdict, seconds = session.verdict(), time.perf_counter() - began
    row = {"world": task["world"], **row_of(world, task["policy"], verdict, seed, seconds, None)}
    total, quarter = verdict.questions, verdict.questions // 4
    if total < FEWEST_QUESTIONS:
        return [{**row, "used": False}]
    answers = [place for place, event in enumerate(session.log) if event["event"] == "answer"]
    earlier = Session.replay(session.log[: answers[quarter - 1] + 1])
    began = time.perf_counter()
    made = earlier.forecast(draws=DRAWS, seed=seed)
    low, high = made.interval(COVERAGE)
    return [
        {
            **row,
            "used": True,
            "asked_before": quarter,
            "further": total - quarter,
            "forecast": _finite(made.further),
            "low": low,
            "high": _finite(high),
            "inside": low <= total - quarter <= high,
            "forecast_seconds": time.perf_counter() - began,
        }
    ]


def _finite(number: float) -> float | None:
    return None if number == math.inf else number


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Share of searches within their interval, with exact 95% limits; over all, and by kind of world."""
    used = [row for row in rows if row["used"]]
    return {
        "coverage": COVERAGE,
        "too_short": len(rows) - len(used),
        "decided": sum(decided(row) for row in used),
        "all": _cell("all", used),
        "cells": [_cell(world, group) for (world,), group in groups(used, "world").items()],
    }


def _cell(world: str, rows: list[Row]) -> Row:
    inside, count = sum(row["inside"] for row in rows), len(rows)
    low, high = exact_limits(inside, count)
    known = [row for row in rows if row["forecast"] is not None]
    return {
        "world": world,
        "searches": count,
        "inside": inside,
        "share": inside / max(count, 1),
        "share_low": low,
        "share_high": high,
        "below": sum(row["further"] < row["low"] for row in rows),
        "above": sum(row["high"] is not None and row["further"] > row["high"] for row in rows),
        "questions": float(np.median([row["questions"] for row in rows])) if rows else None,
        "further_over_forecast": float(np.median([row["further"] / row["forecast"] for row in known] or [math.nan])),
        "forecast_seconds": float(np.median([row["forecast_seconds"] for row in rows])) if rows else None,
    }


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Intervals and what happened, by the forecast."""
    path = folder / "forecast.png"
    used = sorted((row for row in rows if row["used"] and row["forecast"]), key=lambda row: row["forecast"])
    with figure(path, size=(8.5, 4.4)) as (axes,):
        top = 2 * max([row["further"] for row in used] + [row["high"] or 0 for row in used] or [1])
        for place, row in enumerate(used):
            colour = "#0b6e4f" if row["inside"] else "#c1121f"
            axes.plot([place, place], [max(row["low"], 1), row["high"] or top], color="#bbbbbb", lw=1.5, zorder=1)
            axes.plot([place], [row["further"]], "o", ms=3, color=colour, zorder=2)
        axes.set(
            yscale="log",
            xlabel="searches, by their forecast",
            ylabel="further questions",
            title=f"80% intervals after a quarter of the questions: {summary['all']['share']:.0%} hold",
        )
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Coverage by kind of world."""
    return [("Further questions within the 80% interval", [summary["all"], *summary["cells"]])]


STUDY = Study(
    "forecast",
    "Coverage of the 80% forecast intervals.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "policies"),
)
