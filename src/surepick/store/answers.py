"""What a judge may say to a question of a study, and what it means to the session: the words that messages hold.

Two items: a, b, tie, skip; where the study asks for grades, much better, better, worse, much worse (of the first item)
and tie. Yes/no: yes, no, skip. More items: places counted from 1 in the order shown, the best first, such as 3 or
3>1>4; or tie, or skip.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from surepick.answer import GRADES, PAIR_WORDS, SINGLE_WORDS, Answer, read_answer
from surepick.errors import InvalidInput
from surepick.session import Question

GRADE_WORDS = (*(word for word in GRADES if word != "equal"), "tie", "skip")
SET_WORDS = ("tie", "skip")
"""Besides places."""


def question_columns(question: Question) -> dict[str, Any]:
    """What a question shows, as columns of its row."""
    first, second, *others = (*question.items, None)[: max(2, len(question.items))]
    return {
        "first": first,
        "second": second,
        "others": json.dumps(others) if others else None,
        "top": question.top if question.about_set else None,
        "input": question.input,
    }


def items_shown(row: sa.RowMapping) -> tuple[str, ...]:
    """Names of the items of a question, in the order shown."""
    return (row["first"], *(() if row["second"] is None else (row["second"],)), *json.loads(row["others"] or "[]"))


def words_for(row: sa.RowMapping, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The words that a judge may answer with, besides places."""
    if row["second"] is None:
        return SINGLE_WORDS
    if row["top"] is not None:
        return SET_WORDS
    return GRADE_WORDS if settings["answer"] == "grade" else PAIR_WORDS


def kept_word(row: sa.RowMapping, said: str) -> str:
    """What was said as it is kept, or InvalidInput with what could be said; the row has the study's settings too."""
    words = words_for(row, json.loads(row["settings"]))
    word = "tie" if said == "equal" else said
    if word in words:
        return word
    if row["top"] is None:
        raise InvalidInput(f"The answer to this question must be one of {', '.join(words)}, got {said!r}.")
    count, top = len(items_shown(row)), row["top"]
    places = _places(said) if re.fullmatch(r"[1-9](>[1-9])*", said) else ()
    if not places or len(set(places)) < len(places) or max(places) > count or (len(places) > top and top + 1 < count):
        wanted = "a place" if top == 1 else f"up to {top} different places, the best first, such as 2>1"
        raise InvalidInput(f"The answer must be {wanted}, from 1 to {count}, or tie or skip; got {said!r}.")
    if len(places) > top and top == 1:
        raise InvalidInput(f"This question asks for one place only, from 1 to {count}; got {said!r}.")
    return said


def meaning(row: sa.RowMapping, said: str) -> Answer:
    """What a kept word means to the session."""
    if row["top"] is not None and said not in SET_WORDS:
        return _places(said)
    shown = items_shown(row)
    return read_answer(said, shown[:2])


def turned_word(said: str) -> str:
    """What somebody who said this would have said with the two items shown the other way round."""
    other = {"a": "b", "better": "worse", "much better": "much worse"}
    return (other | {after: before for before, after in other.items()}).get(said, said)


def as_logged(row: sa.RowMapping) -> Any:
    """What the event of a message holds: its answer in JSON, or undo, tie or skip."""
    if row["said"] in ("undo", *SET_WORDS):
        return row["said"]
    answer = meaning(row, row["said"])
    return list(answer) if isinstance(answer, tuple) else answer


def _places(said: str) -> tuple[int, ...]:
    return tuple(int(place) for place in said.split(">"))
