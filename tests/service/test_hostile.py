"""Hostile requests: each is refused with a clear sentence, and nothing is changed."""

import csv
import io
import math
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from in_process_service import ADMIN, InProcessService, study
from surepick.errors import InvalidInput
from surepick.service.credentials import Credentials
from surepick.service.serve import run
from surepick.store.schema import messages, metadata, questions

PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="
SVG = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciPjwvc3ZnPg=="
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessService]:
    made = InProcessService(
        f"sqlite:///{tmp_path_factory.mktemp('hostile')}/studies.db", upload_bytes=300_000, items=200, features=20
    )
    yield made
    made.close()


@pytest.fixture(scope="module")
def one(service: InProcessService) -> str:
    return service.begin()


def everything(service: InProcessService) -> dict[str, list[Any]]:
    """All rows of all tables, but for the record of what admins tried."""
    with service.parts.database.reading() as connection:
        return {
            name: list(connection.execute(sa.select(table)))
            for name, table in metadata.tables.items()
            if name != "audit"
        }


def refused(
    service: InProcessService, method: str, path: str, statuses: tuple[int, ...] = (422,), **request: Any
) -> str:
    """The request gets one of these statuses and a sentence, and no row has changed."""
    before = everything(service)
    reply = service.client.request(method, path, headers=request.pop("headers", ADMIN), **request)
    assert reply.status_code in statuses, (reply.status_code, reply.text[:300])
    detail = reply.json()["detail"]
    assert isinstance(detail, str)
    assert detail.endswith(".")
    assert everything(service) == before
    return detail


def items(**first: Any) -> list[dict[str, Any]]:
    return [{"name": "x", **first}, {"name": "y"}]


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"items": items(features=[math.nan])}, "finite"),
        ({"items": items(features=[math.inf])}, "finite"),
        ({"items": [{"name": "x", "features": [1e300]}, {"name": "y", "features": [0]}]}, "1e"),
        ({"items": items(features=["1; DROP TABLE studies"])}, "number"),
        ({"items": items(features=[1.0])}, "same features"),
        ({"items": items(features=[1.0] * 21)}, "20"),
        ({"items": [{"name": str(number)} for number in range(201)]}, "200"),
        ({"items": [{"name": "only"}]}, "two items"),
        ({"items": []}, "two items"),
        ({"items": [{"name": "same"}, {"name": "same"}]}, "differ"),
        ({"items": items(name="")}, "name"),
        ({"items": items(name="nul\u0000")}, "control"),
        ({"items": items(name="x" * 300)}, "200"),
        ({"items": items(name="half \ud800")}, "surrogate"),
        ({"items": items(text="half \udfff")}, "surrogate"),
        ({"title": "half \ud800"}, "surrogate"),
        ({"options": {"half \ud800": 1}}, "does not use"),
        ({"half \ud800": 1}, "unicode"),
        ({"items": items(colour="url(http://evil.example/x.png)")}, "colour"),
        ({"items": items(colour="red;background:url(x)")}, "colour"),
        ({"items": items(image="http://evil.example/x.png")}, "fetched"),
        ({"items": items(image="file:///etc/passwd")}, "fetched"),
        ({"items": items(image="../../etc/passwd")}, "fetched"),
        ({"items": items(image=SVG)}, "PNG"),
        ({"items": items(image="data:image/png;base64,AAAA")}, "PNG"),
        ({"items": items(image="data:image/png;base64,???")}, "base64"),
        ({"items": items(pickle="gASV")}, "pickle"),
        ({"delta": 0}, "delta"),
        ({"delta": 2}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"epsilon": -1}, "epsilon"),
        ({"budget": 0}, "budget"),
        ({"budget": 10**30}, "budget"),
        ({"policy": "__import__('os')"}, "policy"),
        ({"policy": "anytime", "options": {"nonsense": 1}}, "does not use nonsense"),
        ({"options": {"missing": ["x"]}}, "missing"),
        ({"options": {"name": "uniform", "delta": "x"}}, "delta"),
        ({"kind": "everything"}, "kind"),
        ({"lease": 0}, "lease"),
        ({"seed": -1}, "seed"),
        ({"title": ""}, "title"),
    ],
)
def test_studies_that_cannot_be_meant(service: InProcessService, fields: dict[str, Any], part: str) -> None:
    import json

    body = json.dumps(study(**fields))  # with NaN, as some programs write it
    content = {"content": body, "headers": {**ADMIN, "Content-Type": "application/json"}}
    assert part in refused(service, "POST", "/studies", **content)


