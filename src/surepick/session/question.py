"""A question as a judge sees it."""

from dataclasses import dataclass
from typing import Any

from surepick._arrays import Floats


@dataclass(frozen=True, eq=False)
class Question:
    """One question: which of two items, or yes/no about one, or about a bare vector.

    The answer 1 means "the first" or "yes", and has probability 1/(1+exp(−vectorᵀθ*)).
    """

    id: int
    stage: int
    measurement: int
    """Row of the problem's measurements."""
    vector: Floats
    """That row, with the sign of the order shown."""
    first: str | None
    """The item shown first, or the one asked about; None for a bare vector."""
    second: str | None
    """The item shown second, if there is one."""
    swapped: bool
    """Whether the pair is shown in the reverse order of the problem's."""

    def to_json(self) -> dict[str, Any]:
        """What a judge needs to know."""
        return {"id": self.id, "stage": self.stage, "first": self.first, "second": self.second} | (
            {} if self.first is not None else {"vector": self.vector.tolist()}
        )
