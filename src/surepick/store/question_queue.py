"""What judges do: lease questions, answer, skip, say "tie", undo. Handlers for `GroupCommit`, many requests at once.

`GroupCommit` calls `lock_judges` before any handler. Requests of one judge are then carried out one after the other,
over however many connections and workers they come.

A message is one row, and its key (question, turn) makes it idempotent: the same message again changes nothing, another
one for the same turn is refused. So a judge's page repeats a request until it is acknowledged, and no answer is lost or
counted twice. An answer after a skip still counts, unless its stage was evaluated before: then the judge is told that
it is late. After an undo the question is open for another turn.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import sqlalchemy as sa

from surepick.errors import InvalidInput, SurepickError
from surepick.store import answers
from surepick.store.database import Conflict, Database, Forbidden, NotFound, lock_studies
from surepick.store.schema import QUESTION_LEASE, judges, messages, questions, studies

COPIES = 4
"""Ready questions looked at first for each that is wanted: a judge may have had some of them."""

MOST_LEASES = 10
"""How long a question is renewed at most, in leases: a page left open must not hold up all others for ever."""

WISH_SECONDS = 10.0
"""How long the planner remembers what a judge asked for in vain; one who still waits asks again."""


@dataclass(frozen=True)
class JudgeRequest:
    """Something that a judge of a study asks for."""

    study: str
    judge: str


@dataclass(frozen=True)
class LeaseQuestions(JudgeRequest):
    """A judge wants to hold n questions."""

    n: int


@dataclass(frozen=True)
class LeasedQuestions:
    """The questions a judge holds now, and whether there will be more."""

    questions: tuple[sa.RowMapping, ...]
    open: bool
    """False where the study is closed or decided: then there is no need to ask again."""
    until: tuple[float, ...]
    """When each lease expires."""
    study: sa.RowMapping
    """How far the study is: answers, forecast, decided."""
    exhausted: bool = False
    """Whether this judge has had every question that would help now; answers of others may bring new ones."""


@dataclass(frozen=True)
class SubmitAnswer(JudgeRequest):
    """A judge's answer, skip or tie. Without a turn it is the first message, or an answer after a skip."""

    question: str
    said: str
    turn: int | None = None


@dataclass(frozen=True)
class UndoAnswer(JudgeRequest):
    """A judge takes back the last message; with a question, only if the message is about that one."""

    question: str | None = None


@dataclass(frozen=True)
class RecordedMessage:
    """What is on record; the same for the same message again."""

    question: str
    said: str
    turn: int
    late: bool = False
    """Whether its stage had been evaluated before it came: it is kept, but does not count."""


def lock_judges(connection: sa.Connection, requests: Sequence[JudgeRequest]) -> None:
    """Lock the studies and the judges of all requests in a transaction, before it locks anything else.

    The lock on a study is shared by judges and excludes the planner, which counts stages as evaluated under an
    exclusive one: what a handler reads about a study holds until its commit. The lock on a judge is exclusive.
    """
    if requests and connection.dialect.name != "sqlite":  # there is one writer at a time on SQLite
        lock_studies(connection, {request.study for request in requests}, shared=True)
        connection.execute(_locked_judges, {"wanted": sorted({request.judge for request in requests})}).all()


