"""Questions, answers and stages of a session by number, in columns: a few bytes each, where objects take hundreds.

Questions are numbered from 1 in the order asked.
"""

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSet, Sequence
from itertools import islice
from typing import overload

from surepick.answer import Places
from surepick.identify import Plan, Problem
from surepick.identify.stage_list import PackedStages
from surepick.session.journal import Event
from surepick.session.question import Question, StageProgress


class NumberSet(MutableSet[int]):
    """Some of the questions: one byte for each up to the last that was added."""

    def __init__(self) -> None:
        self._member = bytearray()
        self._count = 0

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and 0 <= number < len(self._member) and bool(self._member[number])

    def __iter__(self) -> Iterator[int]:
        return (number for number, member in enumerate(self._member) if member)

    def __len__(self) -> int:
        return self._count

    def add(self, value: int) -> None:
        """Add a question."""
        self._member.extend(bytes(max(0, value + 1 - len(self._member))))
        self._count += not self._member[value]
        self._member[value] = 1

    def discard(self, value: int) -> None:
        """Take a question out, if it is there."""
        if value in self:
            self._count -= 1
            self._member[value] = 0


class AnswerColumns(MutableMapping[int, float | Places]):
    """Answers by question, in the order given: 0, 1, a score between them, or places."""

    def __init__(self) -> None:
        self._order = array("i")
        self._scores = array("d")  # by number; not a number where there is none
        self._places: dict[int, Places] = {}

    def __getitem__(self, number: int) -> float | Places:
        if number in self._places:
            return self._places[number]
        score = self._scores[number] if isinstance(number, int) and 0 <= number < len(self._scores) else math.nan
        if math.isnan(score):
            raise KeyError(number)
        return int(score) if score in (0, 1) else score

    def __setitem__(self, number: int, answer: float | Places) -> None:
        if number not in self:
            self._order.append(number)
        if isinstance(answer, tuple):
            self._places[number] = answer
            return
        self._scores.extend([math.nan] * (number + 1 - len(self._scores)))
        self._scores[number] = answer

    def __delitem__(self, number: int) -> None:
        if number not in self:
            raise KeyError(number)
        if self._places.pop(number, None) is None:
            self._scores[number] = math.nan
        del self._order[len(self._order) - 1 - self._order[::-1].index(number)]  # mostly one of the last

    def __iter__(self) -> Iterator[int]:
        return iter(self._order)

    def __reversed__(self) -> Iterator[int]:
        return reversed(self._order)

    def __len__(self) -> int:
        return len(self._order)


class QuestionColumns(Mapping[int, Question]):
    """All questions asked. Those of evaluated stages are kept as numbers, and built again where one is read."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._stages = array("i")
        self._measurements = array("q")
        self._swapped = bytearray()
        self._inputs = array("q")
        self._input_numbers = {name: number for number, name in enumerate(problem.inputs)}
        self._orders = bytearray()  # of sets, the places shown one after the other
        self._recent: dict[int, Question] = {}
        """Those that may still be answered."""

    def __len__(self) -> int:
        return len(self._stages)

    def __iter__(self) -> Iterator[int]:
        return iter(range(1, len(self) + 1))

    def __getitem__(self, number: int) -> Question:
        known = self._recent.get(number)
        if known is not None:
            return known
        if not isinstance(number, int) or not 1 <= number <= len(self):
            raise KeyError(number)
        place, show = number - 1, self._problem.show
        return asked_question(
            self._problem,
            number,
            self._stages[place],
            self._measurements[place],
            swapped=bool(self._swapped[place]),
            order=tuple(self._orders[show * place : show * number]),
            given=self._problem.inputs[self._inputs[place]] if self._inputs else None,
        )

    def add(self, event: Event) -> Question:
        """A question as its event describes it."""
        number, order, given = event["id"], tuple(event.get("order", ())), event.get("input")
        if number != len(self) + 1 or len(order) != (self._problem.show if self._problem.show > 2 else 0):
            raise KeyError(f"question {number} instead of {len(self) + 1}")
        question = asked_question(
            self._problem,
            number,
            event["stage"],
            event["measurement"],
            swapped=event.get("swapped", False),
            order=order,
            given=given,
        )
        self._stages.append(question.stage)
        self._measurements.append(question.measurement)
        self._swapped.append(question.swapped)
        self._orders += bytes(order)
        if self._input_numbers:
            self._inputs.append(self._input_numbers[event["input"]])
        self._recent[number] = question
        return question

    def settle(self, numbers: Iterable[int]) -> None:
        """These were evaluated: nobody is going to answer them but late."""
        for number in numbers:
            self._recent.pop(number, None)


class StageColumns(Sequence[StageProgress]):
    """All stages planned. Those that were evaluated are packed, and unpacked where one is read."""

    def __init__(self) -> None:
        self._packed = PackedStages()
        self.open: list[StageProgress] = []
        """Stages that may still get answers which count."""

    def __len__(self) -> int:
        return len(self._packed) + len(self.open)

    @overload
    def __getitem__(self, place: int) -> StageProgress: ...
    @overload
    def __getitem__(self, place: slice) -> list[StageProgress]: ...
    def __getitem__(self, place: int | slice) -> StageProgress | list[StageProgress]:
        if isinstance(place, slice):
            begin, end, step = place.indices(len(self))
            if step == 1:
                return list(islice(self._from(begin), max(end - begin, 0)))
            return [self[number] for number in range(begin, end, step)]
        number, packed = range(len(self))[place], len(self._packed)
        return StageProgress.settled(self._packed[number]) if number < packed else self.open[number - packed]

    def __iter__(self) -> Iterator[StageProgress]:
        return self._from(0)

    def _from(self, place: int) -> Iterator[StageProgress]:
        """The stages from `place` on: one by one, each packed one would be looked for in its block again."""
        packed = len(self._packed)
        if place < packed:
            yield from map(StageProgress.settled, self._packed.since(place))
        yield from islice(self.open, max(place - packed, 0), None)

    def add(self, plan: Plan) -> None:
        """One more stage was planned."""
        self.open.append(StageProgress.of(plan))

    def settle(self, stages: int) -> int:
        """Pack the first stages; the number of questions in those that were not packed before."""
        done = self.open[: max(stages - len(self._packed), 0)]
        for stage in done:
            self._packed.append(stage)
        del self.open[: len(done)]
        return sum(stage.plan.total for stage in done)


def asked_question(
    problem: Problem,
    number: int,
    stage: int,
    measurement: int,
    *,
    swapped: bool,
    order: tuple[int, ...],
    given: str | None,
) -> Question:
    """A question as it is shown: in reverse order, or a set in this order."""
    shown = problem.shown(measurement)
    shown = tuple(shown[place] for place in order) if order else shown[::-1] if swapped else shown
    vector = problem.items[list(shown)] if order else problem.vectors(measurement)
    names = tuple(problem.names[item] for item in shown)
    first, second, *_ = (None, None) if order else (*names, None, None)
    return Question(
        number,
        stage,
        measurement,
        -vector if swapped else vector,
        first,
        second,
        swapped,
        given,
        names,
        problem.kind(measurement),
        problem.top,
        order,
    )
