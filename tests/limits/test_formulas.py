"""Complexity terms, printed formulas, burn-in requirements, the 1/kappa family and the regret bound: known values."""

import math

import numpy as np
import pytest

from surepick.confidence.theorem import Budget, largest_xi, radii
from surepick.design import pairs_optimal
from surepick.errors import InvalidInput
from surepick.glm import probability_of_yes, variance
from surepick.guarantee import Guarantee
from surepick.limits import (
    Instance,
    beta_terms,
    corrected_information,
    covering_information,
    fixed_g_optimal_formula,
    gaussian_burn_in,
    kappa_family,
    kappa_family_bound,
    kazerouni_wein_formula,
    li_eigenvalue,
    printed_information,
    proof_information,
    rage_glm_2_formula,
    rage_glm_formula,
    rho_opt,
    rho_star,
    sup_logistic_regret,
)
from surepick.limits.complexity import gamma_of, items_left, number_of_rounds


def two_items(gap: float, level: float = 0.0) -> Instance:
    return Instance(np.eye(2), np.eye(2), [level + gap, level])


@pytest.mark.parametrize(("level", "gap"), [(0.0, 0.5), (3.0, 0.1), (6.0, 0.01)])
def test_rho_opt_of_two_items_has_a_closed_form(level, gap):
    """Weights in proportion to s^{-1/2}: ρ = (s₁^{-1/2} + s₂^{-1/2})²/gap², about 4·e^level/gap²."""
    first, second = variance(np.array([level + gap, level])) ** -0.5
    assert rho_opt(two_items(gap, level), gap=1e-6).value == pytest.approx((first + second) ** 2 / gap**2, rel=1e-5)


@pytest.mark.parametrize(("gap", "printed"), [(1.0, 5.77), (0.5, 3.61), (0.1, 4.55), (0.01, 1.65)])
def test_the_printed_relation_of_rho_star_is_false_and_the_corrected_one_holds(gap, printed):
    instance = two_items(gap)
    star, opt = rho_star(instance, gap=1e-4), rho_opt(instance, gap=1e-4)
    assert star.total / (math.log(2 / gap) * opt.value) == pytest.approx(printed, abs=0.01)
    assert star.total <= 64 * number_of_rounds(instance) * opt.lower_bound


@pytest.mark.parametrize("seed", range(3))
def test_terms_of_random_instances(seed):
    rng = np.random.default_rng(seed)
    instance = Instance(rng.normal(size=(40, 3)), rng.normal(size=(12, 3)), rng.normal(size=3))
    star, beta, rounds = rho_star(instance), beta_terms(instance), number_of_rounds(instance)
    assert len(star.values) == len(beta.values) == rounds
    assert star.total_at_least <= star.total <= 1.011 * star.total_at_least
    assert star.total <= 64 * rounds * rho_opt(instance).lower_bound
    # Each round tells apart what is left, and beta also has to predict all vectors.
    for k, (value, both) in enumerate(zip(star.lower_bounds, beta.values, strict=True), start=1):
        left = items_left(instance, k)
        assert instance.best in left
        assert len(left) >= 2
        assert both >= value
        assert both >= 0.99 * gamma_of(instance, 0.05) * instance.basis.rank
        attained = 4.0**k * pairs_optimal(instance.informative, instance.items[left]).value
        assert value <= attained
    assert len(items_left(instance, 1)) == 12


