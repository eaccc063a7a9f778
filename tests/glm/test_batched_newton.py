"""Many problems at once: the same points as one by one, and certificates that hold for each of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import random_tally
from surepick import Tally, fit
from surepick.glm.batched_newton import BatchStep, Places, minimise_batch, minimise_losses, onto
from surepick.glm.duality import certified_infima, inverses_from_above, omega_roots, outer_radius
from surepick.glm.fit import CountProblem
from surepick.glm.loss import Vectors, losses
from surepick.glm.newton import root_from_above

SEEDS = st.integers(0, 2**32 - 1)


def batch(rng: np.random.Generator, count: int = 5) -> tuple[Vectors, np.ndarray, np.ndarray]:
    """Counts of several losses on the same vectors."""
    vectors = random_tally(rng, rows=12).vectors
    pulls = rng.integers(2, 30, size=(count, len(vectors))).astype(float)
    return Vectors(vectors), pulls, np.floor(rng.uniform(0.2, 0.8, size=pulls.shape) * pulls) + 0.5


@settings(max_examples=20)
@given(SEEDS, st.booleans(), st.booleans())
def test_a_batch_finds_what_single_fits_find(seed, constrained, ridged):
    rng = np.random.default_rng(seed)
    vectors, pulls, wins = batch(rng)
    d = vectors.rows.shape[1]
    normals = rng.normal(size=(len(pulls), d))
    level = 0.3
    ridge = np.linspace(0.5, 3.0, len(pulls))
    start = onto(np.zeros_like(normals), normals, -level) if constrained else np.zeros_like(normals)
    found = minimise_losses(
        vectors,
        pulls,
        wins,
        start,
        ridge=ridge if ridged else None,
        normals=normals if constrained else None,
        tolerance=1e-8,
    )
    for theta, n, k, normal, weight in zip(found, pulls, wins, normals, ridge, strict=True):
        problem = CountProblem(vectors.rows, n, k, normal if constrained else None, level)
        alone = problem.solve(ridge=weight if ridged else 0.0, start=None)
        np.testing.assert_allclose(theta, alone.theta, atol=1e-6)


def test_a_problem_rests_before_or_after_its_last_step(rng):
    target = rng.normal(size=(3, 2))

    def objective(theta: np.ndarray, active: Places) -> tuple[np.ndarray, np.ndarray]:
        return theta - target[active], np.tile(np.eye(2), (len(active), 1, 1))

    def never(step: BatchStep) -> np.ndarray:
        return np.zeros(len(step.active), dtype=bool)

    rows, start = 0.1 * np.eye(2), np.zeros((3, 2))
    before = minimise_batch(rows, objective, start, unfinished=never, iterations=5, last_step=False)
    after = minimise_batch(rows, objective, start, unfinished=never, iterations=5)
    assert np.array_equal(before, start)
    np.testing.assert_allclose(after, target, atol=1e-9)


@settings(max_examples=20)
@given(SEEDS, st.sampled_from([0.0, 1e-3, 0.1]))
def test_certified_infima_are_never_above_the_infimum_over_the_half_space(seed, distance):
    rng = np.random.default_rng(seed)
    tally = random_tally(rng, rows=12)
    vectors = Vectors(tally.vectors)
    pulls, wins = tally.pulls.astype(float)[None, :] + 2, tally.wins.astype(float)[None, :] + 1
    normal = rng.normal(size=(1, tally.dimension))
    free = CountProblem(vectors.rows, pulls[0], wins[0]).solve(ridge=0.0, start=None)
    level = float(normal[0] @ free.theta) - 1.0  # a half-space that does not contain the free minimum
    on_it = CountProblem(vectors.rows, pulls[0], wins[0], normal[0], level).solve(ridge=0.0, start=None)
    theta = onto(on_it.theta[None, :] + distance * rng.normal(size=normal.shape), normal, -level)
    gap, multiplier = certified_infima(vectors, pulls, wins, theta, normal)
    true = losses(vectors, pulls, wins, theta)[0] - on_it.loss
    assert gap[0] >= true - 1e-10
    assert multiplier[0] > 0
    if distance <= 1e-3:
        assert gap[0] <= 1.1 * true + 1e-8


def test_the_multiplier_of_a_half_space_that_holds_the_minimum_is_zero(rng):
    tally = random_tally(rng, rows=12)
    pulls, wins = tally.pulls.astype(float)[None, :] + 2, tally.wins.astype(float)[None, :] + 1
    theta = fit(Tally(tally.vectors, tally.pulls + 2, tally.wins + 1)).theta[None, :]
    normal = rng.normal(size=theta.shape)
    outwards = theta + 0.05 * normal
    _, multiplier = certified_infima(Vectors(tally.vectors), pulls, wins, outwards, normal)
    assert multiplier[0] == 0


def test_inverses_from_above_are_above_and_admit_what_they_cannot_bound(rng):
    root = rng.normal(size=(4, 3, 3))
    matrices = root @ np.swapaxes(root, 1, 2) * np.array([1e-6, 1.0, 1e6, 1.0])[:, None, None]
    matrices[3, 2] = matrices[3, :, 2] = matrices[3, 0] * 0  # singular
    above, sound = inverses_from_above(matrices)
    assert sound.tolist() == [True, True, True, False]
    for inverse, matrix in zip(above[:3], matrices[:3], strict=True):
        scale = np.sqrt(np.diag(matrix))
        excess = (inverse - np.linalg.inv(matrix)) * np.outer(scale, scale)
        assert np.linalg.eigvalsh((excess + excess.T) / 2)[0] > 0
    assert np.array_equal(above[3], np.eye(3))


# Roots from above.


def test_a_root_is_approached_from_above_and_no_iterate_is_below_it():
    seen: list[float] = []

    def excess(x: float) -> tuple[float, float]:
        seen.append(x)
        return x**3 - 2, 3 * x**2

    root = root_from_above(excess, 10.0, tolerance=1e-12)
    assert root == pytest.approx(2 ** (1 / 3), rel=1e-11)
    assert min(seen) >= 2 ** (1 / 3) * (1 - 1e-15)
    assert root_from_above(excess, 10.0, tolerance=1e-12, iterations=2) > root + 0.1  # stopped early, still above


@pytest.mark.parametrize(("k", "decrement", "room"), [(0.3, 0.1, 2.0), (2.0, 0.4, 0.5), (1e-3, 0.0, 5.0)])
def test_the_two_forms_of_the_radius_agree_and_satisfy_the_equation(k, decrement, room):
    radius = outer_radius(k, decrement, room)
    w = omega_roots(np.array([k * decrement, 1.0]), np.array([k * k * room, 1.0]))
    assert w[0] == pytest.approx(k * radius, rel=1e-6)
    assert w[1] == np.inf
    assert np.exp(-w[0]) + w[0] - 1 - k * decrement * w[0] == pytest.approx(k * k * room, rel=1e-5)
    assert outer_radius(k, 1 / k, room) == np.inf
