"""Learning a population from earlier people: mean and covariance of their scores, by penalised maximum likelihood.

Person p has scores s_p ~ N(m, K) and answered some comparisons. EM: the E-step approximates every person's posterior
N(μ_p, V_p) given m and K (expectation propagation); the M-step sets, with the scale matrix K₀ and its strength ν,

    m = Σ_p μ_p / (P + 1),                      S = Σ_p [V_p + (μ_p − m)(μ_p − m)ᵀ],
    c = tr(K₀⁻¹S) / (N P),                      K = (ν c K₀ + S) / (ν + P),

the modes under m ~ N(0, K), an inverse Wishart prior of K, and a scale c that is fitted too. K₀ is the usual covariance
that explains the answers best, so features guide what few people say of an item; ν is chosen by how well people left
out are predicted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surepick._arrays import Floats
from surepick.glm.score_posterior import ScorePosterior, ScorePrior

Person = Sequence[tuple[int, int, int, int]]
"""Comparisons of one person: first item, second item, wins and losses of the first."""

STRENGTHS = (20.0, 80.0)
"""Strengths ν that are tried: as if K₀ had been seen in this many people."""

ROUNDS = 6
"""Of EM; each changes the scale of K twice as far as it says, since it would come there slowly otherwise."""

HELD_OUT = 4
"""One person in this many is left out to choose ν."""


@dataclass(frozen=True, eq=False)
class LearnedScores:
    """Mean and covariance of the scores, and how well they predict people who were left out."""

    mean: Floats
    covariance: Floats
    strength: float
    held_out: float
    """Mean log-probability of an answer of people who were left out, in nats."""
    held_out_usual: float
    """The same by the usual population."""


def learn_scores(usual: ScorePrior, people: Sequence[Person]) -> LearnedScores:
    """Mean and covariance of the scores of these people; O(people·answers·items²) per round."""
    left_out = people[::HELD_OUT]
    others = [person for number, person in enumerate(people) if number % HELD_OUT]
    start = _best_component(usual, others)
    tried = {strength: _fitted(start, others, strength) for strength in STRENGTHS}
    strength = max(tried, key=lambda one: _predicted(tried[one], left_out))
    everybody = _fitted(start, people, strength)
    return LearnedScores(
        everybody.mean[0],
        everybody.covariance[0],
        strength,
        _predicted(tried[strength], left_out),
        _predicted(usual, left_out),
    )


def _conditioned(prior: ScorePrior, person: Person) -> ScorePosterior:
    posterior = ScorePosterior.of(prior)
    for first, second, wins, losses in person:
        posterior = posterior.update(first, second, wins, losses)
    return posterior


def _best_component(usual: ScorePrior, people: Sequence[Person]) -> ScorePrior:
    """The component that gives the answers of all people the highest probability, by itself."""
    total = np.sum([_conditioned(usual, person).log_evidence for person in people], axis=0)
    best = [int(np.argmax(total))]
    return ScorePrior(usual.mean[best], usual.covariance[best], np.zeros(1))


def _fitted(start: ScorePrior, people: Sequence[Person], strength: float) -> ScorePrior:
    prior = start
    for _ in range(ROUNDS):
        found = [_conditioned(prior, person) for person in people]
        means = np.array([one.mean[0] for one in found])
        mean = means.sum(axis=0) / (len(people) + 1)
        away = means - mean
        scatter = np.sum([one.covariance[0] for one in found], axis=0) + away.T @ away
        scale = float(np.sum(start.precision[0] * scatter)) / (len(mean) * len(people))
        covariance = (strength * scale * start.covariance[0] + scatter) / (strength + len(people))
        # The same fixed point in fewer rounds: little is known of a person, so EM moves the scale in small steps.
        covariance *= np.trace(covariance) / np.trace(prior.covariance[0])
        prior = ScorePrior(mean[None], covariance[None], np.zeros(1))
    return prior


def _predicted(prior: ScorePrior, people: Sequence[Person]) -> float:
    """Mean log-probability of an answer, by the approximation."""
    logs = [np.logaddexp.reduce(_conditioned(prior, person).log_evidence + prior.log_weights) for person in people]
    return float(np.sum(logs) / sum(wins + losses for person in people for _, _, wins, losses in person))
