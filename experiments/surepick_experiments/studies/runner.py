"""How a study runs: seeded tasks over all cores, every finished task kept, tidy rows at the end.

A study is a list of tasks; a task is plain data and yields rows, one per run. Rows go to `rows.jsonl` as tasks finish,
so an interrupted study resumes where it stopped, and the same seed gives the same rows in any order of execution.
"""

import csv
import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from surepick import __version__, validate
from surepick.errors import InvalidInput
from surepick_experiments.studies.engine import Engine, run_everywhere

PROFILES = ("small", "full")

Row = dict[str, Any]
Params = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """Options of studies; each study uses some of them, and refuses the others."""

    runs: int | None = None
    seed: int = 0
    dims: tuple[int, ...] | None = None
    policies: tuple[str, ...] | None = None
    items: int | None = None
    gap: float | None = None
    horizon: int | None = None
    data: str | None = None
    """A folder of real data."""
    profile: str | None = None
    """How much of the benchmark: one of `PROFILES`."""

    def __post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise InvalidInput(f"--runs must be at least 1, got {self.runs}.")
        if self.seed < 0:
            raise InvalidInput(f"--seed must not be negative, got {self.seed}.")
        if self.profile is not None:
            validate.one_of("--profile", self.profile, PROFILES)
        if self.data is not None and self.gap is not None:
            raise InvalidInput("--gap is of synthetic items; real ones (--data) have their own. Leave one of them out.")

    def dimension(self, usual: int) -> int:
        """The dimension asked for, for studies that have one at a time."""
        if self.dims is not None and len(self.dims) > 1:
            raise InvalidInput(f"This study takes one dimension at a time, got --dims {','.join(map(str, self.dims))}.")
        return self.dims[0] if self.dims else usual


@dataclass(frozen=True)
class Study:
    """A study of the paper or beyond it, as data and functions."""

    name: str
    about: str
    tasks: Callable[[Options], list[Params]]
    """What to run: plain data, independent of each other."""
    run: Callable[[Params, np.random.Generator], list[Row]]
    """One task; all its randomness comes from the generator."""
    summarise: Callable[[list[Row]], dict[str, Any]]
    draw: Callable[[list[Row], dict[str, Any], Path], list[Path]]
    """Figures into a folder."""
    tables: Callable[[dict[str, Any]], list[tuple[str, list[Row]]]] = field(default=lambda summary: [])
    """Titled tables for the terminal, out of the summary."""
    uses: tuple[str, ...] = ("runs", "seed")
    """The options that change its rows."""

    def check(self, options: Options) -> None:
        """Refuse options that would change nothing: whoever sets one believes that it does."""
        for option in fields(Options):
            if option.name not in self.uses and getattr(options, option.name) != option.default:
                taken = ", ".join(f"--{name}" for name in self.uses)
                raise InvalidInput(f"The study {self.name} does not use --{option.name}; it takes {taken}.")


def run_study(
    study: Study,
    options: Options,
    *,
    out: Path,
    jobs: int = 1,
    engine: Engine = "local",
    address: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[list[Row], dict[str, Any]]:
    """Run what is not done yet, and write rows (CSV, Parquet where possible) and summary.json to `out`.

    The rows are the same on every engine and with any number of jobs; `address` is that of a Ray or Dask cluster.
    Figures are drawn separately (`study.draw`).
    """
    study.check(options)
    tasks = study.tasks(options)
    keys = [_key(study, options, task) for task in tasks]
    out.mkdir(parents=True, exist_ok=True)
    journal = out / "rows.jsonl"
    finished = _finished(journal)
    waiting = [(key, task) for key, task in zip(keys, tasks, strict=True) if key not in finished]
    progress(len(tasks) - len(waiting), len(tasks))
    work = partial(_run_task, study.run, options.seed)
    _end_last_line(journal)
    with journal.open("a", encoding="utf-8") as file:
        for number, rows in run_everywhere(
            work, [task for _, task in waiting], jobs=jobs, engine=engine, address=address
        ):
            key = waiting[number][0]
            file.write(json.dumps({"task": key, "rows": rows}) + "\n")
            file.flush()
            finished[key] = rows
            progress(sum(key in finished for key in keys), len(tasks))
    rows = [row for key in keys for row in finished[key]]
    summary = study.summarise(rows)
    (out / "summary.json").write_text(json.dumps(summary, indent=2), encoding="utf-8")
    write_rows(rows, out)
    return rows, summary


def write_rows(rows: list[Row], out: Path) -> None:
    """Tidy rows as rows.csv, and rows.parquet where pyarrow is there."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with (out / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return
    columns = {name: [row.get(name) for row in rows] for name in names}
    pyarrow.parquet.write_table(pyarrow.table(columns), out / "rows.parquet")


def _run_task(run: Callable[[Params, np.random.Generator], list[Row]], seed: int, task: Params) -> list[Row]:
    # The stream depends on the seed and on what the task is, not on how many tasks there are or who runs it.
    stream = int.from_bytes(hashlib.sha256(json.dumps(task, sort_keys=True).encode()).digest()[:8], "big")
    return run(task, np.random.default_rng([seed, stream]))


def _key(study: Study, options: Options, task: Params) -> str:
    """Names a task and everything its rows depend on."""
    text = json.dumps([study.name, __version__, options.seed, task], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _finished(journal: Path) -> dict[str, list[Row]]:
    """Tasks already in the journal; a line cut off by an interruption counts as not done."""
    done: dict[str, list[Row]] = {}
    for line in _lines(journal):
        try:
            entry = json.loads(line)
            done[entry["task"]] = entry["rows"]
        except (json.JSONDecodeError, KeyError, TypeError):
            continue
    return done


def _end_last_line(journal: Path) -> None:
    """A line cut off by an interruption must not swallow the next one."""
    if journal.exists() and not journal.read_bytes().endswith(b"\n"):
        with journal.open("a", encoding="utf-8") as file:
            file.write("\n")


def _lines(journal: Path) -> Iterable[str]:
    return journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
