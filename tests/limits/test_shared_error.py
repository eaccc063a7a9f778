"""Lower bounds with the error shared among the rivals: the minimum by brute force, and exact tests in small worlds."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import rel_entr

from surepick.errors import InvalidInput
from surepick.identify import Problem
from surepick.limits import (
    Instance,
    lower_bound,
    shared_error_bound,
    winner_lower_bound,
    winner_shared_error_bound,
)
from surepick.limits.shared_error import questions_for

DELTA = 0.05


def kl(p, q):
    return rel_entr(p, q) + rel_entr(1 - p, 1 - q)


def one_above(losers: int, p: float) -> np.ndarray:
    """One item beats every other with probability 1 − p; the others are equal."""
    chances = np.full((losers + 1, losers + 1), 0.5)
    chances[0, 1:], chances[1:, 0] = 1 - p, p
    return chances


@pytest.mark.parametrize("weights", [[1.0], [3.0, 3.0], [1.0, 5.0, 0.1], [10.0, 1.0, 1.0, 1.0, 2.0]])
@pytest.mark.parametrize("delta", [0.2, 0.05, 1e-3])
def test_it_is_the_least_sum_over_all_ways_to_share_the_error(weights, delta):
    scale = np.array(weights)
    found = questions_for(scale, delta)

    def cost(shares):
        return float(scale @ kl(delta * shares, 1 - delta))

    start = np.full(len(scale), 1 / len(scale))
    solved = minimize(
        cost,
        start,
        bounds=[(1e-9, 1)] * len(scale),
        constraints={"type": "ineq", "fun": lambda shares: 1 - shares.sum()},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert found <= solved.fun * (1 + 1e-9)
    assert found == pytest.approx(solved.fun, rel=1e-5)


def test_it_lies_between_the_plain_bound_and_all_nats_for_every_rival(rng):
    for items in (2, 3, 8, 30):
        scores = np.sort(rng.normal(0, 1.2, items))[::-1]
        chances = 1 / (1 + np.exp(scores[None, :] - scores[:, None]))
        plain, shared = winner_lower_bound(chances), winner_shared_error_bound(chances)
        most = plain * math.log(1 / DELTA) / ((1 - 2 * DELTA) * math.log((1 - DELTA) / DELTA))
        assert plain * (1 - 1e-9) <= shared <= most
        assert (shared == pytest.approx(plain)) == (items == 2)


def test_small_gaps_do_not_cancel():
    """KL(½ − x, ½) is 2x² for small x, far below the rounding of log 2."""
    assert winner_lower_bound(one_above(1, 0.5 - 1e-9)) == pytest.approx(2.6500 / 2e-18, rel=1e-4)


class TestAgainstAMethodThatIsToldTheMatrix:
    """Losers are tested one after the other, each with two boundaries; errors and means are computed exactly."""

    LOSERS, P = 6, 0.3

    def best_mean(self) -> float:
        """The least mean of all boundaries for which no instance has an error above delta."""
        means = []
        for upper in np.linspace(2.2, 3.6, 15):
            for lower in (-1.0, -1.5, -2.0, -2.5, -3.0, -4.0, -6.0):
                excluded, wrongly, mean = self.walk(upper, lower)
                # Before the last loser is met, all others must have been excluded; under its own alternative with
                # probability `wrongly` only.
                before = excluded ** np.arange(self.LOSERS)
                right = excluded**self.LOSERS
                errors = np.append((1 - before) + before * wrongly, 1 - right)
                if errors.max() <= DELTA:
                    means.append(mean * before.sum())
        return min(means)

    def walk(self, upper: float, lower: float) -> tuple[float, float, float]:
        """P(evidence reaches `upper`), the same if the item wins half the time, and the mean number of comparisons."""
        lost, won = math.log(2 * (1 - self.P)), math.log(2 * self.P)
        here, fair, excluded, wrongly, mean = np.array([1.0]), np.array([1.0]), 0.0, 0.0, 0.0
        for count in range(1, 500):
            mean += here.sum()
            here = np.append(here * self.P, 0) + np.insert(here * (1 - self.P), 0, 0)
            fair = (np.append(fair, 0) + np.insert(fair, 0, 0)) / 2
            losses = np.arange(count + 1)
            nats = losses * lost + (count - losses) * won
            excluded += here[nats >= upper].sum()
            wrongly += fair[nats >= upper].sum()
            inside = (nats < upper) & (nats > lower)
            here, fair = here * inside, fair * inside
        return excluded, wrongly, mean

    def test_no_boundaries_beat_the_bound_and_a_higher_bound_is_refuted(self):
        best = self.best_mean()
        shared = winner_shared_error_bound(one_above(self.LOSERS, self.P), delta=DELTA)
        assert shared <= best
        assert best < 1.15 * shared  # the negative control: a bound that is 15% higher is wrong


class TestFeatures:
    def instance(self, seed: int, items: int = 8) -> Instance:
        rng = np.random.default_rng(seed)
        problem = Problem.from_pairs(rng.normal(size=(items, 3)))
        return Instance(problem.measurements, problem.items, rng.normal(size=3))

    def test_it_is_a_sum_over_the_rivals_that_the_alternatives_make_best(self):
        for seed in range(5):
            instance = self.instance(seed)
            bound = lower_bound(instance, delta=DELTA)
            winners = np.argmax(
                np.where(np.arange(8) == bound.best, -np.inf, bound.alternatives @ instance.items.T), axis=1
            )
            weights = np.array([bound.dual_weights[winners == each].sum() for each in np.unique(winners)])
            shared = shared_error_bound(instance, bound)
            assert shared == pytest.approx(questions_for(weights, DELTA) / bound.dual)
            assert shared >= bound.questions * (1 - 1e-9)

    def test_items_that_are_best_together_share_nothing(self):
        """With every rival twice, no alternative says which of the two is returned, so only the plain bound holds."""
        twice = self.instance(3)
        instance = Instance(
            twice.measurements, np.vstack([twice.items, np.delete(twice.items, twice.best, 0)]), twice.theta
        )
        bound = lower_bound(instance, delta=DELTA)
        assert shared_error_bound(instance, bound) == pytest.approx(bound.questions)

    def test_one_rival_gets_all_of_the_error(self):
        instance = Instance(np.eye(2), np.eye(2), [1.0, 0.2])
        bound = lower_bound(instance, delta=0.1)
        assert shared_error_bound(instance, bound) == pytest.approx(bound.questions)

    def test_equal_rivals_approach_log_one_over_delta(self):
        count = 40
        theta = np.append(1.0, np.zeros(count))
        bound = lower_bound(Instance(np.eye(count + 1), np.eye(count + 1), theta), delta=DELTA)
        equal = replace(bound, dual_weights=np.full(len(bound.dual_weights), 1 / len(bound.dual_weights)))
        ratio = shared_error_bound(Instance(np.eye(count + 1), np.eye(count + 1), theta), equal) / bound.questions
        assert ratio == pytest.approx(kl(DELTA / count, 1 - DELTA) / kl(DELTA, 1 - DELTA), rel=1e-3)


def test_what_has_no_winner_or_no_error_is_refused():
    with pytest.raises(InvalidInput, match="no winner"):
        winner_shared_error_bound([[0.5, 0.7, 0.3], [0.3, 0.5, 0.7], [0.7, 0.3, 0.5]])
    with pytest.raises(InvalidInput, match="must be below"):
        winner_shared_error_bound(one_above(2, 0.2), delta=0.5)
