"""Judges' messages on their way into the log: no order, clock, backlog or damaged message stops a study."""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from in_process_service import InProcessService
from surepick.cli import app
from surepick.service.dashboard_worker import update_insights
from surepick.session.record import Record
from surepick.store import Planner, log, studies
from surepick.store.schema import messages, questions
from surepick.store.verify import verify


@pytest.fixture
def service(database_url: str) -> Iterator[InProcessService]:
    made = InProcessService(database_url)
    yield made
    made.close()


def wrong(service: InProcessService) -> list[str]:
    return [sentence for report in verify(service.parts.database) for sentence in report.wrong]


def health(service: InProcessService) -> Any:
    return service.client.get("/health").json()


def assert_all_counted(service: InProcessService, study: str, answers: int) -> None:
    """Nothing waits, nothing is quarantined, and this many answers count."""
    for _ in range(3):  # the first may only find out that the study has a new phase
        service.planner.round()
    assert service.get(f"/studies/{study}")["answers"] == answers
    assert (health(service)["status"], health(service)["waiting"]) == ("ok", 0)
    assert wrong(service) == []


def test_an_answer_after_a_skip_counts_though_its_server_is_ten_seconds_behind(service: InProcessService) -> None:
    one = service.begin()
    judge = service.judge(one)
    first, second = judge.lease(2)["questions"]
    judge.answer(first["id"], "skip")
    service.now -= 10
    judge.answer(first["id"], "a")
    judge.answer(second["id"], "b")
    assert_all_counted(service, one, 2)


def test_the_last_message_is_the_one_that_came_last(service: InProcessService) -> None:
    one = service.begin()
    judge = service.judge(one)
    first, second = judge.lease(2)["questions"]
    judge.answer(first["id"], "a")
    service.now -= 10  # the second answer goes through another server
    judge.answer(second["id"], "a")
    assert judge.undo()["question"] == second["id"]
    assert_all_counted(service, one, 1)