def lease_questions(
    database: Database, connection: sa.Connection, requests: Sequence[LeaseQuestions]
) -> list[LeasedQuestions | SurepickError]:
    """Hand out questions: those that a judge holds already first, then new ones. A few statements for all requests."""
    now = database.now(connection)
    people = {"wanted": sorted({request.judge for request in requests})}
    known = {(row["study"], row["judge"]): row for row in connection.execute(_studies_of_judges, people).mappings()}
    held: dict[str, list[sa.RowMapping]] = {}
    for question in connection.execute(_held, people).mappings():
        held.setdefault(question["judge"], []).append(question)
    missing: Counter[tuple[str, int]] = Counter()
    for request in requests:
        row = known.get((request.study, request.judge))
        if row is not None and row["hands_out"]:
            missing[request.study, row["phase"]] += max(0, request.n - len(held.get(request.judge, ())))
    # Where no judge is asked the same twice, some of the ready questions will not do, so a few more are looked at.
    once = {row["study"] for row in known.values() if json.loads(row["settings"])["repeats"] == "once"}
    ready = {
        study: list(
            connection.execute(
                _ready, {"the_study": study, "the_phase": phase, "n": COPIES * n if study in once else n}
            ).mappings()
        )
        for (study, phase), n in missing.items()
        if n
    }
    not_all = {
        study for (study, _), n in missing.items() if study in once and len(ready.get(study, ())) >= COPIES * n > 0
    }
    had = had_before(connection, people["wanted"], [row for study in once for row in ready.get(study, ())])
    claims: dict[str, tuple[str, float]] = {}
    said_before: list[dict[str, Any]] = []
    wishes: dict[str, int] = {}
    results: list[LeasedQuestions | SurepickError] = []
    for request in requests:
        row = known.get((request.study, request.judge))
        if row is None:
            results.append(NotFound(f"There is no judge of this link in study {request.study!r}."))
        elif row["revoked"]:
            results.append(Forbidden("This judge's link was revoked."))
        elif not row["hands_out"]:
            results.append(LeasedQuestions((), open=row["goes_on"], until=(), study=row))
        else:
            mine, pool = held.setdefault(request.judge, []), ready.get(request.study, [])
            seen = had[request.judge] | {_asked_of(question) for question in mine}
            met = _met_in_sets(connection, request, row["phase"], pool) if request.study in once else set[Pair]()
            further = _new_to(connection, request, row["phase"], claims) if request.study in not_all else ()
            for question in chain(list(pool), further):
                if len(mine) >= request.n:
                    break
                if request.study not in once or not (_asked_of(question) in seen or met & _pairs(question)):
                    seen.add(_asked_of(question))
                    met |= _pairs(question)
                    mine.append(question)
                    if question in pool:
                        pool.remove(question)
                elif question["input"] is not None:
                    again = _said_before(connection, request, question)
                    if again is not None:
                        claims[question["id"]] = (request.judge, now + float(json.loads(row["settings"])["lease"]))
                        said_before.append(_message_row(request, again, now))
                        pool.remove(question)
            given = tuple(mine[: request.n])
            until = tuple(_deadline(question, float(json.loads(row["settings"])["lease"]), now) for question in given)
            claims |= {question["id"]: (request.judge, end) for question, end in zip(given, until, strict=True)}
            wishes[request.judge] = request.n - len(given)
            done = bool(row["exhausted"] and not given)
            results.append(LeasedQuestions(given, open=True, until=until, study=row, exhausted=done))
    QUESTION_LEASE.claim_locked(connection, claims, leased_at=sa.func.coalesce(questions.c.leased_at, now))
    if said_before:
        connection.execute(sa.insert(messages), said_before)
    # Tells the planner how many questions it would take to serve every judge who waits. Not written at every attempt:
    # a judge who waits makes ten of them in a second.
    changed = [
        {"the_judge": row["judge"], "n": wishes[row["judge"]], "now": now}
        for row in known.values()
        if (wish := wishes.get(row["judge"])) is not None
        and (wish != row["wanted"] or (wish and row["wanted_at"] < now - WISH_SECONDS / 4))
    ]
    if changed:
        connection.execute(_wish, changed)
    return results


def _new_to(
    connection: sa.Connection, request: LeaseQuestions, phase: int, claimed: Collection[str]
) -> Iterator[sa.RowMapping]:
    """Ready questions that this judge has not had, wherever in the queue they are; read when the first ones did not do.

    The planner counts on the judge to take one. Those in front may be for others, who come later or not at all.
    """
    known = {"the_study": request.study, "the_phase": phase, "the_judge": request.judge}
    rows = connection.execute(_ready_and_new, known | {"n": COPIES * request.n + len(claimed)}).mappings()
    return (question for question in rows if question["id"] not in claimed)


Asked = tuple[int, str | None]
"""What a judge may remember of a question: the items, and the input whose outputs were shown."""


def _asked_of(question: sa.RowMapping) -> Asked:
    return question["measurement"], question["input"]


Pair = frozenset[str]
"""Two items that were shown together."""


def _pairs(question: sa.RowMapping) -> set[Pair]:
    """The pairs of items that a question about a set compares; none for other questions."""
    if question["others"] is None:
        return set()
    shown = (question["first"], question["second"], *json.loads(question["others"]))
    return set(map(frozenset, combinations(shown, 2)))


def _met_in_sets(
    connection: sa.Connection, request: LeaseQuestions, phase: int, pool: Sequence[sa.RowMapping]
) -> set[Pair]:
    """Items that this judge was shown together, held questions included, if the study is about sets."""
    if not any(question["others"] is not None for question in pool):
        return set()
    known = {"the_study": request.study, "the_phase": phase, "the_judge": request.judge}
    return set().union(*map(_pairs, connection.execute(_sets_of_judge, known).mappings()))


