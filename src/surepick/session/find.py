"""The one loop that asks and files answers, and a whole search in one call."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, Protocol, cast, runtime_checkable

from surepick.answer import Answer
from surepick.errors import InvalidInput
from surepick.identify import PlanJudge, Policy, Population, Problem, Verdict, run
from surepick.identify.ladder import Assumption, default_assumption, policy_for
from surepick.identify.problem import Items
from surepick.session.question import Question
from surepick.session.repeats import Repeats
from surepick.session.session import Session

Judge = Callable[[Question], Answer]
BatchJudge = Callable[[list[Question]], Sequence[Answer]]

GIVE_UP = 3
"""Failed questions in a row, for each question that the judge takes at once, after which the loop ends."""

COSTLY = ("answer", "tie", "skip")
"""Events of the log that may have cost something."""


@dataclass(frozen=True)
class Reply:
    """An answer, who gave it, and what it cost; or no answer and why."""

    answer: Answer
    judge: str | None = None
    cost: float | None = None
    """None where nobody is paid."""
    trouble: str = ""
    raw: str | None = None
    """The judge's own words, for the log."""
    probability: float | None = None
    """Where the judge gave a probability of 1: it counts itself where scores do, otherwise `answer`, drawn from it."""


@runtime_checkable
class ReplyingJudge(Protocol):
    """A judge who takes questions at their own pace: programs side by side, or a person who may change an answer."""

    @property
    def at_once(self) -> int:
        """Most questions that are out at the same time."""

    def replies(self, next_question: Callable[[], Question | None]) -> "Iterator[tuple[Question, Reply]]":
        """Take questions and yield replies as they come, until there is no question and none is out.

        `next_question` gives None where nothing can be asked now; it may give another question after a reply has been
        yielded, since that is then filed.
        """


@dataclass(frozen=True, eq=False)
class FunctionJudge:
    """A function as a judge: of one question, or with `batch` of a list of up to that many."""

    function: Judge | BatchJudge
    batch: int | None = None

    @property
    def at_once(self) -> int:
        """Most questions in a list."""
        return self.batch or 1

    def replies(self, next_question: Callable[[], Question | None]) -> Iterator[tuple[Question, Reply]]:
        """Ask the function."""
        while questions := list(islice(iter(next_question, None), self.at_once)):
            if self.batch is None:
                answers: Sequence[Answer] = [cast("Judge", self.function)(questions[0])]
            else:
                answers = cast("BatchJudge", self.function)(questions)
            for question, answer in zip(questions, answers, strict=True):
                yield question, Reply(answer)


@dataclass(eq=False)
class AskLoop:
    """Asks a judge what the session wants to know until there is a verdict; every answer is in the log first.

    It ends before that when the judge stops, when nothing more can be asked, or at the limits given here.
    """

    session: Session
    judge: ReplyingJudge
    price: float = 0.0
    """Of an answer, unless the judge names its cost."""
    max_cost: float | None = None
    budget: int | None = None
    """Most answers in the session, those before this call included."""
    spent: float = field(init=False)
    """On all answers of the log, those before this call included."""
    troubles: list[str] = field(default_factory=list)
    """Sentences about questions that the judge failed to answer."""
    ended: str | None = None
    """"cost cap reached" or "judges failed" where that ended it."""
    _dearest: float = 0.0
    _failures: int = 0
    _out: int = 0
    _open: deque[Question] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._open.extend(self.session.outstanding)
        self.spent = sum(event.get("cost", self.price) for event in self.session.log if event["event"] in COSTLY)

    def run(self, progress: Callable[["AskLoop"], None] = lambda loop: None) -> None:
        """Ask until the end; `progress` is called after every answer."""
        # Closing the replies ends the judge's programs and threads, also where filing or `progress` raises.
        with closing(cast("Any", self.judge.replies(self._next_question))) as replies:
            for question, reply in replies:
                self._file(question, reply)
                progress(self)

    def _next_question(self) -> Question | None:
        """An open question of an earlier call, a new one, or None where nothing is to be asked now."""
        if self._failures >= GIVE_UP * self.judge.at_once:
            self.ended = "judges failed"
            return None
        # Every answer that is out may cost as much as the dearest so far. The slack is for rounding: ten answers at 0.1
        # fit a cap of 1.
        expected = (self._out + 1) * max(self.price, self._dearest)
        if self.max_cost is not None and self.spent + expected > self.max_cost + 1e-12:
            self.ended = "cost cap reached"
            return None
        if self.budget is not None and self.session.answered + self._out >= self.budget:
            return None
        question = self._open.popleft() if self._open else next(iter(self.session.ask(1)), None)
        self._out += question is not None
        return question

    def _file(self, question: Question, reply: Reply) -> None:
        self._out -= 1
        self.spent += reply.cost or 0.0
        self._dearest = max(self._dearest, reply.cost or 0.0)
        self._failures = self._failures + 1 if reply.trouble else 0
        if reply.trouble:
            self.troubles.append(f"Question {question.id} was skipped: {reply.trouble}.")
        soft = reply.probability is not None and self.session.takes_scores and question.second is not None
        file_answer(
            self.session,
            question.id,
            reply.probability if soft else reply.answer,
            judge=reply.judge,
            cost=reply.cost,
            raw=reply.raw,
            probability=reply.probability,
        )


