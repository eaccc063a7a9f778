"""What every request needs: the parts of the service, who is asking, and whether they may.

The admin comes with a bearer token, or with a cookie that log-in gives for it; a judge with a signed link; a program
with the token of its stream. Routes declare what they need: `ServiceDep`, `Admin`, `InvitedJudge`, `StreamClient`; a
`GuardedRoute` checks it before the body is read.
"""

import asyncio
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from functools import wraps
from typing import Annotated, Any
from urllib.parse import urlsplit

import sqlalchemy as sa
from fastapi import Depends, HTTPException, Path, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from itsdangerous import BadData, URLSafeSerializer
from starlette.concurrency import run_in_threadpool

from surepick.service.middleware import RateLimit
from surepick.service.models import Id
from surepick.service.outage import OUTAGE
from surepick.service.settings import Settings
from surepick.store import Database, GroupCommit
from surepick.store.group_commit import Handler
from surepick.store.schema import server
from surepick.store.streams import Streams
from surepick.store.studies import Item, shown

COOKIE = "surepick_admin"
COOKIE_SECONDS = 12 * 3600

BURST_SECONDS = 4.0
"""A judge may use up the requests of this many seconds at once."""

MOST_ITEMS = 20_000
"""Items kept in memory for showing them."""

_ENDED = "logged out "
"""Begins the keys of rows about ended log-ins."""

_SIGNER = {"key_derivation": "hmac", "digest_method": hashlib.sha256}


@dataclass(frozen=True)
class JudgeLink:
    """What a judge's link says."""

    study: str
    judge: str
    until: float


def shared_secret(database: Database) -> str:
    """The secret that signs links, the same for all processes on a database; made when first needed."""
    with database.writing() as connection:
        # Several processes may start at once: the first secret stays, and all read that one.
        connection.execute(database.insert_new(server), [{"key": "link secret", "value": secrets.token_urlsafe(32)}])
        secret: str = connection.execute(sa.select(server.c.value).where(server.c.key == "link secret")).scalar_one()
    return secret


class Credentials:
    """Makes and checks what lets somebody in: the admin's token and cookie, judges' links, streams' tokens.

    Links and tokens are signed, not stored: any process with the shared secret can check one without the database.
    Every kind has its own salt, so a judge's link is no admin's cookie.
    """

    def __init__(self, secret: str, token_hash: str) -> None:
        self._token_hash = token_hash
        self._links = URLSafeSerializer(secret, salt="judge", signer_kwargs=_SIGNER)
        self._streams = URLSafeSerializer(secret, salt="stream", signer_kwargs=_SIGNER)
        self._cookies = URLSafeSerializer(secret, salt="admin", signer_kwargs=_SIGNER)

    def is_admin(self, token: str) -> bool:
        """Whether this is the admin's token; takes the same time for every wrong one, so timing reveals nothing."""
        given = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
        return bool(self._token_hash) and hmac.compare_digest(given, self._token_hash)

    def cookie(self, now: float) -> str:
        """A cookie that stands for the token for COOKIE_SECONDS, until log-out, or until the token is changed."""
        return str(self._cookies.dumps([now + COOKIE_SECONDS, self._token_hash[:16], secrets.token_urlsafe(12)]))

    def login_of(self, cookie: str, now: float) -> str | None:
        """The log-in of this cookie; None for a forged or expired one. Whether it has ended, the database knows."""
        try:
            until, of, login = self._cookies.loads(cookie)
        except (BadData, ValueError, TypeError):
            return None
        valid = bool(self._token_hash) and now < float(until) and hmac.compare_digest(str(of), self._token_hash[:16])
        return str(login) if valid else None

    def link(self, study: str, judge: str, until: float) -> str:
        """The signed part of a judge's link."""
        return str(self._links.dumps([study, judge, until]))

    def judge(self, link: str, now: float) -> JudgeLink | None:
        """The judge of this link; None for a forged or expired one. Whether it was revoked, the database knows."""
        try:
            study, judge, until = self._links.loads(link)
            found = JudgeLink(str(study), str(judge), float(until))
        except (BadData, ValueError, TypeError):
            return None
        return found if now < found.until else None

    def stream_token(self, stream: str) -> str:
        """The token with which programs ask a stream for decisions."""
        return str(self._streams.dumps(stream))

    def is_streams_token(self, token: str, stream: str) -> bool:
        """Whether this is the token of that stream."""
        try:
            return bool(self._streams.loads(token) == stream)
        except BadData:
            return False


