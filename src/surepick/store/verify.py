"""Whether the tables agree with the logs: every study and stream is replayed from its log and compared."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import sqlalchemy as sa

from surepick.certificate import CertificateRefused, verify_certificate
from surepick.errors import SurepickError
from surepick.session import ContextualSession, Session
from surepick.store import log, streams, studies
from surepick.store.answers import as_logged, items_shown
from surepick.store.database import Database
from surepick.store.log import NO_EVENT, QUARANTINED
from surepick.store.schema import messages, questions


@dataclass
class Report:
    """What was found in one study or stream; `wrong` is empty where all is well."""

    study: str
    title: str
    events: int = 0
    answers: int = 0
    waiting: int = 0
    """Messages that are stored and not in the log yet: the planner will append them."""
    verdict: str = "open"
    chain: str = "no chain"
    """Whether the stages of the current phase have links, and whether they are right."""
    wrong: list[str] = field(default_factory=list)


def verify(database: Database) -> list[Report]:
    """Replay and compare every study and stream, archived ones too, each in one snapshot of the database."""
    with database.reading() as connection:
        wanted: list[tuple[Callable[[sa.Connection, str], Report], str]] = [
            *((verify_study, row["id"]) for row in studies.every(connection, archived=True)),
            *((verify_stream, row["id"]) for row in streams.every(connection)),
        ]
    reports = []
    for check, which in wanted:
        with database.reading() as connection:
            if not database.is_sqlite:
                # READ COMMITTED would see a planner's commit between two queries and report a difference.
                connection.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
            reports.append(check(connection, which))
    return reports


def verify_study(connection: sa.Connection, study: str) -> Report:
    """Compare one study's tables with its log."""
    row = studies.get(connection, study)
    report = Report(study, row["title"])
    logged = log.rows(connection, study)
    report.events = len(logged)
    # Without gaps: two planners that wrote at once, or a lost commit, would show here.
    if [event["seq"] for event in logged] != list(range(row["head"])):
        report.wrong.append(f"The log should have the events 0 to {row['head'] - 1} and has {len(logged)}.")
    events = {event["seq"]: (event["phase"], json.loads(event["body"])) for event in logged}
    sessions = {}
    for phase in range(row["phase"] + 1):
        try:
            sessions[phase] = Session.replay([event for of, event in events.values() if of == phase])
        except (SurepickError, KeyError, IndexError, ValueError) as error:
            report.wrong.append(f"The log of phase {phase} cannot be replayed: {error}")
            return report
    for phase, session in sessions.items():
        if session.chain.broken is not None:
            report.wrong.append(f"The log of phase {phase} was changed. {session.chain}")
    report.chain = sessions[row["phase"]].chain.state
    _compare_state(row, sessions[row["phase"]], report)
    _compare_questions(connection, study, sessions, report)
    _compare_messages(connection, study, events, report)
    return report


def verify_stream(connection: sa.Connection, stream: str) -> Report:
    """Make every decision of a stream again, and compare; rewards count as answers."""
    row = streams.get(connection, stream)
    logged = streams.events_of(connection, stream)
    report = Report(stream, row["title"], events=len(logged), verdict="none")
    if [event["seq"] for event in logged] != list(range(row["head"])) or not logged:
        report.wrong.append(f"The log should have the events 0 to {row['head'] - 1} and has {len(logged)}.")
        return report
    start, *events = (json.loads(event["body"]) for event in logged)
    try:
        session = ContextualSession.fold(start, events)
    except (SurepickError, KeyError, IndexError, ValueError, TypeError) as error:
        report.wrong.append(f"The log cannot be replayed: {error}")
        return report
    report.answers, report.waiting = len(session.rewards), len(session.waiting)
    for name, shown, found in (
        ("decisions", row["decisions"], session.decisions),
        ("answered decisions", row["answered"], len(session.rewards)),
    ):
        if shown != found:
            report.wrong.append(f"The stream counts {shown} {name}, its log has {found}.")
    return report


