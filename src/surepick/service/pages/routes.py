"""Which page is where."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.responses import HTMLResponse, Response
from fastapi.templating import Jinja2Templates
from starlette.staticfiles import StaticFiles

from surepick.identify import Status
from surepick.registry import POLICIES
from surepick.service import admin_messages as consequences
from surepick.service import views
from surepick.service.auth import COOKIE
from surepick.service.dependencies import Running, StudyId
from surepick.service.pages.result import result_sheet
from surepick.store import NotFound, judges, studies

_HERE = Path(__file__).parent

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
templates = Jinja2Templates(_HERE / "templates")


def install(app: FastAPI) -> None:
    """Add the pages and their files."""
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=_HERE / "static"), name="static")
    app.add_exception_handler(_Stranger, _login_page)


def wants_page(request: Request) -> bool:
    """Whether a person at a browser asks, and not a script."""
    return request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")


def sentence_page(request: Request, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """A page that says in one sentence why there is no other."""
    heading = "Not found" if status == 404 else "This did not work"
    shown = {"heading": heading, "sentence": sentence}
    return templates.TemplateResponse(request, "sentence.html", shown, status, headers)


class _Stranger(Exception):
    """Somebody without the admin's cookie wants a page of his."""


async def _login_page(request: Request, error: Exception) -> Response:
    """The form to log in with, at the address that was asked for; it leads back there."""
    return templates.TemplateResponse(request, "login.html")


async def _admin(request: Request, service: Running) -> None:
    if not service.gate.is_admins_cookie(request.cookies.get(COOKIE, ""), service.clock()):
        raise _Stranger


_for_admin = [Depends(_admin)]


@router.get("/judge")
def judge_page(request: Request) -> Response:
    """The page of every judge; who it is stands behind the # of the link, which browsers do not send."""
    return templates.TemplateResponse(request, "judge.html")


@router.get("/", dependencies=_for_admin)
def start_page(request: Request, service: Running, archived: Annotated[bool, Query()] = False) -> Response:
    """All studies."""
    with service.database.reading() as connection:
        rows = studies.every(connection, archived=archived)
        found = [views.summary(connection, row) for row in rows]
        for each in found:
            each |= _in_short(each, studies.shown(connection, each["id"], [(each["verdict"] or {}).get("best", "")]))
    return templates.TemplateResponse(request, "studies.html", {"studies": found, "archived": archived})


def _in_short(study: views.Json, best: dict[str, studies.Item]) -> views.Json:
    """What the list says of a study."""
    verdict = study["verdict"] or {"status": "open"}
    decided = Status(verdict["status"]).decided
    leader = next((item.label or item.name for item in best.values()), "")
    condition = "decided" if decided and study["state"] == "running" else study["state"]
    return {"condition": condition, "leading": "best:" if decided else "leading:", "leader": leader}


@router.get("/new", dependencies=_for_admin)
def new_page(request: Request) -> Response:
    """The form of a new study."""
    return templates.TemplateResponse(request, "new.html", {"policies": sorted(POLICIES)})


@router.get("/study/{study}", dependencies=_for_admin)
def study_page(request: Request, study: StudyId, service: Running) -> Response:
    """The dashboard of a study; its numbers come by the API."""
    with service.database.reading() as connection:
        title = studies.get(connection, study)["title"]
    return templates.TemplateResponse(request, "study.html", {"study": study, "title": title})


@router.get("/study/{study}/change", dependencies=_for_admin)
def change_page(request: Request, study: StudyId, service: Running) -> Response:
    """Forms for what has consequences: items that come or go midway, a judge's data that is deleted."""
    with service.database.reading() as connection:
        row = studies.get(connection, study)
        items = studies.items_of(connection, study)
        people = judges.every(connection, study)
    shown = {
        "study": study,
        "title": row["title"],
        "items": [views.item(study, each) for each in items],
        "features": len(items[0].features or ()),
        "answers": row["answered"],
        "decided": row["decided"] is not None,
        "judges": [judge for judge in people if not judges.is_forgotten(judge["id"])],
        "new_phase": consequences.NEW_PHASE,
        "forgotten": consequences.FORGOTTEN,
    }
    return templates.TemplateResponse(request, "change.html", shown)


@router.get("/study/{study}/result", dependencies=_for_admin)
def result_page(request: Request, study: StudyId, service: Running) -> Response:
    """The result, to print."""
    with service.database.reading() as connection:
        sheet = result_sheet(connection, study, service.clock())
    return templates.TemplateResponse(request, "result.html", sheet)


@router.get("/study/{study}/certificate.json", dependencies=_for_admin)
def certificate(study: StudyId, service: Running) -> Response:
    """The certificate as a file for `surepick verify-certificate`."""
    with service.database.reading() as connection:
        found = studies.get(connection, study)["certificate"]
    if found is None:
        raise NotFound(f"Study {study!r} has no certificate; only a proved verdict has one.")
    headers = {"Content-Disposition": 'attachment; filename="certificate.json"'}
    return Response(found, media_type="application/json", headers=headers)
