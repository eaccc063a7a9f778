"""Fixed-design intervals: coverage, sharpness, what they say of themselves, and the formulas of the others."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import norm

from helpers import most_failures
from surepick import Guarantee, InvalidInput, Tally, fit
from surepick.baselines import interval_faury, interval_li, interval_printed, interval_wald
from surepick.confidence import interval_anytime, interval_corrected
from surepick.confidence.prior_bounds import Knowledge
from surepick.confidence.theorem import Budget, radii
from surepick.glm import probability_of_yes, variance

SOARE = np.vstack([np.eye(3), [math.cos(0.1), math.sin(0.1), 0.0]])
DESIGNS = {
    "rare events": (np.eye(3), 20_000, [math.log(0.02 / 0.98)] * 3, [[1, 0, 0], [1, -1, 0]]),
    "gaussian": (np.random.default_rng(5).normal(size=(25, 3)), 300, [0.7, -0.5, 0.4], [[1, 0, 0], [1, -1, 1]]),
    "soare": (SOARE, 2_000, [2.0, 0.0, 0.0], [SOARE[0] - SOARE[3], [1, -1, 0]]),
}
KNOWLEDGE = {
    "norm_bound": lambda vectors, truth: {"norm_bound": 1.05 * np.linalg.norm(truth)},
    "kappa": lambda vectors, truth: {"kappa": float(variance(vectors @ truth).min())},
    "logit_bounds": lambda vectors, truth: {"logit_bounds": np.abs(vectors @ truth)},
    "nothing": lambda vectors, truth: {},
}


def simulated(design: str, rng: np.random.Generator, times: int = 1):
    """A tally drawn from a design, its queries and the truth at them."""
    vectors, pulls, truth, queries = DESIGNS[design]
    counts = np.full(len(vectors), pulls * times)
    tally = Tally(vectors, counts, rng.binomial(counts, probability_of_yes(vectors @ np.array(truth))))
    return tally, np.array(queries, dtype=float), np.array(queries) @ np.array(truth)


@pytest.mark.parametrize(
    ("design", "knowledge", "runs"),
    [
        *[(design, knowledge, 100) for design in DESIGNS for knowledge in ("kappa", "logit_bounds")],
        *[(design, "norm_bound", 100) for design in ("gaussian", "soare")],
        *[(design, "nothing", 12) for design in DESIGNS],
    ],
)
def test_coverage_of_the_corrected_theorem(rng, design, knowledge, runs):
    """At most delta of the runs miss a query; intervals of a fraction of the width are caught by the same count."""
    delta, shrunk = 0.2, 40 if knowledge == "nothing" else 10
    misses, control = 0, 0
    for _ in range(runs):
        tally, queries, truth = simulated(design, rng)
        known = KNOWLEDGE[knowledge](tally.vectors, np.array(DESIGNS[design][2]))
        result = interval_corrected(tally, queries, delta=delta, data="fixed", **known)
        assert result.valid, result.reason
        assert result.guarantee is Guarantee.PROVED
        error = np.abs(result.centre - truth)
        misses += np.any(error > result.half_width)
        control += np.any(error > result.half_width / shrunk)
    assert misses <= most_failures(runs, delta)
    assert control > most_failures(runs, delta)


def test_the_ellipsoid_holds_in_the_worst_direction(rng):
    """Coverage for the direction in which each run errs most, which no finite list of queries allows."""
    delta, runs, misses, control = 0.2, 100, 0, 0
    truth = np.array(DESIGNS["gaussian"][2])
    for _ in range(runs):
        tally, _, _ = simulated("gaussian", rng)
        estimate = fit(tally)
        worst = estimate.information @ (estimate.theta - truth)
        result = interval_corrected(
            tally, [worst], delta=delta, data="fixed", form="ellipsoid", norm_bound=1.0, fitted=estimate
        )
        assert result.valid
        error = abs(result.centre[0] - worst @ truth)
        misses += error > result.half_width[0]
        control += error > result.half_width[0] / 4
    assert misses <= most_failures(runs, delta)
    assert control > most_failures(runs, delta)


@pytest.mark.parametrize("dimension", [1, 2, 5, 10, 25, 50])
@pytest.mark.parametrize("delta", [0.05, 0.001])
@pytest.mark.parametrize("probability", [0.5, 0.03])
def test_the_price_of_proof_is_at_most_seventy_percent(dimension, delta, probability):
    """Half-width over Wald's at the same delta, one query, where ξ·√γ is 0.05."""
    gamma = dimension + math.log(6 * (2 + dimension) / delta)
    pulls = math.ceil(gamma / 0.05**2 / (probability * (1 - probability)))
    wins = round(probability * pulls)
    tally = Tally(np.eye(dimension), [pulls] * dimension, [wins] * dimension)
    query = np.eye(dimension)[:1]
    bounds = abs(math.log(probability / (1 - probability)))
    proved = interval_corrected(tally, query, delta=delta, data="fixed", logit_bounds=bounds)
    assert proved.valid
    assert proved.details["xi"] * math.sqrt(gamma) == pytest.approx(0.05, rel=0.01)
    ratio = proved.half_width[0] / interval_wald(tally, query, delta=delta).half_width[0]
    assert 1 < ratio <= 1.7


