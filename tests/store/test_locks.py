"""Transactions on PostgreSQL wait for each other in one order and in line: no deadlock, and nobody waits for ever."""

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from databases import fresh_database
from in_process_service import InProcessService
from surepick.service.replies import KEEP_SECONDS, first_reply
from surepick.store import Database, GroupCommit, Planner, studies
from surepick.store.question_queue import LeaseQuestions, lock_judges
from surepick.store.schema import replies
from surepick.store.streams import Decide, Streams

WAIT = 0.3
"""Seconds after which something that waits is taken to wait."""

PATIENCE = 60.0
"""Seconds for what must not wait. A transaction that did would fail sooner (`BUSY_SECONDS`)."""


@pytest.fixture
def service(postgres: str) -> Iterator[InProcessService]:
    with fresh_database(postgres) as url:
        made = InProcessService(url)
        yield made
        made.close()


def test_a_study_is_claimed_though_a_judges_transaction_is_open(service: InProcessService) -> None:
    """A claim that waited for judges while it had changed the row would be waited for by other judges: a deadlock."""
    one = service.begin()
    judge = service.judge(one)
    service.now += 10  # the first planner's lease has expired
    with service.parts.database.writing() as connection, ThreadPoolExecutor(1) as pool:
        lock_judges(connection, [LeaseQuestions(one, judge.id, 1)])
        claimed = pool.submit(Planner(service.parts.database)._claim, one)
        assert claimed.result(timeout=PATIENCE) is not None


def wait_until_waiting(database: Database, count: int) -> None:
    """Until this many transactions wait for a lock."""
    waiting = sa.text(
        "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database "
        "WHERE datname = current_database() AND NOT granted"
    )
    end = time.monotonic() + PATIENCE
    with database.reading() as connection:
        while connection.scalar(waiting) != count:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_a_planner_is_not_overtaken_by_judges_who_come_later(service: InProcessService) -> None:
    """Else a planner would not get its turn while many judges answer."""
    one = service.begin()
    people = [LeaseQuestions(one, service.judge(one).id, 1) for _ in range(2)]
    database, order = service.parts.database, list[str]()

    def plan() -> None:
        with database.writing() as connection:
            studies._locked(connection, one)
            order.append("planner")

    def judge() -> None:
        with database.writing() as connection:
            lock_judges(connection, people[1:])
            order.append("second judge")

    with ThreadPoolExecutor(2) as pool:
        with database.writing() as connection:
            lock_judges(connection, people[:1])
            planning = pool.submit(plan)
            wait_until_waiting(database, 1)
            judging = pool.submit(judge)
            wait_until_waiting(database, 2)
        planning.result(timeout=PATIENCE)
        judging.result(timeout=PATIENCE)
    assert order == ["planner", "second judge"]


def test_two_processes_that_use_the_same_streams_do_not_wait_for_each_other(service: InProcessService) -> None:
    """Whatever comes first in a group of requests: one process has all of its streams before it does anything."""
    made = [service.post("/streams", {"title": "t", "dimension": 2}, status=201)["id"] for _ in range(2)]
    arms = [[1.0, 0.0], [0.0, 1.0]]
    service.post(f"/streams/{made[0]}/decide", {"arms": arms})  # compiles what is needed, which may take long
    database = service.parts.database
    processes = [GroupCommit(database) for _ in range(2)]
    memories = [Streams(database) for _ in range(2)]
    both, meetings = threading.Barrier(2), []

    def met(_: Database, connection: sa.Connection, requests: Any) -> list[None]:
        """Between two groups of requests: the other process is as far as this one, if it can be."""
        meetings.append(requests)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(5 * WAIT)
        return [None for _ in requests]

    def group(number: int) -> list[Any]:
        """Requests that are carried out in one transaction: a stream, the meeting, the other stream."""
        hold = threading.Event()
        processes[number].submit(lambda d, c, requests: [hold.wait() for _ in requests], None)
        first, second = (Decide(stream, arms, None) for stream in made[:: 1 - 2 * number])
        other = Streams(database)  # another handler, so its requests are another group
        futures = [
            processes[number].submit(memories[number].act, first),
            processes[number].submit(met, None),
            processes[number].submit(other.act, second),
        ]
        hold.set()
        return futures

    groups = [group(number) for number in (0, 1)]
    assert {future.result(timeout=PATIENCE).index for futures in groups for future in futures[::2]} <= {0, 1}
    for process in processes:
        process.close()
    assert len(meetings) == 2  # neither was broken off and carried out again


def test_expired_replies_that_another_process_deletes_are_left_to_it(service: InProcessService) -> None:
    database, old = service.parts.database, service.now - KEEP_SECONDS - 1
    with database.writing() as connection:
        rows = [{"scope": "studies", "key": str(n), "at": old, "digest": "", "body": "null"} for n in range(3)]
        connection.execute(sa.insert(replies), rows)
    with database.writing() as first, ThreadPoolExecutor(1) as pool:
        first_reply(database, first, "studies", "one", "x", service.now)

        def other() -> Any:
            with database.writing() as connection:
                return first_reply(database, connection, "studies", "two", "y", service.now)

        assert pool.submit(other).result(timeout=PATIENCE) is None
    with database.reading() as connection:
        assert set(connection.scalars(sa.select(replies.c.key))) == {"one", "two"}
