"""Lines of text in little memory, for histories that grow with every answer and are seldom read."""

import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import overload

BLOCK = 16_000
"""Characters that are compressed together."""


class PackedLines(Sequence[str]):
    """Lines in order, of which all but the last ones are compressed in blocks. It only grows.

    To read a line decompresses its block; to read one after the other decompresses each block once. One thread may
    append while others read.
    """

    __slots__ = ("_blocks", "_ends", "_last", "_size")

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._ends = array("q")  # numbers of lines up to the end of each block
        self._last: tuple[int, list[str]] = (0, [])  # how many lines are compressed, and the others
        self._size = 0  # characters of these others

    def __len__(self) -> int:
        packed, last = self._last
        return packed + len(last)

    def append(self, line: str) -> None:
        """One more line, without a line break in it."""
        packed, last = self._last
        last.append(line)
        self._size += len(line)
        if self._size >= BLOCK:
            self._blocks.append(zlib.compress("\n".join(last).encode()))
            self._ends.append(packed + len(last))
            # At last and at once: whoever reads has all lines before this, and all after it.
            self._last, self._size = (packed + len(last), []), 0

    def since(self, place: int) -> Iterator[str]:
        """The lines from `place` on."""
        packed, last = self._last
        while place < packed:
            block = bisect_right(self._ends, place)
            lines = zlib.decompress(self._blocks[block]).decode().split("\n")
            yield from islice(lines, place - self._ends[block] + len(lines), None)
            place = self._ends[block]
        yield from islice(last, place - packed, None)

    def __iter__(self) -> Iterator[str]:
        return self.since(0)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            begin, end, step = place.indices(len(self))
            if step != 1:
                return [self[number] for number in range(begin, end, step)]
            return list(islice(self.since(begin), max(end - begin, 0)))
        return next(self.since(range(len(self))[place]))

    def copy(self, lines: int) -> "PackedLines":
        """The first lines; what is compressed is shared."""
        copied, whole = PackedLines(), bisect_right(self._ends, lines)
        copied._blocks, copied._ends = self._blocks[:whole], self._ends[:whole]
        copied._last = (copied._ends[-1] if whole else 0, [])
        for line in self[len(copied) : lines]:
            copied.append(line)
        return copied
