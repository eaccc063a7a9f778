"""Projects, members and their roles, the audit log, deletion, quotas, readiness, metrics and logs."""

import base64
import html
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.routing import APIRoute
from prometheus_client.parser import text_string_to_metric_families

from in_process_service import ADMIN, TOKEN, FakeJudge, InProcessService
from surepick.service.administration import ACTIONS
from surepick.service.dependencies import GuardedRoute
from surepick.service.telemetry import JsonLines, request_id
from surepick.store.operating import delete_expired
from surepick.store.schema import metadata, server

SECRET = "the secret title of the first project"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[InProcessService]:
    made = InProcessService(f"sqlite:///{tmp_path}/studies.db", studies=3, streams=2, judges=4)
    made.parts.strangers._rate = made.parts.strangers._burst = 1e9
    yield made
    made.close()


def member(service: InProcessService, project: str | None, role: str = "owner", **more: Any) -> dict[str, str]:
    """Headers of a new member."""
    body = {"name": f"{role} of {project}", "project": project, "role": role} | more
    token = service.post("/members", body, ADMIN, status=201)["token"]
    return {"Authorization": f"Bearer {token}"}


def study(title: str = "shoes", **fields: Any) -> dict[str, Any]:
    return {"title": title, "items": [{"name": "red"}, {"name": "green"}, {"name": "blue"}]} | fields


def send(service: InProcessService, method: str, path: str, headers: dict[str, str], body: Any = None) -> Any:
    return service.client.request(method, path, headers=headers, json=body)


PUBLIC = {
    "GET /join/{study}": "the same page whether or not there is such a study",
    "GET /studies/{study}/images/{name}": "an address that cannot be guessed, so that pages can show pictures",
}
"""Routes about one study that need nothing but their address."""

READ_AS_OWNER = 15
"""Routes by which those whose study it is read what others do not, at least."""


def every_route(service: InProcessService) -> Iterator[APIRoute]:
    """All routes of the application, those that its description leaves out too."""

    def walk(routes: Any) -> Iterator[APIRoute]:
        for route in routes:
            if isinstance(route, APIRoute):
                yield route
            else:  # a router that was included
                yield from walk(getattr(getattr(route, "original_router", None), "routes", ()))

    found = list(walk(service.app.routes))
    described = {
        (method.upper(), path)
        for path, operations in service.client.get("/openapi.json").json()["paths"].items()
        for method in operations
    }
    assert described <= {(method, route.path) for route in found for method in route.methods}
    yield from found


@dataclass(frozen=True)
class Tenant:
    """What one project has, and all the ways in which its people come."""

    ids: dict[str, str]
    credentials: dict[str, dict[str, str]]


def tenant(service: InProcessService, project: str, secret: str) -> Tenant:
    """A project with a study, judges, a comment, a picture and a stream."""
    owner = member(service, project, name=f"{secret} of {project}")
    picture = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + secret.encode()).decode()
    items = [{"name": f"{secret} {number}", "image": picture} for number in range(3)]
    one = send(service, "POST", "/studies", owner, study(secret, items=items, instructions=secret)).json()["id"]
    service.planner.round()
    judge = send(service, "POST", f"/studies/{one}/judges", owner, {"name": secret}).json()
    answering = FakeJudge(service, one, judge)
    question = answering.lease()["questions"][0]["id"]
    answering.answer(question, "a")
    body = {"question": question, "text": secret}
    assert send(service, "POST", f"/studies/{one}/comments", answering.headers, body).status_code == 204
    service.planner.round()
    stream = send(service, "POST", "/streams", owner, {"title": secret, "dimension": 1}).json()
    shared = send(service, "PUT", f"/studies/{one}/shared-link", owner, {"most": 5}).json()["shared"]["link"]
    login = send(service, "POST", "/login", {}, {"token": owner["Authorization"].split()[1]})
    cookie = login.headers["set-cookie"].split(";")[0]
    service.client.forget_cookies()
    here = {"Accept": "text/html", "Origin": "http://test"}
    return Tenant(
        {
            "study": one,
            "stream": stream["id"],
            "judge": judge["id"],
            "member_id": send(service, "GET", "/members", owner).json()[0]["id"],
            "name": send(service, "GET", f"/studies/{one}", owner).json()["items"][0]["image"].rsplit("/", 1)[1],
        },
        {
            "token": owner,
            "cookie": {"Cookie": cookie, **here},
            "judge's link": answering.headers,
            "stream's token": {"Authorization": f"Bearer {stream['token']}"},
            "shared link": {"Authorization": f"Bearer {shared.split('#')[1]}"},
            "nothing": here,
        },
    )


