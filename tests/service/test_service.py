"""The service over HTTP, on SQLite and PostgreSQL alike."""

from collections.abc import Iterator
from typing import Any

import pytest

from in_process_service import ADMIN, InProcessService, study
from surepick import verify_certificate
from surepick.service.dashboard_worker import observe
from surepick.store.verify import verify

QUICK = {"options": {"stop": "posterior"}}
"""A study that stops early: what is tested is not the proof."""


@pytest.fixture
def desk(database_url: str) -> Iterator[InProcessService]:
    made = InProcessService(database_url)
    yield made
    made.close()


def well(desk: InProcessService) -> bool:
    """Whether all that the tables say is what the logs say."""
    wrong = [sentence for report in verify(desk.service.database) for sentence in report.wrong]
    assert wrong == []
    return True


def test_a_judge_answers_to_the_verdict(desk: InProcessService) -> None:
    one = desk.begin(delta=0.2)
    assert desk.get(f"/studies/{one}/result")["status"] == "open"
    judge = desk.judge(one)
    answers = judge.work()
    result = desk.get(f"/studies/{one}/result")
    wanted = "best status delta epsilon questions evidence rivals seconds policy guarantee certificate"
    assert set(wanted.split()) <= set(result)
    assert (result["best"], result["status"], result["guarantee"]) == ("red", "certain", "proved")
    assert result["questions"] <= answers
    assert verify_certificate(result["certificate"]).best == "red"
    assert judge.take()["questions"] == []
    shown = desk.get(f"/studies/{one}")
    assert shown["answers"] == answers
    assert [item["name"] for item in shown["items"]] == ["red", "green", "blue"]
    assert observe(desk.service.database, lambda: desk.now)
    assert desk.get(f"/studies/{one}")["forecast"] is None
    insight = desk.get(f"/studies/{one}")["insight"]
    assert insight["scores"][0]["item"] == "red"
    assert insight["judges"][judge.id]["answers"] == answers
    assert insight["judges"][judge.id]["agreement"] > 0.6
    assert sum(insight["asked"].values()) == 2 * answers
    assert {check["name"] for check in insight["checks"]} >= {"misfit", "position"}
    assert not observe(desk.service.database, lambda: desk.now)
    history = desk.get(f"/studies/{one}/history")
    assert history[-1]["status"] == "certain"
    assert [look["answers"] for look in history] == sorted(look["answers"] for look in history)
    assert well(desk)


def test_the_same_answer_again_is_the_same_and_another_is_refused(desk: InProcessService) -> None:
    one = desk.begin()
    judge = desk.judge(one)
    question = judge.take()["questions"][0]
    first = judge.say(question["id"], "a")
    assert judge.say(question["id"], "a") == first == {"question": question["id"], "answer": "a", "turn": 0}
    assert "undo" in judge.say(question["id"], "b", status=409)["detail"]
    judge.say(question["id"], "skip", status=409)
    desk.planner.round()
    assert judge.say(question["id"], "a") == first
    judge.say(question["id"], "tie", status=409)
    desk.planner.round()
    assert desk.get(f"/studies/{one}")["answers"] == 1
    assert well(desk)


def test_questions_belong_to_the_judge_they_were_handed_to(desk: InProcessService) -> None:
    one, other = desk.begin(), desk.begin()
    jo, flo, stranger = desk.judge(one), desk.judge(one, "flo"), desk.judge(other)
    mine = jo.take(2)["questions"]
    assert [each["id"] for each in jo.take(2)["questions"]] == [each["id"] for each in mine]  # a page reloaded
    assert not {each["id"] for each in flo.take(2)["questions"]} & {each["id"] for each in mine}
    flo.say(mine[0]["id"], "a", status=404)
    stranger.say(mine[0]["id"], "a", status=404)
    jo.say("nosuchquestion", "a", status=404)
    jo.say(mine[0]["id"], "yes", status=422)
    # A link of one study opens no other.
    desk.post(f"/studies/{other}/questions", headers=jo.headers, status=401)
    desk.planner.round()
    assert desk.get(f"/studies/{one}")["answers"] == 0
    assert well(desk)


