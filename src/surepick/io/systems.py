"""Outputs of systems (prompts, models, versions of an agent) for the same inputs, from tables, files and folders.

    outputs     long form: columns system, input, output, one row per output
                wide form: column input, and one column per system
                a folder with a folder of text files per system: SYSTEM/INPUT.txt
                a folder of Parquet files, which are read as one table
    inputs      optional: columns input and text, and perhaps weight and others; or a folder of text files

Only inputs for which every system has an output are asked about: then every comparison is a mean over the same inputs.
The others are reported and left out. Which inputs a system failed on is often no accident, so a mean over what each
pair happens to share would compare different tasks.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from surepick._arrays import Floats
from surepick.errors import BadRows, InvalidInput
from surepick.identify import Problem
from surepick.io.items import ItemTable, Kind
from surepick.io.tables import Table, is_number, read_table, table_of

Source = str | PathLike[str] | Any
"""A file, a folder or a data frame."""

LISTED = 20
"""Missing outputs of a system that are listed one by one."""


@dataclass(frozen=True, eq=False, repr=False)
class SystemTable(ItemTable):
    """Systems as items, with the outputs of each for all `inputs`.

    >>> table = read_systems({"input": ["2 + 2", "3 + 3"], "short": ["4", "6"], "long": ["It is 4.", "It is 6."]})
    >>> table.names, table.inputs, table.output("long", "2 + 2")
    (('short', 'long'), ('2 + 2', '3 + 3'), 'It is 4.')
    """

    inputs: tuple[str, ...] = ()
    """Inputs that every system has an output for."""
    about: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What is known of each input, by the columns of the table of inputs: `text` and others."""
    outputs: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By system and input."""
    weights: Floats | None = None
    """How often each input is drawn, relative to the others; None where all are equally likely."""

    def problem(
        self,
        kind: Kind = "pairs",
        *,
        seed: int = 0,
        position: bool = False,
        once: bool = False,
        show: int = 2,
        answer: Literal["pick", "rank"] = "rank",
        top: int | None = None,
    ) -> Problem:
        """Which of two systems, or of several, has the better output for an input drawn at random.

        `once`, `show`, `answer` and `top` are those of `Problem.from_systems`.
        """
        if kind != "pairs" or position:
            raise InvalidInput(
                "Systems are compared in pairs, in an order drawn at random; leave out --kind and --position."
            )
        return Problem.from_systems(
            self.features,
            self.inputs,
            names=self.names,
            weights=self.weights,
            once=once,
            show=show,
            answer=answer,
            top=top,
        )

    def output(self, system: str, given: str) -> str:
        """What a system wrote for an input."""
        return self.outputs[system, given]

    def text(self, given: str) -> str:
        """The input itself, as a judge sees it; its name where there is no text."""
        return self.about.get(given, {}).get("text") or given


def read_systems(
    outputs: Source,
    inputs: Source | None = None,
    *,
    systems: ItemTable | None = None,
    strata: str | None = None,
    drop_bad_rows: bool = False,
) -> SystemTable:
    """Outputs, what is known of the inputs, and features or labels of the systems if there are any.

    Inputs with a column `weight` are drawn in proportion to it. With `strata`, a column of the inputs, every value of
    the column is drawn equally often, however many inputs have it. Missing outputs are listed in `left_out`. A row that
    cannot be used is refused; with `drop_bad_rows` it is listed as well.
    """
    table = _outputs_table(outputs)
    texts, empty, bad = _read_outputs(table)
    if bad and not drop_bad_rows:
        raise BadRows(table.source, bad)
    left_out = [*empty, *bad]
    names = list(dict.fromkeys(system for system, _ in texts))
    given = list(dict.fromkeys(name for _, name in texts))
    listed = None if inputs is None else _read_inputs(inputs)
    about = {} if listed is None else listed
    if listed is not None:
        left_out += [
            f"{table.source}: the input {name!r} is not in the table of inputs, so it is left out."
            for name in given
            if name not in about
        ]
        given = list(about)
    if len(names) < 2:
        first = f" The first row that could not be used: {left_out[0]}" if left_out else ""
        raise InvalidInput(
            f"{table.source} has outputs of fewer than two systems: {', '.join(names) or 'none'}.{first}"
        )
    left_out += _missing(table, names, given, texts)
    complete = tuple(name for name in given if all(texts.get((system, name)) for system in names))
    if not complete:
        counts = {system: sum(bool(texts.get((system, name))) for name in given) for system in names}
        fewest = min(counts, key=lambda system: counts[system])
        raise InvalidInput(
            f"{table.source}: no input has an output of every system, so there is nothing to compare fairly; "
            f"{fewest!r} has the fewest outputs, {counts[fewest]} of {len(given)}. Leave it out, or complete it."
        )
    said = f"{len(names)} systems are compared on {len(complete):,} inputs"
    dropped = len(given) - len(complete)
    weights, how = _weights(complete, about, strata)
    steps = (f"{said}{f'; left out because an output is missing: {dropped:,}' * (dropped > 0)}.", *how)
    items = _systems(names, systems)
    return SystemTable(
        **vars(replace(items, steps=(*items.steps, *steps), left_out=(*items.left_out, *left_out))),
        inputs=complete,
        about=about,
        outputs=texts,
        weights=weights,
    )


def _outputs_table(source: Source) -> Table:
    """One table, whatever the source: a folder of folders becomes its long form."""
    if isinstance(source, Mapping):
        return _of_columns(source)
    if not isinstance(source, str | PathLike):
        if not hasattr(source, "columns"):
            raise InvalidInput(
                f"Outputs come as a file, a folder, a data frame or columns by name, got {type(source).__name__}."
            )
        return table_of(source)
    path = Path(source)
    if not path.is_dir():
        return read_table(path, leave_out=True)
    parquet = sorted(path.rglob("*.parquet"))
    if parquet:
        return _joined([read_table(part) for part in parquet], str(path))
    rows = [
        (folder.name, file.stem, _file_text(file))
        for folder in sorted(path.iterdir())
        if folder.is_dir() and not folder.name.startswith(".")
        for file in sorted(folder.iterdir())
        if file.is_file() and not file.name.startswith(".")
    ]
    if not rows:
        raise InvalidInput(
            f"The folder {str(path)!r} has no outputs; it needs a folder per system with a text file per input "
            "(SYSTEM/INPUT.txt), or Parquet files."
        )
    columns = {name: [row[place] for row in rows] for place, name in enumerate(("system", "input", "output"))}
    return Table(str(path), columns, range(1, len(rows) + 1))


def _of_columns(columns: Mapping[str, Any]) -> Table:
    """Columns by name, of one length."""
    cells = {str(name): ["" if cell is None else str(cell) for cell in column] for name, column in columns.items()}
    count = len(next(iter(cells.values()), []))
    if not count or any(len(column) != count for column in cells.values()):
        raise InvalidInput("Outputs as columns need at least one row, and columns of one length.")
    return Table("outputs", cells, range(1, count + 1))


def _joined(tables: list[Table], source: str) -> Table:
    """The rows of tables that have the same columns."""
    columns = list(tables[0].columns)
    for other in tables[1:]:
        if list(other.columns) != columns:
            raise InvalidInput(f"{other.source} has other columns than {tables[0].source}; files must be alike.")
    cells = {name: [cell for table in tables for cell in table.text(name)] for name in columns}
    return Table(source, cells, range(1, len(cells[columns[0]]) + 1))


def _file_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{str(path)!r} cannot be read as text in UTF-8 ({error}).") from None


def _read_outputs(table: Table) -> tuple[dict[tuple[str, str], str], list[str], list[str]]:
    """Outputs by system and input, in the order of the table; sentences about empty outputs, and about bad rows."""
    if "input" not in table:
        raise InvalidInput(
            f"{table.source} has no column 'input'; it needs system, input and output, or input and a column per "
            f"system. It has {', '.join(table.columns)}."
        )
    long = "system" in table and "output" in table
    if long:
        systems, written = table.text("system"), table.text("output")
        cells = [(row, systems[row], name, written[row]) for row, name in enumerate(table.text("input"))]
    else:
        columns = [name for name in table.columns if name != "input"]
        cells = [
            (row, system, name, table.text(system)[row])
            for row, name in enumerate(table.text("input"))
            for system in columns
        ]
    texts: dict[tuple[str, str], str] = {}
    empty: list[str] = []
    bad = list(table.unusable)
    for row, system, name, text in cells:
        if not system or not name:
            bad.append(table.at(row, f"the {'input' if system else 'system'} has no name"))
        elif texts.get((system, name)):
            bad.append(table.at(row, f"a second output of {system!r} for the input {name!r}"))
        else:
            texts[system, name] = text
            if not text:
                empty.append(table.at(row, f"{system!r} has an empty output for the input {name!r}"))
    return texts, empty, bad


def _missing(table: Table, systems: list[str], inputs: list[str], texts: Mapping[tuple[str, str], str]) -> list[str]:
    """Sentences about outputs that have no row at all; those of an empty cell are listed by their row."""
    said = []
    for system in systems:
        lacking = [name for name in inputs if (system, name) not in texts]
        said += [
            f"{table.source}: {system!r} has no output for the input {name!r}, so the input is left out."
            for name in lacking[:LISTED]
        ]
        if len(lacking) > LISTED:
            said.append(f"{table.source}: {system!r} has no output for {len(lacking) - LISTED:,} further inputs.")
    return said


def _read_inputs(source: Source) -> dict[str, dict[str, str]]:
    """What is known of each input, by its name."""
    if isinstance(source, str | PathLike) and Path(source).is_dir():
        files = sorted(file for file in Path(source).iterdir() if file.is_file() and not file.name.startswith("."))
        if not files:
            raise InvalidInput(f"The folder {str(source)!r} has no inputs; it needs a text file for each.")
        return {file.stem: {"text": _file_text(file)} for file in files}
    if isinstance(source, Mapping):
        table = _of_columns(source)
    else:
        table = read_table(Path(source)) if isinstance(source, str | PathLike) else table_of(source)
    if "input" not in table:
        raise InvalidInput(f"{table.source} has no column 'input'; it has {', '.join(table.columns)}.")
    names = table.text("input")
    repeated, times = Counter(names).most_common(1)[0]
    if times > 1 or "" in names:
        row = names.index("") if "" in names else [row for row, name in enumerate(names) if name == repeated][1]
        raise table.refusal(row, "every input needs a name of its own" if "" in names else f"{repeated!r} again")
    others = [name for name in table.columns if name != "input"]
    return {name: {other: table.text(other)[row] for other in others} for row, name in enumerate(names)}


def _weights(
    inputs: tuple[str, ...], about: Mapping[str, Mapping[str, str]], strata: str | None
) -> tuple[Floats | None, tuple[str, ...]]:
    """How likely each input is to be drawn, and how that was made; None where all are equally likely."""
    given = [about.get(name, {}).get("weight", "") for name in inputs]
    if not any(given) and strata is None:
        return None, ()
    for name, cell in zip(inputs, given, strict=True):
        if any(given) and not (is_number(cell) and 0 < float(cell) < np.inf):
            raise InvalidInput(f"The weight of the input {name!r} must be a positive number, got {cell!r}.")
    weights = np.array([float(cell) for cell in given]) if any(given) else np.ones(len(inputs))
    said = ("Inputs are drawn in proportion to their weight.",) if any(given) else ()
    if strata is None:
        return weights / weights.sum(), said
    values = [about.get(name, {}).get(strata) for name in inputs]
    if None in values:
        columns = sorted({column for known in about.values() for column in known})
        raise InvalidInput(f"The inputs have no column {strata!r}; they have {', '.join(columns) or 'none'}.")
    groups = sorted(set(map(str, values)))
    for group in groups:
        members = np.array([str(value) == group for value in values])
        weights[members] /= weights[members].sum() * len(groups)
    return weights, (*said, f"Every one of the {len(groups)} values of {strata!r} is drawn equally often.")


def _systems(names: list[str], known: ItemTable | None) -> ItemTable:
    """The systems as items: with the features and labels given, or with one coordinate each."""
    if known is None:
        eye = np.eye(len(names))
        return ItemTable(tuple(names), eye, tuple(names), columns=tuple(names), per_unit=eye)
    lacking = [name for name in names if name not in known.names]
    extra = [name for name in known.names if name not in names]
    if lacking or extra:
        raise InvalidInput(
            f"The table of items and the outputs must name the same systems; {(lacking or extra)[0]!r} is only in the "
            f"{'outputs' if lacking else 'items'}."
        )
    return known
