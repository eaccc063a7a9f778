"""The events of a session in little memory: a service holds many sessions, and a log has three events per answer."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import overload

from surepick.identify.packed_lines import PackedLines
from surepick.session.journal import Event

RECENT = 64
"""Events that are kept as they are, and up to as many more. So an event takes about 800 bytes, and packed 20."""


class EventLog(Sequence[Event]):
    """Events in order. All but the last ones are kept as compressed lines of JSON, and read again where one is needed.

    What is read from the packed part is a copy, equal to what was appended.
    """

    def __init__(self) -> None:
        self._head: list[Event] = []  # the first event, which has the problem and is read often
        self._packed = PackedLines()
        self._recent: list[Event] = []

    def __len__(self) -> int:
        return len(self._packed) + len(self._recent)

    def append(self, event: Event) -> None:
        """One more event."""
        if not self._head:
            self._head.append(event)
        self._recent.append(event)
        if len(self._recent) >= 2 * RECENT:
            for old in self._recent[:RECENT]:
                self._packed.append(json.dumps(old))
            del self._recent[:RECENT]

    def _from(self, place: int) -> Iterator[Event]:
        """The events from `place` on."""
        packed = len(self._packed)
        if place < packed:
            yield from map(json.loads, self._packed.since(place))
        yield from islice(self._recent, max(place - packed, 0), None)

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
