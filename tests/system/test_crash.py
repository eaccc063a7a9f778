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


RENEWED = """
import os, signal, sys
from surepick.service import serve
from surepick.service.settings import Settings
serve.BACKGROUND_SECONDS = 0.6
worked = 0
def work(database):
    global worked
    worked += 1
    with open(sys.argv[2], "a") as file:
        file.write(f"{os.getpid()} {worked}\\n")
    if len({line.split()[0] for line in open(sys.argv[2])}) == 3:
        os.kill(os.getppid(), signal.SIGTERM)
    return True
serve.supervise([serve._background("insights", Settings(database=sys.argv[1]), work, 5)])
"""


@pytest.mark.posix
def test_a_process_of_the_dashboard_is_replaced_now_and_then_and_nothing_is_said(tmp_path: Path) -> None:
    """What Python keeps of one replay after the other ends with the process."""
    begun, noted = [sys.executable, "-c", RENEWED, f"sqlite:///{tmp_path}/studies.db"], tmp_path / "noted"
    done = subprocess.run([*begun, noted], capture_output=True, text=True, timeout=PATIENCE, check=True)
    processes = [line.split() for line in noted.read_text().splitlines()]
    assert len({process for process, _ in processes}) == 3
    assert max(int(worked) for _, worked in processes) > 3  # each works for a while
    assert done.stderr == ""
