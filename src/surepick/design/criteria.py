"""The criteria a design can be best for, one function each."""

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick.design.cutting_planes import MinimaxSearch, determinant_search, whitened_basis
from surepick.design.result import Design, DesignStatus, SearchLimits, SearchResult, measurements_of, start_weights
from surepick.design.vector_families import FamilyUnion, Pairs, Rows, VectorFamily
from surepick.errors import InvalidInput
from surepick.linalg import threads_for

ROUNDS = 100
"""Default of `max_rounds`; five to ten rounds are usual."""


def g_optimal(
    measurements: ArrayLike | VectorFamily,
    *,
    gap: float = 0.01,
    start: Design | ArrayLike | None = None,
    max_rounds: int = ROUNDS,
    max_seconds: float | None = None,
) -> Design:
    """Weights that minimise max over x of xᵀH(λ)⁻¹x: every measurement vector is predicted equally well.

    By the theorem of Kiefer and Wolfowitz the optimum is the rank of the vectors, and is reached by the weights of
    largest determinant, which are what is computed. O(n d²) time a round, memory O(n) beyond the data.

    >>> g_optimal([[1.0, 0.0], [0.0, 2.0], [0.5, 0.5]], gap=1e-6).weights.round(3).tolist()
    [0.5, 0.5]
    """
    return _determinant("g", measurements, gap, start, max_rounds, max_seconds)


def d_optimal(
    measurements: ArrayLike | VectorFamily,
    *,
    gap: float = 0.01,
    start: Design | ArrayLike | None = None,
    max_rounds: int = ROUNDS,
    max_seconds: float | None = None,
) -> Design:
    """Weights that minimise det(H(λ))^(−1/r), r the rank: the smallest confidence ellipsoid.

    Where the vectors do not span the space the determinant is that on their span. With G = max xᵀH⁻¹x, no weights
    attain less than r/G times the value, because det(H⁻¹H')^(1/r) ≤ tr(H⁻¹H')/r ≤ G/r for any H' of weights.
    """
    return _determinant("d", measurements, gap, start, max_rounds, max_seconds)


def xy_optimal(
    measurements: ArrayLike | VectorFamily,
    directions: ArrayLike,
    *,
    gap: float = 0.01,
    start: Design | ArrayLike | None = None,
    max_rounds: int = ROUNDS,
    max_seconds: float | None = None,
) -> Design:
    """Weights on the measurement vectors that minimise the largest yᵀH(λ)⁻¹y over the given directions y.

    O((n + k) d²) time a round for n measurement vectors and k directions, memory O(n + k) beyond the data.
    """
    return _minimax("xy", measurements, [Rows(directions)], gap, start, max_rounds, max_seconds)


def pairs_optimal(
    measurements: ArrayLike | VectorFamily,
    items: ArrayLike,
    *,
    gap: float = 0.01,
    start: Design | ArrayLike | None = None,
    max_rounds: int = ROUNDS,
    max_seconds: float | None = None,
) -> Design:
    """Weights that minimise the largest (z − z')ᵀH(λ)⁻¹(z − z') over all pairs of items.

    The pairs are never listed: memory is O(n + k) rows for n vectors and k items. A round costs O(n d² + k d²) and
    up to 4096·k·d for guesses; the proof at the end O(k² d), run as products of blocks in single precision.
    """
    if isinstance(measurements, Pairs) and measurements.scale == 1.0 and np.array_equal(measurements.items, items):
        # What can be measured is what is to be known: then the theorem of Kiefer and Wolfowitz applies, and the
        # determinant is the easier problem (its bound is the rank, no certificate is needed).
        return _determinant("pairs", measurements, gap, start, max_rounds, max_seconds)
    return _minimax("pairs", measurements, [Pairs(items)], gap, start, max_rounds, max_seconds)


def gap_optimal(
    measurements: ArrayLike | VectorFamily,
    items: ArrayLike,
    *,
    best: int,
    gaps: ArrayLike,
    gap: float = 0.01,
    start: Design | ArrayLike | None = None,
    max_rounds: int = ROUNDS,
    max_seconds: float | None = None,
) -> Design:
    """Weights that minimise the largest ‖z_best − z‖²_{H(λ)⁻¹} / gap_z²: what an oracle that knows the gaps asks.

    `gaps` has one entry per item: by how much it is worse than the best. The entry of the best itself is ignored.
    """
    vectors = validate.matrix("items", items)
    if len(vectors) < 2:
        raise InvalidInput("items holds 1 item, which is the best already; pass at least two.")
    if not 0 <= best < len(vectors):
        raise InvalidInput(f"best must be the index of an item, 0 to {len(vectors) - 1}, got {best!r}.")
    differences = validate.vector("gaps", gaps, length=len(vectors)).copy()
    differences[best] = np.inf
    bad = np.flatnonzero(differences <= 0)
    if bad.size:
        raise InvalidInput(
            f"gaps must be greater than 0 for every item but the best, got {differences[bad[0]]:g} for item {bad[0]}; "
            "no number of questions separates equals, so use max(gap, epsilon)."
        )
    # ‖z_best − z‖²/gap² is the squared length of the row scaled by 1/gap; 1/inf leaves the best itself out.
    family = Rows(vectors, reference=vectors[best], factors=1.0 / differences, name="items")
    return _minimax("gap", measurements, [family], gap, start, max_rounds, max_seconds)


