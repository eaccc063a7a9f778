"""Chosen vectors and their rewards in the order of learning, as a value that is cheap to extend."""

from dataclasses import dataclass

import numpy as np

from surepick._arrays import Floats


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

    def extended(self, rows: Floats, answers: Floats) -> "History":
        """This history and many entries more."""
        if len(rows) == 0:
            return self
        buffer, count, total = self.buffer, self.count, self.count + len(rows)
        if buffer.filled != count or total > len(buffer.rows):
            buffer = self._copied(max(16, 2 * total))
        buffer.rows[count:total], buffer.answers[count:total] = rows, answers
        buffer.filled = total
        return History(buffer, total)

    def _copied(self, size: int) -> _Buffer:
        rows, answers = np.empty((size, self.buffer.rows.shape[1])), np.empty(size)
        rows[: self.count], answers[: self.count] = self.rows, self.answers
        return _Buffer(rows, answers, self.count)

    def appended(self, vector: Floats, answer: float) -> "History":
        """This history and one entry more."""
        # Somebody else may have gone on from this history: what stands behind `count` is then theirs.
        buffer, count = self.buffer, self.count
        if buffer.filled != count or count == len(buffer.rows):
            buffer = self._copied(max(16, 2 * count))
        buffer.rows[count] = vector
        buffer.answers[count] = answer
        buffer.filled = count + 1
        return History(buffer, count + 1)
