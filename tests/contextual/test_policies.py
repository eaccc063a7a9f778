"""What every contextual policy keeps to: purity, exact replay, clear refusals, invariances."""

import math
import re

import numpy as np
import pytest
from scipy.stats import binom

from surepick import Guarantee, InvalidInput
from surepick.baselines import (
    EcoLog,
    Greedy,
    LogisticThompson,
    LogisticUcb,
    OfuGlb,
    SquareCb,
    SupCbGlm,
    SupLogisticPrinted,
    UcbGlm,
)
from surepick.contextual import Choice, LikelihoodRatioUcb, OnePassUcb, SupLogistic, sup_levels
from surepick.contextual.sup_levels import empty_levels, refreshed, stored
from surepick.glm.kernels import newton
from surepick.registry import NAMES, policy_by_name
from surepick_experiments.worlds.contextual import ball_world, simulate, trap_world

EVERY = pytest.mark.parametrize("name", NAMES)


def make(name, horizon=300, arms=6):
    return policy_by_name(name, horizon=horizon, arms=arms, norm_bound=3.0)


def play(policy, steps, *, seed=0, state=None, first=0, change=lambda arms: arms):
    """(choices, state) of a run on a fixed stream; `first` skips its beginning."""
    world = ball_world(np.random.default_rng(seed), dimension=3, arms=6, norm=2.0)
    arms, probabilities, uniforms = next(world.blocks(400, np.random.default_rng([seed, 1])))
    state = policy.start(3) if state is None else state
    choices = []
    for i in range(first, first + steps):
        choice = policy.choose(state, change(arms[i]), np.random.default_rng([seed, i]))
        state = policy.learn(state, change(arms[i]), choice, float(uniforms[i] < probabilities[i, choice.index]))
        choices.append(choice)
    return choices, state


@EVERY
def test_choosing_is_pure_and_old_states_stay_valid(name):
    policy = make(name)
    _, early = play(policy, 60)
    once, _ = play(policy, 40, state=early, first=60)
    # another future from the same state, with other rewards, must not disturb it
    arms = ball_world(np.random.default_rng(9), dimension=3, arms=6).draw(np.random.default_rng(8), 40)
    other = early
    for i in range(40):
        choice = policy.choose(other, arms[i], np.random.default_rng(i))
        assert choice == policy.choose(other, arms[i], np.random.default_rng(i))
        other = policy.learn(other, arms[i], choice, 1.0)
    again, _ = play(policy, 40, state=early, first=60)
    assert once == again


@EVERY
def test_facts_are_complete_and_named(name):
    policy = make(name)
    facts = policy.facts
    assert facts.statement.endswith(".")
    assert facts.cost.startswith("O(")
    assert facts.guarantee is not Guarantee.PROVED or facts.assumptions
    assert policy.name == name.removesuffix("-tuned")


def test_defaults_are_proved_and_settings_by_hand_are_not():
    assert SupLogistic(1000).facts.guarantee is Guarantee.PROVED
    assert LikelihoodRatioUcb().facts.guarantee is Guarantee.PROVED
    assert OnePassUcb(3.0).facts.guarantee is Guarantee.PROVED
    assert SupLogisticPrinted(1000, alpha=1.0).facts.guarantee is Guarantee.HEURISTIC
    assert SupLogisticPrinted(1000, burn_in=50, most_arms=3).facts.guarantee is Guarantee.HEURISTIC
    assert SupLogisticPrinted(1000, most_arms=3).facts.guarantee is Guarantee.AS_PRINTED
    assert SupCbGlm(1000, 3, 2.0).facts.guarantee is Guarantee.AS_PRINTED
    assert SupCbGlm(1000, 3, 2.0, alpha=1.0).facts.guarantee is Guarantee.HEURISTIC
    # (σ/κ)·√((d/2)·log(1 + 2T/d) + log(1/δ)), σ = ½ and κ the variance at the norm bound plus one (Li et al. 2017)
    kappa = math.exp(-3.0) / (1 + math.exp(-3.0)) ** 2
    expected = 0.5 / kappa * math.sqrt(2 * math.log(1 + 2000 / 4) + math.log(20))
    assert UcbGlm(1000, 2.0).radius(4) == pytest.approx(expected)
    assert UcbGlm(1000, 2.0, alpha=1.0).facts.guarantee is Guarantee.HEURISTIC


