"""What all intervals centred at the maximum-likelihood estimate share: checked input, the fit, and its conditions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Floats
from surepick.confidence.result import Condition, Data, Intervals, Tallies, around, pooled
from surepick.errors import InvalidInput
from surepick.glm import Fit, Tally, fit
from surepick.guarantee import Guarantee


@dataclass(frozen=True)
class AtEstimate:
    """One call of a method: the asked vectors with their answers, the queries, and the fit in the middle."""

    delta: float
    tally: Tally
    points: Floats
    estimate: Fit

    @classmethod
    def of(cls, answers: Tallies, queries: ArrayLike, delta: float, fitted: Fit | None) -> "AtEstimate":
        """Check what the caller gave, and fit unless that was done."""
        delta = validate.probability("delta", delta)
        tally = pooled(answers).asked()
        points = validate.matrix("queries", queries, columns=tally.dimension)
        return cls(delta, tally, points, _plain_fit(tally, fitted))

    @property
    def nowhere(self) -> Floats:
        """The width of every query before anything is known."""
        return np.full(len(self.points), np.inf)

    @property
    def rank(self) -> int:
        """Dimension of the span of the asked vectors."""
        return self.estimate.span.rank

    def conditions(self) -> list[Condition]:
        """That the estimate exists, and that it says something of every query."""
        outside = int(np.sum(~self.estimate.span.contains(self.points)))
        return [
            Condition("estimate exists", self.estimate.converged, self.estimate.status.sentence),
            Condition(
                "queries in the span",
                outside == 0,
                f"{outside} of {len(self.points)} queries lie outside the span of the asked vectors, where nothing is "
                "known; ask about vectors that cover them."
                if outside
                else "Every query lies in the span of the asked vectors.",
            ),
        ]

    def intervals(
        self,
        method: str,
        guarantee: Guarantee,
        statement: str,
        width: Floats,
        conditions: Sequence[Condition],
        details: Mapping[str, float],
    ) -> Intervals:
        """Estimate ± width; where there is no estimate or no finite width, the whole line."""
        centre = self.points @ self.estimate.theta
        low, high = around(centre, width)
        return Intervals(
            method=method,
            guarantee=guarantee,
            statement=statement,
            delta=self.delta,
            centre=centre,
            low=low,
            high=high,
            conditions=tuple(conditions),
            details={"d": float(self.rank)} | dict(details),
        )


def fixed_design(data: Data) -> Condition:
    """The condition of all fixed-design theorems."""
    validate.one_of("data", data, ("adaptive", "fixed"))
    return Condition(
        "fixed design",
        data == "fixed",
        "The answers are independent given the questions."
        if data == "fixed"
        else "The questions may have depended on the answers, which this theorem does not allow; "
        "use the anytime method, or say data='fixed' if they did not.",
    )


def _plain_fit(tally: Tally, fitted: Fit | None) -> Fit:
    """The maximum-likelihood fit, the one passed in if it is one: theorems on it say nothing of a penalised fit."""
    if fitted is None:
        return fit(tally)
    if not isinstance(fitted, Fit):
        raise InvalidInput(f"fitted must be a Fit, as returned by surepick.fit, got {fitted!r}.")
    if fitted.ridge > 0 or (fitted.converged and fitted.multiplier != 0) or fitted.span.dimension != tally.dimension:
        raise InvalidInput(
            "fitted must be the plain fit of the same answers, without ridge, norm_bound or equality, got ridge "
            f"{fitted.ridge:g}, multiplier {fitted.multiplier:g}, {fitted.span.dimension} columns; "
            "leave it out to fit afresh."
        )
    return fitted
