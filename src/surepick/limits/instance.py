"""A problem with its truth: what can be measured, among which items the best is sought, and under which θ*."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick.design import Rows
from surepick.design.cutting_planes import WhitenedBasis, whitened_basis
from surepick.design.vector_families import FamilyUnion, refuse_unmeasurable
from surepick.errors import InvalidInput
from surepick.glm import variance

LARGEST_LOGIT = 700.0
"""Beyond, the variance of an answer is zero to the precision of numbers."""


@dataclass(frozen=True, eq=False)
class Instance:
    """Measurement vectors X, items Z and θ*, with a best item that answers can tell from every other.

    An answer to x is a yes with probability 1/(1+exp(−xᵀθ*)). What cannot be decided by any number of questions (a tie
    for the best, a difference no measurement sees) is refused when the instance is made.

    >>> Instance([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]], [0.5, 0.2]).gaps.round(3).tolist()
    [0.0, 0.3]
    """

    measurements: Floats
    items: Floats
    theta: Floats
    best: int
    gaps: Floats
    """By how much every item is worse than the best, in log-odds; zero for the best itself."""
    basis: WhitenedBasis
    """Coordinates in which the mean of xxᵀ is the identity."""

    def __init__(
        self, measurements: ArrayLike, items: ArrayLike, theta: ArrayLike, *, names: Sequence[str] | None = None
    ) -> None:
        """`names` are what messages call the items; their numbers by default."""
        vectors = validate.matrix("items", items)
        rows = validate.matrix("measurements", measurements, columns=vectors.shape[1])
        truth = validate.vector("theta", theta, length=vectors.shape[1])
        if len(vectors) < 2:
            raise InvalidInput("items holds 1 item, which is the best already; pass at least two.")
        best = int(np.argmax(vectors @ truth))
        gaps = (vectors[best] - vectors) @ truth
        _refuse_ties(vectors, truth, best, gaps, names)
        largest = float(np.max(np.abs(rows @ truth)))
        if largest > LARGEST_LOGIT:
            raise InvalidInput(
                f"theta makes an answer certain to the precision of numbers, with log-odds of {largest:.4g}; they must "
                f"not exceed {LARGEST_LOGIT:g}, so check the units of theta and of the features."
            )
        basis = whitened_basis(Rows(rows, name="measurements"))
        refuse_unmeasurable(FamilyUnion([Rows(vectors, reference=vectors[best], name="items")]), basis.span)
        for name, value in (
            ("measurements", rows),
            ("items", vectors),
            ("theta", truth),
            ("best", best),
            ("gaps", gaps),
            ("basis", basis),
        ):
            object.__setattr__(self, name, value)

    @cached_property
    def logits(self) -> Floats:
        """xᵀθ* of every measurement vector."""
        return np.asarray(self.measurements @ self.theta)

    @cached_property
    def variances(self) -> Floats:
        """s(xᵀθ*), the variance of one answer to every measurement vector."""
        return variance(self.logits)

    @property
    def kappa(self) -> float:
        """κ₀ = min over x of s(xᵀθ*), over the measurement vectors."""
        return float(self.variances.min())

    @property
    def smallest_gap(self) -> float:
        """Δ, by how much the second best is worse."""
        return float(np.delete(self.gaps, self.best).min())

    @property
    def rivals(self) -> Integers:
        """All items but the best."""
        return np.delete(np.arange(len(self.items)), self.best)

    @property
    def informative(self) -> Rows:
        """The measurement vectors stretched by √s(xᵀθ*): a linear design on them is a logistic one at θ*."""
        return Rows(self.measurements, factors=np.sqrt(self.variances), name="measurements")


def _refuse_ties(items: Floats, theta: Floats, best: int, gaps: Floats, names: Sequence[str] | None) -> None:
    """Gaps must exceed the rounding of the scores they are differences of."""
    noise = 1e-14 * (np.abs(items) + np.abs(items[best])) @ np.abs(theta)
    tied = np.flatnonzero((gaps <= noise) & (np.arange(len(items)) != best))
    if tied.size:
        first, second = (str(place) if names is None else names[place] for place in (best, tied[0]))
        raise InvalidInput(
            f"Items {first} and {second} tie for the best under theta with a score of {items[best] @ theta:.6g}, so no "
            "number of questions tells which is best; leave one of them out, or pass another theta."
        )
