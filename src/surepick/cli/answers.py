"""Answers and points of interest from the tables users have, as tallies and vectors."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from surepick._arrays import Floats
from surepick.confidence import in_given_order
from surepick.confidence.result import Tallies
from surepick.errors import InvalidInput
from surepick.glm import Tally
from surepick.io.tables import Table, read_table

NOT_FEATURES = ("item", "label", "image", "text", "colour", "item_a", "item_b", "winner", "answer", "pulls", "wins")
BOOKKEEPING = ("judge", "ts", "question", "prompt")
YES, NO = ("yes", "1", "true", "1.0"), ("no", "0", "false", "0.0")


@dataclass(frozen=True)
class Recorded:
    """Answers as read, and how to read points in the same coordinates."""

    answers: Tallies
    """A tally where the file holds counts, else batches in the order of the file."""
    features: list[str]
    items: Table | None
    left_out: list[str] = field(default_factory=list)
    """Rows that say nothing (ties, skips), each with its line."""

    def points(self, path: Path) -> tuple[list[str], Floats]:
        """Names and vectors of the points to evaluate: feature rows, items, or pairs of items."""
        table = read_table(path)
        about_items = "item" in table or "item_a" in table
        vectors = _item_vectors(self.items, self.features) if self.items is not None and about_items else {}
        return points_of(table, vectors, self.features)


def points_of(table: Table, vectors: Mapping[str, Floats], features: list[str]) -> tuple[list[str], Floats]:
    """Names and vectors of the rows of a table: pairs of items, items, or where it names none, rows of features."""
    if vectors and "item_a" in table and "item_b" in table:
        pairs = list(zip(table.text("item_a"), table.text("item_b"), strict=True))
        rows = [_look_up(vectors, a, table, i) - _look_up(vectors, b, table, i) for i, (a, b) in enumerate(pairs)]
        return [f"{a} − {b}" for a, b in pairs], np.array(rows)
    if vectors and "item" in table:
        names = table.text("item")
        return names, np.array([_look_up(vectors, name, table, i) for i, name in enumerate(names)])
    if not features:
        raise InvalidInput(
            f"{table.source} must have a column item, or columns item_a and item_b: items lack features."
        )
    missing = [name for name in features if name not in table]
    if missing:
        raise InvalidInput(
            f"{table.source} lacks the feature column {missing[0]!r}; it needs {', '.join(features)}"
            f"{', or a column item, or columns item_a and item_b' if vectors else ''}."
        )
    values = table.numbers(features)
    labels = table.text("label") if "label" in table else [_short(row) for row in values]
    return labels, values


def read_answers(path: Path, items: Path | None) -> Recorded:
    """Read raw rows (features, answer), counted rows (features, pulls, wins), or answers about items."""
    table = read_table(path)
    known = None if items is None else read_table(items)
    if "winner" in table or (known is not None and "item" in table):
        if known is None:
            raise InvalidInput(f"{table.source} holds answers about items; pass their features with --items FILE.")
        return _about_items(table, known)
    features = _features_of(table)
    vectors = table.numbers(features)
    if "pulls" in table:
        counts = table.numbers(["pulls", "wins"])
        return Recorded(Tally(vectors, counts[:, 0], counts[:, 1]), features, known)
    keep, ones, left_out = _yes_no(table)
    return Recorded(in_given_order(Tally.from_answers(vectors[keep], ones)), features, known, left_out)


def feature_columns(table: Table, *besides: str | None) -> list[str]:
    """Names of the feature columns: all but those with a meaning of their own, and those named besides."""
    return [name for name in table.columns if name not in (*NOT_FEATURES, *BOOKKEEPING, *besides)]


def item_names(items: Table) -> list[str]:
    """The names of the items, each once."""
    names = items.text("item")
    repeated, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise InvalidInput(f"{items.source} lists the item {repeated!r} more than once; names must differ.")
    return names


def _features_of(table: Table) -> list[str]:
    names = feature_columns(table)
    if not names:
        raise InvalidInput(f"{table.source} has no feature columns; it has only {', '.join(table.columns)}.")
    return names


def _item_vectors(items: Table, features: list[str]) -> dict[str, Floats]:
    """The vector of every item by its name."""
    return dict(zip(item_names(items), items.numbers(features), strict=True))


def _about_items(table: Table, items: Table) -> Recorded:
    features = _features_of(items)
    vectors = _item_vectors(items, features)
    if "winner" not in table:
        keep, ones, left_out = _yes_no(table)
        rows = [_look_up(vectors, table.text("item")[i], table, i) for i in keep]
    else:
        keep, left_out, wins = [], [], []
        for i, winner in enumerate(table.text("winner")):
            if winner in ("a", "b"):
                keep.append(i)
                wins.append(int(winner == "a"))
            elif winner in ("tie", "skip"):
                left_out.append(f"line {table.line(i)}: {winner}")
            else:
                raise table.refusal(i, f"winner must be a, b, tie or skip, got {winner!r}")
        ones = np.array(wins, dtype=np.int64)
        left, right = table.text("item_a"), table.text("item_b")
        rows = [_look_up(vectors, left[i], table, i) - _look_up(vectors, right[i], table, i) for i in keep]
    if not rows:
        raise InvalidInput(f"{table.source} holds no decisive answer; at least one is needed.")
    return Recorded(in_given_order(Tally.from_answers(np.array(rows), ones)), features, items, left_out)


def _yes_no(table: Table) -> tuple[list[int], NDArray[np.int64], list[str]]:
    """Rows with an answer, the answers as 1 and 0, and what was left out."""
    keep, ones, left_out = [], [], []
    for i, cell in enumerate(table.text("answer")):
        word = cell.lower()
        if word in YES or word in NO:
            keep.append(i)
            ones.append(int(word in YES))
        elif word == "skip":
            left_out.append(f"line {table.line(i)}: skip")
        else:
            raise table.refusal(i, f"answer must be yes, no, 1, 0 or skip, got {cell!r}")
    if not keep:
        raise InvalidInput(f"{table.source} holds no decisive answer; at least one is needed.")
    return keep, np.array(ones, dtype=np.int64), left_out


def _look_up(vectors: Mapping[str, Floats], name: str, table: Table, row: int) -> Floats:
    if name not in vectors:
        raise table.refusal(row, f"item {name!r} is not in the items file")
    return vectors[name]


def _short(row: Floats) -> str:
    shown = ", ".join(f"{value:.3g}" for value in row[:4])
    return f"({shown}{', …' if len(row) > 4 else ''})"
