"""Study `kappa`: the family on which every method must search, so that questions grow with 1/κ₀ and not with gaps.

Measured questions of policies against n/16 (proved for every method on some member of the family), against the bound by
change of measure for methods that know the family, against the same bound over all θ, and against a twin of the same
geometry with linear rewards, where O(d/gap²) questions suffice (Jun et al. 2021, supplement, "1/κ₀ lower bounds").
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linprog

from surepick._arrays import Floats
from surepick.design import gap_optimal
from surepick.limits import Instance, kappa_family, kappa_family_bound
from surepick.limits.instance import kl_divergence
from surepick.limits.lower_bound import nats
from surepick.report.figures import figure
from surepick_experiments.studies.identification import (
    COLOURS,
    DELTA,
    chosen_policies,
    decided,
    groups,
    informed,
    lower_bound,
    measured,
)
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds import one_over_kappa

ITEMS = (21, 30, 40)
POLICIES = ("anytime", "rage-glm", "uniform")


def tasks(options: Options) -> list[Params]:
    """One member of the family for each size and run."""
    policies = chosen_policies(options.policies, POLICIES)
    sizes = (options.items,) if options.items else ITEMS
    return [
        {"items": items, "run": number, "policies": policies} for items in sizes for number in range(options.runs or 3)
    ]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """All policies on one member, which none of them knows."""
    seed = int(rng.integers(2**31))
    world = one_over_kappa(task["items"], seed=seed)
    facts = {
        "items": task["items"],
        "d": world.problem.items.shape[1],
        "inverse_kappa": 1 / world.kappa,
        "search_bound": kappa_family_bound(task["items"], delta=DELTA),
        "family_bound": family_bound(world.instance, kappa_family(task["items"], seed=seed).thetas),
        "linear_twin": linear_twin(world.instance),
    }
    bound = lower_bound(world)
    return [{**facts, **measured(world, name, informed(name, world), seed, bound)} for name in task["policies"]]


def family_bound(instance: Instance, thetas: Floats) -> float:
    """The bound by change of measure where θ* is known to be one of these: kl(1 − δ, δ)/max_λ min_i Σ λ_x·KL_x(θ_i).

    A linear program. It stays below one or two questions, since one answer to the best item says nearly everything:
    that the best item must first be found is what n/16 counts.
    """
    others = thetas[np.linalg.norm(thetas - instance.theta, axis=1) > 1e-9]
    divergence = kl_divergence(instance.logits[:, None], instance.measurements @ others.T)
    count, rivals = divergence.shape
    # Maximise v subject to Σ λ_x·KL_x(θ_i) ≥ v for every i, λ in the simplex.
    found = linprog(
        np.r_[np.zeros(count), -1.0],
        A_ub=np.column_stack([-divergence.T, np.ones(rivals)]),
        b_ub=np.zeros(rivals),
        A_eq=np.r_[np.ones(count), 0.0][None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * (count + 1),
    )
    return nats(DELTA) / -float(found.fun or 0.0)


def linear_twin(instance: Instance) -> float:
    """Questions at which the asymptotic bound of linear rewards stands: same vectors, rewards xᵀθ/‖θ‖ of variance ¼.

    2·¼·ρ·log(1/(2.4δ)) with ρ = min_λ max ‖z* − z‖²/gap² and gaps in units of reward; ρ ≤ 4d/gap² by the G-optimal
    design.
    """
    gaps = instance.gaps / float(np.linalg.norm(instance.theta))
    design = gap_optimal(instance.measurements, instance.items, best=instance.best, gaps=gaps)
    return design.value / 2 * nats(DELTA)


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Medians by size and policy; growth of the questions with 1/κ₀."""
    cells = [
        {
            "items": items,
            "policy": policy,
            "d": group[0]["d"],
            "inverse_kappa": float(np.median([row["inverse_kappa"] for row in group])),
            "questions": float(np.median([row["questions"] for row in group])),
            "search_bound": group[0]["search_bound"],
            "family_bound": float(np.median([row["family_bound"] for row in group])),
            "lower_bound": float(np.median([row["lower_bound"] for row in group])),
            "linear_twin": float(np.median([row["linear_twin"] for row in group])),
            "decided": sum(decided(row) for row in group),
            "runs": len(group),
            "guarantee": group[0]["guarantee"],
        }
        for (items, policy), group in groups(rows, "items", "policy").items()
    ]
    return {"delta": DELTA, "cells": cells}


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Questions against 1/κ₀."""
    path = folder / "kappa.png"
    with figure(path, size=(8.0, 4.4)) as (axes,):
        curves = groups(summary["cells"], "policy")
        for (policy,), curve in curves.items():
            points = [(cell["inverse_kappa"], cell["questions"]) for cell in curve]
            axes.plot(*zip(*points, strict=True), "-o", color=COLOURS.get(policy, "black"), ms=4, label=policy)
        curve = next(iter(curves.values()))
        at = [cell["inverse_kappa"] for cell in curve]
        for field, style, label in (
            ("search_bound", "k-", "n/16 (every method)"),
            ("family_bound", "k-.", "change of measure within the family"),
            ("lower_bound", "k:", "change of measure over all θ"),
            ("linear_twin", "k--", "linear twin, asymptotic bound"),
        ):
            axes.plot(at, [cell[field] for cell in curve], style, lw=1.2, label=label)
        axes.set(xscale="log", yscale="log", xlabel="1/κ₀", ylabel="questions (median)")
        axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Questions, bounds and the twin."""
    names = (
        "items",
        "policy",
        "inverse_kappa",
        "questions",
        "search_bound",
        "family_bound",
        "lower_bound",
        "linear_twin",
    )
    shown = [{name: cell[name] for name in names} for cell in summary["cells"]]
    return [("Questions (median) on the 1/κ₀ family; n/16, bounds by change of measure, the linear twin", shown)]


STUDY = Study(
    "kappa",
    "The 1/kappa family: questions, n/16 and the linear model.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "policies", "items"),
)
