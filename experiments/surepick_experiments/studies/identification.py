"""What the studies of best-arm policies share: policies that know what they need, tidy rows, medians and limits."""

import hashlib
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.stats import beta

from surepick import limits
from surepick.identify import Policy, Status, Verdict, run
from surepick.judges import World
from surepick.limits import LowerBound
from surepick.registry import POLICIES, policy_named
from surepick_experiments.studies.runner import Row

DELTA = 0.05

BUDGETS = {"gl-gape": 10**6}
"""GlGapE evaluates its bounds ten times as often as the others, and does not stop on most problems."""

COLOURS = {
    "anytime": "#d4007a",
    "exclusion": "#8e44ad",
    "winner": "#f28e2b",
    "posterior": "#2a9d8f",
    "rage-glm": "#0b6e4f",
    "rage-glm-halving": "#6bbf59",
    "rage-glm-printed": "#c1121f",
    "rage-glm-r": "#e4572e",
    "rage-glm-2": "#7b4fa6",
    "passive": "#1f5fa8",
    "passive-printed": "#4aa3df",
    "g-optimal": "#9a6324",
    "uniform": "#6c757d",
    "gl-gape": "#b8860b",
    "rage-linear": "#333333",
}
"""A policy has the same colour in every figure."""


def informed(name: str, world: World, *, delta: float = DELTA, **options: Any) -> Policy[Any]:
    """The policy of this name, told the true κ₀ (or norm) where it can use it."""
    known: dict[str, Any] = {"kappa": world.kappa}
    if name in ("anytime", "winner", "posterior", "rage-linear"):
        known = {}
    elif name == "rage-glm-2":
        known = {"norm_bound": world.norm}
    budget = {"budget": BUDGETS[name]} if name in BUDGETS else {}
    return policy_named(name, delta=delta, **{**known, **budget, **options})


def measured(world: World, name: str, policy: Policy[Any], seed: int, bound: float | None = None) -> Row:
    """One run as one tidy row."""
    began = time.perf_counter()
    verdict = run(world.problem, policy, world.judge(seed), seed=seed % 2**32)
    return row_of(world, name, verdict, seed, time.perf_counter() - began, bound)


def row_of(world: World, name: str, verdict: Verdict, seed: int, seconds: float, bound: float | None) -> Row:
    """The fields that every study of policies has."""
    return {
        "policy": name,
        "instance": world.name,
        "seed": seed,
        "questions": verdict.questions,
        "stages": len(verdict.questions_by_stage),
        "burn_in": verdict.questions_by_stage[0] if verdict.questions_by_stage else 0,
        "best": verdict.best,
        "correct": world.correct(verdict),
        "status": str(verdict.status),
        "guarantee": str(verdict.guarantee),
        "seconds": seconds,
        "delta": verdict.delta,
        "lower_bound": bound,
    }


def lower_bound(world: World, delta: float = DELTA) -> float:
    """Questions that any method needs on average in this world, certified (`surepick.limits`)."""
    return certified_bound(world, delta).questions


def certified_bound(world: World, delta: float = DELTA) -> LowerBound:
    """The bound with its certificate; seconds for thousands of items, so each process computes it once per world."""
    problem = world.problem
    key = hashlib.sha256(repr(delta).encode())
    for array in (problem.measurements, problem.items, world.theta):
        key.update(np.ascontiguousarray(array).tobytes())
    name = key.hexdigest()
    if name not in _BOUNDS:
        _BOUNDS[name] = limits.lower_bound(world.instance, delta=delta)
    return _BOUNDS[name]


_BOUNDS: dict[str, LowerBound] = {}
"""Bounds found so far."""


def groups(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by the values of some fields, in order of appearance."""
    result: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        result.setdefault(tuple(row[name] for name in names), []).append(row)
    return result


def cell_of(chosen: Sequence[Row], reference: Sequence[Row] = ()) -> Row:
    """Medians of the same policy on the same instance, and the ratio to a reference on the same seeds."""
    questions = {row["seed"]: row["questions"] for row in chosen}
    ratios = [row["questions"] / questions[row["seed"]] for row in reference if row["seed"] in questions]
    return {
        "runs": len(chosen),
        "questions": float(np.median(list(questions.values()))),
        "stages": float(np.median([row["stages"] for row in chosen])),
        "decided": sum(decided(row) for row in chosen),
        "wrong": sum(decided(row) and not row["correct"] for row in chosen),
        "correct": sum(row["correct"] for row in chosen),
        "guarantee": chosen[0]["guarantee"],
        "seconds": float(np.median([row["seconds"] for row in chosen])),
        "printed_over_this": float(np.median(ratios)) if ratios else None,
    }


def decided(row: Row) -> bool:
    """Whether the run ended with a decision, and not with a spent budget."""
    return Status(row["status"]).decided


def exact_limits(count: int, runs: int) -> tuple[float, float]:
    """Clopper and Pearson's 95% interval for the probability of what happened in `count` of the runs."""
    low = float(beta.ppf(0.025, count, runs - count + 1)) if count else 0.0
    high = float(beta.ppf(0.975, count + 1, runs - count)) if count < runs else 1.0
    return low, high


def chosen_policies(asked: tuple[str, ...] | None, usual: Sequence[str]) -> list[str]:
    """The policies asked for, or the usual ones; an unknown name is refused."""
    for name in asked or ():
        if name not in POLICIES:
            policy_named(name)
    return list(asked or usual)
