"""Chosen vectors and their rewards in the order of learning, as a value that is cheap to extend."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class _Buffer:
    """Memory shared by histories of which each is the beginning of the next."""

    __slots__ = ("answers", "filled", "rows")

    def __init__(self, rows: Floats, answers: Floats, filled: int) -> None:
        self.rows = rows
        self.answers = answers
        self.filled = filled


@dataclass(frozen=True, slots=True)
class History:
    """The first `count` entries of a buffer. Appending takes O(d) amortised and leaves this history as it was.

    The next entry goes into the shared buffer if nobody has written there yet, else into a copy.
    """

    buffer: _Buffer
    count: int

    @classmethod
    def empty(cls, dimension: int) -> "History":
        """No entries yet."""
        return cls(_Buffer(np.empty((16, dimension)), np.empty(16), 0), 0)

    def __len__(self) -> int:
        return self.count

    @property
    def rows(self) -> Floats:
        """Chosen vectors (read only by agreement)."""
        return self.buffer.rows[: self.count]

    @property
    def answers(self) -> Floats:
        """Rewards, 0.0 or 1.0."""
        return self.buffer.answers[: self.count]

    @property
    def ones(self) -> Floats:
        """A weight of one for every entry."""
        return np.ones(self.count)

    def appended(self, vector: Floats, answer: float) -> "History":
        """This history and one entry more."""
        buffer, count = self.buffer, self.count
        if buffer.filled != count or count == len(buffer.rows):
            size = max(16, 2 * count)
            rows, answers = np.empty((size, buffer.rows.shape[1])), np.empty(size)
            rows[:count], answers[:count] = self.rows, self.answers
            buffer = _Buffer(rows, answers, count)
        buffer.rows[count] = vector
        buffer.answers[count] = answer
        buffer.filled = count + 1
        return History(buffer, count + 1)