def test_bodies_that_are_no_json(service: InProcessService, one: str) -> None:
    kind = {**ADMIN, "Content-Type": "application/json"}
    for body in (b"", b"{", b"\xff\xfe", b"[" * 50_000, b'{"title": 1e999999}', b"null", b'"x"', b"9" * 5_000):
        refused(service, "POST", "/studies", (400, 422), content=body, headers=kind)
    refused(service, "POST", "/studies", (413,), content=b" " * 300_001, headers=kind)
    refused(service, "POST", f"/studies/{one}/state", (413,), content=b" " * 70_000, headers=kind)


def upload(service: InProcessService, name: str, content: bytes, part: str, **more: Any) -> None:
    files = {"items": (name, content)}
    data = {"settings": more.pop("settings", '{"title": "t"}')}
    assert part in refused(service, "POST", "/studies/upload", more.pop("statuses", (422,)), files=files, data=data)


def test_files_that_are_not_what_they_should_be(service: InProcessService) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    good = b"item,warm\nred,1\nblue,0\n"
    upload(service, "a.csv", good, "settings", settings="{")
    upload(service, "a.csv", good, "title", settings='{"title": ""}')
    upload(service, "a.csv", b"", "empty")
    upload(service, "a.csv", b"name\nx\n", "item")
    upload(service, "a.csv", b"item,warm\nred,nan\nblue,0\nx,1\n", "line 2")
    upload(service, "a.csv", b"item\n" + b"x\n" * 300, "200")
    upload(service, "a.csv", b"item\r" + b"x\r" * 300, "200")
    upload(service, "a.csv", b"item" + b",x" * 100_000 + b"\nx\n", "100,001 columns")
    upload(service, "a.csv", b'"item\n"' + b",x" * 100_000 + b"\nx\n", "twice")
    upload(service, "a.csv", b"\xff\xfe\x00", "CSV")
    upload(service, "bomb.zip", b"PK\x03\x04" + b"\x00" * 100, "CSV")
    upload(service, "a.parquet", b"PK\x03\x04", "Parquet")
    upload(service, "a.parquet", b"PAR1 no, not at all PAR1", "Parquet")
    upload(service, "../../etc/x.csv", b"name\nx\n", "item")
    upload(service, "a.csv", b"x" * 400_000, "bytes", statuses=(413,))

    def parquet(**columns: Any) -> bytes:
        out = io.BytesIO()
        pq.write_table(pa.table(columns), out, compression="zstd")
        return out.getvalue()

    upload(service, "a.parquet", parquet(item=pa.repeat("x", 1_000_000)), "rows")  # a few bytes, many rows
    upload(service, "a.parquet", parquet(item=["y" * 1_000_000] * 150), "bytes")
    long = ["y" * 90_000] * 150  # 14 MB in every column, of which the file has one cell
    upload(service, "a.parquet", parquet(item=long, **{f"text {number}": long for number in range(9)}), "135,000,000")
    upload(service, "a.parquet", parquet(item=["a", "b"], deep=[[1], [2]]), "deep")


def test_lines_may_end_as_on_an_old_machine(service: InProcessService) -> None:
    files = {"items": ("a.csv", b"item,warm\rred,1\rblue,0\r")}
    reply = service.client.post("/studies/upload", files=files, data={"settings": '{"title": "t"}'}, headers=ADMIN)
    assert reply.status_code == 201
    shown = service.get(f"/studies/{reply.json()['id']}")
    assert [item["name"] for item in shown["items"]] == ["red", "blue"]


