"""Where processes cannot be forked, as on Windows: the service runs in one process, and the commands work."""

import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from running_service import PATIENCE, RunningService
from service_client import ServiceClient

WITHOUT = Path(__file__).parents[1] / "support" / "like_windows"


@pytest.fixture
def without_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that are started from here have no fork, nice or termios."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(WITHOUT), os.environ.get("PYTHONPATH")))))


def answered_to_the_end(url: str) -> dict[str, Any]:
    """The result of a study that one judge answers."""
    with closing(ServiceClient(url)) as admin:
        study = admin.study(delta=0.3)
        headers = {"Authorization": f"Bearer {admin.link(study).partition('#')[2]}"}
        with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE) as judge:
            end = time.monotonic() + PATIENCE
            while admin.result(study)["status"] == "open" and time.monotonic() < end:
                for question in judge.post(f"/studies/{study}/questions?n=1").json()["questions"]:
                    said = {"question": question["id"], "answer": "b" if question["b"]["name"] == "sea" else "a"}
                    assert judge.post(f"/studies/{study}/answers", json=said).is_success
        return dict(admin.result(study))


def test_one_process_serves_plans_and_decides(without_fork: None, tmp_path: Path) -> None:
    running = RunningService(f"sqlite:///{tmp_path}/studies.db", log=tmp_path / "log")
    try:
        running.start()
        assert not running.children()
        decided = answered_to_the_end(running.url)
        assert (decided["best"], decided["status"]) == ("sea", "within epsilon")
        running.stop()
    finally:
        running.kill_all()


def test_more_workers_are_refused_with_a_remedy(without_fork: None, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "surepick.cli", "serve", f"sqlite:///{tmp_path}/studies.db", "--workers", "2"]
    result = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 2
    assert "--workers 2 needs a system that forks processes" in result.stderr


def test_a_person_answers_line_by_line(without_fork: None, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,text\nsmall,few words\nlarge,many words\n")
    words = [sys.executable, "-m", "surepick.cli", "ask", "items.csv", "--budget", "2"]
    result = subprocess.run(words, cwd=tmp_path, input="a\nb\n", capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 1, result.stderr
    assert "2 answers" in result.stdout


@pytest.mark.parametrize("code_page", ["cp1252", "cp437"])
def test_output_goes_to_a_file_in_an_old_code_page(without_fork: None, tmp_path: Path, code_page: str) -> None:
    (tmp_path / "items.csv").write_text("item,text\n猫,≥ 3 – few\nκ₀ → 1,many\n", encoding="utf-8")
    words = [sys.executable, "-m", "surepick.cli", "find", "items.csv", "--simulate", "--budget", "3"]
    environment = os.environ | {"PYTHONIOENCODING": code_page}
    result = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, timeout=PATIENCE)
    assert result.returncode in (0, 1), result.stderr
    assert "3 answers" in result.stdout.decode(code_page)
