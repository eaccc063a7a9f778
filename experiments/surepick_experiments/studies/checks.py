"""Study `checks`: how often each check of assumptions alarms, where they hold and where one is broken on purpose.

Honest worlds, most of them asked adaptively by Anytime: every check is evaluated three times, and any alarm counts;
no check may exceed its level beyond doubt. Planted violations: the check meant for a violation must find it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from surepick._arrays import Floats
from surepick.checks import CHECKS, Answers
from surepick.identify import Anytime, Policy, Problem, Uniform
from surepick.report.figures import figure
from surepick.session import Question, Session
from surepick.session.journal import answers_of
from surepick_experiments.studies.identification import exact_limits, groups
from surepick_experiments.studies.runner import Options, Params, Row, Study

LEVEL = 0.05
"""The level of every check."""

LONG = 240
"""Answers in a world with a violation."""

EVALUATED_AT = (1 / 3, 2 / 3, 1.0)
BLOCK = 20
FALSE_ALARM = 1e-3
"""Chance that the study accuses some check that keeps its level, over all checks and worlds without violation."""

Taste = Callable[[Question, int, int], float]
"""Probability of 1, by question, number of the judge, and number of the question."""


PATIENT = Anytime(delta=1e-9)
"""Asks what it thinks best, and hardly ever ends before the answers do."""


EVEN = Uniform(delta=1e-9, kappa=0.01)
"""Asks all pairs alike."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A problem, how judges answer, and how long."""

    problem: Problem
    taste: Taste
    judges: int = 4
    answers: int = 150
    ties: float = 0.1
    memory: float = 0.0
    """Chance that a judge who is asked the same pair again repeats the last answer."""
    policy: Policy[Any] = PATIENT


def logistic(logit: float) -> float:
    """1/(1+e^−logit)."""
    return 1 / (1 + math.exp(-logit))


def features_only(rng: np.random.Generator, *, items: int = 6, dimension: int = 3, norm: float = 3.0) -> Scene:
    """A world as the model wants it."""
    return _of_tastes(rng, items, lambda theta, judge: theta, _taste(rng, dimension, norm))


def _taste(rng: np.random.Generator, dimension: int, norm: float) -> Floats:
    theta = rng.normal(size=dimension)
    return np.asarray(theta * (norm / float(np.linalg.norm(theta))))


def _of_tastes(rng: np.random.Generator, items: int, of_judge: Callable[[Floats, int], Floats], theta: Floats) -> Scene:
    """Judges with a taste each, made from θ."""
    problem = Problem.from_pairs(rng.normal(size=(items, len(theta))))
    return Scene(problem, lambda question, judge, number: logistic(float(question.vector @ of_judge(theta, judge))))


def honest_tied(rng: np.random.Generator) -> Scene:
    """Nothing to choose: all answers are coin tosses, and θ* = 0 says so."""
    return replace(features_only(rng, norm=0.0), judges=2)


def honest_fixed(rng: np.random.Generator) -> Scene:
    """Questions drawn beforehand."""
    return replace(features_only(rng, norm=2.0), policy=EVEN)


def honest_scores(rng: np.random.Generator) -> Scene:
    """No features: a score an item, many dimensions, few judges."""
    scores = rng.normal(size=8)
    problem = Problem.from_pairs([f"item {number}" for number in range(8)])
    scene = Scene(problem, lambda question, judge, number: logistic(float(question.vector @ scores)), judges=2)
    return replace(scene, ties=0.25)


def misfit(rng: np.random.Generator) -> Scene:
    """Items have scores that their features do not tell."""
    scene = replace(features_only(rng, items=8), policy=EVEN, answers=LONG)
    scores = dict(zip(scene.problem.names, 2 * rng.normal(size=8), strict=True))
    return replace(
        scene,
        taste=lambda question, judge, number: logistic(scores[question.first or ""] - scores[question.second or ""]),
    )


def position(rng: np.random.Generator) -> Scene:
    """The first shown is better by one in log-odds."""
    return _shifted(features_only(rng), lambda logit, judge, number: logit + 1.0)


