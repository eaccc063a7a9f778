"""Figures, drawn with Matplotlib (extra `plots`), all in one style."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surepick._arrays import Floats
from surepick.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from surepick.confidence import Intervals


COLOURS = {
    "corrected": "#0b6e4f",
    "corrected-ellipsoid": "#6bbf59",
    "corrected, norm bound": "#3d9970",
    "corrected, nothing known": "#8fd3b6",
    "anytime": "#1f5fa8",
    "printed": "#c1121f",
    "printed-empirical": "#e4572e",
    "li": "#9a6324",
    "faury": "#7b4fa6",
    "wald": "#6c757d",
}
"""A method has the same colour in every figure."""


@contextmanager
def figure(
    path: Path, *, columns: int = 1, rows: int = 1, size: tuple[float, float] = (7.0, 4.2)
) -> Iterator[list[Axes]]:
    """Axes of a new figure, saved to `path` at the end; the ending of the name decides the format."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("Figures need Matplotlib; install surepick[plots].") from None
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"A figure is saved as .png, .svg or .pdf, got {str(path)!r}.")
    with matplotlib.rc_context(
        {
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "font.size": 10,
            "svg.hashsalt": path.name,  # the same figure is the same file
        }
    ):
        canvas: Figure = Figure(figsize=size, layout="constrained")
        yield list(np.atleast_1d(canvas.subplots(rows, columns)).ravel())
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix.lower() == ".png":
            _save_png(canvas, path)
        else:
            stamp = {".svg": "Date", ".pdf": "CreationDate"}[path.suffix.lower()]
            canvas.savefig(path, metadata={stamp: None})


def _save_png(canvas: Figure, path: Path) -> None:
    """Save with 256 colours, which suffice for lines and text and take a third of the bytes."""
    from PIL import Image  # comes with Matplotlib

    drawn = io.BytesIO()
    canvas.savefig(drawn, format="png", dpi=150)
    with Image.open(drawn) as picture:
        reduced = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        reduced.save(path, format="png", optimize=True)


def draw_intervals(results: Sequence[Intervals], names: Sequence[str], path: Path, *, most: int = 12) -> None:
    """Intervals of all methods side by side at the first `most` points; an unbounded one is an open arrow."""
    shown = list(names)[:most]
    finite = np.concatenate([np.r_[result.low[:most], result.high[:most]] for result in results])
    finite = finite[np.isfinite(finite)]
    low, high = (finite.min(), finite.max()) if finite.size else (-1.0, 1.0)
    # One very wide method must not squeeze the others to points.
    widths = [np.median(result.half_width[:most]) for result in results if np.isfinite(result.half_width[:most]).all()]
    if widths:
        centre = np.nanmedian(np.concatenate([result.centre[:most] for result in results]))
        limit = 12 * min(widths) + np.nanmax(np.abs(np.concatenate([r.centre[:most] for r in results]) - centre))
        low, high = max(low, centre - limit), min(high, centre + limit)
    margin = 0.06 * (high - low) or 1.0
    height = 0.9 + len(shown) * (0.14 * len(results) + 0.22)
    with figure(path, size=(7.5, min(height, 14.0))) as (axes,):
        for place, result in enumerate(results):
            heights = np.arange(len(shown)) + (place - (len(results) - 1) / 2) * 0.8 / max(len(results), 1)
            colour = COLOURS.get(result.method, "black")
            left = np.clip(result.low[:most], low - margin, high + margin)
            right = np.clip(result.high[:most], low - margin, high + margin)
            style = "-" if result.guarantee == "proved" and result.valid else (0, (3, 1.2))
            label = f"{result.method} ({result.guarantee})"
            axes.hlines(heights, left, right, color=colour, lw=2.2, linestyle=style, label=label)
            axes.plot(result.centre[:most], heights, "o", color=colour, ms=3.5)
            for at, ends in ((low - margin, result.low), (high + margin, result.high)):
                outside = ~((ends[:most] >= low - margin) & (ends[:most] <= high + margin))
                axes.plot(np.full(outside.sum(), at), heights[outside], "<" if at < low else ">", color=colour, ms=5)
        axes.set_yticks(range(len(shown)), shown)
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.set_xlim(low - 1.5 * margin, high + 1.5 * margin)
        axes.set_xlabel("log-odds of yes (solid: proved; dashed: not proved for these data)")
        axes.grid(visible=False, axis="y")
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.14 if height < 5 else -0.07), ncols=2, frameon=False, fontsize=8
        )


def draw_weights(names: Sequence[str], weights: Floats, path: Path, *, most: int = 25) -> None:
    """A bar for each of the `most` largest weights of a design, and one for all others together."""
    order = np.argsort(-weights, kind="stable")
    shown = [names[place] for place in order[:most]]
    shares = [float(weights[place]) for place in order[:most]]
    if len(order) > most:
        shown.append(f"{len(order) - most} others")
        shares.append(float(weights[order[most:]].sum()))
    with figure(path, size=(7.0, 1.2 + 0.22 * len(shown))) as (axes,):
        colours = ["#0b6e4f"] * min(len(order), most) + ["0.7"]
        axes.barh(range(len(shown)), 100 * np.array(shares), color=colours[: len(shown)])
        axes.set_yticks(range(len(shown)), shown)
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.set_xlabel("share of the questions, %")
        axes.grid(visible=False, axis="y")


