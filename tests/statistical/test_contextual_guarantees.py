"""What the proved policies promise, put to the test: coverage along runs, and buckets that do not peek."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from surepick.baselines import LogisticUcb, SupCbGlm
from surepick.contextual import Choice, LikelihoodRatioUcb, OnePassUcb, SupLogistic
from surepick.contextual.sup_levels import number_of_levels
from surepick.contextual.sup_logistic import certified_radius, share_of_certificate
from surepick.glm import variance
from surepick.glm.duality import outer_radius
from surepick_experiments.worlds.contextual import ball_world, distance_in_radii, simulate

DELTA = 0.2
FALSE_ALARM = 1e-4


def worst_misfit(policy, seed, *, dimension, arms, steps, every):
    """The worst over the whole run of how far θ* is out, in units of the radius."""
    rng = np.random.default_rng([seed, 77])
    world = ball_world(rng, dimension=dimension, arms=arms, norm=1.5)
    seen = [0.0]
    count = 0

    def watch(state):
        nonlocal count
        count += 1
        if count % every == 0:
            seen.append(distance_in_radii(state, world.theta))

    run = simulate(policy, world, steps, rng, watch=watch)
    return max(seen), run.state


def is_refuted(misses, runs):
    """Whether so many misses are incredible at coverage 1 − DELTA."""
    return misses > binom.ppf(1 - FALSE_ALARM, runs, DELTA)


@pytest.mark.parametrize(
    ("policy", "setting", "runs", "shrunk"),
    [
        (LikelihoodRatioUcb(DELTA), {"dimension": 2, "arms": 5, "steps": 120, "every": 1}, 60, 0.4),
        (OnePassUcb(2.0, DELTA), {"dimension": 2, "arms": 5, "steps": 120, "every": 1}, 60, 0.6),
        (SupLogistic(2500, DELTA), {"dimension": 1, "arms": 3, "steps": 2500, "every": 100}, 20, 0.2),
    ],
    ids=["likelihood-ratio", "one-pass", "sup-logistic"],
)
def test_proved_radii_hold_along_whole_runs_and_shrunk_ones_do_not(policy, setting, runs, shrunk):
    found = [worst_misfit(policy, seed, **setting) for seed in range(runs)]
    worst = np.array([each for each, _ in found])
    assert not is_refuted(np.sum(worst > 1), runs)
    assert is_refuted(np.sum(worst > shrunk), runs)  # the negative control
    if isinstance(policy, SupLogistic):
        assert sum(policy.status(state).speaks for _, state in found) > runs / 2


def test_variances_are_bounded_from_below():
    """SupLogistic's weights never exceed the true variances while Φ's set holds the truth."""
    policy = SupLogistic(2500, DELTA)
    _, state = worst_misfit(policy, 3, dimension=1, arms=3, steps=2500, every=2500)
    rng = np.random.default_rng([3, 77])
    theta = ball_world(rng, dimension=1, arms=3, norm=1.5).theta
    assert distance_in_radii(state, theta) <= 1
    for x in np.linspace(-1, 1, 21)[:, None]:
        true = 1 / (2 + 2 * np.cosh(x @ theta))
        assert policy.variance_bound(state, x) <= true


def designs(policy, bucket, *, redraw, steps=1500, seed=0):
    """Which arms went into a bucket, when the rewards its estimate uses are drawn anew (or not)."""
    world = ball_world(np.random.default_rng(seed), dimension=2, arms=5, norm=2.0)
    arms, probabilities, uniforms = next(world.blocks(steps, np.random.default_rng([seed, 1])))
    others = np.random.default_rng([seed, 2]).random(steps)
    rng = np.random.default_rng([seed, 3])
    shared = isinstance(policy, SupCbGlm)  # every level's estimate uses the burn-in, bucket 0
    state, made = policy.start(2), []
    for i in range(steps):
        choice = policy.choose(state, arms[i], rng)
        own = choice.bucket == bucket or (shared and choice.bucket == 0)
        coin = others[i] if redraw and own else uniforms[i]
        state = policy.learn(state, arms[i], choice, float(coin < probabilities[i, choice.index]))
        if choice.bucket == bucket:
            made.append((i, choice.index))
    return made, state


def buckets_that_peek(policy, levels=(1, 2, 3, 4)):
    """Levels whose design changes with the rewards of their own estimate, among those that were used."""
    peeking = []
    for level in levels:
        straight, _ = designs(policy, level, redraw=False)
        redrawn, _ = designs(policy, level, redraw=True)
        assert len(straight) >= 20
        if straight != redrawn:
            peeking.append(level)
    return peeking


def test_buckets_of_suplogistic_do_not_depend_on_their_own_rewards():
    """The design of a bucket is a function of the arms, of Φ and of lower buckets' rewards."""
    assert buckets_that_peek(SupLogistic(1500, alpha=0.7, burn_in=200)) == []
    assert buckets_that_peek(SupLogistic(1500, DELTA), levels=(1,)) == []


