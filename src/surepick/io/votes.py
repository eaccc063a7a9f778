"""Recorded answers: the one reader of files of votes, and of the answers to questions about bare features.

A vote is a row item_a,item_b,winner (or model_a,model_b,winner, as Arena writes it), a row item,answer, or a row with
items, several names, and ranking or winner; a file may have columns of several kinds, the others empty in each row. The
words are those of `surepick.answer.read_answer`. A row that is no vote is refused with its line, or left out on
request: which rows cannot be read may depend on what they say. A vote on an item that is not listed is left out and
reported, and a file without a usable row is refused. Every command that reads votes reads them here, so that the same
rows count everywhere.
"""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

import numpy as np

from surepick._arrays import Floats
from surepick.answer import Answer, read_answer, word_of
from surepick.confidence import in_given_order
from surepick.confidence.result import Tallies
from surepick.errors import BadRows, InvalidInput
from surepick.glm import Tally
from surepick.identify import Problem
from surepick.io.items import PAIR_COLUMNS, ItemTable, feature_columns, points_of, read_items
from surepick.io.tables import Table, read_table

MOST_NAMED = 5
"""Items without votes that are named."""


@dataclass(frozen=True)
class Vote:
    """One usable row of a file of votes."""

    shown: tuple[str, ...]
    """The items compared, in the order shown, or the one item of a yes/no question."""
    answer: Answer
    """1 for the first item shown or yes, 0 for the second or no; places of several; "tie", or None for a skip."""
    line: int
    judge: str | None = None

    @property
    def decisive(self) -> bool:
        """Whether it is neither a tie nor a skip."""
        return isinstance(self.answer, int)


@dataclass(frozen=True)
class VoteTable:
    """The usable votes of a file in its order, and sentences about the other rows."""

    source: str
    votes: tuple[Vote, ...]
    unused: tuple[str, ...]
    """One sentence for each row that could not be used, with its line."""

    def without(self, items: Sequence[str]) -> "VoteTable":
        """With a sentence that these items have no vote and are left out."""
        named = ", ".join(map(repr, items[:MOST_NAMED]))
        more = f" and {len(items) - MOST_NAMED:,} more" if len(items) > MOST_NAMED else ""
        one = len(items) == 1
        sentence = (
            f"{self.source} has no vote on {named}{more}: {'this item is' if one else 'these items are'} left out, and "
            "the verdict is about the others."
        )
        return replace(self, unused=(*self.unused, sentence))

    def distinguishable(self, problem: Problem) -> "VoteTable":
        """Without votes between items that are one item to the problem, because their features are equal."""
        number = numbers_of(problem)
        kept, unused = [], list(self.unused)
        for vote in self.votes:
            if len({number[name] for name in vote.shown}) == len(vote.shown):
                kept.append(vote)
            else:
                pair = " and ".join(map(repr, vote.shown))
                unused.append(
                    f"{self.source}, line {vote.line}: {pair} cannot be distinguished; their features are equal."
                )
        if not kept:
            raise _nothing_usable(self.source, unused)
        return replace(self, votes=tuple(kept), unused=tuple(unused))


def numbers_of(problem: Problem) -> dict[str, int]:
    """The number of each item in the problem by any of its names; items of equal features have one number."""
    return {name: number for number, names in enumerate(problem.aliases) for name in names}


class OutOfScope(InvalidInput):
    """A vote that can be read but is not about what is asked, such as one on an item that is not listed."""


def read_votes(
    source: Table | str | PathLike[str], names: Collection[str], *, drop_bad_rows: bool = False
) -> VoteTable:
    """The votes of a file or table on items of these names; other rows are refused, or reported with `drop_bad_rows`.

    Votes on other items are reported, never refused.
    """
    table = source if isinstance(source, Table) else read_table(Path(source), leave_out=True)
    votes: list[Vote] = []
    bad = list(table.unusable)
    unused: list[str] = []
    for row in range(len(table)):
        try:
            votes.append(vote_at(table, row, names))
        except InvalidInput as error:
            (unused if isinstance(error, OutOfScope) else bad).append(reason_at(table, row, error))
    if bad and not drop_bad_rows:
        raise BadRows(table.source, bad)
    unused = [*bad, *unused]
    if not votes:
        raise _nothing_usable(table.source, unused)
    return VoteTable(table.source, tuple(votes), tuple(unused))


