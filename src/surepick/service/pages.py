"""The pages of the service, for judges and for the admin. They use the same API as every other client.

Templates show what does not change while a page is open; small scripts without a framework do the rest. Nothing is
loaded from other servers, and no script or style is inside a page, because the content policy would refuse it.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import sqlalchemy as sa
from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.responses import HTMLResponse, Response
from fastapi.templating import Jinja2Templates
from starlette.staticfiles import StaticFiles

from surepick.certificate import ARITHMETIC_ONLY
from surepick.identify import Status
from surepick.identify.ladder import LADDER_POLICIES
from surepick.registry import POLICIES
from surepick.service import views
from surepick.service.administration import ACTIONS, audit_filter
from surepick.service.credentials import COOKIE
from surepick.service.dependencies import ServiceDep, StudyId, require_own
from surepick.service.models import ItemOut
from surepick.service.studies import FORGOTTEN, NEW_PHASE
from surepick.service.views import Json
from surepick.store import Forbidden, NotFound, members, studies
from surepick.store.members import AuditFilter

SHOWN_RIVALS = 20
"""Rivals listed on the result page at most."""

MOST_SCORE = 10
"""Log-odds beyond which a score is not written out."""

SHOWN_ENTRIES = 50
"""Entries on one page of the audit log."""

_HERE = Path(__file__).parent

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
templates = Jinja2Templates(_HERE / "templates")


def install(app: FastAPI) -> None:
    """Add the pages and their files."""
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=_HERE / "static"), name="static")
    app.add_exception_handler(_NotLoggedIn, _login_page)


def wants_page(request: Request) -> bool:
    """Whether a browser asks for a page, and not a script for data."""
    return request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")


def sentence_page(request: Request, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """A page that says in one sentence why there is no other."""
    heading = "Not found" if status == 404 else "This did not work"
    shown = {"heading": heading, "sentence": sentence}
    return templates.TemplateResponse(request, "sentence.html", shown, status, headers)


class _NotLoggedIn(Exception):
    """A page of the admin was asked for without the admin's cookie."""


async def _login_page(request: Request, error: Exception) -> Response:
    """The log-in form, at the address that was asked for, so that logging in leads there."""
    return templates.TemplateResponse(
        request, "login.html", {"oidc": bool(request.app.state.service.settings.oidc_issuer)}
    )


async def _admin(request: Request, service: ServiceDep) -> None:
    # By cookie only: a browser that opens an address sends no bearer token.
    member = await service.member_of_cookie(request.cookies.get(COOKIE, ""))
    if member is None:
        raise _NotLoggedIn
    await require_own(request, service, member)
    request.state.project = member.project
    request.state.member = member


async def _owner(request: Request, service: ServiceDep) -> None:
    await _admin(request, service)
    if not request.state.member.may("owner"):
        raise Forbidden(f"This takes the role owner, and yours is {request.state.member.role}; ask an owner.")


_for_admin = [Depends(_admin)]
_for_owner = [Depends(_owner)]


@router.get("/judge")
def judge_page(request: Request) -> Response:
    """The page of every judge. The link's token is behind its #, which browsers do not send."""
    return templates.TemplateResponse(request, "judge.html")


@router.get("/join/{study}")
def join_page(request: Request, study: StudyId) -> Response:
    """The page behind a shared link. Whether there is such a study, only its code tells."""
    return templates.TemplateResponse(request, "join.html", {"study": study})


@router.get("/", dependencies=_for_admin)
def start_page(request: Request, service: ServiceDep, archived: Annotated[bool, Query()] = False) -> Response:
    """All studies."""
    with service.database.reading() as connection:
        rows = studies.every(connection, archived=archived, project=request.state.project)
        found = [views.summary(connection, row) for row in rows]
        for study in found:
            best = (study["verdict"] or {}).get("best", "")
            study |= _in_short(study, studies.shown(connection, study["id"], [best]))
    shown = {"studies": found, "archived": archived, "owner": request.state.member.may("owner")}
    return templates.TemplateResponse(request, "studies.html", shown)