def _said_before(connection: sa.Connection, request: LeaseQuestions, question: sa.RowMapping) -> RecordedMessage | None:
    """What this judge said to the same outputs before, as a message about this question; None if they hold it now.

    They are not shown them again, and the first answer stands for this one too. To leave the question to another judge
    instead would let what is asked of whom depend on the input, and the claim is about the mean over all inputs.
    """
    known = {"the_study": request.study, "the_phase": question["phase"], "the_judge": request.judge}
    asked = {"the_measurement": question["measurement"], "the_input": question["input"]}
    row = connection.execute(_earlier, known | asked).first()
    if row is None or row.said == "undo":
        return None
    said = row.said if row.first == question["first"] else answers.turned_word(row.said)
    return RecordedMessage(question["id"], said, 0)


def had_before(
    connection: sa.Connection, people: Sequence[str], ready: Sequence[sa.RowMapping]
) -> dict[str, set[Asked]]:
    """For each of these judges what they have had, among the measurements of ready questions."""
    had: dict[str, set[Asked]] = {judge: set() for judge in people}
    phases = {(row["study"], row["phase"]) for row in ready}
    for study, phase in sorted(phases):
        asked = sorted({row["measurement"] for row in ready if row["study"] == study})
        known = {"the_study": study, "the_phase": phase, "people": people, "asked": asked}
        for judge, measurement, given in connection.execute(_had, known):
            had[judge].add((measurement, given))
    return had


def _deadline(question: sa.RowMapping, lease: float, now: float) -> float:
    """Asking again renews a lease, but not for ever: a stage is evaluated only when all its answers are in."""
    begun = now if question["leased_at"] is None else float(question["leased_at"])
    return min(now + lease, begun + MOST_LEASES * lease)


def submit_answers(
    database: Database, connection: sa.Connection, requests: Sequence[SubmitAnswer]
) -> list[RecordedMessage | SurepickError]:
    """Put messages on record: a few statements for all of them."""
    wanted = sorted({request.question for request in requests})
    known = {row.id: row for row in connection.execute(_asked, {"wanted": wanted})}
    record, now = _record(connection, wanted), database.now(connection)
    results: list[RecordedMessage | SurepickError] = []
    rows: list[dict[str, Any]] = []
    for request in requests:
        before = record.setdefault(request.question, [])
        result = _fit(request, known.get(request.question), before)
        results.append(result)
        if isinstance(result, RecordedMessage) and result.turn == len(before):
            before.append(result)
            rows.append(_message_row(request, result, now))
    if rows:
        connection.execute(sa.insert(messages), rows)
    return results


def _fit(request: SubmitAnswer, question: Any, recorded: list[RecordedMessage]) -> RecordedMessage | SurepickError:
    """Whether the message fits what is on record about its question; the message with its turn if so."""
    if question is None or question.study != request.study or question.judge != request.judge:
        return NotFound(f"Question {request.question!r} was not handed out to you in this study.")
    if question.revoked:
        return Forbidden("This judge's link was revoked.")
    try:
        said = answers.kept_word(question._mapping, request.said)
    except InvalidInput as error:
        return error
    record = [message.said for message in recorded]
    last = record[-1] if record else None
    # Without a turn the message may be new or sent again. After an undo both would look alike, so the turn is required.
    turn = request.turn
    if turn is None:
        if last == "undo":
            return Conflict(f"This question was undone; say that this is its turn {len(record)} to answer it again.")
        since = len(record) - record[::-1].index("undo") if "undo" in record else 0
        late = last == "skip" and said not in ("skip", "tie")
        again = record.index(said, since) if said in record[since:] else max(len(record) - 1, 0)
        turn = len(record) if late else again
    if turn < len(record):
        if record[turn] == said:
            return recorded[turn]
        return Conflict(f"This question has the answer {record[turn]!r} already and now got {said!r}; undo the first.")
    if turn > len(record) or (last not in (None, "undo") and not (last == "skip" and said != "tie")):
        return Conflict(f"Turn {turn} of this question does not follow what is on record; its next is {len(record)}.")
    if question.state not in ("running", "paused"):
        return Conflict(f"This study is {question.state} and takes no more answers.")
    late = question.decided is not None or question.phase != question.current or question.stage < question.evaluated
    return RecordedMessage(request.question, said, turn, late)


