"""How many more questions: the numbers of simulated searches, their interval and a sentence for people."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surepick import validate
from surepick.arrays import Booleans
from surepick.guarantee import Guarantee


@dataclass(frozen=True, eq=False)
class Forecast:
    """How many (more) questions a search will take, by simulated searches, one entry each (`surepick.forecast`).

    An interval has its coverage exactly, for any number of searches, if the real one is like the simulated ones: their
    truths are drawn from what is known of the real one, so it is never called proved.
    """

    policy: str
    questions: NDArray[np.int64]
    broken_off: Booleans
    """Searches that were too long to simulate: they take at least their number of questions."""
    decided: int
    """Searches that ended with a decision; others spent their budget or were broken off."""
    wrong: int
    """Searches that decided for another item than the best."""
    price: float | None = None
    """Of one question."""
    guarantee: Guarantee = Guarantee.HEURISTIC

    @property
    def expected(self) -> float:
        """Mean number of questions; too small where searches were broken off."""
        return float(self.questions.mean())

    @property
    def cost(self) -> float | None:
        """Expected cost, where a price is given."""
        return None if self.price is None else self.price * self.expected

    def quantile(self, share: float) -> float:
        """The number that the real search stays below with this probability; infinite where too few say so."""
        known = np.sort(np.where(self.broken_off, np.inf, self.questions))
        # Between order statistics: a new search is equally likely to fall into any gap of those simulated.
        place = round(share * (len(known) + 1) - 1, 9)
        low, high = math.floor(place), math.ceil(place)
        if low < 0:
            return 0.0
        if high >= len(known) or known[high] == np.inf:
            return math.inf
        return float(known[low] + (place - low) * (known[high] - known[low]))

    def interval(self, coverage: float = 0.8) -> tuple[float, float]:
        """Between these numbers the search ends with this probability."""
        tail = (1 - validate.probability("coverage", coverage)) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    @property
    def further(self) -> float:
        """The median: as likely more as less."""
        return self.quantile(0.5)

    @property
    def low(self) -> float:
        """Lower end of the 80% interval."""
        return self.interval()[0]

    @property
    def high(self) -> float:
        """Upper end of the 80% interval."""
        return self.interval()[1]

    @property
    def sentence(self) -> str:
        """For people, in two digits: "about 40 more questions (25 to 70)"."""
        if not self.questions.any():
            return "no more questions"
        low, middle, high = (two_digits(number) for number in (self.low, self.further, self.high))
        if self.further == math.inf:
            return f"more than {two_digits(float(self.questions[self.broken_off].min()))} more questions"
        return f"about {middle} more questions ({low} {f'to {high}' if self.high < math.inf else 'or many more'})"

    def __str__(self) -> str:
        return self.sentence

    def after(self, answers: int) -> "Forecast":
        """The same after so many more answers, for a search that is not over yet."""
        return self if answers == 0 else replace(self, questions=np.maximum(self.questions - answers, 1))

    def to_json(self) -> dict[str, Any]:
        """As plain values; an unbounded number is null."""
        numbers = {"further": self.further, "low": self.low, "high": self.high}
        return {name: None if value == math.inf else value for name, value in numbers.items()} | {
            "simulated": len(self.questions),
            "decided": self.decided,
            "cost": self.cost,
            "guarantee": str(self.guarantee),
            "sentence": self.sentence,
        }


def two_digits(number: float) -> str:
    """A number of questions as people say it."""
    if number == math.inf:
        return "unknown"
    return f"{round(number, min(0, 1 - math.floor(math.log10(max(number, 1))))):,.0f}"
