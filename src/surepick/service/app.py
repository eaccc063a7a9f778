"""The application: its parts put together, routes that belong to no study, and errors translated into responses."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

from surepick import __version__
from surepick.errors import SurepickError
from surepick.service import administration, api_docs, inviting, judging, oidc, pages, streams, studies
from surepick.service.administration import LATE_SECONDS
from surepick.service.credentials import COOKIE, Credentials, shared_secret
from surepick.service.dependencies import (
    STATUS,
    Service,
    ServiceDep,
    StudyId,
    refuse_stranger,
    same_origin,
    set_cookie,
)
from surepick.service.middleware import RequestLimits
from surepick.service.models import Health, Name, TokenIn
from surepick.service.outage import OUTAGE
from surepick.service.settings import Settings
from surepick.service.telemetry import ObserveRequests
from surepick.store import GroupCommit, open_database
from surepick.store.database import UNAVAILABLE
from surepick.store.members import hashed
from surepick.store.operating import counts
from surepick.store.studies import image

router = APIRouter(tags=["site"])

RETRY_AFTER_SECONDS = 5


def create_app(settings: Settings | None = None) -> FastAPI:
    """The service on its database. Planners and dashboard workers run beside it, see `serve`."""
    chosen = settings or Settings()
    if chosen.oidc_issuer:
        oidc.require_library()
    database = open_database(chosen.database)
    credentials = Credentials(shared_secret(database), chosen.token_hash)
    service = Service(chosen, database, GroupCommit(database), credentials)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.group_commit.close()  # carries out what is queued; those requests wait for their commit
        database.close()

    app = FastAPI(
        title="surepick",
        version=__version__,
        description="Which item is best? Questions to judges, and how sure the answers make it.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    app.openapi = lambda: api_docs.describe(app)  # type: ignore[method-assign]  # how FastAPI is told
    for routes in (
        judging.router,
        inviting.visits,
        studies.router,
        inviting.router,
        streams.router,
        administration.router,
        oidc.router,
        router,
    ):
        app.include_router(routes)
    pages.install(app)
    # Outermost, so that a body is limited before anything reads it, and refusals have the headers too.
    app.add_middleware(RequestLimits, upload_bytes=chosen.upload_bytes)
    app.add_middleware(ObserveRequests, metrics=service.metrics)
    app.add_exception_handler(SurepickError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _no_such_thing)
    for kind in UNAVAILABLE:
        app.add_exception_handler(kind, _database_away)
    return app


@router.get("/health")
def health(service: ServiceDep) -> Health:
    """Whether the database answers, and whether judges' messages are counted; `verify` and the dashboard say more."""
    with service.database.reading() as connection:
        found = counts(service.database, connection)
    return Health(
        status="degraded" if found.lag > LATE_SECONDS or found.quarantined else "ok",
        database=service.database.url.get_backend_name(),
        version=__version__,
        waiting=found.waiting,
        quarantined=found.quarantined,
    )


@router.post("/login", status_code=204)
async def login(body: TokenIn, request: Request, service: ServiceDep) -> Response:
    """Exchange the admin's token for a cookie, which pages of this server then use."""
    member = await service.member_of_token(body.token)
    if member is None:
        refuse_stranger(request, service)
        raise HTTPException(401, "This is not the admin's token; the service printed it when it started.")
    response = Response(status_code=204)
    set_cookie(response, request, service, member, hashed(body.token))
    return response


@router.post("/logout", status_code=204)
def logout(request: Request, service: ServiceDep) -> Response:
    """End the log-in: the cookie is deleted, and a copy of it no longer lets anybody in."""
    if not same_origin(request):
        raise HTTPException(403, "This must come from a page of this server.")
    service.end_login(request.cookies.get(COOKIE, ""))
    response = Response(status_code=204)
    response.delete_cookie(COOKIE)
    return response


@router.get("/studies/{study}/images/{name}", response_class=Response)
def show_image(study: StudyId, name: Name, service: ServiceDep) -> Response:
    """A picture of an item. Its address cannot be guessed and needs no token, so that pages can show it."""
    with service.database.reading() as connection:
        found = image(connection, study, name)
    headers = {"Cache-Control": "private, max-age=86400, immutable"}
    return Response(found.content, media_type=found.media_type, headers=headers)


@router.get("/docs", response_class=HTMLResponse, include_in_schema=False)
def docs(request: Request) -> str:
    """The description of the API, for reading."""
    return api_docs.page(api_docs.describe(request.app))


@router.get("/docs.css", include_in_schema=False)
def docs_style() -> Response:
    """The style of that page."""
    return Response(api_docs.STYLE, media_type="text/css")


def _respond(request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """One sentence: a page for a person at a browser, JSON for a program."""
    detail = detail.encode(errors="backslashreplace").decode()  # half of a character, as it was sent, is no UTF-8
    if pages.wants_page(request):
        return pages.sentence_page(request, status, detail, headers)
    return JSONResponse({"detail": detail}, status, headers=headers)


async def _refused(request: Request, error: Exception) -> Response:
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
    return _respond(request, status, str(error))


async def _database_away(request: Request, error: Exception) -> Response:
    """Judges' pages keep what they could not send and try again; nobody needs to restart anything."""
    OUTAGE.note(error)
    detail = "The database cannot be used at the moment; try again in a few seconds."
    return _respond(request, 503, detail, {"Retry-After": str(RETRY_AFTER_SECONDS)})


async def _no_such_thing(request: Request, error: Exception) -> Response:
    """Sentences for what the framework refuses by itself in two words."""
    assert isinstance(error, HTTPException)
    sentences = {
        404: "There is nothing at this address; /docs lists what there is.",
        405: f"{request.method} is not possible at this address; /docs lists what is.",
        400: "The body of the request cannot be read; it must be what /docs says.",
    }
    detail = error.detail if error.detail.endswith(".") else sentences.get(error.status_code, f"{error.detail}.")
    return _respond(request, error.status_code, detail, error.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    """One sentence; the received value is shown as text, since not all of Python's values are JSON."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    given = repr(first.get("input"))
    shown = given if len(given) <= 60 else given[:57] + "..."
    return _respond(request, 422, f"{where} cannot be used: {first['msg']}, got {shown}.")
