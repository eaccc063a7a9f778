"""What is known of θ* before any answer, as a floor under the variance of every asked vector."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Floats
from surepick.confidence.result import Tallies
from surepick.errors import InvalidInput
from surepick.glm import Tally, variance
from surepick.linalg import Factor, factor, gram_matrix, norms


@dataclass(frozen=True)
class Knowledge:
    """Any of: ‖θ*‖ ≤ norm_bound; every asked vector has s(xᵀθ*) ≥ kappa; |xᵀθ*| ≤ logit_bounds, one for each vector.

    Where several are given, the best of them counts for each vector.
    """

    norm_bound: float | None = None
    kappa: float | None = None
    logit_bounds: ArrayLike | None = None

    def __post_init__(self) -> None:
        if self.norm_bound is not None:
            validate.positive("norm_bound", self.norm_bound)
        if self.kappa is not None and not 0 < validate.real("kappa", self.kappa) <= 0.25:
            raise InvalidInput(
                f"kappa is the smallest variance of an answer and lies in (0, 0.25], got {self.kappa!r}; "
                "an answer of probability p has variance p(1-p)."
            )

    @classmethod
    def for_asked(
        cls, answers: Tallies, norm_bound: float | None, kappa: float | None, logit_bounds: ArrayLike | None
    ) -> "Knowledge":
        """Knowledge of the asked vectors, from bounds given for all rows of one tally."""
        if logit_bounds is not None and np.isscalar(logit_bounds):
            logit_bounds = validate.nonnegative("logit_bounds", logit_bounds)
        elif logit_bounds is not None:
            if not isinstance(answers, Tally):
                raise InvalidInput(
                    "logit_bounds, one number per row, needs one tally, got a list of batches; add them up first."
                )
            logit_bounds = validate.vector("logit_bounds", logit_bounds, length=len(answers), tiny=True)[
                answers.pulls > 0
            ]
        return cls(norm_bound, kappa, logit_bounds)

    def __bool__(self) -> bool:
        return any(known is not None for known in (self.norm_bound, self.kappa, self.logit_bounds))

    def variance_floor(self, vectors: Floats) -> Floats:
        """A lower bound of s(xᵀθ*) for every vector; zero where nothing is known."""
        # s falls with |v|, so a bound of |xᵀθ*| is one of s(xᵀθ*) from below (docs/theory.md, section 4).
        floor = np.zeros(len(vectors))
        if self.norm_bound is not None:
            with np.errstate(over="ignore"):  # a bound beyond all numbers leaves nothing
                floor = np.maximum(floor, variance(self.norm_bound * norms(vectors)))
        if self.kappa is not None:
            floor = np.maximum(floor, self.kappa)
        if self.logit_bounds is not None:
            bounds = np.broadcast_to(np.asarray(self.logit_bounds, dtype=np.float64), (len(vectors),))
            bounds = validate.vector("logit_bounds", bounds, length=len(vectors), tiny=True)
            if np.any(bounds < 0):
                raise InvalidInput(f"logit_bounds bound |x'theta| and must not be negative, got {bounds.min():g}.")
            floor = np.maximum(floor, variance(bounds))
        return floor

    def information_floor(self, tally: Tally, coordinates: Floats) -> Factor | None:
        """Factor of Σ n·(variance floor)·xxᵀ ≤ H(θ*) in the given coordinates of the vectors; None if singular."""
        # Matrices are ordered as their weights: the inverse of this one bounds that of H(θ*) from above.
        weights = tally.pulls * self.variance_floor(tally.vectors)
        return factor(gram_matrix(coordinates, weights))
