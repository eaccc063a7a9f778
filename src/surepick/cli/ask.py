"""`surepick ask`: the person at the terminal answers, and may stop at any time and go on later."""

import os
import shlex
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from surepick.cli.find import Kind
from surepick.cli.output import print_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console, RenderableType

    from surepick.cli.progress import Horizon
    from surepick.identify import Plan, Problem
    from surepick.io.items import ItemTable
    from surepick.judges.redirect import Turn
    from surepick.session import Question, Session

Key = Literal["first", "second", "tie", "skip", "undo", "quit"]

KEYS: dict[str, Key] = {
    **dict.fromkeys(("\x1b[D", "\x1bOD", "a", "y", "yes", "left"), "first"),
    **dict.fromkeys(("\x1b[C", "\x1bOC", "b", "n", "no", "right"), "second"),
    "t": "tie",
    "s": "skip",
    "u": "undo",
    "q": "quit",
    "": "quit",  # the end of the input
    "\x03": "quit",
    "\x04": "quit",
}
"""What may be typed; the arrow keys are escape sequences."""


def ask(
    items: Annotated[
        Path,
        typer.Argument(help="Items (CSV or Parquet): column item; all but label, image, text, colour is a feature."),
    ],
    delta: Annotated[float, typer.Option(help="Allowed probability of naming the wrong item.")] = 0.05,
    epsilon: Annotated[float, typer.Option(help="Accept an item that is worse by so much (log-odds).")] = 0.0,
    budget: Annotated[int | None, typer.Option(help="Most questions to answer.")] = None,
    kind: Annotated[Kind, typer.Option(help="Which of two (pairs), yes/no about one (items), or both.")] = "pairs",
    position: Annotated[
        bool, typer.Option("--position", help="Learn what being shown first is worth (with --kind pairs).")
    ] = False,
    pca: Annotated[int | None, typer.Option(help="Reduce the features to so many principal components.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed and answers, same questions.")] = 0,
    state: Annotated[Path | None, typer.Option(help="The log; ITEMS.answers.jsonl here unless told.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report with pictures to this HTML file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON at the end.")] = False,
) -> None:
    """Ask the person at the terminal until the favourite is known; the same command goes on where they left."""
    import time

    from rich.console import Console

    from surepick.cli.printer import print_outcome
    from surepick.cli.progress import Horizon
    from surepick.cli.runner import open_session
    from surepick.identify import Anytime
    from surepick.io.items import read_items
    from surepick.judges.redirect import redirected
    from surepick.report import Outcome, write_report

    table = read_items(items, pca=pca)
    path = state or Path(f"{items.stem}.answers.jsonl")
    problem, avoid = table.problem(kind, seed=seed, position=position), set[int]()
    policy = Anytime(delta=delta, epsilon=epsilon)
    session = open_session(problem, redirected(policy, _elsewhere(problem, avoid)), seed, path)
    began = time.perf_counter()
    horizon = Horizon(policy)
    _Conversation(session, table, avoid, horizon, Console(stderr=True)).run(budget)
    outcome = Outcome(
        session,
        table,
        command=shlex.join(["surepick", *sys.argv[1:]]),
        seconds=time.perf_counter() - began,
        ended="interrupted",
        forecast=horizon.known(session),
    )
    if report is not None:
        write_report(outcome, report)
    if json:
        print_json(outcome.to_json())
    else:
        print_outcome(outcome, state=path, report=report)
    if not outcome.verdict.status.decided:
        raise typer.Exit(1)


