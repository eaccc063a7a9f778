"""Studies whose questions show several items or ask for grades: what is asked, accepted, kept and exported."""

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from in_process_service import ADMIN, FakeJudge, InProcessService
from surepick.service.dashboard_worker import update_insights
from surepick.store import log
from surepick.store.verify import verify

SHOES = {"boot": 2.5, "runner": 1.0, "sandal": 0.0, "loafer": -0.5, "3": -1.0, "clog": -2.0}
"""By liking; one of them is called like a place."""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[InProcessService]:
    made = InProcessService(f"sqlite:///{tmp_path}/studies.db")
    yield made
    made.close()


def begin(service: InProcessService, **fields: Any) -> str:
    items = [{"name": name} for name in SHOES]
    return service.begin(items=items, assume="winner", **{"repeats": "independent", **fields})


def preference(chance: random.Random, names: list[str]) -> list[int]:
    """Places by liking, with the noise of the Plackett–Luce model."""
    drawn = [SHOES[name] - math.log(-math.log(chance.random())) for name in names]
    return sorted(range(1, len(names) + 1), key=lambda place: -drawn[place - 1])


@pytest.mark.parametrize(("form", "top"), [("pick", 1), ("rank", 3)])
def test_picks_and_rankings_lead_to_a_verdict(service: InProcessService, form: str, top: int) -> None:
    study = begin(service, answer=form, show=4, delta=0.2)
    judge, chance = service.judge(study), random.Random(3)
    for _ in range(400):
        taken = judge.lease()
        if not taken["open"]:
            break
        for question in taken["questions"]:
            assert (question["kind"], question["top"], question["answers"]) == (form, top, ["tie", "skip"])
            names = [item["name"] for item in question["items"]]
            assert len(set(names)) == 4
            judge.answer(question["id"], ">".join(map(str, preference(chance, names)[:top])))
        service.planner.round()
    result = service.get(f"/studies/{study}/result")
    assert (result["best"], result["status"], result["guarantee"]) == ("boot", "certain", "proved")
    rows = exported(service, study)
    assert all(len(row["items"].split("|")) == 4 for row in rows)
    first = rows[0]["items"].split("|")
    assert rows[0]["ranking"] == " > ".join(first[int(place) - 1] for place in rows[0]["said"].split(">"))
    assert update_insights(service.parts.database)
    found = service.get(f"/studies/{study}")
    assert found["insight"]["scores"][0]["item"] == "boot"
    assert (found["show"], found["answer"]) == (4, form)
    cookie = service.client.post("/login", json={"token": ADMIN["Authorization"][7:]}).headers["set-cookie"]
    page = service.client.get(f"/study/{study}/result", headers={"Cookie": cookie.split(";")[0]})
    assert "boot is the best" in page.text
    assert [report.wrong for report in verify(service.parts.database)] == [[]]


def events(service: InProcessService, study: str) -> list[dict[str, Any]]:
    with service.parts.database.reading() as connection:
        return [json.loads(row["body"]) for row in log.rows(connection, study)]


def exported(service: InProcessService, study: str) -> list[dict[str, Any]]:
    reply = service.client.get(f"/studies/{study}/export?what=answers&format=jsonl", headers=ADMIN)
    return [json.loads(line) for line in reply.text.splitlines()]


def test_places_that_cannot_be_meant_are_refused(service: InProcessService) -> None:
    ranking, pick = begin(service, answer="rank", show=4), begin(service, answer="pick", show=3)
    judge = service.judge(ranking)
    question = judge.lease()["questions"][0]["id"]
    for said in ("a", "b", "1>1", "5", "1>2>5", "0", "1>2>3>4>1", "better", "boot", "1>"):
        judge.answer(question, said, status=422)
    picker = service.judge(pick)
    asked = picker.lease()["questions"][0]["id"]
    for said in ("1>2", "4", "yes"):
        picker.answer(asked, said, status=422)
    assert exported(service, ranking) == exported(service, pick) == []
    assert judge.answer(question, "3>1>4")["answer"] == "3>1>4"
    assert judge.answer(question, "3>1>4")["turn"] == 0  # the same again is the same
    judge.answer(question, "3>1>2", status=409)
    judge.undo()
    judge.answer(question, "2>1", turn=2)  # the rest stays open
    picker.answer(asked, "tie")
    service.planner.round()
    assert [event["answer"] for event in events(service, ranking) if event["event"] == "answer"] == [[3, 1, 4], [2, 1]]
    pair = service.judge(begin(service))
    shown = pair.lease()["questions"][0]
    assert (shown["kind"], shown["top"], len(shown["items"])) == ("compare", 0, 2)
    for said in ("1", "2>1", "better"):
        pair.answer(shown["id"], said, status=422)


def test_grades_count_as_scores(service: InProcessService) -> None:
    study = begin(service, answer="grade")
    judge: FakeJudge = service.judge(study)
    kept = []
    for said in ("much better", "better", "equal", "worse", "much worse", "skip"):
        question = judge.lease()["questions"][0]
        assert question["kind"] == "grade"
        assert question["answers"] == ["much better", "better", "worse", "much worse", "tie", "skip"]
        kept.append(judge.answer(question["id"], said)["answer"])
        service.planner.round()
    assert kept == ["much better", "better", "tie", "worse", "much worse", "skip"]
    told = [event for event in events(service, study) if event["event"] in ("answer", "tie", "skip")]
    assert [event.get("answer", event["event"]) for event in told] == [1, 0.75, "tie", 0.25, 0, "skip"]
    assert [report.wrong for report in verify(service.parts.database)] == [[]]
    judge.answer(judge.lease()["questions"][0]["id"], "a", status=422)


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"show": 4}, "pick or rank"),
        ({"show": 9, "answer": "pick"}, "at most"),
        ({"show": 3, "answer": "rank", "kind": "items"}, "pairs"),
        ({"answer": "grade", "kind": "both"}, "pairs"),
        ({"answer": "grade", "policy": "rage-glm", "assume": None}, "grades"),
    ],
)
def test_studies_that_cannot_be_asked_so(service: InProcessService, fields: dict[str, Any], part: str) -> None:
    body = {"title": "Which?", "items": [{"name": name} for name in SHOES], **fields}
    reply = service.client.post("/studies", json=body, headers=ADMIN)
    assert (reply.status_code, part in reply.json()["detail"]) == (422, True), reply.text
