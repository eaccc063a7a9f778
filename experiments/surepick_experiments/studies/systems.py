"""Study `systems`: which of 12 systems is best on 500 inputs, and what it costs to know (docs/systems.md).

surepick draws an input for every question, so an answer has the mean win rate of its pair, whatever the inputs are
like: whole stages are simulated with one binomial draw per pair, which is exact. Beside it:

winner once     the same for a judge who always says the same: each pair at most once on each input in each order
rank 4, 6, all  the policy Winner with a ranking of that many systems on one input in every call
rank all once   all systems on one input in every call, in an order of display or its reverse, each at most once
all pairs       every pair on every input once; the highest mean win rate is named
duels           1,500 random pairs on random inputs, the model of Bradley and Terry, 200 bootstrap samples; the leader
                is named, and claimed to be the best if it leads in 95% of the samples
top two         Thompson sampling of the two likeliest best; stops when the leader is the best with probability .95 in
                the posterior (normal prior, Laplace)

Large worlds show the calls. Many small ones, five systems on 100 inputs, show how often each method is wrong; in some
of them the best system is ahead by one point only, where a prior that expects larger leads is of no help.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.errors import InvalidInput
from surepick.glm import probability_of_yes
from surepick.identify import Plan, Problem, Winner, run
from surepick.identify.sets import Order
from surepick.limits import winner_lower_bound
from surepick.report.figures import figure
from surepick_experiments.studies.identification import DELTA, groups
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds.item_response import KINDS, ItemResponses, item_responses
from surepick_experiments.worlds.preferences import Preferences

LARGE = (
    *(("plain", lead) for lead in (0.04, 0.06, 0.08)),
    ("clustered", 0.06),
    ("biased", 0.06),
    *(("fixed", lead) for lead in (0.04, 0.06, 0.08)),
)
"""Kinds of worlds of 12 systems and 500 inputs, and the lead of the best system in mean win rate."""

SMALL_SYSTEMS, SMALL_INPUTS = 5, 100

SMALL = (*((kind, 0.05, 5) for kind in KINDS), ("plain", 0.01, 2), ("clustered", 0.01, 2))
"""Kinds of small worlds, the lead, and tasks of `BATCH` worlds: 1,000 at five points, and 200 that are nearly a tie."""

BATCH = 50

MOST = 20_000
"""Calls after which a search counts as not decided."""

DUELS, RESAMPLES = 1_500, 200

TOP_TWO_BATCH, POSTERIOR_DRAWS = 10, 500

COARSE = 0.02
"""In small worlds stages of `winner` grow by this share of the questions before: the guarantee is the same."""

COARSE_RANKINGS = 0.05
"""The same for rankings, which take longer to count."""

PRIOR = 1.0
"""Standard deviation of a score in the posterior of top two, in log-odds."""


def tasks(options: Options) -> list[Params]:
    """Single large worlds, and batches of small ones."""
    runs = options.runs or 20
    for name in options.policies or ():
        if name not in METHODS or name in OTHERS:
            ours = [method for method in METHODS if method not in OTHERS]
            raise InvalidInput(f"There is no policy {name!r} in this study; it has {', '.join(ours)}.")
    chosen = {} if options.policies is None else {"policies": list(options.policies)}
    large = [
        {"kind": kind, "lead": lead, "systems": 12, "inputs": 500, "worlds": 1, "number": number} | chosen
        for kind, lead in LARGE
        for number in range(runs)
    ]
    small = [
        {
            "kind": kind,
            "lead": lead,
            "systems": SMALL_SYSTEMS,
            "inputs": SMALL_INPUTS,
            "worlds": min(BATCH, 5 * runs),
            "number": number,
        }
        | chosen
        for kind, lead, batches in SMALL
        for number in range(batches)
    ]
    return large + small


def run_task(task: Params, rng: np.random.Generator) -> list[Row]:
    """All methods in each of the task's worlds."""
    known = {name: task[name] for name in ("kind", "lead", "systems", "inputs")}
    coarse = COARSE if task["systems"] == SMALL_SYSTEMS else 0.0
    rows = []
    for _ in range(task["worlds"]):
        seed = int(rng.integers(2**31))
        world = item_responses(task["kind"], task["systems"], task["inputs"], task["lead"], rng)
        bound = winner_lower_bound(world.chances, delta=DELTA)
        for name, method in METHODS.items():
            if name not in (*task.get("policies", METHODS), *OTHERS):
                continue
            if (
                name in (ONCE, RANK_ONCE) and task["kind"] != "fixed"
            ):  # elsewhere the table of first answers is not the truth
                continue
            if name == "rank 6" and task["systems"] < 6:
                continue
            began = time.perf_counter()
            calls, best, claimed = method(world, seed, coarse)
            rows.append(
                known
                | {
                    "policy": name,
                    "instance": f"{task['kind']}-{task['systems']}x{task['inputs']}-{task['lead']:g}",
                    "seed": seed,
                    "questions": calls,
                    "outputs": calls * (task["systems"] if name.startswith("rank all") else SHOWN.get(name, 2)),
                    "best": str(best),
                    "correct": best == world.best,
                    "claimed": claimed,
                    "seconds": time.perf_counter() - began,
                    "lower_bound": bound,
                }
            )
    return rows