def _compare_state(row: sa.RowMapping, session: Session, report: Report) -> None:
    report.answers = session.answered
    if row["answers"] != session.answered:
        report.wrong.append(f"The study counts {row['answers']} answers, its log has {session.answered}.")
    evaluated, answered = row["evaluated_stages"], session.answered_stages
    if evaluated > answered:
        report.wrong.append(f"{evaluated} stages are evaluated, but only {answered} are answered in the log.")
    shown = None if row["verdict"] is None else json.loads(row["verdict"])
    final = None if session.final is None else session.final.to_json()
    if shown is not None:
        report.verdict = shown["status"]
    if final != (shown if shown is not None and shown["status"] != "open" else None):
        report.wrong.append(f"The study shows the verdict {shown}, its log has {final}.")
    if (final is None) != (row["decided"] is None):
        report.wrong.append("The time of the verdict and the verdict do not go together.")
    if row["certificate"] is not None:
        try:
            checked = verify_certificate(json.loads(row["certificate"]))
        except CertificateRefused as refused:
            report.wrong.append(f"The certificate is refused: {refused}")
        else:
            if final is None or checked.best != final["best"]:
                report.wrong.append(f"The certificate is about {checked.best!r}, the verdict is {final}.")
            if checked.link is not None and checked.link not in session.chain.links:
                report.wrong.append("The certificate has links that the log does not have.")


def _compare_questions(connection: sa.Connection, study: str, sessions: dict[int, Session], report: Report) -> None:
    waiting = sa.exists().where(messages.c.question == questions.c.id, messages.c.seq.is_(None)).label("waiting")
    rows = connection.execute(sa.select(questions, waiting).where(questions.c.study == study)).mappings().all()
    waiting_ids = {phase: {one.id for one in session.outstanding} for phase, session in sessions.items()}
    asked = {phase: session.questions for phase, session in sessions.items()}
    for row in rows:
        known = asked[row["phase"]].get(row["number"])
        if known is None or (known.stage, known.items) != (row["stage"], items_shown(row)):
            report.wrong.append(f"Question {row['id']} is not the one in the log.")
        # Where a message is not in the log yet, the table may be ahead of the log: an undo marks its question at once.
        elif not row["waiting"] and row["answered"] == (row["number"] in waiting_ids[row["phase"]]):
            state = "answered" if row["answered"] else "not answered"
            report.wrong.append(f"Question {row['id']} is {state}, unlike in the log.")
    last = max(sessions)
    if Counter(row["phase"] for row in rows)[last] != len(asked[last]):
        report.wrong.append(f"Phase {last} asked {len(asked[last])} questions, the table has another number.")


def _compare_messages(
    connection: sa.Connection, study: str, events: dict[int, tuple[int, dict[str, object]]], report: Report
) -> None:
    """Every message is in the log exactly once, with the same words and judge, and the log has no other answers.

    A quarantined message is named as wrong: its judge was told that it is stored, and the log does not have it.
    """
    wanted = (
        sa.select(messages, *(questions.c[name] for name in ("number", "phase", "first", "second", "others", "top")))
        .join(questions, questions.c.id == messages.c.question)
        .where(messages.c.study == study)
    )
    rows = connection.execute(wanted).mappings().all()
    report.waiting = sum(row["seq"] is None for row in rows)
    without_event = (None, NO_EVENT, QUARANTINED)
    logged = Counter(row["seq"] for row in rows if row["seq"] not in without_event)
    for row in rows:
        if row["seq"] == QUARANTINED or row["quarantine"] is not None:
            about = f"Message {row['turn']} about question {row['question']} ({row['said']!r})"
            report.wrong.append(f"{about} is quarantined: {row['quarantine']}")
        if row["seq"] in without_event:
            continue
        phase, event = events.get(row["seq"], (None, {}))
        kind = event.get("event")
        told = event["answer"] if kind == "answer" else kind
        same = (phase, event.get("id"), event.get("judge", row["judge"])) == (row["phase"], row["number"], row["judge"])
        if not same or told != as_logged(row) or logged[row["seq"]] != 1:
            report.wrong.append(f"Message {row['turn']} about question {row['question']} is not event {row['seq']}.")
    from_judges = {
        seq
        for seq, (_, event) in events.items()
        if event["event"] in ("answer", "tie", "undo") or (event["event"] == "skip" and "judge" in event)
    }
    if from_judges != set(logged):
        report.wrong.append(f"Events {sorted(from_judges ^ set(logged))[:5]} have no message, or the other way round.")
