"""The service over HTTP, on SQLite and PostgreSQL alike."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from in_process_service import ADMIN, InProcessService, study
from surepick import verify_certificate
from surepick.service.dashboard_worker import update_insights
from surepick.store.verify import verify

QUICK = {"policy": "posterior"}
"""A study that stops early: what is tested is not the proof."""


@pytest.fixture
def service(database_url: str) -> Iterator[InProcessService]:
    made = InProcessService(database_url)
    yield made
    made.close()


def well(service: InProcessService) -> bool:
    """Whether the tables agree with the logs."""
    wrong = [sentence for report in verify(service.parts.database) for sentence in report.wrong]
    assert wrong == []
    return True


def test_a_study_that_assumes_only_a_winner_is_certified_and_chained(service: InProcessService) -> None:
    one = service.begin(delta=0.2, policy="winner")
    service.judge(one).work()
    result = service.get(f"/studies/{one}/result")
    checked = verify_certificate(result["certificate"])
    assert (checked.claim, checked.best, result["policy"]) == ("winner", result["best"], "winner")
    (report,) = verify(service.parts.database)
    assert (report.chain, report.wrong) == ("chained", [])
    events = service.client.get(f"/studies/{one}/export?what=events&format=jsonl", headers=ADMIN).text
    assert checked.link is not None
    assert checked.link in events


def test_one_persons_favourite_is_found_by_the_claim_about_a_population(service: InProcessService) -> None:
    one, other = (service.begin(delta=0.2, assume=claim, repeats="independent") for claim in ("population", "winner"))
    for study_id in (one, other):
        service.judge(study_id).work()
    result, winner = (service.get(f"/studies/{study_id}/result") for study_id in (one, other))
    assert (result["policy"], result["best"], result["status"]) == ("posterior", "red", "certain")
    assert any("Tastes are drawn from this population" in sentence for sentence in result["assumptions"])
    assert result["questions"] < winner["questions"]
    assert well(service)


def test_a_judge_answers_to_the_verdict(service: InProcessService) -> None:
    one = service.begin(delta=0.2)
    assert service.get(f"/studies/{one}/result")["status"] == "open"
    judge = service.judge(one)
    answers = judge.work()
    result = service.get(f"/studies/{one}/result")
    wanted = "best status delta epsilon questions evidence rivals seconds policy guarantee certificate"
    assert set(wanted.split()) <= set(result)
    assert (result["best"], result["status"], result["guarantee"]) == ("red", "certain", "proved")
    assert result["questions"] <= answers
    assert verify_certificate(result["certificate"]).best == "red"
    assert judge.lease()["questions"] == []
    shown = service.get(f"/studies/{one}")
    assert shown["answers"] == answers
    assert [item["name"] for item in shown["items"]] == ["red", "green", "blue"]
    assert update_insights(service.parts.database)
    assert service.get(f"/studies/{one}")["forecast"] is None
    insight = service.get(f"/studies/{one}")["insight"]
    assert insight["scores"][0]["item"] == "red"
    assert insight["judges"][judge.id]["answers"] == answers
    assert insight["judges"][judge.id]["agreement"] > 0.6
    assert sum(insight["asked"].values()) == 2 * answers
    assert {check["name"] for check in insight["checks"]} >= {"misfit", "position"}
    assert not update_insights(service.parts.database)
    history = service.get(f"/studies/{one}/history")
    assert history[-1]["status"] == "certain"
    assert [entry["answers"] for entry in history] == sorted(entry["answers"] for entry in history)
    assert well(service)


def test_the_same_answer_again_is_the_same_and_another_is_refused(service: InProcessService) -> None:
    one = service.begin()
    judge = service.judge(one)
    question = judge.lease()["questions"][0]
    first = judge.answer(question["id"], "a")
    told = {"question": question["id"], "answer": "a", "turn": 0, "late": False}
    assert judge.answer(question["id"], "a") == first == told
    assert "undo" in judge.answer(question["id"], "b", status=409)["detail"]
    judge.answer(question["id"], "skip", status=409)
    service.planner.round()
    assert judge.answer(question["id"], "a") == first
    judge.answer(question["id"], "tie", status=409)
    service.planner.round()
    assert service.get(f"/studies/{one}")["answers"] == 1
    assert well(service)


def test_questions_belong_to_the_judge_they_were_handed_to(service: InProcessService) -> None:
    one, other = service.begin(), service.begin()
    jo, flo, stranger = service.judge(one), service.judge(one, "flo"), service.judge(other)
    mine = jo.lease(2)["questions"]
    assert [each["id"] for each in jo.lease(2)["questions"]] == [each["id"] for each in mine]  # a page reloaded
    assert not {each["id"] for each in flo.lease(2)["questions"]} & {each["id"] for each in mine}
    flo.answer(mine[0]["id"], "a", status=404)
    stranger.answer(mine[0]["id"], "a", status=404)
    jo.answer("nosuchquestion", "a", status=404)
    jo.answer(mine[0]["id"], "yes", status=422)
    # A link of one study opens no other.
    service.post(f"/studies/{other}/questions", headers=jo.headers, status=401)
    service.planner.round()
    assert service.get(f"/studies/{one}")["answers"] == 0
    assert well(service)


def test_an_expired_question_is_not_waited_for_and_its_late_answer_does_not_count(
    service: InProcessService,
) -> None:
    one = service.begin(lease=60)
    assert service.get(f"/studies/{service.begin()}")["lease"] == 120  # unless told otherwise
    jo, flo = service.judge(one), service.judge(one, "flo")
    late = jo.lease(1)["questions"][0]
    for question in flo.lease(2)["questions"]:
        flo.answer(question["id"], flo.prefers(question))
    service.planner.round()
    held_up = service.get(f"/studies/{one}")
    assert (held_up["waiting"], held_up["verdict"]) == (1, None)  # nothing after an open stage is evaluated
    service.now += 61
    service.planner.round()
    given_up = service.get(f"/studies/{one}")
    assert (given_up["waiting"], given_up["verdict"]["status"], given_up["verdict"]["questions"]) == (0, "open", 2)
    assert jo.lease(1)["questions"][0]["id"] != late["id"]  # a new question is asked
    shown, evidence = service.get(f"/studies/{one}/result"), service.get(f"/studies/{one}/history")[-1]["evidence"]
    told = {"question": late["id"], "answer": "a", "turn": 0, "late": True}
    assert jo.answer(late["id"], "a") == told
    flo.answer(flo.lease(1)["questions"][0]["id"], "a")
    service.now += 61  # whatever else is held expires, so that there is something to evaluate
    service.planner.round()
    assert jo.answer(late["id"], "a") == told  # sent again
    assert service.get(f"/studies/{one}")["answers"] == 4
    after = service.get(f"/studies/{one}/result")
    assert after["questions"] == shown["questions"] + 1  # flo's
    assert evidence != service.get(f"/studies/{one}/history")[-1]["evidence"]
    exported = service.client.get(f"/studies/{one}/export?what=answers&format=jsonl", headers=ADMIN).text
    assert [json.loads(line)["late"] for line in exported.splitlines()] == [False, False, True, False]
    assert well(service)


def test_a_page_that_nobody_sits_at_does_not_hold_up_the_others_for_ever(service: InProcessService) -> None:
    one = service.begin(lease=60, budget=5)
    away, flo = service.judge(one, "away"), service.judge(one, "flo")
    first = service.now
    held = away.lease(2)["questions"]
    assert [question["expires"] for question in held] == [first + 60] * 2
    flo.work(3)
    while service.now < first + 590:
        assert [question["id"] for question in away.lease(2)["questions"]] == [question["id"] for question in held]
        service.planner.round()
        waits = {"questions": [], "open": True, "exhausted": False, "answered": 3, "remaining": None}
        assert flo.lease(1) | {"remaining": None} == waits
        service.now += 20
    assert [question["expires"] for question in away.lease(2)["questions"]] == [first + 600] * 2
    service.now = first + 601
    service.planner.round()
    assert not flo.lease(1)["open"]
    result = service.get(f"/studies/{one}/result")
    assert (result["status"], result["questions"]) == ("budget spent", 3)
    assert well(service)


def test_skip_tie_and_an_answer_after_a_skip(service: InProcessService) -> None:
    one = service.begin()
    judge = service.judge(one)
    skipped, tied = judge.lease(2)["questions"]
    judge.answer(skipped["id"], "skip")
    judge.answer(tied["id"], "tie")
    judge.answer(tied["id"], "a", status=409)
    judge.answer(skipped["id"], "tie", status=409)
    told = {"question": skipped["id"], "answer": "b", "turn": 1, "late": False}
    assert judge.answer(skipped["id"], "b") == told
    assert judge.answer(skipped["id"], "b")["turn"] == 1
    assert judge.answer(skipped["id"], "skip")["turn"] == 0  # the first request, sent again
    service.planner.round()
    assert service.get(f"/studies/{one}")["answers"] == 1
    assert well(service)


def test_undo_until_the_stage_is_evaluated(service: InProcessService) -> None:
    one = service.begin()
    judge = service.judge(one)
    judge.undo(status=404)
    first, second = judge.lease(2)["questions"]
    judge.answer(second["id"], "a")
    service.planner.round()  # in the log, but the stage before it is open
    assert judge.undo() == {"question": second["id"], "turn": 2}
    assert judge.undo(question=second["id"]) == {"question": second["id"], "turn": 2}
    judge.undo(status=409)
    judge.answer(second["id"], "a", status=409)  # an old request that arrives now
    assert [each["turn"] for each in judge.lease(2)["questions"]] == [0, 2]
    service.planner.round()
    assert service.get(f"/studies/{one}")["answers"] == 0
    assert judge.answer(second["id"], "b", turn=2)["turn"] == 2
    assert judge.answer(second["id"], "a", turn=0)["turn"] == 0
    judge.undo(status=409, question=first["id"])
    judge.answer(first["id"], "tie")
    assert judge.undo()["question"] == first["id"]  # ties and skips too
    judge.answer(first["id"], "a", turn=2)
    service.planner.round()
    assert "evaluated" in judge.undo(status=409)["detail"]
    assert service.get(f"/studies/{one}")["answers"] == 2
    assert well(service)


def test_states(service: InProcessService) -> None:
    one = service.begin()
    judge = service.judge(one)
    question = judge.lease(1)["questions"][0]
    service.post(f"/studies/{one}/state", {"state": "paused"})
    paused = judge.lease(2)
    assert (paused["questions"], paused["open"]) == ([], True)
    judge.answer(question["id"], "a")
    service.post(f"/studies/{one}/state", {"state": "running"})
    question = judge.lease(1)["questions"][0]
    service.post(f"/studies/{one}/state", {"state": "archived"}, status=409)
    service.post(f"/studies/{one}/state", {"state": "closed"})
    assert judge.lease(1)["open"] is False
    judge.answer(question["id"], "a", status=409)
    service.post(f"/studies/{one}/state", {"state": "archived"})
    assert service.get("/studies") == []
    assert [each["id"] for each in service.get("/studies?archived=true")] == [one]


def test_revoked_and_deleted_judges(service: InProcessService) -> None:
    one = service.begin(**QUICK)
    jo, flo = service.judge(one), service.judge(one, "Flo Secret")
    for judge in (jo, flo):
        judge.answer(judge.lease(1)["questions"][0]["id"], "a")
    question = flo.lease(1)["questions"][0]
    service.planner.round()
    service.get(f"/studies/{one}")  # whoever looks at it has it computed
    assert update_insights(service.parts.database)
    assert flo.id in str(service.get(f"/studies/{one}"))
    service.post(f"/studies/{one}/judges/{flo.id}/revoke")
    flo.lease(status=403)
    flo.answer(question["id"], "a", status=403)
    flo.undo(status=403)
    reply = service.client.delete(f"/studies/{one}/judges/{flo.id}", headers=ADMIN)
    assert "certificate" in reply.json()["consequence"]
    everything = "".join(
        service.client.get(f"/studies/{one}/export?what={what}&format=jsonl", headers=ADMIN).text
        for what in ("answers", "events", "result")
    )
    assert flo.id not in everything
    assert flo.id not in str(service.get(f"/studies/{one}"))
    assert update_insights(service.parts.database)  # computed again, without this judge
    assert flo.id not in str(service.get(f"/studies/{one}"))
    assert "Flo Secret" not in str(service.get(f"/studies/{one}/judges"))
    flo.lease(status=404)
    jo.work()
    assert service.get(f"/studies/{one}/result")["status"] == "certain"
    assert well(service)


def test_items_change_midway_in_a_new_phase(service: InProcessService) -> None:
    one = service.begin()
    judge = service.judge(one)
    old = judge.lease(1)["questions"][0]
    judge.answer(judge.lease(2)["questions"][1]["id"], "a")
    service.planner.round()
    change = {"add": [{"name": "grey", "features": [0.1, 0.1]}], "remove": ["green"]}
    reply = service.post(f"/studies/{one}/items", change)
    assert reply["phase"] == 1
    assert "from the start" in reply["consequence"]
    service.post(f"/studies/{one}/items", change, status=404)
    service.post(f"/studies/{one}/items", {"add": change["add"]}, status=409)
    service.planner.round()
    shown = service.get(f"/studies/{one}")
    assert (shown["answers"], [item["name"] for item in shown["items"]]) == (0, ["red", "blue", "grey"])
    assert judge.answer(old["id"], "a")["late"]  # of the phase before: stored, without effect
    service.planner.round()
    assert service.get(f"/studies/{one}")["answers"] == 0
    asked = {each[side]["name"] for each in judge.lease(3)["questions"] for side in ("a", "b")}
    assert "green" not in asked
    assert well(service)


@pytest.mark.parametrize("kind", ["items", "both"])
def test_other_kinds_of_questions(service: InProcessService, kind: str) -> None:
    one = service.begin(kind=kind, items=[{"name": "x"}, {"name": "y"}])
    judge = service.judge(one)
    count = 0
    for _ in range(4):
        for question in judge.lease(2)["questions"]:
            assert kind == "both" or question["b"] is None
            assert question["answers"] == (
                ["yes", "no", "skip"] if question["b"] is None else ["a", "b", "tie", "skip"]
            )
            judge.answer(question["id"], question["answers"][0])
            count += 1
        service.planner.round()
    assert service.get(f"/studies/{one}")["answers"] == count
    assert well(service)


def test_a_policy_that_waits_goes_on_when_answers_come(service: InProcessService) -> None:
    one = service.begin(policy="rage-glm", options={"kappa": 0.1}, epsilon=2.0)
    judge = service.judge(one)
    taken = judge.lease(100)
    assert taken["questions"]
    for question in taken["questions"]:
        judge.answer(question["id"], judge.prefers(question))
    service.planner.round()
    assert judge.lease(2)["questions"]
    assert well(service)


def test_a_restarted_process_goes_on_where_the_first_stopped(service: InProcessService, database_url: str) -> None:
    one = service.begin(**QUICK)
    judge = service.judge(one)
    judge.work(4)
    question = judge.lease(1)["questions"][0]
    judge.answer(question["id"], "a")  # acknowledged, not in the log
    again = InProcessService(database_url)
    again.now = service.now + 10  # the first planner's lease has run out
    judge.service = again
    assert judge.answer(question["id"], "a")["answer"] == "a"
    judge.work()
    assert again.get(f"/studies/{one}/result")["status"] == "certain"
    assert not service.planner.round()  # overtaken: it leaves the study alone
    assert well(again)
    again.close()


def test_two_processes_share_the_work(service: InProcessService, database_url: str) -> None:
    other = InProcessService(database_url)
    other.now = service.now
    one = service.begin(**QUICK)
    jo, flo = service.judge(one), service.judge(one, "flo")
    flo.service = other
    question = jo.lease(1)["questions"][0]
    jo.answer(question["id"], "a")
    jo.service = other
    assert jo.answer(question["id"], "a")["turn"] == 0
    jo.answer(question["id"], "b", status=409)
    for _ in range(200):
        other.now = service.now = max(service.now, other.now)
        open_still = False
        for judge in (jo, flo):
            taken = judge.lease(2)
            open_still |= taken["open"]
            for each in taken["questions"]:
                judge.answer(each["id"], judge.prefers(each))
        service.planner.round()
        other.planner.round()
        if not open_still:
            break
    assert service.get(f"/studies/{one}/result")["status"] == "certain"
    assert well(service)
    other.close()


def test_health_and_description(service: InProcessService) -> None:
    health = service.client.get("/health").json()
    assert health["status"] == "ok"
    page = service.client.get("/docs")
    assert "/studies/{study}/answers" in page.text
    assert "http" not in page.text  # nothing from elsewhere
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_uploads_and_exports(service: InProcessService) -> None:
    table = "item,label,colour,warm,cold\nred,=1+1,#f00,1,0\nblue,+Blue,blue,0,1\n"
    reply = service.client.post(
        "/studies/upload",
        headers=ADMIN,
        files={"items": ("colours.csv", table)},
        data={"settings": '{"title": "from a file", "seed": 3}'},
    )
    assert reply.status_code == 201, reply.text
    one = reply.json()["id"]
    service.planner.round()
    judge = service.judge(one)
    shown = judge.lease(1)["questions"][0]
    assert {shown["a"]["label"], shown["b"]["label"]} == {"=1+1", "+Blue"}
    judge.answer(shown["id"], "a")
    service.planner.round()
    for what in ("answers", "events", "result", "certificate"):
        for form in ("csv", "jsonl", "parquet"):
            got: Any = service.client.get(f"/studies/{one}/export?what={what}&format={form}", headers=ADMIN)
            assert got.status_code == 200
            assert bool(got.content) or what == "certificate"
    csv = service.client.get(f"/studies/{one}/export?what=answers&format=csv", headers=ADMIN).text
    assert csv.splitlines()[0].startswith("item_a,item_b,winner,item,answer,judge,ts,question")
    assert study()["title"] == "colours"


def test_a_study_that_is_created_again_with_the_same_key_is_the_first(service: InProcessService) -> None:
    key = {**ADMIN, "Idempotency-Key": "monday-1"}
    first = service.post("/studies", study(), key, 201)
    assert service.post("/studies", study(), key, 201) == first
    assert "another request" in service.post("/studies", study(title="other"), key, 422)["detail"]
    assert service.post("/studies", study(), {**ADMIN, "Idempotency-Key": "monday-2"}, 201) != first
    table = {"items": ("a.csv", b"item,warm\nred,1\nblue,0\n")}
    made = [
        service.client.post("/studies/upload", files=table, data={"settings": '{"title": "t"}'}, headers=headers).json()
        for headers in ({**ADMIN, "Idempotency-Key": "monday-3"},) * 2
    ]
    assert made[0] == made[1]
    assert len(service.get("/studies")) == 3
    service.now += 90_000.0  # a day later the key is new
    assert service.post("/studies", study(), key, 201) != first


def test_a_refused_study_leaves_its_key_free(service: InProcessService) -> None:
    key = {**ADMIN, "Idempotency-Key": "k"}
    service.post("/studies", study(items=[{"name": "only"}]), key, 422)
    assert service.post("/studies", study(), key, 201)
