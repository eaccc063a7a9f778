"""Study `burnin`: how many answers until a confidence bound says anything, against the norm of θ*, by four theorems.

Gaussian measurement vectors N(0, I/d), one answer each (Jun et al. 2021, supplement): with d = ‖θ*‖² as there, and at
a fixed dimension. All numbers are computed from drawn vectors; nothing is asymptotic but what is marked extrapolated.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from surepick.limits import gaussian_burn_in
from surepick.limits.complexity import GUARANTEES, THEOREMS
from surepick.report.figures import figure
from surepick_experiments.studies.identification import groups
from surepick_experiments.studies.runner import Options, Params, Row, Study

DELTA = 0.05
GROWING = "d = norm²"
NORMS = (2, 3, 4, 5, 6, 7)
MOST = 200_000

LINE_STYLES = {
    "corrected": ("#0b6e4f", "corrected theorem"),
    "proof": ("#e4572e", "printed theorem, by its proof"),
    "printed": ("#c1121f", "printed theorem (false)"),
    "li": ("#9a6324", "Li et al. 2017"),
}


def tasks(options: Options) -> list[Params]:
    """Every norm, with the dimension growing along and at each fixed dimension."""
    return [
        {"case": case, "d": norm**2 if case == GROWING else d, "norm": norm, "run": number}
        for number in range(options.runs or 3)
        for norm in NORMS
        for case, d in [(GROWING, 0), *((f"d = {d}", d) for d in options.dims or (10,))]
    ]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """One set of vectors, all theorems."""
    seed = int(rng.integers(2**31))
    found = gaussian_burn_in(task["d"], float(task["norm"]), delta=DELTA, seed=seed, most=MOST)
    return [
        {
            **task,
            "theorem": theorem,
            "guarantee": str(GUARANTEES[theorem]),
            "answers": found.answers[theorem],
            "extrapolated": theorem in found.extrapolated,
            "seed": seed,
        }
        for theorem in THEOREMS
    ]


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Medians, and the local power of the norm at both ends of each curve: it stays for a power, else grows."""
    cells = [
        {
            "case": case,
            "theorem": theorem,
            "norm": norm,
            "d": group[0]["d"],
            "answers": float(np.median([row["answers"] for row in group])),
            "extrapolated": any(row["extrapolated"] for row in group),
        }
        for (case, theorem, norm), group in groups(rows, "case", "theorem", "norm").items()
    ]
    growth = []
    for (case, theorem), curve in groups(cells, "case", "theorem").items():
        norms = np.array([point["norm"] for point in curve], dtype=float)
        logs = np.log([point["answers"] for point in curve])
        powers = np.diff(logs) / np.diff(np.log(norms))
        growth.append(
            {
                "case": case,
                "theorem": theorem,
                "guarantee": str(GUARANTEES[theorem]),
                "power_at_first": float(powers[0]),
                "power_at_last": float(powers[-1]),
                "answers_at_last": curve[-1]["answers"],
            }
        )
    return {"delta": DELTA, "cells": cells, "growth": growth}


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Answers needed against the norm, all theorems, one panel a case."""
    path = folder / "burnin.png"
    cases = groups(summary["cells"], "case")
    with figure(path, columns=len(cases), size=(4.6 * len(cases), 4.2)) as panels:
        for axes, ((case,), cells) in zip(panels, cases.items(), strict=True):
            for (theorem,), curve in groups(cells, "theorem").items():
                colour, label = LINE_STYLES[theorem]
                style = "--" if all(point["extrapolated"] for point in curve) else "-"
                points = [(point["norm"], point["answers"]) for point in curve]
                axes.plot(*zip(*points, strict=True), f"{style}o", color=colour, ms=4, label=label)
            axes.set(yscale="log", xlabel="norm of θ*", ylabel="answers needed", title=f"Gaussian vectors, {case}")
        panels[0].legend(fontsize=8, frameon=False)
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """How every requirement grows."""
    title = f"Growth in the norm S of θ*, delta = {summary['delta']:g}: answers ~ S^power between neighbouring norms"
    shown = [{**row, "answers_at_last": _short(row["answers_at_last"])} for row in summary["growth"]]
    return [(title, shown)]


def _short(number: float) -> str:
    return f"{number:,.0f}" if number < 1e7 else f"1e{math.log10(number):.1f}"


STUDY = Study(
    "burnin",
    "Answers needed before four theorems apply, by norm.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "dims"),
)
