"""A question as a judge sees it, and how far the stage it belongs to has been answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.identify import Plan
from surepick.identify.forecast import OpenStage
from surepick.identify.policy import Partial, StageRecord
from surepick.identify.problem import Kind
from surepick.identify.sets import Order, Orders

Asked = int | tuple[int, str]
"""A measurement, or a measurement on an input."""


@dataclass(frozen=True, eq=False)
class Question:
    """One question: which of two items, the best or the order of several, or yes/no about one, or about a bare vector.

    The answer 1 means "the first" or "yes", and has probability 1/(1+exp(−vectorᵀθ*)).
    """

    id: int
    stage: int
    measurement: int
    """Its number among the problem's questions."""
    vector: Floats
    """Its vector, with the sign of the order shown; for a set the features of the items as rows, in the order shown."""
    first: str | None
    """The item shown first, or the one asked about; None for a bare vector."""
    second: str | None
    """The item shown second, if there is one."""
    swapped: bool
    """Whether the pair is shown in the reverse order of the problem's."""
    input: str | None = None
    """The input whose outputs are compared, in a problem of systems."""
    items: tuple[str, ...] = ()
    """All items shown, in the order shown: two for a comparison, one for yes/no."""
    kind: Kind = "compare"
    top: int = 1
    """Places asked for, where it asks for an order."""
    order: tuple[int, ...] = ()
    """For a set: which item of the problem's set is shown at each place."""

    @property
    def asked(self) -> Asked:
        """What a judge may remember: the pair, or the pair on this input."""
        return self.measurement if self.input is None else (self.measurement, self.input)

    @property
    def about_set(self) -> bool:
        """Whether it shows more than two items, and the answer is places."""
        return self.kind in ("pick", "rank")

    def to_json(self) -> dict[str, Any]:
        """What a judge needs to know."""
        shown: dict[str, Any] = {"id": self.id, "stage": self.stage}
        if self.about_set:
            shown |= {"kind": self.kind, "items": list(self.items), "top": self.top}
        else:
            shown |= {"first": self.first, "second": self.second}
        shown |= {"vector": self.vector.tolist()} if self.kind == "vector" else {}
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
    told: dict[int, list[Order]] = field(default_factory=dict)
    """By place, orders that answered questions about sets."""
    outstanding: set[int] = field(default_factory=set)
    """Questions asked that have no answer, skip or tie yet."""

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
        """Scores between 0 and 1 for every measurement, in ascending order; empty if there are none."""
        found = [sorted(self.scores.get(place, ())) for place in range(len(self.pulls))]
        return found if any(found) else ()

    @property
    def orders(self) -> Orders:
        """Answers to questions about sets, for every question of the plan in ascending order; empty if none."""
        found = [sorted(self.told.get(place, ())) for place in range(len(self.pulls))]
        return found if any(found) else ()

    @property
    def filed(self) -> int:
        """Number of answers that count."""
        others = sum(len(scores) for scores in self.scores.values()) + sum(len(orders) for orders in self.told.values())
        return int(self.pulls.sum()) + others

    @classmethod
    def settled(cls, record: StageRecord) -> "StageProgress":
        """A stage that was evaluated, of which nothing is left to ask or to wait for."""
        return cls(
            record.plan,
            np.zeros_like(record.pulls),
            record.pulls,
            record.wins,
            {place: list(scores) for place, scores in enumerate(record.partial)},
            {place: list(told) for place, told in enumerate(record.orders)},
        )

    def place(self, measurement: int) -> int:
        """Where a measurement is in the arrays."""
        return int(np.flatnonzero(self.plan.measurements == measurement)[0])

    def as_it_stands(self, questions: Mapping[int, Question]) -> OpenStage:
        """A copy for simulations, with what is still to be answered."""
        left = self.unasked.copy()
        for question in self.outstanding:
            left[self.place(questions[question].measurement)] += 1
        return OpenStage(self.plan, self.pulls.copy(), self.wins.copy(), left, self.partial, self.orders)