def undo_answers(
    database: Database, connection: sa.Connection, requests: Sequence[UndoAnswer]
) -> list[RecordedMessage | SurepickError]:
    """Take back the judge's last message, unless its stage was evaluated; the same request again changes nothing."""
    now = database.now(connection)
    return [_undo(connection, request, now) for request in requests]


def _undo(connection: sa.Connection, request: UndoAnswer, now: float) -> RecordedMessage | SurepickError:
    study = connection.execute(_study, {"the_study": request.study}).first()
    last = connection.execute(_last_message, {"the_study": request.study, "the_judge": request.judge}).first()
    if study is None or last is None:
        return NotFound("There is no answer of yours to undo.")
    if last.revoked:
        return Forbidden("This judge's link was revoked.")
    if request.question is not None and request.question != last.question:
        return Conflict(f"Only your last answer can be undone, that is the one to question {last.question!r}.")
    if last.said == "undo":
        if request.question is None:
            return Conflict("Your last answer is undone already; one step back is all there is.")
        return RecordedMessage(last.question, "undo", last.turn)
    if study.state not in ("running", "paused"):
        return Conflict(f"This study is {study.state}; its answers stay.")
    if study.decided is not None or last.phase != study.phase or last.stage < study.evaluated_stages:
        return Conflict(
            "This answer can no longer be undone: its stage has been evaluated, and a change now would depend on what "
            "it showed."
        )
    undone = RecordedMessage(last.question, "undo", last.turn + 1)
    connection.execute(sa.insert(messages).values(**_message_row(request, undone, now)))
    connection.execute(sa.update(questions).where(questions.c.id == undone.question).values(answered=False))
    return undone


def _message_row(request: JudgeRequest, recorded: RecordedMessage, now: float) -> dict[str, Any]:
    return {
        "question": recorded.question,
        "turn": recorded.turn,
        "study": request.study,
        "judge": request.judge,
        "said": recorded.said,
        "at": now,
        "late": recorded.late,
    }


def _record(connection: sa.Connection, wanted: list[str]) -> dict[str, list[RecordedMessage]]:
    """All messages about these questions, in order."""
    found: dict[str, list[RecordedMessage]] = {}
    for row in connection.execute(_messages_about, {"wanted": wanted}):
        found.setdefault(row.question, []).append(RecordedMessage(*row))
    return found


_goes_on = sa.and_(studies.c.state.in_(["running", "paused"]), studies.c.decided.is_(None))

_studies_of_judges = (
    sa.select(
        judges.c.study,
        judges.c.id.label("judge"),
        judges.c.revoked,
        judges.c.wanted,
        judges.c.wanted_at,
        judges.c.exhausted,
        studies.c.phase,
        studies.c.settings,
        studies.c.decided,
        studies.c.answers,
        studies.c.forecast,
        _goes_on.label("goes_on"),
        sa.and_(_goes_on, studies.c.state == "running", judges.c.revoked.is_(False)).label("hands_out"),
    )
    .join(studies, studies.c.id == judges.c.study)
    .where(judges.c.id.in_(sa.bindparam("wanted", expanding=True)))
)

_wish = (
    sa.update(judges)
    .where(judges.c.id == sa.bindparam("the_judge"))
    .values(wanted=sa.bindparam("n"), wanted_at=sa.bindparam("now"))
)

_last_said = (
    sa.select(messages.c.said)
    .where(messages.c.question == questions.c.id)
    .order_by(messages.c.turn.desc())
    .limit(1)
    .scalar_subquery()
)
_turns = sa.select(sa.func.count()).where(messages.c.question == questions.c.id).scalar_subquery().label("turn")

# Held are questions without a message, or whose last message is an undo. Messages count before the planner has put them
# into the log; otherwise a page that is reloaded would show a question again that was just answered.
_held = (
    sa.select(questions, _turns)
    .join(studies, sa.and_(studies.c.id == questions.c.study, studies.c.phase == questions.c.phase))
    .where(
        questions.c.judge.in_(sa.bindparam("wanted", expanding=True)),
        questions.c.answered.is_(False),
        sa.func.coalesce(_last_said, "undo") == "undo",
    )
    .order_by(questions.c.number)
)

# Processes that hand out questions at the same time skip each other's rows instead of waiting for them.
_ready = (
    sa.select(questions, sa.literal(0).label("turn"))
    .where(
        questions.c.study == sa.bindparam("the_study"),
        QUESTION_LEASE.never_claimed,
        questions.c.answered.is_(False),  # an old one that nobody could take is skipped
        questions.c.phase == sa.bindparam("the_phase"),
    )
    .order_by(questions.c.number)
    .limit(sa.bindparam("n", type_=sa.Integer))
    .with_for_update(skip_locked=True)
)