@EVERY
@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (np.zeros((0, 3)), "arms is empty; at least one row is needed"),
        (np.ones((4, 2)), "arms must have 3 columns as at start(), got 2"),
        ([[1.0, math.nan, 0.0]], "arms must be finite numbers below 1e+100 in size, got nan at row 0, column 1"),
        ([[1.0, math.inf, 0.0]], "got inf at row 0, column 1"),
        ([1.0, 2.0, 3.0], "arms must be two-dimensional"),
        ([["a", "b", "c"]], "arms must hold numbers only"),
    ],
)
def test_arms_that_cannot_be_used_are_refused(name, arms, message):
    policy = make(name)
    _, state = play(policy, 20)
    rng = np.random.default_rng(0)
    for call in (
        lambda: policy.choose(state, arms, rng),
        lambda: policy.learn(state, arms, Choice(0), 1),
    ):
        with pytest.raises(InvalidInput, match=re.escape(message)):
            call()


@EVERY
def test_rewards_and_choices_that_cannot_be_used_are_refused(name):
    policy = make(name)
    _, state = play(policy, 20)
    arms = np.eye(3)
    for reward in (2, -1, 0.5, math.nan, "yes", None):
        with pytest.raises(InvalidInput, match=r"reward must be 0 or 1, got .*; turn other outcomes"):
            policy.learn(state, arms, Choice(0), reward)
    for index in (-1, 3):
        with pytest.raises(InvalidInput, match=r"choice must be one of the 3 arms \(from 0\), got"):
            policy.learn(state, arms, Choice(index), 1)
    for dimension in (0, -2, 1.5, True, "3"):
        with pytest.raises(InvalidInput, match="dimension must be a whole number of at least 1, got"):
            policy.start(dimension)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: SupLogistic(1), "horizon must be a whole number of at least 2, got 1"),
        (lambda: UcbGlm(1, 2.0), "horizon must be a whole number of at least 2, got 1"),
        (lambda: SupCbGlm(1, 3, 2.0), "horizon must be a whole number of at least 2, got 1"),
        (lambda: SupLogistic(100, delta=0), "delta must lie strictly between 0 and 1, got 0"),
        (lambda: SupLogisticPrinted(100), "pass most_arms or alpha"),
        (
            lambda: SupLogisticPrinted(100, burn_in=200, alpha=1.0),
            "burn_in must lie between 1 and the horizon 100, got 200",
        ),
        (lambda: SupLogisticPrinted(100, burn_in=20), "pass most_arms or alpha"),
        (lambda: SupLogistic(100, most_arms=0), "most_arms must be a whole number of at least 1, got 0"),
        (lambda: SupLogisticPrinted(100, alpha=-1.0), "alpha must be greater than 0, got -1.0"),
        (lambda: SupCbGlm(100, 0, 2.0), "most_arms must be a whole number of at least 1, got 0"),
        (lambda: OnePassUcb(-1.0), "norm_bound must be greater than 0, got -1.0"),
        (lambda: LogisticUcb(2.0, version=3), "version must be 1 or 2, got 3"),
        (lambda: LogisticThompson(draws=0), "draws must be a whole number of at least 1, got 0"),
        (lambda: Greedy(ridge=0.0), "ridge must be greater than 0, got 0.0"),
        (lambda: policy_by_name("linucb", horizon=10, arms=2, norm_bound=1.0), "no contextual policy 'linucb'"),
    ],
)
def test_configurations_that_cannot_be_used_are_refused(build, message):
    with pytest.raises(InvalidInput, match=re.escape(message)):
        build()


