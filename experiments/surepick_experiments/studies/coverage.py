"""Study `coverage`: does every method keep its word, and how wide is it?

Fixed designs of four kinds, scaled so that ξ√γ takes given values; answers drawn from the model; one query each. The
printed theorem's counterexample and the true reach of its conditions are computed exactly (no simulation needed).
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom, norm

from surepick._arrays import Floats
from surepick.confidence.result import Intervals
from surepick.glm import Tally, fit, probability_of_yes, variance
from surepick.linalg import factor, gram_matrix
from surepick.registry import intervals_by_name
from surepick.report.figures import COLOURS, figure
from surepick_experiments.studies.identification import exact_limits, groups
from surepick_experiments.studies.runner import Options, Params, Row, Study

DESIGNS = ("orthogonal", "gaussian", "soare", "rare")
RELATIVE_XI = (0.02, 0.05, 0.1, 0.17, 0.25, 0.4, 0.55)
DELTAS = (0.05, 0.2)
SLOW = ("anytime", "corrected, nothing known")
"""Methods that build the evidence process; they see a fifth of the runs."""

FALSE_ALARM = 1e-3
"""Chance that the whole study accuses some method that keeps its word (divided evenly over all its tests)."""


SHRUNK = 1 / 3
"""The negative control has this share of the proved width. It covers 65 to 69% at delta = .05 and 54 to 59% at .2, so a
few hundred runs refute it at both. Half the width would cover 73 to 78% at delta = .2: too near to 80% to be caught."""


def tasks(options: Options) -> list[Params]:
    """Every design, dimension, ξ√γ and delta."""
    runs = options.runs or 200
    return [
        {
            "design": design,
            "d": d,
            "relative_xi": relative,
            "delta": delta,
            "runs": runs,
            "slow_runs": max(1, runs // 5),
        }
        for design in DESIGNS
        for d in options.dims or (2, 5, 10)
        for relative in RELATIVE_XI
        for delta in DELTAS
        if not (design == "soare" and d < 2)
    ]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """One setting: fixed design and truth, fresh answers in every run."""
    d, delta = task["d"], task["delta"]
    vectors, theta, query = make_design(task["design"], d)
    logits = vectors @ theta
    gamma = d + math.log(6 * (2 + len(vectors)) / delta)
    pulls, xi = scale_to(vectors, variance(logits), task["relative_xi"] / math.sqrt(gamma))
    truth = float(query @ theta)
    rows = []
    for number in range(task["runs"]):
        wins = rng.binomial(pulls, probability_of_yes(logits))
        slow = number < task["slow_runs"]
        for name, result in _all_methods(
            Tally(vectors, pulls, wins), query, logits, theta, delta, number, slow
        ).items():
            rows.append(
                {
                    **{key: task[key] for key in ("design", "d", "relative_xi", "delta")},
                    "run": number,
                    "method": name,
                    "guarantee": str(result.guarantee),
                    "valid": result.valid,
                    "covered": bool(result.low[0] <= truth <= result.high[0]),
                    "covered_by_shrunk": bool(abs(truth - result.centre[0]) <= SHRUNK * result.half_width[0]),
                    "half_width": _finite(result.half_width[0]),
                    "xi": xi,
                }
            )
    return rows


def make_design(kind: str, d: int) -> tuple[Floats, Floats, Floats]:
    """Distinct vectors, a truth and a query: the same for every ξ and delta, so that curves compare like with like."""
    rng = np.random.default_rng([DESIGNS.index(kind), d])
    vectors, theta = np.eye(d), rng.uniform(-1.5, 1.5, size=d)
    if kind == "gaussian":
        vectors, theta = rng.normal(size=(4 * d + 10, d)) / math.sqrt(d), rng.normal(size=d)
    elif kind == "soare":
        turned = math.cos(0.1) * np.eye(d)[0] + math.sin(0.1) * np.eye(d)[1]
        vectors, theta = np.vstack([np.eye(d), turned]), 2.0 * np.eye(d)[0]
    elif kind == "rare":
        theta = np.full(d, -6.0)
    return vectors, theta, rng.normal(size=d)


def scale_to(vectors: Floats, variances: Floats, xi: float) -> tuple[NDArray[np.int64], float]:
    """Equal pulls for every vector such that ξ comes just below the wanted value, and the ξ reached."""
    shape = factor(gram_matrix(vectors, variances))
    assert shape is not None
    one_each = float(shape.inverse_norms(vectors).max())
    pulls = math.ceil((one_each / xi) ** 2)
    return np.full(len(vectors), pulls, dtype=np.int64), one_each / math.sqrt(pulls)


def _all_methods(
    tally: Tally, query: Floats, logits: Floats, theta: Floats, delta: float, seed: int, slow: bool
) -> dict[str, Intervals]:
    """Every method on the same answers. "corrected" and "printed" know |xᵀθ*|, so they stand at the true ξ."""
    estimate = fit(tally)

    def run_named(names: tuple[str, ...], **known: Any) -> list[Intervals]:
        return intervals_by_name(
            names, tally, query[None, :], delta=delta, data="fixed", order_seed=seed, fitted=estimate, **known
        )

    exact = ("corrected", "corrected-ellipsoid", "printed", "printed-empirical", "wald")
    results = dict(zip(exact, run_named(exact, logit_bounds=np.abs(logits)), strict=True))
    bounded = run_named(("corrected", "li", "faury"), norm_bound=1.2 * float(np.linalg.norm(theta)))
    results |= dict(zip(("corrected, norm bound", "li", "faury"), bounded, strict=True))
    if slow:
        results |= dict(zip(SLOW, run_named(("anytime", "corrected")), strict=True))
    return results


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Coverage with exact binomial confidence for every method and setting, and whether a promise was broken."""
    grouped = groups(rows, "method", "design", "d", "relative_xi", "delta")
    level = FALSE_ALARM / (2 * len(grouped))
    wald = {key[1:]: _median_width(group) for key, group in grouped.items() if key[0] == "wald"}
    cells = []
    for key, group in grouped.items():
        method, design, d, relative, delta = key
        cells.append(
            {
                "method": method,
                "guarantee": group[0]["guarantee"],
                "design": design,
                "d": d,
                "relative_xi": relative,
                "delta": delta,
                "runs": len(group),
                "applies": float(np.mean([row["valid"] for row in group])),
                **_coverage(sum(row["covered"] for row in group), len(group), delta, level),
                "width_over_wald": _ratio(_median_width(group), wald[key[1:]]),
            }
        )
    controls = [_shrunk(rows, delta, level) for delta in sorted({row["delta"] for row in rows})]
    proved = [cell for cell in cells if cell["guarantee"] == "proved"]
    return {
        "false_alarm_rate": FALSE_ALARM,
        "proved_settings": len(proved),
        "proved_broken": sum(cell["broken"] for cell in proved),
        "least_proved_coverage": min(cell["coverage"] for cell in proved),
        "negative_control": controls,
        "cells": cells,
        "counterexample": [counterexample(delta) for delta in (0.05, 0.01, 0.001, 1e-6)],
        "tightness": tightness(),
    }


