"""Designs: against an independent solver, against theorems, and under changes that must not matter."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from surepick.design import (
    DesignStatus,
    Pairs,
    Rows,
    d_optimal,
    g_optimal,
    gap_optimal,
    max_optimal,
    pairs_optimal,
    xy_optimal,
)

FEW = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def differences(items):
    return np.array([a - b for a, b in itertools.combinations(np.asarray(items, dtype=float), 2)])


def oracle(x, directions):
    """The optimum by a conic solver: yᵀH(λ)⁻¹y ≤ t as a second-order constraint of its own."""
    x = np.asarray(x, dtype=float)
    weights = cp.Variable(len(x), nonneg=True)
    information = cp.sum([weights[i] * np.outer(row, row) for i, row in enumerate(x)])
    value = cp.Variable()
    constraints = [cp.matrix_frac(y, information) <= value for y in directions]
    problem = cp.Problem(cp.Minimize(value), [cp.sum(weights) == 1, *constraints])
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == "optimal"
    return problem.value


def attained(x, design, directions):
    """The value of the returned weights, by a pseudo-inverse."""
    rows = np.asarray(x, dtype=float)[design.support]
    inverse = np.linalg.pinv((rows * design.weights[:, None]).T @ rows, rcond=1e-11, hermitian=True)
    return np.max(np.einsum("ij,jk,ik->i", directions, inverse, directions))


def check(design, gap):
    assert design.status is DesignStatus.CONVERGED
    assert 0 < design.lower_bound <= design.value <= (1 + gap) * design.lower_bound
    assert design.weights.min() > 0
    assert design.weights.sum() == pytest.approx(1, abs=1e-12)
    assert len(np.unique(design.support, axis=0)) == len(design.support) == len(design.weights)


def instance(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    x = rng.normal(size=(int(rng.integers(d, 13)), d))
    if seed % 3 == 0:  # Small whole numbers: duplicates, zeros, ties and rank-deficient optima.
        x = np.concatenate([rng.integers(-2, 3, size=x.shape).astype(float), np.eye(d)])
    return x, rng.normal(size=(int(rng.integers(2, 6)), d))


@pytest.mark.parametrize("seed", range(16))
def test_all_pairs_agree_with_a_conic_solver_and_the_bound_stays_below_it(seed):
    x, z = instance(seed)
    design = pairs_optimal(x, z, gap=1e-4)
    check(design, 1e-4)
    best = oracle(x, differences(z))
    assert design.value == pytest.approx(best, rel=1e-3)
    assert design.lower_bound <= best * (1 + 1e-6)
    assert attained(x, design, differences(z)) == pytest.approx(design.value, rel=1e-6)
    assert design.certificate.lower_bound(x) == pytest.approx(design.lower_bound, rel=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_several_criteria_at_once_and_the_oracle_allocation_agree_with_a_conic_solver(seed):
    x, z = instance(seed)
    design = max_optimal(x, [Rows(x, scale=0.3), Pairs(z, scale=1.7)], gap=1e-4)
    check(design, 1e-4)
    directions = np.concatenate([np.sqrt(0.3) * x[np.any(x != 0, axis=1)], np.sqrt(1.7) * differences(z)])
    assert design.value == pytest.approx(oracle(x, directions), rel=1e-3)

    gaps = np.linspace(0.2, 1.5, len(z))
    design = gap_optimal(x, z, best=1, gaps=gaps, gap=1e-4)
    check(design, 1e-4)
    directions = np.delete((z[1] - z) / gaps[:, None], 1, axis=0)
    assert design.value == pytest.approx(oracle(x, directions), rel=1e-3)
    assert xy_optimal(x, directions, gap=1e-4).value == pytest.approx(design.value, rel=2e-4)


@FEW
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(0, 40))
def test_the_g_optimal_value_is_the_dimension(seed, d, more):
    x = np.random.default_rng(seed).standard_cauchy(size=(d + more, d))
    design = g_optimal(x, gap=1e-5)
    check(design, 1e-5)
    assert design.lower_bound == d
    assert attained(x, design, x) == pytest.approx(d, rel=2e-5)


def test_d_optimal_has_the_largest_determinant():
    x = np.random.default_rng(5).normal(size=(12, 3))
    weights = cp.Variable(12, nonneg=True)
    information = cp.sum([weights[i] * np.outer(row, row) for i, row in enumerate(x)])
    problem = cp.Problem(cp.Maximize(cp.log_det(information)), [cp.sum(weights) == 1])
    problem.solve(solver=cp.CLARABEL)
    design = d_optimal(x, gap=1e-5)
    check(design, 1e-5)
    assert design.value == pytest.approx(np.exp(-problem.value / 3), rel=1e-4)
    assert design.lower_bound <= np.exp(-problem.value / 3) * (1 + 1e-6)


@FEW
@given(st.integers(0, 10**6))
def test_the_certificate_is_never_above_the_value_of_any_weights(seed):
    rng = np.random.default_rng(seed)
    x, z = instance(seed)
    bound = pairs_optimal(x, z, gap=0.5, max_rounds=int(rng.integers(1, 4))).certificate.lower_bound(x)
    for concentration in (0.1, 1.0, 10.0):
        weights = rng.dirichlet(np.full(len(x), concentration)) + 1e-9
        inverse = np.linalg.inv((x * weights[:, None]).T @ x / weights.sum())
        assert bound <= np.max(np.einsum("ij,jk,ik->i", differences(z), inverse, differences(z))) * (1 + 1e-9)


def test_a_certificate_made_up_by_anyone_is_still_a_bound():
    """The bound needs nothing of how its weights and matrix were found."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(9, 3)), rng.normal(size=(4, 3))
    best = oracle(x, differences(z))
    for _ in range(200):
        half = rng.normal(size=(3, 3))
        made_up = sp.design.Certificate(
            differences(z), rng.dirichlet(np.ones(6)), half + half.T, np.zeros((6, 3), dtype=np.int64)
        )
        assert made_up.lower_bound(x) <= best * (1 + 1e-6)


