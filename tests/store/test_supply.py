"""What planners and workers ask the database again and again costs the same however long a study has gone on."""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from in_process_service import InProcessService
from surepick.store import log, question_queue, supply
from surepick.store.schema import metadata, questions

ASKED: dict[str, tuple[sa.Select[Any], str]] = {
    "questions that are out or ready": (supply._not_answered, "questions_open"),
    "questions to hand out": (question_queue._ready, "questions_open"),
    "questions that expired": (log._expired, "questions_open"),
    "judges who wait": (supply._with_waiting, "judges_waiting"),
}
"""Each with the index that has only the few rows it is about."""


@pytest.fixture
def service(tmp_path: Any) -> Iterator[InProcessService]:
    made = InProcessService(f"sqlite:///{tmp_path}/studies.db")
    yield made
    made.close()


def plan_of(connection: sa.Connection, statement: sa.Select[Any]) -> str:
    """How SQLite carries out a statement."""
    written = statement.compile(connection, compile_kwargs={"render_postcompile": True})
    given = tuple(None if value is None else 1 for value in map(written.params.get, written.positiontup or ()))
    return str(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {written}", given).all())


@pytest.mark.parametrize("asked", ASKED)
def test_an_index_has_only_the_rows_that_are_asked_for(service: InProcessService, asked: str) -> None:
    statement, index = ASKED[asked]
    study = service.begin()
    service.judge(study).work(6)
    with service.parts.database.reading() as connection:
        assert f"INDEX {index} " in plan_of(connection, statement)


def test_without_that_index_all_questions_of_a_study_are_read(service: InProcessService) -> None:
    (index,) = (index for index in questions.indexes if index.name == "questions_open")
    with service.parts.database.writing() as connection:
        index.drop(connection)
    with service.parts.database.reading() as connection:
        assert "questions_open" not in plan_of(connection, supply._not_answered)
    assert index in metadata.tables["questions"].indexes