def random_judge(rng: np.random.Generator) -> Scene:
    """One of four judges tosses a coin."""
    return _shifted(features_only(rng), lambda logit, judge, number: 0.0 if judge == 0 else logit)


def two_camps(rng: np.random.Generator) -> Scene:
    """Every second judge likes the opposite of the feature that matters most."""

    def of_judge(theta: Floats, judge: int) -> Floats:
        turned = np.abs(theta) == np.max(np.abs(theta))
        return np.where(turned & (judge % 2 == 1), -theta, theta)

    return replace(_of_tastes(rng, 6, of_judge, _taste(rng, 3, 3.0)), policy=EVEN, answers=LONG)


def remembering(rng: np.random.Generator) -> Scene:
    """Judges nearly always stick to what they said before."""
    return replace(features_only(rng, items=8, norm=1.5), policy=EVEN, answers=LONG, memory=0.9)


def one_sided_judge(rng: np.random.Generator) -> Scene:
    """One of four judges takes the first."""
    return _shifted(features_only(rng), lambda logit, judge, number: 5.0 if judge == 0 else logit)


def many_ties(rng: np.random.Generator) -> Scene:
    """Half of all questions end in a tie."""
    return replace(features_only(rng), ties=0.5, policy=EVEN, answers=LONG)


def cycle(rng: np.random.Generator) -> Scene:
    """Rock, paper, scissors, and somebody nobody likes."""
    problem = Problem.from_pairs(["rock", "paper", "scissors", "nothing"])
    beats = {("paper", "rock"), ("scissors", "paper"), ("rock", "scissors")}

    def taste(question: Question, judge: int, number: int) -> float:
        first, second = question.first or "", question.second or ""
        if "nothing" in (first, second):
            return 0.1 if first == "nothing" else 0.9
        return 0.85 if (first, second) in beats else 0.15

    return Scene(problem, taste, policy=EVEN, answers=LONG)


def change_of_mind(rng: np.random.Generator) -> Scene:
    """After half of the questions the opposite is liked."""
    return _shifted(features_only(rng), lambda logit, judge, number: logit if number < 120 else -logit)


def _shifted(scene: Scene, change: Callable[[float, int, int], float]) -> Scene:
    """The same with another logit for some."""
    before = scene.taste

    def taste(question: Question, judge: int, number: int) -> float:
        yes = min(max(before(question, judge, number), 1e-12), 1 - 1e-12)
        return logistic(change(math.log(yes / (1 - yes)), judge, number))

    return replace(scene, taste=taste, policy=EVEN, answers=LONG)


HONEST: dict[str, Callable[[np.random.Generator], Scene]] = {
    "features": features_only,
    "all tied": honest_tied,
    "fixed questions": honest_fixed,
    "scores only": honest_scores,
}

VIOLATIONS: dict[str, Callable[[np.random.Generator], Scene]] = {
    "misfit": misfit,
    "position": position,
    "judges differ": two_camps,
    "random judges": random_judge,
    "one-sided judges": one_sided_judge,
    "ties": many_ties,
    "cycles": cycle,
    "drift": change_of_mind,
    "repeats": remembering,
}
"""For each check the violation it is meant for."""


def played(scene: Scene, rng: np.random.Generator) -> Answers:
    """The answers of one run: who is asked, what is said, and what is a tie are drawn."""
    session = Session(scene.problem, scene.policy, seed=int(rng.integers(2**31)))
    number = 0
    liked: dict[tuple[int, int], str | None] = {}  # by judge and comparison: what was preferred last
    while questions := session.ask(min(10, scene.answers - number)) if number < scene.answers else []:
        for question in questions:
            judge = int(rng.integers(scene.judges))
            yes = rng.random() < scene.taste(question, judge, number)
            again = (judge, question.measurement)
            if again in liked and rng.random() < scene.memory:
                yes = liked[again] == question.first
            if rng.random() < scene.ties:
                session.tie(question.id, judge=f"judge {judge}")
            else:
                session.tell(question.id, int(yes), judge=f"judge {judge}")
                liked[again] = question.first if yes else question.second
            number += 1
    return answers_of(scene.problem, session.log)