def by_winner(world: ItemResponses, seed: int, coarse: float) -> tuple[int, int, bool]:
    """Calls, the system named, and whether it is claimed to be the best: the policy Winner of surepick."""
    problem = Problem.from_pairs(np.eye(len(world.quality)))
    judge = Preferences(problem, world.chances).judge(seed)
    verdict = run(problem, Winner(delta=DELTA, budget=MOST), judge, seed=seed, coarse=coarse)
    return verdict.questions, problem.index(verdict.best), verdict.status.decided


def by_winner_once(world: ItemResponses, seed: int, coarse: float) -> tuple[int, int, bool]:
    """The same with every answer drawn at most once; one question per stage, as the proof wants it."""
    count, inputs = len(world.quality), world.quality.shape[1]
    rng = np.random.default_rng([seed, 14])
    table = world.first_answers(rng)
    for answers in table:
        rng.shuffle(answers)  # the order in which they are drawn
    problem = Problem.from_systems([str(number) for number in range(count)], [str(n) for n in range(inputs)], once=True)
    policy, drawn = Winner(delta=DELTA, budget=MOST), np.zeros(len(table), dtype=np.int64)
    state, plans = policy.start(problem), np.random.default_rng([seed, 1])
    while isinstance(plan := policy.plan(state, plans), Plan):
        wins = table[plan.measurements, drawn[plan.measurements]]
        drawn[plan.measurements] += 1
        state = policy.update(policy.apply(state, plan), plan.stage, plan.tally(problem, wins))
    verdict = policy.verdict(state)
    return verdict.questions, problem.index(verdict.best), verdict.status.decided


@dataclass(frozen=True, eq=False)
class Rankings:
    """The world's judge, asked for rankings: systems are known by their coordinate."""

    world: ItemResponses
    rng: np.random.Generator

    def wins(self, vectors: Floats, pulls: Integers) -> Integers:
        """Comparisons are not asked for."""
        raise AssertionError("This judge ranks.")

    def orders(self, features: Floats, top: int, times: int) -> list[Order]:
        """The top places of rankings of the systems with these features."""
        return self.world.rankings(np.argmax(features, axis=1), top, times, self.rng)


def by_rankings(world: ItemResponses, seed: int, coarse: float, show: int | None = None) -> tuple[int, int, bool]:
    """The policy Winner with a ranking of `show` systems, or of all, in every call."""
    names = [str(number) for number in range(len(world.quality))]
    problem = Problem.from_systems(names, ["drawn by the world"], show=show or len(names))
    judge = Rankings(world, np.random.default_rng([seed, 15]))
    coarse = max(coarse, COARSE_RANKINGS) if coarse else 0.0
    verdict = run(problem, Winner(delta=DELTA, budget=MOST), judge, seed=seed, coarse=coarse)
    return verdict.questions, problem.index(verdict.best), verdict.status.decided


def by_rankings_once(world: ItemResponses, seed: int, coarse: float) -> tuple[int, int, bool]:
    """The same with every answer about all systems drawn at most once."""
    rng = np.random.default_rng([seed, 16])
    table = world.first_rankings(rng)
    rng.shuffle(table)  # the order in which they are drawn
    names, inputs = (tuple(map(str, range(number))) for number in world.quality.shape)
    problem = Problem.from_systems(names, inputs, show=len(names), once=True)
    policy, plans = Winner(delta=DELTA, budget=MOST), np.random.default_rng([seed, 1])
    state, nobody = policy.start(problem), np.zeros(1, dtype=np.int64)
    while isinstance(plan := policy.plan(state, plans), Plan):
        nothing = plan.tally(problem, nobody, nobody)
        state = policy.update(policy.apply(state, plan), plan.stage, nothing, orders=[[table.pop()]])
    verdict = policy.verdict(state)
    return verdict.questions, problem.index(verdict.best), verdict.status.decided


