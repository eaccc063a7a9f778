"""Inviting: the shared link of a study, many personal links at once, and links shown again.

A visitor opens the shared link, `/join/STUDY#CODE`, and becomes a judge with a link of their own. A cookie keeps it,
so whoever opens the shared link again in the same browser goes on as the same judge.
"""

from typing import Annotated, Any

import segno
from fastapi import APIRouter, File, HTTPException, Query, Request, UploadFile
from fastapi.responses import Response

from surepick.service import uploads, views
from surepick.service.dependencies import (
    Bearer,
    Editor,
    GuardedRoute,
    Service,
    ServiceDep,
    StudyId,
    limit_address,
    refuse_stranger,
)
from surepick.service.models import (
    Consequence,
    Id,
    JudgeOut,
    LinkOut,
    SharedLinkIn,
    SharedLinkOut,
    VisitorIn,
    VisitorOut,
    VisitOut,
)
from surepick.service.views import MEDIA_TYPES, Format
from surepick.store import Conflict, Forbidden, NotFound, invitations, studies
from surepick.store.invitations import SharedLink

CLOSED = "Nobody else can join by the shared link; those who did go on with links of their own."

router = APIRouter(tags=["admin"], dependencies=[Editor], route_class=GuardedRoute)
visits = APIRouter(tags=["judges"])


def qr_code(link: str) -> str:
    """A QR code as a data: URI of a small SVG."""
    uri: str = segno.make(link, error="m").svg_data_uri(border=2, light="#fff", omitsize=True)
    return uri


def judge_link(service: Service, base: str, study: str, judge: str, until: float) -> str:
    """The personal link of a judge."""
    return f"{base}/judge#{service.credentials.link(study, judge, until)}"


@router.get("/studies/{study}/shared-link")
def show_shared_link(study: StudyId, request: Request, service: ServiceDep) -> SharedLinkOut:
    """The link by which anybody can become a judge of the study."""
    with service.database.reading() as connection:
        link = invitations.shared_link(studies.get(connection, study))
        count = invitations.visitors(connection, study)
    return _shown(service, request, study, link, count)


@router.put("/studies/{study}/shared-link")
def open_shared_link(study: StudyId, body: SharedLinkIn, request: Request, service: ServiceDep) -> SharedLinkOut:
    """Open the shared link, or change its limits. A link that was closed is opened with another code."""
    until = service.clock() + 86_400 * (service.settings.link_days if body.days is None else body.days)
    phrase = invitations.hash_phrase(body.phrase)
    with service.database.writing() as connection:
        link = invitations.open_shared_link(connection, study, most=body.most, until=until, phrase=phrase)
        count = invitations.visitors(connection, study)
    return _shown(service, request, study, link, count)


@router.delete("/studies/{study}/shared-link")
def close_shared_link(study: StudyId, service: ServiceDep) -> Consequence:
    """Close the shared link."""
    with service.database.writing() as connection:
        invitations.close_shared_link(connection, study)
    return Consequence(consequence=CLOSED)


def _shown(service: Service, request: Request, study: str, link: SharedLink | None, count: int) -> SharedLinkOut:
    if link is None or not link.usable(service.clock()):
        return SharedLinkOut(shared=None, most=SharedLinkIn().most, visitors=count, phrase=False)
    address = shared_address(service, service.address(request), study, link)
    shared = LinkOut(link=address, qr=qr_code(address), until=link.until)
    return SharedLinkOut(shared=shared, most=link.most, visitors=count, phrase=bool(link.phrase))


def shared_address(service: Service, base: str, study: str, link: SharedLink) -> str:
    """The shared link itself. The code is behind the #, which browsers do not send, so no server's log has it."""
    return f"{base}/join/{study}#{service.credentials.shared_code(study, link.turn)}"


@router.get("/studies/{study}/judges/{judge}/link")
def show_judge_link(study: StudyId, judge: Id, request: Request, service: ServiceDep) -> LinkOut:
    """The personal link of a judge once more."""
    with service.database.reading() as connection:
        row = studies.judge_of(connection, study, judge)
    if row["revoked"]:
        raise Conflict("This judge's link was revoked; add the judge again for a new one.")
    link = judge_link(service, service.address(request), study, judge, row["until"])
    return LinkOut(link=link, qr=qr_code(link), until=row["until"])


