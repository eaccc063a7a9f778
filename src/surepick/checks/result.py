"""What a check says: an alarm or none, the evidence behind it, and a sentence for people."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from surepick import validate
from surepick.guarantee import Guarantee

LARGEST_LOG = 700.0
"""Evidence beyond e^700 is reported as e^700, which still fits into a float and into JSON."""


@dataclass(frozen=True)
class Check:
    """The result of checking one assumption.

    If the assumption is true, the e-value ever reaches 1/level with probability at most `level`, however often it is
    computed and whenever one stops (where the guarantee is `heuristic`: approximately, as measured in docs/checks.md).
    """

    name: str
    level: float
    """Chance of a false alarm."""
    alarm: bool
    e_value: float
    """How many times better than the assumption its rival explains the answers; 1 says nothing."""
    sentence: str
    """What was found and what it means, in plain words."""
    assumption: str
    """What is doubted if it alarms."""
    guarantee: Guarantee
    """What stands behind the level."""
    about: tuple[str, ...] = ()
    """The judges or items an alarm is about."""

    @property
    def p_value(self) -> float:
        """The anytime-valid p-value 1/e."""
        return 1.0 / max(self.e_value, 1.0)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self) | {
            "guarantee": str(self.guarantee),
            "about": list(self.about),
            "p_value": self.p_value,
        }


def exceeds(log_e: float, level: float) -> bool:
    """Whether log e, in nats, is an alarm at this level: e ≥ 1/level."""
    return log_e >= math.log(1 / validate.probability("level", level))


def e_value(log_e: float) -> float:
    """e from log e, capped so that it is finite."""
    return math.exp(min(log_e, LARGEST_LOG))
