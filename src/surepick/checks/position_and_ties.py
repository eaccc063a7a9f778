"""Position and ties: does it matter which item is shown first, and how often did somebody see no difference?

Both bet on a share: the share of winners that were shown first, which is 1/2 by the coin that drew the order, and the
share of ties, which is to be at most a limit.
"""

import math

import numpy as np
from scipy.special import betaincc, betaln, logsumexp

from surepick import validate
from surepick.answer import SKIP, TIE
from surepick.checks.prequential import Expert, beyond_one_theta, fits_of_the_past, forecasts
from surepick.checks.table import Answers, Check, e_value, exceeds
from surepick.glm import probability_of_yes
from surepick.guarantee import Guarantee

CONCENTRATIONS = np.array([1.0, 10.0, 100.0])
"""Rivals of the fair coin: shares drawn from Beta(a, a), from any share to a few per cent around a half."""

SHIFTS = np.array([-2.0, -1.0, -0.5, -0.25, 0.25, 0.5, 1.0, 2.0])
"""Advantages of the first item, in log-odds, that are bet on."""

MANY = 0.25
"""Share of ties that is considered large."""


def position(answers: Answers, *, level: float = 0.05) -> Check:
    """Does the item shown first win more (or less) than it would shown second?

    Where the order was drawn by a fair coin (`answers.shuffled`) and does not matter, the winner was shown first with
    probability exactly 1/2 whatever the judges think of the items: no model is needed. Otherwise a model with a weight
    for the position predicts against the best model without. Both proved (docs/checks.md, 2).
    """
    first, count = int(answers.first_won.sum()), len(answers.first_won)
    if answers.shuffled:
        nats = _log_order(answers)
        assumption = "The order shown was drawn by a fair coin and does not change who wins."
        # Drawn by a coin, a place effect leaves every item its fair share; but the mean of two logistic curves is none.
        refutes: tuple[str, ...] = ("features", "population")
        consequence = (
            "As the order was drawn at random, the claim winner holds all the same, but takes more answers. The claims "
            "features and population do not hold as they stand: add a coordinate for the position."
        )
    else:
        shown = answers.as_shown
        pairs = (shown.items[:, 1] >= 0).astype(float)[:, None]
        predicted = [forecasts(shown, Expert(extra=pairs))] if count else []
        nats = beyond_one_theta(shown, predicted, same=answers.counted) if count else 0.0
        assumption = "One θ and the features explain all answers, and the order shown does not matter."
        refutes = ("features", "population", "winner")
        consequence = (
            "The guarantee does not hold as it stands: draw the order at random, or add a coordinate for the position."
        )
    alarm = exceeds(nats, level)
    share = f"{first / count:.0%} of {count:,} comparisons" if count else "no comparison yet"
    if alarm:
        sentence = f"The order shown matters: the first item won {share}. {consequence}"
    else:
        sentence = f"The order shown makes no visible difference: the first item won {share}."
    return Check("position", level, alarm, e_value(nats), sentence, assumption, Guarantee.PROVED, refutes)


def _log_order(answers: Answers) -> float:
    """Nats against a fair order: bets on its coin that know who won, and what fits of the past expected.

    If the first is favoured by b, a winner w log-odds better was shown first with odds μ(w+b) to μ(w−b): nearly even
    for a favourite, up to e^2b for a surprise. Half of the mixture; the other half bets on the share of firsts alone.
    """
    turned, pairs = answers.turned[answers.decisive], answers.of_a_pair[answers.decisive]
    by_features = fits_of_the_past(answers)[0]
    expected = np.where(turned, 1 - by_features, by_features)[pairs]
    won = answers.first_won
    # By how much the winner was expected to be better, in log-odds.
    better = np.log(expected / (1 - expected)) * np.where(won, 1, -1)
    as_first, as_second = (probability_of_yes(better + sign * SHIFTS[:, None]) for sign in (1, -1))
    bets = np.sum(np.log(2 * np.where(won, as_first, as_second) / (as_first + as_second)), axis=1)
    surprised = float(logsumexp(bets)) - math.log(len(SHIFTS))
    return float(np.logaddexp(surprised, log_fair_coin(int(won.sum()), len(won)))) - math.log(2)


def log_fair_coin(heads: int, tosses: int) -> float:
    """Nats against a fair coin: log of the mean over the rivals of their likelihood ratio, a martingale from one."""
    # ∫ p^h(1−p)^(n−h) dBeta(a, a)(p) = B(h+a, n−h+a)/B(a, a), against 2^−n of the fair coin.
    gained = betaln(heads + CONCENTRATIONS, tosses - heads + CONCENTRATIONS) - betaln(CONCENTRATIONS, CONCENTRATIONS)
    return float(logsumexp(gained)) - math.log(len(CONCENTRATIONS)) + tosses * math.log(2)


def ties(answers: Answers, *, level: float = 0.05, limit: float = MANY) -> Check:
    """Is the chance of a tie above `limit`?

    Ties count as missing answers, under the assumption that decisive answers are logistic; the more there are, the
    more rests on it. Skipped questions are left out: often nobody saw them. For p above the limit the ratio
    (p/limit)^ties·((1−p)/(1−limit))^others has mean at most one as long as every tie has a chance of at most `limit`,
    given the past; its mean over p in (limit, 1) is the e-value (docs/checks.md, 3).
    """
    limit = validate.probability("limit", limit)
    tied, skipped = int(np.sum(answers.said == TIE)), int(np.sum(answers.said == SKIP))
    count = len(answers.said) - skipped
    # The uniform mean over p in (limit, 1) is an incomplete beta integral over its length 1 − limit.
    with np.errstate(divide="ignore"):
        inside = float(np.log(betaincc(tied + 1, count - tied + 1, limit)))
    nats = float(betaln(tied + 1, count - tied + 1)) + inside - math.log(1 - limit)
    nats -= tied * math.log(limit) + (count - tied) * math.log1p(-limit)
    alarm = exceeds(nats, level)
    share = f"{tied / count:.0%} of {count:,} answers" if count else "no answers yet"
    besides = f" {skipped:,} questions were skipped besides." if skipped else ""
    if alarm:
        sentence = (
            f"Many ties: {share}, more than {limit:.0%}. They were left out; the verdict is about how people choose "
            f"when they do choose.{besides}"
        )
    else:
        sentence = f"Ties: {share}; up to {limit:.0%} is usual.{besides}"
    return Check(
        "ties",
        level,
        alarm,
        e_value(nats),
        sentence,
        f"The chance of a tie is at most {limit:g} at every question.",
        Guarantee.PROVED,
        (),  # a tie counts as half a win for "winner", and "features" speaks of answers that are no ties
    )
