"""The lower bound: known answers, certificates checked by other means, invariances, limits, and refusals."""

import inspect
import math
import time
from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import linprog, minimize

from surepick import Problem, limits
from surepick.design import DesignStatus
from surepick.errors import InvalidInput, NotIdentifiable
from surepick.glm import probability_of_yes, softplus
from surepick.guarantee import Guarantee
from surepick.limits import Instance, LowerBound, alpha, kappa_family, kl_divergence, rho_opt
from surepick.limits.alternatives import (
    MeasuredRows,
    ScaledInverses,
    _dual_floor,
    nearest_alternatives,
    quadratic_alternatives,
)
from surepick_experiments.worlds import one_over_kappa

TWO = np.eye(2)


def lower_bound(rows, items, theta, **options) -> LowerBound:
    return limits.lower_bound(Instance(rows, items, theta), **options)


def two_armed_value(a: float, b: float) -> float:
    """V* of two independent items: the divergence at the logit that is as far from both."""
    first, second = np.array(a), np.array(b)
    p, q = probability_of_yes(first), probability_of_yes(second)
    between = (softplus(first) - softplus(second) - p * first + q * second) / (q - p)
    return float(kl_divergence(first, between))


def random_instance(seed: int, d: int, items: int, rows: int, size: float):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=d)
    return rng.normal(size=(rows, d)), rng.normal(size=(items, d)), size * theta / np.linalg.norm(theta)


@pytest.mark.parametrize(
    ("a", "b"), [(1.0, 0.5), (0.1, 0.0), (5.0, -3.0), (20.0, 10.0), (-8.0, -9.0), (0.5, 0.49), (30.0, -30.0)]
)
def test_two_items_have_the_closed_form(a, b):
    bound = lower_bound(TWO, TWO, [a, b], gap=1e-7, delta=0.01)
    known = two_armed_value(a, b)
    assert bound.value == pytest.approx(known, rel=1e-6)
    assert bound.dual == pytest.approx(known, rel=1e-6)
    assert bound.dual >= known * (1 - 1e-10)
    assert bound.questions == pytest.approx(0.98 * math.log(99) / known, rel=1e-6)
    assert bound.guarantee is Guarantee.PROVED


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [0.1, 1.0, 6.0])
def test_both_certificates_hold_and_agree(seed, size):
    rows, items, theta = random_instance(seed, 3 + seed % 4, 12, 40, size)
    bound = lower_bound(rows, items, theta)
    assert bound.status is DesignStatus.CONVERGED
    assert 0 <= bound.gap <= 0.01
    # Dual: alternatives under which another item is as good, and their mixture on every vector.
    best = items[bound.best]
    scale = np.abs(best - items[bound.rivals]) @ np.abs(theta)
    lead = np.einsum("ij,ij->i", best - items[bound.rivals], bound.alternatives)
    assert np.all(lead <= 1e-12 * scale)
    assert bound.dual_weights.sum() == pytest.approx(1)
    assert bound.dual_of(Instance(rows, items, theta)) == pytest.approx(bound.dual, rel=1e-8)
    # Primal: nobody finds a cheaper alternative to the weights by another method.
    cheapest = min(
        cheapest_alternative(rows[bound.support], bound.weights, theta, best - z) for z in others(items, bound)
    )
    assert bound.weights.sum() == pytest.approx(1)
    assert cheapest == pytest.approx(bound.value, rel=1e-4)
    assert bound.value <= cheapest * (1 + 1e-8)


def others(items, bound):
    return np.delete(items, bound.best, axis=0)


def cheapest_alternative(rows, weights, theta, normal) -> float:
    """Minimise over the hyperplane by a quasi-Newton method of somebody else."""
    free = null_space(normal[None, :])
    base = theta - normal * (normal @ theta) / (normal @ normal)
    logits = rows @ theta

    def cost(at):
        moved = rows @ (base + free @ at)
        slope = weights * (probability_of_yes(moved) - probability_of_yes(logits))
        return float(weights @ kl_divergence(logits, moved)), free.T @ (rows.T @ slope)

    found = minimize(cost, np.zeros(free.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10})
    return float(found.fun)


def test_other_weights_prove_less_and_other_mixtures_too():
    """The negative control: what is not optimal must show as a gap."""
    rows, items, theta = random_instance(3, 4, 10, 30, 1.0)
    bound = lower_bound(rows, items, theta, gap=1e-4)
    best = items[bound.best]
    uniform = np.full(len(rows), 1 / len(rows))
    assert min(cheapest_alternative(rows, uniform, theta, best - z) for z in others(items, bound)) < 0.8 * bound.value
    logits = rows @ theta
    evenly = kl_divergence(logits[:, None], rows @ bound.alternatives.T).mean(axis=1).max()
    assert evenly > 1.05 * bound.dual