class _Conversation:
    """Questions on the screen, keys as answers.

    The last answer is filed only with the next one: Anytime evaluates every answer when it plans the next question,
    and an evaluated answer cannot be taken back. So the next question is planned without it, and may be the same again;
    `avoid` has the policy turn to another one then, and for a pair that was skipped before in this sitting.
    """

    def __init__(
        self, session: "Session", items: "ItemTable", avoid: set[int], horizon: "Horizon", console: "Console"
    ) -> None:
        self._session = session
        self._items = items
        self._console = console
        self._avoid = avoid
        self._horizon = horizon
        self._waiting = deque(session.outstanding)
        self._last: tuple[Question, Key] | None = None
        self._skipped: set[int] = set()

    def run(self, most: int | None) -> None:
        """Until the verdict, until so many answers, or until the person stops."""
        try:
            while most is None or self._session.answered + (self._last is not None) < most:
                question = self._next()
                if question is None:
                    return
                key = self._ask(question)
                if key == "quit":
                    return
                if key == "undo":
                    self._waiting.appendleft(question)
                    if self._last is not None:
                        self._waiting.appendleft(self._last[0])
                        self._last = None
                    continue
                self._file_last()
                self._last = (question, key)
                if key == "skip":
                    self._skipped.add(question.measurement)
                self._avoid.clear()
                self._avoid.update(self._skipped, {question.measurement})
        finally:
            self._file_last()

    def _next(self) -> "Question | None":
        new = [self._waiting.popleft()] if self._waiting else self._session.ask(1)
        if not new and self._last is not None:  # the policy may wait for the answer held back
            self._file_last()
            new = self._session.ask(1)
        return new[0] if new else None

    def _file_last(self) -> None:
        from surepick.session import Answer, file_answer

        if self._last is None:
            return
        question, key = self._last
        self._last = None
        answers: dict[str, Answer] = {"first": 1, "second": 0, "tie": "tie", "skip": None}
        file_answer(self._session, question.id, answers[key])

    def _ask(self, question: "Question") -> Key:
        from rich.text import Text

        console = self._console
        if console.is_terminal:
            console.clear()
        held = self._last is not None
        single = question.second is None
        wanted = "do you like it?" if single else "which one do you like better?"
        number = self._session.answered + held + 1
        further = self._horizon.sentence(self._session) if console.is_terminal else ""
        console.print(f"[bold]Question {number}[/bold]: {wanted}", highlight=False)
        console.print(f"[dim]{further}[/dim]", highlight=False)
        console.print(self._shown(question))
        words = (
            "[bold]y[/bold] yes · [bold]n[/bold] no"
            if single
            else "[bold]←[/bold] or [bold]a[/bold] · [bold]→[/bold] or [bold]b[/bold] · [bold]t[/bold] tie"
        )
        undo = " · [bold]u[/bold] undo" if held else ""
        console.print(f"{words} · [bold]s[/bold] skip{undo} · [bold]q[/bold] quit")
        while True:
            typed = read_key()
            if typed in KEYS and not (single and typed == "t"):
                return KEYS[typed]
            console.print(Text(f"{typed!r} is none of these keys.", style="dim"))

    def _shown(self, question: "Question") -> "RenderableType":
        from rich.table import Table

        grid = Table.grid(padding=(1, 3))
        grid.add_row(*[self._card(name) for name in (question.first, question.second) if name is not None])
        return grid

    def _card(self, name: str) -> "RenderableType":
        from rich.align import Align
        from rich.console import Group
        from rich.text import Text

        items, width = self._items, 26
        shown = items.display(name)
        colour = items.colour(name)
        patch = [Text(" " * width, style=f"on {colour}")] * 5 if colour else []
        more = [Text(shown[column]) for column in ("text", "image") if column in shown]
        return Group(*patch, Align.center(Text(items.label(name), style="bold"), width=width), *more)


def _elsewhere(problem: "Problem", avoid: set[int]) -> "Turn":
    """Turn the policy away from some measurements, unless there are no others."""
    import numpy as np

    from surepick.judges.redirect import as_counts, nearest

    def turn(state: object, plan: "Plan") -> "NDArray[np.int64]":
        left = np.full(len(problem.measurements), plan.total, dtype=np.int64)
        left[list(avoid)] = 0
        return nearest(problem, plan, left) if left.any() else as_counts(problem, plan)

    return turn


def read_key() -> str:
    """One key from a terminal, an arrow key as its escape sequence; from anything else one line."""
    if not sys.stdin.isatty():
        line = sys.stdin.readline()
        return line.strip().lower() if line.strip() else ""
    import termios
    import tty

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    try:
        tty.setcbreak(number)
        typed = os.read(number, 1)
        if typed == b"\x1b":
            typed += os.read(number, 2)
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
    return typed.decode("utf-8", "replace").lower() if typed[:1] != b"\x1b" else typed.decode("ascii", "replace")
