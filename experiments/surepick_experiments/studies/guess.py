"""Study `guess`: how often the item named after 50, 100, 200 and 400 questions is the best one, decided or not.

"winner" and "anytime" are the policies of the two claims (docs/assumptions.md). "own scores" and "features alone" are
Winner with half of its beliefs: one score per item, or the features and nothing else. "top-two" is top-two Thompson
sampling with Laplace's approximation of the features' posterior. "uniform" draws pairs at random and fits a score for
each item. "asap" asks spanning trees of the most informative pairs (Mikhailiuk et al. 2020).

With `--data DIR` instead on recorded votes: `*items.csv` with `*answers.csv` beside it, in DIR and the folders below.
The votes answer themselves ("recorded votes": each pair by the share of its votes, a tie counted half), and a logistic
model of the features fitted to them does ("look-alikes": there the features are right).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from surepick._arrays import Floats
from surepick.errors import InvalidInput
from surepick.glm import Tally, fit, probability_of_yes
from surepick.glm.item_scores import FEATURE_SCALES, OWN_SCALES, ItemScores
from surepick.identify import Anytime, Plan, Policy, Problem, Verdict, Wait, Winner, run
from surepick.identify.winner_state import WinnerState
from surepick.io.items import read_items
from surepick.io.votes import numbers_of, read_votes
from surepick.report.figures import figure
from surepick_experiments.benchmark.challenge import Answer, Challenge
from surepick_experiments.benchmark.methods.spanning_trees import Asap
from surepick_experiments.studies.identification import groups
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds.preferences import (
    DISGUISED,
    NEARLY,
    PEOPLE,
    PLAIN,
    SPREAD,
    USELESS,
    Preferences,
    bradley_terry,
    preferences,
)

AFTER = (50, 100, 200, 400)
"""Questions after which the best guess is read."""

RECORDED, LOOK_ALIKE = "recorded votes", "look-alikes"

SETTINGS: tuple[tuple[str, int, float], ...] = (
    *((PEOPLE, 37, gap) for gap in (1.5, 0.35)),
    (PLAIN, 10, 0.4),
    (PLAIN, 37, 1.0),
    (USELESS, 20, 1.0),
    (DISGUISED, 20, 1.0),
    (NEARLY, 37, 0.5),
)
"""World, items, and the gap between the best and the second in log-odds."""

PRIOR = 2.0
"""Standard deviation of the log-odds of an answer, before any is in, for top-two Thompson sampling."""

TRUSTING = 0.1
"""Prior deviation of items' own scores up to which the features are said to explain everything."""

TRIES = 50
"""Samples of the posterior in search of a second item that may be best."""


def make_world(world: str, items: int, gap: float, data: str | None, rng: np.random.Generator) -> Preferences:
    """A random world of this kind; with `data` one of the recorded sets."""
    if data is not None:
        return _recorded(world, Path(data), rng)
    return preferences(world, items, gap, rng)


def _recorded(world: str, folder: Path, rng: np.random.Generator) -> Preferences:
    """One of the sets in a folder, drawn at random: its votes, or a model of its features drawn given the votes."""
    found = sorted(folder.rglob("*items.csv"))
    if not found:
        raise InvalidInput(f"{folder} has no file *items.csv; recorded sets have one, with *answers.csv beside it.")
    path = found[int(rng.integers(len(found)))]
    items = read_items(path)
    problem = items.problem()
    number = numbers_of(problem)
    votes = read_votes(path.with_name(path.name.replace("items", "answers")), items.names).distinguishable(problem)
    count = len(problem.items)
    won, asked = np.zeros((count, count)), np.zeros((count, count))
    for vote in votes.votes:
        if vote.answer is not None and not isinstance(vote.answer, tuple):
            first, second = (number[name] for name in vote.shown)
            share = 0.5 if vote.answer == "tie" else float(vote.answer)
            won[first, second] += share
            won[second, first] += 1 - share
            asked[first, second] += 1
            asked[second, first] += 1
    first, second = problem.about.T
    # Ties as half a vote each way; a count has to be whole, so everything is doubled and the ridge with it.
    tally = Tally(problem.rows, 2 * asked[first, second], 2 * won[first, second])
    if world == LOOK_ALIKE:
        precision = 1 / _prior_variance(problem)
        model = fit(tally, ridge=2 * precision)
        shape = np.linalg.cholesky(np.linalg.inv(model.information / 2 + precision * np.eye(problem.span.rank)))
        return Preferences(problem, bradley_terry(problem.points @ (model.theta + shape @ rng.normal(size=len(shape)))))
    fallback = bradley_terry(_bradley_terry_fit(problem, 2 * asked[first, second], 2 * won[first, second]))
    return Preferences(problem, np.where(asked > 0, won / np.maximum(asked, 1), fallback))


