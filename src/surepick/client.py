"""A client of the live service: typed results, retries, and nothing done twice.

    admin = AdminClient("http://127.0.0.1:8000", token)
    study = admin.create_study("shoes", ["red", "green", "blue"])
    judge = admin.invite(study, "Jo").connect()
    for question in judge.questions().questions:
        judge.answer(question.id, "a")

A request is sent again when the connection fails, or the service is busy or without its database (429, 503), for as
long as `patience` says. That is safe: answers, undos and rewards are the same when they are sent again, and whatever
creates something carries an Idempotency-Key. Needs the extra `client` (httpx).
"""

import dataclasses
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from surepick.errors import InvalidInput, SurepickError

try:
    import httpx
except ImportError:
    raise InvalidInput("surepick.client needs httpx; install it with pip install 'surepick[client]'.") from None

FIRST_WAIT = 0.2
LONGEST_WAIT = 10.0
"""Seconds between two attempts: doubled each time, unless the service says how long."""

AGAIN = (429, 502, 503, 504)
"""Statuses after which the same request may succeed: of the service, or of a proxy in front of it."""

T = TypeVar("T")

AnswerWord = Literal["a", "b", "yes", "no", "tie", "skip"]


class ServiceRefused(SurepickError):
    """The service refused a request, with its sentence why; `status` is that of HTTP."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class ServiceUnreachable(SurepickError):
    """The service did not answer for as long as the client was told to try."""


@dataclass(frozen=True)
class ShownItem:
    """What a judge sees of an item; `image` is a path on the server, or empty."""

    name: str
    label: str
    text: str
    colour: str
    image: str


@dataclass(frozen=True)
class AskedQuestion:
    """A question: which of two, or yes/no about one (`b` is None)."""

    id: str
    turn: int
    a: ShownItem
    b: ShownItem | None
    answers: tuple[str, ...]
    expires: float


@dataclass(frozen=True)
class HeldQuestions:
    """The questions that a judge holds, and whether there will be more."""

    questions: tuple[AskedQuestion, ...]
    open: bool
    exhausted: bool
    answered: int
    remaining: int | None


@dataclass(frozen=True)
class RecordedAnswer:
    """What is on record about a question."""

    question: str
    answer: str
    turn: int
    late: bool


@dataclass(frozen=True)
class StreamDecision:
    """The arm to take, counted from 0, and the probability with which it was chosen."""

    decision: int
    arm: int
    propensity: float
    context: str | None


class _Connection:
    """Requests with one token, repeated until they succeed or patience ends."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        patience: float = 60.0,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.url = url
        self._options: dict[str, Any] = {"patience": patience, "transport": transport, "sleep": sleep}
        self._patience, self._sleep = patience, sleep
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._http = httpx.Client(base_url=url, headers=headers, transport=transport, timeout=30.0)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def request(self, method: str, path: str, *, once: bool = False, **options: Any) -> httpx.Response:
        """The response; with `once` the request carries a key, so that it is carried out once however often sent."""
        headers = {"Idempotency-Key": secrets.token_urlsafe(18)} if once else {}
        end, wait = time.monotonic() + self._patience, FIRST_WAIT
        while True:
            try:
                response = self._http.request(method, path, headers=headers, **options)
                if response.status_code not in AGAIN:
                    break
                trouble, asked = _detail(response), response.headers.get("Retry-After", "")
                pause = float(asked) if asked.isdigit() else wait
            except httpx.TransportError as error:
                trouble, pause = str(error) or type(error).__name__, wait
            if time.monotonic() + pause > end:
                raise ServiceUnreachable(f"{self.url} did not answer in {self._patience:g} s: {trouble}")
            self._sleep(pause)
            wait = min(2 * wait, LONGEST_WAIT)
        if response.status_code >= 400:
            raise ServiceRefused(response.status_code, _detail(response))
        return response

    def _json(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        return self.request(method, path, **({} if body is None else {"json": body}), **options).json()


def _detail(response: httpx.Response) -> str:
    try:
        return str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"The server answered {response.status_code}."


@dataclass(frozen=True)
class Invitation:
    """A judge's link to send, and the token in it for programs."""

    id: str
    name: str
    token: str
    link: str
    until: float
    _url: str
    _options: Mapping[str, Any]

    def connect(self) -> "JudgeClient":
        """A client for this judge."""
        return JudgeClient(self._url, self.token, **self._options)


class AdminClient(_Connection):
    """What an admin does: studies, judges, results, streams."""

    def create_study(self, title: str, items: Sequence[str | Mapping[str, Any]], **settings: Any) -> str:
        """Create a study of these items (names, or fields as in POST /studies); its id."""
        rows = [{"name": item} if isinstance(item, str) else dict(item) for item in items]
        made = self._json("POST", "/studies", {"title": title, "items": rows} | settings, once=True)
        return str(made["id"])

    def studies(self, *, archived: bool = False) -> list[dict[str, Any]]:
        """All studies of your project, the newest first."""
        found: list[dict[str, Any]] = self._json("GET", "/studies", params={"archived": archived})
        return found

    def study(self, study: str) -> dict[str, Any]:
        """A study as it stands."""
        found: dict[str, Any] = self._json("GET", f"/studies/{study}")
        return found

    def result(self, study: str) -> dict[str, Any]:
        """The verdict so far, or the final one with its certificate."""
        found: dict[str, Any] = self._json("GET", f"/studies/{study}/result")
        return found

    def set_state(self, study: str, state: Literal["running", "paused", "closed", "archived"]) -> None:
        """Pause, resume, close or archive a study."""
        self._json("POST", f"/studies/{study}/state", {"state": state})

    def delete_study(self, study: str) -> None:
        """Delete a study that is closed or archived."""
        self._json("DELETE", f"/studies/{study}")

    def invite(self, study: str, name: str = "", *, days: float | None = None) -> Invitation:
        """A new judge. Without a key: if the reply is lost, a judge who never comes is left behind."""
        body = {"name": name} | ({} if days is None else {"days": days})
        made = self._json("POST", f"/studies/{study}/judges", body)
        return _read(Invitation, made | {"_url": self.url, "_options": self._options})

    def export(self, study: str, what: str = "answers", format: Literal["csv", "jsonl", "parquet"] = "csv") -> bytes:
        """A table of a study as the service writes it."""
        return self.request("GET", f"/studies/{study}/export", params={"what": what, "format": format}).content

    def create_stream(self, title: str, dimension: int, **settings: Any) -> "StreamClient":
        """A new stream of contextual decisions. Without a key: if the reply is lost, an unused one is left behind."""
        made = self._json("POST", "/streams", {"title": title, "dimension": dimension} | settings)
        return StreamClient(self.url, made["token"], stream=made["id"], **self._options)


class JudgeClient(_Connection):
    """What a judge does, with the token of an invitation."""

    _study = ""

    @property
    def study(self) -> str:
        """The study of the invitation."""
        if not self._study:
            self._study = self._json("GET", "/judge/invitation")["study"]
        return self._study

    def questions(self, n: int = 1) -> HeldQuestions:
        """Up to n questions to hold: those not answered yet, then new ones."""
        found = self._json("POST", f"/studies/{self.study}/questions", params={"n": n})
        questions = tuple(_question(question) for question in found["questions"])
        return _read(HeldQuestions, {**found, "questions": questions})

    def answer(self, question: str, answer: AnswerWord, *, turn: int | None = None) -> RecordedAnswer:
        """Answer a question; the same again changes nothing. After an undo, `turn` is needed."""
        body = {"question": question, "answer": answer} | ({} if turn is None else {"turn": turn})
        return _read(RecordedAnswer, self._json("POST", f"/studies/{self.study}/answers", body))

    def undo(self, question: str) -> int:
        """Take back the answer to a question, if it was the last one; the turn to answer again with."""
        return int(self._json("POST", f"/studies/{self.study}/undo", {"question": question})["turn"])


def _question(fields: Mapping[str, Any]) -> AskedQuestion:
    second = None if fields["b"] is None else _read(ShownItem, fields["b"])
    changed = {"a": _read(ShownItem, fields["a"]), "b": second, "answers": tuple(fields["answers"])}
    return _read(AskedQuestion, {**fields, **changed})


def _read(kind: type[T], found: Mapping[str, Any]) -> T:
    """A result from a reply; fields that a newer service has are left out."""
    return kind(**{field.name: found[field.name] for field in dataclasses.fields(kind)})  # type: ignore[arg-type]  # of any dataclass


class StreamClient(_Connection):
    """Decisions and rewards of a stream, with its token."""

    def __init__(self, url: str, token: str, *, stream: str, **options: Any) -> None:
        super().__init__(url, token, **options)
        self.stream, self.token = stream, token

    def decide(self, arms: Sequence[Sequence[float]], context: str | None = None) -> StreamDecision:
        """Which of these arms to take."""
        body = {"arms": [list(arm) for arm in arms]} | ({} if context is None else {"context": context})
        return _read(StreamDecision, self._json("POST", f"/streams/{self.stream}/decide", body, once=True))

    def reward(self, decision: int, reward: Literal[0, 1] | None) -> None:
        """Tell what came of a decision; None gives up on it. The same again changes nothing."""
        self._json("POST", f"/streams/{self.stream}/reward", {"decision": decision, "reward": reward})
