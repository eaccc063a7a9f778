"""Several judges, none of whom is asked the same twice."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from in_process_service import COLOURS, LIKING, FakeJudge, InProcessService
from surepick.store import log, planner
from surepick.store.schema import questions
from surepick.store.supply import judges_present
from surepick.store.verify import verify


@pytest.fixture
def service(database_url: str) -> Iterator[InProcessService]:
    made = InProcessService(database_url)
    yield made
    made.close()


def begin(service: InProcessService, **fields: object) -> str:
    return service.begin(repeats=None, assume=None, **fields)


def rounds(service: InProcessService, judges: list[FakeJudge], most: int) -> list[set[frozenset[str]]]:
    """Judges answer one question each, round by round; the pairs that each of them was asked."""
    had: list[set[frozenset[str]]] = [set() for _ in judges]
    for _ in range(most):
        for judge, pairs in zip(judges, had, strict=True):
            for question in judge.lease(1)["questions"]:
                pair = frozenset((question["a"]["name"], question["b"]["name"]))
                assert pair not in pairs
                pairs.add(pair)
                judge.answer(question["id"], judge.prefers(question))
            service.planner.round()
    return had


def test_comparisons_end_by_winner_and_count_first_answers_by_default(service: InProcessService) -> None:
    shown = service.get(f"/studies/{begin(service)}")
    assert (shown["policy"]["name"], shown["repeats"]) == ("winner", "once")


def test_no_judge_has_the_same_pair_twice_and_everybody_is_served(service: InProcessService) -> None:
    one = begin(service)
    judges = [service.judge(one, name) for name in ("ann", "bob", "cy")]
    had = rounds(service, judges, 8)
    assert all(2 <= len(pairs) <= 3 for pairs in had)  # of three pairs one may tell nothing
    assert service.get(f"/studies/{one}")["answers"] == sum(len(pairs) for pairs in had)
    assert all(judge.lease(1)["exhausted"] for judge in judges)
    assert [sentence for report in verify(service.parts.database) for sentence in report.wrong] == []


def test_a_new_judge_is_served_though_all_others_have_had_everything(service: InProcessService) -> None:
    one = begin(service)
    rounds(service, [service.judge(one, "ann")], 6)
    late = service.judge(one, "bob")
    late.lease(1)  # says that somebody waits
    service.planner.round()
    assert len(late.lease(1)["questions"]) == 1


def test_enough_judges_decide_it(service: InProcessService) -> None:
    one = begin(service)
    judges = [service.judge(one, f"judge {number}") for number in range(25)]
    for number, judge in enumerate(judges):
        judge.chance.seed(number)
    rounds(service, judges, 4)
    found = service.get(f"/studies/{one}/result")
    assert (found["status"], found["best"]) == ("certain", max(LIKING, key=LIKING.__getitem__))
    assert found["claims"][0]["assume"] == "winner"


def test_a_question_that_nobody_present_can_take_does_not_stop_the_study(service: InProcessService) -> None:
    one = begin(service)
    ann = service.judge(one, "ann")
    rounds(service, [ann], 3)
    # Bob is given a question of his own planning and leaves before taking it.
    bob = service.judge(one, "bob")
    bob.lease(3)
    service.planner.round()
    service.now += 1000
    cy = service.judge(one, "cy")
    rounds(service, [cy], 8)
    service.planner.round()
    assert service.get(f"/studies/{one}")["verdict"]["questions"] >= 4  # two of ann, and two of cy behind it


@pytest.mark.parametrize("late", [False, True])
def test_somebody_who_let_a_question_expire_and_comes_back_alone_is_served(
    service: InProcessService, late: bool
) -> None:
    one = begin(service)
    ann = service.judge(one, "ann")
    service.planner.round()
    (left,) = ann.lease(1)["questions"]
    service.now += 1000
    for _ in range(3):
        service.planner.round()
    if late:
        ann.answer(left["id"], "a")  # its stage has been evaluated without it
        service.planner.round()
    for _ in range(12):
        taken = ann.lease(1)
        for question in taken["questions"]:
            ann.answer(question["id"], ann.prefers(question))
        service.now += 3
        service.planner.round()
    assert ann.lease(1)["exhausted"]  # of what she can be asked nothing is left, and she is told
    assert [sentence for report in verify(service.parts.database) for sentence in report.wrong] == []


def test_spaced_is_refused(service: InProcessService) -> None:
    service.post(
        "/studies",
        {"title": "t", "items": [{"name": name} for name in COLOURS], "repeats": "spaced"},
        status=422,
    )


def test_an_answer_to_a_question_that_is_just_being_withdrawn_counts(
    service: InProcessService, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = begin(service)
    ann = service.judge(one, "ann")
    rounds(service, [ann], 3)
    bob = service.judge(one, "bob")
    bob.lease(3)
    service.planner.round()  # questions for Bob, which Ann has had; he leaves without them
    service.now += 1000
    ann.lease(1)
    cy, given = service.judge(one, "cy"), list[str]()

    def meanwhile(*known: Any) -> Any:
        """Who is there; and before anything is written, Cy comes and answers what nobody could take."""
        found = judges_present(*known)
        if given:
            return found
        assert found.unclaimable
        (question,) = cy.lease(1)["questions"]
        given.append(question["id"])
        cy.answer(question["id"], cy.prefers(question))
        return replace(found, wishes=dict.fromkeys(found.had, 1))  # so that something is planned, after an evaluation

    monkeypatch.setattr(planner, "judges_present", meanwhile)
    before = service.get(f"/studies/{one}")["answers"]
    for _ in range(3):
        service.planner.round()
        service.now += 3
    assert service.get(f"/studies/{one}")["answers"] == before + 1
    with service.parts.database.reading() as connection:
        assert log.replay(connection, one, 0).late == frozenset()
    assert [sentence for report in verify(service.parts.database) for sentence in report.wrong] == []


def test_a_question_behind_others_that_the_judge_has_had_is_found(service: InProcessService) -> None:
    """The first in the queue may be for judges who come later; nobody waits for them to come."""
    one = begin(service, items=[{"name": str(number)} for number in range(12)])
    ann = service.judge(one, "ann")
    for _ in range(9):
        for question in ann.lease(1)["questions"]:
            ann.answer(question["id"], "a")
        service.planner.round()
    had = service.planner._held[one].session.had_by(ann.id)
    with service.parts.database.writing() as connection:
        rows = connection.execute(sa.select(questions).where(questions.c.study == one)).mappings().all()
        first = max(row["number"] for row in rows) + 1
        template = dict(rows[-1]) | {"judge": None, "leased_at": None, "leased_until": None, "answered": False}
        new = next(number for number in range(66) if number not in had)
        queue = [*sorted(had)[:6], new]
        copies = [
            {"id": f"copy {place}", "number": first + place, "measurement": row} for place, row in enumerate(queue)
        ]
        connection.execute(sa.update(questions).where(questions.c.answered.is_(False)).values(answered=True))
        connection.execute(sa.insert(questions), [template | copy for copy in copies])
    assert [question["id"] for question in ann.lease(1)["questions"]] == ["copy 6"]
