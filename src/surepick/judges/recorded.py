"""Recorded votes as a judge, and policies that ask only what can be answered.

A policy may want to ask what nobody was asked, or more often than anybody was; `only_recorded` redirects its questions
to votes that exist. Only Winner and Anytime can be redirected: their proofs need no more than that questions,
predictions and bets of a stage are fixed before its answers are seen (docs/assumptions.md; docs/anytime.md, section 4),
and predictions and bets are made for the questions asked instead. So a verdict on recorded votes is as good as on live
ones, on a condition about how the recorded questions were chosen, which depends on the order (`CONDITIONS`).
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal, cast

import numpy as np

from surepick._arrays import Integers
from surepick.answer import Answer, code_of, turned
from surepick.checks import Answers
from surepick.errors import InvalidInput
from surepick.identify import Anytime, Exclusion, Plan, Policy, Problem, Verdict, Wait, Winner
from surepick.identify.problem import NOTHING
from surepick.identify.stage_list import asked_counts
from surepick.io.items import ItemTable, read_items
from surepick.io.votes import VoteTable, numbers_of, read_votes
from surepick.session import Question, Reply, Session

Order = Literal["policy", "file"]

Asked = tuple[int, int]
"""Two items by number in ascending order, or an item and NOTHING."""

CONDITIONS: Mapping[Order, str] = {
    "policy": "The recorded questions, and how many votes there are on each, were fixed before the votes: none was "
    "chosen or left out because of an answer. (Where questions depended on earlier votes, use --order file.)",
    "file": "The votes are in the order in which they were asked: each recorded question may depend on votes before it "
    "in the file, and on nothing later.",
}
"""When a verdict on recorded votes holds, for each order in which they are used."""

ONE_BY_ONE = 2_000
"""Anytime takes up to this many votes in the file's order by default: it plans ten milliseconds or more for each."""

Redirect = Callable[[Any, Plan], Plan | Wait]
"""From the state and the stage as planned to the stage that is asked instead."""


@dataclass(frozen=True, eq=False)
class RecordedJudge:
    """Answers every question with the next unused vote on it, whichever way round it was shown.

    Without a vote left the answer is None, which a session takes as a skip; a vote "tie" stays a tie. It is a function
    of a question, and a judge who also says whose vote it was.
    """

    problem: Problem
    """Its questions are those that were voted on."""
    recorded: VoteTable
    left: dict[Asked, deque[tuple[Answer, str | None]]]
    """Votes not used yet, for the item of the smaller number, and whose they are."""
    number: Mapping[str, int]
    """The number of each item by any of its names."""

    @classmethod
    def of(
        cls,
        items: ItemTable | str | PathLike[str],
        votes: str | PathLike[str],
        *,
        by_features: bool | None = None,
        drop_bad_rows: bool = False,
    ) -> "RecordedJudge":
        """The judge who replays a file of votes (`surepick.io.votes`) on these items.

        Items without a vote are left out, which a sentence in `unused` says. With `by_features` they stay where votes
        on other items tell of them by the features, if these are believed (the policy Anytime, not Winner). By default
        they are for answers about single items, and not for comparisons. Rows that cannot be used are refused, or left
        out with `drop_bad_rows`.
        """
        known = items if isinstance(items, ItemTable) else read_items(items, drop_bad_rows=drop_bad_rows)
        recorded = _comparisons(read_votes(votes, known.names, drop_bad_rows=drop_bad_rows))
        problem = _problem(known, recorded, known.names)
        if by_features is None:
            by_features = any(len(vote.shown) == 1 for vote in recorded.votes)
        voted_on = {name for vote in recorded.votes for name in vote.shown}
        if len(voted_on) < len(known.names) and not (by_features and problem.obstacle is None):
            problem = _problem(known, recorded, [name for name in known.names if name in voted_on])
            recorded = recorded.without([name for name in known.names if name not in voted_on])
        # Items of equal features are one item of the problem: votes between them carry no information.
        recorded = recorded.distinguishable(problem)
        number, left = numbers_of(problem), dict[Asked, deque[tuple[Answer, str | None]]]()
        for vote in recorded.votes:
            for_smaller = _for_smaller(number, vote.shown, vote.answer)
            left.setdefault(_asked(number, vote.shown), deque()).append((for_smaller, vote.judge))
        return cls(problem, recorded, left, number)

    @property
    def at_once(self) -> int:
        """Votes are taken one at a time."""
        return 1

    @property
    def names_judges(self) -> bool:
        """Whether the votes say whose they are."""
        return any(vote.judge is not None for vote in self.recorded.votes)

    def replies(self, next_question: Callable[[], Question | None]) -> Iterator[tuple[Question, Reply]]:
        """Answer until there is no question."""
        while (question := next_question()) is not None:
            yield question, self._reply(question)

    def __call__(self, question: Question) -> Answer:
        """The next vote on this question."""
        return self._reply(question).answer

    def _reply(self, question: Question) -> Reply:
        if question.first is None:
            raise InvalidInput("Recorded votes are about items; this question is not about items.")
        shown = (question.first,) if question.second is None else (question.first, question.second)
        answer, judge = self._next(_asked(self.number, shown))
        return Reply(_for_smaller(self.number, shown, answer), judge)

    def resume(self, session: Session) -> None:
        """Count as used what a session has had before: a vote for every question that it does not wait for."""
        outstanding = {question.id for question in session.outstanding}
        for event in session.log:
            if event["event"] == "question" and event["id"] not in outstanding:
                first, second = self.problem.about[event["measurement"]]
                self._next(_in_order(int(first), int(second)))

    def _next(self, asked: Asked) -> tuple[Answer, str | None]:
        left = self.left.get(asked)
        return left.popleft() if left else (None, None)

    def as_shown(self) -> Answers:
        """All votes as people saw them, for checks of assumptions."""
        votes = self.recorded.votes
        rows, items = _rows(self.problem), np.full((len(votes), 2), NOTHING, dtype=np.int64)
        vectors = np.empty((len(votes), self.problem.measurements.shape[1]))
        for place, vote in enumerate(votes):
            items[place, : len(vote.shown)] = [self.number[name] for name in vote.shown]
            swapped = NOTHING < items[place, 1] < items[place, 0]
            row = self.problem.measurements[rows[_asked(self.number, vote.shown)]]
            vectors[place] = -row if swapped else row
        codes = np.array([code_of(vote.answer) for vote in votes], dtype=np.int64)
        judges = tuple(vote.judge for vote in votes)
        return Answers(vectors, codes, items, self.problem.names, judges, shuffled=False)

    @property
    def unused(self) -> tuple[str, ...]:
        """Sentences about rows that could not be used, with their line."""
        return self.recorded.unused

    @property
    def remaining(self) -> int:
        """Votes not used yet."""
        return sum(len(left) for left in self.left.values())


