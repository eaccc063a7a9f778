"""Which answers of a judge count: somebody who is asked the same question again may remember the first answer.

A remembered answer is no new evidence: given the first one, its expected score may be anything. An answer that does not
count is logged like any other and left out of the evidence. That is decided by who was asked what before, never by the
answer itself, so what does count keeps its proof (docs/assumptions.md, "Repeated answers").

independent   every answer counts: simulated judges, and programs that draw each answer
once          the first answer of a judge to a question
spaced        later ones too if enough other questions lie between, until they are found to be remembered
tested        later ones too once the judge has answered one question in two ways: programs that may repeat themselves

In a problem of systems a question is a pair on an input, drawn at random with replacement. There "once" lets the first
answer stand for every later one to the same pair and input. Leaving later ones out would favour the inputs that are not
answered yet, and their mean may be on the other side of one half (docs/systems.md, "What is proved").

An answer about a set compares all of its items, so a set of which two items were shown to the judge together before is
taken for the same question again.
"""

import math
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

from surepick.checks.repeats import MemoryEvidence
from surepick.identify.sets import Order
from surepick.session.question import Asked

Repeats = Literal["independent", "once", "spaced", "tested"]

REPEATS: tuple[Repeats, ...] = ("independent", "once", "spaced", "tested")

SPACING = 20
"""Other questions between two answers to the same one that both count, with "spaced" ..."""

SPACING_SHARE = 0.5
"""... or this share of all questions that can be asked, where that is less."""

MEMORY_LEVEL = 0.05
"""Chance of taking independent answers of a judge for remembered ones, if the beliefs about them are right ..."""

TESTED_LEVEL = 0.01
"""... and with "tested", where a judge who is found to repeat themselves is asked nothing again."""

PATIENCE = 20
"""Repeated answers without a different one after which a tested judge is asked nothing again, whatever was expected."""


class _Last(NamedTuple):
    """The last answer of a judge to a question: its number among this judge's answers, what it said, and the order."""

    number: int
    said: float | Order
    swapped: bool


