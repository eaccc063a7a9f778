"""A leaderboard as a figure and as one self-contained HTML file."""

from html import escape
from pathlib import Path

import numpy as np

from surepick import __version__
from surepick.errors import InvalidInput
from surepick.io.items import ItemTable
from surepick.leaderboard import Leaderboard, LeaderboardRow
from surepick.report.figures import draw_leaderboard
from surepick.report.page import picture_in_page, sentence_list, whole_page

MOST_LEFT_OUT = 200
"""Sentences about unusable rows that a page shows."""


def draw_board(board: Leaderboard, items: ItemTable | None, path: Path) -> None:
    """Scores with their intervals and the proved ranks; items without a score are left out."""
    rows = [row for row in board.rows if row.score is not None]
    if not rows:
        raise InvalidInput(f"There is nothing to draw: no item has a score. {' '.join(board.notes)}")
    draw_leaderboard(
        [_label(items, row) for row in rows],
        np.array([row.score for row in rows], dtype=np.float64),
        np.array([row.low for row in rows]),
        np.array([row.high for row in rows]),
        [(row.rank_low, row.rank_high) for row in rows],
        path,
    )


def write_leaderboard(board: Leaderboard, items: ItemTable | None, path: Path) -> None:
    """Write the page; the figure needs the extra `plots`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(leaderboard_page(board, items), encoding="utf-8")


def leaderboard_page(board: Leaderboard, items: ItemTable | None = None) -> str:
    """The whole page as text."""
    parts = [
        f"<h1>Leaderboard of {len(board.rows):,} items</h1>",
        f'<p class="claim">{escape(board.statement)} Here delta is {board.delta:g}.</p>',
        *(f'<p class="claim open">{escape(note)}</p>' for note in board.notes),
        f"<p>{board.votes:,} votes, {board.skips:,} skips.</p>",
        _table(board, items),
        f'<p class="note">{escape(board.scores)}</p>',
    ]
    if any(row.score is not None for row in board.rows):
        parts.append(picture_in_page("scores", lambda path: draw_board(board, items, path)))
    parts.append(f"<h2>Assumptions</h2>{sentence_list(board.assumptions)}")
    if board.left_out:
        parts.append(f"<h2>Rows that could not be used</h2>{sentence_list(board.left_out[:MOST_LEFT_OUT])}")
    parts.append(f'<p class="note">surepick {__version__}</p>')
    return whole_page("leaderboard", parts)


def _table(board: Leaderboard, items: ItemTable | None) -> str:
    heads = ("ranks (proved)", "item", "score", "interval (heuristic)", "wins", "losses", "ties")
    head = "".join(f'<th class="{_kind(name)}">{name}</th>' for name in heads)
    body = []
    for row in board.rows:
        score = "–" if row.score is None else f"{row.score:+.3f}"
        interval = "unbounded" if row.score is None else f"{row.low:+.3f} … {row.high:+.3f}"
        cells = (row.ranks, _shown(items, row), score, interval, *(f"{n:,}" for n in (row.wins, row.losses, row.ties)))
        body.append("".join(f'<td class="{_kind(name)}">{cell}</td>' for name, cell in zip(heads, cells, strict=True)))
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{cells}</tr>' for cells in body)}</table>"


def _kind(column: str) -> str:
    return "" if column == "item" else "number"


def _label(items: ItemTable | None, row: LeaderboardRow) -> str:
    return row.item if items is None else items.label(row.item)


def _shown(items: ItemTable | None, row: LeaderboardRow) -> str:
    colour = None if items is None else items.colour(row.item)
    patch = "" if colour is None else f'<span class="swatch" style="background:{colour}"></span>'
    return patch + escape(_label(items, row))
