"""Recorded votes as a judge: each question is answered by the next unused vote on it.

A policy may want to ask what nobody was asked, or more often than anybody was; `turned_to_votes` turns its questions
to votes that there are. Anytime is proved for any choice of questions made before their answers are seen, so its
verdict on recorded votes is as good as on live ones, if the recorded questions did not depend on later answers.
"""

from collections import Counter, deque
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from surepick.checks import SKIP, TIE, Answers
from surepick.errors import InvalidInput
from surepick.identify import Anytime, Plan, Policy, Problem, Wait
from surepick.identify.problem import NOTHING
from surepick.io.items import ItemTable, read_items
from surepick.io.tables import Table, read_table
from surepick.judges.redirect import nearest, redirected
from surepick.session import Answer, Question, Session

Order = Literal["policy", "file"]
Asked = tuple[int, int]
"""Two items by number in ascending order, or an item and NOTHING."""

WINNERS: dict[str, Answer] = {"a": 1, "b": 0, "tie": "tie", "skip": None}
ANSWERS = {"yes": 1, "1": 1, "true": 1, "no": 0, "0": 0, "false": 0, "skip": None}


@dataclass(frozen=True)
class Vote:
    """A row of a file of answers: what was asked, by item numbers, and what was said."""

    asked: Asked
    answer: Answer
    """1 for yes or the item of the smaller number, 0 for no or the other; "tie", or None for a skip."""
    swapped: bool = False
    """Whether the item of the larger number was shown first."""
    judge: str | None = None

    def turned(self) -> "Vote":
        """The same vote where the numbers of its items have come to be in the other order."""
        answer = 1 - self.answer if isinstance(self.answer, int) else self.answer
        return replace(self, answer=answer, swapped=not self.swapped)


@dataclass(frozen=True, eq=False)
class RecordedJudge:
    """Answers every question with the next unused vote on it, whichever way round it was shown.

    Without a vote left the answer is None, which a session takes as a skip; a vote "tie" stays a tie.
    """

    problem: Problem
    votes: tuple[Vote, ...]
    """In the order of the file."""
    left: dict[Asked, deque[Vote]]
    """Votes not used yet."""
    unused: tuple[str, ...] = ()
    """Sentences about rows that could not be used, with their line."""

    def __call__(self, question: Question) -> Answer:
        """The next vote on this question."""
        if question.first is None:
            raise InvalidInput("Recorded votes are about items; this question is about a bare vector.")
        first = self.problem.index(question.first)
        second = NOTHING if question.second is None else self.problem.index(question.second)
        answer = self._next(_asked(first, second))
        turned = second != NOTHING and first > second
        return 1 - answer if turned and isinstance(answer, int) else answer

    def resume(self, session: Session) -> None:
        """Count as used what a session has had before: a vote for every question that it does not wait for."""
        waiting = {question.id for question in session.outstanding}
        for event in session.log:
            if event["event"] == "question" and event["id"] not in waiting:
                self._next(_asked(*self.problem.about[event["measurement"]]))

    def _next(self, asked: Asked) -> Answer:
        left = self.left.get(asked)
        return left.popleft().answer if left else None

    def as_shown(self) -> Answers:
        """All votes as people saw them, for checks of assumptions."""
        items = np.array([vote.asked[:: -1 if vote.swapped else 1] for vote in self.votes], dtype=np.int64)
        rows = {_asked(*about): row for row, about in enumerate(self.problem.about)}
        signs = np.array([-1.0 if vote.swapped else 1.0 for vote in self.votes])
        vectors = self.problem.measurements[[rows[vote.asked] for vote in self.votes]] * signs[:, None]
        said = [vote.turned().answer if vote.swapped else vote.answer for vote in self.votes]
        words = np.array([SKIP if one is None else TIE if one == "tie" else one for one in said], dtype=np.int64)
        judges = tuple(vote.judge for vote in self.votes)
        return Answers(vectors, words, items, self.problem.names, judges, shuffled=False)

    @property
    def remaining(self) -> int:
        """Votes not used yet."""
        return sum(len(left) for left in self.left.values())


