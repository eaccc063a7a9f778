"""Checks of what the guarantees take for granted: functions of a table of answers, each with a level and a sentence.

Reading order: `result`, `answers`, `position` (the simplest), `prequential` (the idea behind the others), `misfit`.
"""

from surepick.checks.answers import SKIP, TIE, Answers
from surepick.checks.cycles import cycles
from surepick.checks.drift import drift
from surepick.checks.every import CHECKS, check_all
from surepick.checks.judges import one_sided_judges, random_judges
from surepick.checks.misfit import misfit
from surepick.checks.position import position
from surepick.checks.result import Check
from surepick.checks.ties import ties

__all__ = [
    "CHECKS",
    "SKIP",
    "TIE",
    "Answers",
    "Check",
    "check_all",
    "cycles",
    "drift",
    "misfit",
    "one_sided_judges",
    "position",
    "random_judges",
    "ties",
]