def test_the_numbers_are_those_of_the_theorem():
    """Two orthogonal vectors: every quantity by hand."""
    tally = Tally(np.eye(2), [4000, 9000], [1600, 5000])
    result = interval_corrected(
        tally, [[1.0, 0.0]], delta=0.05, data="fixed", logit_bounds=[0.5, 0.3], form="ellipsoid"
    )
    floor = np.array([4000, 9000]) * variance(np.array([0.5, 0.3]))
    assert result.details["xi"] <= 1 / math.sqrt(floor.min())
    assert result.details["xi_before_answers"] == pytest.approx(1 / math.sqrt(floor.min()))
    candidates = [
        radii(result.details["xi"], 2, Budget.split(version, 0.05, share, 2, 0))
        for version in ("union", "norm")
        for share in (0.1, 0.5, 0.9, 0.99)
    ]
    assert any(result.details["radius"] == pytest.approx(each.ellipsoid, rel=1e-6) for each in candidates)
    estimate = 4000 * 0.4 * 0.6
    norms = (1 / math.sqrt(floor[0]), math.exp(result.details["shift"] / 2) / math.sqrt(estimate))
    assert result.half_width[0] == pytest.approx(result.details["radius"] * min(norms), rel=1e-6)
    assert result.centre[0] == pytest.approx(math.log(0.4 / 0.6))


def test_knowing_more_never_costs_and_more_queries_do(rng):
    tally, queries, _ = simulated("gaussian", rng)

    def width(**options: float) -> np.ndarray:
        return interval_corrected(tally, queries, data="fixed", **options).half_width

    assert np.all(width(norm_bound=1.0) <= width(norm_bound=1.2) * (1 + 1e-6))
    assert np.all(width(norm_bound=1.0, kappa=0.1) <= width(norm_bound=1.0) * (1 + 1e-6))
    assert np.all(width(norm_bound=1.0, delta=0.1) < width(norm_bound=1.0, delta=0.01))
    many = np.vstack([queries, rng.normal(size=(500, 3))])
    assert np.all(interval_corrected(tally, many, data="fixed", norm_bound=1.0).half_width[:2] > width(norm_bound=1.0))


def test_multiples_of_a_query_are_one_query(rng):
    tally, queries, _ = simulated("gaussian", rng)
    one = interval_corrected(tally, queries[:1], data="fixed", norm_bound=1.0)
    several = interval_corrected(tally, [queries[0], -2 * queries[0], 3 * queries[0]], data="fixed", norm_bound=1.0)
    np.testing.assert_allclose(several.half_width, one.half_width[0] * np.array([1, 2, 3]), rtol=1e-9)


@pytest.mark.parametrize("knowledge", ["norm_bound", "nothing"])
def test_units_and_rotation_change_nothing(rng, knowledge):
    tally, queries, _ = simulated("gaussian", rng)
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    known = {"norm_bound": 1.1} if knowledge == "norm_bound" else {}
    reference = interval_corrected(tally, queries, data="fixed", order_seed=0, **known)
    turned = interval_corrected(
        Tally(tally.vectors @ rotation, tally.pulls, tally.wins),
        queries @ rotation,
        data="fixed",
        order_seed=0,
        **known,
    )
    np.testing.assert_allclose(turned.low, reference.low, rtol=1e-5)
    np.testing.assert_allclose(turned.high, reference.high, rtol=1e-5)
    units = 1e40
    scaled = {name: value / units for name, value in known.items()}
    larger = interval_corrected(
        Tally(tally.vectors * units, tally.pulls, tally.wins), queries * units, data="fixed", order_seed=0, **scaled
    )
    np.testing.assert_allclose(larger.low, reference.low, rtol=1e-5)


