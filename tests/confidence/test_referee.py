"""What the proof of the corrected theorem asks of the code (docs/theory.md, section 3)."""

import math

import numpy as np
import pytest

from surepick import InvalidInput, Tally, fit
from surepick.confidence import interval_corrected
from surepick.confidence.theorem import Budget, direction_radius, norm_radius, radii

TALLY = Tally([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]], pulls=[900, 800, 700], wins=[500, 300, 350])


def test_a_penalised_or_constrained_fit_is_refused() -> None:
    for other in (fit(TALLY, ridge=1.0), fit(TALLY, norm_bound=0.05), fit(TALLY, equality=([1.0, 0.0], 0.5))):
        with pytest.raises(InvalidInput, match="plain fit"):
            interval_corrected(TALLY, [[1.0, 0.0]], data="fixed", norm_bound=1.0, fitted=other)


@pytest.mark.parametrize("tolerance", [2.0, 0.3, 1e-9])
def test_an_inexact_fit_is_paid_for(tolerance: float) -> None:
    """Around a rough fit the interval still holds all that the exact one proves, at the same bound of xi."""
    rough, exact = (fit(TALLY, tolerance=each) for each in (tolerance, 1e-12))
    queries = np.array([[1.0, 0.0], [1.0, -1.0]])
    about = interval_corrected(TALLY, queries, data="fixed", norm_bound=1.0, fitted=rough)
    from_exact = interval_corrected(TALLY, queries, data="fixed", norm_bound=1.0, fitted=exact)
    moved = np.abs(queries @ (rough.theta - exact.theta))
    assert np.all(about.half_width >= from_exact.half_width * (1 - 1e-3) + moved * 0.5)
    assert (tolerance < 1e-3) == (np.max(moved) < 1e-6)


def test_union_and_norm_agree_where_their_radii_do() -> None:
    """With d = 1 and the printed budget τ equals b up to rounding, which must not look like a failed burn-in."""
    for xi in np.geomspace(1e-4, 0.25, 60):
        for delta in (0.3, 0.05, 1e-3, 1e-9):
            budget = Budget.as_in_the_paper(delta, 1)
            product = xi * norm_radius(xi, 1, budget.norm_nats)
            found = radii(xi, 1, budget)
            if product < 1 - 1e-6:
                assert found is not None
                assert found.shift == pytest.approx(-math.log1p(-product), rel=1e-6)


def test_no_query_radius_exceeds_the_ellipsoid() -> None:
    budget = Budget.split("norm", 0.05, 0.5, asked_lines=3, query_lines=10**9)
    found = radii(0.02, 2, budget)
    assert found is not None
    assert direction_radius(0.02, budget.direction_nats) > norm_radius(0.02, 2, budget.norm_nats)
    assert found.query == found.ellipsoid
