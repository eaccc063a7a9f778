"""Inviting: the shared link and who gets in by it, many personal links at once, links shown again, the first study."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from in_process_service import ADMIN, FakeJudge, InProcessService
from surepick.errors import InvalidInput
from surepick.service.first_study import FirstStudy
from surepick.store import open_database, studies

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def service(tmp_path: Path) -> Iterator[InProcessService]:
    made = InProcessService(f"sqlite:///{tmp_path}/studies.db", public_url="https://surepick.example.org")
    yield made
    made.close()


class Visitor:
    """A browser at a shared link."""

    def __init__(self, service: InProcessService, link: str) -> None:
        self._service = service
        path, _, self.code = link.removeprefix("https://surepick.example.org").partition("#")
        self.path = path
        self.cookie = ""

    def _headers(self) -> dict[str, str]:
        self._service.client._client.cookies.clear()
        known = {"Cookie": self.cookie} if self.cookie else {}
        return {"Authorization": f"Bearer {self.code}", **known}

    def look(self) -> httpx.Response:
        return self._service.client.get(f"{self.path}/invitation", headers=self._headers())

    def join(self, **body: Any) -> httpx.Response:
        reply = self._service.client.post(self.path, json=body, headers=self._headers())
        if "set-cookie" in reply.headers:
            assert {"HttpOnly", "Secure", "SameSite=strict"} <= set(reply.headers["set-cookie"].split("; "))
            self.cookie = reply.headers["set-cookie"].split(";")[0]
        return reply


def open_link(service: InProcessService, study: str, **body: Any) -> Any:
    reply = service.client.request("PUT", f"/studies/{study}/shared-link", json=body, headers=ADMIN)
    assert reply.status_code == 200
    return reply.json()


def close_link(service: InProcessService, study: str) -> None:
    assert service.client.delete(f"/studies/{study}/shared-link", headers=ADMIN).status_code == 200


def token_of(reply: httpx.Response) -> str:
    assert reply.status_code == 201, reply.text
    return str(reply.json()["judge_link"].removeprefix("/judge#"))


def names(service: InProcessService, study: str) -> list[str]:
    return [judge["name"] for judge in service.get(f"/studies/{study}/judges")]


def test_every_visitor_is_a_judge_of_their_own_and_stays_the_same(service: InProcessService) -> None:
    study = service.begin(title="Which shoe?")
    assert service.get(f"/studies/{study}/shared-link") == {
        "shared": None,
        "most": 100,
        "visitors": 0,
        "phrase": False,
    }
    shared = open_link(service, study)["shared"]
    assert shared["link"].startswith(f"https://surepick.example.org/join/{study}#")
    assert shared["qr"].startswith("data:image/svg+xml")
    ann, ben = Visitor(service, shared["link"]), Visitor(service, shared["link"])
    assert ann.look().json() == {"title": "Which shoe?", "state": "running", "phrase": False, "judge_link": None}
    first, second = token_of(ann.join(name=" Ann ")), token_of(ben.join())
    assert first != second
    assert names(service, study) == ["Ann", ""]
    assert token_of(ann.join(name="Somebody else")) == first
    assert ann.look().json()["judge_link"] == f"/judge#{first}"
    assert service.get(f"/studies/{study}/shared-link")["visitors"] == 2
    assert service.get(f"/studies/{study}/shared-link")["shared"] == shared  # it can be shown again
    judge = FakeJudge(service, study, {"id": "", "token": first})
    assert judge.work(3) >= 3
    page = service.client.get(f"/join/{study}", headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert "Which shoe?" not in page.text  # only the code tells what the study is about


def test_codes_that_do_not_open(service: InProcessService) -> None:
    study, other = service.begin(), service.begin()
    link, elsewhere = open_link(service, study)["shared"]["link"], open_link(service, other)["shared"]["link"]
    visitor = Visitor(service, link)
    right = visitor.code
    judge = service.judge(study)
    for code in ("", right[:-1], Visitor(service, elsewhere).code, judge.headers["Authorization"][7:]):
        visitor.code = code
        assert visitor.look().status_code == visitor.join().status_code == 401
    missing = Visitor(service, link.replace(study, "nosuchstudy"))
    assert missing.join().status_code == 401  # as for a study that is there: nobody learns which are
    visitor.code = right.upper()
    assert visitor.join().status_code == 201
    for path in (f"/studies/{study}", f"/studies/{study}/shared-link", f"/studies/{study}/links"):
        reply = service.client.get(path, headers={"Authorization": f"Bearer {right}"})
        assert reply.status_code == 401
    reply = service.client.post(f"/studies/{study}/questions", headers={"Authorization": f"Bearer {right}"})
    assert reply.status_code == 401


def test_a_closed_link_lets_nobody_in_and_the_next_one_has_another_code(service: InProcessService) -> None:
    study = service.begin()
    old = open_link(service, study)["shared"]["link"]
    ann = Visitor(service, old)
    token = token_of(ann.join())
    close_link(service, study)
    assert service.get(f"/studies/{study}/shared-link")["shared"] is None
    reply = Visitor(service, old).join()
    assert (reply.status_code, "closed" in reply.json()["detail"]) == (409, True)
    assert service.client.get("/judge/invitation", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    new = open_link(service, study, most=7)["shared"]["link"]
    assert new != old
    assert Visitor(service, old).join().status_code == 401
    assert open_link(service, study, most=8)["shared"]["link"] == new  # its limits may change meanwhile
    service.now += 31 * 86_400
    assert Visitor(service, new).join().status_code == 409
    service.post(f"/studies/{study}/state", {"state": "closed"})
    reply = service.client.request("PUT", f"/studies/{study}/shared-link", json={}, headers=ADMIN)
    assert reply.status_code == 409


def test_a_cap_and_a_pass_phrase(service: InProcessService) -> None:
    study = service.begin()
    link = open_link(service, study, most=2, phrase="red shoes")
    assert link["phrase"] is True
    visitor = Visitor(service, link["shared"]["link"])
    assert visitor.look().json()["phrase"] is True
    assert visitor.join().status_code == visitor.join(phrase="blue shoes").status_code == 403
    assert names(service, study) == []
    assert visitor.join(phrase="red shoes ").status_code == 201
    assert Visitor(service, link["shared"]["link"]).join(phrase="red shoes").status_code == 201
    reply = Visitor(service, link["shared"]["link"]).join(phrase="red shoes")
    assert (reply.status_code, "As many people" in reply.json()["detail"]) == (409, True)
    assert visitor.join().status_code == 201  # whoever has joined needs neither place nor phrase again
    with service.parts.database.reading() as connection:
        assert "red shoes" not in str(studies.get(connection, study)["shared_link"])


def test_who_was_revoked_does_not_come_back_and_who_was_deleted_may(service: InProcessService) -> None:
    study = service.begin()
    link = open_link(service, study)["shared"]["link"]
    ann, ben = Visitor(service, link), Visitor(service, link)
    ann.join(name="Ann")
    ben.join(name="Ben")
    first, second = (judge["id"] for judge in service.get(f"/studies/{study}/judges"))
    service.post(f"/studies/{study}/judges/{first}/revoke")
    assert (ann.look().status_code, ann.join().status_code) == (403, 403)
    service.client.delete(f"/studies/{study}/judges/{second}", headers=ADMIN)
    assert ben.look().json()["judge_link"] is None
    assert ben.join().status_code == 201


def test_a_program_cannot_take_every_place_at_once(service: InProcessService) -> None:
    study = service.begin()
    link = open_link(service, study, most=1_000)["shared"]["link"]
    statuses = [Visitor(service, link).join().status_code for _ in range(110)]
    assert statuses.count(201) < 105
    assert statuses[-1] == 429


def test_names_that_visitors_give_are_data(service: InProcessService) -> None:
    study = service.begin()
    visitor = Visitor(service, open_link(service, study)["shared"]["link"])
    assert visitor.join(name="x" * 201).status_code == visitor.join(name="\0").status_code == 422
    visitor.join(name="=HYPERLINK(1)<script>")
    assert names(service, study) == ["=HYPERLINK(1)<script>"]
    table = service.client.get(f"/studies/{study}/links", headers=ADMIN).text
    assert "'=HYPERLINK(1)<script>" in table


def upload(service: InProcessService, study: str, content: str) -> httpx.Response:
    files = {"judges": ("people.csv", content.encode(), "text/csv")}
    return service.client.post(f"/studies/{study}/judges/upload", files=files, headers=ADMIN)


def test_many_judges_from_a_file_and_their_links_again(service: InProcessService) -> None:
    study = service.begin()
    made = upload(service, study, "name,team\nAnn,one\nBen,two\n").json()
    assert [judge["name"] for judge in made] == names(service, study) == ["Ann", "Ben"]
    again = service.get(f"/studies/{study}/judges/{made[0]['id']}/link")
    assert (again["link"], again["until"]) == (made[0]["link"], made[0]["until"])
    one = service.post(f"/studies/{study}/judges", {"name": "Cleo", "days": 2}, status=201)
    assert service.get(f"/studies/{study}/judges/{one['id']}/link")["link"] == one["link"]
    service.post(f"/studies/{study}/judges/{made[1]['id']}/revoke")
    service.get(f"/studies/{study}/judges/{made[1]['id']}/link", 409)
    service.get(f"/studies/{study}/judges/nobody/link", 404)
    listed = list(csv.DictReader(io.StringIO(service.client.get(f"/studies/{study}/links", headers=ADMIN).text)))
    assert [(row["name"], row["link"]) for row in listed] == [("Ann", made[0]["link"]), ("Cleo", one["link"])]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("judge\nAnn\n", "people.csv has no column 'name'"),
        ("name\nAnn\n" + "x" * 300, "people.csv, line 3"),
        ("name\n" + "x\n" * 1_001, "1,000"),
        ("", "people.csv"),
        ("name\n", "people.csv"),
    ],
)
def test_files_of_judges_that_cannot_be_used(service: InProcessService, content: str, part: str) -> None:
    study = service.begin()
    reply = upload(service, study, content)
    assert (reply.status_code, part in reply.json()["detail"]) == (422, True), reply.text
    assert names(service, study) == []


def test_the_first_study_is_made_once_from_files(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/studies.db")
    settings = InProcessService(f"sqlite:///{tmp_path}/studies.db").parts.settings
    (tmp_path / "pictures").mkdir()
    for name in ("boot.png", "runner.png", "other.png"):
        (tmp_path / "pictures" / name).write_bytes(PNG + name.encode())
    (tmp_path / "shoes.csv").write_text("item,image\nboot,\nrunner,other.png\nsandal,\n")
    first = FirstStudy(tmp_path / "shoes.csv", tmp_path / "pictures", "Which shoe would you buy?")
    study, link = first.begin(database, settings, 0.0)
    assert first.begin(database, settings, 1.0) == (study, link)
    with database.reading() as connection:
        row, items = studies.get(connection, study), studies.items_of(connection, study)
        boot = studies.image(connection, study, items[0].image)
        runner = studies.image(connection, study, items[1].image)
    assert row["title"] == "Which shoe would you buy?"
    assert (boot.content, runner.content, items[2].image) == (PNG + b"boot.png", PNG + b"other.png", "")
    assert [item.features for item in items] == [None] * 3  # nothing is said about the items, so nothing is assumed
    other, _ = FirstStudy(None, tmp_path / "pictures", "").begin(database, settings, 2.0)
    assert other != study
    with database.reading() as connection:
        assert [item.name for item in studies.items_of(connection, other)] == ["boot", "other", "runner"]
    for wrong, part in (
        (FirstStudy(tmp_path / "nothing.csv", None, ""), "cannot be read"),
        (FirstStudy(None, tmp_path / "nowhere", ""), "cannot be read"),
        (FirstStudy(None, tmp_path, ""), "no pictures"),
    ):
        with pytest.raises(InvalidInput, match=part):
            wrong.begin(database, settings, 3.0)
    (tmp_path / "shoes.csv").write_text("item,image\nboot,../shoes.csv\nrunner,\n")
    with pytest.raises(InvalidInput, match="nothing is fetched"):
        first.begin(database, settings, 4.0)
    database.close()
