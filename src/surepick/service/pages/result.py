"""The result of a study as a sheet of paper: what the template shows, in plain words."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from surepick.identify import Status
from surepick.service import views
from surepick.service.models import ItemOut
from surepick.service.views import Json
from surepick.store import judges, studies

RIVALS = 20
"""Rivals listed at most."""


def result_sheet(connection: sa.Connection, study: str, now: float) -> Json:
    """Everything the page says about a study."""
    row = studies.get(connection, study)
    found = views.result(row, now)
    items = {each.name: views.item(study, each) for each in studies.items_of(connection, study)}
    summary = views.summary(connection, row)
    insight = summary["insight"] or {}
    people = {judge["id"]: judge["name"] or "a judge without a name" for judge in judges.every(connection, study)}
    checks = [{**check, "sentence": _named(check["sentence"], people)} for check in insight.get("checks", [])]
    status = Status(found["status"])
    best = items.get(found["best"] or "")
    return {
        "title": row["title"],
        "study": study,
        "result": {"statement": "", "assumptions": [], **found},
        "decided": status.decided,
        "best": best,
        "claim": _claim(status, best.label if best else "", found["epsilon"]),
        "sure": _sure(status, found),
        "when": datetime.fromtimestamp(row["decided"] or now, UTC).strftime("%d %B %Y, %H:%M UTC"),
        "judges": sum(1 for judge in insight.get("judges", {}).values() if judge["answers"]),
        "features": any(each.features for each in studies.items_of(connection, study)),
        "charged": summary["policy"].get("missing") == "charged",
        "checks": checks,
        "alarms": [check for check in checks if check["alarm"]],
        "level": round(sum(check["level"] for check in checks), 4),
        "surviving": [items[name] for name in found.get("surviving", items) if name in items],
        "rivals": _rivals(found, insight, items),
        "refuted": insight.get("refuted", False),
        "certificate": found["certificate"],
    }


def _claim(status: Status, name: str, epsilon: float) -> str:
    claims = {
        Status.CERTAIN: f"{name} is the best",
        Status.WITHIN_EPSILON: f"{name} is the best, or within {epsilon:g} of it",
        Status.BUDGET_SPENT: f"Not decided; the best guess is {name}",
        Status.NOT_IDENTIFIABLE: "These questions cannot decide it",
        Status.OPEN: f"Not decided yet; {name} leads" if name else "Not decided yet",
    }
    return claims[status]


def _sure(status: Status, found: Mapping[str, Any]) -> str:
    delta = f"{100 * found['delta']:g}%"
    if not status.decided:
        return "Nothing is claimed so far, except that the best item is among those not excluded."
    if found["guarantee"] != "proved":
        return f"Meant to be wrong in at most {delta} of such studies ({found['guarantee']}, not proved)."
    wrong = f"an item worse than the best by more than {found['epsilon']:g}" if found["epsilon"] else "a wrong item"
    return f"A study like this names {wrong} with probability at most {delta}. Proved, if what it assumes is true."


def _rivals(found: Mapping[str, Any], insight: Mapping[str, Any], items: Mapping[str, ItemOut]) -> list[Json]:
    """The best item and its closest rivals with all that is known of them, as text."""
    scores = {each["item"]: each for each in insight.get("scores", [])}
    evidence = {rival["item"]: rival["evidence"] for rival in found["rivals"]}
    names = [name for name in (found["best"], *evidence) if name in items][:RIVALS]
    rows = []
    for name in names:
        score = scores.get(name, {"score": None, "interval": [None, None]})
        low, high = score["interval"]
        rows.append(
            {
                "item": items[name],
                "evidence": _number(evidence.get(name), "–"),
                "score": _number(score["score"], "–"),
                "interval": "–" if low is None and high is None else f"{_number(low, '−∞')} to {_number(high, '∞')}",
            }
        )
    return rows


def _number(value: float | None, nothing: str) -> str:
    return nothing if value is None or not math.isfinite(value) else f"{value:.2f}".replace("-", "−")


def _named(sentence: str, people: Mapping[str, str]) -> str:
    """Judges by name instead of id."""
    for judge, name in people.items():
        sentence = sentence.replace(judge, name)
    return sentence
