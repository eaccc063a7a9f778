"""The pages without a browser: who gets which, what a link is for, and the forecast that judges see."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from in_process_service import ADMIN, TOKEN, InProcessService
from surepick import verify_certificate
from surepick.identify import Forecast
from surepick.service.dashboard_worker import foresee
from surepick.session import Session


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[InProcessService]:
    made = InProcessService(f"sqlite:///{tmp_path}/studies.db")
    yield made
    made.close()


def page(desk: InProcessService, path: str, cookie: str = "") -> str:
    reply = desk.client.get(path, headers={"Cookie": cookie} if cookie else {})
    assert reply.status_code == 200
    assert "script-src 'self'" in reply.headers["content-security-policy"]
    return reply.text


def log_in(desk: InProcessService) -> str:
    reply = desk.client.post("/login", json={"token": TOKEN})
    return str(reply.headers["set-cookie"].split(";")[0])


def test_the_admins_pages_are_for_the_admin(desk: InProcessService) -> None:
    study = desk.begin(title="a secret title")
    parts = ("", "/change", "/result", "/certificate.json")
    paths = ["/", "/new", *(f"/study/{study}{part}" for part in parts)]
    for path in paths:
        shown = page(desk, path)
        assert "Log in" in shown
        assert "a secret title" not in shown
        assert "Log in" in page(desk, path, "surepick_admin=forged")
    cookie = log_in(desk)
    assert "a secret title" in page(desk, "/", cookie)
    assert "Begin the study" in page(desk, "/new", cookie)
    assert f'data-study="{study}"' in page(desk, f"/study/{study}", cookie)
    assert desk.client.get("/study/nosuchstudy", headers={"Cookie": cookie}).status_code == 404


def test_a_person_gets_a_page_and_a_program_json_where_there_is_nothing(desk: InProcessService) -> None:
    browser = {"Cookie": log_in(desk), "Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for path in ("/study/nosuchstudy", "/study/nosuchstudy/result", "/study/nosuchstudy/change", "/nothing"):
        reply = desk.client.get(path, headers=browser)
        assert reply.status_code == 404
        assert reply.headers["content-type"].startswith("text/html")
        assert "Not found" in reply.text
        assert "There is no" in reply.text
        assert 'href="/"' in reply.text
        reply = desk.client.get(path, headers={**browser, "Accept": "*/*"})
        assert (reply.status_code, list(reply.json())) == (404, ["detail"])
    reply = desk.client.get("/study/%3Cscript%3E", headers=browser)
    assert reply.status_code == 422
    assert "&lt;script&gt;" in reply.text
    reply = desk.client.get("/studies", headers={"Accept": "text/html", "Authorization": "Bearer forged"})
    assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")


def test_the_consequences_of_changes_are_stated_beforehand(desk: InProcessService) -> None:
    study = desk.begin(title="Which?")
    cookie = log_in(desk)
    judge = desk.judge(study, "Flo Secret")
    judge.work(2)
    shown = page(desk, f"/study/{study}/change", cookie)
    assert "its name and 2 features" in shown
    assert "evidence about the items is gathered anew" in shown
    assert "all 2 answers of this phase" in shown
    assert "certificate use counts only and stay valid" in shown
    assert all(f'value="{name}"' in shown for name in ("red", "green", "blue", judge.id))
    desk.client.delete(f"/studies/{study}/judges/{judge.id}", headers=ADMIN)
    shown = page(desk, f"/study/{study}/change", cookie)
    assert "Flo Secret" not in shown
    assert "deleted-" not in shown
    assert "No judge whose data could be deleted." in shown


def test_the_result_names_what_is_promised_and_gives_the_certificate(desk: InProcessService) -> None:
    study = desk.begin(delta=0.1, epsilon=1.0)
    cookie = log_in(desk)
    assert "Not decided yet" in page(desk, f"/study/{study}/result", cookie)
    assert desk.client.get(f"/study/{study}/certificate.json", headers={"Cookie": cookie}).status_code == 404
    judge = desk.judge(study)
    judge.work()
    assert judge.take()["remaining"] == 0
    shown = page(desk, f"/study/{study}/result", cookie)
    assert "red is the best, or within 1 of it" in shown
    assert "with probability at most 10%. Proved" in shown
    assert "There is one common taste throughout." in shown
    assert "surepick verify-certificate certificate.json" in shown
    assert verify_certificate(json.loads(page(desk, f"/study/{study}/certificate.json", cookie))).best == "red"


def test_what_a_link_is_for(desk: InProcessService) -> None:
    study = desk.begin(title="Which colour?")
    judge = desk.judge(study, "Jo")

    def invitation(status: int = 200) -> dict[str, object]:
        reply = desk.client.get("/judge/invitation", headers=judge.headers)
        assert reply.status_code == status
        return dict(reply.json())

    assert invitation() == {"study": study, "title": "Which colour?", "state": "running", "name": "Jo", "answers": 0}
    first, second = judge.take(2)["questions"]
    judge.say(first["id"], "tie")
    judge.say(second["id"], "a")
    assert invitation()["answers"] == 2
    judge.undo()
    assert invitation()["answers"] == 1
    judge.say(second["id"], "skip", turn=2)
    assert invitation()["answers"] == 1
    desk.post(f"/studies/{study}/state", {"state": "paused"})
    assert invitation()["state"] == "paused"
    desk.post(f"/studies/{study}/state", {"state": "closed"})
    assert invitation()["state"] == "over"
    desk.post(f"/studies/{study}/judges/{judge.id}/revoke")
    assert "revoked" in str(invitation(403)["detail"])
    judge.headers = {"Authorization": "Bearer forged"}
    assert "has not expired" in str(invitation(401)["detail"])


def test_judges_learn_about_how_many_more(desk: InProcessService, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = Forecast("anytime", np.arange(30, 120, 10), np.zeros(9, dtype=np.bool_), 9, 0)
    monkeypatch.setattr(Session, "forecast", lambda session: simulated)  # simulating is tested elsewhere, and slow
    study = desk.begin(delta=0.2, epsilon=1.0)
    judge = desk.judge(study)
    now = desk.service.clock
    assert judge.take()["remaining"] is None
    judge.work(4)
    assert not foresee(desk.service.database, now)  # too early to say anything
    judge.work(2)
    assert foresee(desk.service.database, now)
    assert desk.get(f"/studies/{study}")["forecast"] == {"low": 30, "further": 70, "high": 110}
    assert judge.take()["remaining"] == 70
    assert not foresee(desk.service.database, now)  # it is fresh
    judge.work(1, n=1)
    assert judge.take()["remaining"] == 69
