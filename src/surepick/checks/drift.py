"""Drift: did taste stay the same from the first answer to the last?"""

from surepick.checks.answers import Answers
from surepick.checks.prequential import Expert, log_evidence
from surepick.checks.result import Check, e_value, exceeds
from surepick.guarantee import Guarantee

FORGETTING = (1.0, 4.0)
"""With these exponents an answer in the middle weighs a half, or a sixteenth, of the latest one."""


def drift(answers: Answers, *, level: float = 0.05) -> Check:
    """Predictors that forget old answers, against the best single θ for all of them.

    Proved (docs/checks.md, 1), like `misfit`: the only thing new is who predicts.
    """
    experts = [Expert(forget=exponent) for exponent in FORGETTING]
    nats = log_evidence(answers.counted, experts)
    alarm = exceeds(nats, level)
    if alarm:
        sentence = (
            "The answers changed over time: recent answers alone predict better than any one taste for all of them. "
            "The verdict mixes then and now; start again, or ask within a shorter time."
        )
    else:
        sentence = "Early and late answers agree, as far as they can tell."
    return Check(
        "drift",
        level,
        alarm,
        e_value(nats),
        sentence,
        "One θ for all times.",
        Guarantee.PROVED,
    )
