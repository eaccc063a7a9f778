"""Records of annotation tools as rows of votes: Label Studio's JSON export, and Argilla's records (docs/votes.md).

A record is one task; it becomes one row per answer, with columns item_a,item_b (or model_a,model_b), winner and judge.
The names of the two items are fields of the task. Any other record is a row as it is.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

SIDES = {"left": "a", "right": "b"}
"""How Label Studio says which of two was selected."""

NUMBERED = re.compile(r"(?:response|reply|answer|text|output|completion|generation)[-_ ]?([12ab])", re.IGNORECASE)
"""Names of options such as response-1 or reply_b, which say only the place of an item."""

QUESTIONS = ("winner", "preference")
"""The question to read where an Argilla record has several; otherwise its first one."""


def rows_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a record of an export, or the record itself if it is a row already."""
    if "winner" in record:  # first, because files of a million rows have it
        return [dict(record)]
    if isinstance(record.get("annotations"), list) and isinstance(record.get("data"), Mapping):
        return [dict(record["data"]) | answer for answer in _label_studio(record["annotations"])]
    if isinstance(record.get("fields"), Mapping) and isinstance(record.get("responses"), Mapping):
        shared = dict(record["fields"]) | dict(record.get("metadata") or {})
        asked = {name: answers for name, answers in record["responses"].items() if isinstance(answers, list)}
        chosen = _question(asked)
        answers = asked[chosen] if chosen else []
        return [shared | _argilla(said.get("value"), said.get("user_id"), said.get("status")) for said in answers]
    asked = {name.removesuffix(".responses"): record[name] for name in record if name.endswith(".responses")}
    chosen = _question(asked)
    if chosen is None:
        return [dict(record)]
    shared = {name.removeprefix("metadata."): value for name, value in record.items() if "." not in name[9:]}
    values = record[f"{chosen}.responses"] or []
    users = record.get(f"{chosen}.responses.users") or [None] * len(values)
    statuses = record.get(f"{chosen}.responses.status") or [None] * len(values)
    return [
        shared | _argilla(value, user, status) for value, user, status in zip(values, users, statuses, strict=False)
    ]


def _question(asked: Mapping[str, Any]) -> str | None:
    return next((name for name in (*QUESTIONS, *asked) if name in asked), None)


def _label_studio(annotations: list[Any]) -> Iterator[dict[str, Any]]:
    """One answer per annotation: what its Pairwise tag selected, or the choice of its Choices tag."""
    for annotation in annotations:
        judge = annotation.get("completed_by")
        judge = judge.get("email", judge.get("id")) if isinstance(judge, Mapping) else judge
        said = None
        for result in annotation.get("result") or []:
            value = result.get("value") or {}
            if result.get("type") == "pairwise":
                said = value.get("selected")
            elif result.get("type") == "choices" and said is None:
                said = (value.get("choices") or [None])[0]
        if annotation.get("was_cancelled"):
            said = "skip"
        yield {"winner": SIDES.get(str(said).lower(), said), "judge": judge}


def _argilla(value: Any, user: Any, status: Any) -> dict[str, Any]:
    """One response: a label, or a ranking of two options; discarded and unfinished ones are skips."""
    if status in ("discarded", "draft"):
        return {"winner": "skip", "judge": user}
    if isinstance(value, list) and value and all(isinstance(option, Mapping) for option in value):
        ranks = sorted(value, key=lambda option: option.get("rank") or 1)
        tied = len(ranks) > 1 and ranks[0].get("rank") == ranks[1].get("rank")
        value = "tie" if tied else ranks[0].get("value")
    elif isinstance(value, list):
        value = value[0] if value else None
    place = NUMBERED.fullmatch(str(value))
    if place is not None:
        value = "a" if place[1].lower() in ("1", "a") else "b"
    return {"winner": value, "judge": user}
