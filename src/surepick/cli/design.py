"""`surepick design`: which questions are worth asking, how often, and a proof of how far that is from the best."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

Criterion = Literal["pairs", "g", "d", "xy", "gap"]
Ask = Literal["pairs", "items"]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from surepick.design import Allocation, Design
    from surepick.io.tables import Table


def design(
    items: Annotated[Path, typer.Argument(help="Items: column item; every other numeric column is a feature.")],
    criterion: Annotated[
        Criterion,
        typer.Option(
            help="pairs: tell all items apart; gap: tell the best from the rest; xy: estimate --at; g, d: estimate all."
        ),
    ] = "pairs",
    ask: Annotated[Ask, typer.Option(help="pairs: A-versus-B questions; items: yes/no questions.")] = "pairs",
    n: Annotated[int | None, typer.Option(help="Round to this many questions.")] = None,
    at: Annotated[Path | None, typer.Option(help="For xy: feature rows, items, or pairs item_a,item_b.")] = None,
    score: Annotated[str | None, typer.Option(help="For gap: the column with each item's score.")] = None,
    gap: Annotated[
        float, typer.Option(help="Stop when the value is proved to be within this fraction of the best possible.")
    ] = 0.01,
    max_seconds: Annotated[
        float | None, typer.Option(help="Stop after this many seconds with the best design found.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the weights to this PNG, SVG or PDF file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The optimal design with its certificate, rounded to --n questions. Exit code 1 if the gap was not reached."""
    from surepick.cli.output import print_json
    from surepick.io.tables import read_table

    table = read_table(items)
    names, vectors = named_vectors(table, score)
    result = _solve(table, names, vectors, criterion, ask, at, score, gap, max_seconds)
    result, allocation = _rounded(result, vectors, n)
    questions = _questions(result, names)
    if plot is not None:
        from surepick.report.figures import draw_weights

        draw_weights([_as_text(question) for question in questions], result.weights, plot)
    if json:
        print_json(
            {
                "criterion": result.criterion,
                "value": result.value,
                "lower_bound": result.lower_bound,
                "gap": result.gap,
                "support": questions,
                "weights": result.weights,
                "counts": None if allocation is None else allocation.counts,
                "ratio": None if allocation is None else allocation.ratio,
                "iterations": result.iterations,
                "seconds": result.seconds,
                "status": str(result.status),
            }
        )
    else:
        _print_table(result, allocation, questions)
        if plot is not None:
            print(f"Figure: {plot}")
    if not result.converged:
        raise typer.Exit(1)


def named_vectors(table: "Table", score: str | None) -> "tuple[list[str], NDArray[np.float64]]":
    """Names and vectors; items without features get one coordinate each."""
    import numpy as np

    from surepick.io.items import feature_columns, item_names

    names, features = item_names(table), feature_columns(table, score)
    return names, table.numbers(features) if features else np.eye(len(names))


def _solve(
    table: "Table",
    names: list[str],
    vectors: "NDArray[np.float64]",
    criterion: Criterion,
    ask: Ask,
    at: Path | None,
    score: str | None,
    gap: float,
    max_seconds: float | None,
) -> "Design":
    from surepick.design import Pairs, Rows, d_optimal, g_optimal, gap_optimal, pairs_optimal, xy_optimal
    from surepick.errors import InvalidInput
    from surepick.io.items import feature_columns, points_of
    from surepick.io.tables import read_table

    measurements = Pairs(vectors) if ask == "pairs" else Rows(vectors, name="items")
    if criterion == "g":
        return g_optimal(measurements, gap=gap, max_seconds=max_seconds)
    if criterion == "d":
        return d_optimal(measurements, gap=gap, max_seconds=max_seconds)
    if criterion == "pairs":
        return pairs_optimal(measurements, vectors, gap=gap, max_seconds=max_seconds)
    if criterion == "xy":
        if at is None:
            raise InvalidInput("The criterion xy needs --at FILE with what is to be estimated.")
        by_name = dict(zip(names, vectors, strict=True))
        _, directions = points_of(read_table(at), by_name, feature_columns(table, score))
        return xy_optimal(measurements, directions, gap=gap, max_seconds=max_seconds)
    if score is None:
        raise InvalidInput("The criterion gap needs --score COLUMN, the score of every item; the largest is the best.")
    scores = table.numbers([score])[:, 0]
    best = int(scores.argmax())
    gaps = scores[best] - scores
    return gap_optimal(measurements, vectors, best=best, gaps=gaps, gap=gap, max_seconds=max_seconds)


def _rounded(result: "Design", vectors: "NDArray[np.float64]", n: int | None) -> "tuple[Design, Allocation | None]":
    """Whole numbers of questions; where n is smaller than the support, the support is reduced first."""
    from dataclasses import replace

    from surepick.design import reduce_support

    if n is None:
        return result, None
    if n < len(result.weights):
        chosen = result.support
        rows = vectors[chosen] if chosen.ndim == 1 else vectors[chosen[:, 0]] - vectors[chosen[:, 1]]
        kept, weights = reduce_support(rows, result.weights)
        result = replace(result, support=chosen[kept], weights=weights)
    return result, result.round(n)


def _questions(result: "Design", names: list[str]) -> list[str | list[str]]:
    """The names behind the support: an item, or a pair of them."""
    if result.support.ndim == 1:
        return [names[place] for place in result.support]
    return [[names[first], names[second]] for first, second in result.support]


def _as_text(question: str | list[str]) -> str:
    return question if isinstance(question, str) else " − ".join(question)


def _print_table(result: "Design", allocation: "Allocation | None", questions: list[str | list[str]]) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table as Grid

    console = Console()
    console.print(
        f"Criterion {result.criterion}: value {result.value:.6g}, no design below {result.lower_bound:.6g} "
        f"(gap {100 * max(result.gap, 0.0):.2g}%), {result.seconds:.2g} s. {result.status.sentence}"
    )
    order = np.argsort(-result.weights, kind="stable")
    grid = Grid(title=f"Questions by weight ({min(20, len(order))} of {len(order)})", title_justify="left")
    grid.add_column("question")
    grid.add_column("weight", justify="right")
    if allocation is not None:
        grid.add_column("times", justify="right")
    for place in order[:20]:
        cells = [_as_text(questions[place]), f"{100 * result.weights[place]:.2f}%"]
        grid.add_row(*cells, *([] if allocation is None else [f"{allocation.counts[place]:,}"]))
    console.print(grid)
    if allocation is not None:
        console.print(
            f"{allocation.total:,} questions in whole numbers keep {100 * allocation.ratio:.1f}% of the information."
        )
