"""The anytime sequence: its evidence is one, its sets hold the truth, and its bounds are those of the sets."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from helpers import most_failures, sigmoid
from surepick import Guarantee, InvalidInput, Tally
from surepick.confidence import ConfidenceSet, in_given_order, interval_anytime
from surepick.glm import probability_of_yes
from surepick.glm.fit import CountProblem

SEEDS = st.integers(0, 2**32 - 1)
QUESTIONS = np.array([[1.0], [0.3], [-2.0]])


def with_offsets(region: ConfidenceSet, offsets: np.ndarray) -> ConfidenceSet:
    return dataclasses.replace(region, evidence=dataclasses.replace(region.evidence, offsets=offsets))


def peeking(region: ConfidenceSet) -> ConfidenceSet:
    """Negative control: every batch is predicted by an estimate that has already seen it."""
    fits = [
        CountProblem(region.rows, pulls, wins).solve(ridge=0.1, start=None)
        for pulls, wins in zip(region.evidence.pulls, region.evidence.wins, strict=True)
    ]
    weights = [math.log((j + 1) * (j + 2)) for j in range(len(fits))]
    return with_offsets(region, np.array([-f.loss - w for f, w in zip(fits, weights, strict=True)]))


def as_it_is(region: ConfidenceSet) -> ConfidenceSet:
    return region


# Mean one, exactly.


def mean_evidence(theta: np.ndarray, answers: int, change) -> float:
    """E_θ of the evidence against θ after so many answers to questions chosen by the answers before, enumerated."""
    total = 0.0
    for path in itertools.product((0, 1), repeat=answers):
        batches, probability = [], 1.0
        for step, answer in enumerate(path):
            # Adaptive: go on asking where the last answer was yes, else turn to the next question.
            question = QUESTIONS[(step - sum(path[:step])) % 3]
            yes = sigmoid(float(question @ theta))
            probability *= yes if answer else 1 - yes
            batches.append(Tally([question], [1], [answer]))
        total += probability * math.exp(change(ConfidenceSet.of(batches)).log_evidence(theta))
    return total


@pytest.mark.parametrize("theta", [0.0, 1.5, -3.0])
def test_the_mean_of_the_evidence_against_the_truth_is_at_most_one(theta):
    theta = np.array([theta])
    # During four answers restart 0 alone is open, of weight 1/2; then restart 1 of weight 1/6 comes in.
    assert mean_evidence(theta, 4, as_it_is) == pytest.approx(1 / 2, abs=1e-6)
    assert mean_evidence(theta, 6, as_it_is) == pytest.approx(1 / 2 + 1 / 6, abs=1e-6)


def test_a_mean_above_one_gives_peeking_away():
    assert mean_evidence(np.zeros(1), 6, peeking) > 1.2


# The truth is never refuted, in most runs.


def refuted_ever(rng: np.random.Generator, change, delta: float, dimension: int = 5) -> bool:
    """Whether the truth leaves the set at any look of a run whose questions chase the current estimate."""
    truth = rng.normal(size=dimension)
    collected: list[Tally] = []
    for look in range(8):
        candidates = rng.normal(size=(12, dimension))
        pooled = sum(collected[1:], collected[0]) if collected else None
        if pooled is not None:  # ask where the estimate is most extreme
            problem = CountProblem(pooled.vectors, pooled.pulls.astype(float), pooled.wins.astype(float))
            guess = problem.solve(ridge=1.0, start=None).theta
            candidates = candidates[np.argsort(-candidates @ guess)]
        asked = candidates[:3]
        pulls = rng.integers(1, 12, size=3)
        collected.append(Tally(asked, pulls, rng.binomial(pulls, probability_of_yes(asked @ truth))))
        if look in (2, 5, 7) and not change(ConfidenceSet.of(collected)).contains(truth, delta=delta):
            return True
    return False


def test_false_exclusion_over_whole_adaptive_runs(rng):
    runs, delta = 40, 0.3
    most = most_failures(runs, delta)
    assert sum(refuted_ever(rng, as_it_is, delta) for _ in range(runs)) <= most
    assert sum(refuted_ever(rng, peeking, delta) for _ in range(runs)) > most


@pytest.mark.parametrize("seeded", ["one order", "many orders"])
def test_false_exclusion_of_counts_put_in_a_random_order(rng, seeded):
    runs, delta, refuted, control = 80, 0.3, 0, 0
    vectors = rng.normal(size=(6, 3))
    truth = np.array([0.5, -1.0, 1.0])
    for run in range(runs):
        pulls = np.full(6, 15)
        tally = Tally(vectors, pulls, rng.binomial(pulls, probability_of_yes(vectors @ truth)))
        region = ConfidenceSet.of(tally, data="fixed", order_seed=run if seeded == "many orders" else 0)
        refuted += not region.contains(truth, delta=delta)
        control += not with_offsets(region, region.evidence.offsets + 8).contains(truth, delta=delta)
    assert refuted <= most_failures(runs, delta)
    assert control > most_failures(runs, delta)  # 8 nats too much evidence would be noticed


def test_the_order_of_batches_matters_and_its_seed_only_for_large_ones(rng):
    small = [Tally([[1.0, x]], [1], [x > 0]) for x in rng.normal(size=30)]
    assert ConfidenceSet.of(small, order_seed=0).evidence.offsets == pytest.approx(
        ConfidenceSet.of(small, order_seed=1).evidence.offsets
    )
    assert ConfidenceSet.of(small).evidence.offsets != pytest.approx(ConfidenceSet.of(small[::-1]).evidence.offsets)
    large = Tally([[1.0, 0.0], [0.0, 1.0]], [300, 300], [100, 200])
    first, second = (ConfidenceSet.of(large, data="fixed", order_seed=seed).evidence for seed in (0, 1))
    assert first.offsets[0] != second.offsets[0]
    assert ConfidenceSet.of(large, data="fixed", order_seed=0).evidence.offsets == pytest.approx(
        first.offsets, rel=1e-15
    )


def test_rows_in_given_order_lose_no_answer(rng):
    tally = Tally.from_answers(rng.normal(size=(57, 2)), rng.integers(0, 2, size=57))
    batches = in_given_order(tally)
    assert np.array_equal(np.vstack([batch.vectors for batch in batches]), tally.vectors)
    assert sum(batch.total for batch in batches) == 57


# Bounds and sets agree.


def small_region(seed: int) -> ConfidenceSet:
    rng = np.random.default_rng(seed)
    dimension = int(rng.integers(1, 4))
    vectors = rng.normal(size=(dimension + 3, dimension)) * rng.choice([0.1, 1.0, 30.0])
    truth = rng.normal(size=dimension) / np.abs(vectors).max()
    pulls = rng.integers(1, 60, size=len(vectors))
    batches = [Tally(vectors, pulls, rng.binomial(pulls, probability_of_yes(vectors @ truth))) for _ in range(3)]
    return ConfidenceSet.of(batches)


def members(region: ConfidenceSet, rng: np.random.Generator, delta: float, number: int = 20) -> np.ndarray:
    """Points on the edge of the set, along rays from where the evidence is least."""
    centre = region.span.embed(region.least.point)
    root = np.linalg.inv(np.linalg.cholesky(region.least.at.hessian)).T
    found = []
    for _ in range(number):
        ray = region.span.embed(root @ rng.normal(size=len(root)))
        low, high = 0.0, 100.0
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if region.contains(centre + middle * ray, delta=delta) else (low, middle)
        found.append(centre + low * ray)
    return np.array(found)


@settings(max_examples=10)
@given(SEEDS, st.sampled_from([0.3, 0.05, 1e-4]))
def test_no_member_of_the_set_lies_outside_the_bounds(seed, delta):
    region, rng = small_region(seed), np.random.default_rng(seed)
    edge = members(region, rng, delta)
    least = region.span.embed(region.least.point)
    for query in rng.normal(size=(2, region.span.dimension)):
        low, high = region.bounds(query, delta=delta)
        reached = edge @ query
        assert low - 1e-9 <= reached.min()
        assert reached.max() <= high + 1e-9
        # A local search from the best member comes as close as the bounds promise, and no farther.
        scale = np.abs(edge - least).max(axis=0)
        best = minimize(
            lambda u, query=query, scale=scale: -query @ (scale * u),
            (edge[np.argmax(reached)] - least) / scale,
            constraints={
                "type": "ineq",
                "fun": lambda u, scale=scale: math.log(1 / delta) - region.log_evidence(least + scale * u),
            },
            method="SLSQP",
            options={"maxiter": 200, "ftol": 1e-12},
        )
        top = float(query @ (least + scale * best.x))
        if region.log_evidence(least + scale * best.x) <= math.log(1 / delta) + 1e-9:
            assert top <= high + 1e-7 * (high - low)
            assert top >= high - 2e-3 * (high - low)


@settings(max_examples=15)
@given(SEEDS, st.sampled_from([0.3, 0.01]))
def test_the_reach_covers_the_set(seed, delta):
    region, rng = small_region(seed), np.random.default_rng(seed)
    reach = region.reach(delta=delta)
    edge = members(region, rng, delta)
    moved = np.abs((edge - region.span.embed(region.least.point)) @ region.span.embed(region.rows).T)
    assert moved.max() <= reach
    assert reach <= 40 * moved.max()


@settings(max_examples=15)
@given(SEEDS)
def test_log_evidence_has_the_derivatives_it_claims_and_a_certified_minimum(seed):
    region, rng = small_region(seed), np.random.default_rng(seed)
    point = region.least.point + 0.3 * rng.normal(size=len(region.least.point)) / np.abs(region.rows).max()
    at = region.evidence.derivatives(point)
    step = 1e-5 / np.abs(region.rows).max()
    moves = step * np.eye(len(point))
    slopes = [
        (region.evidence.derivatives(point + move).value - region.evidence.derivatives(point - move).value) / (2 * step)
        for move in moves
    ]
    bends = [
        (region.evidence.derivatives(point + move).gradient - region.evidence.derivatives(point - move).gradient)
        / (2 * step)
        for move in moves
    ]
    np.testing.assert_allclose(at.gradient, slopes, rtol=1e-4, atol=1e-4 * np.abs(region.rows).max())
    np.testing.assert_allclose(at.hessian, bends, rtol=1e-3, atol=1e-3 * np.abs(region.rows).max() ** 2)
    lowest = region.least.at.value
    assert region._certified(region.least) == pytest.approx(lowest, abs=1e-6)
    for _ in range(20):
        other = region.least.point + rng.normal(size=len(point)) / np.abs(region.rows).max()
        assert region.evidence.derivatives(other).value >= region._certified(region.least)


@settings(max_examples=10)
@given(SEEDS)
def test_intervals_hold_the_least_refuted_point_and_shrink_with_delta(seed):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(5, 2))
    pulls = rng.integers(5, 80, size=5)
    batches = [Tally(vectors, pulls, rng.binomial(pulls, 0.5)) for _ in range(2)]
    queries = rng.normal(size=(2, 2))
    wide, narrow = (interval_anytime(batches, queries, delta=delta, order_seed=0) for delta in (0.01, 0.2))
    for result in (wide, narrow):
        assert result.valid
        assert result.guarantee is Guarantee.PROVED
        assert np.all(result.low < result.centre)
        assert np.all(result.centre < result.high)
    assert np.all(wide.low < narrow.low)
    assert np.all(wide.high > narrow.high)
    doubled = interval_anytime(batches, -2 * queries, delta=0.2, order_seed=0)
    np.testing.assert_allclose(doubled.low, -2 * narrow.high, rtol=1e-3, atol=1e-3)


def test_rotation_units_and_collinear_columns_change_nothing(rng):
    vectors = rng.normal(size=(5, 2))
    pulls = np.array([9, 14, 20, 11, 30])
    batches = [Tally(vectors, pulls, rng.binomial(pulls, 0.4)) for _ in range(3)]
    query = np.array([[1.0, -0.5]])
    reference = interval_anytime(batches, query, order_seed=0)
    rotation = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    for change in (lambda x: x @ rotation, lambda x: x * 1e60, lambda x: x @ rotation * 1e-60):
        other = interval_anytime(
            [Tally(change(b.vectors), b.pulls, b.wins) for b in batches], change(query), order_seed=0
        )
        np.testing.assert_allclose([other.low, other.high], [reference.low, reference.high], rtol=1e-3)
    mixed = np.array([1e20, 1e-20])  # ridge experts do depend on the mixture of units, but the sets stay sensible
    other = interval_anytime([Tally(b.vectors * mixed, b.pulls, b.wins) for b in batches], query * mixed, order_seed=0)
    np.testing.assert_allclose([other.low, other.high], [reference.low, reference.high], atol=1.0)
    double = np.array([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])  # the first column as two of half the size
    wide = [Tally(b.vectors @ double, b.pulls, b.wins) for b in batches]
    collinear = interval_anytime(wide, np.vstack([query @ double, [[1.0, 0.0, 0.0]]]))
    assert np.isfinite(collinear.half_width[0])
    assert (collinear.low[1], collinear.high[1]) == (-math.inf, math.inf)


# Special cases.


def test_separated_answers_give_one_sided_intervals():
    yes = interval_anytime(Tally([[1.0]], [40], [40]), [[1.0], [-2.0], [0.0]], data="fixed")
    assert 0 < yes.low[0] < 5
    assert yes.high[0] == math.inf
    assert (yes.low[1], yes.high[1]) == (-math.inf, pytest.approx(-2 * yes.low[0], rel=1e-3))
    assert (yes.low[2], yes.high[2]) == (0.0, 0.0)
    assert np.isnan(yes.centre[0])
    quasi = Tally([[1.0, 0.0], [0.0, 1.0]], [40, 40], [40, 15])
    result = interval_anytime(quasi, [[1.0, 0.0], [0.0, 1.0]], data="fixed")
    assert result.high[0] == math.inf
    assert np.isfinite(result.half_width[1])


def test_ends_are_open_exactly_where_the_answers_are(rng):
    """Three of four rows pure, in general position: the first three sides are open, the mixed row has two ends."""
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    tally = Tally(rotation, [3000, 5000, 4000, 2000], [3000, 0, 4000, 700])
    result = interval_anytime(tally, np.vstack([rotation, rotation[:1] - rotation[2:3]]), data="fixed")
    assert np.isinf(result.high).tolist() == [True, False, True, False, True]
    assert np.isinf(result.low).tolist() == [False, True, False, False, True]
    assert np.all(result.low[[0, 2]] > 3)
    assert result.high[1] < -3
    assert result.low[3] < math.log(7 / 13) < result.high[3]


def test_one_answer_says_little_but_nothing_false():
    result = interval_anytime([Tally([[2.0, 0.0]], [1], [1])], [[1.0, 0.0], [0.0, 1.0]])
    assert result.valid
    assert np.all(result.low < result.high)
    assert np.isinf(result.half_width).all()


def test_a_model_that_nothing_fits_is_said_to_be_refuted():
    region = ConfidenceSet.of(Tally([[1.0]], [50], [20]), data="fixed")
    absurd = with_offsets(region, region.evidence.offsets + 50)
    assert absurd.is_empty(delta=0.05)
    assert not region.is_empty(delta=0.05)
    result = interval_anytime(Tally([[1.0]], [50], [20]), [[1.0]], data="fixed", confidence_set=absurd)
    assert not result.valid
    assert "refuted" in result.reason
    assert (result.low[0], result.high[0]) == (-math.inf, math.inf)


def test_contradictory_blocks_never_exclude_more_than_a_mixture_would(rng):
    """Judges who change their mind: the final set is about the pooled rate, and finite."""
    batches = [Tally([[1.0]], [500], [500]), Tally([[1.0]], [500], [0])]
    result = interval_anytime(batches, [[1.0]])
    assert result.low[0] < result.high[0]


@pytest.mark.parametrize("pulls", [10**6, 10**10])
def test_many_answers_narrow_the_interval_around_the_estimate(pulls):
    tally = Tally([[1.0], [2.0]], [pulls, pulls], [int(0.3 * pulls), int(pulls * sigmoid(2 * math.log(3 / 7)))])
    result = interval_anytime(tally, [[1.0]], data="fixed")
    assert result.low[0] < math.log(3 / 7) < result.high[0]
    assert result.half_width[0] < 20 / math.sqrt(pulls)


def test_single_tallies_of_adaptive_data_cannot_be_used():
    tally = Tally([[1.0]], [5], [2])
    with pytest.raises(InvalidInput, match="need their order"):
        ConfidenceSet.of(tally)
    result = interval_anytime(tally, [[1.0]])
    assert not result.valid
    assert "need their order" in result.reason


def test_the_order_is_drawn_unless_given_and_reported():
    tally = Tally([[1.0, 0.0], [0.0, 1.0]], [300, 300], [100, 200])
    first, second = (interval_anytime(tally, [[1.0, 0.0]], data="fixed") for _ in range(2))
    assert first.order_seed != second.order_seed
    again = interval_anytime(tally, [[1.0, 0.0]], data="fixed", order_seed=first.order_seed)
    assert (again.low[0], again.high[0]) == (first.low[0], first.high[0])
    assert first.low[0] != second.low[0]