def test_the_quadratic_form_is_the_limit_of_small_gaps():
    rows, items, theta = random_instance(1, 4, 8, 30, 1.0)
    apart = []
    for scale in (1.0, 0.1, 0.01):
        instance = Instance(rows, items, scale * theta)
        exact = lower_bound(rows, items, scale * theta, gap=1e-5).value
        apart.append(abs(2 * rho_opt(instance, gap=1e-6).value * exact - 1))
    assert apart[0] > 10 * apart[1]  # the error is of the order of the squared gap
    assert apart[2] < 1e-4


def fixed_point(measured, normals, gaps, shift):
    """Right side of θ_z − θ* = −gap·G⁻¹v/‖v‖²_{G⁻¹}, G = Σ λ·α(xᵀθ*, xᵀθ_z)·xxᵀ, which holds at the minimiser only.

    (Jun et al. 2021, the equation for θ_z.)
    """
    weights = measured.mass * alpha(measured.logits, measured.logits + shift @ measured.x.T)
    means = (weights @ measured.outer).reshape(len(shift), measured.x.shape[1], -1)
    across = ScaledInverses(means).times(normals)
    return -(gaps / np.einsum("ij,ij->i", normals, across))[:, None] * across


def test_alternatives_satisfy_the_printed_fixed_point_equation():
    rows, items, theta = random_instance(5, 4, 6, 25, 3.0)
    best = int(np.argmax(items @ theta))
    normals = np.delete(items[best] - items, best, axis=0)
    gaps = normals @ theta
    measured = MeasuredRows.of(rows, rows @ theta, np.random.default_rng(0).dirichlet(np.ones(25)))
    start = quadratic_alternatives(measured, normals, gaps)
    found = nearest_alternatives(measured, normals, gaps, start, tolerance=1e-20)
    np.testing.assert_allclose(fixed_point(measured, normals, gaps, found.shift), found.shift, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(np.einsum("ij,ij->i", normals, theta + found.shift), 0, atol=1e-12)
    assert np.all(found.floor <= found.cost)
    np.testing.assert_allclose(found.floor, found.cost, rtol=1e-10)
    # A point away from the minimiser does not satisfy it, and its lower bound still holds.
    assert not np.allclose(fixed_point(measured, normals, gaps, start), start, rtol=1e-3)
    rough = nearest_alternatives(measured, normals, gaps, start, tolerance=1e3)
    assert np.all(rough.floor <= found.cost)
    assert np.all(rough.cost >= found.cost)


def test_the_bound_depends_on_the_problem_not_on_how_it_is_written():
    rows, items, theta = random_instance(2, 4, 9, 30, 1.5)
    bound = lower_bound(rows, items, theta, gap=1e-5)
    rng = np.random.default_rng(0)
    turn = rng.normal(size=(4, 4))
    order = rng.permutation(len(items))
    other = lower_bound(
        np.vstack([rows, rows[:5]]) @ turn, items[order] @ turn, np.linalg.solve(turn, theta), gap=1e-5, delta=0.01
    )
    assert order[other.best] == bound.best
    assert other.dual == pytest.approx(bound.dual, rel=2e-5)
    assert other.questions == pytest.approx(bound.at(0.01), rel=2e-5)
    # An item that is far behind changes nothing; a new measurement can only help.
    behind = np.vstack([items, items[np.argmin(items @ theta)] - 5 * theta])
    assert lower_bound(rows, behind, theta, gap=1e-5).dual == pytest.approx(bound.dual, rel=2e-5)
    more = np.vstack([rows, 2 * items[bound.best] - 2 * items[bound.rivals[0]]])
    assert lower_bound(more, items, theta, gap=1e-5).dual > bound.value


def test_measurements_that_do_not_span_suffice_if_they_see_the_differences():
    pairs = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, -1.0]])
    theta = np.array([1.0, 0.4, -0.3])
    bound = lower_bound(pairs, np.eye(3), theta, gap=1e-4)
    shifted = lower_bound(pairs, np.eye(3), theta + 7.0, gap=1e-4)
    assert shifted.questions == pytest.approx(bound.questions, rel=2e-4)
    # Two items and their comparison: only the comparison is asked, and it has its own closed form.
    direct = lower_bound([[1, 0], [0, 1], [1, -1]], np.eye(2), [4.0, 3.9], gap=1e-4)
    assert direct.value == pytest.approx(float(kl_divergence(0.1, 0.0)), rel=1e-3)
    assert direct.weights[list(direct.support).index(2)] > 0.99


