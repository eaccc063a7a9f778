"""A search from beginning to end: one question at a time, in batches, or whole stages at once."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surepick.identify import Anytime, Policy, Problem, Verdict, Wait
from surepick.session.session import Question, Session

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@runtime_checkable
class PlanJudge(Protocol):
    """A judge who answers many questions at once, such as a simulated world: one number a vector."""

    def wins(self, vectors: Floats, pulls: Integers) -> ArrayLike:
        """How many of the answers to each vector are 1."""


Answer = int | Literal["tie"] | None
"""1 or 0, "tie", or None for no answer."""

Judge = Callable[[Question], Answer]
BatchJudge = Callable[[list[Question]], Sequence[Answer]]


def find_best(
    problem: Problem,
    judge: Judge | BatchJudge | PlanJudge,
    *,
    delta: float = 0.05,
    epsilon: float = 0.0,
    budget: int | None = None,
    policy: Policy[Any] | None = None,
    seed: int = 0,
    at_once: int | None = None,
) -> Verdict:
    """Ask the judge until the best item is known with probability 1 − delta.

    `judge` answers one question with 1 or 0 (or "tie", or None for no answer); with `at_once` it gets lists of up to
    so many questions; an object with a method `wins(vectors, pulls)`, like a simulated world, answers a whole stage
    at once. Give delta, epsilon and budget, or a policy that has its own; without a policy it is Anytime.

    >>> items = {"red": [1.0, 0.0], "green": [0.0, 1.0], "blue": [0.5, 0.6]}
    >>> liking = {"red": 2, "green": 0, "blue": 1}
    >>> judge = lambda question: int(liking[question.first] > liking[question.second])
    >>> find_best(Problem.from_pairs(items), judge, budget=100).best
    'red'
    """
    chosen = policy or (
        Anytime(delta=delta, epsilon=epsilon)
        if budget is None
        else Anytime(delta=delta, epsilon=epsilon, budget=budget)
    )
    if isinstance(judge, PlanJudge):
        return run(problem, chosen, judge, seed=seed)
    session = Session(problem, chosen, seed=seed)
    while questions := session.ask(at_once or 1):
        answers: Any = [judge(questions[0])] if at_once is None else judge(questions)  # type: ignore[arg-type]
        for question, answer in zip(questions, answers, strict=True):
            file_answer(session, question.id, answer)
    return session.verdict()


def file_answer(session: Session, question: int, answer: Answer, *, judge: str | None = None) -> None:
    """Tell the session 1 or 0, a tie, or that there is no answer."""
    if answer is None:
        session.skip(question, judge=judge)
    elif isinstance(answer, str) and answer == "tie":
        session.tie(question, judge=judge)
    else:
        session.tell(question, answer, judge=judge)


def run(problem: Problem, policy: Policy[Any], judge: PlanJudge, *, seed: int = 0, state: Any | None = None) -> Verdict:
    """Whole stages at once, from the start or from a state: the cost depends on the stages, not on the questions."""
    rng = np.random.default_rng([seed, 1])
    state = policy.start(problem) if state is None else state
    while True:
        state, outcome = policy.plan(state, rng)
        if isinstance(outcome, Verdict):
            return outcome
        if isinstance(outcome, Wait):
            raise AssertionError(f"{policy.name} waits though every stage is answered: {outcome.reason}")
        wins = judge.wins(problem.measurements[outcome.measurements], outcome.pulls)
        state = policy.absorb(state, outcome.stage, outcome.tally(problem, wins))
