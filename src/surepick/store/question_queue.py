"""What judges do: take questions, answer, skip, say "tie", undo. Handlers for the `Writer`, many requests at once.

A message is one row, and its key (question, turn) makes it idempotent: the same again changes nothing, something else
is refused. An answer after a skip still counts; after an undo the question is open for another turn.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from surepick.errors import InvalidInput, SurepickError
from surepick.store.database import Database
from surepick.store.errors import Conflict, Forbidden, NotFound
from surepick.store.schema import judges, messages, questions, studies

PAIR_WORDS = ("a", "b", "tie", "skip")
SINGLE_WORDS = ("yes", "no", "skip")

MOST_LEASES = 10
"""How long a question is renewed at most, in leases: a page left open must not hold up all others for ever."""


@dataclass(frozen=True)
class Take:
    """A judge wants to have n questions in hand."""

    study: str
    judge: str
    n: int
    now: float


@dataclass(frozen=True)
class Taken:
    """The questions a judge has in hand now, and whether there will be more."""

    questions: tuple[sa.RowMapping, ...]
    open: bool
    """False where the study is over or has its verdict: then there is no need to come back."""
    until: tuple[float, ...]
    """When each is no longer waited for."""


@dataclass(frozen=True)
class Say:
    """A judge's word on a question. Without a turn it is the first, or an answer after a skip."""

    study: str
    judge: str
    question: str
    said: str
    now: float
    turn: int | None = None


@dataclass(frozen=True)
class Undo:
    """A judge takes back what he said last; with a question, only if that is the one."""

    study: str
    judge: str
    now: float
    question: str | None = None


@dataclass(frozen=True)
class Said:
    """What is on record; the same for the same message again."""

    question: str
    said: str
    turn: int


def take(database: Database, connection: sa.Connection, requests: Sequence[Take]) -> list[Taken | SurepickError]:
    """Hand out questions, one judge after the other: those in hand already first, then new ones."""
    return [_take(connection, request) for request in requests]


def _take(connection: sa.Connection, request: Take) -> Taken | SurepickError:
    row = connection.execute(_study_of_judge, {"the_study": request.study, "the_judge": request.judge}).first()
    if row is None:
        return NotFound(f"There is no judge of this link in study {request.study!r}.")
    if row.revoked:
        return Forbidden("This judge's link was revoked.")
    if row.state != "running" or row.decided is not None:
        return Taken((), open=row.state in ("running", "paused") and row.decided is None, until=())
    mine = {"the_study": request.study, "the_judge": request.judge, "the_phase": row.phase}
    held = list(connection.execute(_in_hand, mine).mappings())[: request.n]
    wanted = request.n - len(held)
    fresh = (
        list(connection.execute(_ready, {"the_study": request.study, "the_phase": row.phase, "n": wanted}).mappings())
        if wanted
        else []
    )
    lease, now = float(json.loads(row.settings)["lease"]), request.now
    given = (*held, *fresh)
    since = [now if each["leased_at"] is None else each["leased_at"] for each in given]
    until = [min(now + lease, begun + MOST_LEASES * lease) for begun in since]
    if given:
        connection.execute(
            _leasing,
            [
                {"the_question": each["id"], "the_judge": request.judge, "begun": begun, "ends": ends}
                for each, begun, ends in zip(given, since, until, strict=True)
            ],
        )
    if len(fresh) < wanted:
        connection.execute(
            sa.update(studies).where(studies.c.id == request.study, studies.c.demand < wanted).values(demand=wanted)
        )
    return Taken(given, open=True, until=tuple(until))


def say(database: Database, connection: sa.Connection, requests: Sequence[Say]) -> list[Said | SurepickError]:
    """Put messages on record: three statements for all of them."""
    wanted = sorted({request.question for request in requests})
    known = {row.id: row for row in connection.execute(_asked, {"wanted": wanted})}
    while True:
        results, rows = _said(requests, known, _record(connection, wanted))
        if not rows:
            return results
        # In the order of the key, so that two processes never wait for each other.
        done = connection.execute(database.insert_new(messages), [rows[key] for key in sorted(rows)])
        if done.rowcount == len(rows):
            return results
        # Another process was faster with some of them: what it recorded counts, and all are judged by that.


