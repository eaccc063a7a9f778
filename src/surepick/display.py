"""How results look in notebooks: a headline, a table, a picture; as HTML, as a data frame, as a figure.

A result says what there is to show as a `View`, which is plain data. The renderings are here, once for all results.
They look up pandas, polars and Matplotlib by name when they are asked for, so that nothing depends on them.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from textwrap import fill
from typing import Any, Literal

from surepick.errors import InvalidInput, MissingExtra

MOST_ROWS = 12
"""Rows of a table in a notebook."""

MOST_DRAWN = 40
"""Rows of a figure."""

COLOUR = "#0b6e4f"


@dataclass(frozen=True)
class View:
    """What there is to show of a result."""

    title: str
    """One sentence without its full stop."""
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """A table: columns of equal length."""
    notes: tuple[str, ...] = ()
    """Further sentences."""
    labels: str = ""
    """The column that names the rows in a figure."""
    values: str = ""
    """The column that is drawn; "" where there is no figure."""
    ends: tuple[str, str] | None = None
    """Columns with the ends of an interval around each value; bars are drawn where there are none."""

    @property
    def rows(self) -> int:
        """Length of the columns."""
        return len(next(iter(self.columns.values()), ()))


class Displayed(ABC):
    """A result that shows itself: subclasses write `view`."""

    @abstractmethod
    def view(self) -> View:
        """What there is to show."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.view().title}>"

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        return html_of(self.view())

    def to_frame(self, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """The table as a data frame of pandas or polars."""
        if library not in ("pandas", "polars"):
            raise InvalidInput(f"library must be pandas or polars, got {library!r}.")
        return _imported(library).DataFrame({name: list(column) for name, column in self.view().columns.items()})

    def plot(self) -> Any:
        """The figure of Matplotlib, which notebooks show; `plot().savefig(path)` saves it."""
        return figure_of(self.view())


def html_of(view: View) -> str:
    """Headline, table and notes; all text is escaped."""
    head = "".join(f'<th style="text-align:left">{escape(name.replace("_", " "))}</th>' for name in view.columns)
    body = "".join(
        f"<tr>{''.join(_td(column[row]) for column in view.columns.values())}</tr>"
        for row in range(min(view.rows, MOST_ROWS))
    )
    more = f"<p>… and {view.rows - MOST_ROWS:,} more rows; to_frame() has all.</p>" if view.rows > MOST_ROWS else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}" if body else ""
    notes = "".join(f"<p>{escape(note)}</p>" for note in view.notes)
    return f'<div class="surepick"><p><strong>{escape(view.title)}.</strong></p>{table}{notes}</div>'


def figure_of(view: View) -> Any:
    """Bars, or points with their intervals, of the first rows."""
    if not view.values or not view.rows:
        raise InvalidInput("There is nothing to draw yet; ask and answer some questions first.")
    size = (7.0, 1.2 + 0.26 * min(view.rows, MOST_DRAWN))
    figure = _imported("matplotlib.figure").Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    labels = [_cell(label) for label in view.columns[view.labels][:MOST_DRAWN]]
    drawn = view.columns[view.values][:MOST_DRAWN]
    values = [float(value) if value is not None and math.isfinite(value) else math.nan for value in drawn]
    rows = range(len(values))
    if view.ends is None:
        axes.barh(rows, values, color=COLOUR)
    else:
        low, high = ([float(end) for end in view.columns[name][:MOST_DRAWN]] for name in view.ends)
        finite = [end for end in (*low, *high, *values) if math.isfinite(end)] or [-1.0, 1.0]
        margin = 0.1 * (max(finite) - min(finite)) or 1.0
        left, right = min(finite) - margin, max(finite) + margin
        axes.hlines(rows, [max(end, left) for end in low], [min(end, right) for end in high], color=COLOUR, lw=2.2)
        axes.plot(values, rows, "o", color=COLOUR, ms=4)
        axes.set_xlim(left, right)
    axes.set_yticks(rows, labels)
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set(xlabel=view.values.replace("_", " "), title=fill(view.title, 80))
    axes.title.set_fontsize(10)
    return figure


def _td(value: Any) -> str:
    return f'<td style="text-align:left">{escape(_cell(value))}</td>'


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _imported(name: str) -> Any:
    library = name.partition(".")[0]
    extra = "plots" if library == "matplotlib" else "notebook"
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtra(f"This needs {library}; install it, or surepick[{extra}].") from None