def find_best(
    problem: Problem | Items,
    judge: Judge | BatchJudge | PlanJudge | ReplyingJudge,
    *,
    delta: float = 0.05,
    epsilon: float = 0.0,
    budget: int | None = None,
    assume: Assumption | None = None,
    population: Population | None = None,
    repeats: Repeats = "independent",
    policy: Policy[Any] | None = None,
    seed: int = 0,
    at_once: int | None = None,
    show: int | None = None,
    answer: Literal["pick", "rank"] | None = None,
) -> Verdict:
    """Ask the judge until the best item is known with probability 1 − delta.

    `problem` may also be items, as for `Problem.from_pairs`; with `show` and `answer` every question then shows that
    many of them and asks for the best of them or for their order, as `Problem.from_sets`.

    `judge` answers one question with 1 or 0 (or "tie", or None for no answer); a question about a set with the place or
    name of the best item, or with several in their order (see `Question.items`); with `at_once` it gets lists of up to
    that many questions; an object with a method `wins(vectors, pulls)`, like a simulated judge, answers a whole stage
    at once; a `ReplyingJudge`, like a language model, takes several questions at its own pace. Give delta, epsilon and
    budget, or a policy that has its own.

    `assume` says which claim ends the search (docs/assumptions.md): "winner", that one item wins each of its
    comparisons at least half the time, whatever the features (default for comparisons), or "features", that answers are
    logistic in the features (default for yes/no questions), or "population", that the judge's taste is drawn from
    `population` (by default `Population.usual`). The verdict's `claims` say what is proved under each. With "winner" a
    population only predicts: it saves questions where the judge is like it, and the proof does not need that.
    `repeats` says which answers of the judge count: "independent", all; "once", the first to each question; "spaced",
    also later ones with enough questions between them; "tested", all of a judge who has answered one question in two
    ways, and the first ones of others: for programs that may repeat themselves.

    >>> items = {"red": [1.0, 0.0], "green": [0.0, 1.0], "blue": [0.5, 0.6]}
    >>> liking = {"red": 2, "green": 0, "blue": 1}
    >>> judge = lambda question: int(liking[question.first] > liking[question.second])
    >>> find_best(Problem.from_pairs(items), judge, budget=100).best
    'red'
    """
    if not isinstance(problem, Problem):
        sets = show is not None or answer is not None
        problem = (
            Problem.from_sets(problem, show=show or 4, answer=answer or "rank") if sets else Problem.from_pairs(problem)
        )
    elif show is not None or answer is not None:
        raise InvalidInput(
            "A problem has its kind of questions; pass items with show and answer, or the problem alone."
        )
    limits: dict[str, Any] = {"delta": delta, "epsilon": epsilon} | ({} if budget is None else {"budget": budget})
    chosen = policy or policy_for(problem, assume or default_assumption(problem), population=population, **limits)
    if isinstance(judge, PlanJudge) and repeats == "independent" and (problem.show == 2 or hasattr(judge, "orders")):
        return run(problem, chosen, judge, seed=seed)
    if isinstance(judge, PlanJudge):
        raise InvalidInput(
            f"repeats={repeats!r} needs a judge who answers one question at a time; this one answers whole stages."
            if repeats != "independent"
            else "This judge answers comparisons only; for sets it needs a method orders(features, top, times)."
        )
    if at_once is not None and (at_once < 1 or at_once != int(at_once)):
        raise InvalidInput(f"at_once must be a whole number of questions, at least 1, got {at_once!r}.")
    session = Session(problem, chosen, repeats=repeats, seed=seed)
    AskLoop(session, judge if isinstance(judge, ReplyingJudge) else FunctionJudge(judge, at_once)).run()
    return session.verdict()


def file_answer(
    session: Session,
    question: int,
    answer: Answer,
    *,
    judge: str | None = None,
    cost: float | None = None,
    raw: str | None = None,
    probability: float | None = None,
) -> None:
    """Tell the session 1 or 0, a tie, or that there is no answer."""
    if answer is None:
        session.skip(question, judge=judge, cost=cost, raw=raw)
    elif isinstance(answer, str) and answer == "tie":
        session.tie(question, judge=judge, cost=cost, raw=raw)
    else:
        session.tell(question, answer, judge=judge, cost=cost, raw=raw, probability=probability)
