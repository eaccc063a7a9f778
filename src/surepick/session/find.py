"""A search from beginning to end: one question at a time, in batches, or whole stages at once."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

from surepick.identify import Anytime, PlanJudge, Policy, Problem, Verdict, run
from surepick.session.question import Question
from surepick.session.session import Session

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
        if at_once is None:
            answers: Sequence[Answer] = [cast("Judge", judge)(questions[0])]
        else:
            answers = cast("BatchJudge", judge)(questions)
        for question, answer in zip(questions, answers, strict=True):
            file_answer(session, question.id, answer)
    return session.verdict()


def file_answer(
    session: Session, question: int, answer: Answer, *, judge: str | None = None, cost: float | None = None
) -> None:
    """Tell the session 1 or 0, a tie, or that there is no answer."""
    if answer is None:
        session.skip(question, judge=judge, cost=cost)
    elif isinstance(answer, str) and answer == "tie":
        session.tie(question, judge=judge, cost=cost)
    else:
        session.tell(question, answer, judge=judge, cost=cost)
