"""Confidence bounds for a fitted logistic model: one function per method, one result type.

`interval_corrected` is the default for fixed designs, `interval_anytime` for everything else; methods of others are in
`surepick.baselines`. Reading order: `result`, `prior_bounds`, `theorem`, `fixed_design`, `anytime`.
"""

from surepick.confidence.anytime import ConfidenceSet, interval_anytime
from surepick.confidence.fixed_design import interval_corrected
from surepick.confidence.result import Condition, Intervals
from surepick.evidence.likelihood_ratio import in_given_order

__all__ = [
    "Condition",
    "ConfidenceSet",
    "Intervals",
    "in_given_order",
    "interval_anytime",
    "interval_corrected",
]
