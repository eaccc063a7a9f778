"""Sessions: questions out, answers in, over an append-only log; and a whole search in one call."""

from surepick.session.find import Answer, BatchJudge, Judge, PlanJudge, file_answer, find_best, run
from surepick.session.session import Question, Session

__all__ = ["Answer", "BatchJudge", "Judge", "PlanJudge", "Question", "Session", "file_answer", "find_best", "run"]
