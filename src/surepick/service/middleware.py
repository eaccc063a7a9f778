"""Limits: the size of requests, how many a visitor may send, and headers that restrict what a page can do."""

import json
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing is loaded from anywhere else, and no script runs that is not a file of the service."""

HEADERS = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),  # an uploaded image stays an image
    (b"referrer-policy", b"no-referrer"),  # addresses of studies go to nobody
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)

SMALL_BODY = 64_000
"""Most bytes of any other request."""

MOST_VISITORS = 20_000
"""Visitors remembered; those who came longest ago are forgotten first, so that memory stays bounded."""


class RequestLimits:
    """An ASGI middleware around every request: limits its body, and adds HEADERS to the response.

    `upload_bytes` is the limit for requests that bring items or arms. Bytes are counted as they arrive, so a body with
    no Content-Length, or a wrong one, is cut off as well.
    """

    def __init__(self, app: ASGIApp, upload_bytes: int) -> None:
        self._app = app
        self._upload_bytes = upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._upload_bytes if _uploads(scope["path"]) else SMALL_BODY
        sentence = f"A request here may have at most {limit:,} bytes; send less."
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:  # inside the application, which passes this kind of exception on
                raise HTTPException(413, sentence, headers={"Connection": "close"})
            return message

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *HEADERS]}
            await send(message)

        if any(name == b"content-length" and int(value) > limit for name, value in scope["headers"]):
            await _answer(guarded, 413, sentence)
        else:
            await self._app(scope, counted, guarded)


def _uploads(path: str) -> bool:
    return path.rstrip("/").endswith(("/studies", "/studies/upload", "/studies/systems", "/items", "/decide"))


async def _answer(send: Send, status: int, detail: str) -> None:
    body = json.dumps({"detail": detail}).encode()
    headers: list[Any] = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class RateLimit:
    """A token bucket for each visitor: it holds `burst` requests and is refilled with `rate` per second."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, visitor: str) -> float:
        """Take one request out of the visitor's bucket: 0, or the seconds until there is one."""
        now = self._clock()
        left, at = self._buckets.pop(visitor, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        missing = max(0.0, 1.0 - left)
        # Put back at the end: the order of the dictionary is the order of the last visits.
        self._buckets[visitor] = (left if missing else left - 1.0, now)
        if len(self._buckets) > MOST_VISITORS:
            self._buckets.popitem(last=False)
        return missing / self._rate