def draw_questions(names: Sequence[str], questions: Floats, path: Path, *, bound: float) -> None:
    """Numbers of questions by name on a logarithmic scale, with the bound that no method beats as a line."""
    with figure(path, size=(7.0, 1.3 + 0.32 * len(names))) as (axes,):
        axes.barh(range(len(names)), questions, color="#1f5fa8")
        axes.axvline(bound, color="#c1121f", lw=1.4, label=f"no method below {bound:,.3g} on average")
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set(xscale="log", xlabel="questions")
        axes.grid(visible=False, axis="y")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.22), frameon=False, fontsize=8)


def draw_appearances(
    names: Sequence[str], counts: Floats, colours: Sequence[str], path: Path, *, most: int = 30
) -> None:
    """A bar for each of the `most` items with the most answers, in the item's colour."""
    order = np.argsort(-counts, kind="stable")[:most]
    with figure(path, size=(7.2, 1.0 + 0.21 * len(order))) as (axes,):
        axes.barh(
            range(len(order)), counts[order], color=[colours[place] for place in order], edgecolor="0.6", linewidth=0.5
        )
        axes.set_yticks(range(len(order)), [names[place] for place in order])
        axes.set_ylim(len(order) - 0.4, -0.6)
        axes.set_xlabel("answers about it")
        axes.grid(visible=False, axis="y")


def draw_evidence(
    questions: Sequence[int], nats: Sequence[float | None], alive: Sequence[int], needed: float, path: Path
) -> None:
    """Evidence against the closest rival, and how many items are not excluded, over the questions."""
    with figure(path, columns=2, size=(9.0, 3.2)) as (left, right):
        known = [(count, value) for count, value in zip(questions, nats, strict=True) if value is not None]
        if known:
            values = np.maximum([value for _, value in known], -0.25 * needed)
            left.plot([count for count, _ in known], values, color="#1f5fa8", lw=2)
            left.axhline(needed, color="#0b6e4f", lw=1.2, ls="--", label="needed, at least")
            left.legend(frameon=False, fontsize=8, loc="upper left")
        left.set(xlabel="answers", ylabel="evidence (nats)", title="against the closest rival")
        right.step(questions, alive, where="post", color="#d4007a", lw=2)
        right.set(xlabel="answers", ylabel="items", title="not excluded", ylim=(0, None))


def draw_scores(
    names: Sequence[str],
    score: Floats,
    low: Floats,
    high: Floats,
    ranks: Sequence[str],
    colours: Sequence[str],
    path: Path,
) -> None:
    """Scores with their intervals, one line per item; an unbounded end is an arrow, the rank is at the right."""
    ends = np.concatenate([score, low[np.isfinite(low)], high[np.isfinite(high)]])
    # A few very wide intervals must not squeeze the others to points.
    spread = float(np.quantile(np.abs(ends), 0.9)) or 1.0
    left, right = max(float(ends.min()), -2 * spread), min(float(ends.max()), 2 * spread)
    margin = 0.05 * (right - left) or 1.0
    with figure(path, size=(7.6, 1.0 + 0.2 * len(names))) as (axes,):
        rows = np.arange(len(names))
        axes.hlines(rows, np.clip(low, left - margin, None), np.clip(high, None, right + margin), color="0.45", lw=1.6)
        for at, outside, marker in (
            (left - margin, low < left - margin, "<"),
            (right + margin, high > right + margin, ">"),
        ):
            axes.plot(np.full(int(outside.sum()), at), rows[outside], marker, color="0.45", ms=4)
        axes.scatter(
            np.clip(score, left, right), rows, c=list(colours), s=34, edgecolors="0.3", linewidths=0.6, zorder=3
        )
        for row, rank in enumerate(ranks):
            axes.text(1.01, row, rank, transform=axes.get_yaxis_transform(), va="center", fontsize=7.5, color="0.35")
        axes.set_yticks(rows, names, fontsize=8)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlim(left - 1.5 * margin, right + 1.5 * margin)
        axes.set_xlabel("score against the mean of all items (log-odds); at the right: possible ranks")
        axes.grid(visible=False, axis="y")


def draw_leaderboard(
    names: Sequence[str], score: Floats, low: Floats, high: Floats, ranks: Sequence[tuple[int, int]], path: Path
) -> None:
    """Scores with their intervals at the left, the ranks that each item may have at the right, one line per item."""
    rows, place = np.arange(len(names)), np.array(ranks, dtype=np.float64)
    with figure(path, columns=2, size=(9.0, 1.3 + 0.2 * len(names))) as (left, right):
        left.hlines(rows, low, high, color="#6c757d", lw=3.0, alpha=0.7)
        left.plot(score, rows, "|", color="black", ms=7)
        left.set_yticks(rows, names, fontsize=8)
        left.set(xlabel="score, log-odds", title="score and its interval (heuristic)")
        # Half a rank to either side, so that a rank that is known exactly is a bar of width one.
        right.hlines(rows, place[:, 0] - 0.5, place[:, 1] + 0.5, color="#0b6e4f", lw=4.5)
        for row, (best, worst) in enumerate(ranks):
            spoken = str(best) if best == worst else f"{best}–{worst}"
            right.text(
                1.01, row, spoken, transform=right.get_yaxis_transform(), va="center", fontsize=7.5, color="0.35"
            )
        right.set_yticks(rows, [""] * len(names))
        right.set(xlabel="rank", title="possible ranks (proved)")
        for axes in (left, right):
            axes.title.set_fontsize(10)
            axes.set_ylim(len(names) - 0.4, -0.6)
            # Faint lines lead from an item's name to its rank.
            axes.grid(visible=True, axis="y", alpha=0.15)
            axes.tick_params(axis="y", length=0)
