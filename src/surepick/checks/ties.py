"""Ties: how many questions ended without an answer?"""

import math

import numpy as np
from scipy.special import betaincc, betaln

from surepick import validate
from surepick.checks.answers import SKIP, TIE, Answers
from surepick.checks.result import Check, e_value, exceeds
from surepick.guarantee import Guarantee

MANY = 0.25
"""Share of ties and skips above which they are called many."""


def ties(answers: Answers, *, level: float = 0.05, limit: float = MANY) -> Check:
    """Is the chance of a tie or a skip above `limit`?

    Ties count as missing answers, under the assumption that decisive answers are logistic; the more there are, the
    more rests on it. For p above the limit the ratio (p/limit)^ties·((1−p)/(1−limit))^others has mean at most one as
    long as every tie has a chance of at most `limit`, given the past; its mean over p in (limit, 1) is the e-value.
    """
    limit = validate.probability("limit", limit)
    missing, count = int(np.sum((answers.said == TIE) | (answers.said == SKIP))), len(answers.said)
    with np.errstate(divide="ignore"):
        inside = float(np.log(betaincc(missing + 1, count - missing + 1, limit)))
    nats = float(betaln(missing + 1, count - missing + 1)) + inside - math.log(1 - limit)
    nats -= missing * math.log(limit) + (count - missing) * math.log1p(-limit)
    alarm = exceeds(nats, level)
    share = f"{missing / count:.0%} of {count:,} questions" if count else "none of no questions"
    if alarm:
        sentence = (
            f"Many ties: {share} ended in a tie or a skip, more than {limit:.0%}. They were left out; the verdict is "
            "about how people choose when they do choose."
        )
    else:
        sentence = f"{share[0].upper()}{share[1:]} ended in a tie or a skip; up to {limit:.0%} is usual."
    return Check(
        "ties",
        level,
        alarm,
        e_value(nats),
        sentence,
        f"The chance of a tie or a skip is at most {limit:g} at every question.",
        Guarantee.PROVED,
    )
