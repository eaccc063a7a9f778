"""Two systems, one claim: is the new one at least as good as the old one? Asks until that is known.

Let m be the expected score of the new system in a question (a win 1, a tie ½, a loss 0), on average over inputs and the
two orders, and η = μ(ε) − ½. Two processes of `evidence.betting` bet on the same answers:

    at least as good    against m ≤ ½ − η: the old system has the fair share ½ + η
    worse               against m ≥ ½ − η: the new system has the fair share ½ − η

Each is a supermartingale from 1 if the hypothesis that it bets against is true. By Ville's inequality it then ever
reaches 1/δ with probability at most δ: proved, at any stopping time (docs/systems.md, "Two systems"). Ties count ½
here. In the first process that is evidence: a system that always ties with the old one is as good.
"""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from surepick.answer import Answer
from surepick.errors import InvalidInput
from surepick.evidence.betting import WinnerEvidence
from surepick.identify import Problem
from surepick.identify.policy import checked_limits
from surepick.identify.verdict import one_in
from surepick.session.find import GIVE_UP, BatchJudge, FunctionJudge, Judge, ReplyingJudge
from surepick.session.question import Question

Result = Literal["at least as good", "worse", "open"]

OLD, NEW = 0, 1

MOST_ETA = 0.49
"""As in the policy Winner: a fair share of 0 or 1 leaves nothing to bet on."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """What the answers say of two systems."""

    new: str
    old: str
    result: Result
    """"open" where the budget or the judge ended it first."""
    delta: float
    epsilon: float
    wins: int
    losses: int
    ties: int
    skipped: int
    """Questions without an answer; they are assumed to be missing whatever the answer would have been."""
    inputs: int
    """Inputs that were drawn from; 0 where there are none."""
    answers: tuple[tuple[Question, Answer], ...] = field(repr=False)
    """Every question with its answer, in the order asked."""

    @property
    def questions(self) -> int:
        """Answers, ties included."""
        return self.wins + self.losses + self.ties

    def __str__(self) -> str:
        within = f" within epsilon = {self.epsilon:g} (wins at least {100 * self.share:.3g}%)" if self.epsilon else ""
        counts = f"{self.wins:,} wins, {self.losses:,} losses, {self.ties:,} ties"
        over = f" on average over these {self.inputs:,} inputs, drawn at random" if self.inputs else ""
        risk = f"wrong in at most {one_in(self.delta)} such comparisons"
        if self.result == "at least as good":
            return f"{self.new} is at least as good as {self.old}{within}{over}: proved, {risk} ({counts})."
        if self.result == "worse":
            return f"{self.new} is worse than {self.old}{over}, beyond epsilon = {self.epsilon:g}: {risk} ({counts})."
        return f"{self.new} is not proved to be at least as good as {self.old}{within}{over} ({counts})."

    @property
    def share(self) -> float:
        """The mean score that the new system must reach: ½ − η."""
        return 0.5 - _eta(self.epsilon)


def compare_two(
    problem: Problem,
    judge: Judge | BatchJudge | ReplyingJudge,
    *,
    new: str,
    old: str,
    epsilon: float = 0.0,
    delta: float = 0.05,
    budget: int = 1000,
    at_once: int | None = None,
    seed: int = 0,
) -> Comparison:
    """Ask which of two systems is better until the new one is proved at least as good within epsilon, or worse.

    The input and the order of every question are drawn at random (`Problem.from_systems`); other systems of the problem
    are ignored. `epsilon` is in log-odds: 0.2 asks for a win rate of at least 45%, and 0 for one of more than a half.
    Two equal systems are never told apart with epsilon = 0, so a gate should allow a little. The judge is one of those
    of `find_best` that answer single questions.

    >>> inputs = [str(number) for number in range(50)]
    >>> problem = Problem.from_systems(["v1", "v2"], inputs)
    >>> compare_two(problem, lambda question: int(question.first == "v2"), new="v2", old="v1").result
    'at least as good'
    """
    checked_limits(delta, epsilon, budget)
    for name in (new, old):
        problem.index(name)
    if new == old:
        raise InvalidInput(f"new and old are both {new!r}; name two systems.")
    asking = judge if isinstance(judge, ReplyingJudge) else FunctionJudge(judge, at_once)
    patience = GIVE_UP * asking.at_once
    course = _Course(problem, old, new, _eta(epsilon), math.log(1 / delta), budget, seed, patience)
    for question, reply in asking.replies(course.next_question):
        course.file(question, reply.answer)
        course.failures = course.failures + 1 if reply.trouble else 0
    said = course.scores_of(course.counted)
    return Comparison(
        new,
        old,
        course.result,
        delta,
        epsilon,
        wins=said.count(1.0),
        losses=said.count(0.0),
        ties=said.count(0.5),
        skipped=course.counted - len(said),
        inputs=len(problem.inputs),
        answers=tuple((question, course.answers[question.id]) for question in course.asked[: course.counted]),
    )


def _eta(epsilon: float) -> float:
    """μ(ε) − ½."""
    return min(math.tanh(epsilon / 2) / 2, MOST_ETA)


@dataclass(eq=False)
class _Course:
    """The questions in the order asked, and the evidence of the longest run of answered ones."""

    problem: Problem
    old: str
    new: str
    eta: float
    needed: float
    budget: int
    seed: int
    patience: int
    """Questions in a row that the judge may fail to answer."""
    failures: int = 0
    asked: list[Question] = field(default_factory=list)
    answers: dict[int, Answer] = field(default_factory=dict)
    shares: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Expected scores of the new system, fixed when a question is handed out."""
    counted: int = 0
    """Questions whose answers are in the evidence."""
    result: Result = "open"

    def __post_init__(self) -> None:
        # The fair share of the item that is not `against` is ½ + eta: the old one's, and with −eta the new one's.
        self._good = WinnerEvidence.of(2, NEW, self.eta)
        self._worse = WinnerEvidence.of(2, OLD, -self.eta)
        self._total, self._scored = 0.0, 0

    def next_question(self) -> Question | None:
        """The two systems on an input drawn at random, in an order drawn at random; None at the end."""
        if self.result != "open" or len(self.asked) >= self.budget or self.failures >= self.patience:
            return None
        number = len(self.asked) + 1
        rng = np.random.default_rng([self.seed, number])
        swapped = bool(rng.integers(2))
        names, inputs = self.problem.names, self.problem.inputs
        vector = self.problem.items[names.index(self.old)] - self.problem.items[names.index(self.new)]
        first, second = (self.new, self.old) if swapped else (self.old, self.new)
        drawn = inputs[int(rng.choice(len(inputs), p=self.problem.input_weights))] if inputs else None
        question = Question(number, 0, 0, -vector if swapped else vector, first, second, swapped, drawn)
        self.asked.append(question)
        # Predicted from the answers counted so far, so that later ones cannot change the bet.
        total, scored = self._total, self._scored
        self.shares[number] = (total + 1) / (scored + 2), (total + 0.5) / (scored + 1)
        return question

    def file(self, question: Question, answer: Answer) -> None:
        """Count all answers up to the first question that is still open: how late an answer comes does no harm."""
        if answer not in (0, 1, "tie", None):
            raise InvalidInput(
                f"The answer to question {question.id} must be 1, 0, 'tie' or None for no answer, got {answer!r}."
            )
        self.answers[question.id] = answer
        while self.result == "open" and self.counted < len(self.asked):
            number = self.asked[self.counted].id
            if number not in self.answers:
                return
            self.counted += 1
            for score in self.scores_of(self.counted, self.counted - 1):
                self._count(score, self.shares[number])

    def _count(self, score: float, shares: tuple[float, float]) -> None:
        both = [(1 - share, share) for share in shares]
        answer = [((1 - score, score), 1)]
        self._good = self._good.update((OLD, NEW), (both[0], both[1]), answer)
        self._worse = self._worse.update((OLD, NEW), (both[0], both[1]), answer)
        self._total, self._scored = self._total + score, self._scored + 1
        if self._good.reached[OLD] >= self.needed:
            self.result = "at least as good"
        elif self._worse.reached[NEW] >= self.needed:
            self.result = "worse"

    def scores_of(self, end: int, start: int = 0) -> list[float]:
        """Scores of the new system in these questions; those without an answer are left out."""
        said = ((question, self.answers[question.id]) for question in self.asked[start:end])
        return [
            0.5 if answer == "tie" else float(answer == question.swapped)
            for question, answer in said
            if answer is not None
        ]


__all__ = ["Comparison", "compare_two"]
