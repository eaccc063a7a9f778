"""Optimal designs: how often to measure which vector so that the worst direction of interest is known best.

Every design comes with a proof of how far it is from the best possible. See docs/design.md.
"""

from surepick.design.criteria import d_optimal, g_optimal, gap_optimal, max_optimal, pairs_optimal, xy_optimal
from surepick.design.result import Certificate, Design, DesignStatus
from surepick.design.rounding import Allocation, apportion, reduce_support
from surepick.design.vector_families import Pairs, Rows

__all__ = [
    "Allocation",
    "Certificate",
    "Design",
    "DesignStatus",
    "Pairs",
    "Rows",
    "apportion",
    "d_optimal",
    "g_optimal",
    "gap_optimal",
    "max_optimal",
    "pairs_optimal",
    "reduce_support",
    "xy_optimal",
]
