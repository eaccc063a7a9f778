"""Studies that know what the judges of earlier ones were like."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from in_process_service import ADMIN, InProcessService, study
from surepick.identify import Population, Posterior, Winner
from surepick.store import log
from surepick.store.verify import verify

LIKING = {"boot": 3.0, "runner": 1.5, "sandal": 0.0, "loafer": -1.5}
ITEMS = [{"name": name} for name in LIKING]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[InProcessService]:
    made = InProcessService(f"sqlite:///{tmp_path}/studies.db")
    yield made
    made.close()


def answered(service: InProcessService, judges: int = 5, **fields: Any) -> str:
    """A study that this many judges have answered, all of one taste."""
    made = service.begin(items=ITEMS, **fields)
    for number in range(judges):
        judge = service.judge(made, f"judge {number}")
        for _ in range(6):
            service.planner.round()
            for question in judge.lease()["questions"]:
                first, second = (LIKING[item["name"]] for item in question["items"])
                judge.answer(question["id"], "a" if first > second else "b")
    service.planner.round()
    return made


def policy_of(service: InProcessService, made: str) -> Any:
    with service.parts.database.reading() as connection:
        return log.replay(connection, made, 0).policy


@pytest.mark.parametrize(("assume", "kind"), [("population", Posterior), ("winner", Winner)])
def test_a_study_knows_the_judges_of_earlier_ones(service: InProcessService, assume: str, kind: type) -> None:
    earlier = answered(service)
    made = service.begin(items=ITEMS, assume=assume, population=[earlier, earlier])
    policy = policy_of(service, made)
    assert isinstance(policy, kind)
    assert isinstance(policy.population, Population)  # type: ignore[attr-defined]  # both have one
    shown = service.get(f"/studies/{made}")
    assert shown["population"] == {"studies": [earlier, earlier], "source": policy.population.source}  # type: ignore[attr-defined]
    assert "learned from 5 people" in shown["population"]["source"]
    assert "population" not in shown["policy"]  # a matrix, which would be sent with every change
    fixed = json.dumps(policy.to_json())  # type: ignore[attr-defined]
    answered_more = service.judge(earlier, "late")
    service.planner.round()
    for question in answered_more.lease()["questions"]:
        answered_more.answer(question["id"], "b")
    service.planner.round()
    assert json.dumps(policy_of(service, made).to_json()) == fixed
    judge = service.judge(made)
    for _ in range(30):
        service.planner.round()
        for question in judge.lease()["questions"]:
            first, second = (LIKING[item["name"]] for item in question["items"])
            judge.answer(question["id"], "a" if first > second else "b")
    service.planner.round()
    verdict = service.get(f"/studies/{made}")["verdict"]
    assert verdict["best"] == "boot"
    assert not any(report.wrong for report in verify(service.parts.database))
    refused = service.post(f"/studies/{made}/items", {"add": [{"name": "clog"}]}, status=409)
    assert "begin a new study" in refused["detail"]


def test_earlier_judges_leave_fewer_items_before_the_first_answer(service: InProcessService) -> None:
    known, alone = (
        service.begin(items=ITEMS, assume="population", delta=0.2, population=earlier)
        for earlier in ([answered(service, judges=12)], [])
    )
    with service.parts.database.reading() as connection:
        verdicts = [log.replay(connection, made, 0).verdict() for made in (known, alone)]
    assert verdicts[0].best == "boot"
    assert len(verdicts[0].surviving) < len(verdicts[1].surviving)


def test_what_cannot_be_learned_from_is_refused(service: InProcessService) -> None:
    few, other = answered(service, judges=2), service.begin(items=[{"name": "a"}, {"name": "b"}])
    before = len(service.get("/studies"))
    for named, words, status in (
        ([few], "at least 4 people", 422),
        ([other], "is about other items", 422),
        (["nothing"], "There is no study 'nothing'", 404),
    ):
        body = study(items=ITEMS, assume="population", population=named)
        assert words in service.post("/studies", body, ADMIN, status=status)["detail"]
    enough = answered(service)
    body = study(items=[item | {"features": [place]} for place, item in enumerate(ITEMS)], assume="features")
    refused = service.post("/studies", body | {"population": [enough]}, ADMIN, status=422)
    assert "does not use population" in refused["detail"]
    assert len(service.get("/studies")) == before + 1


def test_studies_of_other_projects_are_not_learned_from(service: InProcessService) -> None:
    theirs = answered(service, project="first")
    token = service.post("/members", {"name": "o", "project": "second", "role": "owner"}, ADMIN, status=201)["token"]
    ours = {"Authorization": f"Bearer {token}"}
    body = study(items=ITEMS, assume="winner", population=[theirs])
    assert service.post("/studies", body, ours, status=404)["detail"] == f"There is no study {theirs!r}."
    # Not even by the operator, who may read both: what a study was learned from is shown to its project.
    service.post("/studies", body | {"project": "second"}, ADMIN, status=404)
    service.post("/studies", body | {"project": "first"}, ADMIN, status=201)  # the control
