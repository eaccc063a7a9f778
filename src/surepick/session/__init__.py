"""Sessions: questions out, answers in, over an append-only log; and a whole search in one call."""

from surepick.answer import Answer
from surepick.session.contextual import ContextualSession
from surepick.session.find import (
    AskLoop,
    BatchJudge,
    FunctionJudge,
    Judge,
    Reply,
    ReplyingJudge,
    file_answer,
    find_best,
)
from surepick.session.gate import Comparison, compare_two
from surepick.session.question import Question
from surepick.session.session import Session

__all__ = [
    "Answer",
    "AskLoop",
    "BatchJudge",
    "Comparison",
    "ContextualSession",
    "FunctionJudge",
    "Judge",
    "Question",
    "Reply",
    "ReplyingJudge",
    "Session",
    "compare_two",
    "file_answer",
    "find_best",
]
