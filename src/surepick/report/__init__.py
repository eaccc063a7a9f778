"""What a search found, told: as fields for programs, as a page with pictures for people."""

from surepick.report.comparison import Comparison, compare
from surepick.report.history import Standing, standing
from surepick.report.outcome import Outcome
from surepick.report.page import write_report

__all__ = ["Comparison", "Outcome", "Standing", "compare", "standing", "write_report"]
