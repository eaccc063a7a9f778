"""Designs against a conic solver, against Frank–Wolfe and mirror descent over all pairs, and their growth in size."""

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from surepick._arrays import Floats
from surepick.design import Design, g_optimal, gap_optimal, pairs_optimal, xy_optimal
from surepick.errors import MissingExtra
from surepick_experiments.benches.runner import Progress, Row, best_seconds, compared, peak_bytes, silent

GAP = 0.01
"""The gap at which rivals are compared."""

PATIENCE = 600.0
"""Seconds after which a dense baseline is stopped; its row then says how far it came."""

LOOK_EVERY = 20
"""Number of steps after which a baseline computes its certificate, so that the proof costs it little."""


def bench_design(*, quick: bool = False, seed: int = 0, progress: Progress = silent) -> list[Row]:
    """Time designs at equal certified gap.

    A baseline's row has two readings: `peer_seconds` until it has proved its gap itself, or was stopped, and
    `peer_value_seconds` until its value was within the gap of our bound, which it could not know (null: never).
    On a machine that does other things as well, the seconds of the processor are the fairer ones to compare.
    """
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    for count, items, dimension in ((10, 4, 2),) if quick else ((20, 5, 3), (40, 8, 5), (60, 12, 8)):
        progress(f"conic solver, {count} vectors, {items} items, d={dimension}")
        rows.append(_against_conic(rng, count, items, dimension))
    for count, dimension in ((60, 3),) if quick else ((500, 10), (500, 25)):
        progress(f"dense baselines, {count} items, d={dimension}")
        vectors = rng.normal(size=(count, dimension))
        rows += _against_dense(f"{count} items, X = Z, d={dimension}", vectors, vectors, 0.3 if quick else 60.0)
    if not quick:
        progress("dense baselines, 5,000 vectors, 3,327 items, d=25")
        vectors, items_ = catalogue(rng, 5_000, 3_327, 25)
        rows += _against_dense("5,000 vectors, all pairs of 3,327 items, d=25", vectors, items_, PATIENCE)
    progress("the largest case")
    rows.append(_largest(rng, *((300, 500, 4) if quick else (20_000, 100_000, 50))))
    progress("growth")
    rows += _growth_in_pairs(rng, quick)
    return rows + _growth_in_items(rng, quick)


def catalogue(rng: np.random.Generator, count: int, items: int, dimension: int) -> tuple[Floats, Floats]:
    """Items with features of decaying spectrum and uneven size, and random comparisons of them as measurements."""
    spectrum = (1.0 + np.arange(dimension)) ** -0.7
    features = rng.normal(size=(items, dimension)) * spectrum * rng.gamma(6.0, 1 / 6, size=(items, 1))
    first = rng.integers(0, items, size=count)
    second = (first + rng.integers(1, items, size=count)) % items
    return features[first] - features[second], features


def _against_conic(rng: np.random.Generator, count: int, items: int, dimension: int) -> Row:
    try:
        cp: Any = importlib.import_module("cvxpy")
    except ImportError as error:
        raise MissingExtra(
            "The bench of designs compares with cvxpy and Clarabel; run: pip install cvxpy clarabel."
        ) from error
    x, z = rng.normal(size=(count, dimension)), rng.normal(size=(items, dimension))
    found: dict[str, float] = {}

    def conic() -> None:
        weights, value = cp.Variable(count, nonneg=True), cp.Variable()
        information = cp.sum([weights[i] * np.outer(row, row) for i, row in enumerate(x)])
        bounds = [cp.matrix_frac(a - b, information) <= value for a, b in combinations(z, 2)]
        problem = cp.Problem(cp.Minimize(value), [cp.sum(weights) == 1, *bounds])
        problem.solve(solver=cp.CLARABEL)
        found["peer"] = float(problem.value)

    def ours() -> None:
        found["ours"] = pairs_optimal(x, z, gap=1e-4).value

    seconds = best_seconds({"ours": ours, "peer": conic}, repeats=2)
    return compared(
        f"{count} vectors, all pairs of {items} items, d={dimension}",
        seconds["ours"],
        "cvxpy + Clarabel",
        seconds["peer"],
        difference=found["ours"] / found["peer"] - 1.0,
    )


