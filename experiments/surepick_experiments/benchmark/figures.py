"""Figures of the benchmark: small multiples, a panel for each world."""

import math
from pathlib import Path
from typing import Any

from surepick.report.figures import figure
from surepick_experiments.benchmark.challenge import CHECKPOINTS
from surepick_experiments.benchmark.methods import METHODS
from surepick_experiments.studies.identification import groups
from surepick_experiments.studies.runner import Row

COLUMNS = 4

NAMED = ("top-two", "gse", "asap", "uniform")
"""Methods for comparison whose guesses have a colour; the others are grey, since 18 lines in a panel are not read."""

OURS = ("#d4007a", "#f28e2b", "#7a0046")
OTHERS = (
    "#1f5fa8",
    "#4aa3df",
    "#0b6e4f",
    "#6bbf59",
    "#7b4fa6",
    "#b39ddb",
    "#9a6324",
    "#c9a66b",
    "#333333",
    "#8c8c8c",
    "#c1121f",
    "#e78ac3",
    "#17becf",
    "#bcbd22",
    "#5c6bc0",
    "#a1887f",
)


def colours() -> dict[str, str]:
    """A method has the same colour in every figure; ours stand out."""
    ours, others = iter(OURS), iter(OTHERS * 2)
    return {name: next(ours if entry.ours else others) for name, entry in METHODS.items()}


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Best guesses against questions, and questions to stop with errors."""
    if not rows:
        return []
    return [_guesses(summary["cells"], folder / "guesses.png"), _stops(summary["cells"], folder / "stops.png")]


def _guesses(cells: list[Row], path: Path) -> Path:
    worlds, colour = groups(cells, "world"), colours()
    lines = math.ceil((len(worlds) + 1) / COLUMNS)

    def style(method: str) -> dict[str, Any]:
        if METHODS[method].ours:
            return {"lw": 2.2, "zorder": 4, "color": colour[method]}
        if method in NAMED:
            return {"lw": 1.3, "zorder": 3, "color": colour[method], "ls": "--" if method == "uniform" else "-"}
        return {"lw": 0.8, "zorder": 2, "color": "0.82"}

    with figure(path, columns=COLUMNS, rows=lines, size=(3.0 * COLUMNS, 2.3 * lines)) as panels:
        for number, (axes, ((world,), found)) in enumerate(zip(panels, worlds.items(), strict=False)):
            for cell in found:
                points = [point for point in CHECKPOINTS if f"right_{point}" in cell]
                axes.plot(points, [cell[f"right_{point}"] for point in points], **style(cell["method"]))
            read = [point for point in CHECKPOINTS if any(f"right_{point}" in cell for cell in found)]
            axes.set(xscale="log", ylim=(-0.02, 1.02), title=world)
            axes.set_xticks(read, [str(point) for point in read], fontsize=8)
            axes.set_yticks([0, 0.5, 1], ["0", "½", "1"] if number % COLUMNS == 0 else [])
            axes.minorticks_off()
        for axes in panels[::COLUMNS][: math.ceil(len(worlds) / COLUMNS)]:
            axes.set_ylabel("right guesses")
        for axes in panels[len(worlds) :]:
            axes.set_axis_off()
        legend, met = panels[len(worlds)], {cell["method"] for cell in cells}
        coloured = [name for name in METHODS if name in met and (METHODS[name].ours or name in NAMED)]
        for name in coloured:
            legend.plot([], [], label=name, **style(name))
        if others := sorted(met - set(coloured)):
            legend.plot([], [], label=f"{len(others)} other methods", **style(others[0]))
        legend.legend(fontsize=10, frameon=False, loc="upper left")
    return path


def _stops(cells: list[Row], path: Path) -> Path:
    """Median questions to stop with intervals; a cross for a method that is wrong too often in that world."""
    stopping = [cell for cell in cells if METHODS[cell["method"]].claim is not None]
    worlds, colour = groups(stopping, "world"), colours()
    names = [name for name in METHODS if any(cell["method"] == name for cell in stopping)]
    medians = [cell["questions"] for cell in stopping if cell["questions"] is not None]
    ends = (min(medians, default=1.0) / 2, 2 * max(medians, default=1.0))
    lines = math.ceil(len(worlds) / COLUMNS)
    with figure(path, columns=COLUMNS, rows=lines, size=(3.4 * COLUMNS, (0.9 + 0.19 * len(names)) * lines)) as panels:
        for number, (axes, ((world,), found)) in enumerate(zip(panels, worlds.items(), strict=False)):
            for cell in found:
                if cell["questions"] is None:
                    continue
                height = -names.index(cell["method"])
                if cell["questions_low"]:
                    high = cell["questions_high"] or ends[1]
                    axes.plot([cell["questions_low"], high], [height, height], lw=1.5, color=colour[cell["method"]])
                wrong = cell["broken"] or not cell["winner"]
                axes.plot(cell["questions"], height, "x" if wrong else "o", ms=6, color=colour[cell["method"]])
            axes.set(xscale="log", title=world, ylim=(0.3 - len(names), 0.7), xlim=ends)
            axes.set_yticks([-place for place in range(len(names))], names if number % COLUMNS == 0 else [], fontsize=8)
        for axes in panels[len(worlds) :]:
            axes.set_axis_off()
    return path
