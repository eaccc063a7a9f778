"""Recorded picks and rankings as a judge: every question is the next row of the file, in its order.

Bets are fixed from the rows before, so each recorded question may depend on them (`recorded.CONDITIONS`).
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Literal

from surepick.answer import Places
from surepick.checks import Answers
from surepick.errors import InvalidInput
from surepick.identify import Plan, Policy, Problem, Wait, Winner
from surepick.io.items import ItemTable, read_items
from surepick.io.votes import Vote, VoteTable, numbers_of, read_votes
from surepick.judges.recorded import on_recorded
from surepick.session import Question, Reply, Session
from surepick.session.journal import answers_of


@dataclass(eq=False)
class RecordedOrders:
    """Answers each question with the next recorded pick or ranking, whatever order its items are shown in."""

    problem: Problem
    recorded: VoteTable
    used: int = field(default=0)
    """Rows that have been asked."""

    @classmethod
    def of(
        cls,
        items: ItemTable | str | PathLike[str],
        votes: str | PathLike[str],
        *,
        show: int | None = None,
        drop_bad_rows: bool = False,
    ) -> "RecordedOrders":
        """The judge who replays a file of picks and rankings (`surepick.io.votes`) on these items.

        All questions show as many items: `show`, or as many as most rows do; other rows are reported and left out, and
        so are items without a row. Rows that cannot be used are refused, or left out with `drop_bad_rows`.
        """
        known = items if isinstance(items, ItemTable) else read_items(items, drop_bad_rows=drop_bad_rows)
        recorded = read_votes(votes, known.names, drop_bad_rows=drop_bad_rows)
        sizes = Counter(len(vote.shown) for vote in recorded.votes if len(vote.shown) > 2)
        size = show or (sizes.most_common(1)[0][0] if sizes else 0)
        kept = [vote for vote in recorded.votes if len(vote.shown) == size]
        unused = [
            f"{recorded.source}, line {vote.line}: shows {len(vote.shown)} items, and this search shows {size}."
            for vote in recorded.votes
            if len(vote.shown) != size
        ]
        if not kept or size < 3:
            raise InvalidInput(
                f"{recorded.source} has no pick or ranking of {size or 'three or more'} items; it needs a column items "
                "with their names, and a column ranking or winner."
            )
        voted_on = {name for vote in kept for name in vote.shown}
        names = [name for name in known.names if name in voted_on]
        features = known.features[[name in voted_on for name in known.names]]
        recorded = replace(recorded, votes=tuple(kept), unused=(*recorded.unused, *unused))
        if len(names) < len(known.names):
            recorded = recorded.without([name for name in known.names if name not in voted_on])
        longest = max((len(vote.answer) for vote in kept if isinstance(vote.answer, tuple)), default=1)
        answer: Literal["pick", "rank"] = "pick" if longest == 1 else "rank"
        top = None if longest == 1 else longest
        problem = Problem.from_sets(features, show=size, answer=answer, top=top, names=names)
        return cls(problem, recorded.distinguishable(problem))

    @property
    def at_once(self) -> int:
        """Rows are taken one at a time."""
        return 1

    @property
    def names_judges(self) -> bool:
        """Whether the rows say whose they are."""
        return any(vote.judge is not None for vote in self.recorded.votes)

    @property
    def unused(self) -> tuple[str, ...]:
        """Sentences about rows that could not be used, with their line."""
        return self.recorded.unused

    @property
    def remaining(self) -> int:
        """Rows not used yet."""
        return len(self.recorded.votes) - self.used

    def replies(self, next_question: Callable[[], Question | None]) -> Iterator[tuple[Question, Reply]]:
        """Answer until there is no question."""
        while (question := next_question()) is not None:
            vote = self.recorded.votes[self.used]
            self.used += 1
            yield question, Reply(self._as_shown(question, vote), vote.judge)

    def _as_shown(self, question: Question, vote: Vote) -> Places | Any:
        """A row's answer as places of the items as this question shows them."""
        if not isinstance(vote.answer, tuple):
            return vote.answer
        number = numbers_of(self.problem)
        shown = [number[name] for name in question.items]
        return tuple(shown.index(number[vote.shown[place - 1]]) + 1 for place in vote.answer)

    def resume(self, session: Session) -> None:
        """Count as used what a session has had before."""
        self.used = len(session.questions) - len(session.outstanding)

    def as_shown(self) -> Answers:
        """All rows as people saw them, for checks of assumptions: the comparisons that they decide."""
        number, log = numbers_of(self.problem), []
        for place, vote in enumerate(self.recorded.votes, 1):
            items = [number[name] for name in vote.shown]
            order = [sorted(items).index(item) for item in items]
            log.append({"event": "question", "id": place, "measurement": self.problem.number_of(items), "order": order})
            told = {"id": place, "judge": vote.judge}
            if isinstance(vote.answer, tuple):
                log.append({"event": "answer", "answer": list(vote.answer), **told})
            else:
                log.append({"event": "skip" if vote.answer is None else "tie", **told})
        return replace(answers_of(self.problem, log), shuffled=False)


def only_recorded_orders(policy: Policy[Any], judge: RecordedOrders, order: str | None) -> Policy[Any]:
    """The policy, asking what the file asks, row by row."""
    if order == "policy" or not isinstance(policy, Winner):
        raise InvalidInput(
            "Recorded picks and rankings are taken in the order of the file, by the policy winner; leave out --order, "
            "--policy and --assume features."
        )
    number = numbers_of(judge.problem)
    questions = [judge.problem.number_of([number[name] for name in vote.shown]) for vote in judge.recorded.votes]

    def redirect(state: Any, plan: Plan) -> Plan | Wait:
        if state.asked == len(questions):
            return Wait("The recorded answers are used up.")
        return policy.stage_asking(state, {questions[state.asked]: 1})

    return on_recorded(policy, redirect, "file")
