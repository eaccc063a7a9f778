"""Processes beside the workers (planners, observer, forecaster): they may take long, and nobody shall wait for them.

    supervisor (surepick serve)
      workers      answer requests; uvicorn's supervisor replaces one that dies
      foreman      has all that helpers need in memory, and forks them: one that dies is replaced at once
        planners, observer, forecaster

Each ends when the process above it is gone, however that ended; so a service that was killed leaves nothing behind.
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

BACKGROUND = 5
"""Niceness of those whose work nobody waits for."""

LINGER_SECONDS = 0.2
"""Answers of a study are filed about so often: filing them together keeps the database free for others."""

logger = logging.getLogger("surepick.helpers")


class Foreman:
    """A context in which the helpers run, in the supervisor's process."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._watch = threading.Thread(target=self._keep_running, name="foreman", daemon=True)
        self._process = self._start()

    def __enter__(self) -> "Foreman":
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._watch.join()
        self._process.terminate()
        self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "SUREPICK_SUPERVISOR": str(os.getpid())}
        return subprocess.Popen([sys.executable, "-m", "surepick.service.helpers"], env=environment)

    def _keep_running(self) -> None:
        while not self._stopping.wait(WATCH_SECONDS):
            if self._process.poll() is not None:
                logger.warning("The foreman ended with %s; another takes its place.", self._process.returncode)
                self._process = self._start()


def oversee(settings: Settings, supervisor: int) -> None:
    """What the foreman does: fork helpers, replace those that die, end with the supervisor."""
    stopping = False

    def stop(number: int, frame: object) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt at the terminal reaches the supervisor, who ends us
    kinds = ["planner"] * settings.planners + ["observer", "forecaster"] * bool(settings.planners)
    running = dict(_fork(kind, settings) for kind in kinds)
    while not stopping and os.getppid() == supervisor:
        time.sleep(WATCH_SECONDS)
        pid, _ = os.waitpid(-1, os.WNOHANG) if running else (0, 0)
        if pid:
            kind, name = running.pop(pid)
            database = Database(settings.database)
            release(database, name)
            database.close()
            running |= dict([_fork(kind, settings)])
    for pid in running:
        os.kill(pid, signal.SIGTERM)
    for pid in running:
        os.waitpid(pid, 0)


def _fork(kind: str, settings: Settings) -> tuple[int, tuple[str, str]]:
    """Start a helper; nothing but this thread runs here, so nothing is lost by forking."""
    name = secrets.token_urlsafe(9)
    foreman = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            help_along(kind, name, settings, foreman)
        finally:
            os._exit(0)
    return pid, (kind, name)


def help_along(kind: str, name: str, settings: Settings, foreman: int) -> None:
    """What a helper does until it is told to end."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())
    threading.Thread(target=_end_with, args=(foreman,), daemon=True).start()
    database = Database(settings.database)
    if kind != "planner":
        os.nice(BACKGROUND)
        watch = {"observer": observe, "forecaster": foresee}[kind]
        _again_and_again(lambda: watch(database), stopping)
        return
    planner = Planner(database, name=name, linger=LINGER_SECONDS)
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


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    oversee(Settings(), int(os.environ["SUREPICK_SUPERVISOR"]))
