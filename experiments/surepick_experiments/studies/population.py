"""Study `population`: how many questions a person answers who is drawn from a known population, and how often in vain.

"usual" people are drawn from `Population.usual` on 37 random colours, which is what the policy assumes. "alike" people
share a taste to some degree: new ones are searched with the usual population, and with one learned from 40 earlier
people, each with 40 answers. "opposite" people have the opposite taste of the earlier ones. "hairline" and "tied" are
usual people whose two best items are moved to a gap of .05, and to none, where any verdict counts as wrong.

With `--policies winner` searches end by the claim "winner", which only predicts by a population: people who are alike,
with the colours' features and without ("bare"), and of the opposite taste, each with a learned population and without.

`too_rare` says how far draws at the person's own taste were too rare for the proof where a search ended, condition (N)
of docs/population.md: here the taste is known. `bound` is how many mean weights the bound of Lemma 2
is at the end of a search: with a cut there, nothing would have to be assumed of the draws.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.glm import probability_of_yes
from surepick.glm.score_posterior import ScorePrior
from surepick.identify import Plan, Policy, Population, Posterior, Problem, Verdict, Winner
from surepick.identify.population import feature_kernel
from surepick.identify.posterior import PosteriorState
from surepick.identify.posterior_confirming import CUT
from surepick.io.items import colour_features
from surepick.report.figures import figure
from surepick_experiments.studies.identification import DELTA, exact_limits, groups
from surepick_experiments.studies.runner import Options, Params, Row, Study

COLOURS = 37
MOST, MOST_BY_WINNER = 200, 2000
"""Questions after which a person is given up."""

USUAL, ALIKE, BARE, OPPOSITE, HAIRLINE, TIED = "usual", "alike", "bare", "opposite", "hairline", "tied"
SHARE_OF_RUNS = {
    "posterior": {USUAL: 1.0, ALIKE: 0.05, OPPOSITE: 0.025, HAIRLINE: 0.05, TIED: 0.05},
    "winner": {ALIKE: 0.05, BARE: 0.05, OPPOSITE: 0.05},
}
IN_ONE_WORLD = (ALIKE, BARE, OPPOSITE)
GAPS = {HAIRLINE: 0.05, TIED: 0.0}

EARLIER, ANSWERS = 40, 40
"""Earlier people, and the answers of each of them."""

COMMON, OWN = 4.0, 2.0
"""Spread of the taste that people who are alike share, and of what each has besides."""

BLOCK, ALIKE_BLOCK = 5, 10
"""People per task; those who are alike share a world, where learning the population takes as long as ten searches."""


def tasks(options: Options) -> list[Params]:
    """Blocks of people; 2,000 usual people by default, and fewer of the others."""
    runs, every = options.runs or 2000, []
    for policy in options.policies or ("posterior",):
        validate.one_of("--policies", policy, tuple(SHARE_OF_RUNS))
        for setting, share in SHARE_OF_RUNS[policy].items():
            count = max(1, round(share * runs / _block(setting)))
            every += [(number / count, policy, setting, number) for number in range(count)]
    # All settings advance together, so that a study that is stopped has some people of each.
    # A task without a policy is one of posterior: rows depend on what a task is called.
    named = {"posterior": {}, "winner": {"policy": "winner"}}
    return [{"setting": setting, "block": number} | named[policy] for _, policy, setting, number in sorted(every)]


def _block(setting: str) -> int:
    return ALIKE_BLOCK if setting in IN_ONE_WORLD else BLOCK


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """A block of people, in one world if they are alike."""
    setting, rows = task["setting"], []
    if setting in IN_ONE_WORLD:
        problem, people, earlier = _alike(rng, bare=setting == BARE)
        learned = Population.learn(problem, earlier)
        newcomers = people.sample(ALIKE_BLOCK, rng)
        if setting == OPPOSITE:
            newcomers = newcomers - 2 * people.prior.mean[0]
        for scores in newcomers:
            seed = int(rng.integers(2**31))
            rows += [_row(task, problem, scores, population, seed) for population in (None, learned)]
        return rows
    for _ in range(BLOCK):
        problem = Problem.from_pairs(colour_features(rng.random((COLOURS, 3))))
        scores = Population.usual(problem).sample(1, rng)[0]
        if setting in GAPS:
            best, second = np.argsort(-scores)[:2]
            scores[best] = scores[second] + GAPS[setting]
        rows.append(_row(task, problem, scores, None, int(rng.integers(2**31))))
    return rows


def _alike(
    rng: np.random.Generator, *, bare: bool = False
) -> tuple[Problem, Population, dict[str, list[tuple[str, str, int]]]]:
    """Colours, a population of people with a common taste, and answers of some of them to random pairs.

    Where they are `bare`, the search knows the colours' names only.
    """
    features = colour_features(rng.random((COLOURS, 3)))
    problem = Problem.from_pairs(features)
    if bare:
        problem = Problem.from_pairs(list(problem.names))
    kernel = 0.98 * feature_kernel(features) + 0.02 * np.eye(COLOURS)
    common = np.linalg.cholesky(kernel) @ rng.normal(size=COLOURS) * COMMON
    people = Population(problem.names, ScorePrior(common[None], OWN**2 * kernel[None], np.zeros(1)), "alike")
    answers: dict[str, list[tuple[str, str, int]]] = {}
    for number, scores in enumerate(people.sample(EARLIER, rng)):
        pairs = problem.about[rng.integers(len(problem.about), size=ANSWERS)]
        won = rng.random(ANSWERS) < probability_of_yes(scores[pairs[:, 0]] - scores[pairs[:, 1]])
        answers[str(number)] = [
            (problem.names[a], problem.names[b], int(w)) for (a, b), w in zip(pairs.tolist(), won.tolist(), strict=True)
        ]
    return problem, people, answers


def _row(task: Params, problem: Problem, scores: Floats, population: Population | None, seed: int) -> Row:
    setting, by_winner = task["setting"], task.get("policy") == "winner"
    policy: Policy[Any] = (
        Winner(delta=DELTA, budget=MOST_BY_WINNER, population=population)
        if by_winner
        else Posterior(delta=DELTA, budget=MOST, population=population)
    )
    state, verdict = searched(problem, policy, scores, seed)
    behind = float(scores.max() - scores[problem.index(verdict.best)])
    second, best = np.sort(scores)[-2:]
    decided = verdict.status.decided
    row = {
        "policy": policy.name,
        "setting": setting,
        "population": "learned" if population is not None else "none" if by_winner else "usual",
        "seed": seed,
        "gap": float(best - second),
        "questions": verdict.questions,
        "decided": decided,
        "wrong": decided and (behind > 0 or setting == TIED),
        "behind": behind,
    }
    if by_winner:
        return row
    return row | {
        "too_rare": too_rare(state, scores) if decided else 0.0,
        "bound": math.exp(min(state.posterior.log_bound - state.draws.log_evidence, 700.0)),
    }


def too_rare(state: PosteriorState, scores: Floats) -> float:
    """What (N) bounds for this person: (1 − c/w)⁺, over the components that the scores may be drawn from."""
    logs, chances = state.posterior.log_weights_at(scores)
    above = np.maximum(logs - state.look.draws.log_evidence - math.log(CUT), 0.0)
    return float(chances @ -np.expm1(-above))


def search(problem: Problem, policy: Policy[Any], scores: Floats, seed: int) -> Verdict:
    """A whole search with the answers of a person who has these scores."""
    return searched(problem, policy, scores, seed)[1]


def searched(problem: Problem, policy: Policy[Any], scores: Floats, seed: int) -> tuple[Any, Verdict]:
    """The same, and the state at its end."""
    rng = np.random.default_rng([seed, 2])
    state = policy.start(problem)
    while isinstance(outcome := policy.plan(state, rng), Plan):
        first, second = problem.about[outcome.measurements].T
        wins = rng.binomial(outcome.pulls, probability_of_yes(scores[first] - scores[second]))
        state = policy.update(policy.apply(state, outcome), outcome.stage, outcome.tally(problem, wins))
    assert isinstance(outcome, Verdict)  # with every stage answered there is nothing to wait for
    return state.evaluated if isinstance(state, PosteriorState) else state, outcome


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Questions, and errors with exact binomial limits; and how many questions a learned population saves.

    `log_ratio` is the mean logarithm of the questions over those of the same people without a learned population.
    """
    cells = []
    without = {row["seed"]: row["questions"] for row in rows if row["population"] != "learned"}
    for (policy, setting, assumed), group in groups(rows, "policy", "setting", "population").items():
        questions, wrong = [row["questions"] for row in group], sum(row["wrong"] for row in group)
        low, high = exact_limits(wrong, len(group))
        cell = {
            "policy": policy,
            "setting": setting,
            "population": assumed,
            "people": len(group),
            "median": float(np.median(questions)),
            "lower_quartile": float(np.quantile(questions, 0.25)),
            "upper_quartile": float(np.quantile(questions, 0.75)),
            "mean": float(np.mean(questions)),
            "undecided": sum(not row["decided"] for row in group),
            "wrong": wrong,
            "wrong_low": low,
            "wrong_high": high,
        }
        if assumed == "learned":
            # A population that is sure asks nothing, which counts as one question here.
            logs = np.log([max(row["questions"], 1) / max(without[row["seed"]], 1) for row in group])
            cell |= {"log_ratio": float(logs.mean()), "log_ratio_error": float(logs.std() / math.sqrt(len(logs)))}
        if policy == "posterior":
            cell |= {
                "too_rare": float(np.mean([row["too_rare"] for row in group])),
                "bound": float(np.median([row["bound"] for row in group if row["decided"]] or [0.0])),
            }
        cells.append(cell)
    return {"cells": cells}


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Questions of usual people against the gap of their two best items."""
    path = folder / "population.png"
    usual = [row for row in rows if row["setting"] == USUAL]
    if not usual:
        return []
    with figure(path, size=(6.0, 4.2)) as (axes,):
        for decided, colour, label in ((True, "#0b6e4f", "decided"), (False, "#9aa0a6", f"undecided after {MOST}")):
            chosen = [row for row in usual if row["decided"] == decided]
            axes.plot(
                [row["gap"] for row in chosen],
                [row["questions"] for row in chosen],
                "o",
                ms=2.5,
                alpha=0.5,
                color=colour,
                label=label,
            )
        axes.set(xscale="log", xlabel="gap between favourite and second (log-odds)", ylabel="questions")
        axes.legend(fontsize=8, frameon=False)
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Questions and errors."""
    return [("People drawn from a population, 37 colours, delta = .05", summary["cells"])]


STUDY = Study(
    "population",
    "The favourite colour of people drawn from a known population.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "policies"),
)
