"""Tables to take away: answers, events, result and certificate as CSV, JSON lines or Parquet."""

import csv
import io
import json
from datetime import UTC, datetime
from typing import Any, Literal

import sqlalchemy as sa

from surepick.service import views
from surepick.store import studies
from surepick.store.schema import messages, questions

Table = list[dict[str, Any]]
What = Literal["answers", "events", "result", "certificate"]
Format = Literal["csv", "jsonl", "parquet"]

MEDIA_TYPES: dict[Format, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}


def export(connection: sa.Connection, study: str, what: What, format: Format, now: float) -> bytes:
    """One table of a study."""
    row = studies.get(connection, study)
    if what == "answers":
        table = _answers(connection, study)
    elif what == "events":
        table = [
            {"seq": each["seq"], "phase": each["phase"], "ts": _time(each["at"]), "event": each["body"]}
            for each in studies.events_of(connection, study)
        ]
    elif what == "result":
        table = _result(views.result(row, now))
    else:
        body = row["certificate"]
        table = [] if body is None else [{"study": study, "certificate": body}]
    return {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}[format](table)


def _answers(connection: sa.Connection, study: str) -> Table:
    """Every message, undone ones too, in the order they came."""
    wanted = (
        sa.select(messages, questions.c.first, questions.c.second, questions.c.phase, questions.c.stage)
        .join(questions, questions.c.id == messages.c.question)
        .where(messages.c.study == study)
        .order_by(messages.c.at, messages.c.question, messages.c.turn)
    )
    rows = list(connection.execute(wanted).mappings())
    last = {row["question"]: row["turn"] for row in rows}
    table = []
    for row in rows:
        pair = row["second"] is not None
        table.append(
            {
                "item_a": row["first"] if pair else None,
                "item_b": row["second"],
                "winner": row["said"] if pair else None,
                "item": None if pair else row["first"],
                "answer": None if pair else row["said"],
                "judge": row["judge"],
                "ts": _time(row["at"]),
                "question": row["question"],
                "turn": row["turn"],
                "stands": row["turn"] == last[row["question"]] and row["said"] != "undo",
                "phase": row["phase"],
                "stage": row["stage"],
            }
        )
    return table


def _result(found: dict[str, Any]) -> Table:
    """One row a rival, each with the verdict."""
    names = ("study", "best", "status", "delta", "epsilon", "questions", "evidence", "seconds", "policy", "guarantee")
    verdict = {name: found[name] for name in names}
    rivals = [
        {
            "rival": rival["item"],
            "gap_low": rival["gap"][0],
            "gap_high": rival["gap"][1],
            "rival_evidence": rival["evidence"],
        }
        for rival in found["rivals"]
    ]
    nobody = {"rival": None, "gap_low": None, "gap_high": None, "rival_evidence": None}
    return [verdict | rival for rival in rivals or [nobody]]


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def _csv(table: Table) -> bytes:
    out = io.StringIO()
    if table:
        writer = csv.DictWriter(out, list(table[0]))
        writer.writeheader()
        writer.writerows({name: safe_cell(cell) for name, cell in row.items()} for row in table)
    return out.getvalue().encode()


def safe_cell(cell: Any) -> Any:
    """Text that a spreadsheet would take for a formula gets an apostrophe in front."""
    risky = (isinstance(cell, str) and cell.lstrip()[:1] in ("=", "+", "-", "@")) or str(cell)[:1] in ("\t", "\r")
    return f"'{cell}" if isinstance(cell, str) and risky else cell


def _jsonl(table: Table) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in table).encode()


def _parquet(table: Table) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(table), out)
    return out.getvalue()