def _in_short(study: Json, best: dict[str, studies.Item]) -> Json:
    """What the list of studies says about one."""
    status = Status((study["verdict"] or {"status": "open"})["status"])
    # Before the first answer the leader is only the first item.
    leader = next((item.label or item.name for item in best.values()), "") if study["answers"] else ""
    leading = "best:" if status.decided else "best guess:" if status.final else "leading:"
    return {"condition": study["condition"], "leading": leading, "leader": leader}


@router.get("/new", dependencies=_for_admin)
def new_page(request: Request, service: ServiceDep) -> Response:
    """The form of a new study, with those of its project from which a population can be learned."""
    others = sorted(set(POLICIES) - set(LADDER_POLICIES))
    with service.database.reading() as connection:
        rows = studies.every(connection, project=request.state.project or members.DEFAULT_PROJECT)
    earlier = [row for row in rows if row["answers"]]
    return templates.TemplateResponse(request, "new.html", {"policies": others, "earlier": earlier})


@router.get("/study/{study}", dependencies=_for_admin)
def study_page(request: Request, study: StudyId, service: ServiceDep) -> Response:
    """The dashboard of a study; its numbers come by the API."""
    with service.database.reading() as connection:
        title = studies.get(connection, study)["title"]
    return templates.TemplateResponse(request, "study.html", {"study": study, "title": title})


@router.get("/audit-log", dependencies=_for_owner)
def audit_page(
    request: Request,
    service: ServiceDep,
    wanted: Annotated[AuditFilter, Depends(audit_filter)],
    before: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
) -> Response:
    """What admins did, for owners."""
    with service.database.reading() as connection:
        rows = members.record(connection, request.state.project, before, SHOWN_ENTRIES + 1, wanted)
        ids = {_study_in(row["target"]) for row in rows}
        titles = studies.titles(connection, ids)
    entries = [
        {
            "when": datetime.fromtimestamp(row["at"], UTC).strftime("%d %b %Y, %H:%M:%S"),
            "who": row["name"],
            "project": row["project"] or "all",
            "what": ACTIONS.get(row["action"], row["action"]),
            "study": _study_in(row["target"]),
            "title": titles.get(_study_in(row["target"])),
            "target": row["target"],
            "outcome": _outcome(row["status"]),
            "done": row["status"] is not None and row["status"] < 400,
        }
        for row in rows[:SHOWN_ENTRIES]
    ]
    chosen = {"who": wanted.who, "action": wanted.action, "study": wanted.study}
    shown = {
        "entries": entries,
        "older": rows[SHOWN_ENTRIES - 1]["id"] if len(rows) > SHOWN_ENTRIES else None,
        "actions": ACTIONS,
        "wanted": wanted,
        "query": urlencode({name: value for name, value in chosen.items() if value}),
        "everywhere": request.state.project is None,
    }
    return templates.TemplateResponse(request, "audit.html", shown)


def _study_in(target: str) -> str:
    """The id of the study that a path is about; "" where it is about none."""
    parts = target.split("/")
    return parts[2] if len(parts) > 2 and parts[1] == "studies" and parts[2] not in ("upload", "systems") else ""


def _outcome(status: int | None) -> str:
    """How an action on record ended."""
    if status is None:
        return "unknown: the process died"
    return "done" if status < 400 else f"refused ({status})"


@router.get("/study/{study}/change", dependencies=_for_admin)
def change_page(request: Request, study: StudyId, service: ServiceDep) -> Response:
    """Forms for changes with consequences: items added or removed during a study, a judge's data deleted."""
    with service.database.reading() as connection:
        row = studies.get(connection, study)
        items = studies.items_of(connection, study)
        people = studies.judges_of(connection, study)
    shown = {
        "study": study,
        "title": row["title"],
        "items": [views.item(study, item) for item in items],
        "features": len(items[0].features or ()),
        "answers": row["answers"],
        "decided": row["decided"] is not None,
        "judges": [judge for judge in people if not studies.is_forgotten(judge["id"])],
        "new_phase": NEW_PHASE,
        "forgotten": FORGOTTEN,
    }
    return templates.TemplateResponse(request, "change.html", shown)


