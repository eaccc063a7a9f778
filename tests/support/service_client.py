"""A running service and a browser, for tests of the pages and for the pictures of them in the documentation."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import httpx
from playwright.sync_api import Browser, sync_playwright

from running_service import ADMIN, PATIENCE, RunningService

CHROMIUM = shutil.which("chromium")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE = {"width": 320, "height": 640}
DESKTOP = {"width": 1280, "height": 800}
COLOURS = {"Sea": "#2a6f97", "Clay": "#bc6c25", "Plum": "#7b2d6e", "Moss": "#6a994e"}
"""Liked in this order, the first best."""


class ServiceClient:
    """A running service and what an admin does with it from outside."""

    def __init__(self, base: str) -> None:
        self.base = base
        self._client = httpx.Client(base_url=base, headers=ADMIN, timeout=PATIENCE)

    def close(self) -> None:
        self._client.close()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        reply = self._client.request(method, path, json=body)
        assert reply.is_success, reply.text
        return reply.json()

    def study(self, items: list[dict[str, Any]] | None = None, **fields: Any) -> str:
        colours = [{"name": name.lower(), "label": name, "colour": code} for name, code in COLOURS.items()]
        body = {
            "title": "Which colour for the door?",
            "items": items or colours,
            "delta": 0.2,
            "epsilon": 2.0,
            "seed": 1,
            "policy": "anytime",
            "repeats": "independent",  # one judge answers to the end
        } | fields
        return str(self.ask("POST", "/studies", body)["id"])

    def link(self, study: str, name: str = "Jo") -> str:
        return str(self.ask("POST", f"/studies/{study}/judges", {"name": name})["link"])

    def result(self, study: str) -> Any:
        return self.ask("GET", f"/studies/{study}/result")

    def answers(self, study: str) -> list[dict[str, Any]]:
        """All that judges said, in order."""
        reply = self._client.get(f"/studies/{study}/export?what=answers&format=jsonl")
        return [json.loads(line) for line in reply.text.splitlines()]

    def wait_until(self, study: str, field: str, least: int) -> None:
        """Until the study shows at least this number; it may grow by several at once."""
        end = time.monotonic() + PATIENCE
        while (found := self.ask("GET", f"/studies/{study}")[field]) < least:
            assert time.monotonic() < end, f"{field} is {found}, less than {least}"
            time.sleep(0.05)


@contextmanager
def running_client(database: str) -> Iterator[ServiceClient]:
    """The service as users run it, on this database."""
    service = RunningService(database)
    try:
        service.start()
        with closing(ServiceClient(service.url)) as client:
            yield client
        service.stop()
    finally:
        service.kill_all()


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Debian's Chromium without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        try:
            yield browser
        finally:
            browser.close()
