"""Proven lower bounds of the evidence over half-spaces: never above what any point shows, and close to the least."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from surepick import Tally
from surepick.evidence.likelihood_ratio import Evidence, evidence_from_batches
from surepick.evidence.plug_in_bounds import localiser, plug_in_bounds, region
from surepick.glm.batched_newton import onto
from surepick.glm.loss import probability_of_yes

SEEDS = st.integers(0, 2**32 - 1)


def some_evidence(seed: int, certain: bool = False) -> Evidence:
    """Of three batches on six vectors; with `certain`, all answers to the first vector agree."""
    rng = np.random.default_rng(seed)
    vectors, truth = rng.normal(size=(6, 2)), rng.normal(size=2)
    batches = []
    for _ in range(3):
        pulls = rng.integers(5, 60, size=6)
        wins = rng.binomial(pulls, probability_of_yes(vectors @ truth))
        wins = np.clip(wins, 1, pulls - 1)
        if certain:
            wins[0] = pulls[0]
        batches.append(Tally(vectors, pulls, wins))
    return evidence_from_batches(batches, rng)[1]


def rivals(evidence: Evidence, rng: np.random.Generator, count: int) -> np.ndarray:
    """Normals y of half-spaces yᵀθ ≤ 0 that do not hold the point of least evidence, as those of real rivals."""
    normals = rng.normal(size=(count, 2))
    centre = localiser(evidence, math.inf).centre
    return normals * np.sign(normals @ centre)[:, None]


@settings(max_examples=15)
@given(SEEDS, st.sampled_from([0.0, 0.2]), st.booleans())
def test_no_point_of_the_half_space_has_less_evidence_than_was_proved(seed, epsilon, certain):
    rng = np.random.default_rng(seed)
    evidence = some_evidence(seed, certain)
    normals = rivals(evidence, rng, 4)
    passed = plug_in_bounds(evidence, normals, epsilon, np.zeros((4, 2)))
    for normal, bound, point in zip(normals, passed.bounds, passed.points, strict=True):
        inside = onto(point + rng.normal(size=(200, 2)), np.tile(normal, (200, 1)), epsilon)
        inside -= normal * rng.exponential(size=(200, 1))
        assert evidence.log_evidence(inside).min() >= bound
        if np.isfinite(bound):  # little is lost: shares that are not those of the least point cost less than a nat
            least = minimize(
                lambda theta: float(evidence.log_evidence(theta[None, :])[0]),
                point,
                constraints={"type": "ineq", "fun": lambda theta, y=normal: -float(y @ theta) - epsilon},
                method="SLSQP",
            )
            assert bound >= least.fun - 1.0


@settings(max_examples=15)
@given(SEEDS, st.sampled_from([0.5, 3.0]))
def test_the_region_holds_every_point_with_no_more_than_the_room(seed, room):
    rng = np.random.default_rng(seed)
    evidence = some_evidence(seed)
    normals = rivals(evidence, rng, 1)
    passed = plug_in_bounds(evidence, normals, 0.0, np.zeros((1, 2)))
    theta, below = passed.points, passed.below
    around = region(below, theta, normals, passed.multipliers, np.array([room]))
    assert np.all(np.isfinite(around.half))
    rows = evidence.vectors.rows
    level = below.values(theta)[0] + room
    for direction in rng.normal(size=(40, 2)):
        inwards = -direction if normals[0] @ direction > 0 else direction
        low, high = 0.0, 100.0
        for _ in range(40):  # along each ray to where the room is used up
            middle = (low + high) / 2
            low, high = (middle, high) if below.values(theta + middle * inwards)[0] <= level else (low, middle)
        moved = low * inwards
        assert low > 0
        assert np.all(np.abs(rows @ moved) <= around.half[0])
        assert -normals[0] @ moved <= around.depth[0]


@settings(max_examples=10)
@given(SEEDS)
def test_the_localiser_misses_only_half_spaces_that_the_evidence_refutes(seed):
    rng = np.random.default_rng(seed)
    evidence, threshold = some_evidence(seed), math.log(1 / 0.01)
    found = localiser(evidence, threshold)
    assert math.isfinite(found.radius)
    normals = rng.normal(size=(20, 2))
    far = -float(np.abs(normals @ found.centre).max()) * 3 - 10
    for epsilon in (0.0, 0.5, -far):
        misses = found.misses(normals, epsilon)
        bounds = plug_in_bounds(evidence, normals, epsilon, np.tile(found.centre, (20, 1))).bounds
        assert np.all(bounds[misses & np.isfinite(bounds)] >= threshold - 1e-6)
    assert found.misses(normals, -far).all()


@pytest.mark.parametrize("certain", [False, True])
def test_a_localiser_that_is_not_proved_excludes_nothing(certain):
    evidence = some_evidence(3, certain)
    nowhere = localiser(evidence, threshold=-1e9)  # less than the least evidence: no point is left to be around
    assert math.isinf(nowhere.radius)
    assert not nowhere.misses(np.ones((3, 2)), 1e9).any()
