"""What every method of this package returns, and the questions it asks of the caller."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from surepick._arrays import Floats
from surepick.display import Displayed, View
from surepick.errors import InvalidInput
from surepick.glm import Tally
from surepick.guarantee import Guarantee

Data = Literal["adaptive", "fixed"]
"""Whether the questions may have depended on earlier answers ("adaptive") or did not ("fixed")."""

Tallies = Tally | Sequence[Tally]
"""Counts, or batches of counts in the order in which they were answered."""


@dataclass(frozen=True)
class Condition:
    """Something a method's guarantee needs, and whether it holds here."""

    name: str
    holds: bool
    detail: str
    """One sentence; where the condition fails, with the remedy."""


@dataclass(frozen=True, repr=False)
class Intervals(Displayed):
    """Intervals for xᵀθ* at every query, all at once with probability 1 − delta unless the method says otherwise."""

    method: str
    guarantee: Guarantee
    statement: str
    """What is claimed, and where it is proved."""
    delta: float
    centre: Floats
    low: Floats
    high: Floats
    conditions: tuple[Condition, ...] = ()
    details: Mapping[str, float] = field(default_factory=dict)
    """Numbers behind the widths, such as xi and the radius."""
    order_seed: int | None = None
    """The seed of the random order of the answers, for methods that put them into one."""

    def view(self) -> View:
        """The interval of every query."""
        return View(
            f"{len(self.centre):,} intervals by the method {self.method}, delta = {self.delta:g}, {self.guarantee}",
            {
                "query": list(range(len(self.centre))),
                "low": self.low.tolist(),
                "centre": self.centre.tolist(),
                "high": self.high.tolist(),
            },
            tuple(filter(None, (self.statement, self.reason))),
            labels="query",
            values="centre",
            ends=("low", "high"),
        )

    @property
    def valid(self) -> bool:
        """Whether every condition of the method holds."""
        return all(condition.holds for condition in self.conditions)

    @property
    def reason(self) -> str:
        """Why it is not valid, with the remedy; empty if it is."""
        return " ".join(condition.detail for condition in self.conditions if not condition.holds)

    @property
    def half_width(self) -> Floats:
        """Half the length of each interval."""
        return (self.high - self.low) / 2


def batches_of(answers: Tallies) -> list[Tally]:
    """The answers as a list of tallies of one dimension, whatever form they came in."""
    # Anything else goes into the list as it is, to be refused below by its name.
    batches = [answers] if isinstance(answers, Tally) else list(answers) if isinstance(answers, Sequence) else [answers]
    if len(batches) == 0:
        raise InvalidInput("There are no answers (an empty list of batches); at least one is needed.")
    for batch in batches:
        if not isinstance(batch, Tally):
            raise InvalidInput(
                f"answers must be a Tally or a list of them, got {type(batch).__name__}; "
                "build one from rows of 0 and 1 with Tally.from_answers(vectors, answers)."
            )
    if len({batch.dimension for batch in batches}) > 1:
        lengths = sorted({batch.dimension for batch in batches})
        raise InvalidInput(f"All batches must have vectors of one length, got lengths {lengths}.")
    return batches


def pooled(answers: Tallies) -> Tally:
    """All answers as one tally; batches lose their order."""
    batches = batches_of(answers)
    if len(batches) == 1:
        return batches[0]
    # Merged, because theorems count distinct vectors: the same question in two batches is one.
    return Tally(
        np.vstack([batch.vectors for batch in batches]),
        np.concatenate([batch.pulls for batch in batches]),
        np.concatenate([batch.wins for batch in batches]),
    ).merged()


def unbounded(
    method: str, guarantee: Guarantee, statement: str, delta: float, queries: int, condition: Condition
) -> Intervals:
    """The result where a method lacks something it needs: the whole line, and why."""
    # No interval is narrower than the line, so coverage holds though a condition does not.
    whole = np.full(queries, np.inf)
    return Intervals(method, guarantee, statement, delta, whole * np.nan, -whole, whole, (condition,))


def around(centre: Floats, half_width: Floats) -> tuple[Floats, Floats]:
    """Symmetric ends; where there is no centre or no finite width, the whole line."""
    # NaN − ∞ would be NaN, which compares false with everything; an end that is not known is infinite instead.
    known = np.isfinite(centre) & np.isfinite(half_width)
    low = np.where(known, centre - half_width, -np.inf)
    high = np.where(known, centre + half_width, np.inf)
    return low, high