def max_optimal(
    measurements: ArrayLike | VectorFamily,
    families: Sequence[VectorFamily],
    *,
    gap: float = 0.01,
    start: Design | ArrayLike | None = None,
    max_rounds: int = ROUNDS,
    max_seconds: float | None = None,
) -> Design:
    """Weights that minimise the largest of several criteria, each with its own scale.

    For instance max(a · max_x ‖x‖², b · max_pairs ‖z − z'‖²) is `[Rows(X, scale=a), Pairs(Z, scale=b)]`.
    """
    if len(families) == 0:
        raise InvalidInput("families is empty; pass at least one of Rows(...) and Pairs(...).")
    return _minimax("max", measurements, list(families), gap, start, max_rounds, max_seconds)


def _minimax(
    criterion: str,
    measurements: ArrayLike | VectorFamily,
    families: Sequence[VectorFamily],
    gap: float,
    start: Design | ArrayLike | None,
    max_rounds: int,
    max_seconds: float | None,
) -> Design:
    began = time.perf_counter()
    limits = _limits(gap, max_rounds, max_seconds, began)
    family = measurements_of(measurements)
    for directions in families:
        if directions.dimension != family.dimension:
            raise InvalidInput(
                f"Directions and measurement vectors must have the same number of columns, got {directions.dimension} "
                f"and {family.dimension}."
            )
    first = None if start is None else start_weights(start, family)
    with threads_for(0.0):
        outcome = MinimaxSearch(family, FamilyUnion(families)).run(limits, first)
    return _design(criterion, family, outcome, outcome.value, outcome.lower_bound, limits, began)


def _determinant(
    criterion: str,
    measurements: ArrayLike | VectorFamily,
    gap: float,
    start: Design | ArrayLike | None,
    max_rounds: int,
    max_seconds: float | None,
) -> Design:
    began = time.perf_counter()
    limits = _limits(gap, max_rounds, max_seconds, began)
    family = measurements_of(measurements)
    first = None if start is None else start_weights(start, family)
    with threads_for(0.0):
        basis = whitened_basis(family)
        outcome = determinant_search(family, basis, limits, first)
    if criterion != "d":
        return _design(criterion, family, outcome, outcome.value, outcome.lower_bound, limits, began)
    # det is taken on the span; the bound is value·r/G by the inequality of means (docs/design.md, "The certificate").
    rows = basis.span.coordinates(family.vectors(outcome.members))
    _, logarithm = np.linalg.slogdet((rows * outcome.weights[:, None]).T @ rows)
    value = float(np.exp(-logarithm / basis.rank))
    return _design(criterion, family, outcome, value, value * basis.rank / outcome.value, limits, began)


def _limits(gap: float, max_rounds: int, max_seconds: float | None, began: float) -> SearchLimits:
    seconds = np.inf if max_seconds is None else validate.positive("max_seconds", max_seconds)
    return SearchLimits(validate.positive("gap", gap), validate.whole("max_rounds", max_rounds), began + seconds)


def _design(
    criterion: str,
    family: VectorFamily,
    outcome: SearchResult,
    value: float,
    bound: float,
    limits: SearchLimits,
    began: float,
) -> Design:
    # Sorted by index, so that a design does not depend on the order in which vectors joined.
    order = np.lexsort((outcome.members[:, 1], outcome.members[:, 0]))
    members = outcome.members[order]
    reached = value <= bound * (1.0 + limits.gap)
    return Design(
        criterion=criterion,
        support=members if isinstance(family, Pairs) else members[:, 0],
        weights=outcome.weights[order],
        value=value,
        lower_bound=bound,
        status=DesignStatus.CONVERGED if reached else DesignStatus.NOT_CONVERGED,
        iterations=outcome.iterations,
        rounds=outcome.rounds,
        seconds=time.perf_counter() - began,
        size=len(family),
        certificate=outcome.certificate,
    )
