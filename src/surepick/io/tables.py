"""Tables from CSV, JSON and Parquet files and data frames: columns of text, with line numbers for messages."""

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from surepick._arrays import Floats
from surepick.errors import BadRows, InvalidInput, MissingExtra
from surepick.io.exports import records_of, rows_of

PARQUET = (".parquet", ".pq")
JSON_LINES = (".jsonl", ".ndjson")
BATCH = 50_000
"""Rows of a Parquet file that are held as Python objects at once."""

SEPARATORS = (",", ";", "\t")
"""What may separate the cells of a CSV file; the one that the first line has most often does."""

_WITH_COMMAS = re.compile(r"[+-]?\d+(,\d+)+(\.\d+)?([eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")


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
            cells = self.with_points(name)
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

    def with_points(self, name: str) -> list[str]:
        """A column as text, with points for decimal commas; a comma that may also separate thousands is refused."""
        cells = self.text(name)
        with_commas = [cell for cell in cells if _WITH_COMMAS.fullmatch(cell)]
        numbers = [cell for cell in cells if is_number(cell)]
        if not with_commas or 2 * (len(with_commas) + len(numbers)) <= sum(map(bool, cells)):
            return cells  # words
        if (
            all(map(_DECIMAL_COMMA.fullmatch, with_commas))
            and not all(map(_THOUSANDS.fullmatch, with_commas))
            and not any("." in cell for cell in numbers)
        ):
            return [cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell for cell in cells]
        row = next(row for row, cell in enumerate(cells) if _WITH_COMMAS.fullmatch(cell))
        raise self.refusal(
            row,
            f"column {name!r} has the number {cells[row]!r}, whose comma may separate decimals or thousands; write "
            "numbers with a point and without commas, such as 1500 or 1.5",
        )

    def refusal(self, row: int, why: str) -> InvalidInput:
        """An error that points at a row of the file."""
        return InvalidInput(self.at(row, why))


def read_table(path: Path, *, leave_out: bool = False) -> Table:
    """Read a CSV (UTF-8, header in the first line), JSON, JSON lines or Parquet file.

    Cells of a CSV file are separated by commas, semicolons or tabs. Parquet needs the extra `surepick[parquet]`.
    Missing cells become empty text. With `leave_out` lines of too many or too few cells are listed in `unusable`,
    otherwise the file is refused.
    """
    if path.suffix.lower() in PARQUET:
        return _read_parquet(path)
    if _is_json(path):
        return _read_json(path, leave_out)
    rows = list(_csv_rows(path))
    header = _header(path, rows[0][1] if rows else [])
    body, unusable = [], []
    for line, row in rows[1:]:
        if len(row) == len(header):
            body.append((line, row))
        elif row:  # a blank line is no row
            unusable.append(_wrong_length(path, line, row, header))
    if unusable and not leave_out:
        raise BadRows(str(path), unusable)
    if not body:
        raise InvalidInput(f"{str(path)!r} has column names but no rows.")
    columns = {name: [row[place].strip() for _, row in body] for place, name in enumerate(header)}
    return Table(str(path), columns, [line for line, _ in body], unusable)


Cells = Iterator[tuple[int, tuple[str, ...]]]
"""Line and cells of each row."""


def stream_cells(path: Path, wanted: Sequence[str], unusable: list[str]) -> tuple[list[str], Cells]:
    """The wanted columns that a file has, and their cells row by row, for files that need not fit in memory.

    Lines that cannot be read are left out, with a sentence in `unusable`. Cells may have blanks around them.
    """
    if path.suffix.lower() in PARQUET:
        return _stream_parquet(path, wanted)
    if _is_json(path):
        rows = _json_rows(path, unusable)
        return list(wanted), ((line, tuple([_as_text(row.get(name)) for name in wanted])) for line, row in rows)
    lines = _csv_rows(path)
    header = _header(path, next(lines, (0, []))[1])
    return [name for name in wanted if name in header], _stream_csv(path, lines, header, wanted, unusable)


def _stream_csv(
    path: Path, lines: Iterator[tuple[int, list[str]]], header: list[str], wanted: Sequence[str], unusable: list[str]
) -> Cells:
    places, width = [header.index(name) for name in wanted if name in header], len(header)
    for line, row in lines:
        if len(row) == width:
            yield line, tuple([row[place] for place in places])
        elif row:
            unusable.append(_wrong_length(path, line, row, header))


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Every row with its line; of a quoted cell that spans several lines, the first counts."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            first = file.readline()  # not sought back to: a pipe cannot
            reader, before = csv.reader(chain([first] if first else [], file), delimiter=_separator(first)), 0
            for row in reader:
                yield before + 1, row
                before = reader.line_num
    except FileNotFoundError:
        raise _no_file(path) from None
    except IsADirectoryError:
        raise InvalidInput(f"{str(path)!r} is a folder; name a CSV or Parquet file in it.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{str(path)!r} is not a CSV file in UTF-8 ({error}).") from None


def _separator(first: str) -> str:
    """The separator that the first line has most often outside quotes; a comma where several are as frequent."""
    bare = re.sub(r'"[^"]*"', "", first)
    return max(SEPARATORS, key=bare.count)