def test_the_printed_totals_are_the_formulas_by_hand():
    instance = two_items(0.5)
    d, count, delta, rounding = 2, 2, 0.05, 0.1
    gamma = d + math.log(6 * 4 / delta)
    burn_in = 3 * 1.1 * d * gamma * math.log(2 * count * 4 / delta) / variance(np.array(0.5))
    pair = sum(variance(np.array([0.5, 0.0])) ** -0.5) ** 2
    total = math.ceil(burn_in)
    for k in (1, 2):
        # With X = {e₁, e₂} the largest ‖x‖² is at least 1/s(0.5) + 1/s(0) by the best weights for it.
        single = gamma * float(np.sum(1 / variance(np.array([0.5, 0.0]))))
        value = rage_value(4**k * 3.5**2, gamma)
        assert value >= max(single, 4**k * 3.5**2 * pair) * (1 - 1e-9)
        total += math.ceil(max(3 * 1.1 * value * math.log(2 * k**2 * 2 * 4 / delta), 4 / rounding))
    assert rage_glm_formula(instance, delta=delta, rounding=rounding, gap=1e-7).questions == pytest.approx(total, abs=2)
    assert fixed_g_optimal_formula(instance).questions == pytest.approx(2 / (variance(np.array(0.5)) * 0.25))
    assert kazerouni_wein_formula(instance).questions == pytest.approx(2 * 2 / (variance(np.array(0.5)) ** 2 * 0.25))
    assert rage_glm_formula(instance).guarantee is Guarantee.AS_PRINTED
    assert rage_glm_2_formula(instance).questions > rage_glm_formula(instance).questions
    assert rage_glm_2_formula(instance, norm_bound=2.0).questions > rage_glm_2_formula(instance).questions
    with pytest.raises(InvalidInput, match=r"norm_bound must be at least the length of theta, 0\.5, got 0\.4"):
        rage_glm_2_formula(instance, norm_bound=0.4)


def rage_value(pairs: float, rows: float) -> float:
    """min over λ of max(rows·max 1/(λs), pairs·Σ 1/(λs)) for the two items above, by a fine grid."""
    weights = np.linspace(0.001, 0.999, 200_001)
    first, second = 1 / (weights * variance(np.array(0.5))), 1 / ((1 - weights) * variance(np.array(0.0)))
    return float(np.min(np.maximum(rows * np.maximum(first, second), pairs * (first + second))))


def information_for_width(dimension: int, budget: Budget) -> float:
    """1/ξ² at which the corrected theorem gives the printed conclusion: width 3.5·√L₁, variances within 2.2."""
    low, high = 1e-6, largest_xi(dimension, budget)
    while high / low > 1 + 1e-5:
        middle = math.sqrt(low * high)
        found = radii(middle, dimension, budget)
        narrow = found is not None and found.query <= 3.5 * math.sqrt(budget.direction_nats)
        if found is not None and narrow and found.shift <= math.log(2.2):
            low = middle
        else:
            high = middle
    return low**-2


@pytest.mark.parametrize(
    ("d", "printed", "proof", "covering", "valid", "conclusion"),
    [(10, 18.8, 652, 3102, 46.0, 89.4), (25, 35.6, 1231, 6656, 73.0, 127.3), (50, 61.9, 2143, 12389, 106.3, 169.2)],
)
def test_burn_in_requirements_have_the_tabulated_values(d, printed, proof, covering, valid, conclusion):
    lines = d * (d + 1) // 2 + 1
    budget = Budget.as_in_the_paper(0.05, lines)
    assert printed_information(d, lines, 0.05) == pytest.approx(printed, abs=0.06)
    assert proof_information(d, lines, 0.05) == pytest.approx(proof, abs=0.6)
    assert covering_information(d, lines, 0.05) == pytest.approx(covering, rel=1e-3)
    assert largest_xi(d, budget) ** -2 == pytest.approx(valid, abs=0.06)
    assert information_for_width(d, budget) == pytest.approx(conclusion, abs=0.06)
    assert corrected_information(d, lines, 0.05) <= valid + 0.06


def test_li_needs_eight_over_kappa_to_the_fourth():
    assert li_eigenvalue(3, 0.1, 0.05) == pytest.approx(8e4 * (9 + math.log(60)))