def test_links_that_are_forged_expired_or_of_another_study(service: InProcessService, one: str) -> None:
    other = service.begin()
    judge = service.judge(one)
    path = f"/studies/{one}/questions"
    credentials: Credentials = service.parts.credentials
    stranger = Credentials("another secret", "")
    tokens = [
        "",
        "x",
        "é" * 10,
        stranger.link(one, judge.id, service.now + 100),
        credentials.link(one, judge.id, service.now - 1),
        credentials.link(other, judge.id, service.now + 100),
        credentials.cookie(service.now),
        credentials.link(one, judge.id, service.now + 100)[:-1],
    ]
    for token in tokens:
        service.parts.strangers._buckets.clear()
        header = {"Authorization": b"Bearer " + token.encode()}
        assert "link" in refused(service, "POST", path, (401,), headers=header)
    missing = {"Authorization": "Bearer " + credentials.link(one, "nobody", service.now + 100)}
    refused(service, "POST", path, (404,), headers=missing)
    for wrong in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}, judge.headers):
        service.parts.strangers._buckets.clear()
        refused(service, "GET", f"/studies/{one}", (401,), headers=wrong)
        refused(service, "POST", "/studies", (401,), headers=wrong, json=study())


def test_guessing_tokens_is_slowed_down(service: InProcessService, one: str) -> None:
    statuses = [
        service.client.get(f"/studies/{one}", headers={"Authorization": f"Bearer {number}"}).status_code
        for number in range(40)
    ]
    assert statuses[0] == 401
    assert 429 in statuses
    service.parts.strangers._buckets.clear()


def test_a_judge_who_asks_too_fast_is_told_so(tmp_path: Path) -> None:
    service = InProcessService(f"sqlite:///{tmp_path}/studies.db", rate=2)
    judge = service.judge(service.begin())
    statuses = [
        service.client.post(f"/studies/{judge.study}/questions", headers=judge.headers).status_code for _ in range(60)
    ]
    assert statuses[:8] == [200] * 8
    assert 429 in statuses
    service.close()


def test_cookies_work_from_our_own_pages_only(service: InProcessService, one: str) -> None:
    refused(service, "POST", "/login", (401,), json={"token": "wrong"})
    reply = service.client.post("/login", json={"token": ADMIN["Authorization"][7:]})
    assert reply.status_code == 204
    assert {"HttpOnly", "SameSite=strict"} <= set(reply.headers["set-cookie"].split("; "))
    cookie = reply.headers["set-cookie"].split(";")[0]
    assert service.client.get(f"/studies/{one}", headers={"Cookie": cookie}).status_code == 200
    change = {"json": {"state": "paused"}}
    path = f"/studies/{one}/state"
    refused(service, "POST", path, (403,), headers={"Cookie": cookie}, **change)
    refused(service, "POST", path, (403,), headers={"Cookie": cookie, "Origin": "http://evil.example"}, **change)
    refused(service, "POST", path, (401,), headers={"Cookie": cookie + "x", "Origin": "http://test"}, **change)
    ours = {"Cookie": cookie, "Origin": "http://test"}
    assert service.client.post(path, headers=ours, json={"state": "running"}).status_code == 200


