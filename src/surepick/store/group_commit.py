"""Group commit: judges' requests of a process go through one thread, and many of them share a transaction."""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from surepick.errors import SurepickError
from surepick.store.database import UNAVAILABLE, Database
from surepick.store.question_queue import JudgeRequest, lock_judges
from surepick.store.streams import StreamRequest, lock_streams

MOST_REQUESTS = 500
"""Requests that share a transaction at most: a larger one would let its first request wait too long."""

Handler = Callable[[Database, sa.Connection, Sequence[Any]], Sequence[Any]]
"""Carries out several requests of one kind inside one transaction; one result per request, in the same order.

A refused request has the exception as its result and has written nothing: an exception raised instead would roll back
the requests of others.
"""

_Job = tuple[Handler, Any, "Future[Any]"]


class GroupCommit:
    """One thread that carries out requests of any other, many in one transaction; `close` carries out what is queued.

    A commit costs a write to the disk, however much is in it. While one commit is under way further requests queue up,
    and the next transaction carries them out together. Each request is acknowledged only after its own commit, so
    whatever a judge was told is on the disk.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="group commit", daemon=True)
        self._thread.start()

    def submit(self, handler: Handler, request: Any) -> "Future[Any]":
        """A future of the handler's result; it is set once the transaction is committed."""
        future: Future[Any] = Future()
        self._jobs.put((handler, request, future))
        return future

    def close(self) -> None:
        """Carry out what is queued, then stop."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            jobs = [job]
            while len(jobs) < MOST_REQUESTS and not self._jobs.empty():
                following = self._jobs.get()
                if following is None:
                    self._jobs.put(None)
                    break
                jobs.append(following)
            # A request whose caller went away is dropped here. After this it can no longer be cancelled: its rows may
            # be committed, and the result must say so.
            wanted = [job for job in jobs if job[2].set_running_or_notify_cancel()]
            if wanted:
                self._commit(wanted)

    def _commit(self, jobs: list[_Job]) -> None:
        results: list[Any] = []
        # Requests of one kind together: a few statements carry out all of them. Whoever cares for the order of two
        # requests has waited for the first to be acknowledged.
        kinds = list(dict.fromkeys(handler for handler, _, _ in jobs))
        jobs = sorted(jobs, key=lambda job: kinds.index(job[0]))
        try:
            with self._database.writing() as connection:
                # All locks before any handler, in one order: so no two processes ever wait for each other.
                lock_judges(connection, [request for _, request, _ in jobs if isinstance(request, JudgeRequest)])
                lock_streams(connection, [request for _, request, _ in jobs if isinstance(request, StreamRequest)])
                for handler, group in groupby(jobs, key=lambda job: job[0]):
                    results.extend(handler(self._database, connection, [request for _, request, _ in group]))
        except Exception as error:  # from the database, or a bug: the whole transaction was rolled back
            if len(jobs) > 1 and not _concerns_all(error):  # one of them broke it; alone, the others succeed
                for job in jobs:
                    self._commit([job])
            else:
                for _, _, future in jobs:
                    future.set_exception(error)
            return
        for (_, _, future), result in zip(jobs, results, strict=True):
            if isinstance(result, SurepickError):
                future.set_exception(result)
            else:
                future.set_result(result)


def _concerns_all(error: Exception) -> bool:
    """Whether the database is away, so that trying every request alone would only let all of them wait longer."""
    broken_off = getattr(getattr(error, "orig", None), "sqlstate", None) in ("40001", "40P01")  # by a deadlock
    return isinstance(error, UNAVAILABLE) and not broken_off
