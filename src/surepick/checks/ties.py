"""Ties: how often did somebody see no difference?"""

import math

import numpy as np
from scipy.special import betaincc, betaln

from surepick import validate
from surepick.checks.answers import SKIP, TIE, Answers
from surepick.checks.result import Check, e_value, exceeds
from surepick.guarantee import Guarantee

MANY = 0.25
"""Share of ties above which they are called many."""


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
    )