def tasks(options: Options) -> list[Params]:
    """Blocks of runs: by default 1,000 of each world without violation and a tenth of that of each violation."""
    runs = options.runs or 1000
    wanted = dict.fromkeys(HONEST, runs) | {f"broken: {name}": max(1, runs // 10) for name in VIOLATIONS}
    blocks = [
        {"scene": scene, "block": number, "runs": min(BLOCK, count - number * BLOCK)}
        for scene, count in wanted.items()
        for number in range(-(-count // BLOCK))
    ]
    return sorted(blocks, key=lambda task: int(task["block"]))  # an interrupted study then has some of each


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """A block of runs, one row per run and check."""
    name = task["scene"]
    kind, _, broken = name.partition("broken: ")
    make = VIOLATIONS[broken] if broken else HONEST[kind]
    return [row for _ in range(task["runs"]) for row in evaluated(name, played(make(rng), rng), broken)]


def evaluated(scene: str, answers: Answers, broken: str = "") -> list[Row]:
    """Whether each check alarms at any evaluation; for a violation, only the check meant for it."""
    rows = []
    for name, check in CHECKS.items():
        if broken and name != broken:
            continue
        found = [check(answers.first(int(part * len(answers.said))), level=LEVEL) for part in EVALUATED_AT]
        rows.append(
            {
                "scene": scene,
                "check": name,
                "honest": not broken,
                "alarm": any(check.alarm for check in found),
                "alarm_at_the_end": found[-1].alarm,
                "e_value": found[-1].e_value,
            }
        )
    return rows


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Alarms with exact binomial limits."""
    grouped = groups(rows, "check", "scene", "honest")
    level = FALSE_ALARM / max(1, sum(honest for _, _, honest in grouped))
    cells = []
    for (check, scene, honest), group in grouped.items():
        alarms, count = sum(row["alarm"] for row in group), len(group)
        low, high = exact_limits(alarms, count)
        cells.append(
            {
                "check": check,
                "scene": scene,
                "runs": count,
                "alarms": alarms,
                "rate": alarms / count,
                "rate_low": low,
                "rate_high": high,
                "honest": honest,
                "exceeds_level": bool(honest and binom.sf(alarms - 1, count, LEVEL) < level),
            }
        )
    return {
        "level": LEVEL,
        "false_alarm_rate": FALSE_ALARM,
        "exceeding": sum(cell["exceeds_level"] for cell in cells),
        "least_power": min((cell["rate"] for cell in cells if not cell["honest"]), default=None),
        "cells": cells,
    }


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """False alarms against the level, and the share of planted violations detected."""
    path = folder / "checks.png"
    names = list(CHECKS)
    with figure(path, columns=2, size=(11.0, 3.8)) as (left, right):
        for scene in HONEST:
            cells = [cell for cell in summary["cells"] if cell["scene"] == scene]
            left.plot(
                [cell["rate"] for cell in cells], [names.index(cell["check"]) for cell in cells], "o", label=scene
            )
        left.axvline(LEVEL, color="black", ls=":", label="level")
        left.set(title="false alarms where all is well", xlabel="share of runs", xlim=(-0.003, 1.6 * LEVEL))
        left.legend(fontsize=8, frameon=False)
        seen = [cell for cell in summary["cells"] if not cell["honest"]]
        right.barh([names.index(cell["check"]) for cell in seen], [cell["rate"] for cell in seen], color="#0b6e4f")
        right.set(title="planted violations detected", xlabel="share of runs", xlim=(0, 1))
        for axes in (left, right):
            axes.set_yticks(range(len(names)), names)
            axes.invert_yaxis()
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """False alarms, and violations detected."""
    names = ("check", "scene", "runs", "alarms", "rate", "rate_high")
    parts = [[cell for cell in summary["cells"] if cell["honest"] is honest] for honest in (True, False)]
    titles = (f"False alarms at any of three evaluations, level {LEVEL:g}", "Planted violations detected")
    return [
        (title, [{name: cell[name] for name in names} for cell in part])
        for title, part in zip(titles, parts, strict=True)
        if part
    ]


STUDY = Study("checks", "False alarms and power of the checks of assumptions.", tasks, run, summarise, draw, tables)
