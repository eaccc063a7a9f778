"""Calls of an OpenAI-compatible server: retries, what it does not accept, errors in its own words, and a cache."""

import asyncio
import hashlib
import json
import os
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from os import PathLike
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from surepick.errors import InvalidInput, MissingExtra, SurepickError
from surepick.session.journal import Journal, read_journal

if TYPE_CHECKING:
    import httpx

PAUSE = 0.5
"""Seconds before the first retry; twice as long before each further one, up to `LONGEST_PAUSE`."""

LONGEST_PAUSE = 60.0

LONGEST_WAIT = 600.0
"""A server that asks for a longer wait (Retry-After) has run out of quota, not of breath: the search ends."""

BUSY = (408, 409, 425, 429)
"""Statuses below 500 after which a call is made again."""

NO_CREDIT = ("insufficient_quota", "billing", "credit balance", "insufficient credits")
"""Words of a 429 that no waiting cures."""

COMPLAINTS: Mapping[str, tuple[str, ...]] = {
    "response_format": ("response_format", "response format", "json_schema", "json schema", "structured output"),
    "logprobs": ("logprob",),
    "temperature": ("temperature",),
    "max_tokens": ("max_tokens",),
    "max_completion_tokens": ("max_completion_tokens",),
}
"""Optional parameters, and the words by which a server's error says that it does not take one."""

MOST_LOGPROBS = 5
"""Alternatives of each token to ask for; servers allow at least this many."""

Reply = dict[str, Any]
"""The body of a server's reply."""

Body = dict[str, Any]
"""The body of a request."""

Submit = Callable[[Coroutine[Any, Any, Any]], Future[Any]]
"""Starts a coroutine in another thread."""


class ModelFailed(SurepickError):
    """The language model cannot go on judging; the message has the server's own words."""


class CallFailed(SurepickError):
    """One call failed, retries included; others may work."""


def address(url: str) -> str:
    """Where to post: the full path as given, or that of the server's base URL.

    >>> address("http://localhost:8000"), address("https://models.example/api/v1/")
    ('http://localhost:8000/v1/chat/completions', 'https://models.example/api/v1/chat/completions')
    """
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidInput(f"The model server's URL must begin with http:// or https://, got {url!r}.")
    path = parts.path.rstrip("/")
    if not path.endswith("/completions"):
        path = f"{path or '/v1'}/chat/completions"
    return urlunsplit(parts._replace(path=path))


@dataclass(eq=False)
class ReplyCache:
    """Replies that were paid for, by what was asked and how often it had been asked before; a file of JSON lines."""

    path: Path | None = None
    _known: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    _journal: Journal | None = None

    @classmethod
    def at(cls, path: str | PathLike[str] | None) -> "ReplyCache":
        """The cache in this file, which is made with the first reply; without one it is in memory only."""
        cache = cls(None if path is None else Path(path))
        if cache.path is not None and cache.path.exists():
            try:
                for record in read_journal(cache.path):
                    cache._known[record["key"], record["draw"]] = record
            except (InvalidInput, KeyError, UnicodeDecodeError, OSError):
                raise InvalidInput(f"{path} is not a file of replies; name another file with --cache.") from None
        if cache.path is not None:
            nearest = next(place for place in (cache.path, *cache.path.absolute().parents) if place.exists())
            if not os.access(nearest, os.W_OK):  # said before a call is paid for
                raise InvalidInput(f"Replies cannot be written to {path}; name another file with --cache.")
        return cache

    def get(self, key: str, draw: int) -> dict[str, Any] | None:
        """The reply to the draw-th asking, if it is known."""
        return self._known.get((key, draw))

    def put(self, key: str, draw: int, temperature: float | None, reply: Reply) -> dict[str, Any]:
        """Keep a reply; it is in the file when this returns."""
        record = {"key": key, "draw": draw, "temperature": temperature, "reply": reply}
        if self.path is not None:
            if self._journal is None:
                try:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                    self._journal = Journal(self.path)
                except OSError as error:
                    raise ModelFailed(
                        f"Replies cannot be kept in {self.path} ({error.strerror}); name another file with --cache."
                    ) from None
            self._journal.append(record)
        self._known[key, draw] = record
        return record


