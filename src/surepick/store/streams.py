"""Streams of contextual decisions: the log of a `ContextualSession` in the database, and the session in memory.

A decision depends on all rewards before it, so each stream has one order of events, decided by whoever locks its row.
Every process keeps the sessions it uses in memory and first applies what others wrote. Its own events count only once
they are committed: every event carries the token of its transaction, so a process whose commit failed notices that its
memory does not match the log, and replays the log.
"""

import json
import math
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from surepick.contextual.policy import AnyPolicy
from surepick.errors import InvalidInput, SurepickError
from surepick.session import ContextualSession
from surepick.session.contextual import Decision, Order, header
from surepick.store.database import Conflict, Database, NotFound
from surepick.store.members import DEFAULT_PROJECT
from surepick.store.schema import stream_events, streams

Line = dict[str, Any]


@dataclass(frozen=True)
class StreamRequest:
    """Something that a program asks of a stream."""

    stream: str


@dataclass(frozen=True)
class Decide(StreamRequest):
    """A program asks which of these arms to take."""

    arms: list[list[float]]
    context: str | None


@dataclass(frozen=True)
class Reward(StreamRequest):
    """The reward of a decision: 0 or 1, or None where none will come."""

    decision: int
    reward: int | None


@dataclass
class _Memory:
    """A stream as this process knows it."""

    session: ContextualSession
    head: int
    """Events of the log that are in it."""
    token: str
    """Of the transaction that wrote the last of these events."""
    asked: dict[int, float]
    """When each decision was made whose reward may still come; those made first come first."""

    def note(self, events: Iterable[tuple[Line, float]]) -> None:
        """Remember when decisions were made."""
        self.asked |= {line["decision"]: at for line, at in events if line["event"] == "choose"}

    def give_up(self, before: float) -> None:
        """Stop waiting for the rewards of decisions made before this time: with order="decision" one that never comes
        would keep all later ones from being learnt."""
        while self.asked:
            number, at = next(iter(self.asked.items()))
            if number not in self.session.rewards:
                if at >= before:
                    break
                self.session.forget(number)
            del self.asked[number]


def create(
    connection: sa.Connection,
    title: str,
    policy: AnyPolicy,
    dimension: int,
    order: Order,
    seed: int,
    now: float,
    patience: float | None = None,
    project: str = DEFAULT_PROJECT,
) -> str:
    """Create a stream; returns its id. A reward that has not come after `patience` seconds is given up."""
    stream = secrets.token_urlsafe(9)
    connection.execute(
        sa.insert(streams).values(
            id=stream, project=project, title=title, created=now, head=0, decisions=0, answered=0, patience=patience
        ),
    )
    _append(connection, stream, 0, [header(policy, dimension, seed, order)], secrets.token_urlsafe(9), now)
    _replayed(events_of(connection, stream))  # raises where the policy cannot be used
    return stream


def get(connection: sa.Connection, stream: str) -> sa.RowMapping:
    """The row of a stream."""
    row = connection.execute(sa.select(streams).where(streams.c.id == stream)).mappings().first()
    if row is None:
        raise _unknown(stream)
    return row


def rotate_token(connection: sa.Connection, stream: str) -> int:
    """Make the stream's token invalid; the number of the next one."""
    get(connection, stream)
    changed = sa.update(streams).where(streams.c.id == stream).values(tokens=streams.c.tokens + 1)
    return int(connection.execute(changed.returning(streams.c.tokens)).scalar_one())


def every(connection: sa.Connection, project: str | None = None) -> list[sa.RowMapping]:
    """All streams of a project, or of all projects, the newest first."""
    wanted = sa.select(streams).order_by(streams.c.created.desc())
    if project is not None:
        wanted = wanted.where(streams.c.project == project)
    return list(connection.execute(wanted).mappings())


def start_of(connection: sa.Connection, stream: str) -> Line:
    """The first line of the log: policy, configuration, dimension, seed and order."""
    body = connection.scalars(sa.select(stream_events.c.body).where(_first, stream_events.c.stream == stream)).one()
    line: Line = json.loads(body)
    return line


def events_of(connection: sa.Connection, stream: str, since: int = 0) -> list[sa.RowMapping]:
    """The log from an event on."""
    return list(connection.execute(_events, {"the_stream": stream, "since": since}).mappings())


def lock_streams(connection: sa.Connection, requests: Sequence[StreamRequest]) -> list[sa.Row[Any]]:
    """Lock the streams of all requests in a transaction, in one order; what `Streams.act` has to know about each."""
    wanted = sorted({request.stream for request in requests})
    return list(connection.execute(_lock, {"wanted": wanted})) if wanted else []


