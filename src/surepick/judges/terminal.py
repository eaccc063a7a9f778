"""The person at the terminal as a judge: questions on the screen, keys as answers."""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from rich.align import Align
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from surepick.answer import Answer
from surepick.io.items import ItemTable
from surepick.io.systems import SystemTable
from surepick.session import Question, Reply

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
"""What each key does; the arrow keys are escape sequences."""

ANSWERS: dict[Key, Answer] = {"first": 1, "second": 0, "tie": "tie", "skip": None}


@dataclass(eq=False)
class TerminalJudge:
    """Shows a question and waits for a key.

    An answer is handed over only with the next one, so that it can be undone until then: Anytime evaluates every answer
    when it plans the next question, and an evaluated answer cannot be taken back. The next question is therefore
    planned without the last answer.
    """

    items: ItemTable
    console: Console
    answered: Callable[[], int]
    """Number of answers filed so far."""
    outlook: Callable[[], str] = lambda: ""
    """How many questions are left, as a sentence."""
    at_once: int = 2
    """The question on the screen and the answer held back."""

    def replies(self, next_question: Callable[[], Question | None]) -> Iterator[tuple[Question, Reply]]:
        """Ask until there is no question or the person quits."""
        held: tuple[Question, Reply] | None = None
        again: deque[Question] = deque()  # questions whose answer was undone, and the one that was on the screen then
        while True:
            question = again.popleft() if again else next_question()
            if question is None and held is not None:  # the policy may wait for the answer held back
                yield held
                held, question = None, next_question()
            if question is None:
                return
            try:
                key = self.ask(question, can_undo=held is not None)
            except KeyboardInterrupt:
                if held is not None:
                    yield held
                raise
            if key == "quit":
                break
            if key == "undo":
                again.appendleft(question)
                if held is not None:
                    again.appendleft(held[0])
                    held = None
                continue
            if held is not None:
                yield held
            held = question, Reply(ANSWERS[key])
        if held is not None:
            yield held

    def ask(self, question: Question, *, can_undo: bool) -> Key:
        """Show one question and wait for a key that means something."""
        console, single = self.console, question.second is None
        if console.is_terminal:
            console.clear()
        wanted = "do you like it?" if single else "which one do you like better?"
        console.print(f"[bold]Question {self.answered() + can_undo + 1}[/bold]: {wanted}", highlight=False)
        if console.is_terminal:
            console.print(f"[dim]{self.outlook()}[/dim]", highlight=False)
        cards = Table.grid(padding=(1, 3))
        if isinstance(self.items, SystemTable) and question.input is not None:
            console.print(Text(self.items.text(question.input), style="italic"))
            cards.add_row(*self._outputs(question, question.input))
        else:
            cards.add_row(*[self._card(name) for name in (question.first, question.second) if name is not None])
        console.print(cards)
        words = (
            "[bold]y[/bold] yes · [bold]n[/bold] no"
            if single
            else "[bold]←[/bold] or [bold]a[/bold] · [bold]→[/bold] or [bold]b[/bold] · [bold]t[/bold] tie"
        )
        undo = " · [bold]u[/bold] undo" if can_undo else ""
        console.print(f"{words} · [bold]s[/bold] skip{undo} · [bold]q[/bold] quit")
        while True:
            typed = read_key()
            if typed in KEYS and not (single and typed == "t"):
                return KEYS[typed]
            console.print(Text(f"{typed!r} is not one of these keys.", style="dim"))

    def _outputs(self, question: Question, given: str) -> list[RenderableType]:
        """What two systems wrote for an input, without their names."""
        assert isinstance(self.items, SystemTable)
        names = [name for name in (question.first, question.second) if name is not None]
        return [
            Group(Text(letter, style="bold"), Text(self.items.output(name, given)))
            for letter, name in zip("AB", names, strict=True)
        ]

    def _card(self, name: str) -> RenderableType:
        items, width = self.items, 26
        shown = items.display(name)
        colour = items.colour(name)
        patch = [Text(" " * width, style=f"on {colour}")] * 5 if colour else []
        more = [Text(shown[column]) for column in ("text", "image") if column in shown]
        return Group(*patch, Align.center(Text(items.label(name), style="bold"), width=width), *more)


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