BODIES: dict[str, Any] = {
    "/studies/{study}/answers": {"question": "x", "answer": "a"},
    "/studies/{study}/undo": {},
    "/studies/{study}/comments": {"question": "x", "text": "spy"},
    "/studies/{study}/state": {"state": "closed"},
    "/studies/{study}/items": {"add": [{"name": "more"}]},
    "/studies/{study}/judges": {"name": "spy"},
    "/studies/{study}/shared-link": {"most": 5},
    "/join/{study}": {"name": "spy"},
    "/streams/{stream}/decide": {"arms": [[1.0]]},
    "/streams/{stream}/reward": {"decision": 0, "reward": 1},
}


def test_two_tenants_see_nothing_of_each_other_on_any_route(service: InProcessService) -> None:
    theirs, ours = tenant(service, "first", SECRET), tenant(service, "second", "our own")
    before = everything(service)
    routes = [
        (method, route.path)
        for route in every_route(service)
        for method in sorted(route.methods)
        if "{" in route.path or method == "GET"
    ]
    assert len(routes) > 40
    for method, path in routes:
        for how, headers in ours.credentials.items():
            # A parameter that is not among the ids is new: then this fails, and whoever adds it has to think of it.
            response = send(service, method, path.format(**theirs.ids), headers, BODIES.get(path))
            known = (method, path, how, response.status_code, response.text[:200])
            if f"{method} {path}" in PUBLIC:
                assert response.status_code == 200, known
                assert SECRET not in response.text or path.endswith("{name}"), known
            else:
                assert SECRET not in response.text, known
                assert theirs.ids["study"] not in response.text or response.status_code == 404, known
            # The page for logging in is what a browser without the right cookie gets.
            if "{" in path and f"{method} {path}" not in PUBLIC and "Admin's token" not in response.text:
                assert response.status_code in (401, 404), known
    assert everything(service) == before
    # The control: the same requests by those whose study it is show it.
    shown = 0
    for method, path in routes:
        if method == "GET" and "{" in path and not path.endswith("/events"):
            answers = [send(service, method, path.format(**theirs.ids), how) for how in theirs.credentials.values()]
            shown += any(SECRET in answer.text or theirs.ids["study"] in answer.text for answer in answers)
    assert shown >= READ_AS_OWNER
    for path in (f"/audit?study={theirs.ids['study']}", f"/audit?who={SECRET}"):
        assert send(service, "GET", path, ours.credentials["token"]).json() == []
        assert len(send(service, "GET", path, theirs.credentials["token"]).json()) > 0
    assert len(send(service, "GET", "/studies", ADMIN).json()) == 2  # the operator sees all projects


def everything(service: InProcessService) -> dict[str, Any]:
    """All tables but the one of who tried what."""
    with service.parts.database.reading() as connection:
        return {
            table.name: sorted(map(repr, connection.execute(sa.select(table))))
            for table in metadata.sorted_tables
            if table.name not in ("audit", "server")
        }


def test_nobody_creates_in_another_project(service: InProcessService) -> None:
    first = member(service, "first")
    assert send(service, "POST", "/studies", first, study(project="second")).status_code == 403
    assert send(service, "POST", "/streams", first, {"title": "x", "dimension": 1, "project": "b"}).status_code == 403
    assert send(service, "POST", "/members", first, {"name": "x", "project": "second"}).status_code == 403
    assert send(service, "POST", "/members", first, {"name": "x"}).status_code == 403  # would belong to all
    assert send(service, "GET", "/metrics", first).status_code == 403
    # The same key in two projects is two requests.
    again = {"Idempotency-Key": "k"}
    one = send(service, "POST", "/studies", first | again, study())
    other = send(service, "POST", "/studies", member(service, "second") | again, study())
    assert one.json()["id"] != other.json()["id"]


@pytest.mark.parametrize(
    ("role", "read", "change", "delete"),
    [("viewer", 200, 403, 403), ("editor", 200, 200, 403), ("owner", 200, 200, 200)],
)
def test_roles(service: InProcessService, role: str, read: int, change: int, delete: int) -> None:
    one = service.post("/studies", study(project="first"), ADMIN, status=201)["id"]
    headers = member(service, "first", role)
    assert send(service, "GET", f"/studies/{one}", headers).status_code == read
    assert send(service, "POST", f"/studies/{one}/state", headers, {"state": "closed"}).status_code == change
    service.post(f"/studies/{one}/state", {"state": "closed"})
    assert send(service, "DELETE", f"/studies/{one}", headers).status_code == delete
    assert send(service, "GET", "/members", headers).status_code == delete