def _prior_variance(problem: Problem) -> float:
    """The variance of each coordinate of θ with which the log-odds of an answer have the deviation `PRIOR`."""
    return PRIOR**2 / float(np.mean(np.einsum("xi,xi->x", problem.rows, problem.rows)))


def _bradley_terry_fit(problem: Problem, pulls: Floats, wins: Floats) -> Floats:
    """Scores of all items, one coordinate each, with a ridge for the prior deviation `SPREAD`."""
    rows = np.eye(len(problem.items))[problem.about[:, 0]] - np.eye(len(problem.items))[problem.about[:, 1]]
    return fit(Tally(rows, pulls, wins), ridge=1 / SPREAD**2).theta


@dataclass(frozen=True, eq=False)
class Watched:
    """A policy that notes its best guess after each number of questions in `AFTER`, and then ends."""

    policy: Policy[Any]
    named: list[str]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    def plan(self, state: Any, rng: np.random.Generator) -> Plan | Wait | Verdict:
        """The plan of the policy."""
        outcome = self.policy.plan(state, rng)
        final = isinstance(outcome, Verdict)
        # A decision stays the best guess however many questions could still be asked.
        while len(self.named) < len(AFTER) and (final or state.asked >= AFTER[len(self.named)]):
            self.named.append(self.policy.verdict(state).best)
        return outcome


@dataclass(frozen=True, kw_only=True)
class OwnScores(Winner):
    """Winner that believes in a score for each item and in no feature."""

    def start(self, problem: Problem) -> WinnerState:
        """The state before the first question."""
        return replace(super().start(problem), scores=ItemScores.of(None, len(problem.items)))


@dataclass(frozen=True, kw_only=True)
class FeaturesAlone(Winner):
    """Winner that believes in the features and in nothing else."""

    def start(self, problem: Problem) -> WinnerState:
        """The state before the first question; as it is where there are no features."""
        state = super().start(problem)
        scores = state.scores
        if len(scores.mean) == len(OWN_SCALES):
            return state
        trusted = [len(OWN_SCALES) + place for place, (_, tau) in enumerate(FEATURE_SCALES) if tau <= TRUSTING]
        names = ("mean", "variance", "written", "drawn", "log_weights")
        kept = {name: getattr(scores, name)[trusted] for name in names}
        return replace(state, scores=replace(scores, **kept, pending=scores.pending[:, trusted]))


def by_policy(make: Callable[..., Policy[Any]], world: Preferences, seed: int) -> list[int]:
    """The best guesses of a policy."""
    watched = Watched(make(budget=AFTER[-1]), [])
    run(world.problem, watched, world.judge(seed), seed=seed)
    return [world.problem.index(name) for name in watched.named]


def by_uniform(world: Preferences, seed: int) -> list[int]:
    """Pairs drawn at random, and Bradley–Terry."""
    rng = np.random.default_rng([seed, 1])
    problem = world.problem
    drawn = rng.integers(len(problem.measurements), size=AFTER[-1])
    first, second = problem.about[drawn].T
    won = rng.random(AFTER[-1]) < world.chances[first, second]
    named = []
    for asked in AFTER:
        pulls = np.bincount(drawn[:asked], minlength=len(problem.about)).astype(np.float64)
        wins = np.bincount(drawn[:asked], won[:asked], len(problem.about)).astype(np.float64)
        named.append(int(np.argmax(_bradley_terry_fit(problem, pulls, wins))))
    return named


def by_asap(world: Preferences, seed: int) -> list[int]:
    """ASAP, as in the benchmark."""
    rng = np.random.default_rng([seed, 1])
    method = Asap(Challenge(len(world.problem.items)), rng)
    named = []
    for asked in range(AFTER[-1]):
        question = method.ask()
        method.tell(question, Answer(float(rng.random() < world.chances[question.first, question.second])))
        if asked + 1 in AFTER:
            named.append(method.best())
    return named


def by_top_two(world: Preferences, seed: int) -> list[int]:
    """Top-two Thompson sampling: the best items of two samples of θ are compared (Russo 2016, with β = ½)."""
    rng = np.random.default_rng([seed, 1])
    problem, precision = world.problem, 1 / _prior_variance(world.problem)
    points, theta = problem.points, np.zeros(problem.span.rank)
    x, won = np.zeros((AFTER[-1], len(theta))), np.zeros(AFTER[-1])
    named = []
    for asked in range(AFTER[-1]):
        shape = cholesky(_information(x[:asked], theta) + precision * np.eye(len(theta)), lower=True)
        first, second = _two_best(points, theta, shape, rng)
        x[asked] = points[first] - points[second]
        won[asked] = rng.random() < world.chances[first, second]
        for _ in range(2):  # Newton's steps from the last estimate, which one answer moves little
            p = probability_of_yes(x[: asked + 1] @ theta)
            gradient = x[: asked + 1].T @ (won[: asked + 1] - p) - precision * theta
            hessian = _information(x[: asked + 1], theta) + precision * np.eye(len(theta))
            theta = theta + cho_solve(cho_factor(hessian), gradient)
        if asked + 1 in AFTER:
            named.append(int(np.argmax(points @ theta)))
    return named


