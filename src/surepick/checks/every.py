"""All checks at once."""

from collections.abc import Callable

from surepick import validate
from surepick.checks.answers import Answers
from surepick.checks.cycles import cycles
from surepick.checks.drift import drift
from surepick.checks.judges import one_sided_judges, random_judges
from surepick.checks.misfit import misfit
from surepick.checks.position import position
from surepick.checks.result import Check
from surepick.checks.ties import ties

CHECKS: dict[str, Callable[..., Check]] = {
    "misfit": misfit,
    "position": position,
    "random judges": random_judges,
    "one-sided judges": one_sided_judges,
    "ties": ties,
    "cycles": cycles,
    "drift": drift,
}
"""Every check by its name."""


def check_all(answers: Answers, *, level: float = 0.05) -> tuple[Check, ...]:
    """Every check, each at an even share of `level`: any false alarm at all has probability at most `level`.

    A second or two for thousands of answers on dozens of items.
    """
    share = validate.probability("level", level) / len(CHECKS)
    return tuple(check(answers, level=share) for check in CHECKS.values())
