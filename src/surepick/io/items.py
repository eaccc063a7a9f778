"""A user's table of items, turned into features; every step is recorded, so that results can be told in its terms.

Column `item` names an item; `label`, `image`, `text` and `colour` are for display; all others are features: numbers as
they are, words as categories. Without features, colours have those of `colour_features`, and other items one coordinate
each.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from surepick._arrays import Floats
from surepick.display import Displayed, View
from surepick.errors import BadRows, InvalidInput
from surepick.identify import Problem
from surepick.io.tables import Table, is_number, read_table, table_of

Kind = Literal["pairs", "items", "both"]

DISPLAYED = ("label", "image", "text", "colour")
"""Columns for people, not features."""

PAIR_COLUMNS = (("item_a", "item_b"), ("model_a", "model_b"))
"""The columns that name two items: ours, and Arena's."""

NOT_FEATURES = (
    *("item", *DISPLAYED, *(name for pair in PAIR_COLUMNS for name in pair)),
    *("winner", "answer", "pulls", "wins"),
    *("judge", "ts", "question", "prompt"),
)
"""Columns that have a meaning of their own in a table of answers or of points."""

COORDINATES = ("lightness", "redness", "yellowness")
"""L*, a* (green to red) and b* (blue to yellow)."""

COLOUR_FEATURES = (
    *COORDINATES,
    *(f"{name}²" for name in COORDINATES),
    "lightness·redness",
    "lightness·yellowness",
    "redness·yellowness",
)
"""Names of the columns of `colour_features`."""

MOST_MERGED = 5
"""Groups of items of equal features that are named."""

MOST_COLUMNS = 8
"""Columns that are named in a sentence."""

LARGEST = 1e100
"""Numbers beyond this are refused like infinite ones: their squares overflow, and all items would seem equal."""

MOST_CATEGORIES = 30
"""A column with more distinct words than this, or more than two for every three rows, is text and not a category."""


@dataclass(frozen=True)
class Preparation:
    """What was done to the items before the first question; terminal, JSON, report and service say it from here."""

    items: int
    """How many items are left."""
    steps: tuple[str, ...] = ()
    """What became of the columns, in sentences."""
    left_out: tuple[str, ...] = ()
    """A sentence for each row that could not be used and was left out on request."""
    variance_kept: float | None = None
    """The share of the variance that the principal components keep; None where there are none."""
    merged: tuple[tuple[str, ...], ...] = ()
    """Names of items whose features are equal: each group is one item to every question."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it for people: rows first, then columns, then items that are one."""
        dropped = (
            f"Rows left out: {len(self.left_out):,}; {self.items:,} items remain. The first: {self.left_out[0]}"
            if self.left_out
            else ""
        )
        groups = [", ".join(map(repr, names)) for names in self.merged[:MOST_MERGED]]
        more = f"; and {len(self.merged) - MOST_MERGED:,} more groups" if len(self.merged) > MOST_MERGED else ""
        merged = f"Equal features, so one item to every question: {'; '.join(groups)}{more}." if groups else ""
        return tuple(filter(None, (dropped, *self.steps, merged)))

    def to_json(self) -> dict[str, Any]:
        """As plain values: the field `prepare` of every command."""
        return {
            "items": self.items,
            "steps": list(self.steps),
            "left_out": list(self.left_out),
            "variance_kept": self.variance_kept,
            "merged": [list(names) for names in self.merged],
        }


@dataclass(frozen=True, eq=False, repr=False)
class ItemTable(Displayed):
    """Items with features ready for a model, what to show of each, and how the features were made."""

    names: tuple[str, ...]
    features: Floats
    """One row per item."""
    feature_names: tuple[str, ...]
    """One name per column of `features`."""
    shown: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Display columns that the table has, one entry per item."""
    steps: tuple[str, ...] = ()
    """What was done to the columns, in sentences, in order."""
    left_out: tuple[str, ...] = ()
    """Sentences about rows that could not be used, with their line."""
    columns: tuple[str, ...] = ()
    """Columns before scaling, in the units of the table (a category is `column=value`) ..."""
    per_unit: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """... and by how much one unit of each moves each feature: θ in the table's terms is `per_unit @ θ`."""
    unreduced: Floats | None = None
    """The features before they were reduced to principal components; None where they were not."""
    variance_kept: float | None = None
    """The share of the variance that the principal components keep, from 0 to 1."""

    def prepared(self, problem: Problem | None = None) -> "Preparation":
        """What was done to the items before the first question, of this problem if there is one."""
        merged = () if problem is None else tuple(names for names in problem.aliases if len(names) > 1)
        return Preparation(len(self.names), self.steps, self.left_out, self.variance_kept, merged)

    def problem(self, kind: Kind = "pairs", *, seed: int = 0, position: bool = False) -> Problem:
        """What is to be asked: which of two items, yes/no about one, or both.

        With `position` the model of pairs has a coordinate for what being shown first is worth.
        """
        if kind == "pairs":
            return Problem.from_pairs(self.features, names=self.names, seed=seed, position=position)
        if position:
            raise InvalidInput(f"position needs questions of kind pairs, got {kind}.")
        if kind == "items":
            return Problem.from_items(self.features, names=self.names)
        return Problem.from_pairs_and_items(self.features, names=self.names, seed=seed)

    @property
    def bare(self) -> bool:
        """Whether the table has no features, so that every item has a coordinate of its own."""
        return self.columns == self.names

    def view(self) -> View:
        """The items with what is shown of them, and their features."""
        features = {name: self.features[:, place].tolist() for place, name in enumerate(self.feature_names)}
        return View(
            f"{len(self.names):,} items",
            {"item": self.names, **self.shown, **({} if self.bare else features)},
            self.steps,
        )

    def label(self, name: str) -> str:
        """The item's name as people see it."""
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


