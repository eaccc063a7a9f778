"""Simulated truths and recorded answers: what studies, benches and tests ask their questions to."""

from surepick.worlds.people import person
from surepick.worlds.recorded import RecordedJudge, read_votes, turned_to_votes, warm_answers
from surepick.worlds.synthetic import (
    CATALOGUE,
    catalogue,
    example_1,
    example_2,
    gaussian,
    one_over_kappa,
    pairs_of_pairs,
    soare,
)
from surepick.worlds.world import ExpectedJudge, SimulatedJudge, World
from surepick.worlds.zappos import load_zappos

__all__ = [
    "CATALOGUE",
    "ExpectedJudge",
    "RecordedJudge",
    "SimulatedJudge",
    "World",
    "catalogue",
    "example_1",
    "example_2",
    "gaussian",
    "load_zappos",
    "one_over_kappa",
    "pairs_of_pairs",
    "person",
    "read_votes",
    "soare",
    "turned_to_votes",
    "warm_answers",
]
