"""Checks of what the guarantees take for granted: functions of a table of answers, each with a level and a sentence.

Reading order: `table`, `prequential` (the idea behind most: misfit and drift), `position_and_ties`, `cycles`, `tastes`
(judges differ), `repeats`, `judges` (random and one-sided judges). Statements and proofs: docs/checks.md.
"""

from collections.abc import Callable

from surepick import validate
from surepick.checks.cycles import cycles
from surepick.checks.judges import one_sided_judges, random_judges
from surepick.checks.position_and_ties import position, ties
from surepick.checks.prequential import drift, misfit
from surepick.checks.repeats import MemoryEvidence, repeats
from surepick.checks.table import Answers, Check
from surepick.checks.tastes import judges_differ

CHECKS: dict[str, Callable[..., Check]] = {
    "misfit": misfit,
    "position": position,
    "judges differ": judges_differ,
    "random judges": random_judges,
    "one-sided judges": one_sided_judges,
    "ties": ties,
    "cycles": cycles,
    "drift": drift,
    "repeats": repeats,
}
"""Every check by its name."""


def check_all(answers: Answers, *, level: float = 0.05) -> tuple[Check, ...]:
    """Every check, each at an even share of `level`: any false alarm at all has probability at most `level`.

    A second or two for thousands of answers on dozens of items.
    """
    share = validate.probability("level", level) / len(CHECKS)
    return tuple(check(answers, level=share) for check in CHECKS.values())


__all__ = [
    "CHECKS",
    "Answers",
    "Check",
    "MemoryEvidence",
    "check_all",
    "cycles",
    "drift",
    "judges_differ",
    "misfit",
    "one_sided_judges",
    "position",
    "random_judges",
    "repeats",
    "ties",
]
