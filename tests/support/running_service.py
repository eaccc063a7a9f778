"""A service as users run it, in processes of its own, for tests that kill it or put it under load."""

import contextlib
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

TOKEN = "a token of the tests only"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
PATIENCE = 300.0
"""Seconds to wait for what is not timed. Far longer than it takes: a busy machine is no failure."""

PORTS = range(20_000, 32_000)
"""Below those that systems give to outgoing connections. One of these could be taken before a server listens to it."""


def free_port() -> int:
    """A port that nothing uses. Tests that run at the same time get different ones: they choose at random."""
    chance = random.SystemRandom()
    while True:
        port = chance.choice(PORTS)
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


def kill_service(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to a supervisor and all of its processes, and wait until they are gone.

    The supervisor is stopped first. Otherwise it would replace a process that was killed before it.
    """
    if process.poll() is not None:
        return
    supervisor = psutil.Process(process.pid)
    supervisor.suspend()
    killed = [*supervisor.children(recursive=True), supervisor]
    for one in killed:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    process.wait()
    psutil.wait_procs(killed, timeout=PATIENCE)


class RunningService:
    """`surepick serve`, started, killed and started again on the same port."""

    def __init__(self, database: str, *, workers: int = 1, log: Path | None = None) -> None:
        self.database = database
        self.workers = workers
        self._log = log
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start and wait until it answers."""
        with Path(os.devnull if self._log is None else self._log).open("ab") as out:
            self._launch(out)
        self.wait()

    def _launch(self, out: Any) -> None:
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "surepick.cli", "serve", self.database, "--port", str(self.port)),
                *("--token", TOKEN, "--workers", str(self.workers)),
            ],
            stdout=out,
            stderr=out,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "SUREPICK_RATE": "100000"},
        )

    def wait(self) -> None:
        """Until it answers."""
        assert self._process is not None
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if httpx.get(f"{self.url}/health", timeout=5).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            if self._process.poll() is not None:
                raise RuntimeError(f"The service has ended with {self._process.returncode}.{self._last_words()}")
            if time.monotonic() > end:
                raise TimeoutError(f"The service does not answer.{self._last_words()}")
            time.sleep(0.05)

    def children(self) -> list[psutil.Process]:
        """Workers, planners and dashboard workers."""
        assert self._process is not None
        try:
            return psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def processes(self) -> dict[str, psutil.Process]:
        """The same by what they do, as long as none has been replaced."""
        planners = len(self.children()) - self.workers - 2
        names = [f"worker {n}" for n in range(self.workers)] + [f"planner {n}" for n in range(planners)]
        forked = sorted(self.children(), key=lambda process: process.pid)
        return dict(zip([*names, "insights", "forecasts"], forked, strict=True))

    def log_size(self) -> int:
        """Bytes written to the log so far."""
        return 0 if self._log is None else self._log.stat().st_size

    def kill_all(self) -> None:
        """SIGKILL to all processes at once, as a power cut or the kernel does."""
        if self._process is not None:
            kill_service(self._process)

    def stop(self) -> None:
        """An orderly end."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(PATIENCE)

    def _last_words(self) -> str:
        return "" if self._log is None else f" Its log ends: {self._log.read_text(errors='replace')[-2_000:]}"