def test_nothing_is_evaluated_while_a_backlog_may_hold_an_undo(
    service: InProcessService, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = service.begin()
    judge = service.judge(one)
    first, second, third = judge.lease(3)["questions"]
    judge.answer(second["id"], "a")
    judge.answer(third["id"], "a")
    judge.answer(first["id"], "a")
    judge.undo()  # its stage was answered for a moment
    judge.answer(first["id"], "b", turn=2)
    monkeypatch.setattr(log, "MOST_INGESTED", 3)
    assert_all_counted(service, one, 3)


def test_an_undo_that_comes_into_the_log_after_the_items_changed(service: InProcessService) -> None:
    one = service.begin()
    judge = service.judge(one)
    held = judge.lease(2)["questions"][1]
    judge.answer(held["id"], "a")
    judge.undo()
    service.post(f"/studies/{one}/items", {"remove": ["green"]})
    assert_all_counted(service, one, 0)
    judge.answer(judge.lease(1)["questions"][0]["id"], "a")
    assert_all_counted(service, one, 1)


def test_a_clock_set_back_keeps_no_message_waiting(service: InProcessService) -> None:
    one = service.begin()
    judge = service.judge(one)
    question = judge.lease(1)["questions"][0]
    service.planner.round()  # so that enough questions are ready, and only the message is due
    judge.answer(question["id"], "a")
    service.planner._linger = 0.2
    service.now -= 3600
    assert_all_counted(service, one, 1)


def test_a_clock_set_back_frees_what_a_killed_service_held(service: InProcessService) -> None:
    """Its planner's lease and its judges' questions would otherwise end an hour later."""
    one = service.begin()
    judge = service.judge(one)
    left, answered = judge.lease(2)["questions"]
    judge.answer(answered["id"], "a")
    service.planner.round()
    service.now -= 3600
    restarted = Planner(service.parts.database)  # another process: another name
    restarted.round()
    held = {row["id"]: row for row in rows_of(service, questions)}[left["id"]]
    assert service.now < held["leased_until"] <= service.now + 120
    restarted.round()
    assert {question["id"] for question in judge.lease(1)["questions"]} == {left["id"]}
    judge.answer(left["id"], "b")
    service.planner = restarted
    assert_all_counted(service, one, 2)


def test_a_clock_set_back_under_a_running_planner_delays_nothing(service: InProcessService) -> None:
    one = service.begin()
    judge = service.judge(one)
    judge.work(6)
    lease = service.planner._held[one]
    lease.evaluate_from = service.now + 1.0  # as after an evaluation that took long
    service.now -= 3600
    judge.work(4)
    assert lease.evaluate_from < service.now + 60
    assert_all_counted(service, one, 10)
    result = service.get(f"/studies/{one}/result")
    assert result["seconds"] >= 0


def test_the_dashboards_leases_are_by_the_databases_clock(service: InProcessService) -> None:
    """Two servers whose clocks differ must not compute at the same time, nor wait for each other for hours."""
    one = service.begin()
    service.judge(one).work(4)
    service.get(f"/studies/{one}")
    assert update_insights(service.parts.database)
    with service.parts.database.reading() as connection:
        until = studies.get(connection, one)["insight_until"]
    assert service.now < until < service.now + 60


def rows_of(service: InProcessService, table: sa.Table) -> list[sa.RowMapping]:
    with service.parts.database.reading() as connection:
        return list(connection.execute(sa.select(table)).mappings())


def add_impossible_undo(service: InProcessService, study: str, judge: str, question: str) -> None:
    """A message that no handler accepts, as a bug or a hand in the database might leave it."""
    with service.parts.database.writing() as connection:
        connection.execute(
            sa.insert(messages).values(
                question=question, turn=0, study=study, judge=judge, said="undo", late=False, at=service.now
            )
        )


def test_a_message_that_cannot_enter_the_log_is_quarantined_and_all_others_count(
    service: InProcessService, database_url: str
) -> None:
    one = service.begin()
    judge = service.judge(one)
    first, second, third = judge.lease(3)["questions"]
    judge.answer(second["id"], "a")
    add_impossible_undo(service, one, judge.id, first["id"])
    judge.answer(third["id"], "b")
    service.planner.round()
    shown = service.get(f"/studies/{one}")
    assert shown["answers"] == 2
    (kept,) = shown["quarantined"]
    assert (kept["question"], kept["turn"], kept["said"], kept["judge"]) == (first["id"], 0, "undo", judge.id)
    assert "no answer to undo" in kept["reason"]
    assert health(service) | {"version": "", "database": ""} == {
        "status": "degraded",
        "database": "",
        "version": "",
        "waiting": 0,
        "quarantined": 1,
    }
    (sentence,) = wrong(service)
    assert first["id"] in sentence
    assert "is quarantined: Question 1 has no answer to undo." in sentence
    result = CliRunner().invoke(app, ["verify", database_url])
    assert result.exit_code == 1
    assert first["id"] in result.stdout
    judge.answer(first["id"], "a", turn=1)  # acknowledged, but it follows on what cannot be counted
    service.now += 200
    service.planner.round()
    assert [kept["turn"] for kept in service.get(f"/studies/{one}")["quarantined"]] == [0, 1]
    assert judge.lease(1)["questions"]  # the study goes on
    service.post(f"/studies/{one}/state", {"state": "closed"})
    service.post(f"/studies/{one}/state", {"state": "archived"})
    assert health(service)["status"] == "ok"  # the admin has seen it


def test_a_message_that_breaks_the_session_is_quarantined_too(
    service: InProcessService, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = service.begin()
    judge = service.judge(one)
    first, second = judge.lease(2)["questions"]
    judge.answer(first["id"], "a")
    judge.answer(second["id"], "a")
    count = Record._count

    def fragile(self: Record, question: int, answer: int, by: int) -> None:
        if question == 1:
            raise ZeroDivisionError("a bug")
        count(self, question, answer, by)

    monkeypatch.setattr(Record, "_count", fragile)
    service.planner.round()
    service.planner.round()
    shown = service.get(f"/studies/{one}")
    assert shown["answers"] == 1
    assert [(kept["question"], kept["reason"]) for kept in shown["quarantined"]] == [(first["id"], "a bug")]
    assert health(service)["status"] == "degraded"


def test_messages_that_wait_for_long_degrade_the_health(service: InProcessService) -> None:
    judge = service.judge(service.begin())
    judge.answer(judge.lease(1)["questions"][0]["id"], "a")
    assert health(service)["status"] == "ok"
    service.now += 61  # no planner runs
    assert (health(service)["status"], health(service)["waiting"]) == ("degraded", 1)
    service.planner.round()
    assert health(service)["status"] == "ok"
