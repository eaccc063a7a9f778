"""The application: its parts put together, errors translated into answers."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from surepick import __version__
from surepick.errors import InvalidInput, SurepickError
from surepick.service import judging, pages, streams, studies
from surepick.service import root_routes as site
from surepick.service.auth import Gate, shared_secret
from surepick.service.dependencies import Service
from surepick.service.middleware import Guard
from surepick.service.settings import Settings
from surepick.store import Conflict, Forbidden, NotFound, Writer, open_database

STATUS: dict[type[SurepickError], int] = {InvalidInput: 422, NotFound: 404, Conflict: 409, Forbidden: 403}


def create_app(settings: Settings | None = None) -> FastAPI:
    """The service on its database. Planners and an observer run beside it, see `processes`."""
    chosen = settings or Settings()
    database = open_database(chosen.database)
    service = Service(chosen, database, Writer(database), Gate(shared_secret(database), chosen.token_hash))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.writer.close()
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
    for router in (judging.router, studies.router, streams.router, site.router):
        app.include_router(router)
    pages.install(app)
    app.add_middleware(Guard, upload_bytes=chosen.upload_bytes)
    app.add_exception_handler(SurepickError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _no_such_thing)
    return app


def _answer(request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """One sentence: a page for a person at a browser, JSON for a program."""
    if pages.wants_page(request):
        return pages.sentence_page(request, status, detail, headers)
    return JSONResponse({"detail": detail}, status, headers=headers)


async def _refused(request: Request, error: Exception) -> Response:
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
    return _answer(request, status, str(error))


async def _no_such_thing(request: Request, error: Exception) -> Response:
    """Sentences for what the framework refuses by itself with two words."""
    assert isinstance(error, HTTPException)
    sentences = {
        404: "There is nothing at this address; /docs lists what there is.",
        405: f"{request.method} is not possible at this address; /docs lists what is.",
        400: "The body of the request cannot be read; it must be what /docs says.",
    }
    detail = error.detail if error.detail.endswith(".") else sentences.get(error.status_code, f"{error.detail}.")
    return _answer(request, error.status_code, detail, error.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    """One sentence; the received value is shown as text, since not all of Python's values are JSON."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    given = repr(first.get("input"))
    shown = given if len(given) <= 60 else given[:57] + "..."
    return _answer(request, 422, f"{where} cannot be used: {first['msg']}, got {shown}.")
