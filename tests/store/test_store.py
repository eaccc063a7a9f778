"""The store by itself: schema, group commit, leases of planners, and what `verify` finds."""

import json
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from typer.testing import CliRunner

from databases import fresh_database, postgres_folder
from in_process_service import InProcessService
from surepick import InvalidInput
from surepick.cli import app
from surepick.store import Conflict, Database, Planner, Writer, open_database, studies
from surepick.store import question_queue as judging
from surepick.store.database import clean_url
from surepick.store.planner import Overtaken
from surepick.store.question_queue import Said, Say, say
from surepick.store.schema import events, messages, metadata, questions
from surepick.store.schema import studies as table
from surepick.store.verify import verify


@pytest.fixture
def desk(database_url: str) -> Iterator[InProcessService]:
    made = InProcessService(database_url)
    yield made
    made.close()


def wrong(database: Database) -> list[str]:
    return [sentence for report in verify(database) for sentence in report.wrong]


def test_migrations_lead_to_the_schema(database_url: str) -> None:
    database = open_database(database_url)
    again = open_database(database_url)  # nothing is left to do
    with again.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    database.close()
    again.close()


def test_studies_survive_an_upgrade(database_url: str) -> None:
    old = InProcessService(database_url)
    one = old.begin()
    judge = old.judge(one)
    for question in judge.take(3)["questions"][:2]:
        judge.say(question["id"], "a")  # one question stays in hand
    old.planner.round()
    before = old.get(f"/studies/{one}")
    with old.service.database.writing() as connection:  # as the first release left it
        connection.execute(sa.text("DROP TABLE stream_events"))
        connection.execute(sa.text("DROP TABLE streams"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0001'"))
    old.close()
    desk = InProcessService(database_url)
    desk.now = old.now
    assert desk.get(f"/studies/{one}") == before
    judge.desk = desk
    judge.say(judge.take(1)["questions"][0]["id"], "b")
    desk.now += 10  # the old planner's lease has run out
    desk.planner.round()
    assert desk.get(f"/studies/{one}")["answers"] == 3
    assert desk.post("/streams", {"title": "new", "dimension": 2}, status=201)["id"]
    assert wrong(desk.service.database) == []
    desk.close()


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://x/y", "sqlite://", "sqlite:///:memory:"])
def test_databases_it_cannot_use(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"URL|SQLite|memory"):
        clean_url(url)


def test_a_database_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database " * 100)
    with pytest.raises(InvalidInput, match="cannot be used"):
        open_database(f"sqlite:///{tmp_path}/text.db")


def test_many_threads_answer_the_same_question_and_one_answer_stands(desk: InProcessService, database_url: str) -> None:
    one = desk.begin()
    judge = desk.judge(one)
    held = judge.take(3)["questions"]
    second = Database(database_url)
    other = Writer(second)  # as another process would
    ready = threading.Barrier(8)

    def answer(number: int) -> list[Any]:
        ready.wait()
        results = []
        for question in held:
            request = Say(one, judge.id, question["id"], "ab"[number % 2], desk.now)
            future = (other if number % 3 else desk.service.writer).submit(say, request)
            results.append(future.exception() or future.result())
        return results

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(answer, range(8)))
    other.close()
    second.close()
    for place in range(3):
        stood = {outcome[place] for outcome in outcomes if isinstance(outcome[place], Said)}
        assert len(stood) == 1  # all who were told "recorded" were told the same
        refused = [outcome[place] for outcome in outcomes if not isinstance(outcome[place], Said)]
        assert len(refused) == 4
    desk.planner.round()
    assert desk.get(f"/studies/{one}")["answers"] == 3
    assert wrong(desk.service.database) == []


def test_what_another_process_recorded_a_moment_before_counts(
    desk: InProcessService, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = desk.begin()
    judge = desk.judge(one)
    skipped, answered = (question["id"] for question in judge.take(2)["questions"])
    judge.say(skipped, "skip")
    judge.say(answered, "a")
    stale: list[dict[str, list[str]]] = [{}]  # read before those two were committed
    read = judging._record
    monkeypatch.setattr(judging, "_record", lambda *about: stale.pop() if stale else read(*about))
    requests = [Say(one, judge.id, *said, desk.now) for said in ((skipped, "b"), (answered, "b"), (answered, "a"))]
    with desk.service.database.writing() as connection:
        late, other, again = say(desk.service.database, connection, requests)
    assert late == Said(skipped, "b", 1)  # an answer after a skip counts
    assert isinstance(other, Conflict)
    assert again == Said(answered, "a", 0)
    desk.planner.round()
    assert desk.get(f"/studies/{one}")["answers"] == 2
    assert wrong(desk.service.database) == []


def test_a_failed_transaction_fails_only_the_request_that_broke_it(desk: InProcessService) -> None:
    def fussy(database: Database, connection: sa.Connection, requests: Any) -> list[int]:
        if any(request < 0 for request in requests):
            raise ZeroDivisionError
        return [2 * request for request in requests]

    writer = desk.service.writer
    block = threading.Event()
    first = writer.submit(lambda database, connection, requests: [block.wait() for _ in requests], None)
    futures = [writer.submit(fussy, number) for number in (1, -1, 3)]
    block.set()
    assert first.result()
    assert [future.exception() is None for future in futures] == [True, False, True]
    assert futures[2].result() == 6


def test_a_planner_that_was_overtaken_writes_nothing(desk: InProcessService) -> None:
    one = desk.begin()
    judge = desk.judge(one)
    hand = desk.planner._hands[one]
    later = Planner(desk.service.database, clock=lambda: desk.now)
    for question in judge.take(2)["questions"]:
        judge.say(question["id"], "a")
    assert not later.round()  # the first one's lease holds
    desk.now += 10
    assert later.round()
    hand.ours_until = desk.now + 100  # the first still believes in its lease
    desk.planner._hands[one] = hand
    before = desk.get(f"/studies/{one}")
    with pytest.raises(Overtaken):
        desk.planner._file(one, hand)
    assert desk.get(f"/studies/{one}") == before
    assert wrong(desk.service.database) == []


def test_a_planner_gives_back_what_has_no_more_work(desk: InProcessService) -> None:
    decided, waiting = desk.begin(epsilon=4.0), desk.begin(budget=2)
    desk.judge(decided).work()
    desk.judge(waiting).take(2)  # all that may be asked: nothing can be planned before the answers come
    assert set(desk.planner._hands) == {decided, waiting}
    desk.now += 61
    desk.planner.round()
    assert set(desk.planner._hands) == {waiting}  # given back, it would be claimed and replayed at once
    desk.post(f"/studies/{waiting}/state", {"state": "closed"})
    desk.planner.round()
    assert desk.planner._hands == {}


@pytest.mark.parametrize(
    ("damage", "part"),
    [
        (sa.update(messages).values(said="b"), "is not event"),
        (sa.delete(messages), "have no message"),
        (sa.update(table).values(answered=99), "counts 99 answers"),
        (sa.update(table).values(sealed=99), "sealed"),
        (sa.update(table).values(head=3), "should have the events"),
        (sa.update(questions).values(first="blue", second="blue"), "not the one in the log"),
        (sa.update(questions).values(closed=False), "unlike in the log"),
        (sa.update(table).values(verdict=json.dumps({"status": "certain"}), decided=1.0), "shows the verdict"),
        (sa.delete(events).where(events.c.seq == 1), "should have the events"),
    ],
)
def test_verify_finds_what_was_tampered_with(tmp_path: Path, damage: Any, part: str) -> None:
    desk = InProcessService(f"sqlite:///{tmp_path}/studies.db")
    judge = desk.judge(desk.begin())
    for question in judge.take(2)["questions"]:
        judge.say(question["id"], "a")
    desk.planner.round()
    assert wrong(desk.service.database) == []
    with desk.service.database.writing() as connection:
        connection.execute(damage)
    assert any(part in sentence for sentence in wrong(desk.service.database))
    desk.close()
    url = f"sqlite:///{tmp_path}/studies.db"
    result = CliRunner().invoke(app, ["verify", url, "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["valid"] is False


def test_verify_on_the_command_line(desk: InProcessService, database_url: str) -> None:
    desk.begin()
    result = CliRunner().invoke(app, ["verify", database_url])
    assert result.exit_code == 0, result.output
    assert "1 studies and streams, 0 of them wrong" in result.stdout


def test_backup_and_restore_as_the_manual_says(
    desk: InProcessService, database_url: str, request: Any, tmp_path: Path
) -> None:
    one = desk.begin()
    judge = desk.judge(one)
    question = judge.take(1)["questions"][0]
    judge.say(question["id"], "a")  # not filed yet
    if database_url.startswith("sqlite"):
        path = database_url.removeprefix("sqlite:///")
        with sqlite3.connect(path) as source, sqlite3.connect(tmp_path / "copy.db") as copy:
            source.backup(copy)
        source.close()
        copy.close()
        check_copy(f"sqlite:///{tmp_path}/copy.db", one)
        return
    programs = postgres_folder()
    assert programs is not None
    dump = subprocess.run([programs / "pg_dump", "-Fc", database_url], check=True, capture_output=True).stdout
    with fresh_database(request.getfixturevalue("postgres")) as other:
        subprocess.run([programs / "pg_restore", "-d", other], check=True, input=dump)
        check_copy(other, one)


def check_copy(url: str, one: str) -> None:
    copy = open_database(url)
    Planner(copy, clock=lambda: 2e6).round()
    assert wrong(copy) == []
    with copy.reading() as connection:
        assert studies.get(connection, one)["answered"] == 1
    copy.close()
