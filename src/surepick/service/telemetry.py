"""What the operator sees of requests: an id for each, logs as JSON lines, and numbers for Prometheus.

Every worker counts by itself. With PROMETHEUS_MULTIPROC_DIR, which `surepick serve` sets, the counts are kept in files
there and added up whichever worker is asked.
"""

import json
import logging
import os
import re
import secrets
import sys
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surepick.store.operating import Counts

HEADER = b"x-request-id"

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.5, 5.0)

_ACCEPTED = re.compile(rb"^[A-Za-z0-9._-]{1,64}$")

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Of the request that is being answered; the proxy's where it sends one."""


class JsonLines(logging.Formatter):
    """Log records as JSON, one per line: time, level, logger, message, and the id of the request if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        if current := request_id.get():
            line["request"] = current
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_as_json() -> None:
    """Write all logs of this process to standard error as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in ("alembic", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)


class Metrics:
    """Requests counted and timed by route, and what the database says."""

    def __init__(self) -> None:
        # The library decides when it is imported whether processes count together, and `surepick serve` has imported
        # this module before it knows the folder for that.
        import prometheus_client

        self._registry = registry = prometheus_client.CollectorRegistry()
        self._requests = prometheus_client.Counter(
            "surepick_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self._seconds = prometheus_client.Histogram(
            "surepick_request_seconds", "Time to answer a request.", ["route"], buckets=BUCKETS, registry=registry
        )
        self.content_type = prometheus_client.CONTENT_TYPE_LATEST

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """One more request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self, counts: Counts) -> bytes:
        """All numbers in Prometheus' text format."""
        from prometheus_client import CollectorRegistry, generate_latest, multiprocess

        requests = self._registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            requests = CollectorRegistry()
            multiprocess.MultiProcessCollector(requests)  # type: ignore[no-untyped-call]
        lines = [generate_latest(requests)]
        for name, what, values in (
            ("studies", "Studies by state.", counts.studies),
            ("streams", "Streams of contextual decisions.", counts.streams),
            ("messages_waiting", "Messages of judges that are not in a log yet.", counts.waiting),
            ("messages_quarantined", "Messages that cannot enter a log.", counts.quarantined),
            ("planner_lag_seconds", "How long the oldest waiting message has waited.", counts.lag),
            ("judges_waiting", "Judges who asked for a question in vain a moment ago.", counts.judges_waiting),
        ):
            lines.append(_gauge(f"surepick_{name}", what, values))
        return b"".join(lines)


def _gauge(name: str, what: str, values: float | Mapping[str, int]) -> bytes:
    """A number of the database: the same whichever worker is asked, so it is written out and not counted."""
    if isinstance(values, Mapping):
        samples = [f'{name}{{state="{state}"}} {value}' for state, value in sorted(values.items())]
    else:
        samples = [f"{name} {values}"]
    return "".join(f"{line}\n" for line in (f"# HELP {name} {what}", f"# TYPE {name} gauge", *samples)).encode()


class ObserveRequests:
    """An ASGI middleware: gives each request its id, sends it back, and counts the request by its route."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = next((value for name, value in scope["headers"] if name == HEADER), b"")
        known = sent if _ACCEPTED.match(sent) else secrets.token_urlsafe(9).encode()
        request_id.set(known.decode())
        status, begun = 500, time.perf_counter()

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], (HEADER, known)]}
            await send(message)

        try:
            await self._app(scope, receive, observed)
        finally:
            # The path of the route, not of the request: ids would make a number of its own for every study.
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.count(scope["method"], route, status, time.perf_counter() - begun)
