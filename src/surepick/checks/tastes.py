"""Judges differ: do judges have tastes of their own, or one taste in common?

Two predictions of every answer, both from earlier answers alone: one that does not know who is asked, and one that also
learns how this judge deviates. The second is a predictor as in `prequential`, so beating every single θ refutes the
model; beating the first says that it is the judges who differ, and who does (docs/checks.md, 5).
"""

import math

import numpy as np
from scipy.special import logit, softmax

from surepick._arrays import Booleans, Floats, Integers
from surepick.checks.prequential import CERTAIN, before, beyond_one_theta, fits_of_the_past, log_chances
from surepick.checks.table import Answers, Check, e_value, exceeds, once_per_table
from surepick.glm import probability_of_yes
from surepick.glm.item_scores import PROBIT, posterior_mode
from surepick.guarantee import Guarantee
from surepick.linalg import norms

STRENGTHS = (8.0, 64.0, math.inf)
"""How many answers of other judges to the same question weigh as much as a fit (inf: the fit alone)."""

OWN_SCALES = np.array([0.5, 1.0, 2.0])
"""How far a judge may deviate, in log-odds at the longest question asked before."""

MOST_COORDINATES = 120
"""With more than this, deviations of judges are not learned: one step of all judges would take seconds."""

TOGETHER = 16
"""Answers of each judge between two changes of a covariance."""

ALIKE = 0.75
"""Weight of the prediction that a judge does not deviate; the scales share the rest evenly."""


def judges_differ(answers: Answers, *, level: float = 0.05) -> Check:
    """Does what a judge said before predict that judge better than what everybody said?

    e is the smaller of two ratios. The first is that of `misfit` with predictors that know the judge: under one θ it
    ever reaches 1/level with probability at most `level`, so the level is proved (docs/checks.md, 1 and 5). The second
    is the gain over predictors that do not know the judge: without it, features that explain little would be blamed on
    the judges.
    """
    counted, named = answers.counted, answers.of_judges
    judges = len(named)
    gained, nats = {}, 0.0
    if judges > 1 and len(counted):
        own = with_own_taste(answers)
        gain = log_chances(counted, own) - log_chances(counted, in_common(answers))
        gained = {name: float(gain[mine].sum()) for name, mine in named.items()}
        nats = min(beyond_one_theta(counted, [own]), float(gain.sum()))
    alarm = exceeds(nats, level)
    most = sorted(gained, key=lambda name: -gained[name])
    # At least one is named: who gains most has gained something where all together gained log(1/level).
    about = tuple(name for name in most if exceeds(gained[name], level)) or tuple(most[:1]) if alarm else ()
    if alarm:
        sentence = (
            f"Judges differ in taste: earlier answers of {_and(about)} predict the later ones better than everybody's "
            "do. No one θ speaks for all judges; the best item of most judges need not be the best for each."
        )
    elif judges < 2 or counted.rows.shape[1] > MOST_COORDINATES:
        sentence = f"Not checked: it takes two judges with names, and at most {MOST_COORDINATES} coordinates."
    else:
        sentence = f"No differences in taste are visible among {judges} judges."
    return Check(
        "judges differ",
        level,
        alarm,
        e_value(nats),
        sentence,
        "One θ for all judges.",
        Guarantee.PROVED,
        ("features", "population"),  # "winner" lets judges differ
        about,
    )


@once_per_table
def in_common(answers: Answers) -> Floats:
    """For each decisive answer the probability of 1 by earlier answers of all judges, whoever is asked now.

    A mixture, weighted by past success, of fits and of other judges' share of ones at the same question. The judge's
    own answers to that question are left out of the share: a judge who remembers them would make it seem certain.
    """
    counted = answers.counted
    asked, won = before(counted.place, counted.ones)
    mine = before(counted.place + len(counted.rows) * answers.judge[answers.decisive], counted.ones)
    pulls, wins = asked - mine[0], won - mine[1]
    yes = np.array(
        [
            fitted if math.isinf(strength) else (wins + strength * fitted) / (pulls + strength)
            for fitted in fits_of_the_past(answers)
            for strength in STRENGTHS
        ]
    )
    success = np.cumsum(log_chances(counted, yes), axis=1)
    past = np.hstack([np.zeros((len(yes), 1)), success[:, :-1]])
    return np.asarray(np.clip(np.sum(softmax(past, axis=0) * yes, axis=0), CERTAIN, 1 - CERTAIN))