def test_collinear_columns_give_the_interval_of_the_reduced_problem(rng):
    tally, queries, _ = simulated("gaussian", rng)
    doubled = [0, 1, 2, 0]
    wide = Tally(tally.vectors[:, doubled], tally.pulls, tally.wins)
    outside = np.array([[1.0, 0.0, 0.0, 0.0]])
    result = interval_corrected(wide, np.vstack([queries[:, doubled], outside]), data="fixed", kappa=0.2)
    reduced = interval_corrected(tally, np.vstack([queries, [[9.0, 9.0, 1.0]]]), data="fixed", kappa=0.2)
    np.testing.assert_allclose(result.half_width[:2], reduced.half_width[:2], rtol=1e-5)
    assert result.details["d"] == 3
    assert (result.low[2], result.high[2]) == (-math.inf, math.inf)
    assert not result.valid
    assert "1 of 3 queries lie outside the span" in result.reason


# Where the theorem does not apply.


def test_a_failed_burn_in_says_how_many_more_answers_suffice():
    tally = Tally(np.eye(2), [60, 80], [20, 50])
    result = interval_corrected(tally, [[1.0, 0.0]], data="fixed", norm_bound=2.0)
    short = interval_corrected(tally, [[1.0, 0.0]], data="adaptive", norm_bound=2.0)
    assert not result.valid
    assert result.method == "corrected (anytime)"
    assert result.low[0] < -math.log(2) < result.high[0]
    assert "more answers in all" in result.reason
    times = float(result.reason.split("about ")[1].split(" times")[0])
    assert 1 < times < 100
    enough = math.ceil(times * 1.02)
    more = Tally(np.eye(2), tally.pulls * enough, tally.wins * enough)
    assert interval_corrected(more, [[1.0, 0.0]], data="fixed", norm_bound=2.0).valid
    assert "questions may have depended" in short.reason


def test_separated_answers_have_no_finite_interval():
    tally = Tally(np.eye(2), [50, 50], [50, 20])
    for result in (
        interval_corrected(tally, [[0.0, 1.0]], data="fixed", norm_bound=1.0),
        interval_corrected(tally, [[0.0, 1.0]], data="fixed"),
        interval_printed(tally, [[0.0, 1.0]], data="fixed", norm_bound=1.0),
        interval_wald(tally, [[0.0, 1.0]]),
        interval_li(tally, [[0.0, 1.0]], norm_bound=1.0, data="fixed"),
    ):
        assert not result.valid
        assert "separates the ones from the zeros" in result.reason
        assert (result.low[0], result.high[0]) == (-math.inf, math.inf)


METHODS = {
    "corrected": lambda tally, queries, **options: interval_corrected(tally, queries, norm_bound=1.0, **options),
    "corrected-ellipsoid": lambda tally, queries, **options: interval_corrected(
        tally, queries, norm_bound=1.0, form="ellipsoid", **options
    ),
    "printed": lambda tally, queries, **options: interval_printed(
        tally, queries, norm_bound=1.0, form="known", **options
    ),
    "printed-empirical": lambda tally, queries, **options: interval_printed(tally, queries, norm_bound=1.0, **options),
    "li": lambda tally, queries, **options: interval_li(tally, queries, norm_bound=1.0, **options),
    "anytime": lambda tally, queries, **options: interval_anytime(tally, queries, **options),
}
FIXED_GUARANTEE = {
    "corrected": Guarantee.PROVED,
    "corrected-ellipsoid": Guarantee.PROVED,
    "printed": Guarantee.AS_PRINTED,
    "printed-empirical": Guarantee.AS_PRINTED,
    "li": Guarantee.CITED,
    "anytime": Guarantee.PROVED,
}


@pytest.mark.parametrize("method", METHODS)
def test_methods_say_what_they_promise(rng, method):
    tally, queries, _ = simulated("gaussian", rng)
    fixed = METHODS[method](tally, queries, data="fixed")
    assert fixed.method == method
    assert fixed.guarantee is FIXED_GUARANTEE[method]
    assert fixed.statement.endswith(".")
    adaptive = METHODS[method](tally, queries, data="adaptive")
    assert METHODS[method](tally, queries).valid == adaptive.valid  # adaptive is the default
    if method == "anytime":  # without an order nothing can be said, and that is what it says
        assert np.isinf(adaptive.half_width).all()
        batches = [tally, tally]
        assert METHODS[method](batches, queries, data="adaptive").guarantee is Guarantee.PROVED
    else:
        assert adaptive.guarantee is Guarantee.HEURISTIC
    assert not adaptive.valid
    assert adaptive.reason