@router.get("/study/{study}/result", dependencies=_for_admin)
def result_page(request: Request, study: StudyId, service: ServiceDep) -> Response:
    """The result as a page to print."""
    studies.look_at(service.database, study)
    with service.database.reading() as connection:
        sheet = result_sheet(connection, study, service.clock())
    return templates.TemplateResponse(request, "result.html", sheet)


@router.get("/study/{study}/certificate.json", dependencies=_for_admin)
def certificate(study: StudyId, service: ServiceDep) -> Response:
    """The certificate as a file for `surepick verify-certificate`."""
    with service.database.reading() as connection:
        found = studies.get(connection, study)["certificate"]
    if found is None:
        raise NotFound(f"Study {study!r} has no certificate; only a proved verdict has one.")
    headers = {"Content-Disposition": 'attachment; filename="certificate.json"'}
    return Response(found, media_type="application/json", headers=headers)


def result_sheet(connection: sa.Connection, study: str, now: float) -> Json:
    """Everything the result page says about a study, in plain words."""
    row = studies.get(connection, study)
    found = views.result(row, now)
    candidates = studies.items_of(connection, study)
    items = {item.name: views.item(study, item) for item in candidates}
    summary = views.summary(connection, row)
    insight = summary["insight"] or {}
    people = {judge["id"]: judge["name"] or "a judge without a name" for judge in studies.judges_of(connection, study)}
    checks = [{**check, "sentence": _named(check["sentence"], people)} for check in insight.get("checks", [])]
    status = Status(found["status"])
    best = items.get(found["best"] or "")
    return {
        "title": row["title"],
        "study": study,
        "result": {"statement": "", "assumptions": [], **found},
        "decided": status.decided,
        "best": best if found["answers"] else None,
        "claims": summary["claims"],
        "headline": summary["headline"],
        "explained": summary["explained"],
        "needed": summary["judges_needed"] if row["state"] in ("running", "paused") else None,
        "when": datetime.fromtimestamp(row["decided"] or now, UTC).strftime("%d %B %Y, %H:%M UTC"),
        "judges": sum(1 for judge in insight.get("judges", {}).values() if judge["answers"]),
        "features": any(item.features for item in candidates),
        "charged": summary["policy"].get("missing") == "charged",
        "checks": checks if found["answers"] else [],
        "alarms": [check for check in checks if check["alarm"]],
        "level": round(sum(check["level"] for check in checks), 4),
        "surviving": [items[name] for name in found.get("surviving", items) if name in items],
        "rivals": _rivals(found, insight, items),
        "refuted": insight.get("refuted", False),
        "scores_note": insight.get("scores_note", ""),
        "certificate": found["certificate"],
        "arithmetic_only": ARITHMETIC_ONLY,
    }


def _rivals(found: Mapping[str, Any], insight: Mapping[str, Any], items: Mapping[str, ItemOut]) -> list[Json]:
    """The best item and its closest rivals, their evidence, scores and intervals as text."""
    scores = {score["item"]: score for score in insight.get("scores", [])}
    evidence = {rival["item"]: rival["evidence"] for rival in found["rivals"]}
    names = [name for name in (found["best"], *evidence) if name in items][:SHOWN_RIVALS]
    rows = []
    for name in names:
        score = scores.get(name, {"score": None, "interval": [None, None]})
        low, high = score["interval"]
        rows.append(
            {
                "item": items[name],
                "evidence": _number(evidence.get(name), "–"),
                "score": _score(score["score"]),
                "interval": "–" if low is None and high is None else f"{_number(low, '−∞')} to {_number(high, '∞')}",
            }
        )
    return rows


def _number(value: float | None, nothing: str) -> str:
    return nothing if value is None or not math.isfinite(value) else f"{value:.2f}".replace("-", "−")


def _score(value: float | None) -> str:
    """A score as text: larger ones come from items that won or lost every time, and say no more."""
    if value is None or abs(value) <= MOST_SCORE:
        return _number(value, "–")
    return f"over {MOST_SCORE}" if value > 0 else f"under −{MOST_SCORE}"


def _named(sentence: str, people: Mapping[str, str]) -> str:
    """Judges by name instead of id."""
    for judge, name in people.items():
        sentence = sentence.replace(judge, name)
    return sentence
