"""A service as users run it, in processes of its own, for tests that kill it or put it under load."""

import contextlib
import os
import signal
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
START_SECONDS = 300.0
"""Far longer than it takes: a busy machine is no failure."""


class RunningService:
    """`surepick serve`, started, killed and started again on the same port."""

    def __init__(self, database: str, *, workers: int = 1, log: Path | None = None) -> None:
        self.database = database
        self.workers = workers
        self._log = log
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
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
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                if httpx.get(f"{self.url}/health", timeout=5).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            if time.monotonic() > end:
                raise TimeoutError("The service does not answer.")
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
        if self._process is None or self._process.poll() is not None:
            return
        for process in [*self.children(), psutil.Process(self._process.pid)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """An orderly end."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(60)