def read_items(
    source: str | PathLike[str] | Any,
    *,
    pca: int | None = None,
    features: bool = True,
    scale: bool = True,
    drop_bad_rows: bool = False,
) -> ItemTable:
    """Items from a CSV or Parquet file or a data frame; with `pca`, reduced to that many principal components.

    With `features` false they are ignored: every item has a coordinate of its own (Bradley–Terry). With `scale` false
    columns stay in the units of the table, constant ones included. A row that cannot be used is refused; with
    `drop_bad_rows` it is listed in `left_out` instead.
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
    return _Reading(table, features, scale, drop_bad_rows).finished(pca)


def feature_columns(table: Table, *besides: str | None) -> list[str]:
    """Names of the feature columns: all but those with a meaning of their own, and those named besides."""
    return [name for name in table.columns if name not in (*NOT_FEATURES, *besides)]


def item_names(items: Table) -> list[str]:
    """The names of the items; a repeated one is refused."""
    names = items.text("item")
    repeated, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise InvalidInput(f"{items.source} lists the item {repeated!r} more than once; names must differ.")
    return names


def points_of(table: Table, vectors: Mapping[str, Floats], features: list[str]) -> tuple[list[str], Floats]:
    """Names and vectors of the rows of a table: pairs of items, items, or where it names none, rows of features."""
    columns = next((pair for pair in PAIR_COLUMNS if pair[0] in table and pair[1] in table), None)
    if vectors and columns is not None:
        pairs = list(zip(table.text(columns[0]), table.text(columns[1]), strict=True))
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


class _Reading:
    """One pass over a table: rows are checked first, then columns become features."""

    def __init__(self, table: Table, features: bool, scale: bool, drop_bad_rows: bool) -> None:
        self.steps: list[str] = []
        self.left_out = list(table.unusable)
        self.scale = scale
        self.drop_bad_rows = drop_bad_rows
        named = [column for column in table.columns if features and column not in ("", "item", *DISPLAYED)]
        if features and "" in table.columns:
            self.steps.append("The column without a name was left out: it may number the rows, as pandas does.")
        table = self._with_points(table, named)
        self.numeric, self.categories = self._kinds(table, named)
        self.from_colours = features and not named and "colour" in table
        self.table = self._usable(table)
        names = self.table.text("item")
        if len(names) < 2:
            raise InvalidInput(f"{table.source} has one item, {names[0]!r}; there is a choice from two on.")
        repeated = [name for name, times in Counter(names).items() if times > 1]
        if repeated:
            rows = [row for row, name in enumerate(names) if name == repeated[0]]
            raise self.table.refusal(
                rows[1], f"the item {repeated[0]!r} was already on line {self.table.line(rows[0])}; names must differ"
            )

    def _with_points(self, table: Table, named: list[str]) -> Table:
        """The table with points for decimal commas."""
        columns = {name: table.with_points(name) if name in named else cells for name, cells in table.columns.items()}
        for name, cells in columns.items():
            changed = next((row for row, cell in enumerate(cells) if cell != table.columns[name][row]), None)
            if changed is not None:
                before = table.columns[name][changed]
                self.steps.append(f"Column {name!r} has decimal commas: {before!r} was read as {cells[changed]}.")
        return replace(table, columns=columns)

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
                    f"Column {name!r} was left out: {_words(len(set(filled)))} in {len(table)} rows "
                    "are text, not categories. Judges do not see it; a column named text is shown to them."
                    if filled
                    else f"Column {name!r} was left out: it is empty."
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
        if self.left_out and not self.drop_bad_rows:
            raise BadRows(table.source, self.left_out)
        if not kept:
            raise InvalidInput(f"{table.source} has no row that can be used; the first: {self.left_out[0]}")
        return table.rows(kept)

    def finished(self, pca: int | None) -> ItemTable:
        """Features from the rows and columns that are left."""
        names = tuple(self.table.text("item"))
        if self.from_colours:
            features = colour_features(np.array([_rgb(cell) for cell in self.table.text("colour")]))
            self.steps.append(
                "Features of the colours: CIELAB lightness, redness and yellowness, standardised, with squares and "
                "products, scaled so that the longest difference is one."
            )
            columns, per_unit = COLOUR_FEATURES, np.eye(len(COLOUR_FEATURES))
        elif not (self.numeric or self.categories):
            self.steps.append("No features: every item has its own score (Bradley–Terry).")
            columns, features, per_unit = names, np.eye(len(names)), np.eye(len(names))
        else:
            columns, features, per_unit = self._columns()
        feature_names, unreduced, kept = columns, None, None
        if pca is not None:
            unreduced = features
            features, per_unit, feature_names, kept = self._reduced(features, per_unit, pca)
        shown = {column: tuple(self.table.text(column)) for column in DISPLAYED if column in self.table}
        return ItemTable(
            names,
            features,
            feature_names,
            shown,
            tuple(self.steps),
            tuple(self.left_out),
            columns,
            per_unit,
            unreduced,
            kept,
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
        constant = [name for name, column in parts.items() if np.ptp(column) == 0]
        if len(constant) == len(parts):
            raise InvalidInput(
                f"No feature of {self.table.source} differs between items, so they cannot be distinguished."
            )
        for name in constant if self.scale else []:  # in the units of the table a column of ones is an intercept
            self.steps.append(f"Column {name!r} was left out: it is the same for all items.")
            del parts[name]
        raw = np.column_stack(list(parts.values()))
        used = ", ".join(list(parts)[:MOST_COLUMNS]) + (", …" if len(parts) > MOST_COLUMNS else "")
        said = "1 column is a feature" if len(parts) == 1 else f"{len(parts)} columns are features"
        if not self.scale:
            self.steps.append(f"{said}, in the units of the table: {used}.")
            return tuple(parts), raw, np.eye(len(parts))
        deviation = raw.std(axis=0)
        self.steps.append(f"{said}, centred and scaled to standard deviation one: {used}.")
        return tuple(parts), (raw - raw.mean(axis=0)) / deviation, np.diag(1 / deviation)

    def _reduced(
        self, features: Floats, per_unit: Floats, wanted: int
    ) -> tuple[Floats, Floats, tuple[str, ...], float]:
        """The leading principal components, in their own lengths: a later one is a smaller difference."""
        most = min(len(features) - 1, features.shape[1])
        if not 1 <= wanted <= most:
            raise InvalidInput(
                f"--pca must be from 1 to {most} here ({len(features)} items, {features.shape[1]} features), "
                f"got {wanted}."
            )
        centred = features - features.mean(axis=0)
        _, lengths, axes = np.linalg.svd(centred, full_matrices=False)
        kept = float(np.sum(lengths[:wanted] ** 2) / np.sum(lengths**2))
        self.steps.append(
            f"{features.shape[1]} features were reduced to {wanted} principal components, which keep {100 * kept:.1f}% "
            "of the variance; what they leave out, the model cannot see."
        )
        names = tuple(f"component {number + 1}" for number in range(wanted))
        return centred @ axes[:wanted].T, per_unit @ axes[:wanted].T, names, kept


def _words(count: int) -> str:
    return "1 word" if count == 1 else f"{count} different words"


def _finite(cell: str) -> bool:
    return is_number(cell) and abs(float(cell)) <= LARGEST  # which excludes what is not a number, too


def _rgb(cell: str) -> tuple[float, float, float] | None:
    try:
        return parse_colour(cell)
    except InvalidInput:
        return None


def _look_up(vectors: Mapping[str, Floats], name: str, table: Table, row: int) -> Floats:
    if name not in vectors:
        raise table.refusal(row, f"item {name!r} is not in the items file")
    return vectors[name]


def _short(row: Floats) -> str:
    shown = ", ".join(f"{value:.3g}" for value in row[:4])
    return f"({shown}{', …' if len(row) > 4 else ''})"


def parse_colour(text: str) -> tuple[float, float, float]:
    """Red, green and blue between 0 and 1 of a colour written #rrggbb or #rgb."""
    digits = text.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    try:
        if len(digits) != 6 or not text.startswith("#"):
            raise ValueError
        red, green, blue = (int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4))
    except ValueError:
        raise InvalidInput(f"A colour is written #rrggbb, got {text!r}.") from None
    return red, green, blue


def colour_features(rgb: Floats) -> Floats:
    """Nine features of colours given by red, green and blue between 0 and 1.

    Standardised CIELAB coordinates, their squares and products, scaled so that the longest difference has length one.
    """
    lab = cielab(rgb)
    deviation = lab.std(axis=0)
    lab = (lab - lab.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    first, second, third = lab.T
    features = np.column_stack([lab, lab**2, first * second, first * third, second * third])
    apart = float(np.linalg.norm(features[:, None] - features[None], axis=2).max())
    return np.asarray(features / apart) if apart > 0 else features


def cielab(rgb: Floats) -> Floats:
    """CIE 1976 L*a*b* of sRGB colours, white point D65."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
    )
    xyz = linear @ to_xyz.T / np.array([0.95047, 1.0, 1.08883])
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.column_stack([116 * root[:, 1] - 16, 500 * (root[:, 0] - root[:, 1]), 200 * (root[:, 1] - root[:, 2])])