def warm_answers(problem: Problem, votes: VoteTable) -> tuple[tuple[int, int, int], ...]:
    """Decisive votes on what can be asked in the problem, as (measurement, pulls, wins)."""
    rows, number = _rows(problem), numbers_of(problem)
    pulls, wins = Counter[int](), Counter[int]()
    for vote in votes.votes:
        asked = _asked(number, vote.shown)
        if asked in rows and isinstance(vote.answer, int):
            pulls[rows[asked]] += 1
            wins[rows[asked]] += cast("int", _for_smaller(number, vote.shown, vote.answer))
    return tuple((row, pulls[row], wins[row]) for row in sorted(pulls))


def only_recorded(policy: Policy[Any], judge: RecordedJudge, order: Order | None = None) -> Policy[Any]:
    """The policy, but asking only what was voted on: the nearest to what it wants, or the votes in their order.

    By default (`usual_order`) in the file's order, where that can be done in reasonable time. Policies other than
    Winner and Anytime ask what they planned: they have proofs for these questions, and a vote that does not exist is a
    skip to them. The condition of the order is among the assumptions of every verdict.
    """
    order = usual_order(policy, judge) if order is None else order
    if not isinstance(policy, Anytime | Exclusion | Winner):
        if order == "file":
            raise InvalidInput(
                "--order file needs the policy anytime or --assume winner, which are proved for any questions; not "
                f"{policy.name}."
            )
        return on_recorded(policy, None, order)
    rows = _rows(judge.problem)
    in_file = np.array([rows[_asked(judge.number, vote.shown)] for vote in judge.recorded.votes], dtype=np.int64)
    stock = np.bincount(in_file, minlength=len(rows))

    def redirect(state: Any, plan: Plan) -> Plan | Wait:
        asked = state.asked
        if asked == len(in_file):
            return Wait("The recorded votes are used up.")
        if order == "policy":
            return policy.stage_of(state, nearest(judge.problem, plan, stock - asked_counts(state.stages, len(stock))))
        # One vote at a time: the next question may depend on this vote, and a stage of both would fix its bets by the
        # second question, which shows what the first answer was.
        return policy.stage_of(state, np.bincount(in_file[asked : asked + 1], minlength=len(stock)))

    return on_recorded(policy, redirect, order)


def usual_order(policy: Policy[Any], judge: RecordedJudge) -> Order:
    """The order in which votes are used unless another is wanted.

    In the file's order every bet follows all votes before it, which leaves fewer rivals where votes run out, and it
    does not matter whether questions depended on earlier votes. It takes a stage for every vote: about a millisecond
    with Winner, ten or more with Anytime, for which it is therefore usual up to `ONE_BY_ONE` votes only.
    """
    few = len(judge.recorded.votes) <= ONE_BY_ONE
    return "file" if isinstance(policy, Winner) or (isinstance(policy, Anytime | Exclusion) and few) else "policy"