def _coverage(covered: int, runs: int, delta: float, level: float) -> Row:
    """Coverage, its exact (Clopper–Pearson) interval, and whether it is below 1 − delta beyond doubt."""
    low, high = exact_limits(covered, runs)
    broken = bool(binom.cdf(covered, runs, 1 - delta) < level)
    return {"coverage": covered / runs, "coverage_low": low, "coverage_high": high, "broken": broken}


def _shrunk(rows: list[Row], delta: float, level: float) -> Row:
    """The negative control: a third of the proved width, where it is tightest (ξ√γ ≤ 0.05), all settings together.

    If every setting covered with probability 1 − delta, so would their pool; the same exact test must refute that.
    """
    tight = [row for row in rows if row["method"] == "corrected" and row["relative_xi"] <= 0.05]
    pool = [row for row in tight if row["delta"] == delta]
    covered = sum(row["covered_by_shrunk"] for row in pool)
    return {"delta": delta, "runs": len(pool), **_coverage(covered, len(pool), delta, level)}


def _median_width(group: list[Row]) -> float | None:
    widths = [row["half_width"] for row in group if row["half_width"] is not None]
    return float(np.median(widths)) if 2 * len(widths) > len(group) else None


def _ratio(width: float | None, reference: float | None) -> float | None:
    return None if width is None or not reference else width / reference