def _information(x: Floats, theta: Floats) -> Floats:
    p = probability_of_yes(x @ theta)
    return np.asarray(x.T @ (x * (p * (1 - p))[:, None]))


def _two_best(points: Floats, theta: Floats, shape: Floats, rng: np.random.Generator) -> tuple[int, int]:
    """The best item of a sample of θ, and of the next sample with another one; the second best where there is none."""
    noise = solve_triangular(shape, rng.normal(size=(len(theta), TRIES)), lower=True, trans="T")
    scores = points @ (theta[:, None] + noise)
    best = np.argmax(scores, axis=0)
    others = best[best != best[0]]
    return int(best[0]), int(others[0] if len(others) else np.argsort(scores[:, 0])[-2])


METHODS: dict[str, Callable[[Preferences, int], list[int]]] = {
    "winner": lambda world, seed: by_policy(Winner, world, seed),
    "own scores": lambda world, seed: by_policy(OwnScores, world, seed),
    "features alone": lambda world, seed: by_policy(FeaturesAlone, world, seed),
    "anytime": lambda world, seed: by_policy(Anytime, world, seed),
    "top-two": by_top_two,
    "uniform": by_uniform,
    "asap": by_asap,
}


def tasks(options: Options) -> list[Params]:
    """One world per task, for all methods."""
    chosen = options.policies or tuple(METHODS)
    for name in chosen:
        if name not in METHODS:
            raise InvalidInput(f"The study guess knows no method {name!r}; choose among {', '.join(METHODS)}.")
    settings: list[Params] = [{"world": world, "items": items, "gap": gap} for world, items, gap in SETTINGS]
    if options.data is not None:
        settings = [{"world": world, "items": 0, "gap": 0.0, "data": options.data} for world in (RECORDED, LOOK_ALIKE)]
    return [
        setting | {"run": number, "methods": list(chosen)}
        for number in range(options.runs or 100)  # all worlds by turns: rows of an interrupted study are of all of them
        for setting in settings
    ]


def run_task(task: Params, rng: np.random.Generator) -> list[Row]:
    """All methods in one world."""
    seed = int(rng.integers(2**31))
    world = make_world(task["world"], task["items"], task["gap"], task.get("data"), np.random.default_rng([seed, 3]))
    # With recorded votes there need not be an item that wins all of its comparisons; the best wins most on average.
    best = int(np.argmax(world.chances.mean(axis=1)))
    return [
        {name: task[name] for name in ("world", "items", "gap")}
        | {"method": method, "seed": seed, "after": asked, "correct": item == best}
        | {"behind": float(world.chances[best, item]) - 0.5}
        for method in task["methods"]
        for asked, item in zip(AFTER, METHODS[method](world, seed), strict=True)
    ]


def summarise(rows: list[Row]) -> dict[str, Any]:
    """The share of right guesses by world and method, after each number of questions."""
    cells = []
    for (world, items, gap, method), group in groups(rows, "world", "items", "gap", "method").items():
        cell: Row = {"world": world, "items": items, "gap": gap, "method": method}
        for asked in AFTER:
            chosen = [row for row in group if row["after"] == asked]
            cell |= {"runs": len(chosen), f"right_{asked}": float(np.mean([row["correct"] for row in chosen]))}
        cell[f"behind_{AFTER[-1]}"] = float(np.mean([row["behind"] for row in group if row["after"] == AFTER[-1]]))
        cells.append(cell)
    return {"cells": cells}


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Share of right guesses against questions, a panel for each world."""
    path = folder / "guess.png"
    worlds = groups(summary["cells"], "world", "items", "gap")
    columns = min(4, len(worlds))
    lines = -(-len(worlds) // columns)
    with figure(path, columns=columns, rows=lines, size=(3.3 * columns, 3.3 * lines)) as panels:
        for axes, ((world, _, gap), cells) in zip(panels, worlds.items(), strict=False):
            for cell in cells:
                axes.plot(AFTER, [cell[f"right_{asked}"] for asked in AFTER], "-o", ms=3, label=cell["method"])
            axes.set(xscale="log", ylim=(0, 1), xlabel="questions", title=f"{world}, {gap:g}" if gap else world)
        panels[0].set_ylabel("share of right guesses")
        panels[0].legend(fontsize=7, frameon=False)
        for axes in panels[len(worlds) :]:
            axes.set_axis_off()
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Right guesses of every method in every world."""
    return [(f"Share of right best guesses after {', '.join(map(str, AFTER))} questions", summary["cells"])]


STUDY = Study(
    "guess",
    "How good the best guess is before the search is decided.",
    tasks,
    run_task,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "policies", "data"),
)
