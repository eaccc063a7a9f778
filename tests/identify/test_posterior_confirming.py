"""The test that an event has a small posterior probability, with weights as heavy as they like."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

from surepick.glm.score_posterior import Draws
from surepick.identify.posterior_confirming import BATCH, CUT, MOST, confirm, factors

LEVEL = 0.05


@dataclass(frozen=True)
class Coin:
    """Draws of one number: −1 with weighted probability `share`, 1 otherwise; weights have mean one and any shape."""

    share: float
    weights: str = "gamma"

    def draws(self, count, rng):
        weights = {
            "equal": lambda: np.ones(count),
            "gamma": lambda: rng.gamma(0.5, 2.0, count),
            "heavy": lambda: np.where(rng.random(count) < 2e-3, 100.0, 0.8 / 0.998),
            "heavier": lambda: rng.choice([2_000.0, 100.0, 0.2 / 0.9977], count, p=[3e-4, 2e-3, 0.9977]),
            "pareto": lambda: rng.pareto(1.5, count) / 2.0,  # no finite variance
        }[self.weights]()
        return Draws(np.where(rng.random(count) < self.share, -1.0, 1.0)[:, None], np.log(weights))


def confirmed(coin, seed, *, bound=0.2, log_evidence=0.0):
    return confirm(
        coin,
        lambda scores: scores[:, 0] < 0,
        log_evidence=log_evidence,
        bound=bound,
        level=LEVEL,
        rng=np.random.default_rng([7, seed]),
    )


@pytest.mark.parametrize("weights", ["equal", "gamma"])
def test_what_is_not_small_is_seldom_confirmed(weights):
    """A probability at the bound itself; a false alarm of this test has probability 1e-4."""
    runs = 60
    wrong = sum(confirmed(Coin(0.2001, weights), seed).small for seed in range(runs))
    assert wrong <= binom.isf(1e-4, runs, LEVEL)


def test_an_approximate_limit_would_be_noticed():
    """The negative control: stopping where the estimate itself is below the bound errs far more often."""
    runs = 60
    wrong = sum(confirmed(Coin(0.2001), seed).estimate <= 0.2 for seed in range(runs))
    assert wrong > binom.isf(1e-4, runs, LEVEL)


@pytest.mark.parametrize("weights", ["equal", "gamma", "pareto"])
def test_what_is_small_is_confirmed(weights):
    for seed in range(3):
        # A twentieth of the weight of "pareto" lies above the cut, and counts.
        found = confirmed(Coin(0.02 if weights == "pareto" else 0.1, weights), seed)
        assert found.small
        assert found.draws <= MOST
        if weights != "pareto":  # whose weighted mean settles too slowly to compare
            assert found.estimate == pytest.approx(0.1, abs=0.05)


def test_much_weight_above_the_cut_is_not_confirmed():
    """The event is rare, but most of the posterior lies where one draw in 3,000 does: it counts as error."""
    assert confirmed(Coin(0.01, "equal"), 3, bound=0.05).small
    assert not any(confirmed(Coin(0.01, "heavier"), seed, bound=0.05).small for seed in range(3))


def test_weight_between_the_cuts_is_counted_for_what_it_shows():
    """A fifth of the posterior lies where one draw in 500 does: above the first cut and below the other."""
    assert all(confirmed(Coin(0.01, "heavy"), seed, bound=0.05).small for seed in range(3))
    found = [confirmed(Coin(0.06, "heavy"), seed, bound=0.05).small for seed in range(20)]
    assert sum(found) <= binom.isf(1e-4, 20, LEVEL)


def test_hopeless_cases_end_soon():
    assert confirmed(Coin(0.5), 1).draws == BATCH


def test_the_mean_factor_is_at_most_one_at_the_bound():
    """The lemma itself, by sums over weights on both sides of the cut, of which half lie in the event."""
    weights = np.array([0.01, 1.0, CUT / 2, CUT, 3 * CUT, 50 * CUT])
    chances = np.array([0.5, 0.45, 0.02, 0.02, 0.009, 0.001])
    mean = chances @ weights
    cut = CUT * 1.7  # any cut will do
    for share in (0.1, 0.4, 0.9):
        event_below = share * (chances * weights)[weights <= cut].sum() / mean
        logs = [
            factors(Draws(np.zeros((6, 1)), np.log(weights)), np.full(6, e), log_cut=np.log(cut), bound=event_below)
            for e in (True, False)
        ]
        expected = chances @ (share * np.exp(logs[0]) + (1 - share) * np.exp(logs[1]))
        assert expected <= 1 + 1e-12
        assert np.all(logs[1][weights <= cut] > 0)  # without the event the wealth grows ...
        assert np.all(logs[1][weights > cut] < 0)  # ... but not by draws that are too rare to trust
