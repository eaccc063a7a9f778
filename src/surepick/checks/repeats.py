"""Are repeated answers remembered ones?"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class MemoryEvidence:
    """A bet that a judge's repeated answers agree more often than predicted: an e-process if the predictions are right.

    It bets on agreement with probability (1 + c)/2 where c is predicted: halfway to certainty.
    """

    log_e: float = 0.0

    def after(self, chance_of_agreeing: float, *, agreed: bool) -> "MemoryEvidence":
        """After one more repeated answer."""
        return MemoryEvidence(
            self.log_e + math.log((1 + chance_of_agreeing) / (2 * chance_of_agreeing) if agreed else 0.5)
        )

    def found(self, level: float) -> bool:
        """Whether memory is found at this level."""
        return self.log_e >= math.log(1 / level)