def test_an_expired_question_is_not_waited_for_and_its_late_answer_still_counts(desk: InProcessService) -> None:
    one = desk.begin(lease=60)
    assert desk.get(f"/studies/{desk.begin()}")["lease"] == 120  # unless told otherwise
    jo, flo = desk.judge(one), desk.judge(one, "flo")
    late = jo.take(1)["questions"][0]
    for question in flo.take(2)["questions"]:
        flo.say(question["id"], flo.prefers(question))
    desk.planner.round()
    held_up = desk.get(f"/studies/{one}")
    assert (held_up["waiting"], held_up["verdict"]) == (1, None)  # nothing after an open stage is evaluated
    desk.now += 61
    desk.planner.round()
    given_up = desk.get(f"/studies/{one}")
    assert (given_up["waiting"], given_up["verdict"]["status"], given_up["verdict"]["questions"]) == (0, "open", 2)
    assert jo.take(1)["questions"][0]["id"] != late["id"]  # somebody is asked something new
    assert jo.say(late["id"], "a")["answer"] == "a"
    desk.planner.round()
    assert desk.get(f"/studies/{one}")["answers"] == 3
    assert well(desk)


def test_a_page_that_nobody_sits_at_does_not_hold_up_the_others_for_ever(desk: InProcessService) -> None:
    one = desk.begin(lease=60, budget=5)
    away, flo = desk.judge(one, "away"), desk.judge(one, "flo")
    first = desk.now
    held = away.take(2)["questions"]
    assert [question["expires"] for question in held] == [first + 60] * 2
    flo.work(3)
    while desk.now < first + 590:
        assert [question["id"] for question in away.take(2)["questions"]] == [question["id"] for question in held]
        desk.planner.round()
        assert flo.take(1) | {"remaining": None} == {"questions": [], "open": True, "answered": 3, "remaining": None}
        desk.now += 20
    assert [question["expires"] for question in away.take(2)["questions"]] == [first + 600] * 2
    desk.now = first + 601
    desk.planner.round()
    assert not flo.take(1)["open"]
    result = desk.get(f"/studies/{one}/result")
    assert (result["status"], result["questions"]) == ("budget spent", 3)
    assert well(desk)


def test_skip_tie_and_an_answer_after_a_skip(desk: InProcessService) -> None:
    one = desk.begin()
    judge = desk.judge(one)
    skipped, tied = judge.take(2)["questions"]
    judge.say(skipped["id"], "skip")
    judge.say(tied["id"], "tie")
    judge.say(tied["id"], "a", status=409)
    judge.say(skipped["id"], "tie", status=409)
    assert judge.say(skipped["id"], "b") == {"question": skipped["id"], "answer": "b", "turn": 1}
    assert judge.say(skipped["id"], "b")["turn"] == 1
    assert judge.say(skipped["id"], "skip")["turn"] == 0  # the first request, sent again
    desk.planner.round()
    assert desk.get(f"/studies/{one}")["answers"] == 1
    assert well(desk)


def test_undo_until_the_stage_is_evaluated(desk: InProcessService) -> None:
    one = desk.begin()
    judge = desk.judge(one)
    judge.undo(status=404)
    first, second = judge.take(2)["questions"]
    judge.say(second["id"], "a")
    desk.planner.round()  # filed, but the stage before it is open
    assert judge.undo() == {"question": second["id"], "turn": 2}
    assert judge.undo(question=second["id"]) == {"question": second["id"], "turn": 2}
    judge.undo(status=409)
    judge.say(second["id"], "a", status=409)  # an old request that arrives now
    assert [each["turn"] for each in judge.take(2)["questions"]] == [0, 2]
    desk.planner.round()
    assert desk.get(f"/studies/{one}")["answers"] == 0
    assert judge.say(second["id"], "b", turn=2)["turn"] == 2
    assert judge.say(second["id"], "a", turn=0)["turn"] == 0
    judge.undo(status=409, question=first["id"])
    judge.say(first["id"], "tie")
    assert judge.undo()["question"] == first["id"]  # ties and skips too
    judge.say(first["id"], "a", turn=2)
    desk.planner.round()
    assert "evaluated" in judge.undo(status=409)["detail"]
    assert desk.get(f"/studies/{one}")["answers"] == 2
    assert well(desk)


