"""What a search found: as fields for programs, and as sentences and a page with figures for people."""

from surepick.report.history import ScoreTable, score_table
from surepick.report.outcome import OtherMethods, Outcome, compare
from surepick.report.page import write_report

__all__ = ["OtherMethods", "Outcome", "ScoreTable", "compare", "score_table", "write_report"]
