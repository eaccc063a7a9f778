"""Who answers: simulated judges, recorded votes, programs, and the person at the terminal."""

from surepick.judges.recorded import RecordedJudge, only_recorded, warm_answers
from surepick.judges.simulated import ExpectedJudge, ReproducibleJudge, SimulatedJudge, World

__all__ = [
    "ExpectedJudge",
    "RecordedJudge",
    "ReproducibleJudge",
    "SimulatedJudge",
    "World",
    "only_recorded",
    "warm_answers",
]