def changed(kind, x, z):
    """The same problem in another form, and how its optimum scales."""
    rng = np.random.default_rng(1)
    rotation = np.linalg.qr(rng.normal(size=(x.shape[1],) * 2))[0]
    return {
        "rotated": (x @ rotation, z @ rotation, 1.0),
        "sheared": (x @ (rotation + 2 * np.eye(len(rotation))), z @ (rotation + 2 * np.eye(len(rotation))), 1.0),
        "units": (x * [1e6, 1.0, 1e-6, 3.0], z * [1e6, 1.0, 1e-6, 3.0], 1.0),
        "scaled": (x * 1e50, z * 1e50, 1.0),
        "louder": (x * 3.0, z, 1 / 9),
        "permuted": (x[rng.permutation(len(x))], z[rng.permutation(len(z))], 1.0),
        "duplicated": (np.repeat(x, 3, axis=0), np.concatenate([z, z]), 1.0),
        "negated": (x * rng.choice([-1.0, 1.0], size=(len(x), 1)), z, 1.0),
        "shifted": (x, z + 1e5, 1.0),
        "embedded": (np.column_stack([x, x[:, 0] + x[:, 1]]), np.column_stack([z, z[:, 0] + z[:, 1]]), 1.0),
        "padded": (np.concatenate([x, np.zeros((3, x.shape[1]))]), z, 1.0),
    }[kind]


@pytest.mark.parametrize(
    "kind",
    [
        *("rotated", "sheared", "units", "scaled", "louder", "permuted"),
        *("duplicated", "negated", "shifted", "embedded", "padded"),
    ],
)
def test_the_optimum_does_not_depend_on_the_form_of_the_problem(kind):
    rng = np.random.default_rng(8)
    x, z = rng.normal(size=(60, 4)), rng.normal(size=(25, 4))
    plain = pairs_optimal(x, z, gap=1e-5)
    x, z, factor = changed(kind, x, z)
    design = pairs_optimal(x, z, gap=1e-5)
    check(design, 1e-5)
    assert design.value == pytest.approx(factor * plain.value, rel=3e-5)
    assert g_optimal(x, gap=1e-5).value == pytest.approx(4, rel=2e-5)
    rows = x[design.support]
    assert len(np.unique(np.concatenate([rows, -rows]), axis=0)) == 2 * len(rows)  # no vector twice, nor its negative


def test_a_design_may_rightly_leave_most_of_the_space_unmeasured():
    """Two items, measured one by one or against each other: all questions go to the comparison."""
    design = pairs_optimal([[1, 0], [0, 1], [1, -1]], [[1, 0], [0, 1]], gap=1e-6)
    check(design, 1e-6)
    assert design.support.tolist() == [2]
    assert design.value == pytest.approx(1, rel=1e-6)
    assert design.dense().tolist() == [0, 0, 1]


def test_two_items_measured_one_by_one_share_by_their_noise():
    """min over λ of 1/(λ1 a) + 1/(λ2 b) is (a^-1/2 + b^-1/2)², attained at weights proportional to a^-1/2, b^-1/2."""
    a, b = 0.25, 0.04
    design = pairs_optimal([[np.sqrt(a), 0], [0, np.sqrt(b)]], np.eye(2), gap=1e-7)
    assert design.value == pytest.approx((a**-0.5 + b**-0.5) ** 2, rel=1e-6)
    assert design.weights == pytest.approx(np.array([2, 5]) / 7, abs=1e-3)


def test_items_without_features_compared_in_all_pairs():
    """One coordinate an item, all comparisons possible: by symmetry all equally often, value n − 1."""
    for measurements in (Pairs(np.eye(12)), differences(np.eye(12))):
        design = pairs_optimal(measurements, np.eye(12), gap=1e-4)
        check(design, 1e-4)
        assert design.value == pytest.approx(11, rel=1e-3)
        assert design.size == len(design.weights) == 66
        assert design.weights == pytest.approx(np.full(66, 1 / 66), rel=0.05)


