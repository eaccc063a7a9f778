"""`surepick study` and `surepick bench` are there where the experiments are installed, and only there."""

import subprocess
import sys
from importlib.metadata import entry_points

COMMANDS = """
import importlib.metadata, sys
if sys.argv[1] == "without":
    importlib.metadata.entry_points = lambda **_: ()
from surepick.cli import app
print(*(command.name or command.callback.__name__ for command in app.registered_commands))
"""


def commands(experiments: str) -> set[str]:
    shown = subprocess.run([sys.executable, "-c", COMMANDS, experiments], capture_output=True, text=True, check=True)
    return set(shown.stdout.split())


def test_the_experiments_add_study_and_bench() -> None:
    assert {command.name for command in entry_points(group="surepick.commands")} == {"study", "bench"}
    assert commands("with") - commands("without") == {"study", "bench"}
    assert {"find", "ask", "design", "limits"} <= commands("without")
