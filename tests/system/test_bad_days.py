"""The database goes away, its disk is full, the clock is set back: requests are told so, and all ends by itself."""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from databases import PostgresServer, fresh_database, postgres_folder
from running_service import ADMIN, PATIENCE, RunningService
from surepick.store import Database
from surepick.store.verify import verify

Serve = Callable[..., RunningService]

ITEMS = [{"name": name, "features": at} for name, at in {"x": [1.0, 0.0], "y": [0.0, 1.0], "z": [0.6, 0.5]}.items()]


class Judge:
    """A judge of a new study, who repeats each request until it is acknowledged, as a judge's page does."""

    def __init__(self, running: RunningService) -> None:
        self.client = httpx.Client(base_url=running.url, timeout=PATIENCE)
        self.study = self.client.post(
            "/studies", headers=ADMIN, json={"title": "t", "items": ITEMS, "seed": 1, "repeats": "independent"}
        ).json()["id"]
        made = self.client.post(f"/studies/{self.study}/judges", headers=ADMIN, json={}).json()
        self.link = {"Authorization": f"Bearer {made['token']}"}
        self.refused: list[httpx.Response] = []
        self.acknowledged: list[str] = []

    def insist(self, path: str, body: Any = None) -> Any:
        end = time.monotonic() + PATIENCE
        while True:
            assert time.monotonic() < end, self.refused[-1].text
            reply = self.client.post(f"/studies/{self.study}/{path}", headers=self.link, json=body)
            if reply.status_code == 200:
                return reply.json()
            self.refused.append(reply)
            time.sleep(0.2)

    def answer_one(self) -> None:
        questions: list[Any] = []
        while not questions:
            questions = self.insist("questions")["questions"]
        self.insist("answers", {"question": questions[0]["id"], "answer": "a"})
        self.acknowledged.append(questions[0]["id"])

    @contextmanager
    def refused_until(self, mended: Callable[[], object]) -> Iterator[threading.Thread]:
        """Mends what was broken, in a thread, once this judge has been refused twice."""

        def mend() -> None:
            end, before = time.monotonic() + PATIENCE, len(self.refused)
            while len(self.refused) < before + 2 and time.monotonic() < end:
                time.sleep(0.05)
            mended()

        mending = threading.Thread(target=mend, daemon=True)
        mending.start()
        yield mending
        mending.join()

    def check(self, url: str) -> None:
        """All refusals were as documented, and all that was acknowledged is in the log once."""
        assert {reply.status_code for reply in self.refused} == {503}
        assert {reply.headers["retry-after"] for reply in self.refused} == {"5"}
        assert {tuple(reply.json()) for reply in self.refused} == {("detail",)}
        end = time.monotonic() + PATIENCE
        while self.client.get("/health").json()["waiting"]:
            assert time.monotonic() < end
            time.sleep(0.1)
        answers = self.client.get(f"/studies/{self.study}/export?what=answers&format=jsonl", headers=ADMIN).text
        assert len(answers.splitlines()) == len(self.acknowledged)
        database = Database(url)
        assert [sentence for report in verify(database) for sentence in report.wrong] == []
        database.close()
        self.client.close()


def lines_about_the_database(log: Path) -> list[str]:
    text = log.read_text(encoding="utf-8")
    assert "Traceback" not in text
    return [line for line in text.splitlines() if "The database" in line]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a service, and ends it with the test."""
    with ExitStack() as stack:

        def started(url: str, workers: int = 1) -> RunningService:
            running = RunningService(url, workers=workers, log=tmp_path / "log")
            stack.callback(running.kill_all)
            running.start()
            return running

        yield started


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    if postgres_folder() is None:
        pytest.skip("no PostgreSQL server is installed; the Debian package is postgresql")
    made = PostgresServer()
    made.start()
    yield made
    made.close()


@pytest.mark.posix  # two workers, which are forked
def test_postgresql_is_killed_and_comes_back(server: PostgresServer, serve: Serve, tmp_path: Path) -> None:
    with fresh_database(server.url) as url:
        running = serve(url, workers=2)
        judge = Judge(running)
        judge.answer_one()
        for _ in range(2):
            server.kill()
            with judge.refused_until(server.start):
                judge.answer_one()
            judge.answer_one()
            wait_for(tmp_path / "log", "can be used again")
        judge.check(url)
        assert len(judge.refused) > 2
        lines = lines_about_the_database(tmp_path / "log")
        # One line when it goes and one when it comes back. A process that hears of it late may begin another pair.
        ends = ["can be used again" in line for line in lines]
        assert ends == [False, True] * (len(lines) // 2)
        assert 4 <= len(lines) <= 8


def wait_for(log: Path, words: str) -> None:
    """Until the last line about the database says this."""
    end = time.monotonic() + PATIENCE
    while words not in lines_about_the_database(log)[-1]:
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 4 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "none", folder], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this needs the right to mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path) -> Path:
    """A file that leaves no room."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return filler
    return filler


def test_a_full_disk_is_said_to_be_so_and_all_goes_on_when_there_is_room(
    small_disk: Path, serve: Serve, tmp_path: Path
) -> None:
    url, log = f"sqlite:///{small_disk}/studies.db", tmp_path / "log"
    running = serve(url)
    judge = Judge(running)
    for _ in range(3):
        judge.answer_one()
    filler = fill(small_disk)
    with judge.refused_until(filler.unlink) as mending:
        while mending.is_alive():  # the write-ahead log has room for some more answers, perhaps
            judge.answer_one()
    judge.answer_one()
    judge.check(url)
    assert judge.refused
    lines = lines_about_the_database(log)
    assert "full" in lines[0], log.read_text()
    assert len(lines) <= 4


def test_a_full_disk_at_the_start_is_refused_with_a_sentence(small_disk: Path) -> None:
    fill(small_disk)
    running = RunningService(f"sqlite:///{small_disk}/studies.db", log=small_disk.parent / "log")
    with (small_disk.parent / "log").open("wb") as out:
        running._launch(out)
    assert running._process is not None
    assert running._process.wait(PATIENCE) != 0
    text = (small_disk.parent / "log").read_text()
    assert "cannot be used" in text
    assert "Traceback" not in text