def test_only_wald_and_faury_do_not_ask_how_the_data_came_about(rng):
    tally, queries, _ = simulated("gaussian", rng)
    assert interval_wald(tally, queries).guarantee is Guarantee.HEURISTIC
    assert interval_faury(tally, queries, norm_bound=1.0).guarantee is Guarantee.CITED


# The others, against their formulas.


def test_wald_agrees_with_statsmodels(rng):
    tally, queries, _ = simulated("gaussian", rng)
    glm = sm.GLM(np.column_stack([tally.wins, tally.pulls - tally.wins]), tally.vectors, family=sm.families.Binomial())
    theirs = glm.fit(tol=1e-12).t_test(queries)
    ours = interval_wald(tally, queries, delta=0.1)
    np.testing.assert_allclose(ours.centre, theirs.effect, rtol=1e-6)
    np.testing.assert_allclose(np.column_stack([ours.low, ours.high]), theirs.conf_int(alpha=0.1), rtol=1e-5)
    assert ours.details["radius"] == pytest.approx(norm.isf(0.05))


def test_the_printed_theorem_counts_vectors_and_not_lines(rng):
    """x and −x are one line and two vectors; the paper's t_eff is the number of distinct vectors."""
    tally, queries, _ = simulated("gaussian", rng)
    turned = Tally(np.vstack([tally.vectors, -tally.vectors, tally.vectors]), [*tally.pulls] * 3, [*tally.wins] * 3)
    found = interval_printed(turned, queries, delta=0.05, data="fixed", norm_bound=1.0, form="known")
    assert found.details["gamma"] == pytest.approx(3 + math.log(6 * (50 + 1 + 2) / 0.05))


def test_the_printed_theorem_has_the_printed_constants(rng):
    tally, queries, _ = simulated("gaussian", rng)
    events, delta = 25 + 1 + 2, 0.05  # all asked vectors, the norm, two queries
    root = math.sqrt(math.log(2 * events / delta))
    known = interval_printed(tally, queries, delta=delta, data="fixed", norm_bound=1.0, form="known")
    empirical = interval_printed(tally, queries, delta=delta, data="fixed", norm_bound=1.0)
    assert known.details["gamma"] == pytest.approx(3 + math.log(6 * events / delta))
    assert known.details["radius"] == pytest.approx(3.5 * root)
    np.testing.assert_allclose(empirical.half_width, 5.2 * root * fit(tally).inverse_norms(queries), rtol=1e-9)
    floor = (tally.vectors.T * (tally.pulls * variance(np.linalg.norm(tally.vectors, axis=1)))) @ tally.vectors
    lengths = np.sqrt(np.einsum("ij,jk,ik->i", queries, np.linalg.inv(floor), queries))
    np.testing.assert_allclose(known.half_width, 3.5 * root * lengths, rtol=1e-9)
    few = Tally(tally.vectors, [3] * 25, [1] * 25)
    refused = interval_printed(few, queries, data="fixed", norm_bound=1.0)
    assert "printed condition" in refused.reason
    assert np.isinf(refused.half_width).all()


def test_li_has_its_formula():
    tally = Tally(0.5 * np.eye(2), [10**7, 10**7], [4 * 10**6, 6 * 10**6])
    result = interval_li(tally, [[0.5, 0.0]], norm_bound=1.0, delta=0.03, data="fixed")
    kappa = float(variance(np.array(0.5 + 1.0)))  # vectors of length one after scaling, hence a norm of 0.5
    assert result.details["kappa"] == pytest.approx(kappa)
    nats = math.log(3 / 0.03)
    assert result.half_width[0] == pytest.approx(1.5 / kappa * math.sqrt(nats) / math.sqrt(10**7))
    assert result.valid
    needed = 8 * (4 + nats) / kappa**4
    scarce = Tally(0.5 * np.eye(2), [int(needed) - 2, 10**7], [int(needed / 2), 10**6])
    refused = interval_li(scarce, [[0.5, 0.0]], norm_bound=1.0, delta=0.03, data="fixed")
    assert np.isinf(refused.half_width).all()
    assert "smallest eigenvalue" in refused.reason