def test_states(desk: InProcessService) -> None:
    one = desk.begin()
    judge = desk.judge(one)
    question = judge.take(1)["questions"][0]
    desk.post(f"/studies/{one}/state", {"state": "paused"})
    paused = judge.take(2)
    assert (paused["questions"], paused["open"]) == ([], True)
    judge.say(question["id"], "a")
    desk.post(f"/studies/{one}/state", {"state": "running"})
    question = judge.take(1)["questions"][0]
    desk.post(f"/studies/{one}/state", {"state": "archived"}, status=409)
    desk.post(f"/studies/{one}/state", {"state": "closed"})
    assert judge.take(1)["open"] is False
    judge.say(question["id"], "a", status=409)
    desk.post(f"/studies/{one}/state", {"state": "archived"})
    assert desk.get("/studies") == []
    assert [each["id"] for each in desk.get("/studies?archived=true")] == [one]


def test_revoked_and_deleted_judges(desk: InProcessService) -> None:
    one = desk.begin(**QUICK)
    jo, flo = desk.judge(one), desk.judge(one, "Flo Secret")
    for judge in (jo, flo):
        judge.say(judge.take(1)["questions"][0]["id"], "a")
    question = flo.take(1)["questions"][0]
    desk.planner.round()
    assert observe(desk.service.database, lambda: desk.now)
    assert flo.id in str(desk.get(f"/studies/{one}"))
    desk.post(f"/studies/{one}/judges/{flo.id}/revoke")
    flo.take(status=403)
    flo.say(question["id"], "a", status=403)
    flo.undo(status=403)
    reply = desk.client.delete(f"/studies/{one}/judges/{flo.id}", headers=ADMIN)
    assert "certificate" in reply.json()["consequence"]
    everything = "".join(
        desk.client.get(f"/studies/{one}/export?what={what}&format=jsonl", headers=ADMIN).text
        for what in ("answers", "events", "result")
    )
    assert flo.id not in everything
    assert flo.id not in str(desk.get(f"/studies/{one}"))
    assert observe(desk.service.database, lambda: desk.now)  # anew, without him
    assert flo.id not in str(desk.get(f"/studies/{one}"))
    assert "Flo Secret" not in str(desk.get(f"/studies/{one}/judges"))
    flo.take(status=404)
    jo.work()
    assert desk.get(f"/studies/{one}/result")["status"] == "certain"
    assert well(desk)


def test_items_change_midway_in_a_new_phase(desk: InProcessService) -> None:
    one = desk.begin()
    judge = desk.judge(one)
    old = judge.take(1)["questions"][0]
    judge.say(judge.take(2)["questions"][1]["id"], "a")
    desk.planner.round()
    change = {"add": [{"name": "grey", "features": [0.1, 0.1]}], "remove": ["green"]}
    reply = desk.post(f"/studies/{one}/items", change)
    assert reply["phase"] == 1
    assert "anew" in reply["consequence"]
    desk.post(f"/studies/{one}/items", change, status=404)
    desk.post(f"/studies/{one}/items", {"add": change["add"]}, status=409)
    desk.planner.round()
    shown = desk.get(f"/studies/{one}")
    assert (shown["answers"], [item["name"] for item in shown["items"]]) == (0, ["red", "blue", "grey"])
    judge.say(old["id"], "a")  # of the phase before: stored, without effect
    desk.planner.round()
    assert desk.get(f"/studies/{one}")["answers"] == 0
    asked = {each[side]["name"] for each in judge.take(3)["questions"] for side in ("a", "b")}
    assert "green" not in asked
    assert well(desk)


