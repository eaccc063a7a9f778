"""Group commit: all writes of a process go through one thread, and many of them share a transaction.

A commit costs a write to the disk, however much is in it. While one is under way further requests queue up and are
committed together by the next; each is acknowledged only after its own commit.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from surepick.errors import SurepickError
from surepick.store.database import Database

Handler = Callable[[Database, sa.Connection, Sequence[Any]], Sequence[Any]]
"""Does several requests of one kind; a refused one gives the exception as its result, and has written nothing."""

AT_ONCE = 500
"""Requests that share a transaction at most."""

_Job = tuple[Handler, Any, "Future[Any]"]


class Writer:
    """Takes requests from any thread; `close` finishes what is queued."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="writer", daemon=True)
        self._thread.start()

    def submit(self, handler: Handler, request: Any) -> "Future[Any]":
        """The result, once it is committed."""
        future: Future[Any] = Future()
        self._jobs.put((handler, request, future))
        return future

    def close(self) -> None:
        """Finish what is queued, then stop."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            jobs = [job]
            while len(jobs) < AT_ONCE and not self._jobs.empty():
                following = self._jobs.get()
                if following is None:
                    self._jobs.put(None)
                    break
                jobs.append(following)
            # From here on a caller who went away can no longer cancel.
            wanted = [each for each in jobs if each[2].set_running_or_notify_cancel()]
            if wanted:
                self._commit(wanted)

    def _commit(self, jobs: list[_Job]) -> None:
        results: list[Any] = []
        try:
            with self._database.writing() as connection:
                for handler, group in groupby(jobs, key=lambda job: job[0]):
                    results.extend(handler(self._database, connection, [request for _, request, _ in group]))
        except Exception as error:  # of the database, or a bug: nothing of the transaction is there
            if len(jobs) > 1:
                for job in jobs:
                    self._commit([job])
            else:
                jobs[0][2].set_exception(error)
            return
        for (_, _, future), result in zip(jobs, results, strict=True):
            if isinstance(result, SurepickError):
                future.set_exception(result)
            else:
                future.set_result(result)
