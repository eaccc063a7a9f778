"""The one vocabulary of answers: every word that a file, a program, a page or a person may use, and what it means.

An answer is 1 (yes, or the first item shown), 0 (no, or the second item shown), "tie", or None (skipped). A comparison
may also be answered by a score between 0 and 1: how far the first item is preferred, a judge's probability or a grade.
A question that shows more than two items is answered by places, counted from 1 in the order shown and best first: one
place for a pick, several for a ranking.
"""

import math
import re
from collections.abc import Sequence
from typing import Any, Literal

from surepick.errors import InvalidInput

Places = tuple[int, ...]
"""Places of items as shown, counted from 1, the best item first."""

Answer = int | float | Places | Literal["tie"] | None
"""1 or 0, or a score between them, places of several items, "tie", or None for no answer."""

GRADES: dict[str, float] = {"much better": 1.0, "better": 0.75, "equal": 0.5, "worse": 0.25, "much worse": 0.0}
"""Scores of the first item shown by the words of a grade: cut values, evenly spread; no proof depends on them."""

TIE, SKIP = -1, -2
"""A tie and a skip where answers are stored as integers."""

PAIR_WORDS = ("a", "b", "tie", "skip")
"""What the service and its pages accept for a comparison; the log of messages holds these words."""

SINGLE_WORDS = ("yes", "no", "skip")
"""The same for a yes/no question."""

_SKIPPED = {"skip": None}
_NUMBERS = {"1": 1, "0": 0, "true": 1, "false": 0}
_TIES: dict[str, Answer] = {"tie": "tie", "both bad": "tie", "both_bad": "tie", "tie (bothbad)": "tie"}
_ALL_TIED = {*_TIES, "equal", "all equal", "all bad", "none", "no difference"}
_SINGLE: dict[str, Answer] = {"yes": 1, "no": 0, **_NUMBERS, **_SKIPPED}
_PAIR: dict[str, Answer] = {
    "a": 1,
    "first": 1,
    "model_a": 1,
    "b": 0,
    "second": 0,
    "model_b": 0,
    **_NUMBERS,
    **_TIES,
    **_SKIPPED,
}


def read_answer(said: Any, shown: Sequence[str] = ()) -> Answer:
    """What was said to a question that showed these items: two or more, or one or none for yes/no.

    Numbers, booleans and words in any case are understood, 1.0 and 0.0 as pandas writes them included; for a comparison
    also the winner's name. A word of the vocabulary goes before a name that is spelt alike.

    >>> read_answer("model_a", ("red", "blue")), read_answer("blue", ("red", "blue")), read_answer(1.0)
    (1, 0, 1)
    >>> [read_answer(said, ("red", "blue")) for said in ("0.7", "much worse", "equal")]
    [0.7, 0, 'tie']
    """
    if len(shown) > 2:
        return read_places(said, shown)
    words = _PAIR if len(shown) == 2 else _SINGLE
    if said is None:
        return None
    word = str(int(said)) if _is_whole(said) else str(said).strip()
    folded = "1" if word == "1.0" else "0" if word == "0.0" else word.lower()
    if folded in words:
        return words[folded]
    if len(shown) == 2:
        if word in shown:
            return int(word == shown[0])
        if folded.replace("_", " ") in GRADES:
            return _score(GRADES[folded.replace("_", " ")])
        if _is_fraction(word):
            return _score(float(word))
    grades = f"a grade ({', '.join(GRADES)})"
    pair = f"a, b, tie, skip, a number from 0 to 1, {grades} or the winner's name"
    usual = pair if len(shown) == 2 else "yes, no, skip, 1 or 0"
    raise InvalidInput(f"The answer must be {usual}; got {said!r}.")


