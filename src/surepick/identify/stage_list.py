"""Stages in little memory: those that were evaluated for good are packed into text, and unpacked where one is read.

A search for the best of many items plans thousands of stages, most of them of one question. As objects with arrays of
their own they would take two kilobytes each; packed they take about fifty bytes.
"""

import json
import threading
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import overload

import numpy as np

from surepick._arrays import Integers
from surepick.identify.packed_lines import PackedLines
from surepick.identify.policy import AnsweredStage, Plan, StageRecord

_ONE_PACKS = threading.Lock()
"""A forecast may go on from a state in one thread while the search goes on from it in another."""


class PackedStages(Sequence[StageRecord]):
    """Stages whose answers do not change any more, in the order of planning; it only grows."""

    __slots__ = ("_answers", "_counts", "_lines", "_missing")

    def __init__(self) -> None:
        self._lines = PackedLines()
        self._answers = array("q")
        self._missing = array("q")
        self._counts = Counter[int]()
        """How often each question was planned in all of them."""

    def __len__(self) -> int:
        return len(self._lines)

    def append(self, stage: AnsweredStage, *, closed: bool = False) -> None:
        """Pack one more stage."""
        plan, partial, orders = stage.plan, stage.partial, stage.orders
        answers = int(stage.pulls.sum()) + sum(len(told) for kind in (partial, orders) for told in kind)
        asked = [column.tolist() for column in (plan.measurements, plan.pulls, stage.pulls, stage.wins)]
        self._lines.append(json.dumps([*asked, closed, dict(plan.memo), partial, orders], separators=(",", ":")))
        self._answers.append(answers)
        self._missing.append(plan.total - answers)
        self._counts.update(dict(zip(*asked[:2], strict=True)))

    @overload
    def __getitem__(self, place: int) -> StageRecord: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[StageRecord, ...]: ...
    def __getitem__(self, place: int | slice) -> StageRecord | tuple[StageRecord, ...]:
        if isinstance(place, slice):
            begin, _, step = place.indices(len(self))
            return tuple(_unpacked(begin + number * step, line) for number, line in enumerate(self._lines[place]))
        number = range(len(self))[place]
        return _unpacked(number, self._lines[number])

    def since(self, place: int) -> Iterator[StageRecord]:
        """The stages from `place` on."""
        return (_unpacked(number, line) for number, line in enumerate(self._lines.since(place), place))

    def counts(self, stages: int) -> Counter[int]:
        """How often each question was planned in the first stages."""
        counts = self._counts.copy()
        for record in self.since(stages):
            counts.subtract(dict(zip(record.plan.measurements.tolist(), record.plan.pulls.tolist(), strict=True)))
        return counts

    def answers(self, stages: int) -> tuple[int, ...]:
        """Answers to each of the first stages."""
        return tuple(self._answers[:stages])

    def missing(self, stages: int) -> int:
        """Questions of the first stages without an answer."""
        return sum(self._missing[:stages])

    def copy(self, stages: int) -> "PackedStages":
        """The first stages."""
        copied = PackedStages()
        copied._lines, copied._counts = self._lines.copy(stages), self.counts(stages)
        copied._answers, copied._missing = self._answers[:stages], self._missing[:stages]
        return copied


def _unpacked(number: int, line: str) -> StageRecord:
    """The stage of this number as `PackedStages.append` has written it."""
    *asked, closed, memo, partial, orders = json.loads(line)
    where, planned, pulls, wins = (np.array(column, dtype=np.int64) for column in asked)
    told = tuple(tuple(tuple(order) for order in given) for given in orders)
    return StageRecord(Plan(number, where, planned, memo), pulls, wins, closed, tuple(map(tuple, partial)), told)


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
            if step == 1:
                packed = self._packed[begin : min(end, self._count)]
                return packed + self._rest[max(begin - self._count, 0) : max(end - self._count, 0)]
            return tuple(self[number] for number in range(begin, end, step))
        number = range(len(self))[place]
        return self._packed[number] if number < self._count else self._rest[number - self._count]

    def __iter__(self) -> Iterator[StageRecord]:
        yield from islice(self._packed.since(0), self._count)  # it may have more, of a search that went on
        yield from self._rest

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
    def parts(self) -> tuple[Counter[int], tuple[StageRecord, ...]]:
        """How often each question was planned in the packed stages, and the other stages."""
        return self._packed.counts(self._count), self._rest


def asked_counts(stages: Sequence[StageRecord], questions: int) -> Integers:
    """How often each of a problem's questions was planned in these stages."""
    packed, rest = stages.parts if isinstance(stages, StageList) else (Counter[int](), stages)
    counts = np.zeros(questions, dtype=np.int64)
    counts[list(packed)] = list(packed.values())
    for record in rest:
        counts[record.plan.measurements] += record.plan.pulls  # a plan names each measurement at most once
    return counts