def test_the_family_of_hidden_items_has_a_small_asymptotic_bound():
    """An oracle asks the best item only, so the asymptotic bound stays below log(1/2.4δ)/KL there, whatever 1/κ₀."""
    family = kappa_family(21)
    theta = family.thetas[4]
    bound = lower_bound(family.items, family.items, theta)
    assert bound.best == 4
    assert bound.gap <= 0.01
    assert bound.questions < 1e-5 / family.kappa


def test_large_catalogues_are_certified_in_seconds():
    rng = np.random.default_rng(1)
    items = rng.normal(size=(3327, 25)) * np.exp(-np.arange(25) / 8)
    chosen = rng.integers(0, 3327, size=(5000, 2))
    began = time.process_time()
    bound = lower_bound(items[chosen[:, 0]] - items[chosen[:, 1]], items, rng.normal(size=25))
    assert bound.gap <= 0.01
    assert time.process_time() - began < 30


def test_what_is_out_of_reach_of_numbers_is_said_and_the_dual_still_holds():
    rows, items, theta = random_instance(5, 5, 10, 40, 150.0)
    bound = lower_bound(rows, items, theta, max_seconds=2.0)
    assert bound.dual_of(Instance(rows, items, theta)) <= bound.dual
    assert bound.status is DesignStatus.CONVERGED or bound.gap > 0.01
    hurried = lower_bound(*random_instance(0, 6, 40, 200, 3.0), gap=1e-9, max_seconds=1e-6)
    assert hurried.status is DesignStatus.NOT_CONVERGED
    assert hurried.rounds == 1
    assert 1e-9 < hurried.gap < math.inf


@pytest.mark.parametrize(
    ("words", "error", "sentence"),
    [
        ((TWO, TWO, [1.0, 1.0]), InvalidInput, "Items 0 and 1 tie for the best under theta with a score of 1"),
        ((TWO, [[1, 0], [1, 0], [0, 1]], [1.0, 0.0]), InvalidInput, "tie for the best"),
        ((TWO, [[0.1, 0.2], [0.2, 0.1]], [0.3, 0.3]), InvalidInput, "tie for the best"),
        (([[1.0, 0.0]], TWO, [1.0, 0.5]), NotIdentifiable, "outside the span of the measurement vectors"),
        ((TWO, TWO, [1.0, 0.5, 0.2]), InvalidInput, "theta must be a list of 2 numbers, got shape (3,)"),
        ((TWO, TWO[:1], [1.0, 0.5]), InvalidInput, "items holds 1 item"),
        ((np.eye(3), TWO, [1.0, 0.5]), InvalidInput, "measurements must have 2 columns"),
        ((0 * TWO, TWO, [1.0, 0.5]), InvalidInput, "All measurement vectors are zero"),
        ((TWO, TWO, [1.0, np.nan]), InvalidInput, "theta must be finite numbers"),
        ((TWO, TWO, [800.0, 1.0]), InvalidInput, "with log-odds of 800; they must not exceed 700"),
    ],
)
def test_impossible_requests_get_one_sentence(words, error, sentence):
    with pytest.raises(error) as refusal:
        lower_bound(*words)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("delta", [0.0, 1.0, 0.5, 0.7])
def test_a_delta_that_says_nothing_is_refused(delta):
    with pytest.raises(InvalidInput, match="delta must"):
        lower_bound(TWO, TWO, [1.0, 0.5], delta=delta)


@pytest.mark.parametrize(
    ("seed", "dimension", "count", "norm"), [(7, 4, 14, 24.0), (55, 4, 16, 20.0), (60, 3, 3, 13.0)]
)
def test_answers_all_but_certain_are_certified_from_below_too(seed, dimension, count, norm):
    """NearestAlternatives may run so far that the Hessian at them is nothing but rounding; duality needs none."""
    rng = np.random.default_rng([seed, 98])
    items, theta = rng.normal(size=(count, dimension)), rng.normal(size=dimension)
    bound = lower_bound(items, items, 20 * theta / np.linalg.norm(theta))
    assert bound.status is DesignStatus.CONVERGED
    assert 0 <= bound.gap <= 0.01