def read_votes(items: ItemTable | str | PathLike[str], answers: str | PathLike[str]) -> tuple[Problem, RecordedJudge]:
    """The problem whose questions are those that were voted on, and a judge who replays the votes.

    Votes are rows item_a,item_b,winner or item,answer (or both, one of them empty); those on unknown items, on two
    items of equal features, or without an answer are listed with their line and otherwise left out.
    """
    table = read_table(Path(answers), leave_out=True)
    known = items if isinstance(items, ItemTable) else read_items(items)
    place = {name: number for number, name in enumerate(known.names)}
    unused = list(table.unusable)
    read: list[Vote] = []
    for row in range(len(table)):
        vote = _vote(table, row, place)
        if isinstance(vote, Vote):
            read.append(vote)
        else:
            unused.append(table.at(row, vote))
    if not read:
        raise InvalidInput(
            f"{answers} holds no vote on two of the items, nor yes or no about one; check the names. "
            f"The first row: {unused[0]}"
        )
    problem = _problem(known, {vote.asked for vote in read})
    # Items of equal features are one item: votes between them say nothing, others are about what they became.
    number = [problem.index(name) for name in known.names]
    votes: list[Vote] = []
    for vote in read:
        first, second = (NOTHING if one == NOTHING else number[one] for one in vote.asked)
        if first != second:
            kept = vote.turned() if NOTHING < second < first else vote
            votes.append(replace(kept, asked=_asked(first, second)))
    same = len(read) - len(votes)
    if same:
        unused.append(f"{answers}: {same} votes compare items of equal features, which no answer can tell apart.")
    left: dict[Asked, deque[Vote]] = {}
    for vote in votes:
        left.setdefault(vote.asked, deque()).append(vote)
    return problem, RecordedJudge(problem, tuple(votes), left, tuple(unused))


def warm_answers(problem: Problem, judge: RecordedJudge) -> tuple[tuple[int, int, int], ...]:
    """Decisive votes on what can be asked in a problem of the same items, as (measurement, pulls, wins)."""
    rows = {_asked(*about): row for row, about in enumerate(problem.about)}
    pulls, wins = Counter[int](), Counter[int]()
    for vote in judge.votes:
        if vote.asked in rows and isinstance(vote.answer, int):
            pulls[rows[vote.asked]] += 1
            wins[rows[vote.asked]] += vote.answer
    return tuple((row, pulls[row], wins[row]) for row in sorted(pulls))


def turned_to_votes(policy: Policy[Any], judge: RecordedJudge, order: Order = "policy") -> Policy[Any]:
    """The policy, but asking only what was voted on: the nearest to what it wants, or the votes in their order.

    Only Anytime can be turned; others have proofs for the questions they planned, and a vote that is not there is a
    skip to them.
    """
    if not isinstance(policy, Anytime):
        if order == "file":
            raise InvalidInput(
                f"--order file needs the policy anytime, which is proved for any questions; not {policy.name}."
            )
        return policy
    rows = {_asked(*about): row for row, about in enumerate(judge.problem.about)}
    in_file = np.array([rows[vote.asked] for vote in judge.votes], dtype=np.int64)
    stock = np.bincount(in_file, minlength=len(rows))

    def turn(state: Any, plan: Plan) -> NDArray[np.int64] | Wait:
        used = np.zeros_like(stock)
        for filed in state.stages:
            used[filed.plan.measurements] += filed.plan.pulls
        asked = int(used.sum())
        if asked == len(in_file):
            return Wait("The recorded votes are used up.")
        if order == "policy":
            return nearest(judge.problem, plan, stock - used)
        return np.bincount(in_file[asked : asked + plan.total], minlength=len(stock))

    return redirected(policy, turn)


def _vote(table: Table, row: int, place: dict[str, int]) -> Vote | str:
    """A row as a vote, or why it is none."""
    cells = {
        name: table.columns[name][row] for name in ("item_a", "item_b", "winner", "item", "answer") if name in table
    }
    if cells.get("winner"):
        names = [cells.get("item_a", ""), cells.get("item_b", "")]
        winner = cells["winner"].lower()
        if winner not in WINNERS:
            return f"winner must be a, b, tie or skip, got {cells['winner']!r}"
        answer = WINNERS[winner]
    elif cells.get("answer"):
        names = [cells.get("item", "")]
        if cells["answer"].lower() not in ANSWERS:
            return f"answer must be yes, no or skip, got {cells['answer']!r}"
        answer = ANSWERS[cells["answer"].lower()]
    else:
        return "there is neither a winner (a, b, tie, skip) nor an answer (yes, no, skip)"
    stranger = next((name for name in names if name not in place), None)
    if stranger is not None:
        return f"there is no item {stranger!r}"
    first, second = [*(place[name] for name in names), NOTHING][:2]
    if first == second:
        return f"{names[0]!r} is compared with itself"
    judge = table.columns["judge"][row] if "judge" in table else None
    vote = Vote(_asked(first, second), answer, judge=judge or None)
    return vote.turned() if NOTHING < second < first else vote


def _problem(items: ItemTable, asked: set[Asked]) -> Problem:
    """The problem in which just these questions can be asked."""
    pairs = sorted(each for each in asked if each[1] != NOTHING)
    single = any(each[1] == NOTHING for each in asked)
    if not single:
        return Problem.from_pairs(items.features, names=items.names, pairs=np.array(pairs))
    if not pairs:
        return Problem.from_items(items.features, names=items.names)
    return Problem.from_pairs_and_items(items.features, names=items.names, pairs=np.array(pairs))


def _asked(first: int, second: int) -> Asked:
    return (int(first), NOTHING) if second == NOTHING else (int(min(first, second)), int(max(first, second)))