@pytest.mark.parametrize("policy", [SupLogistic(100, most_arms=2), SupCbGlm(100, 2, 2.0)])
def test_more_arms_than_announced_are_refused(policy):
    with pytest.raises(InvalidInput, match="At most 2 arms per step were declared, got 3"):
        policy.choose(policy.start(3), np.eye(3), np.random.default_rng(0))


@pytest.mark.parametrize("policy", [SupLogistic(100, most_arms=3), SupCbGlm(100, 3, 2.0)])
def test_a_bucket_that_does_not_exist_is_refused(policy):
    with pytest.raises(InvalidInput, match=r"choice\.bucket must be at most 4, got 9"):
        policy.learn(policy.start(3), np.eye(3), Choice(0, bucket=9), 1)


DETERMINISTIC = [
    LikelihoodRatioUcb(),
    OnePassUcb(3.0),
    Greedy(),
    LogisticUcb(3.0, version=1),
    LogisticUcb(3.0, version=2),
    OfuGlb(3.0),
    EcoLog(3.0),
]


@pytest.mark.parametrize("policy", DETERMINISTIC, ids=lambda policy: policy.name)
def test_rotating_the_features_changes_nothing(policy):
    turn = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    plain, _ = play(policy, 120)
    turned, _ = play(policy, 120, change=lambda arms: np.ascontiguousarray(arms @ turn))
    # the very first choice has nothing to go by and may break its tie either way
    assert [choice.index for choice in plain[1:]] == [choice.index for choice in turned[1:]]


@pytest.mark.parametrize("policy", DETERMINISTIC, ids=lambda policy: policy.name)
def test_the_order_of_the_arms_does_not_matter(policy):
    _, state = play(policy, 80)
    rng = np.random.default_rng(0)
    for _ in range(20):
        arms = rng.normal(size=(7, 3))
        order = rng.permutation(7)
        straight = policy.choose(state, arms, rng).index
        assert order[policy.choose(state, arms[order], rng).index] == straight


def test_any_number_of_arms_each_time():
    rng = np.random.default_rng(0)
    for name in NAMES:
        policy = make(name, arms=50)
        state = policy.start(3)
        for count in (1, 2, 50, 3, 1, 7):
            arms = rng.normal(size=(count, 3)) / 3
            choice = policy.choose(state, arms, rng)
            assert 0 <= choice.index < count
            assert 0 < choice.propensity <= 1
            state = policy.learn(state, arms, choice, 1)


@pytest.mark.parametrize("policy", [SquareCb(), LogisticThompson(draws=999)], ids=lambda policy: policy.name)
def test_propensities_are_the_frequencies_of_choices(policy):
    """Exact binomial bounds at a false-alarm rate of 1e-6 an arm; Thompson's estimate may be off by 0.5% more."""
    slack = 0 if isinstance(policy, SquareCb) else 20
    _, state = play(policy, 80)
    arms = np.random.default_rng(3).normal(size=(4, 3)) / 3
    rng = np.random.default_rng(5)
    drawn = [policy.choose(state, arms, rng) for _ in range(4000)]
    for arm in range(4):
        made = [choice for choice in drawn if choice.index == arm]
        if not made:
            continue
        stated = float(np.mean([choice.propensity for choice in made]))
        low, high = binom.ppf([5e-7, 1 - 5e-7], 4000, min(stated, 1.0))
        assert low - slack <= len(made) <= high + slack
    if isinstance(policy, SquareCb):
        assert policy.probabilities(state, arms).sum() == pytest.approx(1.0)


def test_the_best_proved_policy_meets_its_mark():
    """d = 5, K = 20, T = 2000, norm 3: the full study has 20 seeds, here four."""
    regrets = [
        float(simulate(LikelihoodRatioUcb(), ball_world(rng), 2000, rng).regret[-1])
        for rng in (np.random.default_rng([7, seed]) for seed in range(4))
    ]
    assert np.mean(regrets) <= 40


