"""Tables from CSV, JSON-lines and Parquet files and data frames: columns of cells, with line numbers for messages."""

import csv
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from surepick._arrays import Floats
from surepick.errors import InvalidInput, MissingExtra


@dataclass(frozen=True)
class Table:
    """Columns of equal length by name; cells are text as read."""

    source: str
    columns: dict[str, list[str]]
    lines: Sequence[int]
    """Line of every row in the file, so that messages point where an editor does; rows count from 1 without lines."""
    unusable: list[str] = field(default_factory=list)
    """Sentences about lines that have too many or too few cells, where those were to be left out."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def line(self, row: int) -> int:
        """Line number of a row in the file."""
        return self.lines[row]

    def at(self, row: int, why: str) -> str:
        """A sentence that points at a row of the file."""
        return f"{self.source}, line {self.line(row)}: {why}."

    def rows(self, kept: Sequence[int]) -> "Table":
        """Some of the rows, with the lines they have in the file."""
        columns = {name: [cells[row] for row in kept] for name, cells in self.columns.items()}
        return Table(self.source, columns, [self.lines[row] for row in kept], self.unusable)

    def text(self, name: str) -> list[str]:
        """A column as text."""
        if name not in self.columns:
            raise InvalidInput(f"{self.source} has no column {name!r}; it has {', '.join(self.columns)}.")
        return self.columns[name]

    def numbers(self, names: list[str]) -> Floats:
        """Columns as a matrix of numbers; a cell that is not a finite number is refused with its line."""
        result = np.empty((len(self), len(names)))
        for place, name in enumerate(names):
            cells = self.text(name)
            try:
                result[:, place] = [float(cell) for cell in cells]
            except ValueError:
                row = next(row for row, cell in enumerate(cells) if not is_number(cell))
                raise self.refusal(row, f"column {name!r} must be a number, got {cells[row]!r}") from None
        bad = np.argwhere(~np.isfinite(result))
        if bad.size:
            row, place = bad[0]
            raise self.refusal(
                int(row), f"column {names[place]!r} must be finite, got {self.text(names[place])[row]!r}"
            )
        return result

    def refusal(self, row: int, why: str) -> InvalidInput:
        """An error that points at a row of the file."""
        return InvalidInput(self.at(row, why))


def read_table(path: Path, *, leave_out: bool = False) -> Table:
    """Read a CSV (UTF-8, header in the first line), JSON-lines (one object per line) or Parquet file.

    Parquet needs the extra `surepick[parquet]`. Missing cells become empty text. With `leave_out` lines of too many or
    too few cells are listed in `unusable`, otherwise the first of them is refused.
    """
    if path.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(path)
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return _read_json_lines(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader, rows, before = csv.reader(file), [], 0
            for row in reader:  # a quoted cell may span several lines; the first of them counts
                rows.append((before + 1, row))
                before = reader.line_num
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {str(path)!r}; check the name.") from None
    except IsADirectoryError:
        raise InvalidInput(f"{str(path)!r} is a folder; name a CSV or Parquet file in it.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{str(path)!r} is not a CSV file in UTF-8 ({error}).") from None
    if not rows or not any(cell.strip() for cell in rows[0][1]):
        raise InvalidInput(f"{str(path)!r} is empty; its first line must name the columns.")
    header = [name.strip() for name in rows[0][1]]
    repeated = sorted(name for name, times in Counter(header).items() if times > 1)
    if repeated:
        raise InvalidInput(f"{str(path)!r} names the column {repeated[0]!r} twice; column names must differ.")
    body, unusable = [], []
    for line, row in rows[1:]:
        if len(row) == len(header):
            body.append((line, row))
        elif row:  # a blank line is no row
            unusable.append(f"{path}, line {line}: {len(row)} cells where the first line names {len(header)} columns.")
    if unusable and not leave_out:
        raise InvalidInput(unusable[0])
    if not body:
        raise InvalidInput(f"{str(path)!r} has column names but no rows.")
    columns = {name: [row[place].strip() for _, row in body] for place, name in enumerate(header)}
    return Table(str(path), columns, [line for line, _ in body], unusable)


def table_of(frame: Any) -> Table:
    """A data frame as a table: anything with `columns` whose columns can be iterated, such as pandas and polars."""
    columns = {str(name): [_as_text(cell) for cell in frame[name]] for name in frame.columns}
    count = len(next(iter(columns.values()), []))
    if not count:
        raise InvalidInput("The data frame has no rows.")
    return Table("data frame", columns, range(1, count + 1))


def _as_text(cell: Any) -> str:
    """A cell as text; what libraries call missing (None, NaN, NaT, NA) is empty."""
    missing = cell is None or (isinstance(cell, float) and math.isnan(cell)) or str(cell) in ("NaT", "<NA>")
    return "" if missing else str(cell).strip()


def _read_json_lines(path: Path) -> Table:
    """Objects, one per line; a field that an object lacks is an empty cell."""
    rows, lines = [], []
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    rows.append(json.loads(line))
                    lines.append(number)
                    if not isinstance(rows[-1], dict):
                        raise InvalidInput(f"{path}, line {number}: {line.strip()[:60]!r} is not a JSON object.")
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {str(path)!r}; check the name.") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidInput(f"{path}, line {len(lines) + 1}: not JSON in UTF-8 ({error}).") from None
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if not columns:
        raise InvalidInput(f"{str(path)!r} has no rows.")
    return Table(str(path), {name: [_as_text(row.get(name)) for row in rows] for name in columns}, lines)


def _read_parquet(path: Path) -> Table:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Reading Parquet needs pyarrow; install surepick[parquet], or use CSV.") from None
    try:
        stored = pyarrow.parquet.read_table(path)
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {str(path)!r}; check the name.") from None
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise InvalidInput(f"{str(path)!r} is not a Parquet file ({error}).") from None
    columns = {
        name: [_as_text(cell) for cell in column.to_pylist()]
        for name, column in zip(stored.column_names, stored.columns, strict=True)
    }
    if not stored.num_rows:
        raise InvalidInput(f"{str(path)!r} has column names but no rows.")
    return Table(str(path), columns, range(1, stored.num_rows + 1))


def is_number(cell: str) -> bool:
    """Whether the text of a cell is a number, perhaps an infinite one or none (nan)."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
