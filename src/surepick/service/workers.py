"""Planning processes beside a worker: started with it, restarted when they die, gone when it is gone.

Planning may take seconds and keeps a processor busy; in processes of their own planners never make a judge wait.
"""

import logging
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from types import TracebackType

from surepick.service.settings import Settings
from surepick.store import Database, Planner
from surepick.store.planner import release

WATCH_SECONDS = 0.2
BUSY_SECONDS = 0.02
IDLE_SECONDS = 0.25
RENEW_SECONDS = 1.0

logger = logging.getLogger("surepick.workers")


class PlannerProcesses:
    """A context in which the planners run."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._stopping = threading.Event()
        self._watch = threading.Thread(target=self._keep_running, name="planners", daemon=True)

    def __enter__(self) -> "PlannerProcesses":
        for _ in range(self._settings.planners):
            self._start()
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._watch.join()
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.wait()
            assert process.stdin is not None  # it is a pipe
            process.stdin.close()

    def _start(self) -> None:
        name = secrets.token_urlsafe(9)
        # The pipe's other end closes with this process, however it ends: then the planner ends too.
        self._running[name] = subprocess.Popen(
            [sys.executable, "-m", "surepick.service.workers", name],
            stdin=subprocess.PIPE,
            env=os.environ | {"SUREPICK_DATABASE": self._settings.database, "OPENBLAS_NUM_THREADS": "1"},
        )

    def _keep_running(self) -> None:
        database = Database(self._settings.database)
        while not self._stopping.wait(WATCH_SECONDS):
            for name, process in list(self._running.items()):
                if process.poll() is not None:
                    logger.warning("A planner ended with %s; another takes its place.", process.returncode)
                    del self._running[name]
                    release(database, name)
                    self._start()
        database.close()


def plan_for_ever(name: str, settings: Settings) -> None:
    """What a planning process does."""
    database = Database(settings.database)
    planner = Planner(database, name=name)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threading.Thread(target=_renew, args=(planner, stopping), daemon=True).start()
    quiet_since = time.monotonic()
    while not stopping.is_set():
        try:
            if planner.round():
                quiet_since = time.monotonic()
        except Exception:
            logger.exception("The database does not answer; trying again.")
            stopping.wait(1.0)
        stopping.wait(BUSY_SECONDS if time.monotonic() - quiet_since < 5.0 else IDLE_SECONDS)
    release(database, name)


def _renew(planner: Planner, stopping: threading.Event) -> None:
    while not stopping.wait(RENEW_SECONDS):
        try:
            planner.renew()
        except Exception:
            logger.exception("A lease could not be renewed; trying again.")


def _end_with_parent() -> None:
    os.read(0, 1)  # not through sys.stdin, whose lock would be in the way when the interpreter ends
    os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt at the terminal reaches the parent, who ends us
    plan_for_ever(sys.argv[1], Settings())
