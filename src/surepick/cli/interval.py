"""`surepick interval`: how far a fitted logistic model can be trusted at given points, all methods side by side."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from surepick.cli.output import DROP_BAD_ROWS_HELP, print_json, print_sentences

Data = Literal["adaptive", "fixed"]

if TYPE_CHECKING:
    from surepick.confidence import Intervals
    from surepick.io.votes import RecordedAnswers


def interval(
    answers: Annotated[
        Path, typer.Argument(help="Answers: features + answer, features + pulls,wins, or votes about items.")
    ],
    at: Annotated[Path, typer.Option(help="Where to evaluate the model: feature rows, items, or pairs item_a,item_b.")],
    items: Annotated[
        Path | None, typer.Option(help="Items and their features; by default every item has its own score.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Allowed probability that any interval is wrong.")] = 0.05,
    method: Annotated[
        str, typer.Option(help="Names separated by commas, or all; by default those proved for the data, and wald.")
    ] = "",
    data: Annotated[
        Data, typer.Option(help="fixed if no question depended on an earlier answer, else adaptive.")
    ] = "adaptive",
    norm_bound: Annotated[float | None, typer.Option(help="An upper bound on the norm of theta, if known.")] = None,
    kappa: Annotated[
        float | None, typer.Option(help="A lower bound on the variance of every answer, if known.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed for the order of counted rows (fixed designs); drawn by default."),
    ] = None,
    drop_bad_rows: Annotated[bool, typer.Option("--drop-bad-rows", help=DROP_BAD_ROWS_HELP)] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the intervals to this PNG, SVG or PDF file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Confidence intervals (log-odds) for a fitted logistic model, all methods side by side."""
    from surepick.confidence.result import pooled
    from surepick.glm import fit
    from surepick.io.votes import read_answers
    from surepick.registry import METHODS, default_methods, intervals_by_name

    recorded = read_answers(answers, items, drop_bad_rows=drop_bad_rows)
    names, points = recorded.points(at)
    wanted = [word.strip() for word in method.split(",") if word.strip()] or default_methods(data)
    fitted = fit(pooled(recorded.answers))
    results = intervals_by_name(
        METHODS if wanted == ["all"] else wanted,
        recorded.answers,
        points,
        delta=delta,
        data=data,
        norm_bound=norm_bound,
        kappa=kappa,
        order_seed=seed,
        fitted=fitted,
    )
    if plot is not None:
        from surepick.report.figures import draw_intervals

        draw_intervals(results, names, plot)
    if json:
        print_json(
            {
                "methods": [_as_fields(result) for result in results],
                "points": names,
                "fit": {"status": str(fitted.status), "gap": fitted.gap, "theta": fitted.theta},
                "xi": float(fitted.inverse_norms(pooled(recorded.answers).asked().vectors).max()),
                "d": fitted.span.rank,
                "delta": delta,
                "left_out": recorded.left_out,
                "prepare": None if recorded.items is None else recorded.items.prepared().to_json(),
            }
        )
        return
    _print_tables(results, names, recorded, str(fitted.status), delta)
    if plot is not None:
        print(f"Figure: {plot}")


def _as_fields(result: "Intervals") -> dict[str, object]:
    ends = zip(result.low, result.high, result.centre, strict=True)
    return {
        "name": result.method,
        "guarantee": str(result.guarantee),
        "valid": result.valid,
        "reason": result.reason,
        "statement": result.statement,
        "order_seed": result.order_seed,
        "intervals": [{"low": low, "high": high, "centre": centre} for low, high, centre in ends],
        **{key: value for key, value in result.details.items() if key != "d"},
    }


def _print_tables(
    results: "list[Intervals]", names: list[str], recorded: "RecordedAnswers", status: str, delta: float
) -> None:
    from rich.console import Console
    from rich.table import Table as Grid

    from surepick.confidence.result import pooled

    console = Console()
    total = pooled(recorded.answers).total
    size = f"{len(recorded.features)} features" if recorded.features else "a score for every item"
    console.print(f"{total:,} answers, {size}; fit {status}; delta = {delta:g}.")
    for sentence in () if recorded.items is None else recorded.items.prepared().sentences:
        console.print(sentence, markup=False, highlight=False)
    print_sentences("rows were left out (--json lists all)", recorded.left_out)
    grid = Grid(title="Log-odds, and as probability", title_justify="left")
    grid.add_column("point")
    for column in ("method", "guarantee"):
        grid.add_column(column, no_wrap=True)
    for column in ("log-odds", "probability"):
        grid.add_column(column, justify="right", no_wrap=True)
    for i, name in enumerate(names):
        for place, result in enumerate(results):
            last = place == len(results) - 1
            grid.add_row(
                name if place == 0 else "", result.method, str(result.guarantee), *_ends(result, i), end_section=last
            )
    console.print(grid)
    for result in results:
        if not result.valid:
            console.print(f"[bold]{result.method}[/bold]: {result.reason}")


def _ends(result: "Intervals", place: int) -> tuple[str, str]:
    """The ends of an interval on both scales."""
    low, high = float(result.low[place]), float(result.high[place])
    if math.isinf(low) and math.isinf(high):
        return "unbounded", ""
    chances = [100 / (1 + math.exp(-min(max(end, -700.0), 700.0))) for end in (low, high)]
    return f"{low:+.2f} … {high:+.2f}", f"{chances[0]:.1f}% … {chances[1]:.1f}%"