class ShownItems:
    """What judges see of items, kept in memory: an item never changes, though it may be removed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: OrderedDict[tuple[str, str], Item] = OrderedDict()

    async def get(self, study: str, names: Collection[str]) -> dict[str, Item]:
        """These items of a study, by name."""
        if any((study, name) not in self._known for name in names):
            # Reading blocks its thread, and the event loop serves everybody: so in another thread.
            self._known |= await run_in_threadpool(self._read, study, names)
        found = {name: self._known[study, name] for name in names}
        while len(self._known) > MOST_ITEMS:
            self._known.popitem(last=False)
        return found

    def _read(self, study: str, names: Collection[str]) -> dict[tuple[str, str], Item]:
        with self._database.reading() as connection:
            return {(study, name): item for name, item in shown(connection, study, names).items()}


@dataclass
class Service:
    """The parts of a running service."""

    settings: Settings
    database: Database
    group_commit: GroupCommit
    credentials: Credentials
    clock: Callable[[], float] = time.time
    patience: float = 2.0
    """Seconds that a request waits for a question to become ready, before the judge is told to ask again."""
    streams: Streams = field(init=False)
    items: ShownItems = field(init=False)
    judges: RateLimit = field(init=False)
    """By judge."""
    strangers: RateLimit = field(default_factory=lambda: RateLimit(rate=0.5, burst=30.0))
    """Failed attempts, by address: nobody shall guess tokens fast."""

    # Both limits are kept in memory: each worker has its own, so a visitor gets at most `workers` times the rate. That
    # is enough against floods and guessing, and costs no write to the database.
    def __post_init__(self) -> None:
        self.streams = Streams(self.database)
        self.items = ShownItems(self.database)
        self.judges = RateLimit(self.settings.rate, BURST_SECONDS * self.settings.rate)

    async def write(self, handler: Handler, request: Any) -> Any:
        """Carry out a request with the next group of writes; returns when it is committed."""
        result = await asyncio.wrap_future(self.group_commit.submit(handler, request))
        OUTAGE.over()
        return result

    def address(self, request: Request) -> str:
        """Where this service is reached: for links that go to others, so not what the request says in its Host."""
        if self.settings.public_url:
            return self.settings.public_url.rstrip("/")
        host, port = request.scope["server"]  # the local end of the connection
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}" if port else f"http://{shown}"

    def is_encrypted(self, request: Request) -> bool:
        """Whether the visitor comes by HTTPS, here or to the proxy in front."""
        return request.url.scheme == "https" or self.settings.public_url.startswith("https://")

    async def is_admins_cookie(self, cookie: str) -> bool:
        """Whether the cookie was made here, is still valid, and nobody has logged out with it."""
        login = self.credentials.login_of(cookie, self.clock())
        return login is not None and not await run_in_threadpool(self._has_ended, login)

    def _has_ended(self, login: str) -> bool:
        with self.database.reading() as connection:
            return connection.execute(sa.select(server.c.key).where(server.c.key == _ENDED + login)).first() is not None

    def end_login(self, cookie: str) -> None:
        """Log out: no process accepts this cookie any more. Log-ins that expired by themselves are forgotten."""
        now = self.clock()
        login = self.credentials.login_of(cookie, now)
        if login is None:
            return
        expired = sa.cast(server.c.value, sa.Float) < now
        with self.database.writing() as connection:
            connection.execute(sa.delete(server).where(server.c.key.startswith(_ENDED), expired))
            row = {"key": _ENDED + login, "value": str(now + COOKIE_SECONDS)}
            connection.execute(self.database.insert_new(server), [row])


async def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


ServiceDep = Annotated[Service, Depends(_service)]
StudyId = Annotated[Id, Path(description="Id of a study.")]
_bearer = HTTPBearer(auto_error=False, description="The token of the admin, of a judge's link or of a stream.")
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


_checks: set[Any] = set()


def _checked_once(check: Any) -> Any:
    """A dependency whose result is kept with the request: the route asks for it first, the framework once more."""

    @wraps(check)
    async def checked(request: Request, service: Service, bearer: HTTPAuthorizationCredentials | None) -> Any:
        if not hasattr(request.state, "admitted"):
            request.state.admitted = await check(request, service, bearer)
        return request.state.admitted

    _checks.add(checked)
    return checked


class GuardedRoute(APIRoute):
    """A route that checks who is asking before it reads the body.

    FastAPI reads and parses the body first, so strangers could keep the service busy with large ones.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The framework's handler behind the check."""
        handle = super().get_route_handler()
        checks: list[Any] = [needed.call for needed in self.dependant.dependencies if needed.call in _checks]

        async def guarded(request: Request) -> Response:
            for check in checks:
                await check(request, request.app.state.service, await _bearer(request))
            return await handle(request)

        return guarded