def test_answers_that_do_not_belong(service: InProcessService, one: str) -> None:
    judge = service.judge(one)
    question = judge.lease()["questions"][0]["id"]
    path = f"/studies/{one}/answers"
    for body, statuses in [
        ({"question": question, "answer": "c"}, (422,)),
        ({"question": question, "answer": 1}, (422,)),
        ({"question": question, "answer": "yes"}, (422,)),
        ({"question": question, "answer": "undo"}, (422,)),
        ({"question": question, "answer": "a", "turn": -1}, (422,)),
        ({"question": question, "answer": "a", "turn": 10**30}, (422,)),
        ({"question": question, "answer": "a", "turn": 5}, (409,)),
        ({"question": question, "answer": "a", "judge": "somebody else"}, (422,)),
        ({"question": "' OR 1=1 --", "answer": "a"}, (422,)),
        ({"question": "x" * 30, "answer": "a"}, (404,)),
        ({"question": None, "answer": "a"}, (422,)),
        ({"answer": "a"}, (422,)),
        ([], (422,)),
    ]:
        refused(service, "POST", path, statuses, json=body, headers=judge.headers)
    for n in ("0", "-1", "101", "1e9", "x", "nan"):
        refused(service, "POST", f"/studies/{one}/questions?n={n}", headers=judge.headers)
    refused(service, "GET", "/studies/%00", (404, 422))
    refused(service, "GET", "/studies/'%20OR%201=1", (404, 422))
    refused(service, "GET", f"/studies/{one}/images/..%2F..%2Fetc%2Fpasswd", (404,))
    refused(service, "GET", f"/studies/{one}/export?what=secrets")
    refused(service, "GET", f"/studies/{one}/export?format=pickle")
    refused(service, "POST", f"/studies/{one}/items", json={})
    refused(service, "POST", f"/studies/{one}/items", (404,), json={"remove": ["'; DROP TABLE items"]})
    refused(service, "POST", f"/studies/{one}/state", json={"state": "deleted"})
    refused(service, "DELETE", f"/studies/{one}/judges/nobody", (404,))


def test_names_are_data_wherever_they_go(service: InProcessService) -> None:
    names = [SCRIPT, "'; DROP TABLE studies; --", '=HYPERLINK("http://evil.example")', "\u202egnp.exe", "%s {0} \\"]
    one = service.begin(title=SCRIPT, items=[{"name": name, "label": name, "image": PNG} for name in names])
    judge = service.judge(one, SCRIPT)
    question = judge.lease()["questions"][0]
    assert {question["a"]["name"], question["b"]["name"]} <= set(names)
    judge.answer(question["id"], "a")
    service.planner.round()
    image = service.client.get(question["a"]["image"])
    assert (image.status_code, image.headers["content-type"]) == (200, "image/png")
    assert image.headers["x-content-type-options"] == "nosniff"
    for what in ("answers", "result"):
        cells = service.client.get(f"/studies/{one}/export?what={what}&format=csv", headers=ADMIN).text
        assert "\n=HYPERLINK" not in cells
        assert ",=HYPERLINK" not in cells
        assert ',"=HYPERLINK' not in cells
    reply = service.client.get(f"/studies/{one}", headers=ADMIN)
    assert reply.headers["content-type"] == "application/json"  # never taken for a page
    assert reply.json()["title"] == SCRIPT


def test_replayed_requests_change_nothing(service: InProcessService, one: str) -> None:
    judge = service.judge(one)
    question = judge.lease()["questions"][0]
    first = judge.answer(question["id"], "a")
    before = everything(service)
    for _ in range(5):
        assert judge.answer(question["id"], "a") == first
    assert everything(service) == before


def test_a_stranger_is_refused_before_the_body_is_read(service: InProcessService, one: str) -> None:
    """Large bodies without a token kept the service busy for seconds."""
    judge = service.judge(one)
    service.client._client.cookies.clear()  # of an earlier log-in
    read: list[bytes] = []

    async def body() -> AsyncIterator[bytes]:
        for _ in range(5):
            read.append(b" ")
            yield b" "

    kind = {"Content-Type": "application/json"}
    for path, headers in [
        ("/studies", {}),
        ("/studies", judge.headers),  # a judge is a stranger here
        ("/studies/upload", {"Content-Type": "multipart/form-data; boundary=x"}),
        (f"/studies/{one}/items", {"Authorization": "Bearer wrong"}),
        (f"/studies/{one}/answers", {}),
        ("/streams/nothing/decide", judge.headers),
    ]:
        service.parts.strangers._buckets.clear()
        refused(service, "POST", path, (401,), content=body(), headers=kind | headers)
        assert read == []
    refused(service, "POST", "/studies", (400, 422), content=body(), headers=kind | ADMIN)
    assert len(read) == 5


