"""Rows of the store as the JSON that people and scripts read."""

import json
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from surepick.service.models import ItemOut, QuestionOut
from surepick.store.question_queue import PAIR_WORDS, SINGLE_WORDS
from surepick.store.schema import judges, questions
from surepick.store.studies import Item

Json = dict[str, Any]


def summary(connection: sa.Connection, row: sa.RowMapping) -> Json:
    """A study as it stands."""
    counts = connection.execute(
        sa.select(
            sa.func.count(questions.c.judge),
            sa.func.count().filter(questions.c.judge.is_not(None), questions.c.closed.is_(False)),
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
        "lease": settings["lease"],
        "created": row["created"],
        "phase": row["phase"],
        "events": row["head"],
        "handed_out": counts[0],
        "waiting": counts[1],
        "answers": row["answered"],
        "judges": people,
        "notice": row["notice"],
        "verdict": verdict(row),
        "insight": None if row["insight"] is None else json.loads(row["insight"]),
        "forecast": forecast(row),
    }


def verdict(row: sa.RowMapping) -> Json | None:
    """What was found at the last look; None before the first."""
    return None if row["verdict"] is None else dict(json.loads(row["verdict"]))


def result(row: sa.RowMapping, now: float) -> Json:
    """The result, with the fields of `surepick find --json`; the best item is null before the first look."""
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
            "reason": row["notice"] or "No stage is complete yet.",
        }
    known = [rival["evidence"] for rival in found["rivals"] if rival["evidence"] is not None]
    return {
        **found,
        "evidence": min(known, default=None),
        "seconds": (row["decided"] or now) - row["created"],
        "certificate": None if row["certificate"] is None else json.loads(row["certificate"]),
        "study": row["id"],
        "phase": row["phase"],
        "answers": row["answered"],
    }


def forecast(row: sa.RowMapping) -> Json | None:
    """How many more answers it will take, as of now; None where nobody knows or it is decided."""
    found = {} if row["forecast"] is None else json.loads(row["forecast"])
    if row["decided"] is not None or "further" not in found:
        return None
    since = row["answered"] - found["at"]
    numbers = {name: found[name] for name in ("low", "further", "high")}
    return {name: None if each is None else max(1, round(each - since)) for name, each in numbers.items()}


def remaining(row: sa.RowMapping) -> int | None:
    """About how many more answers it will take."""
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


def item(study: str, each: Item) -> ItemOut:
    """An item as it is shown."""
    image = f"/studies/{study}/images/{each.image}" if each.image else ""
    return ItemOut(name=each.name, label=each.label or each.name, text=each.text, colour=each.colour, image=image)
