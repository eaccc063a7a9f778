"""Which page is where."""

from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates
from starlette.staticfiles import StaticFiles

_HERE = Path(__file__).parent

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
templates = Jinja2Templates(_HERE / "templates")


def install(app: FastAPI) -> None:
    """Add the pages and their files."""
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=_HERE / "static"), name="static")


@router.get("/judge")
def judge_page(request: Request) -> HTMLResponse:
    """The page of every judge; who it is stands behind the # of the link, which browsers do not send."""
    return templates.TemplateResponse(request, "judge.html")
