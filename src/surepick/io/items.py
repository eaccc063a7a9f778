"""A table of items as people have it, turned into features; every step is recorded, to tell results in its terms.

Column `item` names an item; `label`, `image`, `text` and `colour` are for display; all others are features: numbers as
they are, words as categories. Without features, colours have those of `surepick.io.colours`, and other items one
coordinate each.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from surepick._arrays import Floats
from surepick.errors import InvalidInput
from surepick.identify import Problem
from surepick.io.colours import FEATURES, colour_features, parse_colour
from surepick.io.tables import Table, is_number, read_table, table_of

Kind = Literal["pairs", "items", "both"]

DISPLAYED = ("label", "image", "text", "colour")
"""Columns for people, not features."""

MOST_CATEGORIES = 30
"""A column of more different words than this, or than two for three rows, is a text and no category."""


@dataclass(frozen=True, eq=False)
class ItemTable:
    """Items with features ready for a model, what to show of each, and how the features came about."""

    names: tuple[str, ...]
    features: Floats
    """One row an item."""
    feature_names: tuple[str, ...]
    """One name a column of `features`."""
    shown: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Display columns that the table has, one entry an item."""
    steps: tuple[str, ...] = ()
    """What was done to the columns, in sentences, in order."""
    left_out: tuple[str, ...] = ()
    """Sentences about rows that could not be used, with their line."""
    columns: tuple[str, ...] = ()
    """Columns before scaling, in the units of the table (a category is `column=value`) ..."""
    per_unit: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """... and by how much one unit of each moves each feature: θ in the table's terms is `per_unit @ θ`."""

    def problem(self, kind: Kind = "pairs", *, seed: int = 0, position: bool = False) -> Problem:
        """What is to be asked: which of two items, yes/no about one, or both.

        With `position` the model of pairs has a coordinate for what being shown first is worth.
        """
        if kind == "pairs":
            return Problem.from_pairs(self.features, names=self.names, seed=seed, position=position)
        if position:
            raise InvalidInput(
                f"A position is the place of one of two, so it needs questions of kind pairs, not {kind}."
            )
        if kind == "items":
            return Problem.from_items(self.features, names=self.names)
        return Problem.from_pairs_and_items(self.features, names=self.names, seed=seed)

    def label(self, name: str) -> str:
        """What to call an item before people."""
        return self._shown("label", name) or name

    def colour(self, name: str) -> str | None:
        """The item's colour as #rrggbb, if it has one that can be read."""
        rgb = _rgb(self._shown("colour", name))
        return None if rgb is None else "#" + "".join(f"{round(255 * part):02x}" for part in rgb)

    def display(self, name: str) -> dict[str, str]:
        """All there is to show of an item."""
        return {column: shown for column in self.shown if (shown := self._shown(column, name))}

    def _shown(self, column: str, name: str) -> str:
        return self.shown[column][self.names.index(name)] if column in self.shown else ""


def read_items(source: str | PathLike[str] | Any, *, pca: int | None = None, features: bool = True) -> ItemTable:
    """Items from a CSV or Parquet file or a data frame; with `pca`, reduced to so many principal components.

    With `features` false they are ignored: every item has a coordinate of its own (Bradley–Terry).
    """
    if isinstance(source, str | PathLike):
        table = read_table(Path(source), leave_out=True)
    elif hasattr(source, "columns"):
        table = table_of(source)
    else:
        raise InvalidInput(
            f"Items come as the name of a CSV or Parquet file or as a data frame, got {type(source).__name__}."
        )
    if "item" not in table:
        raise InvalidInput(f"{table.source} has no column 'item'; it has {', '.join(table.columns)}.")
    return _Reading(table, features).finished(pca)