def _against_dense(case: str, x: Floats, z: Floats, patience: float) -> list[Row]:
    design = pairs_optimal(x, z, gap=GAP)
    seconds = best_seconds({"ours": lambda: pairs_optimal(x, z, gap=GAP)}, repeats=3)["ours"]
    processor = min(_processor_seconds(lambda: pairs_optimal(x, z, gap=GAP)) for _ in range(3))
    memory = peak_bytes(lambda: pairs_optimal(x, z, gap=GAP))
    rows = []
    for name, method in (("dense Frank–Wolfe", frank_wolfe), ("dense mirror descent", mirror_descent)):
        run = method(x, z, gap=GAP, patience=patience, good_value=design.lower_bound * (1.0 + GAP))
        rows.append(
            compared(
                case,
                seconds,
                name,
                run.seconds,
                gap=design.gap,
                support=len(design.support),
                peak_megabytes=memory / 1e6,
                peer_gap=run.gap,
                peer_true_gap=run.value / design.lower_bound - 1.0,
                peer_stopped=run.gap > GAP,
                peer_steps=run.steps,
                peer_value_seconds=run.value_seconds,
                ours_processor_seconds=processor,
                peer_processor_seconds=run.processor_seconds,
                speedup=run.seconds / seconds,
                value_speedup=None if run.value_seconds is None else run.value_seconds / seconds,
            )
        )
    return rows


@dataclass
class DenseRun:
    """How far a baseline came."""

    value: float = np.inf
    bound: float = 0.0
    steps: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    value_seconds: float | None = None

    @property
    def gap(self) -> float:
        """The relative gap it proved."""
        return self.value / self.bound - 1.0 if self.bound > 0 else np.inf


def frank_wolfe(x: Floats, z: Floats, *, gap: float, patience: float, good_value: float = 0.0) -> DenseRun:
    """The textbook method: move weight 2/(t+2) to the vector that lowers the currently worst pair most."""

    def update(weights: Floats, slopes: Floats, step: int) -> Floats:
        share = 2.0 / (step + 3.0)
        weights = weights * (1.0 - share)
        weights[int(slopes.argmax())] += share
        return weights

    return _descend(x, z, update, gap, patience, good_value)


def mirror_descent(x: Floats, z: Floats, *, gap: float, patience: float, good_value: float = 0.0) -> DenseRun:
    """Entropic mirror descent on the value: weights times exp(step · slope), normalised, steps falling as 1/√t."""

    def update(weights: Floats, slopes: Floats, step: int) -> Floats:
        rate = np.sqrt(np.log(len(weights)) / (step + 1.0)) / slopes.max()
        grown = weights * np.exp(rate * (slopes - slopes.max()))
        return np.asarray(grown / grown.sum())

    return _descend(x, z, update, gap, patience, good_value)


def _descend(
    x: Floats, z: Floats, update: Callable[[Floats, Floats, int], Floats], gap: float, patience: float, good: float
) -> DenseRun:
    """Subgradient steps with all pairs compared in one product a step; the worst pairs, averaged, give the bound."""
    run = DenseRun()
    weights = np.full(len(x), 1.0 / len(x))
    squares = np.empty((len(z), len(z)))
    spread = np.zeros((x.shape[1], x.shape[1]))
    centred = z - z.mean(axis=0)
    start, processor = time.perf_counter(), time.process_time()
    while True:
        inverse = np.linalg.inv((x * weights[:, None]).T @ x)
        white = centred @ np.linalg.cholesky(inverse)
        lengths = np.einsum("ij,ij->i", white, white)
        np.dot(white, white.T, out=squares)
        squares *= -2.0
        squares += lengths
        squares += lengths[:, None]
        i, j = divmod(int(squares.argmax()), len(z))
        run.value = min(run.value, float(squares[i, j]))
        worst = z[i] - z[j]
        share = 2.0 / (run.steps + 2.0)
        spread = (1.0 - share) * spread + share * np.outer(worst, worst)
        run.seconds = time.perf_counter() - start
        if run.value_seconds is None and run.value <= good:
            run.value_seconds = run.seconds
        if run.steps % LOOK_EVERY == 0:
            image = inverse @ spread @ inverse
            steepest = float(np.max(np.einsum("ij,ij->i", x @ image, x)))
            run.bound = max(run.bound, float(np.sum(inverse * spread)) ** 2 / steepest)
        run.seconds = time.perf_counter() - start
        if run.gap <= gap or run.seconds > patience:
            run.processor_seconds = time.process_time() - processor
            return run
        weights = update(weights, (x @ (inverse @ worst)) ** 2, run.steps)
        run.steps += 1


