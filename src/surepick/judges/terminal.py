"""The person at the terminal as a judge: questions on the screen, keys as answers."""

import os
import select
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from rich.align import Align
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from surepick.answer import Answer, Places, read_places
from surepick.errors import InvalidInput
from surepick.io.items import ItemTable
from surepick.io.systems import SystemTable
from surepick.session import Question, Reply

Key = Literal["first", "second", "tie", "skip", "undo", "quit"]

_LEFT, _RIGHT = ("\x1b[D", "\x1bOD", "left"), ("\x1b[C", "\x1bOC", "right")

KEYS: dict[str, Key] = {
    **dict.fromkeys((*_LEFT, "a", "y", "yes"), "first"),
    **dict.fromkeys((*_RIGHT, "b", "n", "no"), "second"),
    **dict.fromkeys(("\x1b[A", "\x1bOA", "up", "t"), "tie"),
    **dict.fromkeys(("\x1b[B", "\x1bOB", "down", "s"), "skip"),
    "u": "undo",
    "q": "quit",
    "": "quit",  # the end of the input
    "\x03": "quit",
    "\x04": "quit",
}
"""What each key does, as on the judge's page of the service; the arrow keys are escape sequences."""

SINGLE_KEYS = KEYS | dict.fromkeys(_LEFT, "second") | dict.fromkeys(_RIGHT, "first")
"""The same for a yes/no question, where no is at the left."""

WINDOWS_KEYS = {"H": "up", "P": "down", "K": "left", "M": "right"}
"""What follows the first code of an arrow key on Windows."""

ESCAPE_SECONDS = 0.05
"""How long to wait for the rest of an arrow key's sequence."""

