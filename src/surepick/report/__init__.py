"""What a search found, told: as fields for programs, as a page with pictures for people."""

from surepick.report.comparison import Comparison, compare
from surepick.report.outcome import Outcome
from surepick.report.page import write_report

__all__ = ["Comparison", "Outcome", "compare", "write_report"]
