"""The model's formulas at any logit, and the fit: against other solvers, under invariances, with its certificates."""

import mpmath
import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from sklearn.linear_model import LogisticRegression

from surepick import FitStatus, InvalidInput, NotIdentifiable, Tally, fit
from surepick.logistic import probability_of_yes, softplus, variance
from surepick.logistic.problem import CountProblem

SEEDS = st.integers(0, 2**32 - 1)
LOGITS = [-700.0, -300.0, -38.0, -20.0, -1.0, -1e-8, 0.0, 1e-8, 1.0, 20.0, 38.0, 300.0, 700.0]


def random_tally(rng, rows=40, dimension=3, most=20, scale=1.0) -> Tally:
    """Counts drawn from a logistic model, overlapping so that the estimate exists."""
    vectors = rng.normal(size=(rows, dimension))
    pulls = rng.integers(2, most + 1, size=rows)
    wins = rng.binomial(pulls, probability_of_yes(scale * vectors @ rng.normal(size=dimension)))
    wins[: dimension + 1] = np.clip(wins[: dimension + 1], 1, pulls[: dimension + 1] - 1)
    return Tally(vectors, pulls, wins)


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
        loss = lambda t: n * mpmath.log(1 + mpmath.exp(exact_x * t)) - wins * exact_x * t  # noqa: E731
        t, step = mpmath.mpf(theta), mpmath.mpf(10) ** -150
        up, at, down = loss(t + step), loss(t), loss(t - step)
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
    value = lambda c: (lambda f: f.loss + ridge / 2 * f.theta @ f.theta)(fit(tally, equality=(normal, c), ridge=ridge))  # noqa: E731
    slope = (value(level + step) - value(level - step)) / (2 * step)
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
        claimed = problem.duality_gap(theta, normal=normal)
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
        assert problem.duality_gap(theta) >= on_the_way * (1 - 1e-12) + excess * (1 - 1e-9)
        assert problem.duality_gap(theta, normal=np.array([0.0, 1.0])) >= on_the_way * (1 - 1e-12)
    assert problem.duality_gap(np.array([far, np.log(3)])) < 8 * np.exp(-far)


@pytest.mark.parametrize("far", [10.0, 20.0, 30.0, 40.0])
def test_the_duality_gap_holds_where_several_rows_go_to_infinity_at_once(rng, far):
    """Rotated, so that their information vanishes beside that of the third row."""
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    problem = CountProblem(rotation, np.array([5.0, 7.0, 4000.0]), np.array([5.0, 0.0, 3000.0]))
    theta = rotation.T @ [far, -far - 2, np.log(3)]
    true = 5 * np.log1p(np.exp(-far)) + 7 * np.log1p(np.exp(-far - 2))
    assert true * (1 - 1e-6) - 1e-11 <= problem.duality_gap(theta) <= 1.1 * true + 1e-9
    # Held on the wrong side of the first row, the others have as little left to gain.
    wrong = rotation.T @ [-3.0, -far - 2, np.log(3)]
    little = 7 * np.log1p(np.exp(-far - 2))
    assert little * (1 - 1e-6) - 1e-11 <= problem.duality_gap(wrong, normal=rotation[0]) <= 1.1 * little + 1e-9


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