@pytest.mark.parametrize("kind", ["items", "both"])
def test_other_kinds_of_questions(desk: InProcessService, kind: str) -> None:
    one = desk.begin(kind=kind, items=[{"name": "x"}, {"name": "y"}])
    judge = desk.judge(one)
    count = 0
    for _ in range(4):
        for question in judge.take(2)["questions"]:
            assert kind == "both" or question["b"] is None
            assert question["answers"] == (
                ["yes", "no", "skip"] if question["b"] is None else ["a", "b", "tie", "skip"]
            )
            judge.say(question["id"], question["answers"][0])
            count += 1
        desk.planner.round()
    assert desk.get(f"/studies/{one}")["answers"] == count
    assert well(desk)


def test_a_policy_that_waits_goes_on_when_answers_come(desk: InProcessService) -> None:
    one = desk.begin(policy="rage-glm", options={"kappa": 0.1}, epsilon=2.0)
    judge = desk.judge(one)
    taken = judge.take(100)
    assert taken["questions"]
    for question in taken["questions"]:
        judge.say(question["id"], judge.prefers(question))
    desk.planner.round()
    assert judge.take(2)["questions"]
    assert well(desk)


def test_a_restarted_process_goes_on_where_the_first_stopped(desk: InProcessService, database_url: str) -> None:
    one = desk.begin(**QUICK)
    judge = desk.judge(one)
    judge.work(4)
    question = judge.take(1)["questions"][0]
    judge.say(question["id"], "a")  # acknowledged, not filed
    again = InProcessService(database_url)
    again.now = desk.now + 10  # the first planner's lease has run out
    judge.desk = again
    assert judge.say(question["id"], "a")["answer"] == "a"
    judge.work()
    assert again.get(f"/studies/{one}/result")["status"] == "certain"
    assert not desk.planner.round()  # overtaken: it leaves the study alone
    assert well(again)
    again.close()


def test_two_processes_share_the_work(desk: InProcessService, database_url: str) -> None:
    other = InProcessService(database_url)
    other.now = desk.now
    one = desk.begin(**QUICK)
    jo, flo = desk.judge(one), desk.judge(one, "flo")
    flo.desk = other
    question = jo.take(1)["questions"][0]
    jo.say(question["id"], "a")
    jo.desk = other
    assert jo.say(question["id"], "a")["turn"] == 0
    jo.say(question["id"], "b", status=409)
    for _ in range(200):
        other.now = desk.now = max(desk.now, other.now)
        open_still = False
        for judge in (jo, flo):
            taken = judge.take(2)
            open_still |= taken["open"]
            for each in taken["questions"]:
                judge.say(each["id"], judge.prefers(each))
        desk.planner.round()
        other.planner.round()
        if not open_still:
            break
    assert desk.get(f"/studies/{one}/result")["status"] == "certain"
    assert well(desk)
    other.close()


def test_health_and_description(desk: InProcessService) -> None:
    health = desk.client.get("/health").json()
    assert health["status"] == "ok"
    page = desk.client.get("/docs")
    assert "/studies/{study}/answers" in page.text
    assert "http" not in page.text  # nothing from elsewhere
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_uploads_and_exports(desk: InProcessService) -> None:
    table = "item,label,colour,warm,cold\nred,=1+1,#f00,1,0\nblue,+Blue,blue,0,1\n"
    reply = desk.client.post(
        "/studies/upload",
        headers=ADMIN,
        files={"items": ("colours.csv", table)},
        data={"settings": '{"title": "from a file", "seed": 3}'},
    )
    assert reply.status_code == 201, reply.text
    one = reply.json()["id"]
    desk.planner.round()
    judge = desk.judge(one)
    shown = judge.take(1)["questions"][0]
    assert {shown["a"]["label"], shown["b"]["label"]} == {"=1+1", "+Blue"}
    judge.say(shown["id"], "a")
    desk.planner.round()
    for what in ("answers", "events", "result", "certificate"):
        for form in ("csv", "jsonl", "parquet"):
            got: Any = desk.client.get(f"/studies/{one}/export?what={what}&format={form}", headers=ADMIN)
            assert got.status_code == 200
            assert bool(got.content) or what == "certificate"
    csv = desk.client.get(f"/studies/{one}/export?what=answers&format=csv", headers=ADMIN).text
    assert csv.splitlines()[0].startswith("item_a,item_b,winner,item,answer,judge,ts,question")
    assert study()["title"] == "colours"
