"""Rounding: what is promised of it, in many random cases."""

import itertools

import numpy as np
import pytest

import surepick as sp
from surepick.design import apportion, g_optimal, reduce_support
from surepick.design.rounding import apportion_rows

CASES = 100_000


@pytest.mark.parametrize("points", range(1, 11))
def test_rounding_never_falls_below_its_promise(points):
    """The ratio promised is 1 − p/n; weights from even to extreme, n from p to 30p."""
    rng = np.random.default_rng(points)
    totals = np.floor(points * rng.choice([1.0, 1.1, 1.5, 2.0, 5.0, 30.0], size=CASES // 10))
    spread = rng.choice([0.0, 0.3, 1.0, 3.0], size=(CASES // 10, 1))
    shares = np.exp(spread * rng.normal(size=(CASES // 10, points)))
    shares /= shares.sum(axis=1, keepdims=True)
    counts = apportion_rows(shares, totals)
    assert np.array_equal(counts, np.round(counts))
    assert np.array_equal(counts.sum(axis=1), totals)
    assert counts.min() >= 1
    assert np.all(np.min(counts / shares, axis=1) / totals >= 1 - points / totals - 1e-12)
    for row in range(0, len(counts), 500):
        allocation = apportion(shares[row], int(totals[row]))
        assert np.array_equal(allocation.counts, counts[row])
        assert allocation.ratio >= allocation.promised - 1e-12


def test_no_other_counts_have_a_better_ratio():
    rng = np.random.default_rng(1)
    for _ in range(60):
        p = int(rng.integers(1, 5))
        n = int(rng.integers(p, p + 6))
        weights = rng.dirichlet(np.ones(p))
        every = (c for c in itertools.product(range(1, n + 1), repeat=p) if sum(c) == n)
        best = max(min(np.array(c) / (n * weights)) for c in every)
        allocation = apportion(weights, n)
        assert allocation.ratio == pytest.approx(best, rel=1e-12)
        assert allocation.ratio == pytest.approx(np.min(allocation.counts / (n * weights)), rel=1e-12)
        assert allocation.promised == 1 - p / n


def test_the_ratio_bounds_the_information_in_every_direction():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(40, 3))
    design = g_optimal(x)
    for n in (len(design.weights), 25, 100, 1000):
        allocation = design.round(n)
        rows = x[design.support]
        realised = (rows * allocation.counts[:, None]).T @ rows
        by_weight = n * (rows * design.weights[:, None]).T @ rows
        assert np.linalg.eigvalsh(realised - allocation.ratio * by_weight).min() >= -1e-9 * n
    assert allocation.total == 1000


def test_many_points_are_rounded_quickly_and_large_n_exactly():
    weights = np.random.default_rng(3).dirichlet(np.ones(2000))
    allocation = apportion(weights, 10**12)
    assert allocation.total == 10**12
    assert allocation.ratio >= 1 - 2000 / 10**12


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", ["random", "repeated", "flat"])
def test_fewer_points_carry_the_same_information(d, kind):
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(80, d))
    if kind == "repeated":
        rows = np.repeat(rows[:20], 4, axis=0)
    if kind == "flat":
        rows = np.column_stack([rows, rows @ np.ones(d)])
    weights = rng.dirichlet(np.full(80, 0.5))
    kept, fewer = reduce_support(rows, weights)
    assert len(kept) <= d * (d + 1) // 2 + 1
    assert fewer.min() > 0
    assert fewer.sum() == pytest.approx(1)
    assert (rows[kept] * fewer[:, None]).T @ rows[kept] == pytest.approx((rows * weights[:, None]).T @ rows, abs=1e-9)


def test_a_small_support_is_left_alone():
    kept, weights = reduce_support(np.eye(3), [0.2, 0.0, 0.8])
    assert kept.tolist() == [0, 2]
    assert weights == pytest.approx([0.2, 0.8])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: apportion([0.5, 0.5, 0.2], 2), "n = 2 measurements cannot cover the 3 points"),
        (lambda: apportion([0.5, 0.5, 0.2], 2), "take n of at least 3 (n = 30 keeps nine tenths"),
        (lambda: apportion([0.5, 0.5], 2.5), "n must be a whole number of at least 1, got 2.5"),
        (lambda: apportion([0.5, 0.5], 0), "at least 1, got 0"),
        (lambda: apportion([0.5, 0.0], 3), "leave out points without weight"),
        (lambda: apportion([0.5, np.nan], 3), "got nan"),
        (lambda: reduce_support(np.eye(2), [-1.0, 2.0]), "must not be negative"),
        (lambda: reduce_support(np.eye(2), [1.0]), "a list of 2 numbers"),
    ],
)
def test_bad_input_gets_a_sentence(call, sentence):
    with pytest.raises(sp.InvalidInput) as caught:
        call()
    assert sentence in str(caught.value)
