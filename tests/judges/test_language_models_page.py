"""The commands and the program of docs/language-models.md, as a reader would run them, against the fake server."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fake_model_server import FakeModelServer
from surepick.cli import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "language-models.md").read_text()
COMMANDS = [shlex.split(line)[1:] for line in re.findall(r"^    (surepick .*)$", PAGE.replace("\\\n", " "), re.M)]


@pytest.fixture
def server(monkeypatch, tmp_path):
    """Where the reader is: the table, the criteria as the page has them, and a server that the variables name."""
    (tmp_path / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "answers.csv", tmp_path / "examples")
    (criteria,) = re.findall(r"such as `rubric.txt`:\n\n    (.*)\n", PAGE)
    (tmp_path / "rubric.txt").write_text(criteria)
    monkeypatch.chdir(tmp_path)
    with FakeModelServer() as running:
        running.models, running.key = {"some-model"}, "secret"
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        yield running


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_of_the_page_ends_with_a_verdict(server, words):
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "careful is the best of 6 items" in " ".join(result.output.split())
    assert 10 <= len(server.seen) <= 60


def test_the_page_has_both_commands_and_every_option_of_the_model():
    assert len(COMMANDS) == 2
    help_page = CliRunner().invoke(app, ["find", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output
    panel = help_page.partition("With --llm")[2].partition("╰")[0]
    options = re.findall(r"│ (--[\w-]+)", panel)
    assert len(options) >= 9
    assert not [option for option in options if f"`{option}" not in PAGE and f" {option} " not in PAGE]


def test_the_program_of_the_page_runs(server, capsys):
    (program,) = re.findall(r"```py\n(.*?)```", PAGE, re.S)
    exec(compile(program, "docs/language-models.md", "exec"), {})
    assert capsys.readouterr().out.startswith("careful certain some-model: ")
    lines = [json.loads(line) for line in Path("replies.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(lines) == len(server.seen)