class Streams:
    """The streams a process has in memory. `act` is a handler for `GroupCommit`, whose thread alone uses them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, _Memory] = {}
        self._read: set[str] = set()

    def read(self, stream: str) -> None:
        """Replay a stream's log unless that was done before, outside of any transaction that others would wait for."""
        if stream not in self._read:
            with self._database.reading() as connection:
                get(connection, stream)
                memory = _replayed(events_of(connection, stream))
            self._known.setdefault(stream, memory)
            self._read.add(stream)

    def act(
        self, database: Database, connection: sa.Connection, requests: Sequence[Decide | Reward]
    ) -> list[Decision | Reward | SurepickError]:
        """Decide and learn, in the order of the requests; a refused request changes nothing."""
        rows = lock_streams(connection, requests)
        held = {row.id: self._caught_up(connection, row.id) for row in rows}
        written: dict[str, list[Line]] = {stream: [] for stream in held}
        for stream, memory in held.items():
            memory.session.write_to(written[stream].append)
        now = database.now(connection)
        for row in rows:
            held[row.id].give_up(-math.inf if row.patience is None else now - row.patience)
        results = [_act(held.get(request.stream), request) for request in requests]
        token = secrets.token_urlsafe(9)
        for stream, memory in held.items():
            if written[stream]:
                _append(connection, stream, memory.head, written[stream], token, now)
                memory.note((line, now) for line in written[stream])
                memory.head, memory.token = memory.head + len(written[stream]), token
            self._known[stream] = memory
        return results

    def _caught_up(self, connection: sa.Connection, stream: str) -> _Memory:
        """The stream as its log is now."""
        # Out of memory until `act` puts it back, after everything is written: a failure in between drops the session,
        # which is ahead of the log then, and the next request replays the log.
        memory = self._known.pop(stream, None)
        if memory is not None:
            # From the last event known, not the first unknown: its token tells whether the memory is of this log.
            recent = events_of(connection, stream, memory.head - 1)
            if recent and recent[0]["token"] == memory.token:
                events = [(json.loads(event["body"]), event["at"]) for event in recent[1:]]
                memory.session.follow((line for line, _ in events), check=False)
                memory.note(events)
                memory.head, memory.token = memory.head + len(recent) - 1, recent[-1]["token"]
                return memory
        return _replayed(events_of(connection, stream))


def _act(memory: _Memory | None, request: Decide | Reward) -> Decision | Reward | SurepickError:
    if memory is None:
        return _unknown(request.stream)
    if isinstance(request, Reward):
        return _learn(memory.session, request)
    try:
        return memory.session.choose(request.arms, request.context)
    except InvalidInput as refused:
        return refused


def _learn(session: ContextualSession, request: Reward) -> Reward | SurepickError:
    number, reward = request.decision, request.reward
    if number >= session.decisions:
        return NotFound(f"There is no decision {number} in this stream; it has made {session.decisions}.")
    if number in session.rewards:
        before = session.rewards[number]
        if before == reward:
            return request
        told = "was given up" if before is None else f"has the reward {before:g}"
        return Conflict(f"Decision {number} {told} already, got {json.dumps(reward)}; a reward cannot be changed.")
    if reward is None:
        session.forget(number)
    else:
        session.learn(number, reward)
    return request


def _replayed(log: Sequence[sa.RowMapping]) -> _Memory:
    """The session that a log describes. Choices are taken from the log, not made again: `verify` does that."""
    start, *events = ((json.loads(event["body"]), event["at"]) for event in log)
    session = ContextualSession.fold(start[0], (line for line, _ in events), check=False)
    memory = _Memory(session, len(log), log[-1]["token"], {})
    memory.note(events)
    return memory


def _append(connection: sa.Connection, stream: str, head: int, lines: Sequence[Line], token: str, now: float) -> None:
    connection.execute(
        sa.insert(stream_events),
        [
            {"stream": stream, "seq": head + place, "at": now, "token": token, "body": json.dumps(line)}
            for place, line in enumerate(lines)
        ],
    )
    chosen = sum(line["event"] == "choose" for line in lines)
    answered = sum(line["event"] in ("learn", "forget") for line in lines)
    connection.execute(
        sa.update(streams)
        .where(streams.c.id == stream)
        .values(head=head + len(lines), decisions=streams.c.decisions + chosen, answered=streams.c.answered + answered)
    )


def _unknown(stream: str) -> NotFound:
    return NotFound(f"There is no stream {stream!r}.")


_first = stream_events.c.seq == 0
_lock = (
    sa.select(streams.c.id, streams.c.patience)
    .where(streams.c.id.in_(sa.bindparam("wanted", expanding=True)))
    .order_by(streams.c.id)
    .with_for_update()
)
_events = (
    sa.select(stream_events)
    .where(stream_events.c.stream == sa.bindparam("the_stream"), stream_events.c.seq >= sa.bindparam("since"))
    .order_by(stream_events.c.seq)
)
