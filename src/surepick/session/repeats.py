"""Which answers of a judge count: somebody who is asked the same question again may remember the first answer.

A remembered answer is no new evidence: given the first one, its expected score may be anything. An answer that does not
count is logged like any other and left out of the evidence. That is decided by who was asked what before, never by the
answer itself, so what does count keeps its proof (docs/assumptions.md, "Repeated answers").

independent   every answer counts: simulated judges, and programs that draw each answer
once          the first answer of a judge to a question
spaced        later ones too if enough other questions lie between, until they are found to be remembered

In a problem of systems a question is a pair on an input, drawn at random with replacement. There "once" lets the first
answer stand for every later one to the same pair and input. Leaving later ones out would favour the inputs that are not
answered yet, and their mean may be on the other side of one half (docs/systems.md, "What is proved").
"""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from surepick.checks.repeats import MemoryEvidence
from surepick.session.question import Asked

Repeats = Literal["independent", "once", "spaced"]

REPEATS: tuple[Repeats, ...] = ("independent", "once", "spaced")

SPACING = 20
"""Other questions between two answers to the same one that both count, with "spaced" ..."""

SPACING_SHARE = 0.5
"""... or this share of all questions that can be asked, where that is less."""

MEMORY_LEVEL = 0.05
"""Chance of taking independent answers of a judge for remembered ones, if the beliefs about them are right."""


@dataclass(frozen=True)
class _Last:
    """The last answer of a judge to a question: its number among this judge's answers, and what it said."""

    number: int
    said: float


@dataclass
class _Judge:
    """What one judge has answered."""

    answers: int = 0
    last: dict[Asked, _Last] = field(default_factory=dict)
    """By what was asked."""
    passed_over: dict[Asked, int] = field(default_factory=dict)
    """Questions that got a tie or were skipped, and after how many answers: nobody likes to be asked again."""
    memory: MemoryEvidence = field(default_factory=MemoryEvidence)


class _Filed(NamedTuple):
    """An answer, and what was known of its judge before it, to which `take_back` returns."""

    judge: str | None
    asked: Asked
    before: _Last | None
    memory: MemoryEvidence
    counted: bool


class JudgeHistory:
    """Who answered what in a session, which changes it with every answer; judges without a name are one judge."""

    def __init__(self, repeats: Repeats, questions: int, inputs: int = 0) -> None:
        self.repeats = repeats
        self.inputs = inputs
        self.spacing = min(SPACING, int(SPACING_SHARE * questions))
        self._judges: defaultdict[str | None, _Judge] = defaultdict(_Judge)
        self._filed: dict[int, _Filed] = {}

    def is_repeat(self, judge: str | None, asked: Asked) -> bool:
        """Whether this judge has answered this question before."""
        return asked in self._judges[judge].last

    def first_stands(self, judge: str | None, asked: Asked) -> bool:
        """Whether this judge's first answer counts instead of another one to the same pair and input."""
        return self.inputs > 0 and self.repeats == "once" and self.is_repeat(judge, asked)

    def counts(self, judge: str | None, asked: Asked) -> bool:
        """Whether an answer of this judge to this question would count now."""
        if self.repeats == "independent" or not self.is_repeat(judge, asked):
            return True
        known = self._judges[judge]
        between = known.answers - known.last[asked].number - 1
        return self.repeats == "spaced" and between >= self.spacing and not known.memory.found(MEMORY_LEVEL)

    def had_by(self, judge: str | None) -> frozenset[int]:
        """Measurements that would not count if this judge were asked them now, and those that this judge passed over.

        In a problem of systems, those for which this is so on every input.
        """
        if self.repeats == "independent":
            return frozenset()
        known = self._judges[judge]
        wait = self.spacing if self.repeats == "spaced" else math.inf
        passed_over = {asked for asked, after in known.passed_over.items() if known.answers - after < wait}
        had = Counter(
            asked if isinstance(asked, int) else asked[0]
            for asked in passed_over | {asked for asked in known.last if not self.counts(judge, asked)}
        )
        return frozenset(measurement for measurement, times in had.items() if times >= self.inputs)

    def forgets(self, judge: str | None) -> bool:
        """Whether this judge may be asked the same again later, when other questions lie between."""
        return self.repeats == "spaced" and not self._judges[judge].memory.found(MEMORY_LEVEL)

    def last_said(self, judge: str | None, asked: Asked) -> float:
        """The last answer of this judge to this question."""
        return self._judges[judge].last[asked].said

    def add(
        self,
        question: int,
        judge: str | None,
        asked: Asked,
        answer: float,
        *,
        counted: bool,
        expected: float | None,
    ) -> None:
        """One more answer; for a repeated one `expected` is the chance that it would agree, by the beliefs."""
        known = self._judges[judge]
        before = known.last.get(asked)
        self._filed[question] = _Filed(judge, asked, before, known.memory, counted)
        if before is not None and expected is not None:
            known.memory = known.memory.after(expected, agreed=before.said == answer)
        known.last[asked] = _Last(known.answers, answer)
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
        known.memory = filed.memory
        if filed.before is None:
            known.last.pop(filed.asked, None)
        else:
            known.last[filed.asked] = filed.before

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is assumed about repeated answers, and what was done with them."""
        repeated = [filed for filed in self._filed.values() if filed.before is not None]
        counted = sum(filed.counted for filed in repeated)
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
        if counted < len(repeated):
            said.append(
                f"{len(repeated) - counted:,} repeated answers are not counted: the judge may have remembered the "
                "first one."
            )
        if any(known.memory.found(MEMORY_LEVEL) for known in self._judges.values()):
            said.append("Repeated answers agreed more often than independent ones would: they no longer count.")
        return tuple(said)
