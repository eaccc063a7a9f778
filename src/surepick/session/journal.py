"""The log of a session: an append-only file of JSON lines, and what can be read from its events."""

import json
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surepick.answer import code_of
from surepick.checks import Answers
from surepick.errors import InvalidInput
from surepick.identify import Problem
from surepick.identify.sets import checked_order, neighbours_decided

Event = dict[str, Any]


class Journal:
    """Appends events to a file; each is handed to the operating system before `append` returns.

    What a crash left of a last line without its end is cut off first: it was never acknowledged. `default` turns values
    that JSON does not know into ones that it does, as in `json.dumps`.
    """

    def __init__(self, path: Path, *, default: Callable[[Any], Any] | None = None) -> None:
        self.path = path
        self._default = default
        if path.exists():
            _drop_torn_line(path)
        self._file = path.open("a", encoding="utf-8", newline="\n")  # the same bytes on every system
        # A session needs no closing: the file is closed with the last reference to its journal.
        self._close = weakref.finalize(self, self._file.close)

    def append(self, event: Mapping[str, Any]) -> None:
        """Write one event as a line. Numbers that are not finite are refused: JSON has none, and NaN never replays."""
        try:
            line = json.dumps(event, default=self._default, allow_nan=False)
        except ValueError:
            key, value = next((key, value) for key, value in event.items() if not self._is_json(value))
            raise InvalidInput(f"{key} must hold finite numbers to be logged, got {str(value)[:100]}.") from None
        self._file.write(line + "\n")
        self._file.flush()

    def _is_json(self, value: Any) -> bool:
        try:
            json.dumps(value, default=self._default, allow_nan=False)
        except ValueError:
            return False
        return True

    def close(self) -> None:
        """Close the file; nothing more can be appended."""
        self._close()


def read_journal(path: Path) -> list[Event]:
    """All events of the file; a last line without its end is left out."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return list(parse_events(lines))


def parse_events(lines: Iterable[str | Event]) -> Iterator[Event]:
    """Events from lines of JSON, or as they are; empty lines are ignored, and anything else is refused by number."""
    return (_event(line, number) for number, line in enumerate(lines, 1) if line and line != "\n")


def answers_of(problem: Problem, log: Iterable[Mapping[str, Any]]) -> Answers:
    """The log as the table that checks read: questions with an answer, a tie or a skip, in the order asked.

    It ends before the first open question, so that later answers come after the earlier rows and not among them; an
    order by arrival would not do, since how long an answer takes may depend on the answer. Late answers are left out:
    they are no evidence, and would come among earlier rows. So are repeated answers that do not count. Otherwise the
    last word on a question counts.
    """
    asked: dict[int, tuple[int, bool, list[int]]] = {}  # measurement, swapped, order of a set
    still_open: set[int] = set()
    said: dict[int, Any] = {}
    judges: dict[int, str | None] = {}
    for event in log:
        kind, number = event["event"], event.get("id", 0)
        if kind == "question":
            asked[number] = event["measurement"], event.get("swapped", False), event.get("order", [])
            still_open.add(number)
        elif kind == "undo":
            said.pop(number, None)  # nothing was read from a late answer
            still_open.add(number)
        elif kind in ("answer", "tie", "skip"):
            still_open.discard(number)
            if event.get("late") or event.get("void"):
                continue
            said[number] = event["answer"] if kind == "answer" else "tie" if kind == "tie" else None
            judges[number] = event.get("judge")
    end = min(still_open, default=len(asked) + 1)
    rows = sorted(number for number in said if number < end)
    if problem.show > 2:
        return _decided_by_orders(problem, [(asked[row][0], asked[row][2], said[row], judges[row]) for row in rows])
    where = np.array([asked[row][0] for row in rows], dtype=np.int64)
    swapped = np.array([asked[row][1] for row in rows], dtype=np.bool_)
    items = problem.about[where]
    return Answers(
        np.where(swapped[:, None], -1.0, 1.0) * problem.vectors(where),
        np.array([code_of(said[row]) for row in rows], dtype=np.int64),
        np.where(swapped[:, None], items[:, ::-1], items),
        problem.names,
        tuple(judges[row] for row in rows),
        shuffled=not problem.position,  # with a position coordinate the policy chooses the order, and chance does not
    )


def _decided_by_orders(problem: Problem, rows: Sequence[tuple[int, list[int], Any, str | None]]) -> Answers:
    """Picks and rankings as the comparisons that they decide, of pairs of neighbours in the order shown.

    A row has the measurement, the order shown, the answer and the judge. In the model of Plackett and Luce these are
    logistic answers, given all before them; a tie decides none.
    """
    pairs, judges = list[tuple[int, int, int]](), list[str | None]()
    for measurement, order, answer, judge in rows:
        if isinstance(answer, list):
            shown = [problem.shown(measurement)[place] for place in order]
            places = checked_order([place - 1 for place in answer], len(shown))
            for first, second, won in neighbours_decided(places, len(shown)):
                pairs.append((shown[first], shown[second], won))
                judges.append(judge)
    items = np.array([pair[:2] for pair in pairs], dtype=np.int64).reshape(-1, 2)
    return Answers(
        problem.items[items[:, 0]] - problem.items[items[:, 1]],
        np.array([pair[2] for pair in pairs], dtype=np.int64),
        items,
        problem.names,
        tuple(judges),
        shuffled=True,
    )


def _event(line: str | Event, number: int) -> Event:
    if isinstance(line, dict):
        return line
    try:
        event = json.loads(line)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"Line {number} of the log is not JSON ({error}); it may have been cut off.") from None
    if not isinstance(event, dict):
        raise InvalidInput(f"Line {number} of the log is not an event but {line[:60]!r}.")
    return event


def _drop_torn_line(path: Path) -> None:
    with path.open("rb+") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.truncate(whole)
