"""What every request needs: the parts of the service, who is asking, and whether they may.

An admin comes with a bearer token, the service's own or a member's, or with a cookie that log-in gives for it; a judge
with a signed link; a program with the token of its stream. Routes declare what they need: `ServiceDep`, `Admin`,
`Owner`, `Operator`, `InvitedJudge`, `StreamClient`; a `GuardedRoute` checks it before the body is read. Whoever
administers one project does not learn whether another one has a study of some id.
"""

import asyncio
import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from functools import wraps
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import sqlalchemy as sa
from fastapi import Depends, HTTPException, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from surepick.errors import InvalidInput, SurepickError
from surepick.service.credentials import COOKIE, COOKIE_SECONDS, Credentials, JudgeLink, LogIn
from surepick.service.middleware import RateLimit
from surepick.service.models import Id
from surepick.service.outage import OUTAGE
from surepick.service.settings import Settings
from surepick.service.telemetry import Metrics, request_id
from surepick.store import Conflict, Database, Forbidden, GroupCommit, NotFound, members
from surepick.store.group_commit import Handler
from surepick.store.members import OPERATOR, Member, Role
from surepick.store.schema import server, streams
from surepick.store.streams import Streams
from surepick.store.studies import Item, shown

BURST_SECONDS = 4.0
"""A judge may use up the requests of this many seconds at once."""

TOKEN_SECONDS = 1.0
"""How long a process believes that a stream's token is the present one."""

STATUS: dict[type[SurepickError], int] = {InvalidInput: 422, NotFound: 404, Conflict: 409, Forbidden: 403}
"""Of responses to what is refused."""

MOST_ITEMS = 20_000
"""Items kept in memory for showing them."""

_ENDED = "logged out "
"""Begins the keys of rows about ended log-ins."""


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
    metrics: Metrics = field(default_factory=Metrics)
    streams: Streams = field(init=False)
    items: ShownItems = field(init=False)
    judges: RateLimit = field(init=False)
    """By judge."""
    strangers: RateLimit = field(default_factory=lambda: RateLimit(rate=0.5, burst=30.0))
    """Failed attempts, by address: nobody shall guess tokens fast."""
    visitors: RateLimit = field(default_factory=lambda: RateLimit(rate=0.5, burst=100.0))
    """New judges by shared links, by address: a whole team may come from one, a program must not take every place."""

    # These limits are kept in memory: each worker has its own, so a visitor gets at most `workers` times the rate. That
    # is enough against floods and guessing, and costs no write to the database.
    def __post_init__(self) -> None:
        self._stream_tokens: dict[str, tuple[float, int | None]] = {}
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

    async def member_of_token(self, token: str) -> Member | None:
        """The admin with this token: the operator, or a member of a project."""
        if self.credentials.is_admin(token):
            return OPERATOR
        return await run_in_threadpool(self.member_with, members.hashed(token))

    async def member_of_cookie(self, cookie: str) -> Member | None:
        """The admin of this cookie, if it was made here, is still valid, and nobody has logged out with it."""
        login = self.credentials.login_of(cookie, self.clock())
        return None if login is None else await run_in_threadpool(self._logged_in, login)

    def _logged_in(self, login: LogIn) -> Member | None:
        with self.database.reading() as connection:
            if connection.execute(sa.select(server.c.key).where(server.c.key == _ENDED + login.id)).first() is not None:
                return None
            if login.member != OPERATOR.id:
                return members.by_id(connection, login.member, login.of)
        return OPERATOR if self.credentials.is_own_hash(login.of) else None

    def member_with(self, token_hash: str) -> Member | None:
        """The member of a project whose token has this hash."""
        with self.database.reading() as connection:
            return members.by_token_hash(connection, token_hash)

    async def has_stream_token(self, token: str, stream: str) -> bool:
        """Whether this is the stream's token; one that was changed is refused within TOKEN_SECONDS everywhere."""
        number = self.credentials.stream_token_number(token, stream)
        if number is None:
            return False
        at, known = self._stream_tokens.get(stream, (-math.inf, None))
        if time.monotonic() - at > TOKEN_SECONDS:
            known = await run_in_threadpool(self._stream_tokens_made, stream)
            self._stream_tokens[stream] = time.monotonic(), known
        return number == known

    def _stream_tokens_made(self, stream: str) -> int | None:
        with self.database.reading() as connection:
            return connection.execute(sa.select(streams.c.tokens).where(streams.c.id == stream)).scalar()

    def end_login(self, cookie: str) -> None:
        """Log out: no process accepts this cookie any more. Log-ins that expired by themselves are forgotten."""
        now = self.clock()
        login = self.credentials.login_of(cookie, now)
        if login is None:
            return
        expired = sa.cast(server.c.value, sa.Float) < now
        ended = _ENDED + login.id
        with self.database.writing() as connection:
            connection.execute(sa.delete(server).where(server.c.key.startswith(_ENDED), expired))
            row = {"key": ended, "value": str(now + COOKIE_SECONDS)}
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
            request.state.admitted = {}
        known: dict[Any, Any] = request.state.admitted
        if check not in known:
            known[check] = await check(request, service, bearer)
        return known[check]

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
            service: Service = request.app.state.service
            for check in checks:
                await check(request, service, await _bearer(request))
            admitted = getattr(request.state, "admitted", {}).values()
            admin = next((who for who in admitted if isinstance(who, Member)), None)
            if admin is None or request.method in ("GET", "HEAD"):
                return await handle(request)
            return await _on_record(request, service, admin, f"{request.method} {self.path}", handle)

        return guarded


