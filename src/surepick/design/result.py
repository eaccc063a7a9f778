"""What a design computation returns, and the proof of its lower bound."""

import time
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick.design.rounding import Allocation, apportion
from surepick.design.vector_families import Pairs, Rows, VectorFamily
from surepick.display import Displayed, View
from surepick.errors import InvalidInput
from surepick.linalg import square_root


class DesignStatus(StrEnum):
    """How the search for a design ended; the value is the JSON field `status`."""

    CONVERGED = "converged"
    NOT_CONVERGED = "not converged"

    @property
    def sentence(self) -> str:
        """What it means and what to do about it."""
        return {
            DesignStatus.CONVERGED: "The design is within the requested gap of the best possible, by proof.",
            DesignStatus.NOT_CONVERGED: (
                "The requested gap was not reached: the value and the bound hold, but better designs may exist; "
                "allow more rounds or seconds, or accept the gap reported."
            ),
        }[self]


@dataclass(frozen=True)
class Certificate:
    """Why no design does better: weights w on directions y, and a symmetric matrix M.

    For every design λ, max over y of yᵀH(λ)⁻¹y ≥ (Σ w yᵀMy)² / max over x of Σ w (xᵀMy)². See docs/design.md for the
    proof; it needs nothing of how w and M were found.
    """

    directions: Floats
    weights: Floats
    matrix: Floats
    members: Integers
    """Which directions they are: (family, i, j), i = j for a row of a matrix."""

    def lower_bound(self, measurements: ArrayLike | VectorFamily) -> float:
        """Compute the bound again from the data; O(n d²) for n measurement vectors."""
        family = measurements_of(measurements)
        image = self.directions @ self.matrix
        attained = float(self.weights @ np.einsum("ij,ij->i", image, self.directions))
        # g_x = xᵀ(Σ w Myyᵀ M)x: the squared length of x under a square root of the matrix in brackets.
        spread = (image * self.weights[:, None]).T @ image
        return attained**2 / family.maximum(square_root(spread), 0.0)[0]


@dataclass(frozen=True, repr=False)
class Design(Displayed):
    """Weights on measurement vectors, what they achieve, and a proof of how far that is from the best."""

    criterion: str
    support: Integers
    """Indices of the measurement vectors with positive weight; rows (i, j) where all pairs are measurable."""
    weights: Floats
    """Positive and summing to one, in the order of the support."""
    value: float
    """The criterion attained by these weights, over all directions."""
    lower_bound: float
    """No weights attain less."""
    status: DesignStatus
    iterations: int
    """Newton steps in total."""
    rounds: int
    """How often the active vectors and directions were changed."""
    seconds: float
    size: int
    """Number of measurement vectors the design could choose from."""
    certificate: Certificate | None = None
    """Proof of the lower bound; None for `g` and `d`, where it is the theorem of Kiefer and Wolfowitz."""

    def view(self) -> View:
        """The questions of the design, the largest weight first."""
        order = np.argsort(-self.weights, kind="stable")
        pairs = self.support.ndim == 2
        return View(
            f"A design for the criterion {self.criterion}: value {self.value:.4g}, at most {100 * self.gap:.2g}% above "
            f"the best possible; {len(self.weights):,} of {self.size:,} questions",
            {
                "question": [
                    " − ".join(map(str, self.support[place])) if pairs else int(self.support[place]) for place in order
                ],
                "weight": self.weights[order].tolist(),
            },
            (self.status.sentence,),
            labels="question",
            values="weight",
        )

    @property
    def gap(self) -> float:
        """How far the value may be above the best possible, relatively."""
        return self.value / self.lower_bound - 1.0

    @property
    def converged(self) -> bool:
        """Whether the requested gap was reached."""
        return self.status is DesignStatus.CONVERGED

    def dense(self) -> Floats:
        """The weights of all measurement vectors in their order, zeros included."""
        if self.support.ndim != 1:
            raise InvalidInput("A design over all pairs has no dense form; use support and weights.")
        result = np.zeros(self.size)
        result[self.support] = self.weights
        return result

    def round(self, n: int) -> Allocation:
        """Whole numbers of measurements summing to n, by efficient apportionment; see `apportion`."""
        return apportion(self.weights, n)


@dataclass(frozen=True)
class SearchLimits:
    """When a search stops."""

    gap: float
    rounds: int
    deadline: float

    def exceeded(self, rounds: int) -> bool:
        """Whether no further round may begin."""
        return rounds >= self.rounds or time.perf_counter() > self.deadline


@dataclass(frozen=True)
class SearchResult:
    """What a search found: weights on members of the measurement family, and what is proved about them."""

    members: Integers
    weights: Floats
    value: float
    lower_bound: float
    iterations: int
    rounds: int
    certificate: Certificate | None


def measurements_of(value: ArrayLike | VectorFamily) -> VectorFamily:
    """A family as it is; anything else is read as a matrix whose rows are the measurement vectors."""
    if isinstance(value, Rows | Pairs):
        return value
    return Rows(cast("ArrayLike", value), name="measurements")


def start_weights(start: "Design | ArrayLike", family: VectorFamily) -> tuple[Integers, Floats]:
    """Members and positive weights of a warm start."""
    if isinstance(start, Design):
        if start.size != len(family):
            raise InvalidInput(
                f"start is a design over {start.size} measurement vectors, but there are {len(family)}; "
                "leave it out where the vectors have changed."
            )
        members = start.support if start.support.ndim == 2 else np.column_stack([start.support] * 2)
        return members, start.weights
    if isinstance(family, Pairs):
        raise InvalidInput("start must be a design where all pairs are measurable, got a list of weights.")
    weights = validate.vector("start", start, length=len(family))
    if np.any(weights < 0) or not weights.any():
        raise InvalidInput(
            f"start must be weights, none negative and not all zero, got a smallest of {weights.min():g} and a sum of "
            f"{weights.sum():g}; pass a design or leave it out."
        )
    chosen = np.flatnonzero(weights)
    return np.column_stack([chosen, chosen]).astype(np.int64), weights[chosen] / weights.sum()
