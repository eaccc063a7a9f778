"""A question as a judge sees it, and how far the stage it belongs to has been answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.identify import Plan
from surepick.identify.forecast import OpenStage
from surepick.identify.policy import Partial

Asked = int | tuple[int, str]
"""A measurement, or a measurement on an input."""


@dataclass(frozen=True, eq=False)
class Question:
    """One question: which of two items, or yes/no about one, or about a bare vector.

    The answer 1 means "the first" or "yes", and has probability 1/(1+exp(−vectorᵀθ*)).
    """

    id: int
    stage: int
    measurement: int
    """Its number among the problem's questions."""
    vector: Floats
    """Its vector, with the sign of the order shown."""
    first: str | None
    """The item shown first, or the one asked about; None for a bare vector."""
    second: str | None
    """The item shown second, if there is one."""
    swapped: bool
    """Whether the pair is shown in the reverse order of the problem's."""
    input: str | None = None
    """The input whose outputs are compared, in a problem of systems."""

    @property
    def asked(self) -> Asked:
        """What a judge may remember: the pair, or the pair on this input."""
        return self.measurement if self.input is None else (self.measurement, self.input)

    def to_json(self) -> dict[str, Any]:
        """What a judge needs to know."""
        shown = {"id": self.id, "stage": self.stage, "first": self.first, "second": self.second}
        shown |= {} if self.first is not None else {"vector": self.vector.tolist()}
        return shown | ({} if self.input is None else {"input": self.input})


@dataclass
class StageProgress:
    """A planned stage and what has become of its questions; the session changes it as its events say."""

    plan: Plan
    unasked: Integers
    """How often each measurement of the plan is still to be asked."""
    pulls: Integers
    """Answers to each measurement ..."""
    wins: Integers
    """... and how many of them were 1, in the order of the problem's pairs."""
    scores: dict[int, list[float]] = field(default_factory=dict)
    """By place, scores of answers that were neither, in the order of the problem's pairs."""
    outstanding: set[int] = field(default_factory=set)
    """Questions asked that have no answer, skip or tie yet."""
    without_answer: set[int] = field(default_factory=set)
    """Questions skipped or tied."""

    @classmethod
    def of(cls, plan: Plan) -> "StageProgress":
        """Nothing of it asked yet."""
        nothing = np.zeros(len(plan.pulls), dtype=np.int64)
        return cls(plan, plan.pulls.copy(), nothing, nothing.copy())

    @property
    def answered(self) -> bool:
        """Whether nothing of it is left to ask or to wait for."""
        return not self.outstanding and not self.unasked.any()

    @property
    def partial(self) -> Partial:
        """The same for every measurement, in ascending order; empty if there are none."""
        found = [sorted(self.scores.get(place, ())) for place in range(len(self.pulls))]
        return found if any(found) else ()

    def place(self, measurement: int) -> int:
        """Where a measurement is in the arrays."""
        return int(np.flatnonzero(self.plan.measurements == measurement)[0])

    def as_it_stands(self, questions: Mapping[int, Question]) -> OpenStage:
        """A copy for simulations, with what is still to be answered."""
        left = self.unasked.copy()
        for question in self.outstanding:
            left[self.place(questions[question].measurement)] += 1
        return OpenStage(self.plan, self.pulls.copy(), self.wins.copy(), left, self.partial)
