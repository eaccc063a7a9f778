"""`surepick rank`: a leaderboard of all items from recorded votes, with the ranks that are proved."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from surepick.cli.output import DROP_BAD_ROWS_HELP, print_json, print_sentences

Data = Literal["adaptive", "fixed"]
Ties = Literal["half", "davidson"]

if TYPE_CHECKING:
    from surepick.leaderboard import Leaderboard, LeaderboardRow


def rank(
    votes: Annotated[
        Path, typer.Argument(help="Votes on pairs of items: item_a,item_b,winner or model_a,model_b,winner.")
    ],
    items: Annotated[
        Path | None, typer.Option(help="Items to rank, with labels and colours; by default all that the votes name.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Allowed probability that any rank is wrong.")] = 0.05,
    data: Annotated[
        Data, typer.Option(help="fixed if no choice of a pair depended on an earlier vote, else adaptive.")
    ] = "adaptive",
    ties: Annotated[
        Ties, typer.Option(help="A tie is half a win of each (as in arena-rank), or modelled by Davidson.")
    ] = "half",
    drop_bad_rows: Annotated[bool, typer.Option("--drop-bad-rows", help=DROP_BAD_ROWS_HELP)] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw scores and ranks to this PNG, SVG or PDF file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the leaderboard to this HTML file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """A leaderboard from recorded votes: proved ranks, and estimated scores with intervals."""
    from surepick.io.items import read_items
    from surepick.io.vote_counts import count_votes
    from surepick.leaderboard import rank_votes

    table = None if items is None else read_items(items, drop_bad_rows=drop_bad_rows)
    names = None if table is None else table.names
    counted = count_votes(votes, names, drop_bad_rows=drop_bad_rows)
    board = rank_votes(counted, delta=delta, data=data, ties=ties)
    if plot is not None or html is not None:
        from surepick.report.leaderboard_page import draw_board, write_leaderboard

        if plot is not None:
            draw_board(board, table, plot)
        if html is not None:
            write_leaderboard(board, table, html)
    if json:
        print_json(board.to_json())
        return
    _print_board(board)
    for name, path in (("Figure", plot), ("Page", html)):
        if path is not None:
            print(f"{name}: {path}")


def _print_board(board: "Leaderboard") -> None:
    from rich.console import Console
    from rich.table import Table as Grid

    console = Console()
    console.print(f"{len(board.rows):,} items, {board.votes:,} votes, {board.skips:,} skips; delta = {board.delta:g}.")
    print_sentences("rows or kinds of rows were left out (--json lists all)", board.left_out)
    grid = Grid(title="Ranks (proved) and scores (heuristic)", title_justify="left")
    grid.add_column("rank", justify="right", no_wrap=True)
    grid.add_column("item")
    for column in ("score", "interval", "wins", "losses", "ties"):
        grid.add_column(column, justify="right", no_wrap=True)
    for place, row in enumerate(board.rows):
        last = place + 1 < len(board.rows) and board.rows[place + 1].group != row.group
        counts = (f"{number:,}" for number in (row.wins, row.losses, row.ties))
        grid.add_row(row.ranks, row.item, *_spoken_score(row), *counts, end_section=last)
    console.print(grid)
    for sentence in (*board.notes, board.statement, f"Assumed: {' '.join(board.assumptions)}", board.scores):
        console.print(sentence, markup=False, highlight=False)


def _spoken_score(row: "LeaderboardRow") -> tuple[str, str]:
    return ("–", "unbounded") if row.score is None else (f"{row.score:+.3f}", f"{row.low:+.3f} … {row.high:+.3f}")
