"""A leaderboard of a million votes: the command `surepick rank` on CSV, JSON lines and Parquet, against evalica."""

import csv
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surepick.errors import MissingExtra
from surepick.glm import probability_of_yes
from surepick_experiments.benches.runner import Progress, Row, compared, silent

Battle = tuple[str, str, str]

ITEMS, VOTES, QUICK_VOTES = 60, 1_000_000, 20_000
HEADER = ("model_a", "model_b", "winner", "judge", "turn", "language", "tstamp")


def bench_rank(*, quick: bool = False, seed: int = 0, progress: Progress = silent) -> list[Row]:
    """Seconds and memory of the whole command, start of Python included; the peer's are of its estimate alone.

    `memory_multiple` is the largest resident memory of the process as a multiple of the CSV file. A Parquet file of
    votes is much shorter, shorter than Python itself.
    """
    battles = draw_battles(QUICK_VOTES if quick else VOTES, seed)
    with tempfile.TemporaryDirectory() as folder:
        progress("files of votes")
        endings = ("csv",) if quick else ("csv", "jsonl", "parquet")
        paths = [write(battles, Path(folder) / f"battles.{ending}") for ending in endings]
        progress("evalica")
        peer_seconds, peer_order = _evalica(battles)
        rows = []
        for path in paths:
            progress(f"surepick rank {path.name}")
            seconds, core_seconds, most_bytes, order = _ours(path)
            rows.append(
                compared(
                    f"{len(battles):,} votes on {ITEMS} items, {path.suffix[1:]}",
                    seconds,
                    "evalica",
                    peer_seconds,
                    core_seconds=core_seconds,
                    megabytes=most_bytes / 1e6,
                    file_megabytes=path.stat().st_size / 1e6,
                    memory_multiple=most_bytes / paths[0].stat().st_size,
                    same_order=order == peer_order,
                )
            )
    return rows


def draw_battles(votes: int, seed: int) -> list[Battle]:
    """Votes by Bradley–Terry scores of standard deviation 0.8, a quarter of them ties."""
    rng = np.random.default_rng(seed)
    score = rng.normal(scale=0.8, size=ITEMS)
    first = rng.integers(ITEMS, size=votes)
    second = (first + 1 + rng.integers(ITEMS - 1, size=votes)) % ITEMS
    won = rng.random(votes) < probability_of_yes(score[first] - score[second])
    kind = rng.random(votes)
    words = np.where(kind < 0.15, "tie", np.where(kind < 0.25, "tie (bothbad)", np.where(won, "model_a", "model_b")))
    names = [f"model-{number:02d}-instruct-2024" for number in range(ITEMS)]
    return [(names[i], names[j], str(word)) for i, j, word in zip(first, second, words, strict=True)]


def write(battles: Sequence[Battle], path: Path) -> Path:
    """Battles as Arena publishes them, without the conversations."""
    rows = (
        (*battle, f"arena_user_{place % 9973}", 1, "English", 1_690_000_000 + place)
        for place, battle in enumerate(battles)
    )
    if path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        columns = dict(zip(HEADER, map(list, zip(*rows, strict=True)), strict=True))
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
        return path
    with path.open("w", newline="", encoding="utf-8") as file:
        if path.suffix == ".csv":
            csv.writer(file).writerows([HEADER])
            csv.writer(file).writerows(rows)
        else:
            file.writelines(json.dumps(dict(zip(HEADER, row, strict=True))) + "\n" for row in rows)
    return path


LAUNCHER = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True)
seconds, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
order = [row["item"] for row in json.loads(done.stdout)["items"]]
print(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, order]))
"""
"""Runs a command from a small process: the memory of a child counts from that of the process that starts it."""


def _ours(path: Path) -> tuple[float, float, int, list[str]]:
    """Seconds, seconds of one core, largest memory in bytes, and the items in their order."""
    command = [sys.executable, "-m", "surepick.cli", "rank", str(path), "--json"]
    done = subprocess.run([sys.executable, "-c", LAUNCHER, *command], stdout=subprocess.PIPE, check=True)
    seconds, core_seconds, most_bytes, order = json.loads(done.stdout)
    return seconds, core_seconds, most_bytes, order


def _evalica(battles: Sequence[Battle]) -> tuple[float, list[str]]:
    try:
        import evalica
    except ImportError:
        raise MissingExtra("The bench of leaderboards compares with evalica; run: pip install evalica.") from None
    words = {"model_a": evalica.Winner.X, "model_b": evalica.Winner.Y}
    firsts, seconds, said = zip(*battles, strict=True)
    winners = [words.get(word, evalica.Winner.Draw) for word in said]
    start = time.perf_counter()
    found = evalica.bradley_terry(firsts, seconds, winners, tolerance=1e-12, limit=100_000)
    return time.perf_counter() - start, list(found.scores.sort_values(ascending=False).index)
