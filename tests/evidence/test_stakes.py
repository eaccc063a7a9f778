"""The wealth of players who stake at the odds of θ: its mean, its certified infimum, and what hindsight would do."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from surepick.evidence.stakes import WEIGHTS, StakedEvidence, Stakes
from surepick.glm import probability_of_yes

ITEMS = np.array([[1.0, 0.0], [0.3, 0.8], [-0.6, 0.4], [-0.2, -0.9]])
PAIRS = np.array([(first, second) for first in range(4) for second in range(first + 1, 4)])
ROWS = ITEMS[PAIRS[:, 0]] - ITEMS[PAIRS[:, 1]]
NONE = np.zeros(1)
C = np.eye(2) / 10


def some_stakes(rng: np.random.Generator, row: int) -> Stakes:
    rivals = np.arange(4)
    return Stakes.of(
        rng.uniform(0.05, 0.95, size=1),
        rivals,
        rng.normal(scale=2, size=(4, 1)),
        rng.normal(size=(4, 1)),
        PAIRS[[row]],
    )


def answered(evidence: StakedEvidence, stakes: Stakes, row: int, score: float) -> StakedEvidence:
    return evidence.after(stakes, np.array([row]), np.ones(1), np.array([score]), NONE)


def log_wealth(evidence: StakedEvidence, item: int, theta: np.ndarray) -> float:
    """Player by player and factor by factor, as the definition has it."""
    total = 0.0
    for player, weight in enumerate(WEIGHTS):
        log = evidence.kept[item, player]
        for where, signs, times, c in zip(
            evidence.where, evidence.signs, evidence.times, evidence.coefficients, strict=True
        ):
            for row, sign, count, each in zip(where, signs, times, c, strict=True):
                log += count * np.log1p(each[item, player] * np.exp(-sign * (ROWS[row] @ theta)))
        total += weight * np.exp(log)
    return float(np.log(total))


def mean_wealth(theta: np.ndarray, item: int, choose: object, length: int = 6) -> float:
    """E of the wealth after some answers, over all sequences of them; `choose(past, row, answer)` gives the stakes."""
    total = 0.0
    for answers in itertools.product((0, 1), repeat=length):
        evidence, probability = StakedEvidence.of(4), 1.0
        for place, answer in enumerate(answers):
            row = (place + sum(answers[:place])) % len(ROWS)  # the question depends on the past
            evidence = answered(evidence, choose(answers[:place], row, answer), row, answer)  # type: ignore[operator]
            chance = float(probability_of_yes(ROWS[row] @ theta))
            probability *= chance if answer else 1 - chance
        total += probability * np.exp(log_wealth(evidence, item, theta))
    return total


TRUTHS = [np.array([2.0, 0.3]), np.array([0.0, 0.0]), np.array([1.6, 1.4]), np.array([-3.0, 2.0])]


class TestMean:
    @pytest.mark.parametrize("theta", TRUTHS)
    def test_stakes_fixed_before_the_answer_have_mean_one_under_any_theta(self, theta: np.ndarray) -> None:
        def choose(past: tuple[int, ...], row: int, answer: int) -> Stakes:
            return some_stakes(np.random.default_rng([len(past), *past]), row)

        for item in range(4):
            assert mean_wealth(theta, item, choose) == pytest.approx(1.0, abs=1e-9)

    def test_hindsight_is_noticed(self) -> None:
        def choose(past: tuple[int, ...], row: int, answer: int) -> Stakes:
            found = some_stakes(np.random.default_rng([len(past), *past]), row)
            return Stakes(found.chances, found.rivals, np.abs(found.signed) * (2 * answer - 1))

        assert mean_wealth(TRUTHS[0], 1, choose) > 1.5

    def test_a_score_between_counts_at_most_as_the_mean_of_both_answers(self) -> None:
        rng = np.random.default_rng(1)
        for theta in TRUTHS:
            stakes = some_stakes(rng, 2)
            logs = [log_wealth(answered(StakedEvidence.of(4), stakes, 2, score), 1, theta) for score in (0, 0.3, 1)]
            # Player by player it is the geometric mean; so their sum is at most the arithmetic one.
            assert np.exp(logs[1]) <= 0.7 * np.exp(logs[0]) + 0.3 * np.exp(logs[2]) + 1e-12

    def test_a_charged_answer_costs_at_least_what_either_answer_would(self) -> None:
        rng = np.random.default_rng(2)
        for row in range(len(ROWS)):
            stakes = some_stakes(rng, row)
            charged = StakedEvidence.of(4).after(stakes, np.array([row]), np.zeros(1), np.zeros(1), np.ones(1))
            for theta, score, item in itertools.product(TRUTHS, (0.0, 1.0), range(4)):
                after = answered(StakedEvidence.of(4), stakes, row, score)
                assert charged.kept[item].max() <= 0
                assert log_wealth(charged, item, theta) <= log_wealth(after, item, theta) + 1e-12


def random_evidence(seed: int, answers: int) -> StakedEvidence:
    rng = np.random.default_rng(seed)
    theta = rng.normal(scale=2, size=2)
    evidence = StakedEvidence.of(4)
    for _ in range(answers):
        row = int(rng.integers(len(ROWS)))
        score = float(rng.random() < probability_of_yes(ROWS[row] @ theta)) if rng.random() < 0.9 else 0.5
        evidence = answered(evidence, some_stakes(rng, row), row, score)
    return evidence


class TestCertifiedInfimum:
    @pytest.mark.parametrize("epsilon", [0.0, 0.7])
    def test_no_bound_is_above_what_a_search_of_the_cone_finds(self, epsilon: float) -> None:
        tight = 0
        for seed in range(25):
            evidence, leader = random_evidence(seed, 12 + 2 * seed), seed % 4
            items = np.delete(np.arange(4), leader)
            wealth = evidence.against(items, ROWS, ITEMS, leader, epsilon, C)
            points, _ = wealth.minimise(np.zeros((3, 2)), np.arange(3), steps=30, tolerance=1e-8)
            for place, item in enumerate(items.tolist()):
                least = least_of_cone(evidence, item, leader, epsilon)
                bound = wealth.prove(place, points[place]).nats
                assert bound <= least + 1e-6
                assert evidence.by_losses(np.array([item]), PAIRS)[0] <= least + 1e-6
                tight += bound > least - 0.05
                # From a point that is not the least one, it is still a bound.
                assert wealth.prove(place, points[place] + 0.3).nats <= least + 1e-6
        assert tight >= 50  # of 75, the fan being coarse: a bound that says nothing would be of no use

    def test_answers_that_all_agree_are_proved_by_losses(self) -> None:
        evidence = StakedEvidence.of(4)
        for _ in range(12):  # item 1 loses to item 0 whenever they meet, and nothing else is asked
            chances, no = np.array([0.9]), np.zeros((4, 1))
            stakes = Stakes.of(chances, np.arange(4), no, no, PAIRS[[0]])
            evidence = answered(evidence, stakes, 0, 1.0)
        wealth = evidence.against(np.array([1]), ROWS, ITEMS, 0, 0.0, C)
        points, _ = wealth.minimise(np.zeros((1, 2)), np.arange(1), steps=30, tolerance=1e-8)
        assert wealth.prove(0, points[0]).nats == -np.inf  # one vector does not span the plane
        assert evidence.by_losses(np.array([1]), PAIRS)[0] > 5
        assert evidence.by_losses(np.array([0]), PAIRS)[0] < 0  # the winner of these comparisons is not excluded

    def test_items_that_hardly_differ_lose_nothing_to_the_penalty(self) -> None:
        # Their cones are the same if all differences are a hundredth as long, and so is the infimum.
        items = np.array([1, 2, 3])
        for seed in range(10):
            evidence = random_evidence(seed, 60)
            wide, narrow = (
                evidence.against(items, ROWS, scale * ITEMS, 0, 0.0, C).minimise(
                    np.zeros((3, 2)), np.arange(3), steps=30, tolerance=1e-8
                )[1]
                for scale in (1.0, 0.01)
            )
            np.testing.assert_allclose(narrow, wide, atol=1e-3)

    def test_multipliers_cannot_be_left_out(self) -> None:
        # A control: without its cone an item has less evidence against it, which is what the multipliers add.
        evidence = random_evidence(5, 40)
        items = np.array([1, 2, 3])
        wealth = evidence.against(items, ROWS, ITEMS, 0, 0.0, C)
        _, dual = wealth.minimise(np.zeros((3, 2)), np.arange(3), steps=30, tolerance=1e-8)
        anywhere = [minimize(lambda t, item=item: log_wealth(evidence, item, t), np.zeros(2)).fun for item in items]
        assert np.any(dual > np.array(anywhere) + 0.1)


def least_of_cone(evidence: StakedEvidence, item: int, leader: int, epsilon: float) -> float:
    """The least log wealth over a fine fan of the plane, by brute force."""
    angles = np.linspace(0, 2 * np.pi, 721)
    lengths = np.concatenate([np.linspace(0, 6, 121), np.geomspace(6.1, 60, 20)])
    theta = (lengths[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)).reshape(-1, 2)
    ahead = theta @ (ITEMS[item] - ITEMS).T
    theta = theta[np.all(ahead >= -1e-12, axis=1) & (ahead[:, leader] >= epsilon)]
    where, signs, times = (np.concatenate(each) for each in (evidence.where, evidence.signs, evidence.times))
    c = np.concatenate(evidence.coefficients)[:, item]
    odds = np.exp(-(theta @ ROWS[where].T) * signs)
    logs = np.stack([np.log1p(c[:, player] * odds) @ times for player in range(len(WEIGHTS))], axis=1)
    return float(np.min(np.logaddexp.reduce(logs + evidence.kept[item] + np.log(WEIGHTS), axis=1)))
