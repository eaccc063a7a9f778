"""Answers of another judge or time, from which a search predicts: a file of votes, or the log of an earlier search."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surepick.errors import InvalidInput
from surepick.evidence.betting import SHARED, above_in
from surepick.identify import Problem
from surepick.identify.policy import OldAnswers
from surepick.identify.problem import NOTHING
from surepick.io.votes import read_votes
from surepick.judges.recorded import warm_answers
from surepick.session import Session
from surepick.session.journal import read_journal


def earlier_answers(
    path: Path, problem: Problem, names: Sequence[str], *, drop_bad_rows: bool = False
) -> tuple[OldAnswers, tuple[str, ...]]:
    """Answers of the file to comparisons of the problem, as (measurement, pulls, wins), and what was not used.

    A log is that of `--state`, on the same items or systems, whoever answered. Its inputs do not matter: answers about
    other inputs predict as well, or not so well, and nothing else hangs on them.
    """
    if _is_log(path):
        return _logged(path, problem)
    votes = read_votes(path, names, drop_bad_rows=drop_bad_rows).distinguishable(problem)
    return warm_answers(problem, votes), votes.unused


def _is_log(path: Path) -> bool:
    """Whether the file begins like the log of a session."""
    try:
        with path.open(encoding="utf-8") as file:
            first = json.loads(file.readline())
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and first.get("event") == "session"


def _logged(path: Path, problem: Problem) -> tuple[OldAnswers, tuple[str, ...]]:
    """What an earlier search was told of pairs of items.

    A ranking compares all pairs of the items shown, which are worth fewer than as many comparisons because they share
    what happened to each item (docs/assumptions.md, "Rankings of systems").
    """
    session = Session.replay(read_journal(path))
    told: dict[int, Any] = {}
    for event in session.log:
        if event["event"] in ("answer", "tie"):
            told[event["id"]] = event.get("answer", 0.5)
        elif event["event"] == "undo":
            told.pop(event["id"], None)
    sums: defaultdict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    number = {name: item for item, aliases in enumerate(problem.aliases) for name in aliases}
    unknown = 0
    for identity, answer in told.items():
        question = session.questions[identity]
        items, k = [number.get(name, NOTHING) for name in question.items], len(question.items)
        if k < 2 or NOTHING in items:
            unknown += 1
            continue
        if question.about_set:
            above = above_in([place - 1 for place in answer] if isinstance(answer, list) else [], k)
        else:
            above = np.array([[0.5, answer], [1 - answer, 0.5]])
        for one in range(k):
            for other in range(one + 1, k):
                row = int(problem.comparison[items[one], items[other]])
                if row != NOTHING:
                    score = above[one, other] if problem.about[row, 0] == items[one] else above[other, one]
                    sums[row][0] += 1 / (1 + (k - 2) * SHARED)
                    sums[row][1] += float(score) / (1 + (k - 2) * SHARED)
    found = tuple((row, round(met), min(round(wins), round(met))) for row, (met, wins) in sorted(sums.items()))
    found = tuple(entry for entry in found if entry[1])
    if not found:
        raise InvalidInput(f"The log {str(path)!r} has no comparison of items of this search; check its name.")
    left = f"{path}: {unknown:,} answers are about other items, or about no two of them."
    return found, (left,) if unknown else ()