def _said(
    requests: Sequence[Say], known: Mapping[str, Any], record: dict[str, list[str]]
) -> tuple[list[Said | SurepickError], dict[tuple[str, int], dict[str, Any]]]:
    """What becomes of each message, one after the other, and the rows that are not on record yet."""
    results: list[Said | SurepickError] = []
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for request in requests:
        before = record.setdefault(request.question, [])
        result = _judged(request, known.get(request.question), before)
        results.append(result)
        if isinstance(result, Said) and result.turn == len(before):
            before.append(result.said)
            rows[result.question, result.turn] = {
                "question": result.question,
                "turn": result.turn,
                "study": request.study,
                "judge": request.judge,
                "said": result.said,
                "at": request.now,
            }
    return results, rows


def _judged(request: Say, question: Any, record: list[str]) -> Said | SurepickError:
    """Whether the message fits what is on record; its turn if so."""
    refused = _unknown(request, question)
    if refused is not None:
        return refused
    words = SINGLE_WORDS if question.second is None else PAIR_WORDS
    if request.said not in words:
        return InvalidInput(f"The answer to this question must be one of {', '.join(words)}, got {request.said!r}.")
    last = record[-1] if record else None
    turn = request.turn
    if turn is None:
        if last == "undo":
            return Conflict(f"This question was undone; say that this is its turn {len(record)} to answer it again.")
        since = len(record) - record[::-1].index("undo") if "undo" in record else 0
        late = last == "skip" and request.said not in ("skip", "tie")
        again = record.index(request.said, since) if request.said in record[since:] else max(len(record) - 1, 0)
        turn = len(record) if late else again
    if turn < len(record):
        if record[turn] == request.said:
            return Said(request.question, request.said, turn)
        return Conflict(
            f"This question has the answer {record[turn]!r} already and now got {request.said!r}; undo the first."
        )
    if turn > len(record) or (last not in (None, "undo") and not (last == "skip" and request.said != "tie")):
        return Conflict(f"Turn {turn} of this question does not follow what is on record; its next is {len(record)}.")
    if question.state not in ("running", "paused"):
        return Conflict(f"This study is {question.state} and takes no more answers.")
    return Said(request.question, request.said, turn)


def undo(database: Database, connection: sa.Connection, requests: Sequence[Undo]) -> list[Said | SurepickError]:
    """Take back the judge's last message, unless its stage was evaluated; the same again changes nothing."""
    return [_undo(connection, request) for request in requests]


def _undo(connection: sa.Connection, request: Undo) -> Said | SurepickError:
    # Sharing the study's row keeps the planner from evaluating a stage between this look and the commit.
    study = connection.execute(_shared_study, {"the_study": request.study}).first()
    last = connection.execute(_last_words, {"the_study": request.study, "the_judge": request.judge}).first()
    if study is None or last is None:
        return NotFound("There is no answer of yours to undo.")
    if last.revoked:
        return Forbidden("This judge's link was revoked.")
    if request.question is not None and request.question != last.question:
        return Conflict(f"Only your last answer can be undone, that is the one to question {last.question!r}.")
    if last.said == "undo":
        if request.question is None:
            return Conflict("Your last answer is undone already; one step back is all there is.")
        return Said(last.question, "undo", last.turn)
    if study.state not in ("running", "paused"):
        return Conflict(f"This study is {study.state}; its answers stay.")
    if study.decided is not None or last.phase != study.phase or last.stage < study.sealed:
        return Conflict(
            "This answer can no longer be undone: its stage has been evaluated, and a change now would depend on what "
            "it showed."
        )
    said = Said(last.question, "undo", last.turn + 1)
    connection.execute(
        sa.insert(messages).values(
            question=said.question,
            turn=said.turn,
            study=request.study,
            judge=request.judge,
            said="undo",
            at=request.now,
        )
    )
    connection.execute(sa.update(questions).where(questions.c.id == said.question).values(closed=False))
    return said


