"""What a search found: as fields for programs, and as sentences and a page with pictures for people."""

from surepick.report.history import ScoreTable, score_table
from surepick.report.outcome import Comparison, Outcome, compare
from surepick.report.page import write_report

__all__ = ["Comparison", "Outcome", "ScoreTable", "compare", "score_table", "write_report"]
