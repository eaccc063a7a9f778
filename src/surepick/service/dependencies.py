"""What every request needs: the store, who is asking, and whether they may."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from surepick.service.auth import COOKIE, Gate, JudgeLink
from surepick.service.models import Id
from surepick.service.rate_limit import RateLimit
from surepick.service.settings import Settings
from surepick.store import Database, Writer
from surepick.store.group_commit import Handler
from surepick.store.streams import Streams

BURST_SECONDS = 4.0
"""A judge may use up the requests of so many seconds at once."""


@dataclass
class Service:
    """The parts of a running service."""

    settings: Settings
    database: Database
    writer: Writer
    gate: Gate
    clock: Callable[[], float] = time.time
    patience: float = 2.0
    """A judge for whom no question is ready waits for one up to so many seconds, before he is told to ask again."""
    streams: Streams = field(init=False)
    judges: RateLimit = field(init=False)
    strangers: RateLimit = field(default_factory=lambda: RateLimit(rate=0.5, burst=30.0))
    """For those who come with a wrong token."""

    def __post_init__(self) -> None:
        self.streams = Streams(self.database)
        self.judges = RateLimit(self.settings.rate, BURST_SECONDS * self.settings.rate)

    async def write(self, handler: Handler, request: Any) -> Any:
        """Do it with the next group of writes; returns when it is committed."""
        return await asyncio.wrap_future(self.writer.submit(handler, request))


async def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


Running = Annotated[Service, Depends(_service)]
StudyId = Annotated[Id, Path(description="Id of a study.")]
_bearer = HTTPBearer(auto_error=False, description="The token of the admin, of a judge's link or of a stream.")
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


async def require_admin(request: Request, service: Running, bearer: Bearer) -> None:
    """Refuse everybody but the admin: by bearer token, or by cookie from a page of this very server."""
    if bearer is not None and service.gate.is_admin(bearer.credentials):
        return
    cookie = request.cookies.get(COOKIE)
    if bearer is None and cookie is not None and service.gate.is_admins_cookie(cookie, service.clock()):
        if request.method in ("GET", "HEAD") or same_origin(request):
            return
        raise HTTPException(403, "A request with a cookie must come from a page of this server.")
    refuse_stranger(request, service)
    raise HTTPException(
        401,
        "This needs the admin's token: send the header 'Authorization: Bearer TOKEN'.",
        headers={"WWW-Authenticate": "Bearer"},
    )


async def require_client(request: Request, stream: Id, service: Running, bearer: Bearer) -> None:
    """Refuse everybody but programs with the stream's token, and the admin."""
    if bearer is None or not service.gate.is_streams_token(bearer.credentials, stream):
        await require_admin(request, service, bearer)


async def invited_judge(request: Request, service: Running, bearer: Bearer) -> JudgeLink:
    """The judge whose link this is; refused if it is forged, expired or used too often."""
    return _judge(request, service, bearer, None)


async def known_judge(request: Request, study: StudyId, service: Running, bearer: Bearer) -> JudgeLink:
    """The judge whose link this is; refused if it is forged, expired, of another study, or used too often."""
    return _judge(request, service, bearer, study)


def _judge(
    request: Request, service: Service, bearer: HTTPAuthorizationCredentials | None, study: str | None
) -> JudgeLink:
    link = None if bearer is None else service.gate.judge(bearer.credentials, service.clock())
    if link is None or study not in (None, link.study):
        refuse_stranger(request, service)
        raise HTTPException(
            401,
            "This needs a judge's link of this study that has not expired; ask whoever invited you for a new one.",
            headers={"WWW-Authenticate": "Bearer"},
        )
    wait = service.judges.wait(link.judge)
    if wait:
        raise HTTPException(429, "Too many requests; slow down.", headers={"Retry-After": str(int(wait) + 1)})
    return link


def refuse_stranger(request: Request, service: Service) -> None:
    """Count a failed attempt; those who try again and again have to wait."""
    wait = service.strangers.wait(request.client.host if request.client else "")
    if wait:
        raise HTTPException(429, "Too many failed attempts; wait.", headers={"Retry-After": str(int(wait) + 1)})


def same_origin(request: Request) -> bool:
    """Whether a browser says that a page of this server sent the request."""
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host")


Admin = Depends(require_admin)
Client = Depends(require_client)
Invited = Annotated[JudgeLink, Depends(invited_judge)]
Judge = Annotated[JudgeLink, Depends(known_judge)]