@once_per_table
def with_own_taste(answers: Answers) -> Floats:
    """For each decisive answer the probability of 1 by `in_common` and by how its judge deviated from it before.

    Log-odds are those of `in_common` plus xᵀδ with δ ~ N(0, s²I) for every judge, mixed over s and δ = 0. Beliefs
    about δ follow by assumed-density filtering as in `glm.item_scores`, O(k²) per answer for vectors of length k; the
    n-th answers of all judges are one step, since given `in_common` the judges have nothing to do with each other.
    """
    counted, common = answers.counted, in_common(answers)
    # Those with most answers first: who takes part in a step are then always the first few.
    named = sorted(answers.of_judges.values(), key=lambda mine: -int(mine.sum()))
    size = counted.rows.shape[1]
    if not named or size > MOST_COORDINATES:
        return common
    result, offsets = common.copy(), logit(common)
    vectors, longest = counted.rows[counted.place], np.maximum.accumulate(norms(counted.rows)[counted.place])
    # The unit of length is what had been asked when a judge began, so that no prediction knows the future.
    unit = np.array([next((length for length in longest[mine] if length > 0), 1.0) for mine in named])
    mean = np.zeros((len(named), len(OWN_SCALES), size))
    covariance = (OWN_SCALES / unit[:, None])[:, :, None, None] ** 2 * np.eye(size)
    weights = np.tile([ALIKE, *[(1 - ALIKE) / len(OWN_SCALES)] * len(OWN_SCALES)], (len(named), 1))
    # The vectors of the next steps are known: what the covariance makes of them, and how these steps change it, are one
    # product of matrices each.
    steps = _steps(named)
    for block in (steps[begin : begin + TOGETHER] for begin in range(0, len(steps), TOGETHER)):
        present = len(block[0])
        x = np.zeros((present, len(block), size))
        for step, rows in enumerate(block):
            x[: len(rows), step] = vectors[rows]
        directions = covariance[:present] @ np.swapaxes(x, 1, 2)[:, None]
        shrunk = np.zeros((present, len(OWN_SCALES), len(block)))
        for step, rows in enumerate(block):
            now = slice(len(rows))
            done, direction, here = directions[now, :, :, :step], directions[now, :, :, step], x[now, step]
            changes = (here[:, None, None] @ done)[:, :, 0] * shrunk[now, :, :step]
            direction -= (done @ changes[..., None])[..., 0]
            gap = offsets[rows][:, None] + np.einsum("jsk,jk->js", mean[now], here)
            var = np.maximum(np.einsum("jsk,jk->js", direction, here), 1e-12)  # a null vector has no variance
            yes = probability_of_yes(np.column_stack([offsets[rows], gap / np.sqrt(1 + PROBIT * var)]))
            result[rows] = np.sum(weights[now] * yes, axis=1)
            one = counted.ones[rows][:, None]
            weights[now] *= np.where(one, yes, 1 - yes)
            weights[now] /= weights[now].sum(axis=1, keepdims=True)
            mode = posterior_mode(gap, var, one)
            p = probability_of_yes(mode)
            shrunk[now, :, step] = p * (1 - p) / (1 + p * (1 - p) * var)
            mean[now] += direction * ((mode - gap) / var)[:, :, None]
        covariance[:present] -= (directions * shrunk[:, :, None, :]) @ np.swapaxes(directions, 2, 3)
    return np.clip(result, CERTAIN, 1 - CERTAIN)


def _steps(named: list[Booleans]) -> list[Integers]:
    """The numbers of the first answers of all judges, then of the second ones, and so on."""
    rows = [np.flatnonzero(mine) for mine in named]
    return [np.array([mine[step] for mine in rows if step < len(mine)]) for step in range(len(rows[0]))]


def _and(names: tuple[str, ...]) -> str:
    """The first few names, and how many there are besides."""
    listed = [*names[:5], f"{len(names) - 5} more"] if len(names) > 6 else names
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"