@pytest.mark.parametrize("bound", [3.0, 0.1])
def test_faury_has_its_formula(bound):
    tally = Tally(np.eye(2), [300, 500], [140, 260])
    result = interval_faury(tally, [[1.0, 1.0]], norm_bound=bound, delta=0.05)
    d, nats = 2, math.log(20)
    eta = (d + nats) / (bound + 0.5)
    gamma = (
        math.sqrt(eta) * (bound + 0.5)
        + 2 / math.sqrt(eta) * nats
        + 2 * d / math.sqrt(eta) * math.log(2 * math.sqrt(1 + 800 / (d * eta)))
    )
    assert result.details["gamma"] == pytest.approx(gamma)
    inside = bound == 3.0  # then the ridge estimate needs no projection
    assert (result.details["attained"] < 1e-6) == inside
    assert result.details["radius"] == pytest.approx((1 + 2 * bound) * (gamma + result.details["attained"]))
    assert result.details["radius"] <= (2 + 4 * bound) * gamma
    if inside:
        ridge = fit(tally, ridge=eta)
        assert result.centre[0] == pytest.approx(ridge.theta.sum(), abs=1e-8)
        shape = np.linalg.inv(tally.information(ridge.theta) + eta * np.eye(2))
        worst = np.linalg.inv(np.diag([300, 500] * variance(np.array([bound, bound]))) + eta * np.eye(2))
        length = min(math.sqrt(shape.sum()), math.sqrt(worst.sum()))
        assert result.half_width[0] == pytest.approx(result.details["radius"] * length, rel=1e-6)


@pytest.mark.parametrize("method", ["faury", "li"])
def test_coverage_of_cited_methods(rng, method):
    delta, runs, misses = 0.2, 40, 0
    for _ in range(runs):
        if method == "li":  # its burn-in asks for more
            tally, queries, truth = simulated("gaussian", rng, times=10**7)
            result = interval_li(tally, queries, norm_bound=1.2, delta=delta, data="fixed")
            assert result.valid, result.reason
        else:
            tally, queries, truth = simulated("gaussian", rng)
            result = interval_faury(tally, queries, norm_bound=1.2, delta=delta)
        misses += np.any((truth < result.low) | (truth > result.high))
    assert misses <= most_failures(runs, delta)


# Knowledge.


def test_the_best_knowledge_counts_for_each_vector():
    vectors = np.array([[1.0, 0.0], [0.0, 3.0]])
    floor = Knowledge(norm_bound=1.0, kappa=0.1, logit_bounds=[2.0, 0.5]).variance_floor(vectors)
    np.testing.assert_allclose(floor, [variance(np.array(1.0)), variance(np.array(0.5))])
    np.testing.assert_allclose(Knowledge(kappa=0.1).variance_floor(vectors), 0.1)
    assert not Knowledge()
    assert Knowledge(kappa=0.2)


def test_logit_bounds_belong_to_the_rows_of_the_tally():
    tally = Tally([[1.0], [5.0], [2.0]], [900, 0, 800], [400, 0, 350])
    reordered = Tally([[2.0], [1.0]], [800, 900], [350, 400])
    a = interval_corrected(tally, [[1.0]], data="fixed", logit_bounds=[0.3, 9.0, 0.6])
    b = interval_corrected(reordered, [[1.0]], data="fixed", logit_bounds=[0.6, 0.3])
    assert a.half_width[0] == pytest.approx(b.half_width[0], rel=1e-9)
    with pytest.raises(InvalidInput, match="list of 3 numbers"):
        interval_corrected(tally, [[1.0]], data="fixed", logit_bounds=[0.3, 0.6])
    with pytest.raises(InvalidInput, match="one tally"):
        interval_corrected([tally, tally], [[1.0]], data="fixed", logit_bounds=[0.3, 9.0, 0.6])


@pytest.mark.parametrize("kind", ["collinear", "heavy-tailed"])
def test_the_anytime_interval_stands_in_where_the_theorem_does_not_apply(kind):
    rng, delta, runs, missed = np.random.default_rng(8), 0.3, 20, 0
    truth, query = np.array([0.5, -0.5]), np.array([[1.0, 1.0]])
    for run in range(runs):
        rows = rng.normal(size=(400, 2)) if kind == "collinear" else rng.standard_t(1.5, size=(400, 2))
        if kind == "collinear":
            rows[:, 1] = rows[:, 0] + 0.05 * rows[:, 1]
        wins = rng.binomial(1, probability_of_yes(rows @ truth))
        tally = Tally(rows, np.ones(400, dtype=int), wins)
        result = interval_corrected(tally, query, delta=delta, data="fixed", order_seed=run)
        assert result.method == "corrected (anytime)"
        assert result.guarantee is Guarantee.PROVED
        assert np.isfinite(result.half_width).all()
        assert "this is the anytime interval" in result.reason
        missed += not result.low[0] <= query[0] @ truth <= result.high[0]
    assert missed <= most_failures(runs, delta)
