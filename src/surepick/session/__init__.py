"""Sessions: questions out, answers in, over an append-only log; and a whole search in one call."""

from surepick.session.contextual import ContextualSession
from surepick.session.find import Answer, BatchJudge, Judge, file_answer, find_best
from surepick.session.question import Question
from surepick.session.session import Session

__all__ = ["Answer", "BatchJudge", "ContextualSession", "Judge", "Question", "Session", "file_answer", "find_best"]
