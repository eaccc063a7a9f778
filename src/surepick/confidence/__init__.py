"""Confidence bounds for a fitted logistic model: one function per method, one result type.

`interval_corrected` is the default for fixed designs, `interval_anytime` for everything else; rivals are in
`surepick.baselines`. Reading order: `result`, `corrected`, `theorem`, `anytime`.
"""

from surepick.confidence.anytime import Evidence, in_given_order, interval_anytime, plug_in_evidence
from surepick.confidence.corrected import interval_corrected
from surepick.confidence.result import Condition, Intervals

__all__ = [
    "Condition",
    "Evidence",
    "Intervals",
    "in_given_order",
    "interval_anytime",
    "interval_corrected",
    "plug_in_evidence",
]
