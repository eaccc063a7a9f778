"""Study `crossing`: RAGE-GLM against RAGE-GLM-2, over delta, d and the norm S.

RAGE-GLM-2 needs no burn-in in its rounds, so the paper expects it to win as δ → 0 and to lose with large d or S.
Answers are the expected ones, so a run shows the size of an algorithm's stages and no luck.
"""

import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from surepick.identify import run as run_policy
from surepick.judges import ExpectedJudge
from surepick.limits import rage_glm_2_formula
from surepick.report.figures import figure
from surepick_experiments.studies.identification import COLOURS, chosen_policies, groups, informed, row_of
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds import soare

DELTAS = (0.05, 1e-3, 1e-6, 1e-12, 1e-25, 1e-50, 1e-100, 1e-200, 1e-300)
NORMS = (0.5, 1.0, 2.0, 4.0)


def tasks(options: Options) -> list[Params]:
    """Every delta, dimension and norm."""
    policies = chosen_policies(options.policies, ("rage-glm-halving", "rage-glm-printed", "rage-glm-2"))
    return [
        {"d": d, "norm": norm, "delta": delta, "policies": policies}
        for d in options.dims or (2, 5, 20)
        for norm in NORMS
        for delta in DELTAS
    ]


PRINTED_2 = "rage-glm-2-printed"
"""RAGE-GLM-2 by its printed n_t, at θ*: the size of its rounds, not a run."""


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """All policies at one setting, and the printed sizes of RAGE-GLM-2."""
    world = soare(task["d"], angle=0.3, length=task["norm"])
    rows = []
    for name in task["policies"]:
        began = time.perf_counter()
        policy = informed(name, world, delta=task["delta"], budget=10**15)
        verdict = run_policy(world.problem, policy, ExpectedJudge(world.theta))
        row = row_of(world, name, verdict, 0, time.perf_counter() - began, None)
        rows.append({"d": task["d"], "norm": task["norm"], **row})
        if name == "rage-glm-2":
            printed = rage_glm_2_formula(world.instance, delta=task["delta"]).questions
            rows.append({**rows[-1], "policy": PRINTED_2, "questions": printed, "guarantee": "as printed"})
    return rows


def summarise(rows: list[Row]) -> dict[str, Any]:
    """For each d and S the delta below which RAGE-GLM-2 asks less, if there is one on the grid."""
    crossings = []
    for (d, norm), group in groups(rows, "d", "norm").items():
        by_policy = {
            name: {row["delta"]: row["questions"] for row in part} for (name,), part in groups(group, "policy").items()
        }
        for name, first, variant, second in (
            (name, first, variant, by_policy[variant])
            for variant in ("rage-glm-2", PRINTED_2)
            if variant in by_policy
            for name, first in by_policy.items()
        ):
            if name not in ("rage-glm-2", PRINTED_2):
                below = [delta for delta in first if second.get(delta, math.inf) < first[delta]]
                crossings.append(
                    {
                        "d": d,
                        "norm": norm,
                        "of": variant,
                        "against": name,
                        "rage_glm_2_wins_below": max(below) if below else None,
                        "ratio_at_05": second.get(0.05, math.nan) / first[0.05] if 0.05 in first else None,
                        "ratio_at_least_delta": second[min(second)] / first[min(first)],
                    }
                )
    return {"crossings": crossings}


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Questions against log(1/delta), one panel a dimension, the smallest and largest norm."""
    path = folder / "crossing.png"
    dims = sorted({row["d"] for row in rows})
    norms = sorted({row["norm"] for row in rows})
    with figure(path, columns=len(dims), size=(4.2 * len(dims), 4.0)) as panels:
        for axes, d in zip(panels, dims, strict=True):
            for norm, style in ((norms[0], "-o"), (norms[-1], "--s")):
                here = [row for row in rows if row["d"] == d and row["norm"] == norm]
                for (policy,), group in groups(here, "policy").items():
                    nats = [math.log(1 / row["delta"]) for row in group]
                    label = f"{policy}, S = {norm:g}"
                    axes.plot(
                        nats,
                        [row["questions"] for row in group],
                        style,
                        color=COLOURS.get(policy, "#c9a7e8"),
                        ms=3,
                        label=label,
                    )
            axes.set(xscale="log", yscale="log", xlabel="log(1/delta)", title=f"d = {d}")
        panels[0].set_ylabel("questions")
        panels[-1].legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Where they cross."""
    return [("Questions of RAGE-GLM-2, corrected and by its printed n_t, over those of RAGE-GLM", summary["crossings"])]


STUDY = Study(
    "crossing",
    "RAGE-GLM and RAGE-GLM-2 by delta, dimension and norm.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("dims", "policies"),
)
