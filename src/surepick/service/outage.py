"""One line in the log when the database cannot be used, and one when it can be again, of all processes together."""

import logging
import mmap
import struct
import time
from collections.abc import Callable

from surepick.store.database import Database, reason_of

QUIET_SECONDS = 2.0
"""An outage is over when something is written and nothing has failed for this long: on a full disk a small write may
succeed between two larger ones that fail."""

_TIMES = struct.Struct("dd")

logger = logging.getLogger("surepick.service")


class Outage:
    """Whether the database was found unusable. The memory is shared with all processes that are forked from this one:
    requests, planners and dashboard workers notice at the same time, and one line is enough."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times = mmap.mmap(-1, _TIMES.size)  # when it began, 0 where there is none, and the last failure

    @property
    def begun(self) -> float:
        """When the outage began; 0 where there is none."""
        return float(_TIMES.unpack(self._times[:])[0])

    def note(self, error: BaseException) -> None:
        """The database could not be used, for this reason."""
        now, begun = self._clock(), self.begun
        self._times[:] = _TIMES.pack(begun or now, now)
        if not begun:
            logger.warning("The database cannot be used at the moment: %s", reason_of(error))

    def over(self) -> None:
        """Something was written."""
        begun, last = _TIMES.unpack(self._times[:])
        if begun and self._clock() - last > QUIET_SECONDS:
            self._times[:] = bytes(_TIMES.size)
            logger.warning("The database can be used again, after %.0f s.", last - begun)

    def probe(self, database: Database) -> None:
        """Try to write during an outage, so that its end is noticed though nobody asks for anything."""
        if self.begun:
            database.probe()
            self.over()


OUTAGE = Outage()
"""Of the service that this process is part of."""
