"""Stages in little memory: those that were evaluated for good are packed into arrays, and unpacked where one is read.

A search for the best of many items plans thousands of stages, most of them of one question. As objects with arrays of
their own they would take two kilobytes each; packed they take about a hundred bytes.
"""

import json
import threading
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from surepick._arrays import Integers
from surepick.identify.policy import AnsweredStage, Plan, StageRecord

_ONE_PACKS = threading.Lock()
"""A forecast may go on from a state in one thread while the search goes on from it in another."""


class PackedStages(Sequence[StageRecord]):
    """Stages whose answers do not change any more, in the order of planning; it only grows."""

    __slots__ = ("_answers", "_closed", "_memo_ends", "_memos", "_missing", "_more", "_row_ends", "_rows")

    def __init__(self) -> None:
        self._rows = array("q")  # of each question: its number, how often it was planned, answers, wins
        self._row_ends = array("q")
        self._memos = bytearray()
        self._memo_ends = array("q")
        self._closed = bytearray()
        self._answers = array("q")
        self._missing = array("q")
        self._more: dict[int, dict[str, Any]] = {}
        """Of the few stages that have any: scores between 0 and 1, and orders."""

    def __len__(self) -> int:
        return len(self._row_ends)

    def append(self, stage: AnsweredStage, *, closed: bool = False) -> None:
        """Pack one more stage."""
        more = {"partial": stage.partial, "orders": stage.orders}
        if any(more.values()):
            self._more[len(self)] = more
        answers = int(stage.pulls.sum()) + sum(len(told) for kind in more.values() for told in kind)
        self._rows.extend(
            np.column_stack([stage.plan.measurements, stage.plan.pulls, stage.pulls, stage.wins]).ravel().tolist()
        )
        self._row_ends.append(len(self._rows))
        self._memos += json.dumps(dict(stage.plan.memo)).encode()
        self._memo_ends.append(len(self._memos))
        self._closed.append(closed)
        self._answers.append(answers)
        self._missing.append(stage.plan.total - answers)

    @overload
    def __getitem__(self, place: int) -> StageRecord: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[StageRecord, ...]: ...
    def __getitem__(self, place: int | slice) -> StageRecord | tuple[StageRecord, ...]:
        if isinstance(place, slice):
            return tuple(self[number] for number in range(*place.indices(len(self))))
        number = range(len(self))[place]
        begin, memo_begin = (self._row_ends[number - 1], self._memo_ends[number - 1]) if number else (0, 0)
        rows = np.array(self._rows[begin : self._row_ends[number]], dtype=np.int64).reshape(-1, 4).T
        memo = json.loads(self._memos[memo_begin : self._memo_ends[number]])
        plan = Plan(number, rows[0], rows[1], memo)
        return StageRecord(plan, rows[2], rows[3], bool(self._closed[number]), **self._more.get(number, {}))

    def asked(self, stages: int) -> Integers:
        """The questions of the first stages as rows (number, how often)."""
        rows = np.array(self._rows[: self._row_ends[stages - 1] if stages else 0], dtype=np.int64)
        return rows.reshape(-1, 4)[:, :2]

    def answers(self, stages: int) -> tuple[int, ...]:
        """Answers to each of the first stages."""
        return tuple(self._answers[:stages])

    def missing(self, stages: int) -> int:
        """Questions of the first stages without an answer."""
        return sum(self._missing[:stages])

    def copy(self, stages: int) -> "PackedStages":
        """The first stages."""
        copied = PackedStages()
        rows, memos = (self._row_ends[stages - 1], self._memo_ends[stages - 1]) if stages else (0, 0)
        copied._rows, copied._row_ends = self._rows[:rows], self._row_ends[:stages]
        copied._memos, copied._memo_ends = self._memos[:memos], self._memo_ends[:stages]
        copied._closed, copied._more = self._closed[:stages], {k: v for k, v in self._more.items() if k < stages}
        copied._answers, copied._missing = self._answers[:stages], self._missing[:stages]
        return copied


class StageList(Sequence[StageRecord]):
    """All stages of a state, of which the first are packed. It never changes; what is planned or told gives a new one.

    Lists of which each is the beginning of the next share what is packed. Whoever goes on from an earlier one in
    another way copies it.
    """

    __slots__ = ("_count", "_packed", "_rest")

    def __init__(self, packed: PackedStages | None = None, count: int = 0, rest: tuple[StageRecord, ...] = ()) -> None:
        self._packed = PackedStages() if packed is None else packed
        self._count = count
        self._rest = rest

    def __len__(self) -> int:
        return self._count + len(self._rest)

    @overload
    def __getitem__(self, place: int) -> StageRecord: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[StageRecord, ...]: ...
    def __getitem__(self, place: int | slice) -> StageRecord | tuple[StageRecord, ...]:
        if isinstance(place, slice):
            begin, end, step = place.indices(len(self))
            if begin >= self._count and step == 1:
                return self._rest[begin - self._count : max(end - self._count, 0)]
            return tuple(self[number] for number in range(begin, end, step))
        number = range(len(self))[place]
        return self._packed[number] if number < self._count else self._rest[number - self._count]

    def __iter__(self) -> Iterator[StageRecord]:
        return (self[number] for number in range(len(self)))

    def planned(self, plan: Plan) -> "StageList":
        """With one more stage, without answers."""
        return StageList(self._packed, self._count, (*self._rest, StageRecord.unanswered(plan)))

    def told(self, stage: int, record: StageRecord) -> "StageList":
        """With what a stage that is not packed has by now."""
        place = stage - self._count
        return StageList(self._packed, self._count, (*self._rest[:place], record, *self._rest[place + 1 :]))

    def pack(self, stages: int) -> "StageList":
        """The same with the first stages packed: they were evaluated, and nothing changes them any more."""
        new = stages - self._count
        if new <= 0:
            return self
        with _ONE_PACKS:
            packed = self._packed if len(self._packed) == self._count else self._packed.copy(self._count)
            for record in self._rest[:new]:
                packed.append(record, closed=record.closed)
        return StageList(packed, stages, self._rest[new:])

    def answers(self, stages: int) -> tuple[int, ...]:
        """Answers to each of the first stages."""
        rest = self._rest[: max(stages - self._count, 0)]
        return (*self._packed.answers(min(stages, self._count)), *(record.answers for record in rest))

    def missing(self, stages: int) -> int:
        """Questions of the first stages without an answer."""
        rest = self._rest[: max(stages - self._count, 0)]
        return self._packed.missing(min(stages, self._count)) + sum(record.missing for record in rest)

    @property
    def parts(self) -> tuple[Integers, tuple[StageRecord, ...]]:
        """The questions of the packed stages as rows (number, how often), and the other stages."""
        return self._packed.asked(self._count), self._rest


def asked_counts(stages: Sequence[StageRecord], questions: int) -> Integers:
    """How often each of a problem's questions was planned in these stages."""
    rows, rest = stages.parts if isinstance(stages, StageList) else (np.zeros((0, 2), dtype=np.int64), stages)
    pairs = [rows, *(np.column_stack([record.plan.measurements, record.plan.pulls]) for record in rest)]
    counts = np.zeros(questions, dtype=np.int64)
    numbers, times = np.concatenate(pairs).T
    np.add.at(counts, numbers, times)
    return counts