def key_of(*parts: Any) -> str:
    """A name for what is asked, the same in every run."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(eq=False)
class ModelServer:
    """One server and what it has been found to accept. `client` is set while calls are made."""

    url: str
    key: str | None = field(repr=False)
    timeout: float
    retries: int
    calls_per_minute: float | None = None
    calls: int = 0
    """Requests sent, retries included."""
    worked: bool = False
    """Whether a call has succeeded: before that, errors are taken for mistakes in the settings, and calls are made one
    at a time, so that a mistake costs one call."""
    refused: set[str] = field(default_factory=set)
    """Optional parameters that the server does not take."""
    client: "httpx.AsyncClient | None" = None
    failed: ModelFailed | None = None
    """Why no more calls are made."""
    _alone: asyncio.Lock = field(default_factory=asyncio.Lock)
    _next_slot: float = 0.0

    def open(self) -> None:
        """Make the client; the extra `llm` is needed from here on."""
        try:
            import httpx
        except ImportError:
            raise MissingExtra("Language models need httpx; install surepick[llm].") from None
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        limits = httpx.Limits(max_connections=None)
        self.client = httpx.AsyncClient(headers=headers, timeout=self.timeout, limits=limits)
        self.failed, self._alone = None, asyncio.Lock()

    async def close(self) -> None:
        """Close all connections."""
        if self.client is not None:
            await self.client.aclose()

    async def complete(self, request: Callable[[bool], Body], options: Body) -> tuple[Reply, float | None]:
        """The server's reply, and the temperature it was made with (None: the server's own).

        `request(structured)` is the body without options; the prompt depends on whether a format can be enforced. What
        the server says it does not take is left out from then on.
        """
        try:
            if not self.worked:
                async with self._alone:
                    if not self.worked:
                        return await self._complete(request, options)
            return await self._complete(request, options)
        except ModelFailed as failed:
            self.failed = failed  # calls that wait for their turn are not made
            raise

    async def _complete(self, request: Callable[[bool], Body], options: Body) -> tuple[Reply, float | None]:
        attempt = 0
        while True:
            sent = self._accepted(options)
            body = request("response_format" in sent) | sent
            await self._wait_for_slot()
            if self.failed is not None:
                raise self.failed
            status, reply, words, wait = await self._post(body)
            if reply is not None:
                self.worked = True
                return reply, sent.get("temperature")
            complaint = self._complaint(status, words, sent)
            if complaint is not None:
                self.refused.add(complaint)
                continue
            self._check_fatal(status, words, wait)
            attempt += 1
            if attempt > self.retries:
                raise CallFailed(f"{words} (after {attempt} attempts)")
            pause = min(LONGEST_PAUSE, PAUSE * 2 ** (attempt - 1)) * random.uniform(0.75, 1.25)
            await asyncio.sleep(pause if wait is None else wait)

    def _accepted(self, options: Body) -> Body:
        """The options without those that the server has refused; max_tokens under the name that it takes."""
        sent = {name: value for name, value in options.items() if value is not None and name not in self.refused}
        if "max_tokens" in self.refused and options.get("max_tokens") and "max_completion_tokens" not in self.refused:
            sent["max_completion_tokens"] = options["max_tokens"]
        if "logprobs" in sent:
            sent["top_logprobs"] = MOST_LOGPROBS
        return sent

    def _complaint(self, status: int, words: str, sent: Body) -> str | None:
        """The option that an error is about, if it is about one that was sent."""
        if status not in (400, 404, 415, 422, 501):
            return None
        text = words.lower()
        return next((name for name, said in COMPLAINTS.items() if name in sent and any(s in text for s in said)), None)

    async def _wait_for_slot(self) -> None:
        """Keep to the calls per minute: each call takes the next free slot."""
        if self.calls_per_minute is None:
            return
        now = asyncio.get_running_loop().time()
        slot = max(now, self._next_slot)
        self._next_slot = slot + 60 / self.calls_per_minute
        await asyncio.sleep(slot - now)

    async def _post(self, body: Body) -> tuple[int, Reply | None, str, float | None]:
        """One request: status, the reply if it is one, else the server's words and how long it asks to wait."""
        import httpx

        assert self.client is not None
        self.calls += 1
        try:
            response = await self.client.post(self.url, json=body)
        except httpx.TimeoutException:
            return 0, None, f"no reply within {self.timeout:g} seconds", None
        except httpx.TransportError as error:
            why = str(error) or type(error).__name__
            if not self.worked:
                raise ModelFailed(
                    f"The model server {self.url} cannot be reached ({why}); check --url or OPENAI_BASE_URL."
                ) from None
            return 0, None, f"the connection failed ({why})", None
        except httpx.InvalidURL as error:
            raise ModelFailed(f"{self.url} is not a URL ({error}); check --url or OPENAI_BASE_URL.") from None
        try:
            reply = response.json()
        except ValueError:
            reply = None
        status = response.status_code
        if status == 200 and isinstance(reply, dict) and isinstance(reply.get("choices"), list) and reply["choices"]:
            return status, reply, "", None
        words = _words(reply, response.text)
        if status == 200 and isinstance(reply, dict) and "error" in reply:
            # Some gateways report an upstream error with status 200.
            code = reply["error"].get("code") if isinstance(reply["error"], dict) else None
            return (code if isinstance(code, int) and 400 <= code < 600 else 500), None, words, None
        return status, None, words, _retry_after(response.headers.get("retry-after"))

    def _check_fatal(self, status: int, words: str, wait: float | None) -> None:
        """Raise where asking again cannot help: ModelFailed, or CallFailed where other questions may fare better."""
        quoted = f'"{words}"'
        if status in (401, 403):
            raise ModelFailed(f"The model server refused the key ({status}): {quoted}; check OPENAI_API_KEY.")
        if status == 402 or (status == 429 and any(said in words.lower() for said in NO_CREDIT)):
            raise ModelFailed(f"The model server wants payment first ({status}): {quoted}.")
        if wait is not None and wait > LONGEST_WAIT:
            raise ModelFailed(f"The model server asks to wait {wait:,.0f} seconds ({status}): {quoted}.")
        if status == 200 and not self.worked:
            raise ModelFailed(
                f"{self.url} does not reply like an OpenAI-compatible server, but with {quoted}; check --url or "
                "OPENAI_BASE_URL."
            )
        if status in (400, 413, 422) and self.worked:
            raise CallFailed(words)  # about this question: too long, or against the server's rules
        if 300 <= status < 500 and status not in BUSY:
            raise ModelFailed(
                f"The model server refused the request ({status}): {quoted}; check the model's name and the URL "
                f"{self.url}."
            )


