"""The pages in a real browser: judges answer to the verdict, the admin watches; nothing leaves the server."""

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, TimeoutError, expect, sync_playwright

from surepick.service.app import create_app
from surepick.service.auth import hash_token
from surepick.service.settings import Settings

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed; the Debian package is chromium")

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TOKEN = "a token of the tests only"
PHONE = {"width": 320, "height": 640}
DESKTOP = {"width": 1280, "height": 800}
COLOURS = {
    "Sea": ("#2a6f97", [1.0, 0.0]),
    "Clay": ("#bc6c25", [0.4, 0.5]),
    "Plum": ("#7b2d6e", [0.2, 0.9]),
    "Moss": ("#6a994e", [0.0, 1.0]),
}
"""Liked in this order, the first best, by a judge who never errs."""


class House:
    """A running service and what an admin does with it from outside."""

    def __init__(self, base: str) -> None:
        self.base = base
        self._client = httpx.Client(base_url=base, headers={"Authorization": f"Bearer {TOKEN}"})

    def close(self) -> None:
        self._client.close()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        reply = self._client.request(method, path, json=body)
        assert reply.is_success, reply.text
        return reply.json()

    def study(self, items: list[dict[str, Any]] | None = None, **fields: Any) -> str:
        colours = [
            {"name": name.lower(), "label": name, "colour": code, "features": features}
            for name, (code, features) in COLOURS.items()
        ]
        body = {
            "title": "Which colour for the door?",
            "items": items or colours,
            "delta": 0.2,
            "epsilon": 1.0,
            "seed": 1,
        } | fields
        return str(self.ask("POST", "/studies", body)["id"])

    def link(self, study: str, name: str = "Jo") -> str:
        return str(self.ask("POST", f"/studies/{study}/judges", {"name": name})["link"])

    def result(self, study: str) -> Any:
        return self.ask("GET", f"/studies/{study}/result")

    def wait_until(self, study: str, field: str, value: Any, seconds: float = 5.0) -> None:
        """Until the study shows this."""
        end = time.monotonic() + seconds
        while (found := self.ask("GET", f"/studies/{study}")[field]) != value:
            assert time.monotonic() < end, f"{field} is {found}, not {value}"
            time.sleep(0.05)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    database = f"sqlite:///{tmp_path_factory.mktemp('house')}/studies.db"
    listening = socket.create_server(("127.0.0.1", 0))
    app = create_app(Settings(database=database, token_hash=hash_token(TOKEN), planners=1))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    made = House(f"http://127.0.0.1:{listening.getsockname()[1]}")
    yield made
    made.close()
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield started
        started.close()


@pytest.fixture
def visit(browser: Browser, house: House) -> Iterator[Any]:
    """Opens pages, each in a browser context of its own; in the end no page may have complained or gone elsewhere."""
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def open_page(url: str, size: dict[str, int] = DESKTOP, **options: Any) -> Page:
        context = browser.new_context(viewport=size, **options)
        contexts.append(context)
        context.set_default_timeout(5_000)
        page = context.new_page()
        page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda sent: None if _ours(sent.url, house) else wrong.append(f"went to {sent.url}"))
        page.goto(url)
        return page

    open_page.wrong = wrong  # type: ignore[attr-defined]
    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def _ours(url: str, house: House) -> bool:
    return url.startswith((f"{house.base}/", "data:image/"))


def liked(page: Page) -> str:
    """Which of the two shown the judge prefers: "a" or "b"."""
    shown = page.locator("#cards button .name").all_inner_texts()
    return "a" if list(COLOURS).index(shown[0]) < list(COLOURS).index(shown[1]) else "b"


def answer(page: Page, how: str) -> bool:
    """Answer one question by mouse or keyboard, and see that the next is there; False where there is none to answer."""
    expect(page.locator("#question, #notice").locator("visible=true")).to_be_visible(timeout=10_000)
    page.wait_for_timeout(130)  # nobody is faster, and a double tap must not count twice
    if page.locator("#notice").is_visible():
        return False
    before, word = page.locator("#cards").get_attribute("data-shown"), liked(page)
    try:
        if how == "mouse":
            page.locator(f"[data-answer={word}]").click(timeout=1_000)
        else:
            page.keyboard.press({"a": "ArrowLeft", "b": "ArrowRight"}[word])
    except TimeoutError:
        assert page.locator("#notice").is_visible()  # it came in between
    page.wait_for_function("before => cards.dataset.shown !== before || !notice.hidden", arg=before, timeout=10_000)
    return True


def answer_to_the_end(page: Page, how: str, most: int = 100) -> None:
    for _ in range(most):
        if not answer(page, how):
            return
    raise AssertionError(f"no verdict after {most} answers")


@pytest.mark.parametrize(("how", "size"), [("mouse", PHONE), ("keyboard", DESKTOP)])
def test_a_judge_answers_to_the_verdict(house: House, visit: Any, how: str, size: dict[str, int]) -> None:
    study = house.study()
    page = visit(house.link(study), size)
    answer_to_the_end(page, how)
    expect(page.locator("#notice-title")).to_have_text("That is all, thank you!")
    found = house.result(study)
    assert (found["best"], found["status"], found["guarantee"]) == ("sea", "within epsilon", "proved")
    expect(page.locator("#notice-text")).to_contain_text(f"Your {found['answers']} answers counted.")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
