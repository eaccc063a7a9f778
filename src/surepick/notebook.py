"""Ask in a notebook: buttons, texts, colours and images, one question after the other (extra `notebook`)."""

import base64
import mimetypes
from collections import deque
from collections.abc import Callable
from functools import partial
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from surepick.errors import InvalidInput, MissingExtra
from surepick.io.items import ItemTable
from surepick.io.systems import SystemTable
from surepick.session import Question, Session

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Names of the places, in buttons and cards."""

CARD = "flex:1 1 12rem;min-width:0;border:1px solid #8884;border-radius:.6rem;padding:.8rem;overflow-wrap:anywhere"


class AskWidget:
    """Asks what the session wants to know; every click is filed in the session before the next question is shown.

    `items` say what is shown of each item; by default only its name. With `blind` names are hidden. The last answer can
    be undone until the next one is given: the question after it is planned before it is filed.

    >>> widget = AskWidget(session, items)  # doctest: +SKIP
    >>> widget  # in a cell of its own  # doctest: +SKIP
    """

    def __init__(
        self, session: Session, items: ItemTable | None = None, *, question: str = "", blind: bool = False
    ) -> None:
        try:
            self._widgets: Any = import_module("ipywidgets")
        except ImportError:
            raise MissingExtra("Asking in a notebook needs ipywidgets; install surepick[notebook].") from None
        self.session = session
        self._items = items
        self._wanted = question
        self._blind = blind
        self._queue = deque(session.outstanding)
        self._last: Question | None = None
        self._picked: list[str] = []
        self._html = self._widgets.HTML()
        self._buttons = self._widgets.HBox(layout={"flex_flow": "row wrap"})
        self.widget: Any = self._widgets.VBox([self._html, self._buttons])
        self._show()

    def _ipython_display_(self) -> None:
        import_module("IPython.display").display(self.widget)

    @property
    def question(self) -> Question | None:
        """The question on the screen; None once there is none left."""
        return self._queue[0] if self._queue else None

    @property
    def html(self) -> str:
        """What is shown above the buttons."""
        return str(self._html.value)

    def answer(self, said: str) -> None:
        """Answer the question on the screen: the name of an item shown, "yes", "no", "tie" or "skip"."""
        question = self.question
        if question is None:
            raise InvalidInput(f"There is no open question to answer with {said!r}.")
        told: Any = said
        if question.about_set and said != "skip":
            self._picked.append(said)
            if len(self._picked) < question.top:
                self._show()
                return
            told = self._picked
        if len(self._queue) < 2:  # planned without this answer, which can be undone as long as no question follows it
            self._queue.extend(self.session.ask(1))
        if said == "skip":
            self.session.skip(question.id)
        else:
            self.session.tell(question, told)
        self._queue.popleft()
        self._last, self._picked = question, []
        if not self._queue:  # the policy may have waited for this answer
            self._queue.extend(self.session.ask(1))
        self._show()

    def undo(self) -> None:
        """Take the last answer back; its question is asked again."""
        if self._last is None:
            raise InvalidInput("There is no answer to undo.")
        self._queue.appendleft(self.session.undo(self._last.id))
        self._last, self._picked = None, []
        self._show()

    def _show(self) -> None:
        if not self._queue:
            self._queue.extend(self.session.ask(1))
        question = self.question
        if question is None:
            self._html.value = self.session.verdict()._repr_html_()
            self._buttons.children = ()
            return
        left = f"; {question.top - len(self._picked)} more to choose, the best first" if question.kind == "rank" else ""
        usual = "Do you like it?" if question.kind == "yes/no" else "Which one do you like better?"
        places = zip(question.items, LETTERS, strict=False)
        cards = "".join(self._card(question, name, letter) for name, letter in places)
        given = "" if question.input is None else f"<p><em>{escape(self._input(question.input))}</em></p>"
        self._html.value = (
            f'<div style="max-width:60rem"><p><strong>Question {question.id}:</strong> '
            f"{escape(self._wanted or usual)}{escape(left)}</p>{given}"
            f'<div style="display:flex;flex-wrap:wrap;gap:.8rem">{cards}</div></div>'
        )
        self._buttons.children = tuple(self._choices(question))

    def _choices(self, question: Question) -> list[Any]:
        """A button for every answer."""
        if question.kind == "yes/no":
            words = [("No", "no"), ("Yes", "yes")]
        else:
            left = [(letter, name) for name, letter in zip(question.items, LETTERS, strict=False)]
            words = [(letter, name) for letter, name in left if name not in self._picked]
        words += [("Tie", "tie")] if question.kind == "compare" else []
        undo = [self._button("Undo", question, self.undo)] if self._last is not None else []
        words.append(("Skip", "skip"))
        return [*(self._button(text, question, partial(self.answer, word)) for text, word in words), *undo]

    def _button(self, text: str, question: Question, act: Callable[[], None]) -> Any:
        """A button below a question. The second click of a double click comes when another is asked, and is ignored."""
        picked = len(self._picked)

        def clicked(_: object) -> None:
            if question is self.question and picked == len(self._picked):
                act()

        button = self._widgets.Button(description=text)
        button.on_click(clicked)
        return button

    def _card(self, question: Question, name: str, letter: str) -> str:
        """What is shown of an item, or of the output of a system, whose name is always hidden."""
        single = question.kind == "yes/no"
        if isinstance(self._items, SystemTable) and question.input is not None:
            output = _text(self._items.output(name, question.input))
            return f'<div style="{CARD}"><strong>{letter}</strong><p>{output}</p></div>'
        shown = {} if self._items is None else self._items.display(name)
        label = shown.get("label", name)
        title = letter if self._blind else label if single else f"{letter}: {label}"
        colour = None if self._items is None else self._items.colour(name)
        patch = f'<div style="height:5rem;border-radius:.4rem;background:{escape(colour)}"></div>' if colour else ""
        source = _source(shown["image"]) if "image" in shown else ""
        picture = f'<img alt="" style="display:block;max-width:100%" src="{escape(source)}">' if source else ""
        text = f"<p>{_text(shown['text'])}</p>" if "text" in shown else ""
        return f'<div style="{CARD}">{patch}{picture}<strong>{escape(title)}</strong>{text}</div>'

    def _input(self, given: str) -> str:
        return self._items.text(given) if isinstance(self._items, SystemTable) else given


def _text(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def _source(image: str) -> str:
    """An image as a notebook can show it: a file becomes part of the page; other addresses stay as they are."""
    file = Path(image)
    if image.startswith(("data:image/", "http://", "https://")) or not file.is_file():
        return image if not image.startswith(("javascript:", "data:text")) else ""
    kind = mimetypes.guess_type(image)[0] or "image/png"
    return f"data:{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"