def test_buckets_of_supcbglm_do_depend_on_their_own_rewards():
    """The flaw that Jun et al. found: the shared burn-in decides what reaches level 2 and above."""
    assert buckets_that_peek(SupCbGlm(1500, 5, 2.0, alpha=2.0, burn_in=40))


def test_suplogistic_says_when_the_theorem_says_nothing():
    rng = np.random.default_rng(0)
    policy = SupLogistic(300)
    state = simulate(policy, ball_world(rng), 300, rng).state
    status = policy.status(state)
    assert not status.speaks
    assert "Burn-in after 300 of 300 steps" in status.sentence
    assert "too short for the theorem" in status.sentence
    assert status.context_spread == pytest.approx(1 / 7, rel=0.1)  # E xxᵀ = I/(d+2) in the ball
    printed = SupLogistic(300, constants="printed", most_arms=20)
    state = simulate(printed, ball_world(rng), 300, rng).state
    assert not printed.status(state).speaks
    assert all(level.smallest_eigenvalue >= 0 for level in printed.status(state).levels)


def test_suplogistic_says_when_the_arms_do_not_span():
    policy = SupLogistic(400)
    state, rng = policy.start(3), np.random.default_rng(0)
    arms = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    for _ in range(100):
        choice = policy.choose(state, arms, rng)
        state = policy.learn(state, arms, choice, rng.integers(2))
    assert "do not span all features" in policy.status(state).sentence
    assert policy.status(state).context_spread == 0


def test_suplogistic_claims_nothing_beyond_its_horizon():
    rng = np.random.default_rng(0)
    policy = SupLogistic(50)
    status = policy.status(simulate(policy, ball_world(rng), 51, rng).state)
    assert not status.speaks
    assert "51 steps are more than the horizon of 50" in status.sentence


def test_suplogistic_files_late_rewards_where_they_belong():
    policy = SupLogistic(1500, alpha=0.7, burn_in=200)
    _, state = designs(policy, 1, redraw=False)
    before = [len(history) for history in state.levels.histories]
    late = policy.learn(state, np.eye(2), Choice(1, bucket=3), 1)
    after = [len(history) for history in late.levels.histories]
    assert np.subtract(after, before).tolist() == [0, 0, 1] + [0] * (len(before) - 3)
    unfiled = policy.learn(state, np.eye(2), Choice(1), 1)
    assert [len(history) for history in unfiled.levels.histories] == before


def test_budget_of_certificates_sums_to_one():
    total = sum(share_of_certificate(issued) for issued in range(2**14 - 1))
    assert total == pytest.approx(1 - 1 / 15)
    assert all(share_of_certificate(i + 1) <= share_of_certificate(i) for i in range(200))


