"""Votes as counts per pair of items: all that a leaderboard needs to know, whatever the number of votes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick._arrays import Integers
from surepick.answer import Answer, read_answer
from surepick.errors import InvalidInput

MOST_ITEMS = 2000
"""Counts and fits are dense matrices of items × items; this many take 100 MB and a minute."""


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
    unused: tuple[str, ...] = ()
    """Sentences about rows that could not be used, with their line."""

    @classmethod
    def of(cls, votes: Iterable[tuple[str, str, Any]], names: Sequence[str] = ()) -> "VoteCounts":
        """Count votes (first item, second item, answer), with the answer in any word of `surepick.answer`.

        Items of `names` come first and may have no votes; others are added as they appear.
        """
        counted: dict[tuple[str, str, Answer], int] = {}
        for first, second, said in votes:
            key = (first, second, read_answer(said, (first, second)))
            counted[key] = counted.get(key, 0) + 1
        every = dict.fromkeys(names) | dict.fromkeys(name for key in counted for name in key[:2])
        return cls.from_counts(tuple(every), counted)

    @classmethod
    def from_counts(
        cls, names: Sequence[str], counted: dict[tuple[str, str, Answer], int], unused: Sequence[str] = ()
    ) -> "VoteCounts":
        """From how often each answer was given to each pair of items, both among the names."""
        if len(names) > MOST_ITEMS:
            raise InvalidInput(
                f"A leaderboard has at most {MOST_ITEMS:,} items, got {len(names):,}; leave out votes on some of them."
            )
        number = {name: place for place, name in enumerate(names)}
        wins, ties = np.zeros((2, len(names), len(names)), dtype=np.int64)
        skips = 0
        for (first, second, answer), times in counted.items():
            i, j = number[first], number[second]
            if i == j:
                raise InvalidInput(f"Item {first!r} is compared with itself; a vote compares two items.")
            if answer is None:
                skips += times
            elif answer == "tie":
                ties[i, j] += times
                ties[j, i] += times
            else:
                wins[(i, j) if answer else (j, i)] += times
        return cls(tuple(names), wins, ties, skips, tuple(unused))

    @property
    def shown(self) -> Integers:
        """How often each pair was answered, ties included."""
        return np.asarray(self.wins + self.wins.T + self.ties)

    @property
    def total(self) -> int:
        """Number of answered votes, ties included."""
        return int(self.wins.sum() + self.ties.sum() // 2)
