"""The benchmark: every method, the same worlds, the same questions to ask (docs/benchmark.md)."""

from surepick_experiments.benchmark.challenge import CHECKPOINTS, Answer, Challenge, Entry, Method, Question
from surepick_experiments.benchmark.methods import METHODS, NOT_RUN
from surepick_experiments.benchmark.play import play, row
from surepick_experiments.benchmark.worlds import WORLDS, Comparisons, Family, World, YesNo

__all__ = [
    "CHECKPOINTS",
    "METHODS",
    "NOT_RUN",
    "WORLDS",
    "Answer",
    "Challenge",
    "Comparisons",
    "Entry",
    "Family",
    "Method",
    "Question",
    "World",
    "YesNo",
    "play",
    "row",
]
