"""Two servers on one PostgreSQL, started by the commands of deploy/compose.yaml, while judges use both: a server is
killed, and a backup is taken meanwhile and restored. Where Caddy is installed, also through it, with deploy/Caddyfile.
"""

import contextlib
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
import yaml

from databases import fresh_database, postgres_folder
from running_service import PATIENCE, free_port, kill_service
from surepick.client import AdminClient, JudgeClient, ServiceUnreachable
from surepick.store import Planner, open_database
from surepick.store.schema import messages
from surepick.store.verify import verify

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
CADDY = shutil.which("caddy")
TOKEN = "a token of the tests only"
JUDGES = 4
ANSWERS = 15
"""Before the backup, between it and the kill, and after that."""


class Server:
    """A server of the compose file, with an address and a database of the test."""

    def __init__(self, name: str, database: str) -> None:
        described = COMPOSE["services"][name]
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self.url = f"http://{self.address}"
        given = {"SUREPICK_DATABASE": database, "SUREPICK_TOKEN": TOKEN, "SUREPICK_PUBLIC_URL": "https://example.org"}
        environment = {key: str(value) for key, value in described["environment"].items()} | given
        command = [{"0.0.0.0": "127.0.0.1", "8000": str(port)}.get(word, word) for word in described["command"]]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "surepick.cli", "serve", *command],
            env=os.environ | environment | {"OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        """All processes at once."""
        kill_service(self.process)

    def stop(self) -> None:
        """In good order: nothing is written afterwards, whereas the database may still work for one that was killed."""
        self.process.terminate()
        self.process.wait(PATIENCE)


def wait_until_ready(url: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{url}/ready", timeout=30).status_code == 200:
                return
        time.sleep(0.1)
    raise TimeoutError(url)


@pytest.fixture
def servers(postgres: str) -> Iterator[tuple[str, list[Server]]]:
    with fresh_database(postgres) as database:
        made = [Server(name, database) for name in ("first", "second")]
        try:
            for server in made:
                wait_until_ready(server.url)
            yield database, made
        finally:
            for server in made:
                server.kill()


def judge(urls: list[str], token: str, stop: threading.Event, acknowledged: list[tuple[str, str]], seed: int) -> None:
    """Take and answer by any server; whichever does not answer is tried again later."""
    chance = random.Random(seed)
    clients = [JudgeClient(url, token, patience=0.5) for url in urls]
    while not stop.is_set():
        client = chance.choice(clients)
        try:
            for question in client.questions().questions:
                said = chance.choice(["a", "b"])
                while (question.id, said) not in acknowledged:
                    try:
                        client.answer(question.id, said)  # type: ignore[arg-type]
                        acknowledged.append((question.id, said))
                    except ServiceUnreachable:
                        client = chance.choice(clients)
        except ServiceUnreachable:
            time.sleep(0.1)
    for client in clients:
        client.close()


@pytest.mark.posix  # the command of the compose file has two workers, which are forked
def test_judges_use_two_servers_while_one_is_killed_and_a_backup_is_taken(
    servers: tuple[str, list[Server]], postgres: str
) -> None:
    database, (first, second) = servers
    with AdminClient(first.url, TOKEN) as admin:
        # However many answers there are before the end: no judge has had all questions, and nothing is decided.
        study = admin.create_study("shoes", [str(number) for number in range(12)], delta=1e-9, repeats="independent")
        tokens = [admin.invite(study).token for _ in range(JUDGES)]
    stop, acknowledged = threading.Event(), list[tuple[str, str]]()
    urls = [first.url, second.url]
    people = [
        threading.Thread(target=judge, args=(urls, token, stop, acknowledged, seed), daemon=True)
        for seed, token in enumerate(tokens)
    ]
    for person in people:
        person.start()
    wait_for(acknowledged, ANSWERS)
    programs = postgres_folder()
    assert programs is not None
    before, dump = backup_under_load(programs, database, acknowledged)
    wait_for(acknowledged, len(acknowledged) + ANSWERS)
    first.kill()
    wait_for(acknowledged, len(acknowledged) + ANSWERS)
    stop.set()
    for person in people:
        person.join(PATIENCE)
        assert not person.is_alive()
    wait_until_filed(second.url)
    second.stop()
    assert_well(database, acknowledged)
    with fresh_database(postgres) as restored:
        subprocess.run([programs / "pg_restore", "-d", restored], check=True, input=dump)
        copy = open_database(restored)
        copy.clock = lambda: time.time() + 3_600  # whoever held a study when the backup was taken is gone
        Planner(copy).round()
        copy.close()
        assert_well(restored, before)


def backup_under_load(
    programs: Path, database: str, acknowledged: list[tuple[str, str]]
) -> tuple[list[tuple[str, str]], bytes]:
    """A backup during which answers came, and those that had been acknowledged when it began."""
    for _ in range(20):
        before = list(acknowledged)
        dump = subprocess.run([programs / "pg_dump", "-Fc", database], check=True, capture_output=True).stdout
        if len(acknowledged) > len(before):
            return before, dump
    raise AssertionError("no answer came while the backup was taken")


def wait_for(acknowledged: list[tuple[str, str]], count: int) -> None:
    end = time.monotonic() + PATIENCE
    while len(acknowledged) < count:
        assert time.monotonic() < end, f"only {len(acknowledged)} answers"
        time.sleep(0.02)


def wait_until_filed(url: str) -> None:
    """An answer is acknowledged when it is stored; a planner files it a moment later."""
    end = time.monotonic() + PATIENCE
    while waiting := httpx.get(f"{url}/ready", timeout=PATIENCE).json()["waiting"]:
        assert time.monotonic() < end, f"{waiting} answers are not filed"
        time.sleep(0.1)


def assert_well(url: str, acknowledged: list[tuple[str, str]]) -> None:
    """Everything acknowledged is there once, and all tables agree with the replay of the log."""
    database = open_database(url)
    with database.reading() as connection:
        stored: list[Any] = connection.execute(sa.select(messages.c.question, messages.c.said, messages.c.seq)).all()
    assert len({row.question for row in stored}) == len(stored)
    assert all(row.seq is not None for row in stored)
    assert {(row.question, row.said) for row in stored} >= set(acknowledged)
    assert [report.wrong for report in verify(database) if report.wrong] == []
    database.close()


needs_caddy = pytest.mark.skipif(CADDY is None, reason="no Caddy is installed; the Debian package is caddy")


def caddy(command: str, host: str, folder: Path, servers: str | None = None) -> subprocess.Popen[bytes]:
    """Caddy with the Caddyfile of the recipe; only variables of its environment are the test's."""
    assert CADDY is not None
    given = {"SUREPICK_HOST": host, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    given |= {"CADDY_ADMIN": f"127.0.0.1:{free_port()}"} | ({} if servers is None else {"SUREPICK_SERVERS": servers})
    config = ["--config", str(DEPLOY / "Caddyfile"), "--adapter", "caddyfile"]
    with (folder / "caddy.log").open("ab") as log:
        return subprocess.Popen([CADDY, command, *config], env=os.environ | given, stdout=log, stderr=log)


@needs_caddy
def test_the_caddyfile_is_valid(tmp_path: Path) -> None:
    assert caddy("validate", "surepick.example.org", tmp_path).wait(PATIENCE) == 0, (tmp_path / "caddy.log").read_text()
    assert "Valid configuration" in (tmp_path / "caddy.log").read_text()
    (tmp_path / "caddy.log").unlink()
    assert caddy("adapt", "surepick.example.org", tmp_path).wait(PATIENCE) == 0
    dialled = re.findall(r'"dial":"(\w+):8000"', (tmp_path / "caddy.log").read_text())
    assert dialled == [name for name, service in COMPOSE["services"].items() if "build" in service]


@needs_caddy
@pytest.mark.posix  # the command of the compose file has two workers, which are forked
def test_a_study_goes_on_through_the_proxy_when_a_server_is_killed(
    servers: tuple[str, list[Server]], tmp_path: Path
) -> None:
    database, (first, second) = servers
    url = f"http://127.0.0.1:{free_port()}"
    proxy = caddy("run", url, tmp_path, f"{first.address} {second.address}")
    try:
        wait_until_ready(url)
        with AdminClient(url, TOKEN) as admin, contextlib.ExitStack() as clients:
            study = admin.create_study("shoes", list("abcd"), delta=0.01, repeats="independent")
            people = [clients.enter_context(admin.invite(study).connect()) for _ in range(2)]
            with httpx.stream(
                "GET", f"{url}/studies/{study}/events", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE
            ) as live:
                assert "event: study" in live.iter_lines()  # which never end: it is not held back until they do
            said, end = 0, time.monotonic() + PATIENCE
            while (result := admin.result(study))["status"] == "open":
                assert time.monotonic() < end, f"not decided by {said} answers"
                for person in people:
                    for question in person.questions().questions:
                        better = "a" if question.a.name < question.b.name else "b"  # type: ignore[union-attr]
                        person.answer(question.id, better)
                        said += 1
                if said >= ANSWERS and first.process.poll() is None:
                    first.kill()
            assert said > ANSWERS
            assert (result["best"], result["guarantee"]) == ("a", "proved")
            assert result["answers"] <= said
    finally:
        proxy.terminate()
        proxy.wait(PATIENCE)
    wait_until_filed(second.url)
    second.stop()
    assert_well(database, [])