CARD = 29
"""Width of an item on the screen."""

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
    outlook: Callable[[], str] = lambda: ""
    """How many questions are left, as a sentence."""
    at_once: int = 2
    """The question on the screen and the answer held back."""
    question: str = ""
    """What is asked, in the words of whoever runs the search."""
    blind: bool = False
    """Whether names and labels are hidden, so that only texts, images and colours count."""
    _shown: bool = field(default=False, init=False)
    """Whether there was a question already."""

    def __post_init__(self) -> None:
        bare = [name for name in self.items.names if not {"text", "image", "colour"} & set(self.items.display(name))]
        if self.blind and bare and not isinstance(self.items, SystemTable):
            raise InvalidInput(
                f"Without its name there is nothing to show of the item {bare[0]!r}; add a column text, image or "
                "colour, or leave out --blind."
            )

    def replies(self, next_question: Callable[[], Question | None]) -> Iterator[tuple[Question, Reply]]:
        """Ask until there is no question or the person quits."""
        with keys_one_by_one():
            yield from self._replies(next_question)

    def _replies(self, next_question: Callable[[], Question | None]) -> Iterator[tuple[Question, Reply]]:
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
            held = question, Reply(key if isinstance(key, tuple) else ANSWERS[key])
        if held is not None:
            yield held

    def ask(self, question: Question, *, can_undo: bool) -> Key | Places:
        """Show one question and wait for a key that means something, or for the places of several items."""
        console, single = self.console, question.kind == "yes/no"
        discard_typed()
        if console.is_terminal and self._shown:  # the first question leaves what was said before it on the screen
            console.clear()
        self._shown = True
        wanted = self.question or ("Do you like it?" if single else _wanted(question))
        console.print(Text.assemble((f"Question {question.id}", "bold"), f": {wanted}"))
        if console.is_terminal:
            console.print(f"[dim]{self.outlook()}[/dim]", highlight=False)
        cards = Table.grid(padding=(1, 3))
        if isinstance(self.items, SystemTable) and question.input is not None:
            console.print(Text(self.items.text(question.input), style="italic"))
        if question.about_set:
            numbered = [
                Group(Text(f"{place}", style="bold"), self._shown_of(question, name, f"{place}"))
                for place, name in enumerate(question.items, 1)
            ]
            per_row = max(1, min(len(numbered), console.width // CARD))
            for begin in range(0, len(numbered), per_row):
                cards.add_row(*numbered[begin : begin + per_row])
        else:
            cards.add_row(
                *[self._shown_of(question, name, letter) for name, letter in zip(question.items, "AB", strict=False)]
            )
        console.print(cards)
        if question.about_set:
            return self._ask_places(question, can_undo=can_undo)
        words = (
            "[bold]←[/bold] or [bold]n[/bold] no · [bold]→[/bold] or [bold]y[/bold] yes"
            if single
            else "[bold]←[/bold] or [bold]a[/bold] · [bold]→[/bold] or [bold]b[/bold] · [bold]↑[/bold] or "
            "[bold]t[/bold] tie"
        )
        undo = " · [bold]u[/bold] undo" if can_undo else ""
        console.print(f"{words} · [bold]↓[/bold] or [bold]s[/bold] skip{undo} · [bold]q[/bold] quit")
        keys = SINGLE_KEYS if single else KEYS
        while True:
            typed = read_key()
            if typed in keys and not (single and keys[typed] == "tie"):
                return keys[typed]
            console.print(Text(f"{typed!r} is not one of these keys.", style="dim"))

    def _ask_places(self, question: Question, *, can_undo: bool) -> Key | Places:
        """Wait for the numbers of the items, the best first."""
        console, places = self.console, list[int]()
        undo = " · [bold]u[/bold] undo" if can_undo else ""
        several = " · [bold]Enter[/bold] to stop there · [bold]Backspace[/bold]" if question.top > 1 else ""
        console.print(
            f"[bold]1[/bold] to [bold]{len(question.items)}[/bold]{several} · [bold]t[/bold] no difference · "
            f"[bold]s[/bold] skip{undo} · [bold]q[/bold] quit"
        )
        while True:
            typed = read_key()
            if typed in ("t", "s", "u", "q", "", "\x03", "\x04") and not (typed == "" and places):
                return KEYS[typed]
            if typed in ("\x7f", "\b"):
                del places[-1:]
            elif typed in ("\n", "\r"):
                if places:
                    return tuple(places)
            else:
                try:
                    # From a terminal one number at a time, otherwise a line with all of them.
                    said = read_places(typed, question.items)
                    if not isinstance(said, tuple) or set(said) & set(places):
                        raise InvalidInput(f"{typed!r} was chosen before.")
                    places += said
                except InvalidInput:
                    console.print(Text(f"{typed!r} is not a number that is left.", style="dim"))
                    continue
                if len(places) >= question.top or not sys.stdin.isatty():
                    return tuple(places[: max(question.top, 1)])
            hidden = self.blind or question.input is not None
            chosen = (f"{place}" if hidden else self.items.label(question.items[place - 1]) for place in places)
            console.print(Text(" > ".join(chosen)))

    def _shown_of(self, question: Question, name: str, sign: str) -> RenderableType:
        """An item, or what a system wrote for the input of the question, without its name."""
        if isinstance(self.items, SystemTable) and question.input is not None:
            output = Text(self.items.output(name, question.input))
            return output if question.about_set else Group(Text(sign, style="bold"), output)
        return self._card(name, sign)

    def _card(self, name: str, letter: str) -> RenderableType:
        items, width = self.items, 26
        title = letter if self.blind else items.label(name)
        shown = items.display(name)
        colour = items.colour(name)
        patch = [Text(" " * width, style=f"on {colour}")] * 5 if colour else []
        more = [Text(shown[column]) for column in ("text", "image") if column in shown]
        return Group(*patch, Align.center(Text(title, style="bold"), width=width), *more)


def _wanted(question: Question) -> str:
    """What a question about several items asks for, in words."""
    if not question.about_set:
        return "Which one do you like better?"
    if question.top == 1:
        return "Which one do you like best?"
    if question.top == len(question.items) - 1:
        return "In which order do you like them? The best first."
    return f"Which {question.top} do you like best? The best first."


@contextmanager
def keys_one_by_one() -> Iterator[None]:
    """Hand over every key at once and show none, from the first question to the last.

    Between two questions as well: a key that is typed while the next one is planned would otherwise be printed, and one
    typed before the terminal is switched would be lost.
    """
    try:
        import termios
        import tty
    except ImportError:  # Windows, whose console is read key by key in any case
        yield
        return
    if not sys.stdin.isatty():
        yield
        return
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    try:
        tty.setcbreak(number, termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def discard_typed() -> None:
    """Forget the keys typed so far: whoever typed them has not seen the question that comes now."""
    if not sys.stdin.isatty():
        return
    try:
        import termios
    except ImportError:
        console = _windows_console()
        while console is not None and console["kbhit"]():
            console["getwch"]()
    else:
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def read_key() -> str:
    """One key from a terminal, an arrow key as its escape sequence or name; from anything else one line."""
    if not sys.stdin.isatty():
        return _read_line()
    console = _windows_console()
    if console is not None:
        typed = console["getwch"]()
        return WINDOWS_KEYS.get(console["getwch"](), "?") if typed in ("\x00", "\xe0") else typed.lower()
    try:
        import termios  # noqa: F401 - without it a terminal hands over lines
    except ImportError:
        return _read_line()
    number = sys.stdin.fileno()
    pressed = os.read(number, 1)
    if pressed == b"\x1b" and select.select([number], [], [], ESCAPE_SECONDS)[0]:  # otherwise the key Escape itself
        return (pressed + os.read(number, 2)).decode("ascii", "replace")
    return pressed.decode("utf-8", "replace").lower()


def _read_line() -> str:
    """The word on the next line; empty at the end of the input."""
    return sys.stdin.readline().strip().lower()


def _windows_console() -> dict[str, Callable[[], Any]] | None:
    """The functions of the Windows console by name; None on other systems."""
    try:
        import msvcrt
    except ImportError:
        return None
    return vars(msvcrt)  # the checker of types knows them on Windows only
