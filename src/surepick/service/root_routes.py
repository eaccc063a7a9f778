"""What belongs to no study: health, log-in of the admin, images, the description of the API."""

from html import escape
from typing import Any

import sqlalchemy as sa
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, Response

from surepick import __version__
from surepick.service.auth import COOKIE, COOKIE_SECONDS
from surepick.service.dependencies import Running, StudyId, refuse_stranger, same_origin
from surepick.service.models import Health, Name, TokenIn
from surepick.store import studies
from surepick.store.schema import messages

router = APIRouter(tags=["site"])


@router.get("/health")
def health(service: Running) -> Health:
    """Whether the database answers."""
    with service.database.reading() as connection:
        waiting = connection.execute(sa.select(sa.func.count()).where(messages.c.seq.is_(None))).scalar_one()
    return Health(status="ok", database=service.database.url.get_backend_name(), version=__version__, waiting=waiting)


@router.post("/login", status_code=204)
async def login(body: TokenIn, request: Request, service: Running) -> Response:
    """Exchange the admin's token for a cookie, which pages of this server then use."""
    if not service.gate.is_admin(body.token):
        refuse_stranger(request, service)
        raise HTTPException(401, "This is not the admin's token; it was shown when the service was started.")
    response = Response(status_code=204)
    response.set_cookie(
        COOKIE,
        service.gate.cookie(service.clock()),
        max_age=COOKIE_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@router.post("/logout", status_code=204)
async def logout(request: Request) -> Response:
    """Forget the cookie."""
    if not same_origin(request):
        raise HTTPException(403, "This must come from a page of this server.")
    response = Response(status_code=204)
    response.delete_cookie(COOKIE)
    return response


@router.get("/studies/{study}/images/{name}", response_class=Response)
def show_image(study: StudyId, name: Name, service: Running) -> Response:
    """A picture of an item. Its address, which nobody guesses, is all that is needed, so that pages can show it."""
    with service.database.reading() as connection:
        found = studies.image(connection, study, name)
    headers = {"Cache-Control": "private, max-age=86400, immutable"}
    return Response(found.content, media_type=found.media_type, headers=headers)


@router.get("/docs", response_class=HTMLResponse, include_in_schema=False)
def docs(request: Request) -> str:
    """The description of the API, for reading; /openapi.json has all of it."""
    described: dict[str, Any] = request.app.openapi()
    entries = "".join(
        f"<dt><code>{escape(method.upper())} {escape(path)}</code></dt><dd>{escape(each.get('description', ''))}</dd>"
        for path, methods in described["paths"].items()
        for method, each in methods.items()
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>surepick API</title>'
        f'<h1>surepick API</h1><p><a href="openapi.json">openapi.json</a> has all details.</p><dl>{entries}</dl></html>'
    )
