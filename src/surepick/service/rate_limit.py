"""How many requests a second one visitor may send."""

import time
from collections import OrderedDict
from collections.abc import Callable

VISITORS = 20_000
"""Visitors remembered; those who came longest ago are forgotten first."""


class RateLimit:
    """A bucket for each visitor: it holds `burst` requests and is refilled with `rate` a second."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, visitor: str) -> float:
        """Take one request out of the visitor's bucket: 0, or the seconds until there is one."""
        now = self._clock()
        left, at = self._buckets.pop(visitor, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        missing = max(0.0, 1.0 - left)
        self._buckets[visitor] = (left if missing else left - 1.0, now)
        if len(self._buckets) > VISITORS:
            self._buckets.popitem(last=False)
        return missing / self._rate
