"""Rows of the store as the API shows them: JSON, and tables to export as CSV, JSON lines or Parquet."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import sqlalchemy as sa

from surepick.identify import Status
from surepick.report.sentences import MOST_NAMED, certainty, claim_result, fewer_judges, judges_wanted
from surepick.service import standing
from surepick.service.markdown import render
from surepick.service.models import CommentOut, InputOut, ItemOut, QuestionOut
from surepick.session.judges_needed import JudgesNeeded
from surepick.store import comments, log, studies, systems
from surepick.store.answers import items_shown, meaning, words_for
from surepick.store.schema import items, judges, messages, questions
from surepick.store.studies import Item
from surepick.store.systems import SystemOutputs

Json = dict[str, Any]
Table = list[Json]
What = Literal["answers", "comments", "events", "result", "certificate"]
Format = Literal["csv", "jsonl", "parquet"]

ID_COLUMNS = ("question", "judge", "study")
"""Ids of the service, letters, digits, - and _: no formula, and whoever reads the file needs them as they are."""

WITHOUT_FEATURES = "Each item has one score, and all judges answer by one logistic model of the scores (Bradley–Terry)."
"""What the claim "features" assumes where items have none."""

LETTERS = "ABCDEFGHI"
"""Names of items in a blind study, in the order shown."""

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
    people, exhausted = connection.execute(
        sa.select(sa.func.count(), sa.func.count().filter(judges.c.exhausted.is_(True))).where(
            judges.c.study == row["id"], judges.c.revoked.is_(False)
        )
    ).one()
    settings = json.loads(row["settings"])
    count = connection.execute(
        sa.select(sa.func.count()).where(items.c.study == row["id"], items.c.removed.is_(False))
    ).scalar_one()
    features = connection.execute(sa.select(items.c.features).where(items.c.study == row["id"]).limit(1)).scalar_one()
    found, stored = verdict(row), stored_claims(row)
    names = {} if found is None else labels(connection, row["id"], found, stored)
    study = {
        "id": row["id"],
        "title": row["title"],
        "state": row["state"],
        "kind": settings["kind"],
        "policy": settings["policy"],
        "population": settings.get("population"),
        "repeats": settings["repeats"],
        "lease": settings["lease"],
        "show": settings["show"],
        "answer": settings["answer"],
        "blind": settings["blind"],
        "prepared": settings.get("prepared", []),
        "inputs": systems.count(connection, row["id"]),
        "features": 0 if features is None else len(json.loads(features)),
        "created": row["created"],
        "phase": row["phase"],
        "events": row["head"],
        "handed_out": counts[0],
        "waiting": counts[1],
        "answers": row["answers"],
        "judges": people,
        "exhausted": exhausted,
        "comments": comments.count(connection, row["id"]),
        "notice": row["notice"],
        "quarantined": [
            {name: message[name] for name in ("question", "turn", "judge", "said", "at")}
            | {"reason": message["quarantine"]}
            for message in log.quarantined(connection, row["id"])
        ],
        "verdict": found,
        "sure": "" if found is None else certainty_of(found, bare=features is None),
        "claims": claims(stored, names, count, bare=features is None),
        "insight": None if row["insight"] is None else json.loads(row["insight"]),
        "forecast": forecast(row),
        "judges_needed": judges_still_needed(row, count),
    }
    study["nothing_left"] = standing.nothing_left(study)
    return study | {
        "condition": standing.condition(study),
        "headline": standing.headline(study, stored, names, count),
        "explained": standing.explained(study, names, count),
    }


def verdict(row: sa.RowMapping) -> Json | None:
    """The verdict of the last evaluation; None before the first."""
    return None if row["verdict"] is None else dict(json.loads(row["verdict"]))


def certainty_of(found: Mapping[str, Any], *, bare: bool) -> str:
    """How sure a stored verdict is and on what condition, as a sentence; `bare` items have no features."""
    ends = next((assumed_by(claim, bare=bare) for claim in found.get("claims", []) if claim["ends_search"]), "")
    return certainty(Status(found["status"]), found["delta"], found["epsilon"], str(found["guarantee"]), ends)


def assumed_by(claim: Mapping[str, Any], *, bare: bool) -> str:
    """What a stored claim assumes, as a sentence."""
    return WITHOUT_FEATURES if bare and claim["assume"] == "features" else str(claim["assumption"])


def stored_claims(row: sa.RowMapping) -> list[Json]:
    """The claims of the verdict if it is final, else of the last insight."""
    source = row["verdict"] if row["decided"] is not None else row["insight"]
    return [] if source is None else list(json.loads(source).get("claims", []))


def labels(
    connection: sa.Connection, study: str, found: Mapping[str, Any], stored: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """How the items are called that are named in words: the best, those of claims, and those of a short list."""
    short_list = found["surviving"] if len(found["surviving"]) <= MOST_NAMED else []
    wanted = {found["best"], *short_list, *(claim["best"] for claim in stored)}
    return {name: item.label or name for name, item in studies.shown(connection, study, wanted).items()}


def claims(stored: Sequence[Mapping[str, Any]], names: Mapping[str, str], count: int, *, bare: bool) -> list[Json]:
    """What is proved under which assumption, in words; `bare` items have no features."""
    return [
        {
            "assume": claim["assume"],
            "assumption": assumed_by(claim, bare=bare),
            "ends_search": claim["ends_search"],
            "reached": claim["reached"],
            "best": names[claim["best"]],
            "result": claim_result(
                Status(claim["status"]),
                names[claim["best"]],
                len(claim["surviving"]),
                count,
                refuted_by=claim["refuted_by"],
            ),
        }
        for claim in stored
        if claim["best"] in names
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


def judges_still_needed(row: sa.RowMapping, count: int) -> Json | None:
    """About how many more judges it takes if all agree, in words, and what would take fewer; None where unknown."""
    found = {} if row["forecast"] is None else json.loads(row["forecast"])
    if row["decided"] is not None or "judges" not in found:
        return None
    needed, policy = JudgesNeeded.from_json(found["judges"]), json.loads(row["settings"])["policy"]
    answered = standing.answering(None if row["insight"] is None else json.loads(row["insight"]))
    delta, epsilon = policy["delta"], policy["epsilon"]
    return {
        "more": None if needed.in_all is None else max(0, needed.in_all - answered),
        "sentence": judges_wanted(needed, answered, delta=delta, epsilon=epsilon, count=count),
        "fewer": fewer_judges(needed, epsilon),
    }


def remaining(row: sa.RowMapping) -> int | None:
    """Estimated answers left; None where unknown."""
    if row["decided"] is not None:
        return 0
    found = forecast(row)
    return None if found is None else found["further"]


def question(
    study: str,
    row: sa.RowMapping,
    until: float,
    shown: Mapping[str, Item],
    settings: Mapping[str, Any],
    systems: SystemOutputs,
) -> QuestionOut:
    """A question as a judge's page needs it; in a blind study without the items' names, of systems with outputs."""
    faces = [item(study, shown[name]) for name in items_shown(row)]
    given = next((one for one in systems.inputs if one.name == row["input"]), None)
    if given is not None:
        written = [systems.outputs[face.name, given.name] for face in faces]
        faces = [
            face.model_copy(update={"text": text, "html": render(text)})
            for face, text in zip(faces, written, strict=True)
        ]
    if settings["blind"]:
        letters = LETTERS if len(faces) > 1 else ("",)
        faces = [
            face.model_copy(update={"name": "", "label": letter}) for face, letter in zip(faces, letters, strict=False)
        ]
    pair = "grade" if settings["answer"] == "grade" else "compare"
    kind: Any = "yes/no" if len(faces) == 1 else pair if row["top"] is None else settings["answer"]
    return QuestionOut(
        id=row["id"],
        turn=row["turn"],
        kind=kind,
        a=faces[0],
        b=faces[1] if len(faces) > 1 else None,
        items=faces,
        input=None if given is None else InputOut(text=given.text, html=render(given.text)),
        answers=list(words_for(row, settings)),
        top=row["top"] or 0,
        expires=until,
    )


def item(study: str, shown: Item) -> ItemOut:
    """An item as it is shown."""
    image = f"/studies/{study}/images/{shown.image}" if shown.image else ""
    return ItemOut(
        name=shown.name,
        label=shown.label or shown.name,
        text=shown.text,
        html=render(shown.text),
        colour=shown.colour,
        image=image,
    )


def written_comments(connection: sa.Connection, study: str) -> list[CommentOut]:
    """What judges wrote, the newest first."""
    return [
        CommentOut(
            question=row["question"],
            items=list(items_shown(row)),
            judge=row["judge"],
            name=row["name"],
            at=row["at"],
            text=row["text"],
        )
        for row in comments.comments_of(connection, study)
    ]


def export(connection: sa.Connection, study: str, what: What, format: Format, now: float) -> bytes:
    """One table of a study."""
    row = studies.get(connection, study)
    if what == "answers":
        table = _answers(connection, study)
    elif what == "comments":
        found = [comment.model_dump() for comment in written_comments(connection, study)]
        table = [{**one, "items": json.dumps(one["items"]), "at": time_text(one["at"])} for one in found]
    elif what == "events":
        table = [
            {"seq": event["seq"], "phase": event["phase"], "ts": time_text(event["at"]), "event": event["body"]}
            for event in log.rows(connection, study)
        ]
    elif what == "result":
        table = _result(result(row, now))
    else:
        body = row["certificate"]
        table = [] if body is None else [{"study": study, "certificate": body}]
    return written(table, format)


def written(table: Table, format: Format) -> bytes:
    """A table as a file."""
    return {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}[format](table)


def _answers(connection: sa.Connection, study: str) -> Table:
    """Every message, undone ones too, in the order they came."""
    wanted = (
        sa.select(
            messages,
            *(questions.c[name] for name in ("first", "second", "others", "top", "input", "phase", "stage")),
        )
        .join(questions, questions.c.id == messages.c.question)
        .where(messages.c.study == study)
        .order_by(messages.c.id)
    )
    rows = list(connection.execute(wanted).mappings())
    last = {row["question"]: row["turn"] for row in rows}  # rows of a question are in the order of their turns
    table = []
    for row in rows:
        pair = row["second"] is not None and row["top"] is None
        shown = items_shown(row)
        table.append(
            {
                "item_a": row["first"] if pair else None,
                "item_b": row["second"] if pair else None,
                "winner": row["said"] if pair else None,
                "item": row["first"] if row["second"] is None else None,
                "answer": row["said"] if row["second"] is None else None,
                "judge": row["judge"],
                "ts": time_text(row["at"]),
                "question": row["question"],
                "turn": row["turn"],
                "stands": row["turn"] == last[row["question"]] and row["said"] != "undo",
                "phase": row["phase"],
                "stage": row["stage"],
                "late": row["late"],
                "items": "|".join(shown) if row["top"] is not None else None,
                "ranking": _ranking(row, shown) if row["top"] is not None else None,
                "said": row["said"],
                "input": row["input"],
            }
        )
    return table


def _ranking(row: sa.RowMapping, shown: Sequence[str]) -> str:
    """A pick or ranking by names, the best first, as `surepick.io.votes` reads it; or tie, skip or undo."""
    places = None if row["said"] == "undo" else meaning(row, row["said"])
    return " > ".join(shown[place - 1] for place in places) if isinstance(places, tuple) else row["said"]


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


def time_text(at: float) -> str:
    """A time for people and programs: ISO 8601, UTC."""
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
