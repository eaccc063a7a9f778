"""Answers replayed from recorded votes: items.csv and answers.csv."""

from collections import defaultdict, deque
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from surepick.errors import InvalidInput
from surepick.identify import Problem
from surepick.identify.problem import DISPLAYED
from surepick.session import Answer, Question
from surepick.tables import Table, read_table


@dataclass(frozen=True, eq=False)
class RecordedJudge:
    """Answers every question with the next unused vote on it, whichever way round it was shown.

    Without a vote left the answer is None, which a session takes as a skip; a vote "tie" stays a tie.
    """

    votes: dict[tuple[str, str], deque[str]]
    """For each pair of names, in alphabetical order, the winners in the order voted: a name, "tie" or "skip"."""
    unused: list[str] = field(default_factory=list)
    """Sentences about rows that could not be used, with their line."""

    def __call__(self, question: Question) -> Answer:
        """The next vote on this pair."""
        first, second = question.first, question.second
        if first is None or second is None:
            raise InvalidInput("Recorded votes are on pairs of items; this question is not.")
        left = self.votes.get(_key(first, second))
        if not left:
            return None
        winner = left.popleft()
        if winner in (first, second):
            return int(winner == first)
        return "tie" if winner == "tie" else None

    @property
    def remaining(self) -> int:
        """Votes not used yet."""
        return sum(len(left) for left in self.votes.values())


def read_items(path: Path) -> tuple[list[str], np.ndarray]:
    """Names and features of a file of items; without any numeric column, one coordinate an item."""
    table = read_table(path)
    names = table.text("item")
    columns = [name for name in table.columns if name not in DISPLAYED and _numeric(table, name)]
    return names, table.numbers(columns) if columns else np.eye(len(names))


def read_votes(items: Path, answers: Path) -> tuple[Problem, RecordedJudge]:
    """The problem whose questions are the pairs that were voted on, and a judge who replays the votes."""
    names, features = read_items(items)
    number = {name: place for place, name in enumerate(names)}
    table = read_table(answers)
    votes: dict[tuple[str, str], deque[str]] = defaultdict(deque)
    unused = []
    for row, (a, b, winner) in enumerate(
        zip(table.text("item_a"), table.text("item_b"), table.text("winner"), strict=True)
    ):
        stranger = next((name for name in (a, b) if name not in number), None)
        if stranger is not None:
            unused.append(f"{answers}, line {table.line(row)}: there is no item {stranger!r}.")
        elif a == b or winner not in ("a", "b", "tie", "skip"):
            unused.append(f"{answers}, line {table.line(row)}: {winner!r} of {a!r} and {b!r} is no vote.")
        else:
            votes[_key(a, b)].append({"a": a, "b": b}.get(winner, winner))
    if not votes:
        raise InvalidInput(f"{answers} holds no vote on two of the items of {items}; check the names.")
    scaled = (features - features.mean(axis=0)) / np.where(features.std(axis=0) > 0, features.std(axis=0), 1.0)
    pairs = np.array([(number[a], number[b]) for a, b in votes])
    return Problem.from_pairs(scaled, names=names, pairs=pairs), RecordedJudge(dict(votes), unused)


def _key(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a <= b else (b, a)


def _numeric(table: Table, name: str) -> bool:
    try:
        table.numbers([name])
    except InvalidInput:
        return False
    return True
