"""Votes of a file as counts per pair of items, read row by row: four bytes of memory per vote."""

from array import array
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from surepick.answer import Answer
from surepick.errors import BadRows, InvalidInput
from surepick.io.items import PAIR_COLUMNS
from surepick.io.tables import Table, stream_cells
from surepick.io.votes import OutOfScope, named_items, reason_at, vote_at
from surepick.leaderboard import VoteCounts

VOTE_COLUMNS = (*(name for pair in PAIR_COLUMNS for name in pair), "winner", "item", "answer")


def count_votes(
    source: str | PathLike[str], names: Sequence[str] | None = None, *, drop_bad_rows: bool = False
) -> VoteCounts:
    """Count the comparisons of a file of votes (CSV, JSON, JSON lines or Parquet; docs/votes.md).

    With `names` only votes on these items count, and items without votes are listed; otherwise every item that a vote
    names. Rows that differ in nothing but their line are interpreted once, as every command does. A row that is no
    comparison is refused with its line, or reported with `drop_bad_rows`; equal ones are reported together, with the
    first line and their number.
    """
    path = Path(source)
    bad: list[str] = []
    unused: list[str] = []
    numbers: dict[tuple[str, ...], int] = {}
    lines: list[int] = []
    order = array("i")  # the number of the different row of each row: four bytes per vote
    present, rows = stream_cells(path, VOTE_COLUMNS, bad)
    for line, cells in rows:
        number = numbers.setdefault(cells, len(lines))
        if number == len(lines):
            lines.append(line)
        order.append(number)
    table = _table(str(path), present, list(numbers), lines)
    known = dict.fromkeys(named_items(table) if names is None else names)
    sequence = np.frombuffer(order, dtype=np.int32)
    times = np.bincount(sequence, minlength=len(lines))
    votes: list[tuple[str, str, Answer]] = []
    place = np.full(len(lines), -1, dtype=np.int32)
    for row, repeats in enumerate(times):
        try:
            vote = vote_at(table, row, known)
            if len(vote.shown) != 2:
                raise OutOfScope("An answer about one item; a leaderboard needs comparisons of two.")
        except InvalidInput as error:
            sentence = _repeated(reason_at(table, row, error), int(repeats))
            (unused if isinstance(error, OutOfScope) else bad).append(sentence)
            continue
        place[row] = len(votes)
        votes.append((vote.shown[0], vote.shown[1], vote.answer))
    if bad and not drop_bad_rows:
        raise BadRows(str(path), bad)
    unused = [*bad, *unused]
    if not votes:
        raise InvalidInput(f"{path} holds no vote that can be used. The first row: {unused[0]}")
    used = dict.fromkeys(name for vote in votes for name in vote[:2])
    usable = place[sequence]
    return VoteCounts.from_rows(tuple(used if names is None else known), votes, usable[usable >= 0], unused)


def _table(source: str, present: Sequence[str], rows: list[tuple[str, ...]], lines: list[int]) -> Table:
    """The distinct rows, without columns that are empty throughout."""
    if not lines:
        raise InvalidInput(f"{source!r} has no rows that can be read.")
    columns = {name: cells for place, name in enumerate(present) if any(cells := [row[place].strip() for row in rows])}
    pair = next((pair for pair in PAIR_COLUMNS if pair[0] in columns and pair[1] in columns), None)
    if pair is None and "item" not in columns:
        raise InvalidInput(
            f"{source!r} does not name the items of its votes; it needs columns item_a, item_b, winner (or model_a, "
            "model_b, winner)."
        )
    return Table(source, columns, lines)


def _repeated(sentence: str, times: int) -> str:
    return sentence if times == 1 else f"{sentence.rstrip('.')} (and {times - 1:,} more such rows)."
