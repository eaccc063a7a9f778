"""Study `sticky`: people who repeat their first answer to a question whenever they are asked it again.

Their repeated answers are no evidence, and given the first one neither claim allows for them (docs/assumptions.md,
"Repeated answers"). A session that counts each question once must not be wrong more often than delta, and says why it
ends where it cannot decide. One that counts spaced repeats has to notice that they are remembered, and must not say so
of people who answer afresh. One that takes all for independent is the control: it must be wrong too often.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from surepick._arrays import Floats
from surepick.glm import probability_of_yes
from surepick.identify import Problem, Status
from surepick.identify.ladder import policy_for
from surepick.session import Question, Session
from surepick.session.find import AskLoop, FunctionJudge
from surepick.session.repeats import REPEATS
from surepick_experiments.studies.identification import DELTA, exact_limits, groups
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds import person
from surepick_experiments.worlds.preferences import SPREAD

FALSE_ALARM = 1e-3
"""Chance that the whole study accuses a setting that keeps its word (divided evenly over all its tests)."""

CONTROL = "independent"

BUDGET = 250
"""More than a person answers in an hour."""


def plain(rng: np.random.Generator) -> tuple[Problem, Floats]:
    """Six items without features, the best ahead by one."""
    scores = np.sort(rng.normal(0, SPREAD, 6))
    scores[-1] = scores[-2] + 1.0
    return Problem.from_pairs(np.eye(6)), rng.permutation(scores)


def colours(rng: np.random.Generator) -> tuple[Problem, Floats]:
    """Twelve colours with nine features that explain the taste."""
    taste = person(colours=12, gap=1.0, seed=int(rng.integers(2**31)))
    return taste.problem, taste.scores


WORLDS: dict[str, Callable[[np.random.Generator], tuple[Problem, Floats]]] = {
    "no features": plain,
    "colours": colours,
}

STICKY, AFRESH = "sticky", "afresh"

SETTINGS = (
    *((STICKY, "winner", "no features", repeats) for repeats in REPEATS),
    (AFRESH, "winner", "no features", "spaced"),
    *((STICKY, "winner", "colours", repeats) for repeats in REPEATS),
    *((STICKY, "features", "colours", repeats) for repeats in REPEATS),
)
"""Who answers, the claim, the world, and which repeats count."""


@dataclass(eq=False)
class StickyPerson:
    """Draws the first answer to each pair from the scores, and gives it again ever after; or not, as the control."""

    problem: Problem
    scores: Floats
    rng: np.random.Generator
    remembers: bool = True
    said: dict[int, int] = field(default_factory=dict)
    """By measurement: 1 for the first item of the problem's pair."""

    def __call__(self, question: Question) -> int:
        """1 for the item shown first."""
        if question.measurement not in self.said or not self.remembers:
            first, second = self.problem.about[question.measurement]
            chance = float(probability_of_yes(self.scores[first] - self.scores[second]))
            self.said[question.measurement] = int(self.rng.random() < chance)
        return self.said[question.measurement] ^ question.swapped


def tasks(options: Options) -> list[Params]:
    """Blocks of people for each setting and each way of counting repeats; 100 people each by default."""
    people, block = options.runs or 100, 10
    return [
        {"judge": judge, "claim": claim, "world": world, "repeats": repeats}
        | {"block": number, "runs": min(block, people - number * block)}
        for judge, claim, world, repeats in SETTINGS
        for number in range(-(-people // block))
    ]


def run_task(task: Params, rng: np.random.Generator) -> list[Row]:
    """A block of people."""
    known = {name: task[name] for name in ("judge", "claim", "world", "repeats")}
    rows = []
    for _ in range(task["runs"]):
        seed = int(rng.integers(2**31))
        problem, scores = WORLDS[task["world"]](np.random.default_rng([seed, 3]))
        policy = policy_for(problem, task["claim"], delta=DELTA)
        session = Session(problem, policy, repeats=task["repeats"], seed=seed)
        judge = StickyPerson(problem, scores, np.random.default_rng(seed), task["judge"] == STICKY)
        AskLoop(session, FunctionJudge(judge), budget=BUDGET).run()
        verdict = session.verdict()
        # "No winner" is said to be proved as well, and every taste here has one.
        named_wrong = verdict.stands and problem.index(verdict.best) != int(np.argmax(scores))
        rows.append(
            known
            | {
                "seed": seed,
                "questions": session.answered,
                "status": str(verdict.status),
                "decided": verdict.status.decided,
                "stands": verdict.stands,
                "no_winner": verdict.status is Status.NO_WINNER,
                "wrong": named_wrong or verdict.status is Status.NO_WINNER,
                "nothing_left_to_ask": session.exhausted,
                "memory_found": any("no longer count" in sentence for sentence in verdict.assumptions),
                "left": len(verdict.surviving),
            }
        )
    return rows


COUNTED = ("decided", "stands", "no_winner", "wrong", "nothing_left_to_ask", "memory_found")


def summarise(rows: list[Row]) -> dict[str, Any]:
    """How often each thing happened, and whether verdicts that stand are wrong more often than delta beyond doubt."""
    grouped = groups(rows, "judge", "claim", "world", "repeats")
    level = FALSE_ALARM / len(grouped)
    cells = []
    for (judge, claim, world, repeats), group in grouped.items():
        counts = {name: sum(row[name] for row in group) for name in COUNTED}
        wrong, people = counts["wrong"], len(group)
        cells.append(
            {"judge": judge, "claim": claim, "world": world, "repeats": repeats, "people": people}
            | counts
            | {"error_high": exact_limits(wrong, people)[1], "broken": bool(binom.sf(wrong - 1, people, DELTA) < level)}
            | {name: float(np.median([row[name] for row in group])) for name in ("questions", "left")}
        )
    controls = [cell for cell in cells if cell["repeats"] == CONTROL]
    return {
        "delta": DELTA,
        "false_alarm_rate": FALSE_ALARM,
        "controls": len(controls),
        "controls_caught": sum(cell["broken"] for cell in controls),
        "cells": cells,
    }


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Nothing: the table says it all."""
    return []


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """What happened in every setting."""
    return [(f"People who stick to their first answers, delta = {DELTA:g}", summary["cells"])]


STUDY = Study(
    "sticky",
    "People who repeat their first answers, with a control that counts them.",
    tasks,
    run_task,
    summarise,
    draw,
    tables,
)
