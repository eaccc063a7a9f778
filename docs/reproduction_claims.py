"""Sentences that are checked against rows: what `make_reproduction.py` writes reproduction.md with.

A claim is a sentence with places for numbers, the rows they come from in words, how to compute them from the rows, and
what must be true of them for the sentence to be true.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Rows:
    """The rows of a study's tables."""

    rows: Sequence[Mapping[str, Any]]

    def where(self, **values: Any) -> "Rows":
        """Those with these values."""
        return Rows([row for row in self.rows if all(row.get(name) == value for name, value in values.items())])

    def column(self, name: str) -> list[Any]:
        """A column, in the order of the rows, of the tables that have it."""
        return [row[name] for row in self.rows if name in row]

    def one(self, name: str, **values: Any) -> Any:
        """The value of the only such row."""
        (value,) = self.where(**values).column(name)
        return value

    def ratios(self, name: str, upper: Mapping[str, Any], lower: Mapping[str, Any], by: Sequence[str]) -> list[float]:
        """Upper rows' values over those of the lower rows that agree in the columns `by`."""
        below = {tuple(row[one] for one in by): row[name] for row in self.where(**lower).rows}
        above = self.where(**upper).rows
        return [row[name] / below[key] for row in above if (key := tuple(row[one] for one in by)) in below]


@dataclass(frozen=True)
class Claim:
    """A sentence with numbers, checked against its rows."""

    text: str
    """With one pair of braces a number."""
    source: str
    """The rows it comes from, in words."""
    numbers: Callable[[Rows], Sequence[Any]]
    holds: Callable[..., bool] = lambda *_: True
    """What must be true of the numbers."""

    def sentence(self, rows: Rows) -> str:
        """The sentence with its numbers and its source; raises where the rows contradict it."""
        numbers = self.numbers(rows)
        if not self.holds(*numbers):
            raise ValueError(f"The rows contradict {self.text!r}: {list(numbers)}.")
        return f"{self.text.format(*numbers)} *({self.source})*"


@dataclass(frozen=True)
class Part:
    """A figure, table or claim of the paper, and the study that reproduces it."""

    title: str
    study: str
    paper: str
    settings: str = ""
    claims: tuple[Claim, ...] = ()
    options: tuple[str, ...] = ()
    """Further options of `surepick study`."""
    pivot: tuple[tuple[str, ...], str, str] | None = None
    """Columns that name a line, the column whose values become columns, and what they hold; all columns without it."""

    def arranged(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The rows as the page shows them."""
        if self.pivot is None or not rows:
            return list(rows)
        names, across, value = self.pivot
        if not {*names, across, value} <= rows[0].keys():
            return list(rows)
        lines: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in rows:
            line = lines.setdefault(tuple(row[name] for name in names), {name: row[name] for name in names})
            column = row[across] if isinstance(row[across], str) else f"{across} = {row[across]:g}"
            line[column] = "undecided" if row.get("decided") == 0 else row[value]
        return list(lines.values())


def span(values: Sequence[float]) -> tuple[float, float]:
    """The least and the largest."""
    return min(values), max(values)
