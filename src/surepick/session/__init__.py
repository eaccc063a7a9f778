"""Sessions: questions out, answers in, over an append-only log; and a whole search in one call."""

from surepick.identify import PlanJudge, run
from surepick.session.find import Answer, BatchJudge, Judge, file_answer, find_best
from surepick.session.question import Question
from surepick.session.session import Session

__all__ = ["Answer", "BatchJudge", "Judge", "PlanJudge", "Question", "Session", "file_answer", "find_best", "run"]
