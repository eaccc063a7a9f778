"""A session's log as the table that checks read."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from surepick.answer import SKIP, TIE
from surepick.checks import Answers
from surepick.identify import Problem


def answers_of(problem: Problem, log: Iterable[Mapping[str, Any]]) -> Answers:
    """Questions with an answer, a tie or a skip as they stand, in the order asked; open ones are left out."""
    asked: dict[int, tuple[int, bool]] = {}
    said: dict[int, int] = {}
    judges: dict[int, str | None] = {}
    for event in log:
        kind, number = event["event"], event.get("id", 0)
        if kind == "question":
            asked[number] = event["measurement"], event["swapped"]
        elif kind == "undo":
            said.pop(number)
        elif kind in ("answer", "tie", "skip"):
            said[number] = event["answer"] if kind == "answer" else {"tie": TIE, "skip": SKIP}[kind]
            judges[number] = event.get("judge")
    rows = sorted(said)
    where = np.array([asked[row][0] for row in rows], dtype=np.int64)
    swapped = np.array([asked[row][1] for row in rows], dtype=np.bool_)
    items = problem.about[where]
    return Answers(
        np.where(swapped[:, None], -1.0, 1.0) * problem.measurements[where],
        np.array([said[row] for row in rows], dtype=np.int64),
        np.where(swapped[:, None], items[:, ::-1], items),
        problem.names,
        tuple(judges[row] for row in rows),
        shuffled=not problem.position,  # else the policy chooses the order
    )
