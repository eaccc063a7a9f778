"""Memory that a process does not need any more goes back to the system."""

import ctypes
import sys


def give_back_memory() -> None:
    """Give free memory inside the heap back, where the C library can do this (glibc); a few milliseconds.

    By itself it gives back only what is free at the end of the heap. Arrays of plans, insights and forecasts come and
    go between what stays, so every process would keep the most that it has ever needed, and more.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