async def _on_record(
    request: Request,
    service: Service,
    who: Member,
    action: str,
    handle: Callable[[Request], Coroutine[Any, Any, Response]],
) -> Response:
    """Carry out what an admin wants, between two notes in the audit log: nothing is done that is not on record."""

    def begin() -> int:
        path, now = request.url.path, service.clock()
        with service.database.writing() as connection:
            # What somebody of all projects does to a study is on record for the owners of its project, too.
            project = who.project or members.project_of_path(connection, path)
            return members.note(connection, who, action, path, request_id.get(), now, project=project)

    def end(status: int, made: str = "") -> None:
        with service.database.writing() as connection:
            project = members.project_of_path(connection, made)
            members.note_outcome(connection, entry, status, made=made, project=project)

    entry = await run_in_threadpool(begin)
    try:
        response = await handle(request)
    except HTTPException as refused:
        await run_in_threadpool(end, refused.status_code)
        raise
    except (SurepickError, RequestValidationError) as refused:
        status = next((code for kind, code in STATUS.items() if isinstance(refused, kind)), 422)
        await run_in_threadpool(end, status)
        raise
    await run_in_threadpool(end, response.status_code, _path_of_made(request.url.path, response))
    return response


def _path_of_made(path: str, response: Response) -> str:
    """The path of what a request has made, by the id in its response; "" where it made nothing."""
    made = json.loads(bytes(response.body)) if response.status_code == 201 else None
    if not isinstance(made, dict) or "id" not in made:
        return ""
    return f"{path.removesuffix('/upload').removesuffix('/systems')}/{made['id']}"


@_checked_once
async def require_admin(request: Request, service: ServiceDep, bearer: Bearer) -> Member:
    """Admit admins of the project, by bearer token or by cookie from a page of this server; viewers only to read."""
    return await _admit_admin(request, service, bearer, "viewer" if request.method in ("GET", "HEAD") else "editor")


@_checked_once
async def require_editor(request: Request, service: ServiceDep, bearer: Bearer) -> Member:
    """Admit editors of the project, also to read: what lets somebody else in is not for viewers."""
    return await _admit_admin(request, service, bearer, "editor")


@_checked_once
async def require_owner(request: Request, service: ServiceDep, bearer: Bearer) -> Member:
    """Admit owners of the project."""
    return await _admit_admin(request, service, bearer, "owner")


@_checked_once
async def require_operator(request: Request, service: ServiceDep, bearer: Bearer) -> Member:
    """Admit those who belong to all projects."""
    member = await _admit_admin(request, service, bearer, "viewer")
    if member.project is not None:
        raise HTTPException(403, "This is about all projects, and you belong to one; ask the operator.")
    return member