def _words(reply: Any, text: str) -> str:
    """The server's own words about an error, in one line."""
    error = reply.get("error", reply) if isinstance(reply, dict) else None
    said = error.get("message") or error.get("detail") if isinstance(error, dict) else error
    extra = [error.get("code"), error.get("param")] if isinstance(error, dict) else []
    words = " ".join((said if isinstance(said, str) else text).split())
    # The code and the parameter say what a message may leave open; where it does not, they are not repeated.
    more = [word for word in extra if isinstance(word, str) and word and word not in words]
    words = f"{words[:300]} [{', '.join(more)}]" if more else words[:300]
    return words or "nothing"


def _retry_after(value: str | None) -> float | None:
    """Seconds to wait, from a number or a date."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except ValueError:
        return None


@contextmanager
def event_loop(at_end: Callable[[], Awaitable[None]]) -> Iterator[Submit]:
    """Runs coroutines in the event loop of a thread; at the end those that still run are cancelled, then `at_end` runs.

    Only what was submitted is cancelled. Tasks that a coroutine started for itself, such as attempts to connect, are
    for it to end: cancelled from outside before their first step, they would leave coroutines that never run.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    submitted: set[Future[Any]] = set()

    def submit(coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        submitted.add(future)
        future.add_done_callback(submitted.discard)
        return future

    try:
        yield submit
    finally:
        for future in list(submitted):
            future.cancel()
        asyncio.run_coroutine_threadsafe(_wind_up(at_end), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _wind_up(at_end: Callable[[], Awaitable[None]]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)
    await at_end()