def test_certified_radius_is_that_of_the_theorem():
    assert math.isinf(certified_radius(1.5, 3, 0.05, 0))
    near_limit = certified_radius(1e-4, 5, 0.05, 0)
    assert near_limit == pytest.approx(math.sqrt(5) + math.sqrt(2 * math.log(2 / 0.05)), rel=0.02)
    many = certified_radius(1e-4, 50, 0.05, 20 * 10**6)
    assert many == pytest.approx(math.sqrt(2 * math.log(2 * 20 * 10**6 / 0.025)), rel=0.01)
    assert certified_radius(0.02, 5, 0.05, 0) > near_limit


@pytest.mark.parametrize("horizon", [2, 3, 4, 5, 16, 17, 1000, 10**6, 10**7])
def test_levels_reach_the_last_width_and_no_further(horizon):
    levels = number_of_levels(horizon)
    assert 0.5**levels <= 1 / math.sqrt(horizon)
    assert levels == max(1, math.ceil(0.5 * math.log2(horizon)))
    assert levels <= max(1, math.floor(math.log2(horizon)))


def test_outer_radius_solves_its_equation_from_above():
    for reach, decrement, room in [(0.3, 0.0, 10.0), (0.05, 0.1, 4.0), (2.0, 0.2, 7.0), (1e-8, 0.3, 5.0)]:
        r = outer_radius(reach, decrement, room)
        k = max(reach, 1e-5)
        value = -decrement * r + (math.expm1(-k * r) + k * r) / k**2
        assert room * (1 - 1e-9) <= value <= room * 1.001
    assert math.isinf(outer_radius(1.0, 1.0, 3.0))


@pytest.mark.parametrize(
    "policy",
    [SupLogistic(3000, alpha=0.7, burn_in=200), SupLogistic(3000, DELTA)],
    ids=["printed", "corrected"],
)
def test_many_steps_at_once_are_the_same_as_one_by_one(policy):
    world = ball_world(np.random.default_rng(2), dimension=2, arms=5, norm=1.0)
    arms, probabilities, uniforms = next(world.blocks(3000, np.random.default_rng(3)))
    rewards = (uniforms[:, None] < probabilities).astype(float)
    state, rng, single = policy.start(2), np.random.default_rng(4), []
    for i in range(3000):
        choice = policy.choose(state, arms[i], rng)
        state = policy.learn(state, arms[i], choice, rewards[i, choice.index])
        single.append(choice.index)
    many, chosen = policy.advance(policy.start(2), arms[:1234], rewards[:1234], np.random.default_rng(4))
    many, rest = policy.advance(many, arms[1234:], rewards[1234:], np.random.default_rng(5))
    assert [*chosen, *rest] == single
    assert many.learnt == state.learnt == 3000
    for one, other in zip(many.levels.histories, state.levels.histories, strict=True):
        assert np.array_equal(one.rows, other.rows)
        assert np.array_equal(one.answers, other.answers)
    assert np.allclose(many.levels.thetas, state.levels.thetas, rtol=1e-12)
    assert sum(len(history) > 0 for history in state.levels.histories) >= 1


def test_the_radius_of_faury_covers_the_information_at_the_truth_whatever_the_estimate():
    """Answers that are all ones push the estimate far out, where there is little information; θ* may still be zero."""
    policy = LogisticUcb(2.0, delta=0.1)
    state, arms = policy.start(2), np.eye(2)
    for step in range(400):
        state = policy.learn(state, arms, Choice(step % 2), 1)
    ridge = policy.ridge(2)
    at_truth, at_estimate = 200 / 4 * np.eye(2), np.diag(200 * variance(state.estimate.theta))

    def cited(information):
        """Faury et al. 2020, Theorem 1, for the score at θ*, and the ridge's share."""
        spread = np.linalg.slogdet(information / ridge + np.eye(2))[1] / 2 + 2 * math.log(2)
        return math.sqrt(ridge) * 2.5 + 2 / math.sqrt(ridge) * (math.log(1 / 0.1) + spread)

    assert policy.gamma(state) >= cited(at_truth) > cited(at_estimate)
