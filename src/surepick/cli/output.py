"""What commands print: JSON for programs, tables for people."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

DROP_BAD_ROWS_HELP = "Leave out rows that cannot be used; otherwise the command refuses the file."


def print_json(fields: dict[str, Any]) -> None:
    """One JSON document on standard output; infinite and missing numbers become null."""
    print(json.dumps(plain(fields), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """Turn arrays, NumPy numbers and non-finite floats into what JSON can hold."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers, without importing NumPy
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_sentences(title: str, sentences: Sequence[str], *, most: int = 5, to_stderr: bool = False) -> None:
    """How many there are, and the first few; nothing where there are none."""
    from rich.console import Console
    from rich.text import Text

    if not sentences:
        return
    console = Console(stderr=to_stderr)
    console.print(Text(f"{len(sentences):,} {title}:", style="yellow"))
    for sentence in sentences[:most]:
        console.print(Text(f"  {sentence}"))
    if len(sentences) > most:
        console.print(f"  and {len(sentences) - most:,} more")


def print_table(title: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Rows under a title, one column for every field of any row."""
    from rich.console import Console
    from rich.table import Table

    grid = Table(title=title, title_justify="left")
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        is_text = any(isinstance(row.get(name), str) for row in rows)
        grid.add_column(name.replace("_", " "), justify="left" if is_text else "right")
    for row in rows:
        grid.add_row(*[_cell(row.get(name)) for name in names])
    Console().print(grid)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
