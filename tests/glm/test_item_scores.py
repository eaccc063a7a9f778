"""Beliefs about the scores of items, against sums over a grid of scores."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from surepick.glm.item_scores import OWN_SCALES, PENDING, ItemScores

ANSWERS = {
    "one win": [(0, 1, 1.0, 1.0)],
    "a few": [(0, 1, 3.0, 4.0), (1, 2, 1.0, 2.0), (0, 2, 2.0, 2.0)],
    "many": [(0, 1, 22.0, 30.0), (1, 2, 25.0, 40.0), (0, 2, 18.0, 20.0)],
    "a tie": [(0, 1, 0.5, 1.0), (1, 2, 1.5, 2.0)],
}
"""First item, second item, wins of the first, answers."""


def updated(answers, items=3, features=None) -> ItemScores:
    belief = ItemScores.of(features, items)
    for answer in answers:
        belief = belief.update(*answer)
    return belief


def exact_gap(answers, tau, pair, items=3):
    """Mean and deviation of a gap by summing prior times likelihood over a grid of all scores."""
    axis = np.linspace(-5 * tau, 5 * tau, 81)
    scores = np.array(list(product(axis, repeat=items)))
    log_density = -np.sum(scores**2, axis=1) / (2 * tau**2)
    for first, second, wins, count in answers:
        gap = scores[:, first] - scores[:, second]
        log_density += wins * np.log(expit(gap)) + (count - wins) * np.log(expit(-gap))
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    gap = scores[:, pair[0]] - scores[:, pair[1]]
    mean = float(weights @ gap)
    return mean, float(np.sqrt(weights @ (gap - mean) ** 2))


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("scale", range(len(OWN_SCALES)))
def test_means_and_deviations_are_near_those_of_the_exact_posterior(name, scale):
    belief = updated(ANSWERS[name])
    for pair in ((0, 1), (1, 2), (0, 2)):
        means, variances = belief.gap(*pair)
        mean, deviation = exact_gap(ANSWERS[name], OWN_SCALES[scale], pair)
        # The Gaussian sits at the mode, which a skewed posterior has nearer to zero than its mean, and is narrower.
        assert means[scale] == pytest.approx(mean, abs=0.35 * deviation)
        assert np.sqrt(variances[scale]) == pytest.approx(deviation, rel=0.2)


def test_two_items_have_the_exact_mode():
    """With one pair the posterior of the gap is one-dimensional, and its mode solves wins − n·μ(g) = g/(2τ²)."""
    means, _ = updated([(0, 1, 4.0, 5.0)], items=2).gap(0, 1)
    for gap, tau in zip(means, OWN_SCALES, strict=True):
        assert 4 - 5 * expit(gap) == pytest.approx(gap / (2 * tau**2), abs=1e-3)


def test_answers_at_once_are_nearly_answers_one_by_one():
    at_once = updated([(0, 1, 6.0, 10.0), (1, 2, 7.0, 10.0)])
    one_by_one = updated(
        [(0, 1, float(n % 5 < 3), 1.0) for n in range(10)] + [(1, 2, float(n % 3 < 2), 1.0) for n in range(10)]
    )
    apart = np.abs(at_once.gap(0, 2)[0] - one_by_one.gap(0, 2)[0]) / np.sqrt(at_once.gap(0, 2)[1])
    # The order of answers matters more the wider the prior is: a Gaussian at the mode forgets the skew of each step.
    assert np.all(apart < [0.1, 0.3, 1.0])
    assert np.sqrt(one_by_one.gap(0, 2)[1]) == pytest.approx(np.sqrt(at_once.gap(0, 2)[1]), rel=0.1)


def test_a_tie_counts_as_half_a_win_of_each():
    belief = updated([(0, 1, 0.5, 1.0)], items=2)
    assert belief.predict(0, 1) == pytest.approx(0.5)
    _, before = ItemScores.of(None, 2).gap(0, 1)
    assert np.all(belief.gap(0, 1)[1] < before)
    one_way = updated([(0, 1, 2.0, 3.0), (0, 1, 0.5, 1.0)], items=2)
    other_way = updated([(1, 0, 1.0, 3.0), (1, 0, 0.5, 1.0)], items=2)
    assert one_way.predict(0, 1) == pytest.approx(other_way.predict(0, 1))


FEATURES = np.array([[1.0, 0.0], [0.9, 0.1], [-1.0, 0.1], [-0.9, -0.1], [0.95, 0.0]])


def test_an_unseen_item_similar_to_winners_is_predicted_to_win():
    seen = [(0, 2, 5.0, 5.0), (1, 3, 5.0, 5.0)]
    guided = updated(seen, items=5, features=FEATURES)
    assert guided.predict(4, 2) > 0.75
    assert np.argmax(guided.scores()) in (0, 1, 4)
    assert guided.scores()[4] > max(guided.scores()[2], guided.scores()[3])
    # Without features nothing is known of item 4 but that item 2 lost.
    assert 0.5 < updated(seen, items=5).predict(4, 2) < guided.predict(4, 2)
    assert updated(seen, items=5).scores()[4] == pytest.approx(0.0)


def test_the_items_own_record_overrules_the_features():
    against = [(0, 2, 20.0, 20.0), (1, 3, 20.0, 20.0), (4, 2, 2.0, 40.0), (4, 0, 0.0, 20.0)]
    belief = updated(against, items=5, features=FEATURES)
    assert belief.predict(4, 2) < 0.25
    # Scales that trust the features predicted these answers badly.
    assert belief.weights[: len(OWN_SCALES)].sum() > 0.5


def test_deviations_and_chances_follow_the_scales():
    belief = updated(ANSWERS["many"])
    deviations = belief.deviations_from(0)
    assert deviations[0] < 1e-5 < deviations[1]
    others = np.array([1, 2])
    assert 0.5 < belief.chance_of_best(0, others) < belief.chance_of_best(0, others, margin=0.5) < 1
    assert belief.chance_of_best(0, np.array([], dtype=np.int64)) == 1.0


def test_an_item_far_outside_the_others_breaks_nothing():
    """The features predict a win with a probability that rounds to 1, of an item that wins and of one that loses."""
    features = np.array([[-1.0, 0.5], [1.0, 0.5]] * 20 + [[80.0, 0.0]])
    seen = [(2 * pair + 1, 2 * pair, 18_000.0, 20_000.0) for pair in range(20)]
    for wins in (0.0, 200.0):
        belief = updated([*seen, (40, 1, wins, 200.0)], items=41, features=features)
        assert np.all(np.isfinite(belief.weights))
        assert np.all(np.isfinite(belief.scores()))
        assert 0 < belief.predict(40, 1) < 1


@pytest.mark.parametrize("features", [None, np.random.default_rng(5).normal(size=(12, 3))])
def test_when_the_covariance_is_written_out_makes_no_difference(monkeypatch, rng, features):
    answers = [(*rng.choice(12, 2, replace=False), float(rng.integers(2)), 1.0) for _ in range(100)]
    rarely = updated(answers, items=12, features=features)
    assert 0 < len(rarely.pending) < PENDING
    monkeypatch.setattr("surepick.glm.item_scores.PENDING", 1)
    always = updated(answers, items=12, features=features)
    assert len(always.pending) == 0
    np.testing.assert_allclose(rarely.scores(), always.scores(), atol=1e-12)
    np.testing.assert_allclose(rarely.deviations_from(3), always.deviations_from(3), atol=1e-9)
    np.testing.assert_allclose(always.variance, np.einsum("gii->gi", always.written), atol=1e-12)
    assert rarely.predict(1, 2) == pytest.approx(always.predict(1, 2), abs=1e-12)


def covariance(belief: ItemScores, items: int) -> np.ndarray:
    """Scales × items × items."""
    return np.stack([belief.covariance_with(item) for item in range(items)], axis=1)


@pytest.mark.parametrize("features", [None, np.random.default_rng(5).normal(size=(4, 2))])
def test_samples_have_the_mean_and_the_covariance_of_the_belief(monkeypatch, features):
    """Samples are changed with every answer and never drawn again, so a wrong change would add up."""
    monkeypatch.setattr("surepick.glm.item_scores.DRAWS", 4000)
    belief = updated([(0, 1, 3.0, 4.0), (1, 2, 0.0, 1.0), (0, 2, 1.0, 1.0)] * 3, items=4, features=features)
    belief = belief.update_pick((0, 2, 3), 2).update_pick((0, 1, 2, 3), 2)
    expected = covariance(belief, 4)
    seen = np.einsum("gpi,gpj->gij", belief.drawn, belief.drawn) / 4000
    size = np.sqrt(np.einsum("gii,gjj->gij", expected, expected))
    assert np.max(np.abs(seen - expected) / size) < 0.1  # five standard errors of a correlation
    # A negative control: as they were before the answers, the samples do not fit.
    prior = ItemScores.of(features, 4).drawn
    assert np.max(np.abs(np.einsum("gpi,gpj->gij", prior, prior) / 4000 - expected) / size) > 0.5


def test_samples_mix_the_scales_by_their_weights(rng):
    belief = updated(ANSWERS["many"])
    drawn = belief.sample(20_000, np.array([0, 2]), rng)
    gap = drawn[:, 0] - drawn[:, 1]
    assert gap.mean() == pytest.approx(belief.scores()[0] - belief.scores()[2], abs=0.05)
    # The kept samples are few, so the deviation is that of the belief within what 64 of them tell.
    assert gap.std() == pytest.approx(belief.deviations_from(0)[2], rel=0.25)


def test_components_are_scales_that_answers_weigh(rng):
    mean, root = np.array([[2.0, 0.0, -2.0], [0.0, 0.0, 0.0]]), np.tril(rng.normal(size=(2, 3, 3))) + np.eye(3)
    before = ItemScores.of(None, 3)
    belief = before.with_components(mean, root @ root.transpose(0, 2, 1), np.log([0.8, 0.2]))
    assert belief.weights == pytest.approx([*before.weights / 2, 0.4, 0.1])
    for place in (-2, -1):  # updated like a belief of this mean and covariance alone
        covariance = root[place] @ root[place].T
        alone = replace(belief, mean=mean[[place]], variance=np.diag(covariance)[None], written=covariance[None])
        alone = replace(alone, pending=np.zeros((0, 1, 3)), drawn=belief.drawn[[place]], log_weights=np.zeros(1))
        told, alone_told = belief.update(0, 1, 1.0, 3.0), alone.update(0, 1, 1.0, 3.0)
        assert told.mean[place] == pytest.approx(alone_told.mean[0])
        gained = told.log_weights[place] - belief.log_weights[place]
        assert gained == pytest.approx(float(alone_told.log_weights[0]))
        drawn = belief.drawn[place]
        assert np.trace(drawn.T @ drawn / len(drawn)) == pytest.approx(np.trace(covariance), rel=0.5)
    expecting = belief.update(0, 2, 30.0, 30.0)
    assert np.argmax(expecting.weights) == len(before.weights)  # whoever expected it is believed


def test_many_comparisons_are_predicted_as_each_alone():
    chance = np.random.default_rng(4)
    answers = [(*chance.choice(6, 2, replace=False).tolist(), 1.0, 1.0) for _ in range(PENDING + 9)]
    belief = updated(answers, items=6, features=chance.normal(size=(6, 2)))
    first, second = np.array([0, 1, 2, 5]), np.array([3, 2, 1, 0])
    alone = [belief.predict(a, b) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
    np.testing.assert_allclose(belief.predict_all(first, second), alone, rtol=1e-12)
    np.testing.assert_allclose(belief.predict_all(first, 4), [belief.predict(a, 4) for a in first.tolist()], rtol=1e-12)
