"""Confidence bounds for a fitted logistic model: one function a method, one result type.

`interval_corrected` is the default for fixed designs, `interval_anytime` for everything else; the others are there to
compare with. Reading order: `result`, `corrected`, `theorem`, `anytime`.
"""

from surepick.confidence.anytime import Evidence, in_given_order, interval_anytime, plug_in_evidence
from surepick.confidence.comparison import interval_faury, interval_li, interval_wald
from surepick.confidence.corrected import interval_corrected
from surepick.confidence.printed import interval_printed
from surepick.confidence.result import Condition, Intervals

__all__ = [
    "Condition",
    "Evidence",
    "Intervals",
    "in_given_order",
    "interval_anytime",
    "interval_corrected",
    "interval_faury",
    "interval_li",
    "interval_printed",
    "interval_wald",
    "plug_in_evidence",
]