def read_places(said: Any, shown: Sequence[str]) -> Places | Literal["tie"] | None:
    """What was said to a question that showed more than two items: places from 1, the best first.

    An item is named by its place as a number, or by its name; a text that is a name is the name, even if it is also
    the number of a place. Several are a list, or one text with commas, spaces or ">" between them. Without any of
    these, digits are places one after the other, as somebody types them.

    >>> shown = ("red", "blue", "teal", "plum")
    >>> [read_places(said, shown) for said in (3, "teal", [3, "red"], "teal > red > plum", "3142", "tie")]
    [(3,), (3,), (3, 1), (3, 1, 4), (3, 1, 4, 2), 'tie']
    """
    if said is None or (isinstance(said, float) and math.isnan(said)):
        return None
    word = said.strip().lower().replace("_", " ") if isinstance(said, str) else None
    if word in _SKIPPED:
        return None
    if word in _ALL_TIED:
        return "tie"
    if isinstance(said, str):
        parts: Sequence[Any] = [said] if said in shown else _parts(said.strip(), shown)
    else:
        parts = said if isinstance(said, Sequence) else [said]
    places = tuple(_place(part, shown, said) for part in parts)
    if not places or len(set(places)) < len(places):
        raise InvalidInput(f"An answer names each item at most once, and at least one; got {said!r}.")
    return places


def _parts(text: str, shown: Sequence[str]) -> list[str]:
    """A text that names several items, split; names may contain spaces, and then ">" or commas are between them."""
    for separator in (">", ",", ";", None):
        parts = [part.strip() for part in text.split(separator)]
        if len(parts) > 1 and (separator is not None or all(part in shown or part.isdigit() for part in parts)):
            return parts
    return list(text) if len(shown) < 10 and re.fullmatch("[1-9]+", text) else [text]


def _place(part: Any, shown: Sequence[str], said: Any) -> int:
    """The place of one item that was named."""
    if isinstance(part, str) and part in shown:
        return shown.index(part) + 1
    number = int(part) if (isinstance(part, str) and part.isdecimal()) or _is_whole(part) else 0
    if isinstance(part, bool) or not 1 <= number <= len(shown):
        raise InvalidInput(
            f"The answer must be places from 1 to {len(shown)} or names of items shown, the best first and without "
            f"ties between them (leave out what is tied), or tie, or skip; got {said!r}."
        )
    return number


def word_of(answer: Answer, *, pair: bool) -> str:
    """The word of the service's vocabulary for an answer: the inverse of `read_answer`."""
    if answer is None:
        return "skip"
    if answer == "tie":
        return "tie"
    if isinstance(answer, tuple):
        return ">".join(map(str, answer))
    if answer not in (0, 1):
        return f"{answer:g}"
    return (("b", "a") if pair else ("no", "yes"))[int(answer)]


def code_of(answer: Answer) -> int:
    """The answer as an integer: 1, 0, TIE or SKIP, which stands for a score between 0 and 1 as well."""
    if answer == "tie" or answer == 0.5:
        return TIE
    return int(answer) if isinstance(answer, int | float) and answer in (0, 1) else SKIP


def preferred(answer: Answer) -> int:
    """Who is preferred, as an integer: 1, 0, TIE or SKIP; a score above one half is for the first item."""
    return int(answer > 0.5) if isinstance(answer, float) and answer != 0.5 else code_of(answer)


def turned(answer: Answer) -> Answer:
    """The answer as if the two items had been shown the other way round."""
    if answer is None or isinstance(answer, str | tuple):
        return answer
    return 1 - answer


def _score(value: float) -> Answer:
    """A score as an answer: whole numbers stay whole, and a half is a tie."""
    return "tie" if value == 0.5 else int(value) if value in (0.0, 1.0) else value


def _is_fraction(word: str) -> bool:
    """Whether this is a number from 0 to 1."""
    try:
        return 0.0 <= float(word) <= 1.0
    except ValueError:
        return False


def _is_whole(said: Any) -> bool:
    """Whether this is a number or a boolean equal to a whole number."""
    return not isinstance(said, str) and hasattr(said, "__float__") and math.isfinite(said) and said == int(said)