def counterexample(delta: float, *, answers: int = 100_000) -> Row:
    """Exact failure probability of the printed theorem's variance event at ξ² = 1/(1.0001·γ), d = 1.

    One vector x = 1, so the estimate is the log-odds of the observed rate k/n and the information n·(k/n)(1 − k/n); the
    event fails when that is off from n·p(1−p) by more than a factor 2.2 (or the estimate does not exist).
    """
    gamma = 1 + math.log(6 * 3 / delta)
    information = 1.0001 * gamma
    rate = float(brentq(lambda p: answers * p * (1 - p) - information, 1e-12, 0.5))
    counts = np.arange(answers + 1)
    estimated = answers * (counts / answers) * (1 - counts / answers)
    fails = (estimated * 2.2 < information) | (estimated > 2.2 * information)
    return {
        "delta": delta,
        "xi2_gamma": gamma / information,
        "failure": float(binom.pmf(counts[fails], answers, rate).sum()),
    }


def tightness(
    *, dims: tuple[int, ...] = (1, 2, 5, 10, 25, 50), delta: float = 0.05, answers: int = 100_000
) -> list[Row]:
    """How small ξ must really be for the variance event (factor 2.2), exactly, on orthogonal rare-event designs.

    The coordinates are independent, so the event for all x is the event for each coordinate.
    """
    rows = []
    for d in dims:
        gamma = d + math.log(6 * (2 + d) / delta)
        for relative in np.geomspace(0.1, 1.0, 19):
            information = gamma / relative**2
            rate = float(brentq(lambda p, wanted=information: answers * p * (1 - p) - wanted, 1e-12, 0.5))
            counts = np.arange(int(answers * rate * 6) + 50)
            estimated = counts * (1 - counts / answers)
            inside = (estimated * 2.2 >= information) & (estimated <= 2.2 * information)
            once = float(binom.pmf(counts[inside], answers, rate).sum())
            rows.append({"d": d, "relative_xi": float(relative), "delta": delta, "failure": 1 - min(once, 1.0) ** d})
    return rows


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Widths, coverage and tightness."""
    paths = [folder / "width.png", folder / "coverage.png", folder / "tightness.png"]
    _draw_width(summary["cells"], paths[0])
    _draw_coverage(summary["cells"], paths[1])
    _draw_tightness(summary["tightness"], paths[2])
    return paths


def _draw_width(cells: list[Row], path: Path) -> None:
    """Half-width over Wald's at the same delta, against ξ√γ, for the largest dimension of the Gaussian design."""
    d = max(cell["d"] for cell in cells)
    chosen = [cell for cell in cells if cell["design"] == "gaussian" and cell["d"] == d and cell["delta"] == DELTAS[0]]
    with figure(path, size=(9.0, 4.4)) as (axes,):
        for method, colour in COLOURS.items():
            points = sorted(
                (cell["relative_xi"], cell["width_over_wald"])
                for cell in chosen
                if cell["method"] == method and cell["width_over_wald"] is not None
            )
            if points:
                guarantee = next(cell["guarantee"] for cell in chosen if cell["method"] == method)
                style = "-o" if guarantee == "proved" else "--s"
                axes.plot(*zip(*points, strict=True), style, color=colour, ms=4, label=f"{method} ({guarantee})")
        axes.axhline(1.7, color="black", lw=0.8, ls=":")
        limit = math.sqrt(2 * math.log(2 / DELTAS[0])) / float(norm.isf(DELTAS[0] / 2))
        axes.axhline(limit, color="black", lw=0.8)
        axes.annotate("1.7", (0.55, 1.7), va="bottom", ha="right", fontsize=8)
        axes.annotate("√(2 log(2/δ)) over Wald's quantile", (0.55, limit), va="top", ha="right", fontsize=8)
        axes.set(xscale="log", yscale="log", xlabel="ξ·√γ (to the left: more answers)", ylabel="half-width over Wald's")
        axes.set_xticks(RELATIVE_XI, [f"{value:g}" for value in RELATIVE_XI])
        axes.set_xticks([], minor=True)
        axes.set_title(f"Gaussian design, d = {d}, delta = {DELTAS[0]:g}, one query", fontsize=10)
        axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _draw_coverage(cells: list[Row], path: Path) -> None:
    """Share of runs covered in every setting, by method; one panel a delta."""
    used = {cell["method"] for cell in cells if cell["applies"] > 0.5}
    methods = [method for method in COLOURS if method in used]
    with figure(path, columns=len(DELTAS), size=(9.5, 4.2)) as panels:
        for axes, delta in zip(panels, DELTAS, strict=True):
            for place, method in enumerate(methods):
                chosen = [c for c in cells if c["method"] == method and c["delta"] == delta and c["applies"] > 0.5]
                spread = np.linspace(-0.3, 0.3, len(chosen)) if len(chosen) > 1 else np.zeros(len(chosen))
                axes.plot(place + spread, [c["coverage"] for c in chosen], ".", color=COLOURS[method], ms=4)
            axes.axhline(1 - delta, color="black", lw=1)
            axes.set_xticks(range(len(methods)), methods, rotation=60, ha="right", fontsize=8)
            axes.set(ylim=(min(0.75, 1 - 2 * delta), 1.005), title=f"delta = {delta:g}", ylabel="share of runs covered")


