"""Rows of the store as the API shows them: JSON, and tables to export as CSV, JSON lines or Parquet."""

import csv
import io
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import sqlalchemy as sa

from surepick.answer import PAIR_WORDS, SINGLE_WORDS
from surepick.identify import Status
from surepick.report.sentences import claim_result
from surepick.service.models import ItemOut, QuestionOut
from surepick.store import log, studies
from surepick.store.schema import judges, messages, questions
from surepick.store.studies import Item

Json = dict[str, Any]
Table = list[Json]
What = Literal["answers", "events", "result", "certificate"]
Format = Literal["csv", "jsonl", "parquet"]

ID_COLUMNS = ("question", "judge", "study")
"""Ids of the service, letters, digits, - and _: no formula, and whoever reads the file needs them as they are."""

MEDIA_TYPES: dict[Format, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}


def summary(connection: sa.Connection, row: sa.RowMapping) -> Json:
    """The present state of a study."""
    counts = connection.execute(
        sa.select(
            sa.func.count(questions.c.judge),
            sa.func.count().filter(questions.c.judge.is_not(None), questions.c.answered.is_(False)),
        ).where(questions.c.study == row["id"], questions.c.phase == row["phase"])
    ).one()
    people = connection.execute(
        sa.select(sa.func.count()).where(judges.c.study == row["id"], judges.c.revoked.is_(False))
    ).scalar_one()
    settings = json.loads(row["settings"])
    return {
        "id": row["id"],
        "title": row["title"],
        "state": row["state"],
        "kind": settings["kind"],
        "policy": settings["policy"],
        "repeats": settings["repeats"],
        "lease": settings["lease"],
        "created": row["created"],
        "phase": row["phase"],
        "events": row["head"],
        "handed_out": counts[0],
        "waiting": counts[1],
        "answers": row["answers"],
        "judges": people,
        "notice": row["notice"],
        "quarantined": [
            {name: message[name] for name in ("question", "turn", "judge", "said", "at")}
            | {"reason": message["quarantine"]}
            for message in log.quarantined(connection, row["id"])
        ],
        "verdict": verdict(row),
        "claims": claims(connection, row),
        "insight": None if row["insight"] is None else json.loads(row["insight"]),
        "forecast": forecast(row),
    }


def verdict(row: sa.RowMapping) -> Json | None:
    """The verdict of the last evaluation; None before the first."""
    return None if row["verdict"] is None else dict(json.loads(row["verdict"]))


def claims(connection: sa.Connection, row: sa.RowMapping) -> list[Json]:
    """What is proved under which assumption, in words: of the verdict if it is final, else of the last insight."""
    source = row["verdict"] if row["decided"] is not None else row["insight"]
    found = [] if source is None else json.loads(source).get("claims", [])
    shown = studies.shown(connection, row["id"], {claim["best"] for claim in found})
    count = len(studies.items_of(connection, row["id"])) if found else 0
    return [
        {
            "assume": claim["assume"],
            "assumption": claim["assumption"],
            "ends_search": claim["ends_search"],
            "reached": claim["reached"],
            "result": claim_result(
                Status(claim["status"]),
                shown[claim["best"]].label or claim["best"],
                len(claim["surviving"]),
                count,
                refuted_by=claim["refuted_by"],
            ),
        }
        for claim in found
        if claim["best"] in shown
    ]


def result(row: sa.RowMapping, now: float) -> Json:
    """The result, with the fields of `surepick find --json`; the best item is null before the first evaluation."""
    found = verdict(row)
    policy = json.loads(row["settings"])["policy"]
    if found is None:
        found = {
            "best": None,
            "status": "open",
            "delta": policy["delta"],
            "epsilon": policy.get("epsilon", 0.0),
            "questions": 0,
            "rivals": [],
            "policy": policy["name"],
            "guarantee": None,
            "reason": row["notice"] or "No stage has been evaluated yet.",
        }
    known = [rival["evidence"] for rival in found["rivals"] if rival["evidence"] is not None]
    return {
        **found,
        "evidence": min(known, default=None),
        "seconds": max(0.0, (row["decided"] or now) - row["created"]),  # a clock may have been set back meanwhile
        "certificate": None if row["certificate"] is None else json.loads(row["certificate"]),
        "study": row["id"],
        "phase": row["phase"],
        "answers": row["answers"],
    }


def forecast(row: sa.RowMapping) -> Json | None:
    """Estimated answers left, as of now; None where unknown or decided."""
    found = {} if row["forecast"] is None else json.loads(row["forecast"])
    if row["decided"] is not None or "further" not in found:
        return None
    # Simulated when there were `at` answers; those since are subtracted. Until it is decided at least one is left.
    since = row["answers"] - found["at"]
    numbers = {name: found[name] for name in ("low", "further", "high")}
    return {name: None if number is None else max(1, round(number - since)) for name, number in numbers.items()}


def remaining(row: sa.RowMapping) -> int | None:
    """Estimated answers left; None where unknown."""
    if row["decided"] is not None:
        return 0
    found = forecast(row)
    return None if found is None else found["further"]


def question(study: str, row: sa.RowMapping, until: float, shown: Mapping[str, Item]) -> QuestionOut:
    """A question as a judge's page needs it."""
    return QuestionOut(
        id=row["id"],
        turn=row["turn"],
        a=item(study, shown[row["first"]]),
        b=None if row["second"] is None else item(study, shown[row["second"]]),
        answers=list(SINGLE_WORDS if row["second"] is None else PAIR_WORDS),
        expires=until,
    )


def item(study: str, shown: Item) -> ItemOut:
    """An item as it is shown."""
    image = f"/studies/{study}/images/{shown.image}" if shown.image else ""
    return ItemOut(name=shown.name, label=shown.label or shown.name, text=shown.text, colour=shown.colour, image=image)


def export(connection: sa.Connection, study: str, what: What, format: Format, now: float) -> bytes:
    """One table of a study."""
    row = studies.get(connection, study)
    if what == "answers":
        table = _answers(connection, study)
    elif what == "events":
        table = [
            {"seq": event["seq"], "phase": event["phase"], "ts": _time(event["at"]), "event": event["body"]}
            for event in log.rows(connection, study)
        ]
    elif what == "result":
        table = _result(result(row, now))
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
        .order_by(messages.c.id)
    )
    rows = list(connection.execute(wanted).mappings())
    last = {row["question"]: row["turn"] for row in rows}  # rows of a question are in the order of their turns
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
                "late": row["late"],
            }
        )
    return table


def _result(found: dict[str, Any]) -> Table:
    """One row per rival, each with the verdict."""
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
        writer.writerows(
            {name: cell if name in ID_COLUMNS else safe_cell(cell) for name, cell in row.items()} for row in table
        )
    return out.getvalue().encode()


def safe_cell(cell: Any) -> Any:
    """Text with an apostrophe in front where a spreadsheet would take it for a formula."""
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
