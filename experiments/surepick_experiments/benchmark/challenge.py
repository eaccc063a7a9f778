"""What a method gets, and what it has to do: `ask`, `tell`, `best` and `done`.

A method is made from a `Challenge` and a random generator. From then on it sees the answers to its questions and
nothing else: worlds (`surepick_experiments.benchmark.worlds`) are known to `play` only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from surepick._arrays import Floats

CHECKPOINTS = (25, 50, 100, 200, 400, 800, 1600)
"""Questions after which the best guess is read."""

PORTION = 0.02
"""Beyond the last checkpoint a question may be asked several times in a row, by this share of the questions before."""


@dataclass(frozen=True)
class Question:
    """Which of two items is better; or, without a second, whether the answer to the first is yes."""

    first: int
    second: int | None = None
    times: int = 1
    """How often in a row, each time by the next judge."""


@dataclass(frozen=True)
class Answer:
    """1 for the first item or yes, 0 for the second or no, ½ for a tie; the sum of these if asked several times."""

    score: float
    judge: int = 0
    """Who answered, where judges can be told apart; 0 elsewhere, and where several answered."""


@dataclass(frozen=True, eq=False)
class Challenge:
    """All that a method knows before its first question."""

    items: int
    features: Floats | None = None
    """Items × coordinates; None where items have none."""
    pairs: bool = True
    """Whether questions compare two items; otherwise they are about one."""
    delta: float = 0.05
    """Probability of a wrong claim that is accepted."""
    budget: int = CHECKPOINTS[-1]
    """Questions at most. Methods that stop by themselves may not need them; fixed-budget methods plan with them."""
    known: Mapping[str, float] = field(default_factory=dict)
    """What `Entry.needs` asks for: "kappa", the least variance of an answer, or "norm", the length of θ*."""

    @property
    def points(self) -> Floats:
        """The features, or one coordinate for each item."""
        return np.eye(self.items) if self.features is None else self.features


class Method(Protocol):
    """Chooses questions, and says at any time which item it thinks is best."""

    def ask(self) -> Question:
        """The next question; never called when done."""

    def tell(self, question: Question, answer: Answer) -> None:
        """The answer to it, before the next question."""

    def best(self) -> int | None:
        """The best guess now; None once the method says that there is no best item."""

    def done(self) -> bool:
        """Whether the method stops and claims that its best guess is right with probability 1 − delta."""


Make = Callable[[Challenge, np.random.Generator], Method]


@dataclass(frozen=True)
class Entry:
    """A method of the benchmark."""

    make: Make
    about: str
    """What it does and where it is published, for the page."""
    claim: str | None = None
    """What its stop rests on: a guarantee of surepick's labels with its assumption; None for methods without a stop."""
    ours: bool = False
    assumes: str | None = None
    """The assumption of a claim of ours, "winner" or "features"."""
    needs: tuple[str, ...] = ()
    """What it has to be told of the truth: "kappa" or "norm"."""
    fixed_budget: bool = False
    """Whether it is run again for each checkpoint, with that budget."""
    most: int = CHECKPOINTS[-1]
    """The last checkpoint of a method that takes seconds per question."""
    package: str | None = None
    """What has to be installed for it."""
    unfit: Callable[[Challenge], str] = lambda challenge: ""
    """Why it cannot take this challenge; empty if it can."""


def portion(asked: int) -> int:
    """How often to ask a question in a row after this number of questions."""
    return 1 if asked < CHECKPOINTS[-1] else int(PORTION * asked)


def only_pairs(challenge: Challenge) -> str:
    """Refuses questions about single items."""
    return "" if challenge.pairs else "compares items in pairs"
