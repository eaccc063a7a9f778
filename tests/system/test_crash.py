"""A short form of `make crash-test`: a few kills, so that every test run exercises the recovery from each."""

import subprocess
import sys
from pathlib import Path

import pytest

from running_service import PATIENCE
from service_crash import crash


@pytest.mark.posix
def test_no_acknowledged_answer_is_lost_when_processes_are_killed(database_url: str, tmp_path: Path) -> None:
    found = crash(database_url, kills=4, judges=10, workers=1, seed=3, folder=tmp_path)
    assert found["wrong"] == []
    assert found["acknowledged"] > 0


ORPHAN = """
import os, signal, time
from surepick.service.serve import ChildProcess, supervise
if os.fork() == 0:
    os._exit(0)
def ends_the_service():
    time.sleep(1.0)  # meanwhile the other process is found to have ended
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(600)
supervise([ChildProcess("sleeper", ends_the_service)])
print("ended well")
"""


@pytest.mark.posix
def test_the_supervisor_survives_the_end_of_a_process_that_is_not_its_own() -> None:
    """The first process of a container inherits all orphans."""
    done = subprocess.run([sys.executable, "-c", ORPHAN], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stdout == "ended well\n", done.stderr
