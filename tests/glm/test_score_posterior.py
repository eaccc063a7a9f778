"""The posterior of scores by weighted draws, against sums over a grid of scores."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from surepick.glm.score_posterior import ScorePosterior, ScorePrior

SPREADS = (1.0, 4.0)
PRIOR = ScorePrior(
    np.array([[0.0, 0.0, 0.0], [0.5, 0.0, -0.5]]),
    np.array([spread**2 * (0.7 * np.eye(3) + 0.3) for spread in SPREADS]),
    np.log([0.3, 0.7]),
)
ANSWERS = {
    "none": [],
    "one win": [(0, 1, 1, 0)],
    "a few": [(0, 1, 3, 1), (1, 2, 1, 1), (0, 2, 2, 0), (0, 1, 1, 0)],
    "all alike": [(0, 1, 12, 0), (0, 2, 9, 0)],
    "many": [(0, 1, 22, 8), (1, 2, 25, 15), (0, 2, 18, 2)],
}
"""First item, second item, wins and losses of the first."""


def posterior(answers, prior=PRIOR):
    result = ScorePosterior.of(prior)
    for answer in answers:
        result = result.update(*answer)
    return result


def on_a_grid(answers):
    """Probability of each item to be the best, mean scores, and log of the answers' probability, by summing."""
    chances, means, evidence = np.zeros(3), np.zeros(3), []
    for component, spread in enumerate(SPREADS):
        axis = np.linspace(-6 * spread, 6 * spread, 71)
        scores = np.array(list(product(axis, repeat=3)))
        away = scores - PRIOR.mean[component]
        log_density = -0.5 * np.einsum("ni,ij,nj->n", away, np.linalg.inv(PRIOR.covariance[component]), away)
        log_density += PRIOR.log_weights[component] - logsumexp(log_density)
        for first, second, wins, losses in answers:
            gap = scores[:, first] - scores[:, second]
            log_density += wins * np.log(expit(gap)) + losses * np.log(expit(-gap))
        weights = np.exp(log_density)
        # Where items are level on the grid, each has its share.
        best = scores == scores.max(axis=1, keepdims=True)
        chances += weights @ (best / best.sum(axis=1, keepdims=True))
        means += weights @ scores
        evidence.append(logsumexp(log_density))
    total = logsumexp(evidence)
    return chances / np.exp(total), means / np.exp(total), total


@pytest.mark.parametrize("name", ANSWERS)
def test_draws_agree_with_sums_over_a_grid(name):
    draws = posterior(ANSWERS[name]).draws(40_000, np.random.default_rng(3))
    chances, means, evidence = on_a_grid(ANSWERS[name])
    best = np.bincount(np.argmax(draws.scores, axis=1), draws.weights, 3)
    error = 5 / np.sqrt(draws.effective)
    assert best == pytest.approx(chances, abs=error * 0.5 + 0.004)  # the grid is coarse where items are level
    assert draws.weights @ draws.scores == pytest.approx(means, abs=error * 4.0)
    assert draws.log_evidence == pytest.approx(evidence, abs=6 * draws.evidence_error + 1e-3)
    assert draws.effective > 0.3 * 40_000


def test_a_wrong_likelihood_would_be_noticed():
    """The negative control of the test above: answers taken twice."""
    twice = posterior(ANSWERS["a few"] * 2).draws(40_000, np.random.default_rng(3))
    chances = on_a_grid(ANSWERS["a few"])[0]
    best = np.bincount(np.argmax(twice.scores, axis=1), twice.weights, 3)
    assert np.abs(best - chances).max() > 2.5 / np.sqrt(twice.effective) + 0.004


def test_the_order_of_answers_changes_no_posterior():
    one, other = posterior(ANSWERS["many"]), posterior(ANSWERS["many"][::-1])
    results = [p.draws(20_000, np.random.default_rng(1)) for p in (one, other)]
    first, second = (np.bincount(np.argmax(d.scores, axis=1), d.weights, 3) for d in results)
    assert first == pytest.approx(second, abs=5 / np.sqrt(results[0].effective))


