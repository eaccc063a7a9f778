"""Two judges and a planner, one step at a time, in any order that hypothesis can think of."""

import itertools
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from service_crash import rederived
from surepick.errors import SurepickError
from surepick.store import Planner, log, open_database, studies
from surepick.store.question_queue import (
    LeaseQuestions,
    RecordedMessage,
    SubmitAnswer,
    UndoAnswer,
    lease_questions,
    submit_answers,
    undo_answers,
)
from surepick.store.schema import messages
from surepick.store.verify import verify

NUMBERS = itertools.count()
JUDGES = st.integers(0, 1)
SKEWS = st.sampled_from([-10.0, 0.0, 10.0])
"""How far the clock of the server that takes a request is off."""


class Interleavings(RuleBasedStateMachine):
    """What is acknowledged must be stored, and what is stored must enter the log, whatever happened before."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.now = 1e6
        self.database = open_database(f"sqlite:///{self.folder}/{next(NUMBERS)}.db")
        self.skew = 0.0
        self.database.clock = lambda: self.now + self.skew
        self.planners = [Planner(self.database) for _ in range(2)]
        items = [studies.Item(name, features=at) for name, at in {"x": (1.0, 0.0), "y": (0.0, 1.0)}.items()]
        with self.database.writing() as connection:
            options = studies.StudyOptions("machine", repeats="independent", lease=30.0, seed=1)
            self.study = studies.create(connection, options, items, [], self.now)
            self.judges = [studies.add_judge(connection, self.study, "", self.now) for _ in range(2)]
        self.held: list[list[str]] = [[], []]
        self.turns: dict[str, int] = {}
        self.acknowledged: dict[tuple[str, int], str] = {}
        self.planners[0].round()
        for judge in range(2):
            self.take(judge, 1)

    def send(self, handler: Any, request: Any, skew: float = 0.0) -> Any:
        self.skew = skew
        with self.database.writing(durable=False) as connection:
            (told,) = handler(self.database, connection, [request])
        self.skew = 0.0
        if isinstance(told, RecordedMessage):
            key = (told.question, told.turn)
            assert self.acknowledged.setdefault(key, told.said) == told.said
            self.turns[told.question] = max(self.turns.get(told.question, 0), told.turn + 1)
        return told

    @rule(judge=JUDGES, n=st.integers(1, 3))
    def take(self, judge: int, n: int) -> None:
        taken = self.send(lease_questions, LeaseQuestions(self.study, self.judges[judge], n))
        self.held[judge] = list(dict.fromkeys([*self.held[judge], *(row["id"] for row in taken.questions)]))

    @rule(
        judge=JUDGES,
        back=st.integers(0, 2),
        said=st.sampled_from(["skip", "a", "b", "tie"]),
        knows_turn=st.booleans(),
        skew=SKEWS,
    )
    def answer(self, judge: int, back: int, said: str, knows_turn: bool, skew: float) -> None:
        question = self.held[judge][-1 - back % len(self.held[judge])]
        turn = self.turns.get(question, 0) if knows_turn else None
        told = self.send(submit_answers, SubmitAnswer(self.study, self.judges[judge], question, said, turn), skew)
        assert isinstance(told, RecordedMessage | SurepickError)

    @rule(judge=JUDGES, skew=SKEWS)
    def undo(self, judge: int, skew: float) -> None:
        self.send(undo_answers, UndoAnswer(self.study, self.judges[judge]), skew)

    @rule(planner=st.integers(0, 1))
    def plan(self, planner: int) -> None:
        self.planners[planner].round()

    @rule(seconds=st.sampled_from([-20.0, 1.0, 6.0, 31.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: len(self.acknowledged) in (3, 9))  # else there would be little but new phases
    @rule()
    def change_items(self) -> None:
        with self.database.writing() as connection:
            item = studies.Item(f"new {len(studies.items_of(connection, self.study))}", features=(0.5, 0.1))
            studies.begin_phase(connection, self.study, [item], [], [], self.now)

    @invariant()
    def stored_is_what_was_acknowledged(self) -> None:
        with self.database.reading() as connection:
            stored = {(row.question, row.turn): row.said for row in connection.execute(messages.select())}
        assert stored == self.acknowledged

    def teardown(self) -> None:
        """Everything enters the log, by whichever planner comes first."""
        for _ in range(3):
            self.now += 31
            for planner in self.planners:
                planner.round()
        with self.database.reading() as connection:
            counts = log.message_counts(connection)
            row = studies.get(connection, self.study)
            logged = list(log.read(connection, self.study, row["phase"]))
        assert (counts.waiting, counts.quarantined) == (0, 0)
        assert [sentence for report in verify(self.database) for sentence in report.wrong] == []
        assert rederived(logged) == logged
        self.database.close()


def test_no_interleaving_gets_stuck(tmp_path: Path) -> None:
    Interleavings.folder = tmp_path
    run_state_machine_as_test(Interleavings, settings=settings(max_examples=20, stateful_step_count=30, deadline=None))
