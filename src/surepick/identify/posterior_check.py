"""Is this person unlike the population? The answers' probability under it, against that of people of any kind.

If the taste is drawn from the population, the ratio of the two probabilities is a martingale of mean one, however the
questions are chosen: it ever reaches 1/level with probability at most `level` (Ville; docs/population.md).
"""

import numpy as np

from surepick.checks import Check
from surepick.checks.table import e_value, exceeds
from surepick.glm.score_posterior import ScorePosterior, ScorePrior
from surepick.guarantee import Guarantee
from surepick.identify.population import Population, any_people
from surepick.identify.problem import Problem

NAME = "unlike the population"

DRAWS = 2_000
"""Draws from which each probability is estimated."""

ERRORS = 3.0
"""Standard errors of the estimates that are taken off."""

MOST = 0.5
"""If one component has more people than this, the person is compared with these: others are in it for unlike people."""


def unlike_population(problem: Problem, population: Population, posterior: ScorePosterior, *, level: float) -> Check:
    """Whether the answers so far speak against the population."""
    prior = population.prior
    main = int(np.argmax(prior.log_weights))
    if np.exp(prior.log_weights[main]) > MOST:
        prior = ScorePrior(prior.mean[[main]], prior.covariance[[main]], np.zeros(1))
    nats = 0.0
    if len(posterior.pairs):
        rng = np.random.default_rng([len(posterior.pairs), 17])
        assumed, others = (posterior.under(one).draws(DRAWS, rng) for one in (prior, any_people(problem)))
        error = float(np.hypot(assumed.evidence_error, others.evidence_error))
        nats = others.log_evidence - assumed.log_evidence - ERRORS * error
    alarm = exceeds(nats, level)
    if alarm:
        sentence = (
            f"This person is unlike the population assumed ({population.source}): people of any kind explain the "
            f"answers {np.exp(nats):,.0f} times better. Rely on another claim, or on a population of such people."
        )
    else:
        sentence = "The answers so far are such as people of the population give."
    return Check(
        NAME,
        level,
        alarm,
        e_value(nats),
        sentence,
        "The taste is drawn from the population.",
        Guarantee.HEURISTIC,
        ("population",),
    )
