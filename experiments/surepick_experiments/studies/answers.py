"""Study `answers`: what a question is worth by how it is answered.

The same simulated people compare two colours, pick the best of four, or rank four; compare without and with ties; and
give hard votes or probabilities of the same mean. All searches end by the claim "winner".
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surepick._arrays import Floats
from surepick.answer import Answer
from surepick.identify import DrawnAnswers, Problem, Verdict, Winner, run
from surepick.report.figures import figure
from surepick.session import Question, find_best
from surepick_experiments.studies.identification import COLOURS, DELTA, groups
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds import person

COMPARE, PICK, RANK, TOP = "comparisons", "picks of 4", "rankings of 4", "top 2 of 4"
TIES, SOFT, HARD = "30% ties", "probabilities", "hard votes"

SETS: dict[str, dict[str, Any]] = {
    PICK: {"answer": "pick"},
    RANK: {"answer": "rank"},
    TOP: {"answer": "rank", "top": 2},
}
"""How questions about four items are answered."""

GAPS = (1.5, 0.35)

ITEMS = 37

TIED = 0.3
"""Share of answers that are ties; the expected score of every comparison stays as it is without them."""

SYSTEMS, MEAN, SPREAD = 5, 0.6, 0.2
"""Systems of which one is preferred with this mean, and the standard deviation of a judge's probability around it."""

MOST = 20_000
"""Questions after which a run counts as not decided."""


@dataclass(frozen=True, eq=False)
class TyingJudge:
    """Compares by the logistic model, or says tie: with the score ½ for it, expected scores are the model's.

    A tie is said with probability 0.3, or less where the answer is all but certain.
    """

    theta: Floats
    rng: np.random.Generator

    def __call__(self, question: Question) -> Answer:
        """1, 0 or "tie"."""
        p = float(1 / (1 + np.exp(-question.vector @ self.theta)))
        tie = min(TIED, 2 * min(p, 1 - p))
        return "tie" if (drawn := self.rng.random()) < tie else int(drawn < tie + p - tie / 2)


@dataclass(frozen=True, eq=False)
class GradingJudge:
    """Prefers item 0 with mean 0.6 and takes all others for equal; says a probability, or votes by it."""

    soft: bool
    rng: np.random.Generator

    def __call__(self, question: Question) -> Answer:
        """The probability that the first is better, or 1 or 0 drawn by it."""
        middle = 0.5 if "0" not in question.items else MEAN if question.first == "0" else 1 - MEAN
        said = float(np.clip(self.rng.normal(middle, SPREAD), 0.001, 0.999))
        return said if self.soft else int(self.rng.random() < said)


def tasks(options: Options) -> list[Params]:
    """One person, or one set of systems, a task: all forms of answers meet the same one."""
    runs = options.runs or 20
    people = [
        {"world": "colours", "items": ITEMS, "gap": gap, "run": number, "forms": [COMPARE, TIES, PICK, TOP, RANK]}
        for gap in GAPS
        if options.gap in (None, gap)
        for number in range(runs)
    ]
    systems = [
        {"world": "systems", "items": SYSTEMS, "gap": MEAN, "run": number, "forms": [HARD, SOFT]}
        for number in range(runs)
    ]
    return [*people, *(systems if options.gap is None else [])]


def run_task(task: Params, rng: np.random.Generator) -> list[Row]:
    """All forms of answers in one world."""
    seed = int(rng.integers(2**31))
    search = _systems if task["world"] == "systems" else _people
    rows = []
    for form in task["forms"]:
        began = time.perf_counter()
        verdict, best = search(task, form, seed)
        rows.append(
            {name: task[name] for name in ("world", "items", "gap")}
            | {
                "policy": form,
                "instance": f"{task['world']} {task['gap']:g}",
                "seed": seed,
                "questions": verdict.questions,
                "best": verdict.best,
                "decided": verdict.status.decided,
                "correct": verdict.best == best,
                "seconds": time.perf_counter() - began,
            }
        )
    return rows


def _people(task: Params, form: str, seed: int) -> tuple[Verdict, str]:
    """A person who compares colours, in one form."""
    taste = person(colours=task["items"], gap=task["gap"], seed=seed)
    rng, policy = np.random.default_rng([seed, 3]), Winner(delta=DELTA, budget=MOST)
    if form == TIES:
        return find_best(taste.problem, TyingJudge(taste.theta, rng), policy=policy, seed=seed), taste.best
    problem = taste.problem
    if form in SETS:
        options = SETS[form]
        problem = Problem.from_sets(problem.items, show=4, names=problem.names, **options)
    return run(problem, policy, DrawnAnswers(taste.theta, rng), seed=seed), taste.best


def _systems(task: Params, form: str, seed: int) -> tuple[Verdict, str]:
    """Systems of which the first is a little better."""
    judge = GradingJudge(form == SOFT, np.random.default_rng([seed, 3]))
    problem = Problem.from_pairs([str(number) for number in range(task["items"])])
    return find_best(problem, judge, policy=Winner(delta=DELTA, budget=MOST), seed=seed), "0"


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Medians by world and form; the ratio is of all questions to those of comparisons (or hard votes) there."""
    cells = []
    for (world, gap), inside in groups(rows, "world", "gap").items():
        base = sum(row["questions"] for row in inside if row["policy"] in (COMPARE, HARD))
        for (form,), some in groups(inside, "policy").items():
            questions = [row["questions"] for row in some]
            cells.append(
                {
                    "world": world,
                    "gap": gap,
                    "answers": form,
                    "runs": len(some),
                    "questions": float(np.median(questions)),
                    "mean": float(np.mean(questions)),
                    "fewer": base / sum(questions),
                    "undecided": sum(not row["decided"] for row in some),
                    "wrong": sum(row["decided"] and not row["correct"] for row in some),
                }
            )
    return {"cells": cells}


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Questions by the form of answers, every run a dot."""
    path = folder / "answers.png"
    known = groups(rows, "world", "gap")
    with figure(path, columns=len(known), size=(3.6 * len(known), 3.4)) as axes:
        for panel, ((world, gap), inside) in zip(axes, known.items(), strict=True):
            for place, ((_,), some) in enumerate(groups(inside, "policy").items()):
                questions = [row["questions"] for row in some]
                panel.plot([place] * len(some), questions, "o", ms=3, alpha=0.5, color=COLOURS["winner"])
                panel.plot([place - 0.3, place + 0.3], [np.median(questions)] * 2, "k-", lw=1.5)
            forms = [form for (form,) in groups(inside, "policy")]
            panel.set_xticks(range(len(forms)), forms, rotation=35, ha="right", fontsize=8)
            panel.set(title=f"{world}, gap {gap:g}" if world == "colours" else f"{world}, mean {gap:g}", yscale="log")
            panel.set_ylabel("questions")
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Questions by the form of answers."""
    return [("Questions until the best item is known, by how they are answered, delta = .05", summary["cells"])]


STUDY = Study(
    "answers",
    "What comparisons, picks, rankings, ties and probabilities are worth.",
    tasks,
    run_task,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "gap"),
)
