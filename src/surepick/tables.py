"""Tables from CSV and Parquet files: columns of text or numbers, with line numbers for messages."""

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from surepick.errors import InvalidInput, MissingExtra

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Columns of equal length by name; cells are text as read."""

    source: str
    columns: dict[str, list[str]]
    first_line: int = 2
    """Line of the first row in the file, so that messages point where an editor does."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def line(self, row: int) -> int:
        """Line number of a row in the file."""
        return self.first_line + row

    def text(self, name: str) -> list[str]:
        """A column as text."""
        if name not in self.columns:
            raise InvalidInput(f"{self.source} has no column {name!r}; it has {', '.join(self.columns)}.")
        return self.columns[name]

    def numbers(self, names: list[str]) -> Floats:
        """Columns as numbers, one row a row; a cell that is not a finite number is refused with its line."""
        result = np.empty((len(self), len(names)))
        for place, name in enumerate(names):
            cells = self.text(name)
            try:
                result[:, place] = [float(cell) for cell in cells]
            except ValueError:
                row = next(row for row, cell in enumerate(cells) if not _is_number(cell))
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
        return InvalidInput(f"{self.source}, line {self.line(row)}: {why}.")


def read_table(path: Path) -> Table:
    """Read a CSV (UTF-8, header in the first line) or Parquet file.

    Parquet needs the extra `surepick[parquet]`. Missing cells become empty text.
    """
    if path.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.reader(file))
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {str(path)!r}; check the name.") from None
    except IsADirectoryError:
        raise InvalidInput(f"{str(path)!r} is a folder; name a CSV or Parquet file in it.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{str(path)!r} is not a CSV file in UTF-8 ({error}).") from None
    if not rows or not any(cell.strip() for cell in rows[0]):
        raise InvalidInput(f"{str(path)!r} is empty; its first line must name the columns.")
    header = [name.strip() for name in rows[0]]
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise InvalidInput(f"{str(path)!r} names the column {repeated[0]!r} twice; column names must differ.")
    body = [row for row in rows[1:] if row]
    for number, row in enumerate(body):
        if len(row) != len(header):
            raise InvalidInput(
                f"{path}, line {number + 2}: {len(row)} cells where the first line names {len(header)} columns."
            )
    if not body:
        raise InvalidInput(f"{str(path)!r} has column names but no rows.")
    columns = {
        name: [cell.strip() for cell in cells] for name, cells in zip(header, zip(*body, strict=True), strict=True)
    }
    return Table(str(path), columns)


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
        name: ["" if cell is None else str(cell) for cell in column.to_pylist()]
        for name, column in zip(stored.column_names, stored.columns, strict=True)
    }
    return Table(str(path), columns, first_line=1)


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell)) or True
    except ValueError:
        return False
