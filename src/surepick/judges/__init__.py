"""Who answers: simulated judges, recorded votes, programs, and the person at the terminal."""

from surepick.judges.recorded import RecordedJudge, read_votes, turned_to_votes, warm_answers
from surepick.judges.simulated import ExpectedJudge, SimulatedJudge, World

__all__ = [
    "ExpectedJudge",
    "RecordedJudge",
    "SimulatedJudge",
    "World",
    "read_votes",
    "turned_to_votes",
    "warm_answers",
]
