"""Learning a population from earlier people: mean and covariance of their scores, by penalised maximum likelihood.

Person p has scores s_p ~ N(m, K) and answered some comparisons. EM: the E-step approximates every person's posterior
N(μ_p, V_p) given m and K (expectation propagation, all people at once); the M-step sets, with the scale matrix K₀ and
its strength ν,

    m = (K₀⁻¹ + P K⁻¹)⁻¹ K⁻¹ Σ_p μ_p,           S = Σ_p [V_p + (μ_p − m)(μ_p − m)ᵀ],
    c = tr(K₀⁻¹S) / (N P),                      K = (ν c K₀ + S) / (ν + P),

the modes under m ~ N(0, K₀), an inverse Wishart prior of K, and a scale c that is fitted too. K₀ is the usual
covariance that explains the answers best, so features guide what few people say of an item; ν and the number of rounds
are chosen by how well people left out are predicted. A new person's scores are N(m, K + C), with the uncertainty of the
mean C = (K₀⁻¹ + Σ_p [K⁻¹ − K⁻¹V_pK⁻¹])⁻¹: what nobody was asked about is not taken for known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from surepick._arrays import Floats
from surepick.glm.score_posterior import PeoplesAnswers, ScorePosterior, ScorePrior

Person = Sequence[tuple[int, int, int, int]]
"""Comparisons of one person: first item, second item, wins and losses of the first."""

STRENGTHS = (20.0, 80.0)
"""Strengths ν that are tried: as if K₀ had been seen in this many people."""

ROUNDS = (5, 10, 20)
"""Rounds of EM that are tried: with more of them the scale of K may fall too far. Each changes it twice as far as it
says, since it would come there slowly otherwise."""

FIRST_SWEEPS, SWEEPS = 4, 2
"""Sweeps of expectation propagation in the first round, and in the others, which start where the last one ended."""

HELD_OUT = 4
"""One person in this many is left out to choose ν and the rounds."""


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
    """Mean and covariance of the scores of these people; O(people·items²·(items + answers)) per round."""
    left_out = people[::HELD_OUT]
    others = [person for number, person in enumerate(people) if number % HELD_OUT]
    start = _best_component(usual, others)
    tried = {way: _fitted(start, others, *way) for way in product(STRENGTHS, ROUNDS)}
    way = max(tried, key=lambda one: _predicted(tried[one], left_out))
    everybody = _fitted(start, people, *way)
    return LearnedScores(
        everybody.mean[0],
        everybody.covariance[0],
        way[0],
        _predicted(tried[way], left_out),
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


def _fitted(start: ScorePrior, people: Sequence[Person], strength: float, rounds: int) -> ScorePrior:
    answers, sites = PeoplesAnswers.of(people), None
    mean, covariance = start.mean[0], start.covariance[0]
    usual, count = start.precision[0], len(people)
    for number in range(rounds):
        precision = np.linalg.inv(covariance)
        sweeps = SWEEPS if number else FIRST_SWEEPS
        means, covariances, sites = answers.approximated(mean, covariance, sites, sweeps=sweeps)
        unsure = np.linalg.inv(usual + count * precision - precision @ covariances.sum(axis=0) @ precision)
        mean = np.linalg.solve(usual + count * precision, precision @ means.sum(axis=0))
        away = means - mean
        scatter = covariances.sum(axis=0) + away.T @ away
        scale = float(np.sum(usual * scatter)) / (len(mean) * count)
        found = (strength * scale * start.covariance[0] + scatter) / (strength + count)
        # The same fixed point in fewer rounds: little is known of a person, so EM moves the scale in small steps.
        covariance = found * np.trace(found) / np.trace(covariance)
    return ScorePrior(mean[None], (covariance + unsure)[None], np.zeros(1))


def _predicted(prior: ScorePrior, people: Sequence[Person]) -> float:
    """Mean log-probability of an answer, by the approximation."""
    logs = [np.logaddexp.reduce(_conditioned(prior, person).log_evidence + prior.log_weights) for person in people]
    return float(np.sum(logs) / sum(wins + losses for person in people for _, _, wins, losses in person))