def test_tokens_are_rotated_and_revoked(service: InProcessService) -> None:
    headers = member(service, "first", email="Jo@example.org")
    one = service.client.get("/members", headers=ADMIN).json()[0]
    assert (one["email"], one["role"], one["revoked"]) == ("jo@example.org", "owner", False)
    assert (
        send(service, "POST", "/login", {}, {"token": headers["Authorization"].removeprefix("Bearer ")}).status_code
        == 204
    )
    assert service.client.get("/studies").status_code == 200  # by cookie
    token = service.post(f"/members/{one['id']}/token")["token"]
    assert send(service, "GET", "/studies", headers).status_code == 401
    assert service.client.get("/studies").status_code == 401  # the cookie stood for the old token
    headers = {"Authorization": f"Bearer {token}"}
    assert send(service, "GET", "/studies", headers).status_code == 200
    assert send(service, "DELETE", f"/members/{one['id']}", ADMIN).status_code == 200
    assert send(service, "GET", "/studies", headers).status_code == 401
    assert send(service, "POST", f"/members/{one['id']}/token", ADMIN).status_code == 422


def test_a_streams_token_is_rotated(service: InProcessService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surepick.service.dependencies.TOKEN_SECONDS", 0.0)
    made = service.post("/streams", {"title": "shop", "dimension": 1}, status=201)
    old = {"Authorization": f"Bearer {made['token']}"}
    path = f"/streams/{made['id']}/decide"
    assert send(service, "POST", path, old, {"arms": [[1.0]]}).status_code == 200
    changed = service.post(f"/streams/{made['id']}/token")
    new = {"Authorization": f"Bearer {changed['token']}"}
    assert send(service, "POST", path, old, {"arms": [[1.0]]}).status_code == 401
    assert send(service, "POST", path, new, {"arms": [[1.0]]}).status_code == 200


def test_the_audit_log_says_who_did_what(service: InProcessService) -> None:
    first = member(service, "first", "editor")
    one = send(service, "POST", "/studies", first | {"X-Request-Id": "abc-1"}, study()).json()["id"]
    assert send(service, "POST", f"/studies/{one}/state", first, {"state": "archived"}).status_code == 409
    assert send(service, "POST", f"/studies/{one}/state", first, {"state": "nonsense"}).status_code == 422
    assert send(service, "DELETE", f"/studies/{one}", first).status_code == 403  # at the door: nothing was begun
    send(service, "GET", f"/studies/{one}", first)
    entries = service.client.get("/audit", headers=ADMIN).json()
    shown = [(entry["name"], entry["action"], entry["target"], entry["status"]) for entry in entries]
    assert shown == [
        ("editor of first", "POST /studies/{study}/state", f"/studies/{one}/state", 422),
        ("editor of first", "POST /studies/{study}/state", f"/studies/{one}/state", 409),
        ("editor of first", "POST /studies", f"/studies/{one}", 201),
        ("operator", "POST /members", f"/members/{entries[2]['member']}", 201),
    ]
    assert entries[2]["request"] == "abc-1"
    assert entries[2]["at"] == service.now
    older = service.client.get("/audit", headers=ADMIN, params={"before": entries[2]["id"], "n": 5}).json()
    assert [entry["name"] for entry in older] == ["operator"]
    owner = member(service, "first")
    assert len(send(service, "GET", "/audit", owner).json()) == 3  # of this project only
    made = service.post("/studies", study(project="first"), ADMIN, status=201)["id"]
    assert send(service, "GET", "/audit", owner).json()[0]["target"] == f"/studies/{made}"
    service.post(f"/studies/{one}/state", {"state": "closed"})
    assert send(service, "GET", "/audit", owner).json()[0]["name"] == "operator"  # what was done to its studies, too


def test_the_audit_log_is_filtered(service: InProcessService) -> None:
    first = member(service, "first", "editor", name="100% Ann")
    one, other = (send(service, "POST", "/studies", first, study(title)).json()["id"] for title in ("shoes", "hats"))
    service.post(f"/studies/{one}/state", {"state": "closed"})

    def found(**wanted: Any) -> list[tuple[str, str]]:
        entries = service.client.get("/audit", headers=ADMIN, params=wanted).json()
        return [(entry["name"], entry["target"]) for entry in entries]

    closed, created = ("operator", f"/studies/{one}/state"), ("100% Ann", f"/studies/{one}")
    assert found(study=one) == [closed, created]
    assert found(study=one, who="OPERATOR") == [closed]
    assert found(who="0% a") == [("100% Ann", f"/studies/{other}"), created]
    assert found(who="1_0%") == []  # % and _ stand for themselves
    assert found(action="POST /studies", study=one) == [created]
    assert found(study=one[:-1]) == []


def test_owners_read_the_audit_log_on_a_page(service: InProcessService) -> None:
    first = member(service, "first", name="<b>Ann</b>")
    one = send(service, "POST", "/studies", first, study("<i>shoes</i>")).json()["id"]
    gone = send(service, "POST", "/studies", first, study("hats")).json()["id"]
    assert send(service, "POST", f"/studies/{gone}/state", first, {"state": "archived"}).status_code == 409
    send(service, "POST", f"/studies/{gone}/state", first, {"state": "closed"})
    assert send(service, "DELETE", f"/studies/{gone}", first).status_code == 200

    def page(headers: dict[str, str], query: str = "", status: int = 200) -> str:
        login = send(service, "POST", "/login", {}, {"token": headers["Authorization"].removeprefix("Bearer ")})
        assert login.status_code == 204
        reply = service.client.get(f"/audit-log{query}", headers={"Accept": "text/html"})
        assert reply.status_code == status
        return reply.text

    text = page(first)
    assert "&lt;b&gt;Ann&lt;/b&gt;" in text
    assert f'created a study: <a href="/study/{one}">&lt;i&gt;shoes&lt;/i&gt;</a>' in text
    assert f"{gone}, deleted since" in text
    assert "refused (409)" in text
    assert 'href="/audit?n=1000"' in text
    assert "<td>added a member" not in text  # by the operator, to all projects
    assert "<td>added a member" in page(ADMIN)
    filtered = page(first, "?action=DELETE+%2Fstudies%2F%7Bstudy%7D&who=ann")
    assert "<td>deleted a study" in filtered
    assert "&lt;i&gt;shoes" not in filtered
    assert 'href="/audit?n=1000&amp;who=ann' in filtered  # the same as JSON
    assert "Nothing on record that matches" in page(first, "?who=nobody")
    assert "Nothing on record" in page(member(service, "second"))
    assert "takes the role owner" in page(member(service, "first", "editor"), status=403)


def test_a_page_of_the_audit_log_leads_to_the_older_ones(
    service: InProcessService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("surepick.service.pages.SHOWN_ENTRIES", 2)
    names = ["Ann", "Ben", "Cleo", "Dan"]
    for name in names:
        member(service, "first", name=name)
    send(service, "POST", "/login", {}, {"token": TOKEN})
    seen, path = [], "/audit-log?who=oper"
    while path and len(seen) < 5:
        text = service.client.get(path, headers={"Accept": "text/html"}).text
        seen.append(text.count("added a member</td>"))
        older = re.search(r'href="(/audit-log[^"]*before=[^"]*)"', text)
        path = html.unescape(older[1]) if older else ""
    assert seen == [2, 2]


def test_every_action_on_record_has_words(service: InProcessService) -> None:
    # What happens in a stream is in its own log, and judges are no admins.
    others = {"POST /streams/{stream}/decide", "POST /streams/{stream}/reward"}
    guarded = {
        f"{method} {route.path}"
        for route in every_route(service)
        if isinstance(route, GuardedRoute) and "judges" not in route.tags
        for method in route.methods - {"GET"}
    }
    assert guarded - others == set(ACTIONS)


def test_closed_studies_and_streams_are_deleted_with_everything(service: InProcessService) -> None:
    kept = service.begin()
    one = service.begin()
    service.judge(one).work()
    before = {name: len(rows) for name, rows in everything(service).items()}
    running = service.begin()
    assert send(service, "DELETE", f"/studies/{running}", ADMIN).status_code == 409
    for gone in (one, running):
        service.post(f"/studies/{gone}/state", {"state": "closed"})
        assert send(service, "DELETE", f"/studies/{gone}", ADMIN).status_code == 200
        assert send(service, "GET", f"/studies/{gone}", ADMIN).status_code == 404
    service.planner.round()  # which had them in memory
    after = {name: len(rows) for name, rows in everything(service).items()}
    assert after["studies"] == before["studies"] - 1
    assert after["messages"] == after["judges"] == 0
    assert send(service, "GET", f"/studies/{kept}", ADMIN).status_code == 200
    stream = service.post("/streams", {"title": "shop", "dimension": 1}, status=201)["id"]
    assert send(service, "DELETE", f"/streams/{stream}", ADMIN).status_code == 200
    assert send(service, "DELETE", f"/streams/{stream}", ADMIN).status_code == 404
    assert everything(service)["stream_events"] == []


def test_what_is_archived_or_idle_for_long_is_deleted(service: InProcessService) -> None:
    running, archived = service.begin(), service.begin()
    service.post("/streams", {"title": "shop", "dimension": 1}, status=201)
    for state in ("closed", "archived"):
        service.post(f"/studies/{archived}/state", {"state": state})
    service.now += 86_400 * 29
    assert delete_expired(service.parts.database, 30.0) == (0, 0)
    service.now += 86_400 * 2
    assert delete_expired(service.parts.database, 30.0) == (1, 1)
    assert [row["id"] for row in service.client.get("/studies?archived=true", headers=ADMIN).json()] == [running]


def test_quotas(service: InProcessService) -> None:
    made = [service.post("/studies", study(), status=201)["id"] for _ in range(3)]
    assert "allows 3" in service.post("/studies", study(), status=409)["detail"]
    service.post("/studies", study(project="other"), status=201)  # a quota of each project
    for state in ("closed", "archived"):
        service.post(f"/studies/{made[0]}/state", {"state": state})
    service.post("/studies", study(), status=201)
    for _ in range(2):
        service.post("/streams", {"title": "shop", "dimension": 1}, status=201)
    service.post("/streams", {"title": "shop", "dimension": 1}, status=409)
    for _ in range(4):
        service.post(f"/studies/{made[1]}/judges", {}, status=201)
    service.post(f"/studies/{made[1]}/judges", {}, status=409)


def test_readiness_tells_how_far_planners_are_behind(service: InProcessService) -> None:
    judge = service.judge(service.begin())
    judge.answer(judge.lease()["questions"][0]["id"], "a")
    service.now += 10
    shown = service.client.get("/ready")
    assert (shown.status_code, shown.json()) == (200, {"ready": True, "planner_lag_seconds": 10.0, "waiting": 1})
    service.now += 60
    assert service.client.get("/ready").status_code == 503
    service.planner.round()
    assert service.client.get("/ready").json() == {"ready": True, "planner_lag_seconds": 0.0, "waiting": 0}


def test_metrics_are_read_by_prometheus_own_parser(service: InProcessService) -> None:
    judge = service.judge(service.begin())
    judge.answer(judge.lease()["questions"][0]["id"], "a")
    service.client.get("/nothing/here")
    text = service.client.get("/metrics", headers=ADMIN).text
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    answers = (("method", "POST"), ("route", "/studies/{study}/answers"), ("status", "200"))
    assert found[("surepick_requests_total", *answers)] == 1
    assert found[("surepick_request_seconds_count", ("route", "/studies/{study}/answers"))] == 1
    assert found[("surepick_requests_total", ("method", "GET"), ("route", "other"), ("status", "404"))] == 1
    assert found[("surepick_studies", ("state", "running"))] == 1
    assert found[("surepick_messages_waiting",)] == 1
    assert found[("surepick_planner_lag_seconds",)] == 0
    assert service.client.get("/metrics").status_code == 401


def test_log_lines_are_json_with_time_level_and_request() -> None:
    record = logging.LogRecord("surepick.service", logging.WARNING, "x.py", 1, "%d lines\n", (2,), None)
    request_id.set("abc-1")
    line = json.loads(JsonLines().format(record))
    assert (line["level"], line["message"], line["request"]) == ("warning", "2 lines\n", "abc-1")
    assert line["time"].endswith("Z")
    request_id.set("")
    assert "request" not in json.loads(JsonLines().format(record))


def test_every_response_has_the_requests_id(service: InProcessService) -> None:
    assert service.client.get("/health", headers={"X-Request-Id": "from-the-proxy"}).headers["x-request-id"] == (
        "from-the-proxy"
    )
    made = service.client.get("/health", headers={"X-Request-Id": "two words"}).headers["x-request-id"]
    assert made
    assert " " not in made
    assert service.client.get("/nothing").headers["x-request-id"] != made


def test_the_secret_that_signs_links_is_no_study(service: InProcessService) -> None:
    with service.parts.database.reading() as connection:
        secret = connection.execute(sa.select(server.c.value)).scalars().first()
    assert secret is not None
    for path in ("/studies", "/streams", "/members", "/audit", "/metrics", "/health", "/ready"):
        assert secret not in service.client.get(path, headers=ADMIN).text
