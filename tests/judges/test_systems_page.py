"""The commands of docs/systems.md, as a reader would run them, against the fake server."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fake_model_server import FakeModelServer
from surepick.cli import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "systems.md").read_text()
COMMANDS = [shlex.split(line)[1:] for line in re.findall(r"^    (surepick .*)$", PAGE.replace("\\\n", " "), re.M)]


@pytest.fixture
def server(monkeypatch, tmp_path):
    """Where the reader is: the two tables, and a server that the variables name."""
    (tmp_path / "examples").mkdir()
    for name in ("outputs.csv", "inputs.csv"):
        shutil.copy(ROOT / "examples" / name, tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    with FakeModelServer() as running:
        running.models = {"some-model"}
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_of_the_page_ends_with_a_verdict(server, words):
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "stepwise is the best of 4 items" in said
    assert "On average over these 10 inputs, drawn at random." in said
    assert 10 <= len(server.seen) <= 120


def test_the_page_shows_the_tables_as_they_are():
    assert len(COMMANDS) == 4
    for name in ("outputs.csv", "inputs.csv"):
        lines = (ROOT / "examples" / name).read_text().splitlines()
        shown = [line[4:] for line in PAGE.splitlines() if line[4:] in lines]
        assert shown[0] == lines[0]
        assert len(shown) >= 2
    assert "surepick ask --systems examples/outputs.csv" in PAGE
