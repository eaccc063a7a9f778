"""Processes beside a worker, planners and an observer: started with it, restarted when they die, gone when it is gone.

Planning may take seconds and keeps a processor busy; in a process of its own it never makes a judge wait.
"""

import logging
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

from surepick.service.observer import foresee, observe
from surepick.service.settings import Settings
from surepick.store import Database, Planner
from surepick.store.planner import release

WATCH_SECONDS = 0.2
BUSY_SECONDS = 0.02
IDLE_SECONDS = 0.25
RENEW_SECONDS = 1.0

OBSERVER_NICE = 5
"""The observer leaves the processors to others when they are busy."""

logger = logging.getLogger("surepick.workers")


class Helpers:
    """A context in which planners and the observer run."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._running: dict[str, tuple[str, subprocess.Popen[bytes]]] = {}
        self._stopping = threading.Event()
        self._watch = threading.Thread(target=self._keep_running, name="helpers", daemon=True)

    def __enter__(self) -> "Helpers":
        for number in range(self._settings.planners + bool(self._settings.planners)):
            self._start("planner" if number else "observer")
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._watch.join()
        for _, process in self._running.values():
            process.terminate()
        for _, process in self._running.values():
            process.wait()
            assert process.stdin is not None  # it is a pipe
            process.stdin.close()

    def _start(self, kind: str) -> None:
        name = secrets.token_urlsafe(9)
        # The pipe's other end closes with this process, however it ends: then the helper ends too.
        process = subprocess.Popen(
            [sys.executable, "-m", "surepick.service.workers", kind, name],
            stdin=subprocess.PIPE,
            env=os.environ | {"SUREPICK_DATABASE": self._settings.database, "OPENBLAS_NUM_THREADS": "1"},
        )
        self._running[name] = kind, process

    def _keep_running(self) -> None:
        database = Database(self._settings.database)
        while not self._stopping.wait(WATCH_SECONDS):
            for name, (kind, process) in list(self._running.items()):
                if process.poll() is not None:
                    logger.warning("The %s ended with %s; another takes its place.", kind, process.returncode)
                    del self._running[name]
                    release(database, name)
                    self._start(kind)
        database.close()


def help_for_ever(kind: str, name: str, settings: Settings) -> None:
    """What such a process does."""
    database = Database(settings.database)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if kind == "observer":
        os.nice(OBSERVER_NICE)
        forecasts = threading.Thread(target=_again_and_again, args=(lambda: foresee(database), stopping), daemon=True)
        forecasts.start()
        _again_and_again(lambda: observe(database), stopping)
        return
    planner = Planner(database, name=name)
    threading.Thread(target=_renew, args=(planner, stopping), daemon=True).start()
    _again_and_again(planner.round, stopping)
    release(database, name)


def _again_and_again(do: Callable[[], bool], stopping: threading.Event) -> None:
    """Soon again while there was something to do in the last seconds, otherwise now and then."""
    busy = time.monotonic()
    while not stopping.is_set():
        try:
            if do():
                busy = time.monotonic()
        except Exception:
            logger.exception("This is tried again.")
            stopping.wait(1.0)
        stopping.wait(BUSY_SECONDS if time.monotonic() - busy < 5.0 else IDLE_SECONDS)


def _renew(planner: Planner, stopping: threading.Event) -> None:
    while not stopping.wait(RENEW_SECONDS):
        try:
            planner.renew()
        except Exception:
            logger.exception("A lease could not be renewed; this is tried again.")


def _end_with_parent() -> None:
    os.read(0, 1)  # not through sys.stdin, whose lock would be in the way when the interpreter ends
    os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt at the terminal reaches the parent, who ends us
    help_for_ever(sys.argv[1], sys.argv[2], Settings())
