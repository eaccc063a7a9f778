"""The model's formulas at any logit, and the fit: against other solvers, under invariances, and whether it exists."""

import mpmath
import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

from helpers import random_tally
from surepick import FitStatus, Tally, fit
from surepick.glm import probability_of_yes, softplus, variance

SEEDS = st.integers(0, 2**32 - 1)
LOGITS = [-700.0, -300.0, -38.0, -20.0, -1.0, -1e-8, 0.0, 1e-8, 1.0, 20.0, 38.0, 300.0, 700.0]


# The model.


@pytest.mark.parametrize("logit", LOGITS)
def test_the_functions_of_a_logit_keep_their_relative_accuracy(logit):
    with mpmath.workdps(400):
        v = mpmath.mpf(logit)
        exact = {
            probability_of_yes: 1 / (1 + mpmath.exp(-v)),
            variance: mpmath.exp(-abs(v)) / (1 + mpmath.exp(-abs(v))) ** 2,
            softplus: mpmath.log(1 + mpmath.exp(v)),
        }
        for function, value in exact.items():
            assert abs(mpmath.mpf(float(function(np.array(logit)))) / value - 1) < 1e-14


@pytest.mark.parametrize("logit", LOGITS)
@pytest.mark.parametrize("wins", [0, 3, 7])
def test_loss_gradient_and_information_agree_with_exact_derivatives(logit, wins):
    x, n = 1.3, 7
    theta = logit / x
    tally = Tally([[x]], [n], [wins])
    with mpmath.workdps(700):
        exact_x = mpmath.mpf(x)
        t, step = mpmath.mpf(theta), mpmath.mpf(10) ** -150
        up, at, down = (
            n * mpmath.log(1 + mpmath.exp(exact_x * each)) - wins * exact_x * each for each in (t + step, t, t - step)
        )
        gradient, hessian = (up - down) / (2 * step), (up - 2 * at + down) / step**2
        for ours, exact in (
            (tally.loss([theta]), at),
            (tally.gradient([theta])[0], gradient),
            (tally.information([theta])[0, 0], hessian),
        ):
            assert abs(mpmath.mpf(float(ours)) / exact - 1) < 1e-12


@given(SEEDS, st.sampled_from([0.1, 1.0, 30.0]))
def test_gradient_and_information_are_finite_differences_of_the_loss(seed, size):
    rng = np.random.default_rng(seed)
    tally = random_tally(rng, rows=9)
    theta, step = size * rng.normal(size=3), 1e-5
    moves = step * np.eye(3)
    slopes = [(tally.loss(theta + move) - tally.loss(theta - move)) / (2 * step) for move in moves]
    bends = [(tally.gradient(theta + move) - tally.gradient(theta - move)) / (2 * step) for move in moves]
    np.testing.assert_allclose(tally.gradient(theta), slopes, atol=1e-6 * (1 + tally.loss(theta)))
    np.testing.assert_allclose(tally.information(theta), bends, atol=1e-6 * tally.total)


def test_extreme_logits_raise_no_warning():
    tally = Tally([[1.0, -2.0], [1e100, 0.0], [0.0, 1e-100]], [5, 2**53, 1], [2, 0, 1])
    for theta in ([1e100, 1e100], [-700.0, 700.0], [0.0, 0.0]):
        assert np.isfinite(tally.loss(theta))
        assert np.isfinite(tally.gradient(theta)).all()
        assert np.isfinite(tally.information(theta)).all()


# The fit against others.


