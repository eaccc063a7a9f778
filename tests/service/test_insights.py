"""When the insight of a study is computed: soon where somebody looks at it, otherwise seldom, and once at the end."""

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import sqlalchemy as sa

from in_process_service import InProcessService
from surepick.service import dashboard_worker
from surepick.service.dashboard_worker import (
    LEASE_SECONDS,
    PAUSE_SECONDS,
    UNWATCHED_ANSWERS,
    UNWATCHED_GROWTH,
    update_insights,
)
from surepick.session import Session
from surepick.store.schema import studies
from surepick.store.studies import WATCHED_SECONDS


@pytest.fixture
def service(database_url: str) -> Iterator[InProcessService]:
    made = InProcessService(database_url, rate=1e6)  # judges here answer faster than people do
    yield made
    made.close()


def row_of(service: InProcessService, study: str) -> Any:
    """The study as it is stored; asking the service would be to look at it."""
    with service.parts.database.reading() as connection:
        return connection.execute(sa.select(studies).where(studies.c.id == study)).one()


def computed(service: InProcessService) -> bool:
    """Whether an insight was due, some time after the last one."""
    service.now += PAUSE_SECONDS + 1
    return update_insights(service.parts.database)


def test_a_study_that_nobody_looks_at_has_few_insights(service: InProcessService) -> None:
    study = service.begin(delta=1e-9)
    judge = service.judge(study)
    heads, answers = [], []
    for number in range(6 * UNWATCHED_ANSWERS):
        judge.answer(judge.lease()["questions"][0]["id"], "ab"[number % 2])  # which decides nothing
        service.planner.round()
        if computed(service):
            heads.append(row_of(service, study).insight_head)
            answers.append(row_of(service, study).answers)
    assert len(heads) == 3
    assert answers[0] == UNWATCHED_ANSWERS
    assert all(after >= UNWATCHED_GROWTH * before for before, after in pairwise(heads))


def test_a_study_that_somebody_looks_at_is_up_to_date(service: InProcessService) -> None:
    study = service.begin(delta=1e-9)
    judge = service.judge(study)
    for _ in range(3):
        judge.work(1, n=1)
        assert not computed(service)
        service.get(f"/studies/{study}")
        assert computed(service)
        shown = service.get(f"/studies/{study}")
        assert shown["insight"]["answers"] == shown["answers"]
        service.now += WATCHED_SECONDS + 1


def test_a_study_that_is_looked_at_comes_first(service: InProcessService) -> None:
    made = [service.begin(delta=1e-9) for _ in range(3)]
    for study in made:
        service.judge(study).work(5)
    service.get(f"/studies/{made[2]}")
    assert computed(service)
    assert [row_of(service, study).insight is None for study in made] == [True, True, False]


def test_the_end_of_a_study_is_shown_though_nobody_looks(service: InProcessService) -> None:
    study = service.begin(policy="posterior")
    judge = service.judge(study)
    for _ in range(200):
        if row_of(service, study).decided is not None:
            break
        judge.work(1, n=1)
        computed(service)
    service.now += 2 * WATCHED_SECONDS
    assert row_of(service, study).decided is not None
    assert row_of(service, study).insight_head == row_of(service, study).head or computed(service)
    assert row_of(service, study).insight_head == row_of(service, study).head
    assert not computed(service)


def test_what_a_killed_worker_was_computing_is_computed_by_another(
    service: InProcessService, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = service.begin()
    service.judge(study).work(3)
    service.get(f"/studies/{study}")

    def killed(_: Session) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(dashboard_worker, "insight", killed)
        with pytest.raises(SystemExit):
            computed(service)
    assert not computed(service)  # it might still be at work
    service.now += LEASE_SECONDS
    assert computed(service)


def test_a_worker_that_takes_long_keeps_its_lease(service: InProcessService, monkeypatch: pytest.MonkeyPatch) -> None:
    study = service.begin()
    service.judge(study).work(3)
    service.get(f"/studies/{study}")

    def slow(_: Session) -> dict[str, Any]:
        service.now += 10 * LEASE_SECONDS
        end = time.monotonic() + 60
        while row_of(service, study).insight_until < service.now:
            assert time.monotonic() < end, "not renewed"
            time.sleep(0.01)
        return {"judges": {}}

    monkeypatch.setattr(dashboard_worker, "insight", slow)
    monkeypatch.setattr(dashboard_worker, "LEASE_SECONDS", 0.3)
    assert computed(service)
    assert row_of(service, study).insight is not None
