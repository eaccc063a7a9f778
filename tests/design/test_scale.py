"""The parts that make large designs possible: farthest pairs, blocks, threads, and what they cost."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surepick.design import Rows, gap_optimal, pairs_optimal
from surepick.design import vector_families as directions
from surepick.design.vector_families import PointCloud, diameter, farthest_pairs
from surepick.linalg import _pools, squared_lengths, threads_for, triangular_factor


def brute(points):
    return max(float(np.max(np.sum((points - point) ** 2, axis=1))) for point in points)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 10**6), st.sampled_from(["normal", "cauchy", "sphere", "ties", "offset"]), st.booleans())
def test_the_diameter_is_exact(seed, kind, knows):
    rng = np.random.default_rng(seed)
    n, r = int(rng.integers(2, 400)), int(rng.integers(1, 9))
    points = {
        "normal": lambda: rng.normal(size=(n, r)),
        "cauchy": lambda: rng.standard_cauchy(size=(n, r)),
        "sphere": lambda: (lambda p: p / np.linalg.norm(p, axis=1, keepdims=True))(rng.normal(size=(n, r))),
        "ties": lambda: rng.integers(0, 2, size=(n, r)).astype(float),
        "offset": lambda: rng.normal(size=(n, r)) + 1e6,
    }[kind]()
    truth = brute(points)
    cloud = PointCloud.of(points.copy())
    guess = farthest_pairs(cloud, np.array([0]))
    low = float(cloud.distances(guess[:, 0], guess[:, 1]).max())
    assert low <= truth * (1 + 1e-7)
    value, pairs = diameter(cloud, low * (1 - 1e-12) if knows else 0.0)
    assert value == pytest.approx(truth, rel=1e-7 if kind == "offset" else 1e-11)
    if not knows and truth > 0:
        assert float(cloud.distances(pairs[:, 0], pairs[:, 1]).max()) == pytest.approx(value, rel=1e-9)


def test_the_diameter_spans_blocks():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3000, 3))
    assert diameter(PointCloud.of(points.copy()))[0] == pytest.approx(brute(points), rel=1e-11)


def test_walking_from_promising_items_finds_the_design_that_looking_at_all_finds(monkeypatch):
    rng = np.random.default_rng(6)
    x, z = rng.normal(size=(300, 4)), rng.normal(size=(500, 4))
    everyone = pairs_optimal(x, z, gap=1e-3)
    monkeypatch.setattr(directions, "EVERY_ITEM", 10)
    walking = pairs_optimal(x, z, gap=1e-3)
    assert walking.converged
    assert walking.value == pytest.approx(everyone.value, rel=2e-3)


def test_a_guess_that_misses_the_farthest_pair_is_caught_by_the_proof(monkeypatch):
    """With a guess that only ever sees the first items, the value and the status must still be those of all items."""
    rng = np.random.default_rng(6)
    x, z = rng.normal(size=(100, 3)), np.concatenate([0.1 * rng.normal(size=(20, 3)), rng.normal(size=(30, 3))])
    honest = pairs_optimal(x, z, gap=1e-3)
    monkeypatch.setattr(directions, "farthest_pairs", lambda cloud, *_, **__: np.array([[0, 1], [2, 3]]))
    monkeypatch.setattr(directions, "longest_pairs", lambda *_: np.array([[4, 5]]))
    design = pairs_optimal(x, z, gap=1e-3)
    assert design.converged
    assert design.value == pytest.approx(honest.value, rel=2e-3)


def test_a_thousand_vectors_and_items_within_a_second_and_without_listing_pairs():
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=(1000, 10)), rng.normal(size=(3000, 10))
    tracemalloc.start()
    design = pairs_optimal(x, z)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert design.converged
    assert peak < 60e6  # all pairs would be 360 MB


def test_a_large_table_is_never_copied():
    rng = np.random.default_rng(3)
    items = rng.normal(size=(200_000, 6))
    gaps = np.abs(items[:, 0] - 6.0)
    tracemalloc.start()
    design = gap_optimal(rng.normal(size=(500, 6)), items, best=0, gaps=gaps)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert design.converged
    assert peak < 1.5 * items.nbytes  # lengths, their order and one mask, but not the table again and again


def test_rows_seen_from_a_reference_are_the_differences_themselves():
    rng = np.random.default_rng(0)
    rows, matrix = rng.normal(size=(50, 3)), rng.normal(size=(3, 2))
    family = Rows(rows, scale=2.0, reference=rows[4], factors=np.arange(50.0))
    explicit = np.sqrt(2) * np.arange(50.0)[:, None] * (rows - rows[4])
    members, lengths = family.longest(matrix, 5, np.zeros((0, 2), dtype=np.int64))
    expected = np.sum((explicit @ matrix) ** 2, axis=1)
    assert lengths == pytest.approx(np.sort(expected)[::-1][:5])
    assert family.vectors(members) == pytest.approx(explicit[members[:, 0]])
    assert family.spanning_rows() * np.sqrt(2) == pytest.approx(explicit * np.sqrt(2))


def test_blocked_products_equal_the_plain_ones():
    rng = np.random.default_rng(0)
    rows, matrix = rng.normal(size=(10_000, 3)), rng.normal(size=(3, 2))
    assert squared_lengths(rows, matrix) == pytest.approx(np.sum((rows @ matrix) ** 2, axis=1))
    units = np.array([1.0, 2.0, 4.0])
    upper = triangular_factor(rows, units=units)
    assert np.tril(upper, -1) == pytest.approx(0)
    assert upper.T @ upper == pytest.approx((rows / units).T @ (rows / units))


def test_small_work_runs_on_one_thread_and_large_work_on_all():
    usual = [count for _, count in _pools()]

    def now():
        return [pool.get_num_threads() for pool, _ in _pools()]

    with threads_for(1e3):
        assert now() == [1] * len(usual)
        with threads_for(1e12):
            assert now() == usual
        assert now() == [1] * len(usual)
        with threads_for(0):
            pass
        assert now() == [1] * len(usual)
    assert now() == usual
    with pytest.raises(RuntimeError), threads_for(0):
        raise RuntimeError
    assert now() == usual
