"""What certificates claim, and what was found when one was checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

FORMAT = 3

Claim = Literal["winner", "features"]

ASSUMED: Mapping[str, str] = {
    "features": (
        "answers are independent given the questions of their stage, and logistic in the features with one theta "
        "throughout (docs/anytime.md)"
    ),
    "winner": (
        "one item gets, in every question that shows it and whatever happened before, an expected score of at least "
        "its fair share (docs/assumptions.md)"
    ),
}
"""What each claim rests on; no certificate can show it."""

ASSUMED_OF_SETS = (
    "one item is, in every set of items to pick from that has it and whatever happened before, at least as likely to "
    "be picked as any other; a ranking is picks one after the other (docs/assumptions.md)"
)
"""What the claim "winner" rests on where questions show more than two items."""

ASSUMED_OF_PLACES = (
    "one system is, in the rankings that show it and on average over the inputs, whatever happened before, placed "
    "above each other system shown at least as often as below it (docs/assumptions.md)"
)
"""What it rests on where questions ask for the order of several systems on an input."""

ARITHMETIC_ONLY = (
    "A certificate proves the arithmetic: that these counts and predictions amount to this evidence. It does not prove "
    "that the predictions were made before the answers; for that, trust those who ran the search."
)
"""To be said wherever a certificate is offered or accepted."""

ORDER_ONLY = (
    "Links show that plans and predictions preceded the answers only to somebody who kept an earlier link, in the "
    "service's database or published: whoever writes a whole file can compute all of its links."
)
"""To be said wherever links are checked."""


@dataclass(frozen=True)
class Checked:
    """What a certificate was found to prove."""

    best: str
    delta: float
    epsilon: float
    """0 where every other item was excluded outright."""
    answers: int
    nats: Mapping[str, float]
    """Proven evidence against each rival, by its own rule."""
    claim: Claim = "features"
    link: str | None = None
    """Link of the last stage; None where the certificate is not chained."""
    sets: bool = False
    """Whether questions show more than two items."""
    places: bool = False
    """Whether rankings count by who is placed above whom."""

    @property
    def assumed(self) -> str:
        """What the claim rests on, in words."""
        return ASSUMED_OF_PLACES if self.places else ASSUMED_OF_SETS if self.sets else ASSUMED[self.claim]

    @property
    def chained(self) -> str:
        """Whether its stages are chained, in words."""
        return "Not chained." if self.link is None else f"Chained; the last link is {self.link}."

    def __str__(self) -> str:
        claim = "the best" if self.epsilon == 0 else f"within {self.epsilon:g} of the best"
        return (
            f"{self.best} is {claim} with probability {1 - self.delta:g}, proved from {self.answers:,} answers. "
            f"Claim {self.claim!r}, which assumes: {self.assumed}."
        )
