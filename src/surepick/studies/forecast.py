"""Study `forecast`: does the number of questions fall into the interval forecast after a quarter of them?

People-sized searches of the default policy: a world is drawn, the whole search is run, then run again up to a quarter
of its questions and forecast from there. The forecaster knows the answers so far and nothing else. Of N searches about
80% should end within their 80% interval.
"""

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

from surepick.figures import figure
from surepick.identify import Problem, policy_named
from surepick.session import Session
from surepick.studies.frame import Options, Params, Row, Study
from surepick.studies.identification import DELTA, chosen_policies, groups, row_of
from surepick.worlds import World, gaussian, person

COVERAGE = 0.8
FEWEST_QUESTIONS = 40
"""Shorter searches are left out: a quarter of them says nothing."""

BUDGET = 20_000
"""Longer searches are left out: no person answers so many questions."""

DRAWS = 9


def items(number: int) -> World:
    """Four to eight items without features; their scores have a spread of 1.5."""
    rng = np.random.default_rng([number, 1])
    count = int(rng.integers(4, 9))
    return World(f"items-{count}", Problem.from_pairs([f"item {i}" for i in range(count)]), rng.normal(0, 1.5, count))


def small_catalogue(number: int) -> World:
    """Twenty items of four features."""
    return gaussian(4, 20, norm=3.0, gap=float(np.random.default_rng([number, 2]).uniform(0.4, 1.5)), seed=number)


def one_person(number: int) -> World:
    """37 colours of nine features."""
    return person(gap=float(np.random.default_rng([number, 3]).uniform(0.7, 2.0)), seed=number)


WORLDS = {"items": items, "catalogue": small_catalogue, "person": one_person}


def tasks(options: Options) -> list[Params]:
    """Worlds in turn; the whole study has `runs` searches (200 unless told otherwise)."""
    policies = chosen_policies(options.policies, ("anytime",))
    kinds = list(WORLDS)
    return [
        {"world": kinds[number % len(kinds)], "run": number, "policy": policy}
        for policy in policies
        for number in range(options.runs or 200)
    ]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """One search in full, and the forecast made after a quarter of its questions."""
    seed = int(rng.integers(2**31))
    world = WORLDS[task["world"]](seed)
    policy = policy_named(task["policy"], delta=DELTA, budget=BUDGET)
    began = time.perf_counter()
    session = Session(world.problem, policy, seed=seed)
    judge = world.judge([seed, 1])
    while questions := session.ask(1):
        session.tell(questions[0].id, judge(questions[0]))
    verdict, seconds = session.verdict(), time.perf_counter() - began
    row = {"world": task["world"], **row_of(world, task["policy"], verdict, seed, seconds, None)}
    total, quarter = verdict.questions, verdict.questions // 4
    if not verdict.status.decided or total < FEWEST_QUESTIONS:
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
        "left_out": len(rows) - len(used),
        "all": _cell("all", used),
        "cells": [_cell(world, group) for (world,), group in groups(used, "world").items()],
    }


def _cell(world: str, rows: list[Row]) -> Row:
    inside, count = sum(row["inside"] for row in rows), len(rows)
    known = [row for row in rows if row["forecast"] is not None]
    return {
        "world": world,
        "searches": count,
        "inside": inside,
        "share": inside / max(count, 1),
        "share_low": float(beta.ppf(0.025, inside, count - inside + 1)) if inside else 0.0,
        "share_high": float(beta.ppf(0.975, inside + 1, count - inside)) if inside < count else 1.0,
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


STUDY = Study("forecast", "80% forecasts against what happened.", tasks, run, summarise, draw, tables)
