"""surepick: find the best item from yes/no or A-versus-B answers, and say how sure it is.

Reading order for newcomers: the README's example, `confidence`, `logistic`, `linalg`; docs/architecture.md has the map.
"""

from surepick import design
from surepick.confidence import (
    Evidence,
    Intervals,
    in_given_order,
    interval_anytime,
    interval_corrected,
    interval_faury,
    interval_li,
    interval_printed,
    interval_wald,
    plug_in_evidence,
)
from surepick.design import (
    Design,
    DesignStatus,
    apportion,
    d_optimal,
    g_optimal,
    gap_optimal,
    max_optimal,
    pairs_optimal,
    xy_optimal,
)
from surepick.errors import InvalidInput, MissingExtra, NotIdentifiable, SurepickError
from surepick.guarantee import Guarantee
from surepick.logistic import Fit, FitStatus, Tally, fit

__version__ = "0.1.0.dev0"

__all__ = [
    "Design",
    "DesignStatus",
    "Evidence",
    "Fit",
    "FitStatus",
    "Guarantee",
    "Intervals",
    "InvalidInput",
    "MissingExtra",
    "NotIdentifiable",
    "SurepickError",
    "Tally",
    "apportion",
    "d_optimal",
    "design",
    "fit",
    "g_optimal",
    "gap_optimal",
    "in_given_order",
    "interval_anytime",
    "interval_corrected",
    "interval_faury",
    "interval_li",
    "interval_printed",
    "interval_wald",
    "max_optimal",
    "pairs_optimal",
    "plug_in_evidence",
    "xy_optimal",
]