@settings(max_examples=25)
@given(SEEDS, st.integers(1, 8), st.sampled_from([0.3, 1.0, 3.0]))
def test_the_fit_agrees_with_statsmodels_and_scikit_learn(seed, dimension, scale):
    tally = random_tally(np.random.default_rng(seed), dimension=dimension, scale=scale)
    ours = fit(tally)
    assert ours.converged
    assert ours.gap <= 1e-8
    glm = sm.GLM(np.column_stack([tally.wins, tally.pulls - tally.wins]), tally.vectors, family=sm.families.Binomial())
    theirs = glm.fit(tol=1e-12, maxiter=200)
    np.testing.assert_allclose(ours.theta, theirs.params, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(np.linalg.inv(ours.information), theirs.cov_params(), rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(ours.inverse_norms(np.eye(dimension)), theirs.bse, rtol=1e-5)
    labels, weights = np.repeat([1, 0], len(tally)), np.concatenate([tally.wins, tally.pulls - tally.wins])
    peer = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=1000, solver="newton-cholesky")
    peer.fit(np.vstack([tally.vectors] * 2), labels, sample_weight=weights)
    np.testing.assert_allclose(ours.theta, peer.coef_[0], rtol=1e-5, atol=1e-6)
    assert ours.loss == pytest.approx(tally.loss(peer.coef_[0]), rel=1e-10)


def test_one_vector_has_the_closed_form():
    for pulls, wins in ((4, 3), (10**15, 1), (10**15, 10**15 - 7), (2, 1)):
        result = fit(Tally([[2.0]], [pulls], [wins]))
        assert result.theta[0] == pytest.approx(np.log(wins / (pulls - wins)) / 2, rel=1e-9, abs=1e-9)


# Invariances.


def same_answers(first, second, tally_a: Tally, tally_b: Tally, tolerance=1e-7) -> None:
    assert first.status is second.status
    np.testing.assert_allclose(tally_a.vectors @ first.theta, tally_b.vectors @ second.theta, atol=tolerance)
    assert first.loss == pytest.approx(second.loss, rel=1e-10)
    np.testing.assert_allclose(
        first.inverse_norms(tally_a.vectors), second.inverse_norms(tally_b.vectors), rtol=1e-6, atol=1e-12
    )


def test_counts_equal_repeated_rows(rng):
    tally = random_tally(rng, most=6)
    rows = np.repeat(tally.vectors, tally.pulls, axis=0)
    answers = np.concatenate([np.arange(n) < k for n, k in zip(tally.pulls, tally.wins, strict=True)])
    repeated = Tally.from_answers(rows, answers)
    one, other = fit(tally), fit(repeated)
    np.testing.assert_allclose(one.theta, other.theta, atol=1e-8)
    assert one.loss == pytest.approx(other.loss, rel=1e-11)
    assert repeated.merged() == tally


@settings(max_examples=25)
@given(SEEDS)
def test_rotation_permutation_duplication_and_units_change_nothing(seed):
    rng = np.random.default_rng(seed)
    tally = random_tally(rng)
    reference = fit(tally)
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    order = rng.permutation(len(tally))
    units = 10.0 ** rng.uniform(-60, 60, size=3)
    for other in (
        Tally(tally.vectors @ rotation, tally.pulls, tally.wins),
        Tally(tally.vectors * units, tally.pulls, tally.wins),
        Tally(tally.vectors[:, ::-1], tally.pulls, tally.wins),
    ):
        same_answers(reference, fit(other), tally, other)
    shuffled = fit(Tally(tally.vectors[order], tally.pulls[order], tally.wins[order]))
    np.testing.assert_allclose(shuffled.theta, reference.theta, atol=1e-8)
    twice = fit(Tally(np.vstack([tally.vectors] * 2), np.tile(tally.pulls, 2), np.tile(tally.wins, 2)))
    np.testing.assert_allclose(twice.theta, reference.theta, atol=1e-8)
    np.testing.assert_allclose(twice.information, 2 * reference.information, rtol=1e-6)
    swapped = fit(Tally(tally.vectors, tally.pulls, tally.pulls - tally.wins))
    np.testing.assert_allclose(swapped.theta, -reference.theta, atol=1e-8)


@pytest.mark.parametrize("units", [(1,) * 5, (1e60,) * 5, (1e-60,) * 5, (1e4, 1e-4, 1.0, 1e3, 1e-3)])
def test_collinear_columns_predict_like_the_reduced_problem(rng, units):
    tally = random_tally(rng, dimension=2)
    a, b = tally.vectors.T
    wide = Tally(np.column_stack([a, b, a + b, a, np.zeros(len(a))]) * units, tally.pulls, tally.wins)
    reduced, full = fit(tally), fit(wide)
    assert full.span.rank == 2
    same_answers(reduced, full, tally, wide)
    inside = np.array([[1.0, 2.0, 3.0, 1.0, 0.0]]) * units
    assert (inside @ full.theta)[0] == pytest.approx(reduced.theta @ [1, 2], abs=1e-7)
    outside = np.array([[1.0, 0, 0, 0, 0], [1, 2, 3, 1, 1], [1, 2, 3, 2, 0]]) * units
    assert np.isinf(full.inverse_norms(outside)).all()
    if set(units) == {1}:  # among equals the shortest
        shortest = np.linalg.lstsq(wide.vectors, wide.vectors @ full.theta)[0]
        np.testing.assert_allclose(full.theta, shortest, atol=1e-9)


def test_rows_never_asked_and_zero_rows_change_nothing(rng):
    tally = random_tally(rng)
    more = Tally(
        np.vstack([tally.vectors, np.eye(3) * 100, np.zeros((1, 3))]),
        np.concatenate([tally.pulls, [0, 0, 0, 50]]),
        np.concatenate([tally.wins, [0, 0, 0, 50]]),
    )
    np.testing.assert_allclose(fit(more).theta, fit(tally).theta, atol=1e-9)


# Existence.


def separable_by_linear_program(tally: Tally, normal=None) -> bool:
    """Whether some direction satisfies every row and moves one of them, asked of the solver row by row."""
    signs = np.where(tally.wins == tally.pulls, 1.0, -1.0)[:, None]
    mixed = (tally.wins > 0) & (tally.wins < tally.pulls)
    sides = (signs * tally.vectors)[~mixed]
    equal = tally.vectors[mixed] if normal is None else np.vstack([tally.vectors[mixed], normal])
    for side in sides:
        found = linprog(
            -side,
            A_ub=-sides,
            b_ub=np.zeros(len(sides)),
            A_eq=equal if len(equal) else None,
            b_eq=np.zeros(len(equal)) if len(equal) else None,
            bounds=(-1, 1),
        )
        if -found.fun > 1e-6:
            return True
    return False


def check_direction(tally: Tally, direction, normal=None) -> None:
    """The direction proves that the likelihood has no maximum."""
    lengths = np.linalg.norm(tally.vectors, axis=1) * np.linalg.norm(direction)
    along = tally.vectors @ direction / lengths
    assert np.all(along[tally.wins == tally.pulls] >= -1e-10)
    assert np.all(along[tally.wins == 0] <= 1e-10)
    assert np.all(np.abs(along[(tally.wins > 0) & (tally.wins < tally.pulls)]) <= 1e-8)
    assert np.abs(along).max() > 1e-7
    if normal is not None:
        assert abs(normal @ direction) <= 1e-8 * np.linalg.norm(normal) * np.linalg.norm(direction)


@settings(max_examples=80)
@given(SEEDS, st.integers(2, 12), st.integers(1, 4), st.booleans(), st.booleans())
def test_separation_is_claimed_exactly_when_a_linear_program_finds_it(seed, rows, dimension, grid, constrained):
    rng = np.random.default_rng(seed)
    # Small integers make ties, hence quasi-separation, frequent.
    vectors = rng.integers(-2, 3, size=(rows, dimension)) if grid else rng.normal(size=(rows, dimension))
    assume(np.linalg.matrix_rank(vectors) == dimension and np.any(vectors, axis=1).all())
    pulls = rng.integers(1, 3, size=rows)
    tally = Tally(vectors, pulls, rng.integers(0, pulls + 1))
    normal = rng.integers(-1, 2, size=dimension) if constrained else None
    if normal is not None:
        assume(normal.any() and dimension > 1)
    result = fit(tally, equality=None if normal is None else (normal, 0.5))
    expected = separable_by_linear_program(tally, normal)
    assert result.status is (FitStatus.SEPARATED if expected else FitStatus.CONVERGED)
    if expected:
        check_direction(tally, result.direction, normal)
        assert np.isnan(result.theta).all()
        assert np.isinf(result.inverse_norms(tally.vectors)).all()
    else:
        assert result.direction is None
        assert result.gap <= 1e-6


@pytest.mark.parametrize(("rows", "dimension"), [(200, 30), (6000, 5), (150, 149), (3000, 40)])
@pytest.mark.parametrize("kind", ["complete", "quasi", "overlap"])
def test_separation_in_larger_data(rng, rows, dimension, kind):
    vectors = rng.normal(size=(rows, dimension))
    direction = rng.normal(size=dimension)
    answers = (vectors @ direction > 0).astype(int)
    if kind == "quasi":  # half of the rows lie on the boundary and may be answered either way
        on_edge = slice(0, rows, 2)
        vectors[on_edge] -= np.outer(vectors[on_edge] @ direction, direction) / (direction @ direction)
        answers[on_edge] = rng.integers(0, 2, size=len(answers[on_edge]))
    if kind == "overlap":
        if rows < 3 * dimension:
            pytest.skip("random answers on so few rows are separable")
        answers = rng.integers(0, 2, size=rows)
    tally = Tally.from_answers(vectors, answers)
    result = fit(tally)
    assert result.status is (FitStatus.CONVERGED if kind == "overlap" else FitStatus.SEPARATED)
    if kind != "overlap":
        check_direction(tally, result.direction)


@pytest.mark.parametrize("units", [(1, 1, 1e-60), (1e60, 1, 1e-60), (1, 1e60, 1)])
def test_separation_is_seen_in_any_units(rng, units):
    vectors = rng.normal(size=(40, 3))
    answers = (vectors[:, 2] > 0).astype(int)
    tally = Tally.from_answers(vectors * units, answers)
    result = fit(tally)
    assert result.status is FitStatus.SEPARATED
    along = (2 * answers - 1) * (tally.vectors @ result.direction)
    assert along.min() >= -1e-12 * along.max()


@pytest.mark.parametrize("start", [0.0, 36.0, 41.0, 100.0, 600.0, 1e5])
def test_a_far_start_does_not_pass_for_an_estimate(start):
    for tally in (Tally([[1.0]], [3], [3]), Tally([[1.0, 0.0], [1.0, 1.0]], [3, 7], [3, 7])):
        assert fit(tally, start=[start] * tally.dimension).status is FitStatus.SEPARATED
    overlapping = fit(Tally([[1.0]], [4], [3]), start=[start])
    if start < 1e5:
        assert overlapping.theta[0] == pytest.approx(np.log(3), abs=1e-8)
    else:  # no slope is left to see there, and that is said
        assert overlapping.status is FitStatus.NOT_CONVERGED


@pytest.mark.parametrize("epsilon", [1e-3, 1e-6, 1e-9])
def test_data_overlapping_by_a_hair_have_an_estimate(epsilon):
    vectors = [[1.0, 0.0], [-1.0, epsilon], [0.0, -1.0]]
    result = fit(Tally.from_answers(vectors, [1, 1, 1]))
    assert result.converged
    assert result.theta[1] == pytest.approx(np.log(epsilon / 2), abs=0.5)
    separated = fit(Tally.from_answers(vectors[:2], [1, 1]))
    assert separated.status is FitStatus.SEPARATED
    assert np.all(np.array(vectors[:2]) @ separated.direction >= 0)


@pytest.mark.parametrize("pulls", [10**13, 10**15, 2**53])
def test_nearly_separated_data_with_logits_of_thirty(pulls):
    tally = Tally([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], [pulls] * 3, [pulls - 1, pulls - 900, 10**6])
    result = fit(tally)
    assert result.converged
    gradient = tally.gradient(result.theta)
    assert np.sqrt(gradient @ np.linalg.solve(result.information, gradient)) <= 1e-6
    assert abs(result.theta[0]) > 29


@settings(max_examples=20)
@given(SEEDS)
def test_huge_counts_fit_like_small_ones(seed):
    rng = np.random.default_rng(seed)
    tally = random_tally(rng)
    many = Tally(tally.vectors, tally.pulls * 10**13, tally.wins * 10**13)
    few, result = fit(tally), fit(many)
    assert result.converged
    np.testing.assert_allclose(result.theta, few.theta, atol=1e-8)
    np.testing.assert_allclose(result.information, few.information * 1e13, rtol=1e-6)