def test_all_pairs_as_measurements_equal_their_list():
    rng = np.random.default_rng(2)
    z, directions = rng.normal(size=(30, 3)), rng.normal(size=(7, 3))
    listed = xy_optimal(differences(z), directions, gap=1e-5)
    implied = xy_optimal(Pairs(z), directions, gap=1e-5)
    check(implied, 1e-5)
    assert implied.value == pytest.approx(listed.value, rel=3e-5)
    rows = z[implied.support[:, 0]] - z[implied.support[:, 1]]
    inverse = np.linalg.inv((rows * implied.weights[:, None]).T @ rows)
    assert np.max(np.einsum("ij,jk,ik->i", directions, inverse, directions)) == pytest.approx(implied.value)


@pytest.mark.parametrize("criterion", ["pairs", "g"])
def test_a_warm_start_saves_rounds_and_changes_nothing_else(criterion):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(400, 8))
    solve = {"pairs": lambda **more: pairs_optimal(x, x, gap=1e-3, **more), "g": lambda **more: g_optimal(x, **more)}
    cold = solve[criterion]()
    for start in (cold, cold.dense()):
        warm = solve[criterion](start=start)
        assert warm.converged
        assert warm.rounds < cold.rounds
        assert warm.value == pytest.approx(cold.value, rel=0.01)


def test_not_reaching_the_gap_is_said():
    x = np.random.default_rng(0).normal(size=(300, 6))
    for limits in ({"max_rounds": 1}, {"max_seconds": 1e-6}):
        design = pairs_optimal(x, x, **limits)
        assert design.status is DesignStatus.NOT_CONVERGED
        assert not design.converged
        assert "allow more rounds" in design.status.sentence
        assert design.gap > 0.01
        best = pairs_optimal(x, x, gap=1e-4)
        assert design.lower_bound <= best.value
        assert design.value >= best.lower_bound
    assert not g_optimal(x, gap=1e-6, max_rounds=1).converged


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: g_optimal(np.zeros((0, 3))), sp.InvalidInput, "measurements is empty"),
        (lambda: g_optimal(np.zeros((4, 3))), sp.InvalidInput, "All measurement vectors are zero"),
        (lambda: g_optimal([[1.0, np.nan]]), sp.InvalidInput, "got nan at row 0, column 1"),
        (lambda: g_optimal([1.0, 2.0]), sp.InvalidInput, "must be two-dimensional"),
        (lambda: g_optimal(np.eye(2), gap=0), sp.InvalidInput, "gap must be greater than 0, got 0"),
        (
            lambda: g_optimal(np.eye(2), max_rounds=0),
            sp.InvalidInput,
            "max_rounds must be a whole number of at least 1, got 0",
        ),
        (lambda: g_optimal(np.eye(2), start=[0, 0]), sp.InvalidInput, "not all zero"),
        (lambda: g_optimal(np.eye(2), start=g_optimal(np.eye(3))), sp.InvalidInput, "over 3 measurement vectors"),
        (lambda: g_optimal(Pairs(np.eye(2)), start=[1.0]), sp.InvalidInput, "must be a design"),
        (lambda: g_optimal(Pairs(np.eye(2))).dense(), sp.InvalidInput, "no dense form"),
        (lambda: xy_optimal(np.eye(2), np.zeros((3, 2))), sp.InvalidInput, "All directions are zero"),
        (lambda: xy_optimal(np.eye(2), np.eye(3)), sp.InvalidInput, "got 3 and 2"),
        (
            lambda: xy_optimal([[1, 0], [2, 0]], [[1, 0], [1, 1]]),
            sp.NotIdentifiable,
            "Row 1 of directions lies outside",
        ),
        (lambda: pairs_optimal([[1, 1]], [[1, 0], [2, 1], [0, 1]]), sp.NotIdentifiable, "rows 0 and 2 of items"),
        (lambda: pairs_optimal(np.eye(2), [[1, 2]]), sp.InvalidInput, "pass at least two"),
        (lambda: pairs_optimal(np.eye(2), [[1, 2], [1, 2]]), sp.InvalidInput, "are the same"),
        (lambda: pairs_optimal(np.eye(2), []), sp.InvalidInput, "items"),
        (lambda: gap_optimal(np.eye(2), np.eye(2), best=2, gaps=[1, 1]), sp.InvalidInput, "0 to 1, got 2"),
        (lambda: gap_optimal(np.eye(2), np.eye(2), best=0, gaps=[0, 0]), sp.InvalidInput, "got 0 for item 1"),
        (lambda: gap_optimal(np.eye(2), [[1, 2]], best=0, gaps=[0]), sp.InvalidInput, "at least two"),
        (lambda: max_optimal(np.eye(2), []), sp.InvalidInput, "families is empty"),
        (lambda: Rows(np.eye(2), scale=-1), sp.InvalidInput, "scale must be greater than 0, got -1"),
    ],
)
def test_bad_input_gets_a_sentence(call, error, sentence):
    with pytest.raises(error) as caught:
        call()
    assert sentence in str(caught.value)


def test_one_vector_is_a_design():
    design = g_optimal([[3.0, 4.0]])
    assert (design.support.tolist(), design.weights.tolist(), design.value) == ([0], [1.0], pytest.approx(1))
    assert xy_optimal([[1.0, 2.0]], [[2.0, 4.0]]).value == pytest.approx(4)