def by_all_pairs(world: ItemResponses, seed: int, coarse: float) -> tuple[int, int, bool]:
    """Every pair on every input once, in a random order."""
    rng = np.random.default_rng([seed, 11])
    count = len(world.quality)
    wins = (rng.random(world.by_input.shape) < world.by_input).sum(axis=1)
    first, second = np.triu_indices(count, 1)
    score = np.bincount(first, wins, count) + np.bincount(second, world.by_input.shape[1] - wins, count)
    return world.by_input.size, int(np.argmax(score)), True


def by_duels(world: ItemResponses, seed: int, coarse: float) -> tuple[int, int, bool]:
    """A fixed number of duels; the bootstrap says whether the leader is claimed."""
    rng = np.random.default_rng([seed, 12])
    pairs, chances = _pairs(world)
    asked = rng.multinomial(DUELS, np.full(len(pairs), 1 / len(pairs)))
    wins = rng.binomial(asked, chances)
    # A bootstrap sample draws duels with replacement: how often each pair's wins and losses are drawn.
    cells = np.concatenate([wins, asked - wins])
    drawn = rng.multinomial(DUELS, cells / DUELS, size=RESAMPLES)
    samples = np.vstack([cells, drawn])
    scores = bradley_terry(pairs, samples[:, : len(pairs)], samples[:, len(pairs) :], len(world.quality))
    leaders = np.argmax(scores, axis=1)
    return DUELS, int(leaders[0]), bool(np.mean(leaders[1:] == leaders[0]) >= 1 - DELTA)


def by_top_two(world: ItemResponses, seed: int, coarse: float) -> tuple[int, int, bool]:
    """Top-two Thompson sampling with a posterior stop."""
    rng = np.random.default_rng([seed, 13])
    pairs, chances = _pairs(world)
    count = len(world.quality)
    row = {pair: number for number, pair in enumerate(map(tuple, pairs.tolist()))}
    wins, losses = np.zeros(len(pairs)), np.zeros(len(pairs))
    centre, asked = np.zeros(count), 0
    while True:
        centre, spread = posterior(pairs, wins, losses, centre)
        draws = centre + rng.normal(size=(POSTERIOR_DRAWS, count)) @ spread.T
        tops = np.argmax(draws, axis=1)
        chance = np.bincount(tops, minlength=count) / POSTERIOR_DRAWS
        leader = int(np.argmax(chance))
        if chance[leader] >= 1 - DELTA or asked >= MOST:
            return asked, leader, bool(chance[leader] >= 1 - DELTA)
        for top in tops[:TOP_TWO_BATCH]:
            others = tops[tops != top]  # the next draw with another best system is the challenger
            other = int(others[rng.integers(len(others))]) if len(others) else int(np.argsort(centre)[-2])
            if other == top:
                other = int(np.argsort(centre)[-1])
            number = row[min(int(top), other), max(int(top), other)]
            won = rng.random() < chances[number]
            wins[number] += won
            losses[number] += not won
            asked += 1


def _pairs(world: ItemResponses) -> tuple[Integers, Floats]:
    """All pairs, and the probability that the first wins on a random input in a random order."""
    return np.column_stack(np.triu_indices(len(world.quality), 1)), world.by_input.mean(axis=1)


def bradley_terry(pairs: Integers, wins: Floats, losses: Floats, count: int, ridge: float = 0.01) -> Floats:
    """Scores for each row of wins and losses, by Newton's method with a little ridge: rows × systems."""
    x = np.eye(count)[pairs[:, 0]] - np.eye(count)[pairs[:, 1]]
    theta = np.zeros((len(wins), count))
    for _ in range(12):
        chance = probability_of_yes(theta @ x.T)
        total = wins + losses
        slope = (wins - total * chance) @ x - ridge * theta
        curve = np.einsum("bp,pi,pj->bij", total * chance * (1 - chance), x, x, optimize=True) + ridge * np.eye(count)
        theta = theta + np.clip(np.linalg.solve(curve, slope[:, :, None])[:, :, 0], -2, 2)
    return np.asarray(theta)