class _LastAnswers(MutableMapping[Asked, _Last]):
    """The last answers of a judge by what was asked, in columns sorted by it: 25 bytes each for comparisons."""

    def __init__(self, inputs: Mapping[str, int]) -> None:
        self._inputs = inputs
        self._asked = array("q")
        self._numbers = array("q")
        self._said = array("d")
        self._swapped = bytearray()
        self._orders: dict[int, Order] = {}
        """Orders that were said about sets."""

    def _key(self, asked: Asked) -> int:
        return asked if isinstance(asked, int) else asked[0] * len(self._inputs) + self._inputs[asked[1]]

    def _find(self, asked: Asked) -> tuple[int, int, bool]:
        """The key of what was asked, its place in the columns, and whether it is there."""
        key = self._key(asked)
        place = bisect_left(self._asked, key)
        return key, place, place < len(self._asked) and self._asked[place] == key

    def __contains__(self, asked: object) -> bool:
        return self._find(cast("Asked", asked))[2]

    def __getitem__(self, asked: Asked) -> _Last:
        key, place, there = self._find(asked)
        if not there:
            raise KeyError(asked)
        score = self._said[place]
        said = self._orders.get(key, int(score) if score in (0, 1) else score)  # as it was given, for the log
        return _Last(self._numbers[place], said, bool(self._swapped[place]))

    def __setitem__(self, asked: Asked, last: _Last) -> None:
        key, place, there = self._find(asked)
        if not there:
            self._asked.insert(place, key)
            self._numbers.insert(place, 0)
            self._said.insert(place, 0.0)
            self._swapped.insert(place, 0)
        self._numbers[place], self._swapped[place] = last.number, last.swapped
        if isinstance(last.said, tuple):
            self._orders[key] = last.said
        else:
            self._said[place] = last.said

    def __delitem__(self, asked: Asked) -> None:
        key, place, there = self._find(asked)
        if not there:
            raise KeyError(asked)
        for column in (self._asked, self._numbers, self._said, self._swapped):
            del column[place]
        self._orders.pop(key, None)

    def __iter__(self) -> Iterator[Asked]:
        if not self._inputs:
            return iter(self._asked)
        names = list(self._inputs)
        return ((key // len(names), names[key % len(names)]) for key in self._asked)

    def __len__(self) -> int:
        return len(self._asked)


@dataclass
class _Judge:
    """What one judge has answered."""

    last: _LastAnswers
    answers: int = 0
    passed_over: dict[Asked, int] = field(default_factory=dict)
    """Questions that got a tie or were skipped, and after how many answers: nobody likes to be asked again."""
    memory: MemoryEvidence = field(default_factory=MemoryEvidence)
    varies: bool = False
    """Whether the same question, in the same order, got two answers."""


class _Filed(NamedTuple):
    """An answer, and what was known of its judge before it, to which `take_back` returns."""

    judge: str | None
    asked: Asked
    before: _Last | None
    memory: MemoryEvidence
    varied: bool
    counted: bool


class JudgeHistory:
    """Who answered what in a session, which changes it with every answer; judges without a name are one judge."""

    def __init__(
        self,
        repeats: Repeats,
        questions: int,
        inputs: Sequence[str] = (),
        shown: Callable[[int], Sequence[int]] | None = None,
    ) -> None:
        """`shown` are the items of a question, if questions are about sets."""
        self.repeats = repeats
        self._shown = shown
        self.inputs = len(inputs)
        self.spacing = min(SPACING, int(SPACING_SHARE * questions))
        numbers = {name: number for number, name in enumerate(inputs)}
        self._judges: defaultdict[str | None, _Judge] = defaultdict(lambda: _Judge(_LastAnswers(numbers)))
        self._filed: dict[int, _Filed] = {}
        """By question, of those that can still be taken back."""
        self._settled = Counter[bool]()
        """Of the others that were repeated, how many count and how many do not."""

    def is_repeat(self, judge: str | None, asked: Asked) -> bool:
        """Whether this judge has answered this question before."""
        return asked in self._judges[judge].last

    def first_stands(self, judge: str | None, asked: Asked) -> bool:
        """Whether this judge's first answer counts instead of another one to the same pair and input."""
        return self.inputs > 0 and self.repeats == "once" and self.is_repeat(judge, asked)

    def counts(self, judge: str | None, asked: Asked) -> bool:
        """Whether an answer of this judge to this question would count now."""
        known = self._judges[judge]
        before = None if self.repeats == "independent" else self._last_like(known, asked)
        if before is None:
            return True
        if self.repeats == "tested":
            return known.varies
        between = known.answers - before - 1
        return self.repeats == "spaced" and between >= self.spacing and not known.memory.found(MEMORY_LEVEL)

    def _last_like(self, known: _Judge, asked: Asked) -> int | None:
        """The number of the last answer that this one may only repeat: to the same question, or to a set like it."""
        if self._shown is None or not isinstance(asked, int):
            return known.last[asked].number if asked in known.last else None
        items = set(self._shown(asked))
        earlier = (other for other in known.last if isinstance(other, int))
        alike = [other for other in earlier if len(items.intersection(self._shown(other))) > 1]
        return max((known.last[other].number for other in alike), default=None)

    def had_by(self, judge: str | None) -> frozenset[int]:
        """Measurements that would not count if this judge were asked them now, and those that this judge passed over.

        In a problem of systems, those for which this is so on every input.
        """
        known = self._judges[judge]
        if self.repeats == "independent" or (self.repeats == "tested" and not self._repeats_itself(known)):
            return frozenset()
        if self.repeats == "once" and not self.inputs:
            return frozenset(cast("Iterable[int]", {*known.last, *known.passed_over}))
        wait = self.spacing if self.repeats == "spaced" else math.inf
        passed_over = {asked for asked, after in known.passed_over.items() if known.answers - after < wait}
        had = Counter(
            asked if isinstance(asked, int) else asked[0]
            for asked in passed_over | {asked for asked in known.last if not self.counts(judge, asked)}
        )
        return frozenset(measurement for measurement, times in had.items() if times >= self.inputs)

    def had_by_all(self) -> frozenset[int]:
        """Measurements that would not count whoever is asked: with "tested" of all judges who answered, else of one."""
        answering = [judge for judge, known in self._judges.items() if known.answers]
        if self.repeats != "tested" or not answering:
            return self.had_by(None)
        return frozenset.intersection(*(self.had_by(judge) for judge in answering))

    def _repeats_itself(self, known: _Judge) -> bool:
        """Whether a judge gave the same answers again, where new ones would have differed by now."""
        again = known.answers - len(known.last)
        return not known.varies and (again >= PATIENCE or known.memory.found(TESTED_LEVEL))

    @property
    def predicts(self) -> bool:
        """Whether it matters how likely a repeated answer was to agree."""
        return self.repeats in ("spaced", "tested")

    def forgets(self, judge: str | None) -> bool:
        """Whether this judge may be asked the same again later, when other questions lie between."""
        return self.repeats == "spaced" and not self._judges[judge].memory.found(MEMORY_LEVEL)

    def last_said(self, judge: str | None, asked: Asked) -> float | Order:
        """The last answer of this judge to this question, in the order of the problem."""
        return self._judges[judge].last[asked].said

    def add(
        self,
        question: int,
        judge: str | None,
        asked: Asked,
        answer: float | Order,
        *,
        counted: bool,
        expected: float | None,
        swapped: bool = False,
    ) -> None:
        """One more answer; for a repeated one `expected` is the chance that it would agree, by the beliefs."""
        known = self._judges[judge]
        before = known.last.get(asked)
        self._filed[question] = _Filed(judge, asked, before, known.memory, known.varies, counted)
        if before is not None and expected is not None:
            known.memory = known.memory.after(expected, agreed=before.said == answer)
        if before is not None and before.said != answer and before.swapped == swapped:
            known.varies = True
        known.last[asked] = _Last(known.answers, answer, swapped)
        known.answers += 1

    def pass_over(self, judge: str | None, asked: Asked) -> None:
        """This judge saw no difference or skipped the question."""
        self._judges[judge].passed_over[asked] = self._judges[judge].answers

    def take_back(self, question: int) -> None:
        """As if this answer had not been given: the next one to the question is then no repeated one."""
        filed = self._filed.pop(question, None)
        if filed is None:
            return
        known = self._judges[filed.judge]
        known.memory, known.varies = filed.memory, filed.varied
        if filed.before is None:
            known.last.pop(filed.asked, None)
        else:
            known.last[filed.asked] = filed.before

    def settle(self, questions: Iterable[int]) -> None:
        """The answers to these questions can no longer be taken back."""
        for question in questions:
            filed = self._filed.pop(question, None)
            if filed is not None and (filed.before is not None or not filed.counted):
                self._settled[filed.counted] += 1

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is assumed about repeated answers, and what was done with them."""
        repeated = [filed for filed in self._filed.values() if filed.before is not None or not filed.counted]
        repeats = Counter(filed.counted for filed in repeated) + self._settled
        counted, left_out = repeats[True], repeats[False]
        said = []
        if counted and self.inputs and self.repeats == "once":
            said.append(
                f"A judge's first answer to a pair on an input stands for later ones: {counted:,} of the answers "
                "counted are repeated in this way."
            )
        elif counted:
            said.append(
                f"A judge's repeated answers to the same question are independent of each other: {counted:,} of the "
                "answers counted are repeated ones."
            )
        if left_out:
            said.append(f"{left_out:,} repeated answers are not counted: they may only repeat the first one.")
        stubborn = [name or "the judge" for name, known in self._judges.items() if self._repeats_itself(known)]
        if self.repeats == "tested" and stubborn:
            said.append(
                f"Asked the same again, {', '.join(stubborn)} gave the same answer every time: only first answers "
                'count. If each answer is drawn afresh, search with repeats="independent".'
            )
        elif self.repeats == "spaced" and any(known.memory.found(MEMORY_LEVEL) for known in self._judges.values()):
            said.append("Repeated answers agreed more often than independent ones would: they no longer count.")
        return tuple(said)
