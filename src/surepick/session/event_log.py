"""The events of a session in little memory: a service holds many sessions, and a log has three events per answer."""

import json
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import overload

from surepick.session.journal import Event

BLOCK = 64
"""Events that are packed together; the last one or two blocks are kept as they are. As it is, an event takes about 800
bytes, and packed 20. Larger blocks would take a tenth less and keep more events as they are."""


class EventLog(Sequence[Event]):
    """Events in order. All but the last ones are kept as compressed lines of JSON, and read again where one is needed.

    What is read from the packed part is a copy, equal to what was appended.
    """

    def __init__(self) -> None:
        self._head: list[Event] = []  # the first event, which has the problem and is read often
        self._blocks: list[bytes] = []
        self._ends = array("q")  # numbers of events up to the end of each block
        self._recent: list[Event] = []

    def __len__(self) -> int:
        return self._packed + len(self._recent)

    def append(self, event: Event) -> None:
        """One more event."""
        if not self._head:
            self._head.append(event)
        self._recent.append(event)
        if len(self._recent) >= 2 * BLOCK:
            self._pack()

    def _pack(self) -> None:
        lines = "\n".join(json.dumps(event) for event in self._recent[:BLOCK])
        self._ends.append(self._packed + BLOCK)
        self._blocks.append(zlib.compress(lines.encode(), 6))
        del self._recent[:BLOCK]

    @property
    def _packed(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _block(self, number: int) -> list[Event]:
        return [json.loads(line) for line in zlib.decompress(self._blocks[number]).split(b"\n")]

    def _from(self, place: int) -> Iterator[Event]:
        """The events from `place` on."""
        block = bisect_right(self._ends, place)
        skip = place - (self._ends[block - 1] if block else 0)
        while block < len(self._blocks):
            yield from islice(self._block(block), skip, None)
            block, skip = block + 1, 0
        yield from islice(self._recent, skip, None)

    def __iter__(self) -> Iterator[Event]:
        return self._from(0)

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> list[Event]: ...
    def __getitem__(self, place: int | slice) -> Event | list[Event]:
        if isinstance(place, slice):
            begin, end, step = place.indices(len(self))
            if step != 1:
                return [self[number] for number in range(begin, end, step)]
            return list(islice(self._from(begin), max(end - begin, 0)))
        number = range(len(self))[place]
        return self._head[0] if number == 0 else next(self._from(number))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(one == two for one, two in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]  # it grows
