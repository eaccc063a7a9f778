"""A search from the first question to the last, with any panel of judges; what is answered is in the log first."""

import json
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surepick.errors import InvalidInput
from surepick.identify import Policy, Problem
from surepick.judges.panel import Panel, Reply
from surepick.session import Question, Session, file_answer
from surepick.session.session import described

GIVE_UP = 3
"""Questions in a row, for every seat, without an answer because of trouble, after which the search ends."""

PAID = ("answer", "tie", "skip")
"""Events of the log that may have cost something."""


@dataclass(eq=False)
class Search:
    """A session with a panel, and why it ended if not with a verdict."""

    session: Session
    panel: Panel
    price: float = 0.0
    """Of an answer, unless the judge names its cost."""
    max_cost: float | None = None
    spent: float = field(init=False)
    """On all answers of the log, those before this call too."""
    troubles: list[str] = field(default_factory=list)
    ended: str | None = None
    """"cost cap reached", "judges failed" or "interrupted"."""
    began: float = field(default_factory=time.perf_counter)
    _failing: int = 0
    _open: deque[Question] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._open.extend(self.session.outstanding)
        self.spent = sum(event.get("cost", self.price) for event in self.session.log if event["event"] in PAID)

    @property
    def seconds(self) -> float:
        """Time since the beginning of this call."""
        return time.perf_counter() - self.began

    def run(self, watch: Callable[["Search"], None] = lambda search: None) -> None:
        """Ask until the verdict, or until there is nothing to ask or nobody to answer; `watch` is called in between."""
        try:
            if self.panel.seats == 1:
                for question in iter(self._next_question, None):
                    self._file(question, self.panel.ask(question))
                    watch(self)
            else:
                self._run_at_once(watch)
        except KeyboardInterrupt:
            self.ended = "interrupted"
        finally:
            self.panel.close()

    def _run_at_once(self, watch: Callable[["Search"], None]) -> None:
        """As many questions out as there are seats."""
        out: dict[Future[Reply], Question] = {}
        with ThreadPoolExecutor(self.panel.seats) as pool:
            try:
                while True:
                    while len(out) < self.panel.seats and (question := self._next_question(len(out))) is not None:
                        out[pool.submit(self.panel.ask, question)] = question
                    if not out:
                        return
                    done, _ = wait(out, timeout=0.5, return_when=FIRST_COMPLETED)
                    for future in done:
                        self._file(out.pop(future), future.result())
                    watch(self)
            except BaseException:
                self.panel.close()  # or the threads would wait for answers that nobody wants
                raise

    def _next_question(self, out: int = 0) -> Question | None:
        """An open question of an earlier call, a new one, or None where nothing more is to be asked."""
        if self._failing >= GIVE_UP * self.panel.seats:
            self.ended = "judges failed"
            return None
        if self.max_cost is not None and self.spent + (out + 1) * self.price > self.max_cost + 1e-12:
            self.ended = "cost cap reached"
            return None
        return self._open.popleft() if self._open else next(iter(self.session.ask(1)), None)

    def _file(self, question: Question, reply: Reply) -> None:
        self.spent += reply.cost or 0.0
        self._failing = self._failing + 1 if reply.trouble else 0
        if reply.trouble:
            self.troubles.append(f"Question {question.id} was skipped: {reply.trouble}.")
        file_answer(self.session, question.id, reply.answer, judge=reply.judge, cost=reply.cost)


def open_session(problem: Problem, policy: Policy[Any], seed: int, path: Path | None) -> Session:
    """A new session, or the one whose log is `path` if it is the same search."""
    if path is None or not path.exists() or not path.stat().st_size:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        return Session(problem, policy, seed=seed, path=path)
    try:
        session = Session.resume(path, policy=policy)
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not a log of surepick; name another file with --state.") from None
    head = session.log[0]
    for what, logged, wanted in (
        ("items or questions", head["problem"], problem.to_json()),
        ("policy, delta, epsilon, budget or old votes", head["policy"], json.loads(json.dumps(described(policy)))),
        ("seed", head["seed"], seed),
    ):
        if logged != wanted:
            raise InvalidInput(
                f"{path} is the log of another search: its {what} differ from those given now; pass the same ones to "
                "go on with it, or another file with --state."
            )
    return session