@dataclass(frozen=True)
class RecordedAnswers:
    """Answers as a model is fitted to them, and how to read points in the same coordinates."""

    answers: Tallies
    """A tally where the file holds counts, else batches in the order of the file."""
    features: list[str]
    """Names of the columns; empty where every item has a coordinate of its own."""
    vectors: dict[str, Floats] = field(default_factory=dict)
    """The vector of each item, where the answers are about items."""
    left_out: list[str] = field(default_factory=list)
    """Sentences about rows that could not be used or hold no decision (ties, skips), with their line."""
    items: ItemTable | None = None
    """The items, where a file of them was given."""

    def points(self, path: Path) -> tuple[list[str], Floats]:
        """Names and vectors of the points to evaluate: feature rows, items, or pairs of items."""
        table = read_table(path)
        about_items = any(name in table for name in ("item", *(first for first, _ in PAIR_COLUMNS)))
        return points_of(table, self.vectors if about_items else {}, self.features)


def read_answers(path: Path, items: Path | None, *, drop_bad_rows: bool = False) -> RecordedAnswers:
    """Read raw rows (features, answer), counted rows (features, pulls, wins), or votes about items.

    Items are read by the rules of `read_items`, in the units of their table. Without features, and without a file of
    items, they have one coordinate each (Bradley–Terry).
    """
    table = read_table(path, leave_out=True)
    known = None if items is None else read_items(items, scale=False, drop_bad_rows=drop_bad_rows)
    if "winner" in table or ("item" in table and (known is not None or not feature_columns(table))):
        return _about_items(table, known, drop_bad_rows)
    features = _features_of(table)
    by_name = {}
    if known is not None and all(name in known.columns for name in features):
        places = [known.columns.index(name) for name in features]
        by_name = dict(zip(known.names, known.features[:, places], strict=True))
    votes, bad = [], list(table.unusable)
    if "pulls" not in table:
        for row, said in enumerate(table.text("answer")):
            try:
                votes.append((row, Vote((), read_answer(said), table.line(row))))
            except InvalidInput as error:
                bad.append(reason_at(table, row, error))
    if bad and not drop_bad_rows:
        raise BadRows(table.source, bad)
    left_out = bad
    vectors = table.numbers(features)
    if "pulls" in table:
        counts = table.numbers(["pulls", "wins"])
        return RecordedAnswers(Tally(vectors, counts[:, 0], counts[:, 1]), features, by_name, left_out, known)
    decisive = [(vectors[row], vote) for row, vote in votes if vote.decisive]
    left_out += _undecided(table.source, [vote for _, vote in votes])
    return RecordedAnswers(_batches(table.source, decisive, left_out), features, by_name, left_out, known)


def _about_items(table: Table, items: ItemTable | None, drop_bad_rows: bool) -> RecordedAnswers:
    features = [] if items is None or items.bare else list(items.columns)
    if items is not None and features:
        vectors = dict(zip(items.names, items.features, strict=True))
        problem = Problem.from_items(items.features, names=items.names, intercept=False)
        read = read_votes(table, vectors, drop_bad_rows=drop_bad_rows).distinguishable(problem)
    else:
        vectors = _own_coordinates(table, named_items(table) if items is None else list(items.names))
        read = read_votes(table, vectors, drop_bad_rows=drop_bad_rows)
    decisive = [
        (vectors[vote.shown[0]] - (vectors[vote.shown[1]] if len(vote.shown) == 2 else 0.0), vote)
        for vote in read.votes
        if vote.decisive
    ]
    left_out = [*read.unused, *_undecided(read.source, read.votes)]
    return RecordedAnswers(_batches(read.source, decisive, left_out), features, vectors, left_out, items)


def named_items(table: Table) -> list[str]:
    """Every item that a row names, in order of appearance."""
    columns = [name for name in ("item", *(name for pair in PAIR_COLUMNS for name in pair)) if name in table]
    return list(dict.fromkeys(name for row in zip(*map(table.text, columns), strict=True) for name in row if name))


