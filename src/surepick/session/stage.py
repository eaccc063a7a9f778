"""A stage as a session hands it out: what was asked of it, what came back, and what is waited for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from surepick._arrays import Integers
from surepick.identify import Plan
from surepick.identify.forecast import OpenStage
from surepick.session.question import Question


@dataclass
class AskedStage:
    """A stage's questions as they stand; the session changes them as its events say."""

    plan: Plan
    unissued: Integers
    pulls: Integers
    wins: Integers
    waiting: set[int] = field(default_factory=set)
    """Issued questions without an answer, skip or tie."""
    closed: set[int] = field(default_factory=set)
    """Questions skipped or tied."""

    @classmethod
    def of(cls, plan: Plan) -> "AskedStage":
        """Nothing of it handed out yet."""
        nothing = np.zeros(len(plan.pulls), dtype=np.int64)
        return cls(plan, plan.pulls.copy(), nothing, nothing.copy())

    @property
    def finished(self) -> bool:
        """Whether nothing of it is left to hand out or to wait for."""
        return not self.waiting and not self.unissued.any()

    def place(self, measurement: int) -> int:
        """Where a measurement is in the arrays."""
        return int(np.flatnonzero(self.plan.measurements == measurement)[0])

    def as_it_stands(self, questions: Mapping[int, Question]) -> OpenStage:
        """A copy for simulations, with what is still to be answered."""
        left = self.unissued.copy()
        for question in self.waiting:
            left[self.place(questions[question].measurement)] += 1
        return OpenStage(self.plan, self.pulls.copy(), self.wins.copy(), left)