def test_a_body_of_unknown_length_is_cut_off(service: InProcessService, one: str) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 10_000
            yield b" " * 10_000

    headers = {**ADMIN, "Content-Type": "application/json"}
    refused(service, "POST", f"/studies/{one}/state", (413,), content=endless(), headers=headers)
    assert sent < 100_000


def test_a_cookie_is_useless_after_logout(service: InProcessService, one: str) -> None:
    def cookie() -> str:
        reply = service.client.post("/login", json={"token": ADMIN["Authorization"][7:]})
        return str(reply.headers["set-cookie"].split(";")[0])

    mine, other = cookie(), cookie()
    ours = {"Cookie": mine, "Origin": "http://test"}
    assert service.client.get(f"/studies/{one}", headers=ours).status_code == 200
    assert service.client.post("/logout", headers=ours).status_code == 204
    refused(service, "GET", f"/studies/{one}", (401,), headers=ours)
    assert "password" in service.client.get(f"/study/{one}", headers=ours | {"Accept": "text/html"}).text
    assert service.client.get(f"/studies/{one}", headers={"Cookie": other}).status_code == 200


def test_a_forged_host_is_in_nobodys_link(service: InProcessService, one: str, tmp_path: Path) -> None:
    forged = {**ADMIN, "Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    link = service.post(f"/studies/{one}/judges", {}, forged, 201)["link"]
    assert link.startswith("http://test/judge#")
    public = InProcessService(f"sqlite:///{tmp_path}/studies.db", public_url="https://surepick.example.org/")
    link = public.post(f"/studies/{public.begin()}/judges", {}, forged, 201)["link"]
    assert link.startswith("https://surepick.example.org/judge#")
    reply = public.client.post("/login", json={"token": ADMIN["Authorization"][7:]})
    assert "Secure" in reply.headers["set-cookie"].split("; ")  # the browser speaks HTTPS, if not to this process
    public.close()


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({}, "--token"),
        ({"token": "long enough for anyone"}, "--plain-http"),
        ({"token": "long enough for anyone", "public_url": "http://surepick.example.org"}, "unencrypted"),
        ({"public_url": "surepick.example.org"}, "https://"),
        ({"public_url": "javascript:alert(1)"}, "https://"),
    ],
)
def test_other_machines_are_let_in_on_purpose_only(tmp_path: Path, options: dict[str, str], part: str) -> None:
    with pytest.raises(InvalidInput, match=part):
        run(
            f"sqlite:///{tmp_path}/studies.db",
            **{"host": "0.0.0.0", "port": 0, "token": "", "workers": 1, "first": None, "tell": print, **options},
        )
    assert not list(tmp_path.iterdir())


def test_exported_ids_are_those_of_the_service(tmp_path: Path) -> None:
    service = InProcessService(f"sqlite:///{tmp_path}/studies.db")
    one = service.begin()
    judge = service.judge(one)
    question = judge.lease()["questions"][0]["id"]
    judge.answer(question, "a")
    with service.parts.database.writing() as connection:  # ids are random; some begin like a formula
        if service.parts.database.is_sqlite:
            connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        for table, column in ((questions, "id"), (messages, "question")):
            connection.execute(sa.update(table).where(table.c[column] == question).values({column: "-begins"}))
    rows = service.client.get(f"/studies/{one}/export?what=answers&format=csv", headers=ADMIN).text
    assert [row["question"] for row in csv.DictReader(io.StringIO(rows))] == ["-begins"]
    service.close()


def test_one_judge_cannot_hold_all_questions(tmp_path: Path) -> None:
    service = InProcessService(f"sqlite:///{tmp_path}/studies.db", held=3)
    hoarder = service.judge(service.begin())
    for _ in range(5):
        held = hoarder.lease(100)["questions"]
        service.planner.round()
    assert len(held) == 3
    hoarder.answer(held[0]["id"], "a")
    assert len(hoarder.lease(100)["questions"]) == 3
    service.close()