def _own_coordinates(table: Table, names: list[str]) -> dict[str, Floats]:
    """One coordinate per item. If all votes are comparisons, scores are relative to the mean of all items.

    Comparisons say nothing about the level of all scores; a yes or no does.
    """
    level = any(table.columns.get("answer", []))
    return dict(zip(names, np.eye(len(names)) - (0.0 if level else 1 / len(names)), strict=True))


def _batches(source: str, decisive: list[tuple[Floats, Vote]], left_out: list[str]) -> Tallies:
    """One batch per answer, in the order of the file."""
    if not decisive:
        raise InvalidInput(f"{source} holds no decisive answer; at least one is needed. The first row: {left_out[0]}")
    ones = np.array([vote.answer for _, vote in decisive], dtype=np.int64)
    return in_given_order(Tally.from_answers(np.array([vector for vector, _ in decisive]), ones))


def _undecided(source: str, votes: Collection[Vote]) -> list[str]:
    return [f"{source}, line {vote.line}: {word_of(vote.answer, pair=True)}." for vote in votes if not vote.decisive]


def vote_at(table: Table, row: int, names: Collection[str]) -> Vote:
    """A row as a vote; raises the reason where it is none."""
    if _cell(table, "items", row):
        return _vote_on_set(table, row, names)
    pair = next((columns for columns in PAIR_COLUMNS if columns[0] in table), PAIR_COLUMNS[0])
    winner, said = _cell(table, "winner", row), _cell(table, "answer", row)
    if not winner and not said:
        raise InvalidInput("There is neither a winner (a, b, tie, skip) nor an answer (yes, no, skip).")
    shown = tuple(_cell(table, column, row) for column in (pair if winner else ("item",)))
    answer = read_answer(winner or said, shown)
    stranger = next((name for name in shown if name not in names), None)
    if stranger is not None:
        raise OutOfScope(f"There is no item {stranger!r}.")
    if len(set(shown)) < len(shown):
        raise InvalidInput(f"Item {shown[0]!r} is compared with itself.")
    return Vote(shown, answer, table.line(row), _cell(table, "judge", row) or None)


def _vote_on_set(table: Table, row: int, names: Collection[str]) -> Vote:
    """A row that shows several items: a pick in the column winner, or a ranking."""
    shown, said = listed(_cell(table, "items", row)), _cell(table, "ranking", row) or _cell(table, "winner", row)
    stranger = next((name for name in shown if name not in names), None)
    if stranger is not None:
        raise OutOfScope(f"There is no item {stranger!r}.")
    if len(shown) < 2 or len(set(shown)) < len(shown):
        raise InvalidInput(f"The column items must name two or more different items, with | between them; got {shown}.")
    if not said:
        raise InvalidInput("There is neither a ranking (names, the best first) nor a winner (a name, tie, skip).")
    given = listed(said)
    answer = read_answer(said if len(given) == 1 else given if len(shown) > 2 else given[0], shown)
    return Vote(shown, answer, table.line(row), _cell(table, "judge", row) or None)


def listed(cell: str) -> tuple[str, ...]:
    """Names in one cell: a JSON list, or with | or > between them."""
    if cell.startswith("["):
        try:
            found = json.loads(cell)
        except ValueError:
            raise InvalidInput(f"{cell[:60]!r} begins like a JSON list and is none.") from None
        if any(isinstance(name, list | dict) for name in found):
            raise InvalidInput(f"A ranking is a list of names without ties between them; got {cell[:60]}.")
        return tuple(str(name) for name in found)
    return tuple(name.strip() for name in re.split(r"[|>]", cell))


def _cell(table: Table, column: str, row: int) -> str:
    return table.columns[column][row] if column in table else ""


def reason_at(table: Table, row: int, error: InvalidInput) -> str:
    """The reason as a sentence that points at the row."""
    why = str(error).rstrip(".")
    return table.at(row, why[0].lower() + why[1:])


def _features_of(table: Table) -> list[str]:
    names = feature_columns(table)
    if not names:
        raise InvalidInput(f"{table.source} has no feature columns; it has only {', '.join(table.columns)}.")
    return names


def _nothing_usable(source: str, unused: list[str]) -> InvalidInput:
    return InvalidInput(
        f"{source} holds no vote that can be used: none on two of the items, and no yes or no about one; check the "
        f"names. The first row: {unused[0]}"
    )
