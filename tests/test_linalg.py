"""Spans, factors, norms and lines, indifferent to the units of the columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surepick import InvalidInput
from surepick.linalg import column_scale, distinct_lines, factor, gram_matrix, norms, span_of

UNITS = [(1.0,) * 4, (1e60, 1.0, 1e-60, 1e30), (1e-90, 1e90, 1.0, 1.0), (1.0, 1e8, 1e-8, 1e16)]


def collinear(rng, rows=12):
    """Four columns of rank two: the third is the sum of the first two, the last is zero."""
    base = rng.normal(size=(rows, 2))
    return np.column_stack([base, base.sum(axis=1), np.zeros(rows)])


@pytest.mark.parametrize("units", UNITS)
def test_the_span_does_not_depend_on_units(rng, units):
    rows = collinear(rng) * units
    span = span_of(rows)
    assert (span.rank, span.is_full) == (2, False)
    assert span.contains(rows).all()
    np.testing.assert_allclose(span.basis.T @ span.basis, np.eye(2), atol=1e-14)
    back = span.embed(span.coordinates(rows))
    np.testing.assert_allclose(back / units, rows / units, atol=1e-9)


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize(
    ("query", "inside"),
    [
        ((1, 0, 1, 0), True),
        ((0, -2, -2, 0), True),
        ((0, 0, 0, 0), True),
        ((1, 1, 2 + 1e-9, 0), True),
        ((1, 0, 0, 0), False),
        ((1, 1, 2.001, 0), False),
        ((1, 0, 1, 1e-3), False),
    ],
)
def test_membership_does_not_depend_on_units(rng, units, query, inside):
    assert span_of(collinear(rng) * units).contains(np.array([query]) * units)[0] == inside


def test_fewer_rows_than_columns_and_no_rows_at_all():
    assert span_of(np.array([[1.0, 2.0, 3.0]])).rank == 1
    nothing = span_of(np.zeros((3, 2)))
    assert nothing.rank == 0
    assert nothing.contains(np.array([[0.0, 0.0], [1e-9, 0.0]])).tolist() == [True, False]


def test_columns_repeated_in_units_too_different_are_refused_or_right(rng):
    base = rng.normal(size=(20, 2))
    for exponent in range(0, 100, 4):
        rows = np.column_stack([base, base[:, 0]]) * [10.0**exponent, 1.0, 10.0 ** (exponent / 2)]
        if exponent > 40:
            with pytest.raises(InvalidInput, match="scale them to similar size"):
                span_of(rows)
        elif exponent < 20:
            span = span_of(rows)
            np.testing.assert_allclose(span.embed(span.coordinates(rows))[:, 1], rows[:, 1], atol=1e-6)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_rank_is_that_of_the_factors(dimension, rank, seed):
    rng = np.random.default_rng(seed)
    rank = min(rank, dimension)
    rows = rng.normal(size=(15, rank)) @ rng.normal(size=(rank, dimension)) * 10.0 ** rng.uniform(-50, 50, dimension)
    span = span_of(rows)
    assert span.rank == rank
    assert span.contains(rows).all()
    if rank < dimension:
        assert not span.contains(rng.normal(size=(1, dimension)) * column_scale(rows)).any()


def test_long_data_are_passed_over_in_blocks(rng):
    rows, weights = rng.normal(size=(9001, 3)), rng.uniform(size=9001)
    np.testing.assert_allclose(gram_matrix(rows, weights), (rows.T * weights) @ rows, rtol=1e-12)
    information = gram_matrix(rows)
    direct = np.sqrt(np.einsum("ij,jk,ik->i", rows, np.linalg.inv(information), rows))
    np.testing.assert_allclose(factor(information).inverse_norms(rows), direct, rtol=1e-10)


@pytest.mark.parametrize("units", [(1.0, 1.0, 1.0), (1e60, 1.0, 1e-60), (1e-100, 1.0, 1e100)])
def test_a_factor_does_not_depend_on_units(rng, units):
    rows = rng.normal(size=(10, 3))
    plain, scaled = factor(gram_matrix(rows)), factor(gram_matrix(rows * units))
    right = rng.normal(size=3)
    np.testing.assert_allclose(scaled.inverse_norms(rows * units), plain.inverse_norms(rows), rtol=1e-10)
    np.testing.assert_allclose(scaled.solve(right * units) * units, plain.solve(right), rtol=1e-10)
    assert scaled.inverse_norm((rows * units)[0]) == pytest.approx(plain.inverse_norm(rows[0]), rel=1e-10)


@pytest.mark.parametrize(
    "matrix", [np.zeros((2, 2)), np.ones((2, 2)), np.diag([1.0, -1.0]), np.diag([1.0, np.inf]), np.diag([1.0, np.nan])]
)
def test_what_cannot_be_factored_is_said_to_be_so(matrix):
    with np.errstate(invalid="ignore"):
        assert factor(matrix) is None


def test_lengths_neither_overflow_nor_underflow():
    np.testing.assert_allclose(norms(np.array([[3e200, 4e200], [3e-200, 4e-200], [0, 0]])), [5e200, 5e-200, 0])
    np.testing.assert_allclose(norms(np.array([[3.0, 1.0], [4.0, 1.0]]), axis=0), [5.0, np.sqrt(2)])


def test_a_line_is_counted_once_whatever_the_multiple(rng):
    rows = rng.normal(size=(20, 3))
    multiples = np.vstack([rows, -rows, 3.7 * rows, rows * 1e50, np.zeros((2, 3))])
    assert len(distinct_lines(rows)) == 20
    assert 20 <= len(distinct_lines(multiples)) <= 21  # a coordinate on the edge of rounding may count twice
    assert distinct_lines(np.zeros((2, 3))).shape == (0, 3)


@pytest.mark.parametrize("units", [(1.0, 1.0), (1.7e18, 1.0), (1e100, 1e-100), (1e-90, 1.0)])
def test_different_lines_are_never_counted_as_one(units):
    rows = np.column_stack([np.ones(50), np.arange(50)]) * units
    assert len(distinct_lines(rows)) == 50


def test_column_scales_are_powers_of_two():
    scale = column_scale(np.array([[3.0, 0.0, -1e-60], [-5.0, 0.0, 1e-61]]))
    assert scale[1] == 0
    assert np.all(np.frexp(scale[[0, 2]])[0] == 0.5)
    assert np.all(scale[[0, 2]] >= [5.0, 1e-60])
