"""Study `advice`: what the votes of a cheap judge save the people whose favourite is wanted (docs/language-models.md).

People compare items without features; an advisor, such as a language model, has voted three times on every pair. Its
scores are the people's plus noise, have nothing to do with them, or are the opposite. The votes predict the people's
answers and count for nothing, so only the number of questions can change.
"""

from pathlib import Path
from typing import Any

import numpy as np

from surepick._arrays import Floats
from surepick.glm import probability_of_yes
from surepick.identify import Problem, Winner, run
from surepick_experiments.studies.identification import DELTA, groups
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds.preferences import SPREAD, Preferences

ITEMS, GAP, VOTES = (10, 20, 37), 1.0, 3

ADVISORS = ("none", "same taste", "similar taste", "other taste", "opposite taste")

NOISE = 0.7
"""Standard deviation of a similar taste around the people's, in log-odds."""


def tasks(options: Options) -> list[Params]:
    """Worlds of each size; 20 by default."""
    return [{"items": items, "number": number} for items in ITEMS for number in range(options.runs or 20)]


def run_task(task: Params, rng: np.random.Generator) -> list[Row]:
    """One world, with every advisor."""
    count, seed = task["items"], int(rng.integers(2**31))
    scores = np.sort(rng.normal(0, SPREAD, count))[::-1]
    scores[0] = scores[1] + GAP
    tastes: dict[str, Floats] = {
        "same taste": scores,
        "similar taste": scores + rng.normal(0, NOISE, count),
        "other taste": np.asarray(rng.normal(0, SPREAD, count)),
        "opposite taste": -scores,
    }
    problem = Problem.from_pairs(np.eye(count))
    world = Preferences(problem, probability_of_yes(scores[:, None] - scores))
    rows = []
    for advisor in ADVISORS:
        votes = () if advisor == "none" else _votes(problem, tastes[advisor], rng)
        verdict = run(problem, Winner(delta=DELTA, warm=votes), world.judge(seed), seed=seed)
        first, second = problem.about.T
        taste = tastes.get(advisor, scores)
        # Items are sorted by the people's scores, so they prefer the first of every pair.
        agree = np.mean(taste[first] > taste[second])
        rows.append(
            {"items": count, "advisor": advisor, "seed": seed, "agreement": float(agree)}
            | {"questions": verdict.questions, "correct": problem.index(verdict.best) == world.best}
        )
    return rows


def _votes(problem: Problem, scores: Floats, rng: np.random.Generator) -> tuple[tuple[int, int, int], ...]:
    """The advisor's votes on every pair, as (measurement, pulls, wins)."""
    first, second = problem.about.T
    wins = rng.binomial(VOTES, probability_of_yes(scores[first] - scores[second]))
    return tuple((row, VOTES, int(won)) for row, won in enumerate(wins))


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Median questions, beside those without an advisor in the same worlds."""
    alone = {(row["items"], row["seed"]): row["questions"] for row in rows if row["advisor"] == "none"}
    cells = []
    for (items, advisor), group in groups(rows, "items", "advisor").items():
        ratios = [row["questions"] / alone[items, row["seed"]] for row in group]
        cells.append(
            {"items": items, "advisor": advisor, "runs": len(group)}
            | {"agreement": float(np.mean([row["agreement"] for row in group]))}
            | {"questions": float(np.median([row["questions"] for row in group]))}
            | {"ratio": float(np.exp(np.mean(np.log(ratios)))), "wrong": sum(not row["correct"] for row in group)}
        )
    return {"delta": DELTA, "cells": cells}


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Nothing: the table says it all."""
    return []


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Questions with each advisor; the ratio is a geometric mean over worlds."""
    return [(f"Questions to people with an advisor, delta = {DELTA:g}", summary["cells"])]


STUDY = Study(
    "advice",
    "What the votes of a cheap judge save the people whose favourite is wanted.",
    tasks,
    run_task,
    summarise,
    draw,
    tables,
)