def _largest(rng: np.random.Generator, count: int, items: int, dimension: int) -> Row:
    """No baseline can hold this case; the time is compared with one pass over all pairs, which any dense step takes."""
    x, z = catalogue(rng, count, items, dimension)
    design: list[Design] = []
    memory = peak_bytes(lambda: design.append(pairs_optimal(x, z, gap=0.05)))
    begin = time.perf_counter()
    largest = 0.0
    lengths = np.einsum("ij,ij->i", z, z)
    for first in range(0, items, 128):
        block = z[first : first + 128] @ z.T
        largest = max(largest, float(np.max(lengths[first : first + 128, None] + lengths - 2.0 * block)))
    once = time.perf_counter() - begin
    case = f"{count:,} vectors, all pairs of {items:,} items, d={dimension}"
    seconds = best_seconds({"ours": lambda: pairs_optimal(x, z, gap=0.05)}, repeats=1)["ours"]
    return compared(
        case,
        seconds,
        "one dense step, all pairs looked at once",
        once,
        gap=design[0].gap,
        status=str(design[0].status),
        support=len(design[0].support),
        rounds=design[0].rounds,
        peak_megabytes=memory / 1e6,
    )


def _growth_in_pairs(rng: np.random.Generator, quick: bool) -> list[Row]:
    """All pairs, with one of the three sizes growing at a time, against the smallest."""
    base = (200, 200, 4) if quick else (2_000, 2_000, 10)
    factors = (1, 2) if quick else (1, 4, 16)
    rows: list[Row] = []
    for place, name in enumerate(("vectors", "items", "dimensions")):
        seconds: dict[int, float] = {}
        for factor in factors:
            size = list(base)
            size[place] *= factor if place < 2 else {1: 1, 2: 2, 4: 2, 16: 4}[factor]
            x, z = catalogue(rng, *size)
            seconds[size[place]] = best_seconds({"ours": partial(pairs_optimal, x, z)}, repeats=3)["ours"]
        least = min(seconds)
        rows += [
            compared(f"growth, {size:,} {name}", taken, f"{least:,} {name}", seconds[least], size=size, grows=name)
            for size, taken in seconds.items()
        ]
    return rows


def _growth_in_items(rng: np.random.Generator, quick: bool) -> list[Row]:
    """Criteria that are linear in the items, from ten thousand to a million of them."""
    sizes = (1_000, 4_000) if quick else (10_000, 31_623, 100_000, 316_228, 1_000_000)
    dimension = 10
    measurements = rng.normal(size=(2_000, dimension))
    rows: list[Row] = []
    seconds: dict[str, dict[int, float]] = {"g": {}, "xy": {}, "gap": {}}
    processor: dict[str, dict[int, float]] = {"g": {}, "xy": {}, "gap": {}}
    for size in sizes:
        items = rng.normal(size=(size, dimension))
        scores = items @ rng.normal(size=dimension)
        best = int(scores.argmax())
        gaps = np.maximum(scores[best] - scores, 0.01)
        cases: dict[str, Callable[[], Design]] = {
            "g": partial(g_optimal, items),
            "xy": partial(xy_optimal, measurements, items),
            "gap": partial(gap_optimal, measurements, items, best=best, gaps=gaps),
        }
        for name, taken in best_seconds(cases, repeats=2).items():
            seconds[name][size] = taken
            processor[name][size] = min(_processor_seconds(cases[name]) for _ in range(2))
    for name, by_size in seconds.items():
        rows += [
            compared(
                f"{name}, {size:,} items, d={dimension}",
                seconds_taken,
                f"{sizes[0]:,} items",
                by_size[sizes[0]],
                size=size,
                grows=name,
                ours_processor_seconds=processor[name][size],
            )
            for size, seconds_taken in by_size.items()
        ]
    return rows


def _processor_seconds(run: Callable[[], object]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def draw_growth(rows: list[Row], path: Path) -> None:
    """Seconds of the processor against the number of items, for the criteria linear in them; a line of slope one."""
    from surepick.report.figures import figure

    with figure(path) as (axes,):
        for name, colour in (("g", "#0b6e4f"), ("xy", "#1f5fa8"), ("gap", "#c1121f")):
            points = [(row["size"], row["ours_processor_seconds"]) for row in rows if row.get("grows") == name]
            sizes, seconds = np.array(points).T
            axes.loglog(sizes, seconds, "o-", color=colour, label=f"{name}_optimal", lw=1.6, ms=4)
        axes.loglog(sizes, seconds[-1] * sizes / sizes[-1], "--", color="0.6", lw=1, label="slope one")
        axes.set_xlabel("items")
        axes.set_ylabel("seconds of the processor to a proved gap of 1%")
        axes.legend(frameon=False)