def test_greedy_falls_into_its_trap_and_a_proved_policy_does_not():
    regret = {}
    for policy in (Greedy(), LikelihoodRatioUcb()):
        runs = [simulate(policy, trap_world(), 2000, np.random.default_rng([3, seed])) for seed in range(8)]
        regret[policy.name] = np.mean([run.regret[-1] for run in runs])
    assert regret["likelihood-ratio-ucb"] <= regret["greedy"] / 5


class BonusOnProbability(EcoLog):
    """What public code of ECOLog does: the bonus, a bound for log-odds, is added to the probability of a reward."""

    def choose(self, state, arms, rng):
        widths = np.sqrt(np.einsum("ij,jk,ik->i", arms, state.inverse, arms))
        return Choice(int(np.argmax(1 / (1 + np.exp(-arms @ state.theta)) + self.radius(state) * widths)))


def test_why_eco_log_loses_less_here_than_in_public_code():
    """182 rewards were measured with the public code, about 95 here; that one change explains the difference."""
    regret = {}
    for policy in (EcoLog(4.0), BonusOnProbability(4.0)):
        runs = [simulate(policy, ball_world(rng), 2000, rng) for rng in (np.random.default_rng([5, s]) for s in (0, 1))]
        regret[type(policy).__name__] = np.mean([run.regret[-1] for run in runs])
    assert regret["EcoLog"] < 130
    assert 160 < regret["BonusOnProbability"] < 240


@pytest.mark.parametrize("answers", ["separated", "mixed"])
def test_the_ridge_on_phi_is_said(answers):
    """The printed form fits theta_Phi to a few answers; where they are separated only the ridge makes it finite."""
    policy, rng = SupLogisticPrinted(400, alpha=1.0), np.random.default_rng(0)
    state, arms = policy.start(2), np.array([[1.0, 0.2], [-0.3, 1.0]])
    assert "ridge" not in policy.status(state).sentence
    while not state.burn_in_over:
        choice = policy.choose(state, arms, rng)
        state = policy.learn(state, arms, choice, 1.0 if answers == "separated" else float(rng.random() < 0.5))
    status = policy.status(state)
    said, count = status.sentence, len(state.phi.history)
    assert (status.phi_answers, status.phi_separated) == (count, answers == "separated")
    assert f"fitted to the {count} answers of Phi with a ridge of 1e-06, which the paper does not have" in said
    assert ("separated, so without it there would be no estimate" in said) == (answers == "separated")


def test_sup_cb_glm_fills_its_equal_levels_once(monkeypatch):
    """The burn-in goes to every level: their number does not multiply the fits, and each level then grows alone."""
    fits = []
    monkeypatch.setattr(sup_levels, "newton", lambda *task: fits.append(task) or newton(*task))
    number_of_fits = {}
    for horizon in (100, 6400):
        fits.clear()
        policy = SupCbGlm(horizon, 6, 3.0, alpha=1.0, burn_in=40)
        _, state = play(policy, 40)
        number_of_fits[policy.number_of_levels] = len(fits)
    assert state.burn_in_over
    assert len(number_of_fits) == 2
    assert len(set(number_of_fits.values())) == 1
    # each level holds what filling it row by row gives, and goes on alone
    burn_in, levels = state.burn_in, empty_levels(policy.number_of_levels, 3)
    for s in range(policy.number_of_levels):
        for row, answer in zip(burn_in.rows, burn_in.answers, strict=True):
            levels = stored(levels, s, row, float(answer), 1.0, lambda *_: policy.width_factor)
        levels = refreshed(levels, s, lambda *_: policy.width_factor)
    for ours, reference in zip(state.levels[1:], levels[1:], strict=True):
        assert np.array_equal(ours, reference)
    arms = np.eye(3)
    grown = policy.learn(policy.learn(state, arms, Choice(0, 1.0, 1), 1.0), arms, Choice(2, 1.0, 2), 0.0)
    assert [len(history) for history in grown.levels.histories] == [41, 41] + [40] * (policy.number_of_levels - 2)
    assert np.array_equal([history.rows[-1] for history in grown.levels.histories[:2]], arms[[0, 2]])
    assert [history.answers[-1] for history in grown.levels.histories[:2]] == [1.0, 0.0]