@_checked_once
async def require_stream_client(request: Request, service: ServiceDep, bearer: Bearer) -> Member | str:
    """Admit programs with the stream's token, and editors of its project."""
    stream: str = request.path_params["stream"]
    if bearer is not None and await service.has_stream_token(bearer.credentials, stream):
        return stream
    await _admit_admin(request, service, bearer, "editor")
    return stream  # what goes on in a stream is in its own log, not in that of admins


@_checked_once
async def invited_judge(request: Request, service: ServiceDep, bearer: Bearer) -> JudgeLink:
    """The judge whose link this is; refused if it is forged, expired, of another study, or used too often."""
    return _judge(request, service, bearer, request.path_params.get("study"))


async def _admit_admin(
    request: Request, service: Service, bearer: HTTPAuthorizationCredentials | None, role: Role
) -> Member:
    cookie = request.cookies.get(COOKIE)
    if bearer is not None:
        member = await service.member_of_token(bearer.credentials)
    else:
        member = None if cookie is None else await service.member_of_cookie(cookie)
    if member is None:
        refuse_stranger(request, service)
        raise HTTPException(
            401,
            "This needs the admin's token: send the header 'Authorization: Bearer TOKEN'.",
            headers={"WWW-Authenticate": "Bearer"},
        )
    # A browser sends the cookie whichever site made the page, but never a bearer token: only a cookie needs the check
    # of the origin.
    if bearer is None and request.method not in ("GET", "HEAD") and not same_origin(request):
        raise HTTPException(403, "A request with a cookie must come from a page of this server.")
    await require_own(request, service, member)
    if not member.may(role):
        raise HTTPException(403, f"This takes the role {role}, and yours is {member.role}; ask an owner.")
    return member


async def require_own(request: Request, service: Service, member: Member) -> None:
    """Refuse a study or stream of another project with the words for one that does not exist."""
    if member.project is None:
        return
    for kind in ("study", "stream"):
        key = request.path_params.get(kind)
        if key is not None and not member.belongs_to(await run_in_threadpool(_project_of, service, kind, key)):
            raise NotFound(f"There is no {kind} {key!r}.")


def _project_of(service: Service, kind: Literal["study", "stream"], key: str) -> str:
    with service.database.reading() as connection:
        return members.project_of(connection, kind, key) or ""


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


def set_cookie(response: Response, request: Request, service: Service, member: Member, token_hash: str) -> None:
    """Log an admin in."""
    response.set_cookie(
        COOKIE,
        service.credentials.cookie(service.clock(), member, token_hash),
        max_age=COOKIE_SECONDS,
        httponly=True,
        samesite="strict",
        secure=service.is_encrypted(request),
    )


def chosen_project(member: Member, wanted: str | None) -> str:
    """The project in which a member creates something."""
    project = wanted or member.project or members.DEFAULT_PROJECT
    if not member.belongs_to(project):
        raise Forbidden(f"You belong to the project {member.project!r} and cannot create anything in {project!r}.")
    return project


def require_room(what: str, there: int, most: int) -> None:
    """Refuse one more where a quota is used up."""
    if there >= most:
        raise Conflict(f"There are {there:,} {what}, and the operator allows {most:,}; archive or delete some first.")


def refuse_stranger(request: Request, service: Service) -> None:
    """Count a failed attempt; after many of them the address has to wait."""
    limit_address(request, service.strangers, "Too many failed attempts; wait.")


def limit_address(request: Request, limit: RateLimit, sentence: str) -> None:
    """Count something that the visitor's address does; after too much of it the address has to wait."""
    wait = limit.wait(request.client.host if request.client else "")
    if wait:
        raise HTTPException(429, sentence, headers={"Retry-After": str(int(wait) + 1)})


def same_origin(request: Request) -> bool:
    """Whether the browser says that a page of this server sent the request: other sites cannot use the cookie."""
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host")


Admin = Depends(require_admin)
Editor = Depends(require_editor)
AdminMember = Annotated[Member, Depends(require_admin)]
OwnerMember = Annotated[Member, Depends(require_owner)]
Operator = Depends(require_operator)
StreamClient = Depends(require_stream_client)
InvitedJudge = Annotated[JudgeLink, Depends(invited_judge)]
