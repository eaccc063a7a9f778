"""The fit with a ridge, in a ball, on a hyperplane; and what its gap proves, wherever the solver stopped."""

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from helpers import random_tally
from surepick import FitStatus, InvalidInput, NotIdentifiable, Tally, fit
from surepick.glm.duality import duality_gap
from surepick.glm.fit import CountProblem

SEEDS = st.integers(0, 2**32 - 1)
LOGITS = [-700.0, -300.0, -38.0, -20.0, -1.0, -1e-8, 0.0, 1e-8, 1.0, 20.0, 38.0, 300.0, 700.0]


# Ridge, ball and equality.


@settings(max_examples=30)
@given(SEEDS, st.sampled_from([1e-3, 0.1, 1.0, 100.0]), st.booleans())
def test_ridge_agrees_with_scipy(seed, ridge, separable):
    rng = np.random.default_rng(seed)
    tally = random_tally(rng)
    if separable:
        tally = Tally(tally.vectors, tally.pulls, np.where(tally.vectors[:, 0] > 0, tally.pulls, 0))
    result = fit(tally, ridge=ridge)
    peer = minimize(
        lambda theta: tally.loss(theta) + ridge / 2 * theta @ theta,
        np.zeros(3),
        jac=lambda theta: tally.gradient(theta) + ridge * theta,
        method="BFGS",
        options={"gtol": 1e-9},
    )
    assert result.converged
    np.testing.assert_allclose(result.theta, peer.x, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(tally.gradient(result.theta) + ridge * result.theta, 0, atol=1e-6)
    np.testing.assert_allclose(result.information, tally.information(result.theta), rtol=1e-9, atol=1e-9)
    assert result.loss == pytest.approx(tally.loss(result.theta), rel=1e-10)


@settings(max_examples=40)
@given(SEEDS, st.sampled_from([0.01, 0.5, 2.0, 30.0, 1e3]), st.sampled_from([0.0, 0.3]), st.booleans(), st.booleans())
@example(0, 1e50, 0.0, True, False)
def test_the_ball_satisfies_the_optimality_conditions(seed, bound, ridge, separable, collinear):
    rng = np.random.default_rng(seed)
    tally = random_tally(rng)
    if separable:
        tally = Tally(tally.vectors, tally.pulls, np.where(tally.vectors[:, 0] > 0, tally.pulls, 0))
    if collinear:
        tally = Tally(tally.vectors[:, [0, 1, 1]], tally.pulls, tally.wins)
    result = fit(tally, norm_bound=bound, ridge=ridge)
    length = np.linalg.norm(result.theta)
    assert result.converged
    assert length <= bound * (1 + 1e-9)
    gradient = tally.gradient(result.theta)
    assert result.ridge >= ridge * (1 - 1e-9)
    scale = np.sqrt(np.trace(result.information)) + np.sqrt(result.ridge) + result.ridge * length
    np.testing.assert_allclose(gradient, -result.ridge * result.theta, atol=1e-7 * scale)
    if result.ridge > ridge * (1 + 1e-9) and length < bound * (1 - 1e-6):
        assert np.abs(gradient).max() < 1e-9  # nothing left to gain: as good as converged before the bound binds
    free = fit(tally, ridge=ridge)
    if free.converged and np.linalg.norm(free.theta) <= bound:
        np.testing.assert_allclose(result.theta, free.theta, atol=1e-8)


@settings(max_examples=40)
@given(SEEDS, st.sampled_from([0.0, 0.5, -3.0, 20.0]), st.sampled_from([0.0, 0.7]), st.booleans())
def test_equality_satisfies_the_optimality_conditions(seed, level, ridge, collinear):
    rng = np.random.default_rng(seed)
    tally = random_tally(rng)
    normal = rng.normal(size=3)
    if collinear:
        tally = Tally(tally.vectors[:, [0, 1, 1]], tally.pulls, tally.wins)
        normal = normal[[0, 1, 1]]
    result = fit(tally, equality=(normal, level), ridge=ridge)
    assert result.converged
    assert normal @ result.theta == pytest.approx(level, abs=1e-9)
    gradient = tally.gradient(result.theta) + ridge * result.theta
    np.testing.assert_allclose(gradient, result.multiplier * normal, atol=1e-6)
    step = 1e-3  # the multiplier is the rate at which the optimal value changes
    above, below = (fit(tally, equality=(normal, level + sign * step), ridge=ridge) for sign in (1, -1))
    penalty = ridge / 2 * (above.theta @ above.theta - below.theta @ below.theta)
    slope = (above.loss - below.loss + penalty) / (2 * step)
    assert result.multiplier == pytest.approx(slope, rel=1e-3, abs=1e-3)


@settings(max_examples=30)
@given(SEEDS, st.sampled_from([0.1, 0.9, 0.999, 1 - 1e-6, 1 - 1e-8, 1.0]), st.booleans())
def test_equality_and_ball_together(seed, share, separable):
    rng = np.random.default_rng(seed)
    tally = random_tally(rng, scale=3.0)
    if separable:
        tally = Tally(tally.vectors, tally.pulls, np.where(tally.vectors[:, 0] > 0, tally.pulls, 0))
    normal, bound = rng.normal(size=3), 1.5
    level = share * bound * np.linalg.norm(normal)
    result = fit(tally, equality=(normal, level), norm_bound=bound)
    assert result.converged
    assert result.direction is None
    assert np.linalg.norm(result.theta) <= bound * (1 + 1e-9)
    assert normal @ result.theta == pytest.approx(level, rel=1e-9)
    if share < 1:
        pull = tally.gradient(result.theta) + result.ridge * result.theta
        np.testing.assert_allclose(pull, result.multiplier * normal, atol=1e-5 * (1 + abs(result.multiplier)))
    # No feasible point is better.
    across = np.linalg.svd(normal[None, :])[2][1:]
    for _ in range(20):
        radius = np.sqrt(max(bound**2 - (share * bound) ** 2, 0.0)) * rng.uniform()
        turn = rng.normal(size=2)
        other = normal * level / (normal @ normal) + radius * (turn / np.linalg.norm(turn)) @ across
        assert tally.loss(other) >= result.loss - 1e-7


def test_constraints_that_cannot_be_met_are_refused():
    tally = Tally([[1.0, 0.0], [2.0, 0.0]], [4, 4], [1, 3])
    with pytest.raises(NotIdentifiable, match="outside the span"):
        fit(tally, equality=([0.0, 1.0], 1.0))
    with pytest.raises(InvalidInput, match="raise norm_bound to at least 3"):
        fit(tally, equality=([1.0, 0.0], 3.0), norm_bound=1.0)
    with pytest.raises(InvalidInput, match="must not be zero"):
        fit(tally, equality=([0.0, 0.0], 0.0))


# Certificates.


def exact_minimum(tally: Tally, normal=None, level=0.0) -> mpmath.mpf:
    """The least loss in 60 digits, by Newton's method from our estimate."""
    found = fit(tally, equality=None if normal is None else (normal, level))
    assert found.converged
    d = tally.dimension
    rows = [[mpmath.mpf(float(x)) for x in row] for row in tally.vectors]
    theta = [mpmath.mpf(float(t)) for t in found.theta]
    if normal is not None:
        normal = [mpmath.mpf(float(entry)) for entry in normal]
        missing = (mpmath.mpf(level) - mpmath.fdot(normal, theta)) / mpmath.fdot(normal, normal)
        theta = [t + missing * entry for t, entry in zip(theta, normal, strict=True)]
    counts = list(zip(tally.pulls.tolist(), tally.wins.tolist(), strict=True))
    for _ in range(5):
        gradient, hessian = mpmath.zeros(d, 1), mpmath.zeros(d, d)
        for row, (n, k) in zip(rows, counts, strict=True):
            mu = 1 / (1 + mpmath.exp(-mpmath.fdot(row, theta)))
            for i in range(d):
                gradient[i] += (n * mu - k) * row[i]
                for j in range(d):
                    hessian[i, j] += n * mu * (1 - mu) * row[i] * row[j]
        step = mpmath.lu_solve(hessian, -gradient)
        if normal is not None:
            across = mpmath.lu_solve(hessian, mpmath.matrix(normal))
            ratio = mpmath.fdot(normal, step) / mpmath.fdot(normal, across)
            step = step - ratio * across
        theta = [t + s for t, s in zip(theta, step, strict=True)]
    return sum(
        n * mpmath.log(1 + mpmath.exp(mpmath.fdot(row, theta))) - k * mpmath.fdot(row, theta)
        for row, (n, k) in zip(rows, counts, strict=True)
    )


def exact_loss(tally: Tally, theta) -> mpmath.mpf:
    logits = [mpmath.fdot([float(x) for x in row], [float(t) for t in theta]) for row in tally.vectors]
    return sum(
        int(n) * mpmath.log(1 + mpmath.exp(v)) - int(k) * v
        for v, n, k in zip(logits, tally.pulls, tally.wins, strict=True)
    )


@settings(max_examples=40)
@given(SEEDS, st.sampled_from([0.0, 1e-8, 1e-4, 0.03, 0.3, 3.0]), st.booleans(), st.sampled_from([1, 10**6, 10**13]))
def test_the_duality_gap_is_never_below_the_true_gap(seed, distance, constrained, factor):
    rng = np.random.default_rng(seed)
    base = random_tally(rng, rows=8)
    tally = Tally(base.vectors, base.pulls * factor, base.wins * factor)
    estimate = fit(tally).theta
    normal = rng.normal(size=3) if constrained else None
    theta = estimate + distance * rng.normal(size=3)
    with mpmath.workdps(60):
        level = None if normal is None else mpmath.fdot([float(a) for a in normal], [float(t) for t in theta])
        true = exact_loss(tally, theta) - exact_minimum(tally, normal, 0.0 if level is None else float(level))
        problem = CountProblem(tally.vectors, tally.pulls.astype(float), tally.wins.astype(float))
        claimed = duality_gap(problem, theta, normal=normal)
        # The level of the hyperplane is rounded to a float, hence the second term.
        assert claimed >= true * (1 - mpmath.mpf("1e-6")) - mpmath.mpf(1e-16) * tally.total
        if distance <= 1e-4 * np.sqrt(1 / factor):
            assert claimed <= true * 1.01 + 1e-16 * tally.total


@pytest.mark.parametrize("far", [1.0, 5.0, 20.0, 35.0])
def test_the_duality_gap_holds_where_the_infimum_is_not_attained(far):
    # The first row wants θ₁ → ∞, the others settle θ₂; on the hyperplane θ₂ = c as well.
    tally = Tally([[1.0, 0.0], [0.0, 1.0]], [5, 4], [5, 3])
    problem = CountProblem(tally.vectors, tally.pulls.astype(float), tally.wins.astype(float))
    settled = Tally([[1.0]], [4], [3])
    for second in (np.log(3), np.log(3) + 0.01):
        on_the_way = 5 * np.log1p(np.exp(-far))  # what the first row has left to gain
        excess = settled.loss([second]) - settled.loss([np.log(3)])
        theta = np.array([far, second])
        assert duality_gap(problem, theta) >= on_the_way * (1 - 1e-12) + excess * (1 - 1e-9)
        assert duality_gap(problem, theta, normal=np.array([0.0, 1.0])) >= on_the_way * (1 - 1e-12)
    assert duality_gap(problem, np.array([far, np.log(3)])) < 8 * np.exp(-far)


@pytest.mark.parametrize("far", [10.0, 20.0, 30.0, 40.0])
def test_the_duality_gap_holds_where_several_rows_go_to_infinity_at_once(rng, far):
    """Rotated, so that their information vanishes beside that of the third row."""
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    problem = CountProblem(rotation, np.array([5.0, 7.0, 4000.0]), np.array([5.0, 0.0, 3000.0]))
    theta = rotation.T @ [far, -far - 2, np.log(3)]
    true = 5 * np.log1p(np.exp(-far)) + 7 * np.log1p(np.exp(-far - 2))
    assert true * (1 - 1e-6) - 1e-11 <= duality_gap(problem, theta) <= 1.1 * true + 1e-9
    # Held on the wrong side of the first row, the others have as little left to gain.
    wrong = rotation.T @ [-3.0, -far - 2, np.log(3)]
    little = 7 * np.log1p(np.exp(-far - 2))
    assert little * (1 - 1e-6) - 1e-11 <= duality_gap(problem, wrong, normal=rotation[0]) <= 1.1 * little + 1e-9


@settings(max_examples=30)
@given(SEEDS)
def test_the_reported_gap_is_the_distance_to_the_optimum(seed):
    rng = np.random.default_rng(seed)
    tally = random_tally(rng)
    rough, fine = fit(tally, tolerance=0.3), fit(tally)
    gradient = tally.gradient(rough.theta)
    assert rough.gap <= 0.3
    assert rough.gap == pytest.approx(np.sqrt(gradient @ np.linalg.solve(rough.information, gradient)), abs=1e-7)
    difference = rough.theta - fine.theta
    assert np.sqrt(difference @ fine.information @ difference) <= 1.5 * rough.gap + 1e-7


def test_too_few_iterations_are_admitted(rng):
    result = fit(random_tally(rng), max_iterations=1)
    assert result.status is FitStatus.NOT_CONVERGED
    assert "not reached" in result.status.sentence
