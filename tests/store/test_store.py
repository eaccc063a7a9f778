"""The store by itself: schema, group commit, leases of planners, and what `verify` finds."""

import json
import os
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
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from typer.testing import CliRunner

from databases import fresh_database, postgres_folder
from in_process_service import InProcessService, study
from surepick import InvalidInput
from surepick.cli import app
from surepick.store import Conflict, Database, GroupCommit, Planner, open_database, question_queue, studies
from surepick.store import database as database_module
from surepick.store.database import clean_url
from surepick.store.planner import Overtaken
from surepick.store.question_queue import RecordedMessage, SubmitAnswer, submit_answers
from surepick.store.schema import events, messages, metadata, questions
from surepick.store.schema import studies as table
from surepick.store.supply import questions_wanted
from surepick.store.verify import verify


@pytest.fixture
def service(database_url: str) -> Iterator[InProcessService]:
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


NEXT_MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "next", "0001"


def upgrade():
    with op.batch_alter_table("studies") as studies:
        studies.add_column(sa.Column("extra", sa.Text, server_default="new"))
    op.create_table("extras", sa.Column("study", sa.Text, sa.ForeignKey("studies.id"), primary_key=True))
"""


def test_studies_survive_an_upgrade(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = InProcessService(database_url)
    one = old.begin()
    judge = old.judge(one)
    for question in judge.lease(3)["questions"][:2]:
        judge.answer(question["id"], "a")  # the third stays unanswered
    old.planner.round()
    before = old.get(f"/studies/{one}")
    old.close()
    (tmp_path / "versions").mkdir()
    (tmp_path / "versions" / "next.py").write_text(NEXT_MIGRATION)
    configure = database_module._alembic

    def with_next(connection: sa.Connection) -> Config:
        config = configure(connection)
        ours = Path(str(config.get_main_option("script_location"))) / "versions"
        config.set_main_option("path_separator", "os")
        config.set_main_option("version_locations", f"{ours}{os.pathsep}{tmp_path / 'versions'}")
        return config

    monkeypatch.setattr(database_module, "_alembic", with_next)
    service = InProcessService(database_url)
    with service.parts.database.reading() as connection:
        assert connection.scalars(sa.text("SELECT extra FROM studies")).all() == ["new"]
    service.now = old.now
    assert service.get(f"/studies/{one}") == before
    judge.service = service
    judge.answer(judge.lease(1)["questions"][0]["id"], "b")
    service.now += 10  # the old planner's lease has run out
    service.planner.round()
    assert service.get(f"/studies/{one}")["answers"] == 3
    assert service.post("/streams", {"title": "new", "dimension": 2}, status=201)["id"]
    assert wrong(service.parts.database) == []
    service.close()


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://x/y", "sqlite://", "sqlite:///:memory:"])
def test_databases_it_cannot_use(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"URL|SQLite|memory"):
        clean_url(url)


def test_a_database_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database " * 100)
    with pytest.raises(InvalidInput, match="cannot be used"):
        open_database(f"sqlite:///{tmp_path}/text.db")


def test_many_threads_answer_the_same_question_and_one_answer_stands(
    service: InProcessService, database_url: str
) -> None:
    one = service.begin()
    judge = service.judge(one)
    held = judge.lease(3)["questions"]
    second = Database(database_url)
    other = GroupCommit(second)  # as another process would
    ready = threading.Barrier(8)

    def answer(number: int) -> list[Any]:
        ready.wait()
        results = []
        for question in held:
            request = SubmitAnswer(one, judge.id, question["id"], "ab"[number % 2])
            future = (other if number % 3 else service.parts.group_commit).submit(submit_answers, request)
            results.append(future.exception() or future.result())
        return results

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(answer, range(8)))
    other.close()
    second.close()
    for place in range(3):
        stood = {outcome[place] for outcome in outcomes if isinstance(outcome[place], RecordedMessage)}
        assert len(stood) == 1  # all who were told "recorded" were told the same
        refused = [outcome[place] for outcome in outcomes if not isinstance(outcome[place], RecordedMessage)]
        assert len(refused) == 4
    service.planner.round()
    assert service.get(f"/studies/{one}")["answers"] == 3
    assert wrong(service.parts.database) == []


def test_what_another_process_recorded_a_moment_before_counts(service: InProcessService, database_url: str) -> None:
    one = service.begin()
    judge = service.judge(one)
    skipped, answered = (question["id"] for question in judge.lease(2)["questions"])
    first = [SubmitAnswer(one, judge.id, skipped, "skip"), SubmitAnswer(one, judge.id, answered, "a")]
    then = [SubmitAnswer(one, judge.id, *said) for said in ((skipped, "b"), (answered, "b"), (answered, "a"))]
    second = Database(database_url)
    with second.writing() as connection:  # as another process would
        question_queue.lock_judges(connection, first)
        submit_answers(second, connection, first)
        waiting = [service.parts.group_commit.submit(submit_answers, request) for request in then]
        with pytest.raises(TimeoutError):  # not before that process has committed
            waiting[0].result(timeout=0.3)
    late, other, again = (future.exception() or future.result() for future in waiting)
    second.close()
    assert late == RecordedMessage(skipped, "b", 1)  # an answer after a skip counts
    assert isinstance(other, Conflict)
    assert again == RecordedMessage(answered, "a", 0)
    service.planner.round()
    assert service.get(f"/studies/{one}")["answers"] == 2
    assert wrong(service.parts.database) == []


def test_a_failed_transaction_fails_only_the_request_that_broke_it(service: InProcessService) -> None:
    def fussy(database: Database, connection: sa.Connection, requests: Any) -> list[int]:
        if any(request < 0 for request in requests):
            raise ZeroDivisionError
        return [2 * request for request in requests]

    group_commit = service.parts.group_commit
    block = threading.Event()
    first = group_commit.submit(lambda database, connection, requests: [block.wait() for _ in requests], None)
    futures = [group_commit.submit(fussy, number) for number in (1, -1, 3)]
    block.set()
    assert first.result()
    assert [future.exception() is None for future in futures] == [True, False, True]
    assert futures[2].result() == 6


def test_a_judge_who_waits_comes_before_studies_that_only_run_low(service: InProcessService) -> None:
    """After a restart hundreds of studies may have to be planned; nobody must wait for all of them."""
    made = [service.post("/studies", study(), status=201)["id"] for _ in range(4)]
    waited_for = sorted(made)[-1]
    judge = service.judge(waited_for)
    assert not judge.lease()["questions"]

    def ticking() -> float:
        service.now += 0.001
        return service.now

    service.parts.database.clock = ticking
    planner = Planner(service.parts.database, share=0.0)

    def planned() -> set[str]:
        with service.parts.database.reading() as connection:
            return set(connection.scalars(sa.select(questions.c.study).distinct()))

    planner.round()
    assert waited_for in planned()
    assert len(planned()) == 2  # and one of the others, so that they get their turn
    planner.round()
    planner.round()
    assert planned() == set(made)


def test_reading_takes_no_transaction_on_postgresql_and_a_write_one_time(service: InProcessService) -> None:
    database = service.parts.database
    if database.is_sqlite:
        pytest.skip("SQLite has its snapshot by a transaction, and its time from the machine")
    database.clock = None
    with database.reading() as connection:
        assert connection.connection.dbapi_connection.autocommit  # type: ignore[union-attr]
        assert database.now(connection) < database.now(connection)
    with database.writing() as connection:
        first = database.now(connection)
        assert database.now(connection) == first
    with database.writing() as connection:
        assert database.now(connection) > first


def test_a_planner_that_was_overtaken_writes_nothing(service: InProcessService) -> None:
    one = service.begin()
    judge = service.judge(one)
    lease = service.planner._held[one]
    later = Planner(service.parts.database)
    for question in judge.lease(2)["questions"]:
        judge.answer(question["id"], "a")
    assert not later.round()  # the first one's lease holds
    service.now += 10
    assert later.round()
    lease.trusted_until = service.now + 100  # the first still believes in its lease
    service.planner._held[one] = lease
    before = service.get(f"/studies/{one}")
    with pytest.raises(Overtaken):
        service.planner._ingest(one, lease)
    assert service.get(f"/studies/{one}") == before
    assert wrong(service.parts.database) == []


def test_a_planner_gives_back_what_has_no_more_work(service: InProcessService) -> None:
    decided, waiting = service.begin(epsilon=4.0), service.begin(budget=2)
    service.judge(decided).work()
    service.judge(waiting).lease(2)  # all that may be asked: nothing can be planned before the answers come
    assert set(service.planner._held) == {decided, waiting}
    service.now += 61
    service.planner.round()
    assert set(service.planner._held) == {waiting}  # given back, it would be claimed and replayed at once
    service.post(f"/studies/{waiting}/state", {"state": "closed"})
    service.planner.round()
    assert service.planner._held == {}


@pytest.mark.parametrize(
    ("damage", "part"),
    [
        (sa.update(messages).values(said="b"), "is not event"),
        (sa.delete(messages), "have no message"),
        (sa.update(table).values(answers=99), "counts 99 answers"),
        (sa.update(table).values(evaluated_stages=99), "99 stages are evaluated"),
        (sa.update(table).values(head=3), "should have the events"),
        (sa.update(questions).values(first="blue", second="blue"), "not the one in the log"),
        (sa.update(questions).values(answered=False), "unlike in the log"),
        (sa.update(table).values(verdict=json.dumps({"status": "certain"}), decided=1.0), "shows the verdict"),
        (sa.delete(events).where(events.c.seq == 1), "should have the events"),
        (
            sa.update(events).values(body=sa.func.replace(events.c.body, '"rehearsed": 0', '"rehearsed": 1')),
            "The log of phase 0 was changed. The chain is broken: stage 0",
        ),
    ],
)
def test_verify_finds_what_was_tampered_with(tmp_path: Path, damage: Any, part: str) -> None:
    service = InProcessService(f"sqlite:///{tmp_path}/studies.db")
    judge = service.judge(service.begin())
    for question in judge.lease(2)["questions"]:
        judge.answer(question["id"], "a")
    service.planner.round()
    assert wrong(service.parts.database) == []
    with service.parts.database.writing() as connection:
        connection.execute(damage)
    assert any(part in sentence for sentence in wrong(service.parts.database))
    service.close()
    url = f"sqlite:///{tmp_path}/studies.db"
    result = CliRunner().invoke(app, ["verify", url, "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["valid"] is False


def test_verify_on_the_command_line(service: InProcessService, database_url: str) -> None:
    service.begin()
    result = CliRunner().invoke(app, ["verify", database_url])
    assert result.exit_code == 0, result.output
    assert "1 studies and streams, 0 of them wrong" in result.stdout


def test_backup_and_restore_as_the_manual_says(
    service: InProcessService, database_url: str, request: Any, tmp_path: Path
) -> None:
    one = service.begin()
    judge = service.judge(one)
    question = judge.lease(1)["questions"][0]
    judge.answer(question["id"], "a")  # not in the log yet
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
    copy.clock = lambda: 2e6
    Planner(copy).round()
    assert wrong(copy) == []
    with copy.reading() as connection:
        assert studies.get(connection, one)["answers"] == 1
    copy.close()


def test_as_many_questions_are_planned_as_all_waiting_judges_want(service: InProcessService) -> None:
    one = service.begin()
    judges = [service.judge(one, f"judge {number}") for number in range(20)]
    service.judge(one, "first").lease(3)  # all that were ready
    service.now += 3  # so that what was handed out lately does not count
    for _ in range(2):  # asking again adds nothing to the wish
        assert [judge.lease(1)["questions"] for judge in judges] == [[]] * 20
    service.planner.round()
    with service.parts.database.reading() as connection:
        ready = sa.select(sa.func.count()).where(questions.c.study == one, questions.c.judge.is_(None))
        assert connection.execute(ready).scalar_one() == 20
    assert [len(judge.lease(1)["questions"]) for judge in judges] == [1] * 20
    gone = service.judge(one, "gone")
    gone.lease(100)
    service.now += 11  # a judge who went away is not planned for
    service.planner.round()
    with service.parts.database.reading() as connection:
        assert connection.execute(ready).scalar_one() < 100


def test_the_longer_planning_takes_the_more_questions_are_kept_ready(service: InProcessService) -> None:
    """What was handed out before a long planning began is demand as well: it comes again while the next is planned."""
    one = service.begin()
    for _ in range(4):
        judge = service.judge(one)
        for question in judge.lease(2)["questions"]:
            judge.answer(question["id"], "a")
        service.planner.round()
    service.now += 5.0  # planning took so long, and everybody waits by now
    with service.parts.database.reading() as connection:
        quick = questions_wanted(connection, one, 0, service.now)
        slow = questions_wanted(connection, one, 0, service.now, plan_seconds=20.0)
    assert slow >= quick + 8


def test_commits_that_the_database_lost_in_a_crash_are_made_again(tmp_path: Path) -> None:
    """A planner's commits do not wait for the disk. It goes on where the log ends, not where it was in memory."""
    service = InProcessService(f"sqlite:///{tmp_path}/studies.db")
    one = service.begin()
    judge = service.judge(one)
    first, second = (question["id"] for question in judge.lease(2)["questions"])
    judge.answer(first, "a")
    with sqlite3.connect(tmp_path / "studies.db") as source, sqlite3.connect(tmp_path / "before.db") as copy:
        source.backup(copy)
    service.planner.round()
    service.parts.database.close()
    with sqlite3.connect(tmp_path / "before.db") as source, sqlite3.connect(tmp_path / "studies.db") as copy:
        source.backup(copy)  # as after a crash of the database's machine, while the planner's goes on
    judge.answer(second, "b")
    for _ in range(2):
        service.planner.round()
    assert wrong(service.parts.database) == []
    assert service.get(f"/studies/{one}")["answers"] == 2
    service.close()
