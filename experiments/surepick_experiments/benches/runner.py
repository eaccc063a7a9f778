"""What all benches share: rivals run in turn, the fastest run counts, and one row says how they compare."""

import time
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any, Protocol

Row = dict[str, Any]
"""The fields `case, ours_seconds, peer, peer_seconds, ratio` and whatever else the bench reports."""

Progress = Callable[[str], None]
"""Is told what comes next, one short phrase a step."""


PATIENCE = 20.0
"""Seconds after which a rival's runs so far have to do."""


def silent(step: str) -> None:
    """Report no progress."""


class Bench(Protocol):
    """A bench; `quick` shrinks it to a second or two, to show that it runs."""

    def __call__(self, *, quick: bool = False, seed: int = 0, progress: Progress = silent) -> list[Row]:
        """Measure every case and return one row for each pair of rivals."""
        ...


def best_seconds(rivals: Mapping[str, Callable[[], object]], *, repeats: int) -> dict[str, float]:
    """Seconds of the fastest run of each; they run in turn, so that other load on the machine affects all equally.

    A rival that has had its PATIENCE is not run again.
    """
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(repeats):
        for name, run in rivals.items():
            if sum(seconds[name]) < PATIENCE:
                start = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - start)
    return {name: min(times) for name, times in seconds.items()}


def peak_bytes(run: Callable[[], object]) -> int:
    """The most memory that Python and NumPy held at once during a run, beyond what was there before."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def compared(case: str, ours_seconds: float, peer: str, peer_seconds: float, **more: object) -> Row:
    """One row; a ratio below one says that we are faster."""
    return {
        "case": case,
        "ours_seconds": ours_seconds,
        "peer": peer,
        "peer_seconds": peer_seconds,
        "ratio": ours_seconds / peer_seconds,
        **more,
    }
