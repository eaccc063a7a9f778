"""Runs the studies of the paper and writes reproduction.md: the paper's results, ours, figures and commands.

The page is a function of the tables in docs/reproduction/, one JSON file a study, which this program writes too. Every
sentence of ours that has a number is a `Claim`: a template filled from rows, which names them and says what must be
true of them. One that its rows contradict stops the program, and fails tests/experiments/test_reproduction.py.

    python docs/make_reproduction.py            run all studies (resuming), then write tables, figures and page
    python docs/make_reproduction.py --tables   write tables, figures and page from studies that were run, in out/
    python docs/make_reproduction.py --page     write the page from the tables
"""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from reproduction_claims import Part, Rows
from reproduction_parts import PARTS

HERE = Path(__file__).parent
TABLES = HERE / "reproduction"
PICTURES = HERE / "images" / "reproduction"
OUT = HERE.parent / "out"

CONTEXTUAL = "contextual"
"""A study beyond the paper: contextual.md quotes its tables, and a test compares them."""

HEAD = """# Reproduction

Every figure, table and testable claim of Jun, Jain, Mason and Nassif (ICML 2021), and what surepick finds.
`make reproduce` runs all studies, resuming after an interruption, and writes this page. Each part also has
its own command. Errors in the paper and their corrections are listed in the [errata](errata.md).

Sentences under "Here" are computed from the rows named in brackets, which are in the folder
`docs/reproduction`; a test compares them. "Questions" are medians of the runs unless it is said otherwise.
"""


def main() -> None:
    """Run what is asked for, then write the page."""
    if "--page" not in sys.argv:
        for part in PARTS:
            if "--tables" not in sys.argv:
                command = [Path(sys.executable).with_name("surepick"), "study", part.study, *part.options]
                subprocess.run([*command, "--out", OUT / part.study], check=True)
            collect(part.study, OUT / part.study)
        write_tables(CONTEXTUAL, OUT / CONTEXTUAL)
    (HERE / "reproduction.md").write_text(page(read_tables()), encoding="utf-8")


def collect(study: str, folder: Path) -> None:
    """Tables and figures of a study from the folder it wrote; what is not there stays as it was."""
    if not write_tables(study, folder):
        return
    PICTURES.mkdir(parents=True, exist_ok=True)
    for old in PICTURES.glob(f"{study}-*.png"):
        old.unlink()
    for picture in sorted(folder.glob("*.png")):
        shutil.copy(picture, PICTURES / f"{study}-{picture.name}")


def write_tables(study: str, folder: Path) -> bool:
    """Tables of a study from the folder it wrote; whether there were any."""
    from surepick_experiments.studies import find_study

    summary = folder / "summary.json"
    if not summary.exists():
        return False
    tables = find_study(study).tables(json.loads(summary.read_text(encoding="utf-8")))
    lines = [
        f"{json.dumps(title)}: [\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]" for title, rows in tables
    ]
    TABLES.mkdir(exist_ok=True)
    (TABLES / f"{study}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return True


def read_tables() -> dict[str, dict[str, Rows]]:
    """The tables of every study by title."""
    files = sorted(TABLES.glob("*.json"))
    read = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}
    return {study: {title: Rows(rows) for title, rows in tables.items()} for study, tables in read.items()}


def page(tables: Mapping[str, Mapping[str, Rows]]) -> str:
    """The text of reproduction.md; raises where rows contradict a claim."""
    lines = [HEAD]
    for part in PARTS:
        lines += [f"## {part.title}", "", "    " + shlex.join(["surepick", "study", part.study, *part.options]), ""]
        lines += [f"**The paper.** {part.paper}", ""]
        lines += [f"**Settings.** {part.settings}", ""] if part.settings else []
        lines += _found(part, tables[part.study]) if part.study in tables else ["**Result.** Not run yet.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _found(part: Part, tables: Mapping[str, Rows]) -> list[str]:
    everything = Rows([row for rows in tables.values() for row in rows.rows])
    lines = ["**Here.**", "", *(f"- {claim.sentence(everything)}" for claim in part.claims), ""]
    for title, rows in tables.items():
        lines += [f"**Result.** {title}", "", *_table(part.arranged(rows.rows)), ""]
    for picture in sorted(PICTURES.glob(f"{part.study}-*.png")):
        lines += [f"![{part.title}](images/reproduction/{picture.name})", ""]
    return lines


def _table(rows: Sequence[Mapping[str, object]]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["| " + " | ".join(name.replace("_", " ") for name in names) + " |", "|" + "---|" * len(names)]
    return lines + ["| " + " | ".join(_cell(row.get(name)) for name in names) + " |" for row in rows]


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