class _Reading:
    """One pass over a table: rows are left out first, then columns become features."""

    def __init__(self, table: Table, features: bool) -> None:
        self.steps: list[str] = []
        self.left_out = list(table.unusable)
        named = [column for column in table.columns if features and column not in ("item", *DISPLAYED)]
        self.numeric, self.categories = self._kinds(table, named)
        self.from_colours = features and not named and "colour" in table
        self.table = self._usable(table)
        names = self.table.text("item")
        repeated = [name for name, times in Counter(names).items() if times > 1]
        if repeated:
            rows = [row for row, name in enumerate(names) if name == repeated[0]]
            raise self.table.refusal(
                rows[1], f"the item {repeated[0]!r} was already on line {self.table.line(rows[0])}; names must differ"
            )

    def _kinds(self, table: Table, named: list[str]) -> tuple[list[str], list[str]]:
        """Columns of numbers, and columns of words that are categories."""
        numeric, categories = [], []
        for name in named:
            filled = [cell for cell in table.text(name) if cell]
            if 2 * sum(is_number(cell) for cell in filled) > len(filled):
                numeric.append(name)
            elif 1 < len(set(filled)) <= MOST_CATEGORIES and 3 * len(set(filled)) <= 2 * len(filled):
                categories.append(name)
            else:
                self.steps.append(
                    f"Column {name!r} was left out: {len(set(filled))} different words in {len(table)} rows say "
                    "nothing that items share."
                )
        return numeric, categories

    def _usable(self, table: Table) -> Table:
        """The rows that have a name and every number; the others are listed."""
        kept = []
        for row, name in enumerate(table.text("item")):
            bad = next((column for column in self.numeric if not _finite(table.text(column)[row])), None)
            if not name:
                self.left_out.append(table.at(row, "the item has no name"))
            elif bad is not None:
                cell = table.text(bad)[row]
                self.left_out.append(table.at(row, f"item {name!r} has {cell!r} for the number {bad!r}"))
            elif self.from_colours and _rgb(table.text("colour")[row]) is None:
                cell = table.text("colour")[row]
                self.left_out.append(table.at(row, f"item {name!r} has the colour {cell!r}, not one like #1a2b3c"))
            else:
                kept.append(row)
        if not kept:
            raise InvalidInput(f"{table.source} has no row that can be used; the first: {self.left_out[0]}")
        return table.rows(kept)

    def finished(self, pca: int | None) -> ItemTable:
        """Features from what is left."""
        names = tuple(self.table.text("item"))
        if self.from_colours:
            features = colour_features(np.array([_rgb(cell) for cell in self.table.text("colour")]))
            self.steps.append(
                "Features of the colours: CIELAB lightness, redness and yellowness, standardised, with squares and "
                "products, scaled so that the longest difference is one."
            )
            columns, per_unit = FEATURES, np.eye(len(FEATURES))
        elif not (self.numeric or self.categories):
            self.steps.append("No features: one coordinate an item (Bradley–Terry).")
            columns, features, per_unit = names, np.eye(len(names)), np.eye(len(names))
        else:
            columns, features, per_unit = self._columns()
        feature_names = columns
        if pca is not None:
            features, per_unit, feature_names = self._reduced(features, per_unit, pca)
        shown = {column: tuple(self.table.text(column)) for column in DISPLAYED if column in self.table}
        return ItemTable(
            names, features, feature_names, shown, tuple(self.steps), tuple(self.left_out), columns, per_unit
        )

    def _columns(self) -> tuple[tuple[str, ...], Floats, Floats]:
        """Numbers and categories, each scaled to standard deviation one."""
        parts = {name: np.array([float(cell) for cell in self.table.text(name)]) for name in self.numeric}
        for name in self.categories:
            cells = self.table.text(name)
            levels = sorted(set(cells))
            spoken = ", ".join(repr(level) for level in levels[:6]) + (", …" if len(levels) > 6 else "")
            self.steps.append(f"Column {name!r} became {len(levels)} categories: {spoken}.")
            for level in levels[1:] if len(levels) == 2 else levels:
                parts[f"{name}={level}"] = np.array([float(cell == level) for cell in cells])
        for name in [name for name, column in parts.items() if np.ptp(column) == 0]:
            self.steps.append(f"Column {name!r} was left out: it is the same for all items.")
            del parts[name]
        if not parts:
            raise InvalidInput(f"No feature of {self.table.source} differs between items, so nothing tells them apart.")
        raw = np.column_stack(list(parts.values()))
        deviation = raw.std(axis=0)
        self.steps.append(f"{len(parts)} columns were centred and scaled to standard deviation one.")
        return tuple(parts), (raw - raw.mean(axis=0)) / deviation, np.diag(1 / deviation)

    def _reduced(self, features: Floats, per_unit: Floats, wanted: int) -> tuple[Floats, Floats, tuple[str, ...]]:
        """The leading principal components, in their own lengths: a later one is a smaller difference."""
        most = min(len(features) - 1, features.shape[1])
        if not 1 <= wanted <= most:
            raise InvalidInput(
                f"--pca must be from 1 to {most} here ({len(features)} items, {features.shape[1]} features), "
                f"got {wanted}."
            )
        centred = features - features.mean(axis=0)
        _, lengths, axes = np.linalg.svd(centred, full_matrices=False)
        kept = 100 * float(np.sum(lengths[:wanted] ** 2) / np.sum(lengths**2))
        self.steps.append(
            f"{features.shape[1]} features were reduced to {wanted} principal components, which keep {kept:.1f}% of "
            "the variance; what they leave out, the model cannot see."
        )
        names = tuple(f"component {number + 1}" for number in range(wanted))
        return centred @ axes[:wanted].T, per_unit @ axes[:wanted].T, names


def _finite(cell: str) -> bool:
    return is_number(cell) and math.isfinite(float(cell))


def _rgb(cell: str) -> tuple[float, float, float] | None:
    try:
        return parse_colour(cell)
    except InvalidInput:
        return None