@_checked_once
async def require_admin(request: Request, service: ServiceDep, bearer: Bearer) -> None:
    """Refuse everybody but the admin: by bearer token, or by cookie from a page of this server."""
    await _admit_admin(request, service, bearer)


@_checked_once
async def require_stream_client(request: Request, service: ServiceDep, bearer: Bearer) -> None:
    """Refuse everybody but programs with the stream's token, and the admin."""
    stream = request.path_params["stream"]
    if bearer is None or not service.credentials.is_streams_token(bearer.credentials, stream):
        await _admit_admin(request, service, bearer)


@_checked_once
async def invited_judge(request: Request, service: ServiceDep, bearer: Bearer) -> JudgeLink:
    """The judge whose link this is; refused if it is forged, expired, of another study, or used too often."""
    return _judge(request, service, bearer, request.path_params.get("study"))


async def _admit_admin(request: Request, service: Service, bearer: HTTPAuthorizationCredentials | None) -> None:
    if bearer is not None and service.credentials.is_admin(bearer.credentials):
        return
    cookie = request.cookies.get(COOKIE)
    # A browser sends the cookie whichever site made the page, but never a bearer token: only a cookie needs the check
    # of the origin.
    if bearer is None and cookie is not None and await service.is_admins_cookie(cookie):
        if request.method in ("GET", "HEAD") or same_origin(request):
            return
        raise HTTPException(403, "A request with a cookie must come from a page of this server.")
    refuse_stranger(request, service)
    raise HTTPException(
        401,
        "This needs the admin's token: send the header 'Authorization: Bearer TOKEN'.",
        headers={"WWW-Authenticate": "Bearer"},
    )


def _judge(
    request: Request, service: Service, bearer: HTTPAuthorizationCredentials | None, study: str | None
) -> JudgeLink:
    link = None if bearer is None else service.credentials.judge(bearer.credentials, service.clock())
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
    """Count a failed attempt; after many of them the address has to wait."""
    wait = service.strangers.wait(request.client.host if request.client else "")
    if wait:
        raise HTTPException(429, "Too many failed attempts; wait.", headers={"Retry-After": str(int(wait) + 1)})


def same_origin(request: Request) -> bool:
    """Whether the browser says that a page of this server sent the request: other sites cannot use the cookie."""
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host")


Admin = Depends(require_admin)
StreamClient = Depends(require_stream_client)
InvitedJudge = Annotated[JudgeLink, Depends(invited_judge)]
