"""Connections that cannot be held open for nothing: time limits that uvicorn lacks, and a limited log.

Whoever sends a request slowly, or not at all, occupies a connection. Uvicorn waits for the rest of a request for ever
and accepts connections until the process has no file descriptors left. Here a request has to arrive in time, and
when there are too many connections the one that has been waited for longest is closed: a new visitor always gets in.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""How long the head of a request may take, from the beginning of the connection or the end of the response before."""

BODY_SECONDS = 120.0
"""How long the body may take: 20 MB need 1.4 Mbit/s."""

MOST_CONNECTIONS = 2_000
"""Open at the same time in one process, where its file descriptors suffice."""

SPARE_FILES = 200
"""File descriptors left for the database and everything else."""

LINES_PER_MINUTE = 10
"""Of the same kind in the log."""


def most_connections() -> int:
    """Allow this process as many files as the system permits; how many of them may be connections."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit to raise
        return MOST_CONNECTIONS
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + SPARE_FILES
    allowed = wanted if most == resource.RLIM_INFINITY else min(most, wanted)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))
    return max(allowed - SPARE_FILES, 1)


class Connection(H11Protocol):
    """A connection whose client has to send each request in time."""

    _awaited: ClassVar[dict["Connection", None]] = {}
    """All from which part of a request is still to come, those awaited longest first."""
    most = MOST_CONNECTIONS

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._state: Any = None
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin to wait for a request; the connection awaited longest makes room if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            next(iter(self._awaited), self)._give_up()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        self._stop_waiting()

    def handle_events(self) -> None:
        """Take what has arrived, then wait for what is missing."""
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        """Start the clock when something else is awaited than before: a few bytes more do not start it again."""
        state = self.conn.their_state
        if self.transport.is_closing() or state is self._state:
            return
        self._stop_waiting()
        self._state = state
        seconds = {h11.IDLE: HEAD_SECONDS, h11.SEND_BODY: BODY_SECONDS}.get(state)
        if seconds is not None:
            self._awaited[self] = None
            self._deadline = self.loop.call_later(seconds, self._give_up)

    def _stop_waiting(self) -> None:
        self._awaited.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._stop_waiting()
        self.transport.abort()  # without waiting for a client that does not read either


class LogLimit(logging.Filter):
    """Lets a few lines of each kind through per minute, and then says how many it kept back: a log must not fill up
    the disk because somebody sends nonsense."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._minute, self._seen = 0, dict[tuple[Any, ...], int]()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written."""
        minute = int(self._clock() // 60)
        if minute != self._minute:
            self._minute, self._seen = minute, {}
        cause = record.exc_info[0] if record.exc_info else None
        kind = (record.msg, cause)
        self._seen[kind] = self._seen.get(kind, 0) + 1
        if self._seen[kind] == LINES_PER_MINUTE:
            record.msg = f"{record.msg} (further lines like this are left out until the minute is over)"
        return self._seen[kind] <= LINES_PER_MINUTE


def limit_log() -> None:
    """Limit the lines that requests can cause."""
    for name in ("uvicorn.error", "asyncio", "surepick.service", "surepick.processes"):
        logging.getLogger(name).addFilter(LogLimit())
