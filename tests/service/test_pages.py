"""The pages without a browser: who gets which, what a link is for, and the forecast that judges see."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from in_process_service import ADMIN, LIKING, TOKEN, InProcessService
from surepick import verify_certificate
from surepick.identify import Forecast
from surepick.service.dashboard_worker import update_forecasts, update_insights
from surepick.session import Session


@pytest.fixture
def service(tmp_path: Path) -> Iterator[InProcessService]:
    made = InProcessService(f"sqlite:///{tmp_path}/studies.db")
    yield made
    made.close()


def page(service: InProcessService, path: str, cookie: str = "") -> str:
    reply = service.client.get(path, headers={"Cookie": cookie} if cookie else {})
    assert reply.status_code == 200
    assert "script-src 'self'" in reply.headers["content-security-policy"]
    return reply.text


def log_in(service: InProcessService) -> str:
    reply = service.client.post("/login", json={"token": TOKEN})
    return str(reply.headers["set-cookie"].split(";")[0])


def test_the_admins_pages_are_for_the_admin(service: InProcessService) -> None:
    study = service.begin(title="a secret title")
    parts = ("", "/change", "/result", "/certificate.json")
    paths = ["/", "/new", *(f"/study/{study}{part}" for part in parts)]
    for path in paths:
        shown = page(service, path)
        assert "Log in" in shown
        assert "a secret title" not in shown
        assert "Log in" in page(service, path, "surepick_admin=forged")
    cookie = log_in(service)
    assert "a secret title" in page(service, "/", cookie)
    assert "Start the study" in page(service, "/new", cookie)
    assert f'data-study="{study}"' in page(service, f"/study/{study}", cookie)
    assert service.client.get("/study/nosuchstudy", headers={"Cookie": cookie}).status_code == 404


def test_a_person_gets_a_page_and_a_program_json_where_there_is_nothing(service: InProcessService) -> None:
    browser = {"Cookie": log_in(service), "Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for path in ("/study/nosuchstudy", "/study/nosuchstudy/result", "/study/nosuchstudy/change", "/nothing"):
        reply = service.client.get(path, headers=browser)
        assert reply.status_code == 404
        assert reply.headers["content-type"].startswith("text/html")
        assert "Not found" in reply.text
        assert "There is no" in reply.text
        assert 'href="/"' in reply.text
        reply = service.client.get(path, headers={**browser, "Accept": "*/*"})
        assert (reply.status_code, list(reply.json())) == (404, ["detail"])
    reply = service.client.get("/study/%3Cscript%3E", headers=browser)
    assert reply.status_code == 422
    assert "&lt;script&gt;" in reply.text
    reply = service.client.get("/studies", headers={"Accept": "text/html", "Authorization": "Bearer forged"})
    assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")


def test_the_consequences_of_changes_are_stated_beforehand(service: InProcessService) -> None:
    study = service.begin(title="Which?")
    cookie = log_in(service)
    judge = service.judge(study, "Flo Secret")
    judge.work(2)
    shown = page(service, f"/study/{study}/change", cookie)
    assert "its name and 2 features" in shown
    assert "evidence about the items is gathered from the start" in shown
    assert "all 2 answers of this phase" in shown
    assert "certificate use counts only and stay valid" in shown
    assert all(f'value="{name}"' in shown for name in ("red", "green", "blue", judge.id))
    service.client.delete(f"/studies/{study}/judges/{judge.id}", headers=ADMIN)
    shown = page(service, f"/study/{study}/change", cookie)
    assert "Flo Secret" not in shown
    assert "deleted-" not in shown
    assert "No judge whose data could be deleted." in shown


def test_the_result_names_what_is_promised_and_gives_the_certificate(service: InProcessService) -> None:
    study = service.begin(delta=0.1, epsilon=1.0)
    cookie = log_in(service)
    assert "No answers yet" in page(service, f"/study/{study}/result", cookie)
    assert service.client.get(f"/study/{study}/certificate.json", headers={"Cookie": cookie}).status_code == 404
    judge = service.judge(study)
    judge.work()
    assert judge.lease()["remaining"] == 0
    shown = page(service, f"/study/{study}/result", cookie)
    assert "red is the best, or within 1 of it" in shown
    assert "Worse than the best by more than 1 in at most 1 of 10 such searches, if " in shown
    assert "There is one common taste throughout." in shown
    assert "surepick verify-certificate certificate.json" in shown
    assert "does not prove that the predictions were made before the answers" in shown
    assert verify_certificate(json.loads(page(service, f"/study/{study}/certificate.json", cookie))).best == "red"


@pytest.mark.parametrize("missing", ["charged", "ignorable"])
def test_pages_say_on_what_condition_their_intervals_hold(service: InProcessService, missing: str) -> None:
    study = service.begin(policy="anytime", options={"missing": missing})
    service.judge(study).work(6)
    service.planner.round()
    service.get(f"/studies/{study}")
    assert update_insights(service.parts.database)
    note = service.get(f"/studies/{study}")["insight"]["scores_note"]  # what the dashboard shows below its intervals
    assert ("whatever the reason why answers are missing" in note) == (missing == "charged")
    assert ("if whether an answer comes depends neither on what it would have been" in note) != (missing == "charged")
    assert "These are two claims" in note
    assert note in page(service, f"/study/{study}/result", log_in(service))


def test_what_a_link_is_for(service: InProcessService) -> None:
    study = service.begin(title="Which colour?")
    judge = service.judge(study, "Jo")

    def invitation(status: int = 200) -> dict[str, object]:
        reply = service.client.get("/judge/invitation", headers=judge.headers)
        assert reply.status_code == status
        return dict(reply.json())

    assert invitation() == {
        "study": study,
        "title": "Which colour?",
        "state": "running",
        "name": "Jo",
        "answers": 0,
        "instructions": "",
    }
    first, second = judge.lease(2)["questions"]
    judge.answer(first["id"], "tie")
    judge.answer(second["id"], "a")
    assert invitation()["answers"] == 2
    judge.undo()
    assert invitation()["answers"] == 1
    judge.answer(second["id"], "skip", turn=2)
    assert invitation()["answers"] == 1
    service.post(f"/studies/{study}/state", {"state": "paused"})
    assert invitation()["state"] == "paused"
    service.post(f"/studies/{study}/state", {"state": "closed"})
    assert invitation()["state"] == "over"
    service.post(f"/studies/{study}/judges/{judge.id}/revoke")
    assert "revoked" in str(invitation(403)["detail"])
    judge.headers = {"Authorization": "Bearer forged"}
    assert "has not expired" in str(invitation(401)["detail"])


def test_judges_learn_about_how_many_more(service: InProcessService, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = Forecast("anytime", np.arange(30, 120, 10), np.zeros(9, dtype=np.bool_), 9, 0)
    monkeypatch.setattr(Session, "forecast", lambda session: simulated)  # simulating is tested elsewhere, and slow
    study = service.begin(delta=0.2, epsilon=1.0)
    judge = service.judge(study)
    assert judge.lease()["remaining"] is None
    judge.work(4)
    assert update_forecasts(service.parts.database)
    assert service.get(f"/studies/{study}")["forecast"] is None  # too early to say anything
    assert not update_forecasts(service.parts.database)
    judge.work(2)
    assert update_forecasts(service.parts.database)
    assert service.get(f"/studies/{study}")["forecast"] == {"low": 30, "further": 70, "high": 110}
    assert judge.lease()["remaining"] == 70
    assert not update_forecasts(service.parts.database)  # it is fresh
    judge.work(1, n=1)
    assert judge.lease()["remaining"] == 69


def answer_as_all(service: InProcessService, study: str, name: str) -> None:
    """A judge who never errs answers everything that helps."""
    judge = service.judge(study, name)
    judge.lease()
    service.planner.round()
    while asked := judge.lease()["questions"]:
        better = max("ab", key=lambda side: LIKING[asked[0][side]["name"]])
        judge.answer(asked[0]["id"], better)
        service.planner.round()
        judge.lease()
        service.planner.round()


def test_the_dashboard_says_how_many_judges_it_takes(service: InProcessService) -> None:
    study = service.begin(policy="winner", repeats="once", items=[{"name": name} for name in LIKING])
    update_forecasts(service.parts.database)
    before = service.get(f"/studies/{study}")["judges_needed"]
    assert before["sentence"].startswith(f"If all agree, about {before['more']} judges are needed")
    assert "5 with delta 0.2" in before["fewer"]
    for name in ("Ann", "Ben", "Cleo"):
        answer_as_all(service, study, name)
        service.now += 10
        update_insights(service.parts.database)
        update_forecasts(service.parts.database)
    after = service.get(f"/studies/{study}")
    assert after["verdict"]["status"] == "open"
    assert 2 <= after["judges_needed"]["more"] <= before["more"] - 2  # 3 nats in all; three answers are worth 2.1
    assert f"about {after['judges_needed']['more']} more judges are needed" in after["judges_needed"]["sentence"]
    for number in range(after["judges_needed"]["more"]):
        answer_as_all(service, study, f"further {number}")
    done = service.get(f"/studies/{study}")
    assert (done["verdict"]["status"], done["verdict"]["best"]) == ("certain", "red")  # as many as it said
    assert done["judges_needed"] is None


def test_what_was_done_to_the_items_is_kept_with_the_study(service: InProcessService) -> None:
    table = "item,size,kind\nred,1,soft\ngreen,2,hard\nblue,3,soft\n"
    files = {"items": ("shoes.csv", table.encode(), "text/csv")}
    made = service.client.post(
        "/studies/upload", headers=ADMIN, files=files, data={"settings": '{"title": "shoes"}'}
    ).json()
    said = service.get(f"/studies/{made['id']}")["prepared"]
    assert said == made["prepare"]["steps"]
    assert any("kind" in sentence for sentence in said)
    twins = [{"name": name, "features": [float(name != "red"), 1.0 - (name != "red")]} for name in LIKING]
    study = service.post("/studies", {"title": "colours", "items": twins}, status=201)
    assert study["prepare"]["merged"] == [["green", "blue"]]
    assert service.get(f"/studies/{study['id']}")["prepared"] == [
        "Equal features, so one item to every question: 'green', 'blue'."
    ]


def test_the_list_names_no_leader_before_the_first_answer(service: InProcessService) -> None:
    study, cookie = service.begin(title="Which colour?"), log_in(service)
    judge = service.judge(study)
    judge.answer(judge.lease()["questions"][0]["id"], "skip")
    service.now += 10
    service.planner.round()
    assert service.get(f"/studies/{study}")["verdict"]["best"] == "red"
    assert "leading:" not in page(service, "/", cookie)
    judge.work(4)
    service.now += 10
    service.planner.round()
    assert "leading:" in page(service, "/", cookie)