def test_draws_stay_effective_after_many_questions():
    rng = np.random.default_rng(0)
    items = 30
    features = rng.normal(size=(items, 4))
    prior = ScorePrior(np.zeros((1, items)), 4 * (features @ features.T + 0.1 * np.eye(items))[None], np.zeros(1))
    scores = prior.sample(1, rng)[0]
    result = ScorePosterior.of(prior)
    for _ in range(120):
        first, second = rng.choice(items, 2, replace=False).tolist()
        won = int(rng.random() < expit(scores[first] - scores[second]))
        result = result.update(first, second, won, 1 - won)
    draws = result.draws(4000, rng)
    assert draws.effective > 400
    spread = np.sqrt(draws.weights @ (draws.scores - draws.weights @ draws.scores) ** 2)
    assert np.abs((draws.weights @ draws.scores - scores) / spread).max() < 5


def test_weights_of_given_scores_are_those_of_draws():
    """`log_weights_at` and `draws` state one density: the same weight for the same component and scores."""
    result = posterior(ANSWERS["a few"])
    draws = result.draws(50, np.random.default_rng(2))
    for scores, weight in zip(draws.scores, draws.log_weights, strict=True):
        logs, chances = result.log_weights_at(scores)
        assert np.abs(logs - weight).min() < 1e-9
        assert chances.sum() == pytest.approx(1.0)
    # Far out only the wide component is likely.
    assert result.log_weights_at(np.array([12.0, 0.0, -12.0]))[1][1] > 0.99


def test_no_question_counts_for_more_than_its_answers():
    """A site's precision is at most a quarter per answer; a learned population has few directions and hides others."""
    rng = np.random.default_rng(8)
    narrow = rng.normal(size=(6, 1)) * 3
    prior = ScorePrior(
        np.zeros((2, 6)), np.array([narrow @ narrow.T + 1e-4 * np.eye(6), 64 * np.eye(6)]), np.log([0.5, 0.5])
    )
    result = ScorePosterior.of(prior)
    for _ in range(150):
        first, second = sorted(rng.choice(3, 2, replace=False).tolist())
        won = int(rng.random() < 0.5)
        result = result.update(first, second, won, 1 - won)
    assert np.all(result.sites[..., 0] <= (result.wins + result.losses) / 4 + 1e-12)
    assert np.all(np.linalg.eigvalsh(result.covariance) > 0)
    assert result.draws(2000, rng).effective > 100


@pytest.mark.parametrize("name", ANSWERS)
def test_no_weight_exceeds_the_bound(name):
    """Far out, where only the moved prior has draws, the weights come close to it; a smaller bound would be wrong."""
    result = posterior(ANSWERS[name])
    near = result.draws(40_000, np.random.default_rng(5))
    far = np.random.default_rng(6).normal(size=(300, 3)) * 40
    logs = np.concatenate([near.log_weights, *(result.log_weights_at(scores)[0] for scores in far)])
    assert logs.max() <= result.log_bound + 1e-9
    assert result.log_bound - near.log_evidence < np.log(2_000)
    if name == "all alike":  # a taste that agrees with all answers, far from the others
        peak = np.max([result.log_weights_at(np.array([v, -v, -v]))[0].max() for v in np.linspace(0, 20, 81)])
        assert peak > result.log_bound - 5


def test_draws_weighted_again_are_draws_of_the_new_posterior():
    before = posterior(ANSWERS["one win"])
    after = posterior([*ANSWERS["one win"], (1, 2, 3, 1)])
    again = after.weighted(before.draws(40_000, np.random.default_rng(7)))
    fresh = after.draws(40_000, np.random.default_rng(8))
    assert again.log_evidence == pytest.approx(
        fresh.log_evidence, abs=6 * (again.evidence_error + fresh.evidence_error)
    )
    error = 6 / np.sqrt(min(again.effective, fresh.effective))
    best = [np.bincount(np.argmax(draws.scores, axis=1), draws.weights, 3) for draws in (again, fresh)]
    assert best[0] == pytest.approx(best[1], abs=0.5 * error)
    stale = before.draws(40_000, np.random.default_rng(7))  # the negative control
    assert abs(stale.log_evidence - fresh.log_evidence) > 0.5


def test_the_likelihood_of_a_thousand_questions_does_not_overflow():
    rng = np.random.default_rng(4)
    prior = ScorePrior(np.zeros((1, 60)), np.eye(60)[None], np.zeros(1))
    pairs = np.array([(i, j) for i in range(60) for j in range(i)])[:1500]
    won = rng.integers(0, 2, len(pairs)).astype(np.float64)
    result = replace(ScorePosterior.of(prior), pairs=pairs, wins=won, losses=1 - won)
    scores = np.zeros((60, 2))
    found = result._log_likelihood(result._gaps(scores))
    assert found == pytest.approx(-1500 * np.log(2))
