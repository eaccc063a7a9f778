"""Votes as counts per pair of items: all that a leaderboard needs to know, whatever the number of votes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surepick._arrays import Integers
from surepick.answer import SKIP, TIE, Answer, preferred, read_answer
from surepick.errors import InvalidInput

MOST_ITEMS = 1000
"""Counts and fits are dense matrices of items × items; this many take a minute."""

VoteSequence = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8]]
"""First item, second item and answer of every vote: 1 for the first, 0 for the second, −1 for a tie."""


@dataclass(frozen=True, eq=False)
class VoteCounts:
    """How often each item won against each other one, and how often they tied.

    >>> votes = VoteCounts.of([("red", "blue", "a"), ("blue", "red", "tie"), ("blue", "green", "blue")])
    >>> votes.names, votes.total, votes.wins.tolist()
    (('red', 'blue', 'green'), 3, [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    """

    names: tuple[str, ...]
    wins: Integers
    """wins[i, j]: votes in which item i won against item j."""
    ties: Integers
    """ties[i, j] = ties[j, i]: votes in which the two tied."""
    skips: int = 0
    """Votes without an answer; they count for nothing."""
    sequence: VoteSequence | None = None
    """The answered votes in their order, where it is known."""
    unused: tuple[str, ...] = ()
    """Sentences about rows that could not be used, with their line."""

    @classmethod
    def of(cls, votes: Iterable[tuple[str, str, Any]], names: Sequence[str] = ()) -> "VoteCounts":
        """Count votes (first item, second item, answer), with the answer in any word of `surepick.answer`.

        Items of `names` come first and may have no votes; others are added as they appear.
        """
        rows = [(first, second, read_answer(said, (first, second))) for first, second, said in votes]
        every = dict.fromkeys(names) | dict.fromkeys(name for row in rows for name in row[:2])
        return cls.from_rows(tuple(every), rows, np.arange(len(rows)))

    @classmethod
    def from_rows(
        cls,
        names: Sequence[str],
        rows: Sequence[tuple[str, str, Answer]],
        order: NDArray[np.integer],
        unused: Sequence[str] = (),
    ) -> "VoteCounts":
        """From different rows (first item, second item, answer), and in their order the number of each vote's row."""
        if len(names) > MOST_ITEMS:
            raise InvalidInput(
                f"A leaderboard has at most {MOST_ITEMS:,} items, got {len(names):,}; leave out votes on some of them."
            )
        number = {name: place for place, name in enumerate(names)}
        same = next((first for first, second, _ in rows if first == second), None)
        if same is not None:
            raise InvalidInput(f"Item {same!r} is compared with itself; a vote compares two items.")
        first = np.array([number[row[0]] for row in rows], dtype=np.int32)
        second = np.array([number[row[1]] for row in rows], dtype=np.int32)
        said = np.array([preferred(row[2]) for row in rows], dtype=np.int8)
        times = np.bincount(order, minlength=len(rows))
        wins, ties = np.zeros((2, len(names), len(names)), dtype=np.int64)
        np.add.at(wins, (first[said == 1], second[said == 1]), times[said == 1])
        np.add.at(wins, (second[said == 0], first[said == 0]), times[said == 0])
        np.add.at(ties, (first[said == TIE], second[said == TIE]), times[said == TIE])
        answered = order[said[order] != SKIP] if len(rows) else order
        sequence = (first[answered], second[answered], said[answered])
        skips = int(times[said == SKIP].sum())
        return cls(tuple(names), wins, ties + ties.T, skips, sequence, tuple(unused))

    @property
    def shown(self) -> Integers:
        """How often each pair was answered, ties included."""
        return np.asarray(self.wins + self.wins.T + self.ties)

    @property
    def total(self) -> int:
        """Number of answered votes, ties included."""
        return int(self.wins.sum() + self.ties.sum() // 2)
