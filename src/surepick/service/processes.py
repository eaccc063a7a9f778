"""The service as processes: a supervisor that forks all others and replaces whichever dies.

    supervisor      has everything in memory, so a replacement starts at once; nothing else runs in it
      workers       answer requests
      planners      file, evaluate, plan: that may take seconds, and nobody shall wait for it
      observer, forecaster   what the dashboard shows besides; nobody waits for it, so others go first

Each ends when the supervisor is gone, however that ended; so a service that was killed leaves nothing behind.
"""

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import uvicorn

from surepick.service.app import create_app
from surepick.service.dashboard_worker import foresee, observe
from surepick.service.settings import Settings
from surepick.store import Database, Planner
from surepick.store.planner import release

WATCH_SECONDS = 0.05
RESTART_SECONDS = 0.5
"""A process that dies sooner is replaced only after so long: something is wrong, and haste does not help."""

BUSY_SECONDS = 0.02
IDLE_SECONDS = 0.25
RENEW_SECONDS = 1.0
LINGER_SECONDS = 0.2
"""Answers of a study are filed about so often: filing them together keeps the database free for others."""

BACKGROUND = 5
"""Niceness of those whose work nobody waits for."""

END_SECONDS = 10.0
"""How long processes have to end in good order."""

logger = logging.getLogger("surepick.processes")


@dataclass(frozen=True)
class Job:
    """What a process does, and what is to be done when it has died."""

    name: str
    do: Callable[[], None]
    clean_up: Callable[[], None] = lambda: None


def jobs_of(settings: Settings, workers: int, listening: socket.socket) -> list[Job]:
    """All processes of a service."""
    jobs = [Job(f"worker {number}", lambda: _serve(settings, listening)) for number in range(workers)]
    for number in range(settings.planners):
        name = f"{socket.gethostname()}-{os.getpid()}-{number}"
        jobs.append(_planner(settings, name))
    if settings.planners:
        jobs += [
            Job("observer", lambda: _watch(settings, observe)),
            Job("forecaster", lambda: _watch(settings, foresee)),
        ]
    return jobs


def supervise(jobs: Sequence[Job]) -> None:
    """Run all until interrupted or told to end."""
    stopping = False

    def stop(number: int, frame: object) -> None:
        nonlocal stopping
        stopping = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    running = {_fork(job): (job, time.monotonic()) for job in jobs}
    while not stopping:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            time.sleep(WATCH_SECONDS)
            continue
        if pid not in running:  # somebody else's orphan, which is ours where we are a container's first process
            continue
        job, begun = running.pop(pid)
        logger.warning("The %s ended (%s) and is replaced.", job.name, os.waitstatus_to_exitcode(status))
        if time.monotonic() - begun < RESTART_SECONDS:
            time.sleep(RESTART_SECONDS)
        try:
            job.clean_up()
        except Exception:  # the database may be away; the lease then runs out by itself
            logger.exception("Cleaning up after the %s failed.", job.name)
        running[_fork(job)] = (job, time.monotonic())
    for pid in running:
        os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + END_SECONDS
    while running:
        pid, _ = os.waitpid(-1, os.WNOHANG)
        running.pop(pid, None)
        if not pid:
            time.sleep(WATCH_SECONDS)
        if time.monotonic() > end:
            for late in running:
                os.kill(late, signal.SIGKILL)
            end = float("inf")


def _fork(job: Job) -> int:
    """Start a process. Only this thread runs here and no connection is open, so nothing is shared by mistake."""
    supervisor = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt at the terminal reaches the supervisor, who ends us
        threading.Thread(target=_end_with, args=(supervisor,), daemon=True).start()
        job.do()
        code = 0
    except Exception:
        logger.exception("The %s failed.", job.name)
    finally:
        os._exit(code)


def _end_with(supervisor: int) -> None:
    while os.getppid() == supervisor:
        time.sleep(WATCH_SECONDS)
    os._exit(0)  # nothing unfinished was acknowledged


def _serve(settings: Settings, listening: socket.socket) -> None:
    config = uvicorn.Config(
        create_app(settings), log_level="warning", access_log=False, timeout_graceful_shutdown=int(END_SECONDS / 2)
    )
    uvicorn.Server(config).run(sockets=[listening])


def _planner(settings: Settings, name: str) -> Job:
    def plan() -> None:
        database, stopping = Database(settings.database), _told_to_end()
        planner = Planner(database, name=name, linger=LINGER_SECONDS)
        threading.Thread(target=_renew, args=(planner, stopping), daemon=True).start()
        _again_and_again(planner.round, stopping)
        release(database, name)

    def clean_up() -> None:
        database = Database(settings.database)
        release(database, name)
        database.close()

    return Job("planner", plan, clean_up)


def _watch(settings: Settings, look: Callable[[Database], bool]) -> None:
    os.nice(BACKGROUND)
    database = Database(settings.database)
    _again_and_again(lambda: look(database), _told_to_end())


def _told_to_end() -> threading.Event:
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())
    return stopping


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