def test_gaussian_vectors_need_polynomially_many_answers_and_li_exponentially_many():
    norms = (2, 3, 4, 5)
    needed = [gaussian_burn_in(norm**2, norm, most=60_000) for norm in norms]
    for each in needed:
        counts = each.answers
        assert counts["printed"] < counts["corrected"] < counts["proof"] < counts["li"]
        assert "li" in each.extrapolated
        assert "corrected" not in each.extrapolated
    # Doubling the norm (and so d fourfold) costs a power, of degree d^1.5 and less; Li's number explodes.
    ours = needed[2].answers["corrected"] / needed[0].answers["corrected"]
    assert ours < 4**1.5
    assert needed[2].answers["li"] / needed[0].answers["li"] > math.exp(4 * 2)


def test_the_family_hides_one_item_among_n():
    family = kappa_family(25, seed=3)
    logits = family.items @ family.thetas.T
    n = len(family.items)
    assert family.items.shape == family.thetas.shape == (25, math.ceil(4 * math.log(25) / 0.25))
    np.testing.assert_allclose(np.linalg.norm(family.items, axis=1), 1)
    assert np.all(probability_of_yes(logits.diagonal()) >= 1 - 1 / (2 * n) - 1e-12)
    assert np.all(probability_of_yes(logits[~np.eye(n, dtype=bool)]) <= 1 / (2 * n) + 1e-12)
    assert np.all(np.argmax(logits, axis=0) == np.arange(n))
    assert 1 < family.items_by_kappa <= n
    assert kappa_family_bound(n) == n / 16
    assert np.array_equal(kappa_family(25, seed=3).items, family.items)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: kappa_family(20), "more than 20 items, got 20"),
        (lambda: kappa_family(30, epsilon=0.6), "epsilon must be at most 0.5"),
        (lambda: kappa_family_bound(30, delta=0.06), "delta must be at most 0.058 for this bound, got 0.06"),
        (lambda: sup_logistic_regret(5, 10, 3, kappa=0.1), "horizon must be at least"),
        (lambda: sup_logistic_regret(0, 1000, 3, kappa=0.1), "dimension must be a whole number of at least 1, got 0"),
        (lambda: printed_information(0, 3, 0.05), "dimension must be a whole number of at least 1, got 0"),
    ],
)
def test_refusals_are_one_sentence(call, sentence):
    with pytest.raises(InvalidInput) as refusal:
        call()
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_the_last_step_of_the_family_bound_holds_up_to_its_delta():
    """(1 − 1/2n)^{n/4}·(1/8 − δ) > δ for all n > 20 at 0.058, and not at the printed 1/16."""
    n = np.arange(21, 100_000)
    kept = (1 - 1 / (2 * n)) ** (n / 4)
    assert np.all(kept * (1 / 8 - 0.058) > 0.058)
    assert not np.any(kept * (1 / 8 - 1 / 16) > 1 / 16)


def test_regret_bounds_by_hand():
    d, horizon, arms, kappa = 10, 1_000_000, 5, 0.1
    printed = sup_logistic_regret(d, horizon, arms, kappa=kappa, constants="printed")
    corrected = sup_logistic_regret(d, horizon, arms, kappa=kappa)
    width = 3.5 * math.sqrt(math.log(2 * (2 + math.sqrt(d * horizon)) * 2 * 19 * horizon * arms / 0.05))
    assert printed.width == pytest.approx(width)
    root = math.sqrt(d * horizon * math.log(horizon / d) * math.log2(horizon))
    assert printed.leading == pytest.approx(10 * width * root)
    wider = 3.5 * math.sqrt(math.log(2 * (2 + horizon) * 2 * 20 * horizon * arms / 0.05))
    assert corrected.leading == pytest.approx(13 * wider * root)
    assert corrected.second == pytest.approx(160 * wider**2 * d / kappa * math.log(horizon / d) * math.log2(horizon))
    assert corrected.total > printed.total
    assert printed.guarantee is Guarantee.AS_PRINTED
    assert corrected.guarantee is not Guarantee.PROVED