def test_the_dual_floor_is_below_every_cost_and_close():
    """At points near the minimiser it stays below the least cost, which another method finds."""
    rng = np.random.default_rng(3)
    rows, theta, normal = rng.normal(size=(6, 3)), rng.normal(size=3), rng.normal(size=(1, 3))
    normal *= np.sign(normal @ theta)[:, None]
    measured = MeasuredRows.of(rows, rows @ theta, np.full(6, 1 / 6))
    gaps = normal @ theta
    exact = nearest_alternatives(measured, normal, gaps, np.zeros((1, 3)), tolerance=1e-16)
    for size in (0.0, 1e-4, 1e-2):
        near = exact.shift + size * rng.normal(size=(1, 3))
        floor = _dual_floor(measured, normal, near)
        assert floor <= exact.cost * (1 + 1e-12)
        assert floor >= exact.cost * (0.998 if size < 1e-3 else 0.9)


def test_where_iterations_run_out_the_floor_still_holds(monkeypatch: pytest.MonkeyPatch):
    """However few steps are allowed, the floor stays below the least cost, though the cost does not reach it."""
    rng = np.random.default_rng(5)
    rows, theta, normals = 3 * rng.normal(size=(12, 4)), rng.normal(size=4), rng.normal(size=(30, 4))
    normals *= np.sign(normals @ theta)[:, None]
    measured = MeasuredRows.of(rows, rows @ theta, np.full(12, 1 / 12))
    start = rng.normal(size=(30, 4))
    exact = nearest_alternatives(measured, normals, normals @ theta, start, tolerance=1e-16)
    for steps in (1, 2, 3):
        monkeypatch.setattr("surepick.limits.alternatives.MOST_STEPS", steps)
        cut = nearest_alternatives(measured, normals, normals @ theta, start, tolerance=1e-16)
        assert np.all(cut.floor <= exact.cost * (1 + 1e-12))
        assert np.any(cut.cost > exact.cost * (1 + 1e-6))


class TestWinner:
    def test_the_closed_form_solves_the_linear_program(self, rng):
        """Fewest comparisons such that every loser meets enough evidence: one variable per pair."""
        items = 5
        scores = np.sort(rng.normal(size=items))[::-1]
        chances = 1 / (1 + np.exp(-(scores[:, None] - scores[None, :])))
        pairs = list(combinations(range(items), 2))
        needed = np.zeros((items - 1, len(pairs)))
        for place, (better, worse) in enumerate(pairs):
            p = chances[worse, better]
            needed[worse - 1, place] = p * math.log(2 * p) + (1 - p) * math.log(2 * (1 - p))
        kl = 0.9 * math.log(19)
        solved = linprog(np.ones(len(pairs)), A_ub=-needed, b_ub=-np.full(items - 1, kl))
        assert limits.winner_lower_bound(chances, delta=0.05) == pytest.approx(solved.fun, rel=1e-9)

    def test_it_needs_a_winner(self):
        circle = [[0.5, 0.7, 0.3], [0.3, 0.5, 0.7], [0.7, 0.3, 0.5]]
        with pytest.raises(InvalidInput, match="no winner"):
            limits.winner_lower_bound(circle)
        with pytest.raises(InvalidInput, match="p_ij"):
            limits.winner_lower_bound([[0.5, 0.9], [0.3, 0.5]])

    def test_a_model_can_only_help(self, rng):
        """Bradley–Terry alternatives are some of all alternatives, so the bound with the model is lower."""
        scores = np.array([1.5, 0.5, 0.0, -0.7])
        chances = 1 / (1 + np.exp(-(scores[:, None] - scores[None, :])))
        problem = Problem.from_pairs(np.eye(4))
        model = limits.lower_bound(limits.Instance(problem.measurements, problem.items, scores), delta=0.05)
        assert model.questions <= limits.winner_lower_bound(chances, delta=0.05)


def test_a_bound_that_does_not_converge_says_how_far_it_got():
    """In the 1/kappa_0 family from 80 items on answers are all but certain; the search must end, and say so."""
    began = time.process_time()
    bound = limits.lower_bound(one_over_kappa(80, seed=0).instance, max_seconds=3.0)
    assert time.process_time() - began < 30.0
    assert bound.status == "not converged"
    assert bound.questions > 0
    assert bound.sentence.startswith("Not converged in ")
    assert f"{bound.questions:,.4g} questions are proved" in bound.sentence
    default = inspect.signature(limits.lower_bound).parameters["max_seconds"].default
    assert default == 60.0  # without a limit of its own a caller does not wait for hours
    assert "Certified to" in limits.lower_bound(one_over_kappa(24, seed=0).instance).sentence
