"""Study `ladder`: what each assumption costs, and what happens where it fails.

Items without features, people who compare colours, features that explain most of the answers or nothing, preferences
that go in circles below a winner, and judges of two camps. "winner" assumes only that one item wins its share of every
comparison, "anytime" that the answers are logistic in the features (docs/assumptions.md). The lower bound is that of
the weaker assumption.
"""

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick._arrays import Floats, Integers
from surepick.errors import InvalidInput
from surepick.glm import probability_of_yes
from surepick.identify import Problem, run
from surepick.limits import winner_lower_bound
from surepick.registry import policy_named
from surepick.report.figures import figure
from surepick_experiments.studies.identification import COLOURS, DELTA, chosen_policies, groups
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds import person

PLAIN, PEOPLE, NEARLY, MISLEADING = "no features", "colours", "nearly right features", "misleading features"
CIRCLE, CAMPS = "circle below a winner", "two camps with one favourite"

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

SPREAD = 1.2
"""Standard deviation of drawn scores, in log-odds."""

OWN = 0.5
"""Standard deviation of what nearly right features do not explain, in log-odds."""

DIMENSION = 4
"""Features that mislead: fewer than items, so that a model of them cannot fit everything."""

MOST_ITEMS = 10
"""Without features "anytime" takes thousands of questions and minutes beyond this number of items."""

MEDIANS = ("questions", "lower_bound", "ratio", "seconds")

MOST = 20_000
"""Questions after which a run counts as not decided."""


@dataclass(frozen=True, eq=False)
class Preferences:
    """A problem and the probability that the item of the row beats the item of the column, whatever the features."""

    problem: Problem
    chances: Floats

    @property
    def best(self) -> int:
        """The item that wins all of its comparisons."""
        return int(np.argmax(np.min(self.chances, axis=1)))

    @cached_property
    def _chance_of(self) -> dict[bytes, float]:
        rows = zip(self.problem.measurements, self.problem.about.tolist(), strict=True)
        return {vector.tobytes(): float(self.chances[first, second]) for vector, (first, second) in rows}

    def judge(self, seed: int) -> "PreferenceJudge":
        """A judge who answers from these preferences."""
        if len(self._chance_of) < len(self.problem.measurements):
            raise InvalidInput(
                "Two comparisons have the same difference of features, so a judge cannot tell them apart."
            )
        return PreferenceJudge(self._chance_of, np.random.default_rng(seed))


@dataclass(frozen=True, eq=False)
class PreferenceJudge:
    """Answers whole stages; a question is known by its vector, which only one pair of items has."""

    chance_of: dict[bytes, float]
    rng: np.random.Generator

    def wins(self, vectors: Floats, pulls: Integers) -> ArrayLike:
        """How many of the answers to each vector are 1."""
        return self.rng.binomial(pulls, [self.chance_of[vector.tobytes()] for vector in vectors])


def preferences(world: str, items: int, gap: float, rng: np.random.Generator) -> Preferences:
    """A random world of this kind."""
    if world == PEOPLE:
        taste = person(colours=items, gap=gap, seed=int(rng.integers(2**31)))
        return Preferences(taste.problem, bradley_terry(taste.scores))
    if world == NEARLY:
        taste = person(colours=items, gap=gap, seed=int(rng.integers(2**31)))
        scores = taste.scores + rng.normal(0, OWN, items)
        second, best = np.argsort(scores)[-2:]
        scores[best] = scores[second] + gap
        return Preferences(taste.problem, bradley_terry(scores))
    if world == CIRCLE:
        # Item 0 wins by the gap. The others form a circle, an odd number of them, and each beats the half that follows.
        around = (np.arange(items)[None, :] - np.arange(items)[:, None]) % (items - 1)
        chances = np.where(around == 0, 0.5, np.where(around < (items - 1) / 2, 0.8, 0.2))
        wins = float(probability_of_yes(np.array(gap)))
        chances[0, 1:], chances[1:, 0], chances[0, 0] = wins, 1 - wins, 0.5
        return Preferences(Problem.from_pairs(np.eye(items)), chances)
    scores = np.sort(rng.normal(0, SPREAD, items))[::-1]
    scores[0] = scores[1] + gap
    features = np.eye(items) if world in (PLAIN, CAMPS) else rng.normal(size=(items, DIMENSION))
    chances = bradley_terry(scores)
    if world == CAMPS:  # a judge is drawn from one of two camps, which agree on the winner and on nothing else
        chances = (chances + bradley_terry(np.concatenate([scores[:1], rng.permutation(scores[1:])]))) / 2
    order = rng.permutation(items)
    return Preferences(Problem.from_pairs(features), chances[np.ix_(order, order)])


def bradley_terry(scores: Floats) -> Floats:
    """The probability that the item of the row beats the item of the column."""
    return np.asarray(probability_of_yes(scores[:, None] - scores[None, :]))


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
