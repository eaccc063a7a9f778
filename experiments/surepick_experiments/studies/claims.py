"""Study `claims`: how often each claim is wrong in worlds that break what the features say, but have a winner.

"winner" assumes that one item wins each of its comparisons at least half the time (W), "features" that answers are
logistic in the features (docs/assumptions.md). Here features mislead, tastes drift, judges disagree or prefer what is
on the left, or the winner is tied: (W) holds in every world. So "winner" must not be wrong more often than delta;
"features" is where its assumption fails. A Winner that fixes its bets after the answer must be caught.

A verdict is wrong if it names another item, or says that there is no winner. Where several items are equally good, each
of them satisfies (W); one of them is drawn beforehand as the winner, and to exclude it is an error.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from surepick._arrays import Floats, Integers
from surepick.answer import Answer
from surepick.glm import Tally, probability_of_yes
from surepick.identify import Anytime, Policy, Problem, Status, Verdict, Winner, run
from surepick.identify.policy import Partial
from surepick.identify.sets import Orders
from surepick.identify.winner_state import WinnerState
from surepick.session import Question, Session
from surepick.session.find import AskLoop, FunctionJudge
from surepick_experiments.studies.identification import DELTA, exact_limits, groups
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds.preferences import bradley_terry

FALSE_ALARM = 1e-3
"""Chance that the whole study accuses a claim that keeps its word (divided evenly over all its tests)."""

PEEKING = "control: bets fixed after the answer"

GAP = 1.5
"""By how much the winner is better than the second, in log-odds, where nothing else is said: runs are short then."""

EPSILON = 0.8
CHANGES = 10
"""Questions after which a taste that drifts has changed, or the other camp answers."""

BIAS = 1.5
"""What the left side is worth in log-odds."""

TIES = 0.3
"""Share of answers "no difference"."""

BUDGET = {"winner": 600, "features": 1500, PEEKING: 600}
AMONG_EQUALS = 150
"""Questions that end runs which cannot decide, and those among equals."""


@dataclass(frozen=True, eq=False)
class Case:
    """A problem, who wins it, and the probability that the first of two items beats the second at a time."""

    problem: Problem
    winner: int
    chance: Callable[[int, int, int], float]
    """Of the first item, the second, and how many questions were answered before."""
    epsilon: float = 0.0
    bias: float = 0.0
    """What the place shown first is worth, in log-odds."""
    ties: float = 0.0
    tied: bool = False
    """Whether another item is as good as the winner, so that a search seldom ends."""

    @cached_property
    def pairs(self) -> dict[bytes, tuple[int, int]]:
        """The pair of items that each measurement compares."""
        rows = zip(self.problem.measurements, self.problem.about.tolist(), strict=True)
        return {vector.tobytes(): (first, second) for vector, (first, second) in rows}

    def is_good(self, item: int) -> bool:
        """Whether the winner beats this item by at most epsilon."""
        return item == self.winner or self.chance(self.winner, item, 0) <= float(
            probability_of_yes(np.array(self.epsilon))
        )

    def is_wrong(self, verdict: Verdict) -> bool:
        """Whether something was claimed that does not hold."""
        if verdict.status is Status.NO_WINNER:
            return True
        named = self.problem.index(verdict.best)
        right = self.is_good(named) if verdict.status is Status.WITHIN_EPSILON else named == self.winner
        return verdict.status.decided and not right


@dataclass(eq=False)
class CaseJudge:
    """Answers one question after the other, whole stages or single ones."""

    case: Case
    rng: np.random.Generator
    answered: int = 0

    def wins(self, vectors: Floats, pulls: Integers) -> ArrayLike:
        """How many of the answers to each vector are for its first item."""
        wins = []
        for vector, times in zip(vectors, pulls.tolist(), strict=True):
            wins.append(sum(self._wins(*self.case.pairs[vector.tobytes()]) for _ in range(times)))
        return wins

    def __call__(self, question: Question) -> Answer:
        """1 if the item shown first is preferred; or a tie."""
        if self.case.ties and self.rng.random() < self.case.ties:
            return "tie"
        first, second = (self.case.problem.index(str(name)) for name in (question.first, question.second))
        return int(self._wins(first, second))

    def _wins(self, first: int, second: int) -> bool:
        chance = self.case.chance(first, second, self.answered)
        self.answered += 1
        odds = math.log(chance / (1 - chance)) + self.case.bias
        return bool(self.rng.random() < float(probability_of_yes(np.array(odds))))


def _scores(items: int, gap: float, rng: np.random.Generator) -> Floats:
    """Scores in random order, the best ahead by the gap."""
    scores = rng.normal(0, 1.2, items)
    second, best = np.argsort(scores)[-2:]
    scores[best] = scores[second] + gap
    return scores


def _fixed(chances: Floats, features: Floats | None = None, **options: Any) -> Case:
    """A world that does not change; the item of the largest least chance wins."""
    problem = Problem.from_pairs(np.eye(len(chances)) if features is None else features)
    winner = int(np.argmax(np.min(chances, axis=1)))
    return Case(problem, winner, lambda first, second, _: float(chances[first, second]), **options)


def _shuffled(chances: Floats, rng: np.random.Generator, **options: Any) -> Case:
    """The same with the items in random order, without features: item 0 of `chances` wins."""
    order = rng.permutation(len(chances))
    case = _fixed(chances[np.ix_(order, order)], **options)
    return replace(case, winner=int(np.flatnonzero(order == 0)[0]))


def right_features(rng: np.random.Generator) -> Case:
    """Two features that explain everything."""
    scores = _scores(6, GAP, rng)
    return _fixed(bradley_terry(scores), _explaining(scores, rng))


def _explaining(scores: Floats, rng: np.random.Generator) -> Floats:
    """Two features of which the scores are a linear function."""
    other = rng.normal(size=len(scores))
    return np.column_stack([scores + other, scores - other])


def misleading(rng: np.random.Generator) -> Case:
    """The features are right for every item but the winner, which they show as one from the middle."""
    scores = _scores(6, GAP, rng)
    shown = scores.copy()
    shown[np.argmax(scores)] = np.median(scores) + rng.normal(0, 0.1)
    return _fixed(bradley_terry(scores), _explaining(shown, rng))


def useless(rng: np.random.Generator) -> Case:
    """Two features that have nothing to do with the answers."""
    return _fixed(bradley_terry(_scores(6, GAP, rng)), rng.normal(size=(6, 2)))


def nearly_right(rng: np.random.Generator) -> Case:
    """Each score differs a little from what two features say of it."""
    scores = _scores(6, 0.8, rng)
    return _fixed(bradley_terry(scores), _explaining(scores + rng.normal(0, 0.5, 6), rng))


def tie_within_epsilon(rng: np.random.Generator) -> Case:
    """Two best items, and a margin that allows either."""
    return _shuffled(bradley_terry(np.array([2.0, 2.0, 0.0, -0.5, -1.0])), rng, epsilon=EPSILON)


def exact_tie(rng: np.random.Generator) -> Case:
    """Two best items."""
    return _shuffled(bradley_terry(np.array([2.0, 2.0, 0.0, -0.5])), rng, tied=True)


def all_equal(rng: np.random.Generator) -> Case:
    """Every answer is a coin toss."""
    return _shuffled(np.full((3, 3), 0.5), rng, tied=True)


def border(rng: np.random.Generator) -> Case:
    """The winner wins exactly half of its comparisons with one rival, which others beat."""
    chances = bradley_terry(np.array([2.0, 2.0, 0.5, -1.0]))
    chances[2, 1], chances[1, 2] = 0.85, 0.15
    return _shuffled(chances, rng, tied=True)


def circle(rng: np.random.Generator) -> Case:
    """Below the winner everything goes in a circle."""
    around = (np.arange(6)[None, :] - np.arange(6)[:, None]) % 5
    chances = np.where(around == 0, 0.5, np.where(around < 2.5, 0.8, 0.2))
    chances[0, 1:], chances[1:, 0] = 0.82, 0.18
    return _shuffled(chances, rng)


def drift(rng: np.random.Generator) -> Case:
    """The winner stays ahead of everybody, and the order of the others changes all the time."""
    winner, wins = int(rng.integers(6)), float(probability_of_yes(np.array(GAP)))
    orders = [bradley_terry(rng.normal(0, 1.2, 6)) for _ in range(20)]

    def chance(first: int, second: int, number: int) -> float:
        if winner in (first, second):
            return wins if first == winner else 1 - wins
        return float(orders[number // CHANGES % len(orders)][first, second])

    return Case(Problem.from_pairs(rng.normal(size=(6, 2))), winner, chance)


def two_camps(rng: np.random.Generator) -> Case:
    """Two groups of judges, who answer in turns, have the same favourite and opposite orders of the others."""
    scores = _scores(6, GAP, rng)
    opposite = np.where(scores == scores.max(), scores.max(), np.sort(scores)[-2] + scores.min() - scores)
    camps = bradley_terry(scores), bradley_terry(opposite)
    return Case(
        Problem.from_pairs(_explaining(scores, rng)),
        int(np.argmax(scores)),
        lambda first, second, number: float(camps[number // CHANGES % 2][first, second]),
    )


def left_bias(rng: np.random.Generator) -> Case:
    """The side is worth as much as the winner is ahead; sessions draw the side of every question."""
    return _fixed(bradley_terry(_scores(4, GAP, rng)), bias=BIAS)


def many_ties(rng: np.random.Generator) -> Case:
    """Judges often see no difference."""
    return _fixed(bradley_terry(_scores(4, GAP, rng)), ties=TIES)


WORLDS: dict[str, Callable[[np.random.Generator], Case]] = {
    "features right": right_features,
    "misleading features": misleading,
    "useless features": useless,
    "nearly right features": nearly_right,
    "two camps, one favourite": two_camps,
    "drift below the winner": drift,
    "circle below the winner": circle,
    "border of (W)": border,
    "exact tie": exact_tie,
    "exact tie, epsilon": tie_within_epsilon,
    "all equal": all_equal,
    "left bias": left_bias,
    "30% ties": many_ties,
}
WITH_FEATURES = ("features right", "misleading features", "useless features", "nearly right features")
"""Where the claim "features" is counted: elsewhere there are no features, or a session proves it by Winner."""

EQUALS = ("border of (W)", "exact tie", "all equal")
"""Where the control has to be caught: a winner that is clearly ahead forgives much."""

FEWER = 4
"""For each run of "features" and of the control there are this many of "winner": they are slower, and fail often."""


KNOWN = 0.6
"""Probability with which the control claims to have expected what happened."""


@dataclass(frozen=True, kw_only=True)
class Peeking(Winner):
    """Winner that says what it predicted once the answer is known: that who lost would lose. The negative control."""

    def update(
        self, state: WinnerState, stage: int, tally: Tally, partial: Partial = (), orders: Orders = ()
    ) -> WinnerState:
        """Record the answers, and only then fix the bets on them."""
        after = super().update(state, stage, tally, partial, orders)
        record = after.stages[stage]
        # `predict` uses every answer that is in, and by now these are.
        shares = []
        for measurement, pulls, wins in zip(record.plan.measurements, record.pulls, record.wins, strict=True):
            lost = 2 * wins < pulls
            predicted = after.predict(int(measurement))
            shares.append([min(share, 1 - KNOWN) if lost else max(share, KNOWN) for share in predicted])
        kept = {name: value for name, value in record.plan.memo.items() if name != "stakes"}  # those were fixed in time
        plan = replace(record.plan, memo={**kept, "shares": shares})
        return after.with_stage(stage, replace(record, plan=plan))


def tasks(options: Options) -> list[Params]:
    """Blocks of runs of one claim in one world; 200 runs of "winner" by default."""
    runs, block = options.runs or 200, 25
    fewer = -(-runs // FEWER)
    cells = [("winner", world, runs) for world in WORLDS] + [(PEEKING, world, fewer) for world in EQUALS]
    cells += [("features", world, fewer) for world in WITH_FEATURES]
    return [
        {"claim": claim, "world": world, "block": number, "runs": min(block, count - number * block)}
        for number in range(-(-runs // block))  # all cells by turns: rows of an interrupted study are of all of them
        for claim, world, count in cells
        if number * block < count
    ]


def run_task(task: Params, rng: np.random.Generator) -> list[Row]:
    """A block of runs."""
    rows = []
    for _ in range(task["runs"]):
        seed = int(rng.integers(2**31))
        case = WORLDS[task["world"]](np.random.default_rng([seed, 3]))
        verdict = search(case, task["claim"], seed)
        rows.append(
            {"claim": task["claim"], "world": task["world"], "seed": seed, "questions": verdict.questions}
            | {"status": str(verdict.status), "decided": verdict.status.decided, "wrong": case.is_wrong(verdict)}
        )
    return rows


def search(case: Case, claim: str, seed: int) -> Verdict:
    """One search to its verdict."""
    known: dict[str, type[Anytime] | type[Winner]] = {"winner": Winner, "features": Anytime, PEEKING: Peeking}
    policy: Policy[Any] = known[claim](
        delta=DELTA, epsilon=case.epsilon, budget=AMONG_EQUALS if case.tied else BUDGET[claim]
    )
    judge = CaseJudge(case, np.random.default_rng(seed))
    if not (case.bias or case.ties):
        return run(case.problem, policy, judge, seed=seed)
    # Sides and ties are a session's business.
    session = Session(case.problem, policy, seed=seed)
    AskLoop(session, FunctionJudge(judge)).run()
    return session.verdict()


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Errors with exact binomial limits, and whether delta is exceeded beyond doubt."""
    grouped = groups(rows, "claim", "world")
    level = FALSE_ALARM / len(grouped)
    cells = []
    for (claim, world), group in grouped.items():
        wrong, count = sum(row["wrong"] for row in group), len(group)
        cells.append(
            {
                "claim": claim,
                "world": world,
                "runs": count,
                "decided": sum(row["decided"] for row in group),
                "wrong": wrong,
                "error_rate": wrong / count,
                "error_high": exact_limits(wrong, count)[1],
                "broken": bool(binom.sf(wrong - 1, count, DELTA) < level),
                "questions": float(np.median([row["questions"] for row in group])),
            }
        )
    proved = [cell for cell in cells if cell["claim"] == "winner"]
    controls = [cell for cell in cells if cell["claim"] == PEEKING]
    runs, wrong = (sum(cell[name] for cell in proved) for name in ("runs", "wrong"))
    return {
        "delta": DELTA,
        "false_alarm_rate": FALSE_ALARM,
        "runs": runs,
        "wrong": wrong,
        "error_high": exact_limits(wrong, runs)[1] if runs else None,
        "broken": sum(cell["broken"] for cell in proved),
        "features_broken": [cell["world"] for cell in cells if cell["claim"] == "features" and cell["broken"]],
        "controls": len(controls),
        "controls_caught": sum(cell["broken"] for cell in controls),
        "cells": cells,
    }


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Nothing: the table says it all."""
    return []


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Errors of every claim in every world."""
    return [(f"Wrong verdicts at delta = {DELTA:g}", summary["cells"])]


STUDY = Study(
    "claims",
    "Error rates where the features are wrong, with a negative control.",
    tasks,
    run_task,
    summarise,
    draw,
    tables,
)