def posterior(pairs: Integers, wins: Floats, losses: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Mode of the posterior of the scores, and a root of Laplace's covariance."""
    count = len(start)
    x = np.eye(count)[pairs[:, 0]] - np.eye(count)[pairs[:, 1]]
    theta, total = start, wins + losses
    for _ in range(4):  # from the mode of ten answers before
        chance = probability_of_yes(x @ theta)
        curve = (x.T * (total * chance * (1 - chance))) @ x + np.eye(count) / PRIOR**2
        theta = theta + np.linalg.solve(curve, x.T @ (wins - total * chance) - theta / PRIOR**2)
    return theta, np.asarray(np.linalg.inv(np.linalg.cholesky(curve)).T)


ONCE, RANK_ONCE = "winner once", "rank all once"

OTHERS = ("all pairs", "duels", "top two")
"""Methods that are always run, beside the policies chosen: they take milliseconds."""

COLOURS = {"winner": "#1f6f5c", "rank 4": "#4c72b0", "rank all": "#8172b3", "top two": "#b5651d"}
"""Of the methods that choose when to stop."""

SHOWN = {"rank 4": 4, "rank 6": 6}
"""Outputs that the judge reads in a call, where they are not two."""

METHODS: dict[str, Callable[[ItemResponses, int, float], tuple[int, int, bool]]] = {
    "winner": by_winner,
    ONCE: by_winner_once,
    "rank 4": partial(by_rankings, show=4),
    "rank 6": partial(by_rankings, show=6),
    "rank all": by_rankings,
    RANK_ONCE: by_rankings_once,
    "all pairs": by_all_pairs,
    "duels": by_duels,
    "top two": by_top_two,
}


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Calls, and how often a claim was wrong, by kind of world and method; and errors over all small worlds."""
    names = ("kind", "systems", "inputs", "lead", "policy")
    cells = [dict(zip(names, key, strict=True)) | _cell(group) for key, group in groups(rows, *names).items()]
    small = [row for row in rows if row["systems"] == SMALL_SYSTEMS]
    errors = [
        {"lead": lead, "policy": policy} | _cell(group)
        for (lead, policy), group in groups(small, "lead", "policy").items()
    ]
    return {"cells": cells, "errors": errors}


def _cell(group: list[Row]) -> Row:
    calls = [row["questions"] for row in group]
    return {
        "runs": len(group),
        "calls": float(np.median(calls)),
        "outputs": float(np.median([row["outputs"] for row in group])),
        "calls_90": float(np.quantile(calls, 0.9)),
        "claimed": sum(row["claimed"] for row in group),
        "wrong_claims": sum(row["claimed"] and not row["correct"] for row in group),
        "wrong": sum(not row["correct"] for row in group),
        "lower_bound": float(np.median([row["lower_bound"] for row in group])),
        "seconds": float(np.median([row["seconds"] for row in group])),
    }


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Calls of every run against the lower bound, for the methods that choose when to stop."""
    path = folder / "systems.png"
    with figure(path, size=(7.0, 4.4)) as (axes,):
        for policy, colour in COLOURS.items():
            group = [row for row in rows if row["policy"] == policy and row["systems"] != SMALL_SYSTEMS]
            if not group:  # not among the policies chosen
                continue
            bounds, calls = [row["lower_bound"] for row in group], [row["questions"] for row in group]
            axes.plot(bounds, calls, "o", ms=3, alpha=0.5, color=colour, label=policy)
        axes.axhline(DUELS, color="k", lw=0.8, ls=":", label="1,500 duels")
        axes.set(xscale="log", yscale="log", xlabel="lower bound if only a winner is assumed", ylabel="calls")
        axes.legend(fontsize=8, frameon=False)
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Calls in large and small worlds, and errors over all small ones; in few columns, for a terminal."""
    shown = ("kind", "lead", "policy", "runs", "calls", "outputs", "claimed", "wrong_claims", "wrong", "lower_bound")
    tables = []
    for systems, group in groups(summary["cells"], "systems").items():
        cells = [{name: cell[name] for name in shown} for cell in group]
        tables.append((f"Calls among {systems[0]} systems (medians), delta = .05", cells))
    errors = [{name: cell[name] for name in shown if name in cell} for cell in summary["errors"]]
    return [*tables, (f"Errors over all worlds of {SMALL_SYSTEMS} systems", errors)]


STUDY = Study(
    "systems",
    "Which of 12 systems is best on 500 inputs, and what it costs to know.",
    tasks,
    run_task,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "policies"),
)