def _unknown(request: Say, question: Any) -> SurepickError | None:
    if question is None or question.study != request.study or question.judge != request.judge:
        return NotFound(f"Question {request.question!r} was not handed out to you in this study.")
    return Forbidden("This judge's link was revoked.") if question.revoked else None


def _record(connection: sa.Connection, wanted: list[str]) -> dict[str, list[str]]:
    """All that was said about these questions, in order."""
    found: dict[str, list[str]] = {}
    for question, said in connection.execute(_told, {"wanted": wanted}):
        found.setdefault(question, []).append(said)
    return found


_study_of_judge = (
    sa.select(studies.c.state, studies.c.phase, studies.c.settings, studies.c.decided, judges.c.revoked)
    .join(judges, judges.c.study == studies.c.id)
    .where(studies.c.id == sa.bindparam("the_study"), judges.c.id == sa.bindparam("the_judge"))
)

_last_said = (
    sa.select(messages.c.said)
    .where(messages.c.question == questions.c.id)
    .order_by(messages.c.turn.desc())
    .limit(1)
    .scalar_subquery()
)
_turns = sa.select(sa.func.count()).where(messages.c.question == questions.c.id).scalar_subquery().label("turn")

_in_hand = (
    sa.select(questions, _turns)
    .where(
        questions.c.study == sa.bindparam("the_study"),
        questions.c.judge == sa.bindparam("the_judge"),
        questions.c.phase == sa.bindparam("the_phase"),
        questions.c.closed.is_(False),
        sa.func.coalesce(_last_said, "undo") == "undo",
    )
    .order_by(questions.c.number)
)

_ready = (
    sa.select(questions, sa.literal(0).label("turn"))
    .where(
        questions.c.study == sa.bindparam("the_study"),
        questions.c.judge.is_(None),
        questions.c.phase == sa.bindparam("the_phase"),
    )
    .order_by(questions.c.number)
    .limit(sa.bindparam("n", type_=sa.Integer))
    .with_for_update(skip_locked=True)
)

_leasing = (
    sa.update(questions)
    .where(questions.c.id == sa.bindparam("the_question"))
    .values(judge=sa.bindparam("the_judge"), leased_at=sa.bindparam("begun"), leased_until=sa.bindparam("ends"))
)

_asked = (
    sa.select(
        questions.c.id, questions.c.study, questions.c.judge, questions.c.second, studies.c.state, judges.c.revoked
    )
    .join(studies, studies.c.id == questions.c.study)
    .join(judges, judges.c.id == questions.c.judge)
    .where(questions.c.id.in_(sa.bindparam("wanted", expanding=True)))
)

_told = (
    sa.select(messages.c.question, messages.c.said)
    .where(messages.c.question.in_(sa.bindparam("wanted", expanding=True)))
    .order_by(messages.c.question, messages.c.turn)
)

_shared_study = (
    sa.select(studies.c.state, studies.c.phase, studies.c.sealed, studies.c.decided)
    .where(studies.c.id == sa.bindparam("the_study"))
    .with_for_update(read=True)
)

_last_words = (
    sa.select(
        messages.c.question, messages.c.turn, messages.c.said, questions.c.stage, questions.c.phase, judges.c.revoked
    )
    .join(questions, questions.c.id == messages.c.question)
    .join(judges, judges.c.id == messages.c.judge)
    .where(messages.c.study == sa.bindparam("the_study"), messages.c.judge == sa.bindparam("the_judge"))
    .order_by(messages.c.at.desc(), messages.c.turn.desc())
    .limit(1)
)
