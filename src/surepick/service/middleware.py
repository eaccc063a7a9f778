"""Around every request: a limit of its size, and headers that keep browsers from doing what no page here needs."""

import json
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing is loaded from anywhere else, and no script runs that is not a file of the service."""

HEADERS = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)

SMALL_BODY = 64_000
"""Most bytes of a request that does not bring items or arms."""


class _TooLarge(Exception):
    """The body of a request is larger than it may be."""


class Guard:
    """An ASGI middleware; `upload_bytes` is the limit for requests that bring items or arms."""

    def __init__(self, app: ASGIApp, upload_bytes: int) -> None:
        self._app = app
        self._upload_bytes = upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._upload_bytes if _uploads(scope["path"]) else SMALL_BODY
        received, begun = 0, False

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise _TooLarge
            return message

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message = {**message, "headers": [*message["headers"], *HEADERS]}
            await send(message)

        try:
            if any(name == b"content-length" and int(value) > limit for name, value in scope["headers"]):
                raise _TooLarge
            await self._app(scope, counted, guarded)
        except _TooLarge:
            if begun:
                raise
            await _answer(guarded, 413, f"A request here may have at most {limit:,} bytes; send less.")


def _uploads(path: str) -> bool:
    return path.rstrip("/").endswith(("/studies", "/studies/upload", "/items", "/decide"))


async def _answer(send: Send, status: int, detail: str) -> None:
    body = json.dumps({"detail": detail}).encode()
    headers: list[Any] = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
