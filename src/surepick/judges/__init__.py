"""Who answers: simulated judges, recorded votes, programs, language models, and the person at the terminal."""

from surepick.judges.language_model import LanguageModel
from surepick.judges.model_calls import ModelFailed
from surepick.judges.recorded import RecordedJudge, only_recorded, warm_answers
from surepick.judges.simulated import ExpectedJudge, ReproducibleJudge, SimulatedJudge, World

__all__ = [
    "ExpectedJudge",
    "LanguageModel",
    "ModelFailed",
    "RecordedJudge",
    "ReproducibleJudge",
    "SimulatedJudge",
    "World",
    "only_recorded",
    "warm_answers",
]