@router.post("/studies/{study}/judges/upload", status_code=201)
def add_judges(
    study: StudyId,
    request: Request,
    service: ServiceDep,
    judges: Annotated[UploadFile, File(description="CSV with a column name, one row per judge.")],
) -> list[JudgeOut]:
    """Invite many judges at once; either all of them or, if a row cannot be used, none."""
    names = uploads.judges_from_table(judges.filename or "judges.csv", judges.file.read())
    now, base = service.clock(), service.address(request)
    until = now + 86_400 * service.settings.link_days
    with service.database.writing() as connection:
        ids = [studies.add_judge(connection, study, name, now, until=until) for name in names]
    tokens = [service.credentials.link(study, judge, until) for judge in ids]
    return [
        JudgeOut(id=judge, name=name, token=token, link=f"{base}/judge#{token}", until=until)
        for judge, name, token in zip(ids, names, tokens, strict=True)
    ]


@router.get("/studies/{study}/links", response_class=Response)
def export_links(
    study: StudyId,
    request: Request,
    service: ServiceDep,
    format: Annotated[Format, Query(description="How it is written.")] = "csv",
) -> Response:
    """The personal links of all judges who have one, as a table to download: name, link, judge, until."""
    with service.database.reading() as connection:
        studies.get(connection, study)
        people = [judge for judge in studies.judges_of(connection, study) if not judge["revoked"]]
    base = service.address(request)
    table = [
        {
            "name": judge["name"],
            "link": judge_link(service, base, study, judge["id"], judge["until"]),
            "judge": judge["id"],
            "until": views.time_text(judge["until"]),
        }
        for judge in people
    ]
    headers = {"Content-Disposition": f'attachment; filename="{study}-links.{format}"'}
    return Response(views.written(table, format), media_type=MEDIA_TYPES[format], headers=headers)


@visits.get("/join/{study}/invitation")
def about(study: StudyId, request: Request, service: ServiceDep, bearer: Bearer) -> VisitOut:
    """What a shared link, whose code is sent as bearer token, is for."""
    row, link = _opened(study, request, service, bearer)
    asked = row["decided"] is None and row["state"] in ("running", "paused")
    return VisitOut(
        title=row["title"],
        state=row["state"] if asked else "over",
        phrase=bool(link.phrase),
        judge_link=_joined_before(study, request, service),
    )


@visits.post("/join/{study}", status_code=201)
def join(
    study: StudyId, body: VisitorIn, request: Request, response: Response, service: ServiceDep, bearer: Bearer
) -> VisitorOut:
    """Become a judge by the shared link. In a browser that did so before, the same judge as then."""
    _, link = _opened(study, request, service, bearer)
    before = _joined_before(study, request, service)
    if before is not None:
        return VisitorOut(judge_link=before)
    if not link.accepts(body.phrase):
        refuse_stranger(request, service)
        raise HTTPException(403, "This is not the pass phrase; ask whoever sent the link.")
    limit_address(request, service.visitors, "Too many people have joined from here in a short time; try again soon.")
    now = service.clock()
    until = now + 86_400 * service.settings.link_days
    with service.database.writing() as connection:
        judge = invitations.join(connection, study, link.turn, body.name.strip(), now, until=until)
    token = service.credentials.link(study, judge, until)
    response.set_cookie(
        _cookie_name(study),
        token,
        max_age=int(until - now),
        path=f"/join/{study}",
        httponly=True,
        samesite="strict",
        secure=service.is_encrypted(request),
    )
    return VisitorOut(judge_link=f"/judge#{token}")


def _opened(study: str, request: Request, service: Service, bearer: Bearer) -> tuple[Any, SharedLink]:
    """The study and its shared link, if this is the link's code."""
    with service.database.reading() as connection:
        try:
            row = studies.get(connection, study)
        except NotFound:
            row = None
    link = None if row is None else invitations.shared_link(row)
    given = "" if bearer is None else bearer.credentials
    if link is None or not service.credentials.is_shared_code(given, study, link.turn):
        refuse_stranger(request, service)
        raise HTTPException(
            401,
            "This shared link is not valid; ask whoever sent it for another one.",
            headers={"WWW-Authenticate": "Bearer"},
        )
    if not link.usable(service.clock()):
        raise Conflict("This shared link was closed or has expired; ask whoever sent it for another one.")
    return row, link


def _joined_before(study: str, request: Request, service: Service) -> str | None:
    """The judge's page of the visitor's cookie; refused where the admin has revoked that judge."""
    token = request.cookies.get(_cookie_name(study), "")
    known = service.credentials.judge(token, service.clock())
    if known is None or known.study != study:
        return None
    with service.database.reading() as connection:
        try:
            row = studies.judge_of(connection, study, known.judge)
        except NotFound:  # their data were deleted
            return None
    if row["revoked"]:
        raise Forbidden("You joined before, and that link was revoked.")
    return f"/judge#{token}"


def _cookie_name(study: str) -> str:
    return f"surepick_judge_{study}"