# What a judge has had is what the session takes for it (`Session.had_by`), by which the planner chooses: an answer, tie
# or skip that is not undone, late or without effect. A question that expired without one may come again. If it were
# refused here, somebody who comes back alone would wait for ever.
def _counts_as_had(taken: sa.FromClause) -> sa.ColumnElement[bool]:
    later = messages.alias()
    return sa.or_(
        taken.c.answered.is_(False),
        sa.exists().where(
            messages.c.question == taken.c.id,
            messages.c.said != "undo",
            sa.or_(messages.c.seq.is_(None), messages.c.seq >= 0),
            sa.or_(messages.c.late.is_(False), messages.c.said.in_(["skip", "tie"])),
            ~sa.exists().where(later.c.question == messages.c.question, later.c.turn > messages.c.turn),
        ),
    )


_taken = questions.alias()
_ready_and_new = _ready.where(
    ~sa.exists().where(
        _taken.c.study == questions.c.study,
        _taken.c.phase == questions.c.phase,
        _taken.c.judge == sa.bindparam("the_judge"),
        _taken.c.measurement == questions.c.measurement,
        _taken.c.input.is_not_distinct_from(questions.c.input),
        _counts_as_had(_taken),
    )
)

_sets_of_judge = sa.select(questions.c.first, questions.c.second, questions.c.others).where(
    questions.c.study == sa.bindparam("the_study"),
    questions.c.phase == sa.bindparam("the_phase"),
    questions.c.judge == sa.bindparam("the_judge"),
    _counts_as_had(questions),
)

_earlier = (
    sa.select(messages.c.said, questions.c.first)
    .join(questions, questions.c.id == messages.c.question)
    .where(
        questions.c.study == sa.bindparam("the_study"),
        questions.c.phase == sa.bindparam("the_phase"),
        questions.c.judge == sa.bindparam("the_judge"),
        questions.c.measurement == sa.bindparam("the_measurement"),
        questions.c.input == sa.bindparam("the_input"),
    )
    .order_by(messages.c.id.desc())
    .limit(1)
)

_had = sa.select(questions.c.judge, questions.c.measurement, questions.c.input).where(
    questions.c.study == sa.bindparam("the_study"),
    questions.c.phase == sa.bindparam("the_phase"),
    questions.c.judge.in_(sa.bindparam("people", expanding=True)),
    questions.c.measurement.in_(sa.bindparam("asked", expanding=True)),
    _counts_as_had(questions),
)

_asked = (
    sa.select(
        questions.c.id,
        questions.c.study,
        questions.c.judge,
        questions.c.first,
        questions.c.second,
        questions.c.others,
        questions.c.top,
        questions.c.phase,
        questions.c.stage,
        studies.c.settings,
        studies.c.state,
        studies.c.decided,
        studies.c.phase.label("current"),
        studies.c.evaluated_stages.label("evaluated"),
        judges.c.revoked,
    )
    .join(studies, studies.c.id == questions.c.study)
    .join(judges, judges.c.id == questions.c.judge)
    .where(questions.c.id.in_(sa.bindparam("wanted", expanding=True)))
)

_messages_about = (
    sa.select(messages.c.question, messages.c.said, messages.c.turn, messages.c.late)
    .where(messages.c.question.in_(sa.bindparam("wanted", expanding=True)))
    .order_by(messages.c.question, messages.c.turn)
)

_study = sa.select(studies.c.state, studies.c.phase, studies.c.evaluated_stages, studies.c.decided).where(
    studies.c.id == sa.bindparam("the_study")
)

_locked_judges = (
    sa.select(judges.c.id)
    .where(judges.c.id.in_(sa.bindparam("wanted", expanding=True)))
    .order_by(judges.c.id)
    .with_for_update(key_share=True)
)

_last_message = (
    sa.select(
        messages.c.question, messages.c.turn, messages.c.said, questions.c.stage, questions.c.phase, judges.c.revoked
    )
    .join(questions, questions.c.id == messages.c.question)
    .join(judges, judges.c.id == messages.c.judge)
    .where(messages.c.study == sa.bindparam("the_study"), messages.c.judge == sa.bindparam("the_judge"))
    .order_by(messages.c.id.desc())
    .limit(1)
)