def on_recorded(policy: Policy[Any], redirect: Redirect | None, order: Order) -> Policy[Any]:
    """The policy on recorded answers: with other questions in every stage, unless `redirect` is None."""
    return cast("Policy[Any]", _OnRecorded(policy, redirect, CONDITIONS[order]))


class _OnRecorded:
    """A policy whose stages are redirected and whose verdicts name the condition on how answers were collected.

    All else is asked of the policy itself. Only Anytime and Winner are redirected: they can make a stage of any
    questions, and are proved for any.
    """

    def __init__(self, policy: Policy[Any], redirect: Redirect | None, condition: str) -> None:
        self._policy = policy
        self._redirect = redirect
        self._condition = condition

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    @property
    def unrestricted(self) -> Policy[Any]:
        """The policy as it would ask if every answer could be had."""
        return self._policy

    def plan(self, state: Any, rng: np.random.Generator, without: Collection[int] | None = None) -> Any:
        # Who is asked next is as recorded, so it is of no use to know what somebody has had.
        outcome = self._policy.plan(state, rng)
        if isinstance(outcome, Verdict):
            return self._conditional(outcome)
        if isinstance(outcome, Plan) and self._redirect is not None:
            return self._redirect(state, outcome)
        return outcome

    def verdict(self, state: Any) -> Verdict:
        return self._conditional(self._policy.verdict(state))

    def _conditional(self, verdict: Verdict) -> Verdict:
        return replace(verdict, assumptions=(*verdict.assumptions, self._condition))


def nearest(problem: Problem, plan: Plan, left: Integers) -> Integers:
    """For every question of the stage itself or one that may still be asked and points most nearly the same way.

    `left` says how often each measurement may be asked; where that is less than the stage wants, the stage shrinks.
    """
    counts = np.zeros_like(left)
    counts[plan.measurements] = np.minimum(plan.pulls, left[plan.measurements])
    short = plan.pulls - counts[plan.measurements]
    if not short.any():
        return counts
    rows = problem.rows
    lengths = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    for wanted, lacking in zip(plan.measurements[short > 0], short[short > 0], strict=True):
        alike = np.abs(rows @ rows[wanted]) / lengths  # a vector and its opposite are the same question
        missing = int(lacking)
        for row in np.argsort(-alike, kind="stable"):
            taken = min(missing, int(left[row] - counts[row]))
            counts[row] += taken
            missing -= taken
            if not missing:
                break
    return counts


def _comparisons(recorded: VoteTable) -> VoteTable:
    """Without rows that show more than two items, which are reported."""
    kept = tuple(vote for vote in recorded.votes if len(vote.shown) <= 2)
    if not kept:
        raise InvalidInput(f"{recorded.source} has picks or rankings of several items; use --pick or --rank.")
    unused = (
        f"{recorded.source}, line {vote.line}: shows {len(vote.shown)} items; use --pick or --rank."
        for vote in recorded.votes
        if len(vote.shown) > 2
    )
    return replace(recorded, votes=kept, unused=(*recorded.unused, *unused))


def _problem(items: ItemTable, recorded: VoteTable, names: Sequence[str]) -> Problem:
    """The problem of the items of these names in which just the questions that were voted on can be asked."""
    place = {name: number for number, name in enumerate(names)}
    kept = set(names)
    features = items.features[[name in kept for name in items.names]]
    asked = {_asked(place, vote.shown) for vote in recorded.votes}
    pairs = sorted(pair for pair in asked if pair[1] != NOTHING)
    if len(pairs) == len(asked):
        return Problem.from_pairs(features, names=names, pairs=np.array(pairs))
    if not pairs:
        return Problem.from_items(features, names=names)
    return Problem.from_pairs_and_items(features, names=names, pairs=np.array(pairs))


def _rows(problem: Problem) -> dict[Asked, int]:
    """The measurement that asks about these items."""
    return {_in_order(int(first), int(second)): row for row, (first, second) in enumerate(problem.about)}


def _asked(number: Mapping[str, int], shown: tuple[str, ...]) -> Asked:
    return _in_order(*[*(number[name] for name in shown), NOTHING][:2])


def _in_order(first: int, second: int) -> Asked:
    return (first, second) if second == NOTHING else (min(first, second), max(first, second))


def _for_smaller(number: Mapping[str, int], shown: tuple[str, ...], answer: Answer) -> Answer:
    """The answer turned from the first item shown to the item of the smaller number, or back."""
    return turned(answer) if len(shown) == 2 and number[shown[0]] > number[shown[1]] else answer