def _header(path: Path, first: list[str]) -> list[str]:
    if not any(cell.strip() for cell in first):
        raise InvalidInput(f"{str(path)!r} is empty; its first line must name the columns.")
    header = [name.strip() for name in first]
    repeated = sorted(name for name, times in Counter(header).items() if times > 1)
    if repeated:
        raise InvalidInput(f"{str(path)!r} names the column {repeated[0]!r} twice; column names must differ.")
    return header


def _wrong_length(path: Path, line: int, row: list[str], header: list[str]) -> str:
    return f"{path}, line {line}: {len(row)} cells where the first line names {len(header)} columns."


def _no_file(path: Path) -> InvalidInput:
    return InvalidInput(f"There is no file {str(path)!r}; check the name.")


def _is_json(path: Path) -> bool:
    return path.suffix.lower() in (".json", *JSON_LINES)


def _json_rows(path: Path, unusable: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of JSON lines, or of one JSON array, whose records count from 1; an export's record may be several."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            if path.suffix.lower() in JSON_LINES:
                for line, text in enumerate(file, 1):
                    for row in _rows_at(path, line, text, unusable):
                        yield line, row
                return
            document = json.load(file)
    except FileNotFoundError:
        raise _no_file(path) from None
    except IsADirectoryError:
        raise InvalidInput(f"{str(path)!r} is a folder; name a file in it.") from None
    except (ValueError, RecursionError) as error:  # also what is not UTF-8
        raise InvalidInput(f"{str(path)!r} is not a JSON file in UTF-8 ({error}).") from None
    records = records_of(document)
    if records is None:
        raise InvalidInput(
            f"{str(path)!r} must hold one JSON array of records, or what promptfoo or Inspect write, got "
            f"{type(document).__name__}."
        )
    for number, record in enumerate(records, 1):
        for row in _rows_at(path, number, record, unusable):
            yield number, row


def _rows_at(path: Path, line: int, record: Any, unusable: list[str]) -> list[dict[str, Any]]:
    try:
        if isinstance(record, str):
            if record.isspace():  # a blank line is no row
                return []
            record = json.loads(record)
        if not isinstance(record, dict):
            raise InvalidInput(f"an object in braces is expected, got {type(record).__name__}")
        return rows_of(record)
    except (ValueError, TypeError, AttributeError, RecursionError, InvalidInput) as error:
        unusable.append(f"{path}, line {line}: not a JSON record ({error}).")
        return []


def _read_json(path: Path, leave_out: bool) -> Table:
    unusable: list[str] = []
    rows = list(_json_rows(path, unusable))
    if unusable and not leave_out:
        raise BadRows(str(path), unusable)
    names = dict.fromkeys(name for _, row in rows for name in row)
    if not names:
        raise InvalidInput(f"{str(path)!r} has no records{': ' + unusable[0] if unusable else '.'}")
    columns = {str(name): [_as_text(row.get(name)) for _, row in rows] for name in names}
    return Table(str(path), columns, [line for line, _ in rows], unusable)


def table_of(frame: Any) -> Table:
    """A data frame as a table: anything with `columns` whose columns can be iterated, such as pandas and polars."""
    columns = {str(name): [_as_text(cell) for cell in frame[name]] for name in frame.columns}
    count = len(next(iter(columns.values()), []))
    if not count:
        raise InvalidInput("The data frame has no rows.")
    return Table("data frame", columns, range(1, count + 1))


def _as_text(cell: Any) -> str:
    """A cell as text; what libraries call missing (None, NaN, NaT, NA) is empty."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, list) and all(isinstance(name, str | int) for name in cell):
        return json.dumps(cell)  # names of items
    if isinstance(cell, (list, dict)):  # conversations and the like, which no column of ours holds
        return ""
    missing = cell is None or (isinstance(cell, float) and math.isnan(cell)) or str(cell) in ("NaT", "<NA>")
    return "" if missing else str(cell).strip()


def _open_parquet(path: Path) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Reading Parquet needs pyarrow; install surepick[parquet], or use CSV.") from None
    try:
        return pyarrow.parquet.ParquetFile(path)
    except FileNotFoundError:
        raise _no_file(path) from None
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise InvalidInput(f"{str(path)!r} is not a Parquet file ({error}).") from None


def _read_parquet(path: Path) -> Table:
    stored = _open_parquet(path).read()
    columns = {
        name: [_as_text(cell) for cell in column.to_pylist()]
        for name, column in zip(stored.column_names, stored.columns, strict=True)
    }
    if not stored.num_rows:
        raise InvalidInput(f"{str(path)!r} has column names but no rows.")
    return Table(str(path), columns, range(1, stored.num_rows + 1))


def _stream_parquet(path: Path, wanted: Sequence[str]) -> tuple[list[str], Cells]:
    stored = _open_parquet(path)
    present = [name for name in wanted if name in stored.schema_arrow.names]

    def cells() -> Cells:
        before = 0
        # Only the wanted columns are read: the texts of conversations may be a hundred times as long.
        for batch in stored.iter_batches(batch_size=BATCH, columns=present):
            columns = [map(_as_text, batch.column(name).to_pylist()) for name in present]
            yield from enumerate(zip(*columns, strict=True), before + 1)
            before += batch.num_rows

    return present, cells()


def is_number(cell: str) -> bool:
    """Whether the text of a cell is a number, perhaps an infinite one or none (nan)."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