def _draw_tightness(points: list[Row], path: Path) -> None:
    """Exact failure of the factor-2.2 event against ξ√γ, with what each theorem asks for."""
    with figure(path) as (axes,):
        for d in sorted({point["d"] for point in points}):
            curve = [(p["relative_xi"], p["failure"]) for p in points if p["d"] == d]
            axes.plot(*zip(*curve, strict=True), "-", lw=1.4, label=f"d = {d}")
        axes.axhline(points[0]["delta"], color="black", lw=1)
        axes.annotate(f"delta = {points[0]['delta']:g}", (0.1, points[0]["delta"]), va="bottom", fontsize=8)
        for at, text in ((0.17, "paper's proof"), (math.sqrt(0.12), "corrected theorem"), (1.0, "as printed")):
            axes.axvline(at, color="grey", ls=":", lw=1)
            axes.annotate(text, (at, 1e-9), rotation=90, fontsize=8, ha="right")
        axes.set(xscale="log", yscale="log", ylim=(1e-10, 1), xlabel="ξ·√γ", ylabel="probability that the event fails")
        axes.set_title("How small ξ must really be (orthogonal rare events, factor 2.2, exact)", fontsize=10)
        axes.legend(fontsize=8, frameon=False)


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """What the terminal shows."""
    by_method = []
    for method in COLOURS:
        cells = [cell for cell in summary["cells"] if cell["method"] == method]
        used = [cell for cell in cells if cell["applies"] > 0.5]
        if not cells:
            continue
        narrow = [
            c["width_over_wald"]
            for c in used
            if c["relative_xi"] <= 0.05 and c["delta"] == DELTAS[0] and c["width_over_wald"]
        ]
        by_method.append(
            {
                "method": method,
                "guarantee": cells[0]["guarantee"],
                "settings": len(cells),
                "applies_in": len(used),
                "least_coverage": min((c["coverage"] / (1 - c["delta"]) for c in used), default=None),
                "broken": sum(c["broken"] for c in used),
                "width_over_wald": max(narrow, default=None),
            }
        )
    return [
        (
            "Least coverage is relative to 1 − delta; width over Wald's is the largest at ξ√γ ≤ 0.05, delta = 0.05",
            by_method,
        ),
        ("Negative control: a third of the proved width must be detected", summary["negative_control"]),
        ("The printed theorem at its own condition: exact failure of its variance event", summary["counterexample"]),
    ]


STUDY = Study(
    "coverage",
    "Coverage and width of every interval method.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "dims"),
)
