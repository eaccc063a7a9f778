"""The one vocabulary of answers: every word that a file, a program, a page or a person may use, and what it means.

An answer is 1 (yes, or the first item shown), 0 (no, or the second item shown), "tie", or None (skipped).
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

from surepick.errors import InvalidInput

Answer = int | Literal["tie"] | None
"""1 or 0, "tie", or None for no answer."""

TIE, SKIP = -1, -2
"""A tie and a skip where answers are stored as integers."""

PAIR_WORDS = ("a", "b", "tie", "skip")
"""What the service and its pages accept for a comparison; the log of messages holds these words."""

SINGLE_WORDS = ("yes", "no", "skip")
"""The same for a yes/no question."""

_SKIPPED = {"skip": None}
_NUMBERS = {"1": 1, "0": 0, "true": 1, "false": 0}
_TIES: dict[str, Answer] = {"tie": "tie", "both bad": "tie", "both_bad": "tie", "tie (bothbad)": "tie"}
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
    """What was said to a question that showed these items: two for a comparison, one or none for yes/no.

    Numbers, booleans and words in any case are understood, 1.0 and 0.0 as pandas writes them included; for a comparison
    also the winner's name. A word of the vocabulary goes before a name that is spelt alike.

    >>> read_answer("model_a", ("red", "blue")), read_answer("blue", ("red", "blue")), read_answer(1.0)
    (1, 0, 1)
    """
    words = _PAIR if len(shown) == 2 else _SINGLE
    if said is None:
        return None
    word = str(int(said)) if _is_whole(said) else str(said).strip()
    folded = "1" if word == "1.0" else "0" if word == "0.0" else word.lower()
    if folded in words:
        return words[folded]
    if word in shown and len(shown) == 2:
        return int(word == shown[0])
    usual = "a, b, tie, skip, 1, 0 or the winner's name" if len(shown) == 2 else "yes, no, skip, 1 or 0"
    raise InvalidInput(f"The answer must be {usual}; got {said!r}.")


def word_of(answer: Answer, *, pair: bool) -> str:
    """The word of the service's vocabulary for an answer: the inverse of `read_answer`."""
    if answer is None:
        return "skip"
    if answer == "tie":
        return "tie"
    return (("b", "a") if pair else ("no", "yes"))[answer]


def code_of(answer: Answer) -> int:
    """The answer as an integer: 1, 0, TIE or SKIP."""
    return SKIP if answer is None else TIE if answer == "tie" else answer


def _is_whole(said: Any) -> bool:
    """Whether this is a number or a boolean equal to a whole number."""
    return not isinstance(said, str) and hasattr(said, "__float__") and math.isfinite(said) and said == int(said)
