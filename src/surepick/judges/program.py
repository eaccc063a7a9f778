"""Programs as judges: each gets one question at a time as a line of JSON and writes one line of JSON back."""

import json
import os
import queue
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import IO, Any

from surepick.answer import Answer, read_answer
from surepick.errors import InvalidInput, SurepickError
from surepick.io.items import ItemTable
from surepick.io.systems import SystemTable
from surepick.judges.in_flight import as_they_come
from surepick.session import Question, Reply

VERSION = 1
"""Of the protocol, in questions about several items (docs/judges.md)."""

PAUSE = 0.25
"""Seconds before the first retry; twice as long before each further one."""


class JudgeFailed(SurepickError):
    """A judge's program ended, gave no answer in time, or wrote something that is not an answer."""


@dataclass(eq=False)
class ProgramJudge:
    """`at_once` processes of one command, which answer side by side."""

    command: str
    items: ItemTable
    at_once: int = 1
    timeout: float = 60.0
    retries: int = 2
    cost_per_question: float = 0.0
    _idle: "queue.SimpleQueue[_Program]" = field(default_factory=queue.SimpleQueue, init=False)
    _programs: "list[_Program]" = field(default_factory=list, init=False)
    _closed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        try:
            # Windows has backslashes in paths, which mean themselves there.
            words = shlex.split(self.command.replace("\\", "\\\\") if os.name == "nt" else self.command)
        except ValueError as error:
            raise InvalidInput(f"--judge {self.command!r} is not a valid command line ({error}).") from None
        if not words:
            raise InvalidInput("--judge is empty; name a program that reads questions and writes answers.")
        self._programs = [_Program(words, str(number + 1)) for number in range(self.at_once)]
        for program in self._programs:
            program.start()  # a command that does not exist is refused before anything is asked
            self._idle.put(program)

    def replies(self, next_question: Callable[[], Question | None]) -> Iterator[tuple[Question, Reply]]:
        """Keep every process busy; at the end, or when nobody wants more replies, the processes are ended."""
        pool = ThreadPoolExecutor(self.at_once)
        try:
            yield from as_they_come(lambda question: pool.submit(self.ask, question), next_question, self.at_once)
        finally:
            self.close()  # first, or the threads would wait for answers that nobody wants
            pool.shutdown()
            self.close()  # a thread may have started a process in between

    def ask(self, question: Question) -> Reply:
        """The answer of the next idle process; one that failed is restarted and asked again, `retries` times."""
        program, trouble = self._idle.get(), "the search has ended"
        try:
            line = json.dumps(question_for_judge(question, self.items))
            for attempt in range(self.retries + 1):
                if self._closed:
                    break
                if attempt:
                    time.sleep(PAUSE * 2 ** (attempt - 1))
                try:
                    told = program.exchange(line, question.id, self.timeout)
                    cost = float(told.get("cost", self.cost_per_question))
                    return Reply(_answer(told, question), str(told.get("judge", program.name)), cost)
                except JudgeFailed as failed:
                    trouble = str(failed)
                    program.stop()
            return Reply(None, program.name, 0.0, trouble)
        finally:
            self._idle.put(program)

    def close(self) -> None:
        """End all processes; nothing more will be asked."""
        self._closed = True
        for program in self._programs:
            program.stop()


def question_for_judge(question: Question, items: ItemTable) -> dict[str, Any]:
    """What a program is told of a question: which of `first` and `second`, which of `items`, or yes/no about `first`.

    Of systems it is told the input and the outputs, and not which systems they are of.
    """
    given, shown_as = {}, list(question.items)
    if isinstance(items, SystemTable) and question.input is not None:
        known = {"name": question.input, "text": items.text(question.input)}
        given, shown_as = {"input": known | dict(items.about.get(question.input, {}))}, list(_letters(question))
        contents = [{"text": items.output(name, question.input)} for name in question.items]
    else:
        contents = [items.display(name) for name in question.items]
    if question.about_set:
        about = {"version": VERSION, **given, "items": shown_as, "top": question.top, "show": contents}
        return {"id": question.id, "kind": question.kind, **about}
    assert question.first is not None  # problems made from items have items in all questions
    places = ("first", "second")[: len(contents)]
    return {
        "id": question.id,
        "kind": "pair" if len(contents) == 2 else "item",
        **given,
        **dict(zip(places, shown_as, strict=True)),
        "show": dict(zip(places, contents, strict=True)),
    }


def _letters(question: Question) -> str:
    """A letter for each output shown, in place of the names of systems."""
    return ascii_uppercase[: len(question.items)]


def _answer(told: dict[str, Any], question: Question) -> Answer:
    said = told.get("answer", told.get("ranking", told.get("winner")))
    shown = tuple(_letters(question)) if question.input is not None else question.items
    try:
        # A reply without an answer is a mistake of the program; a skip has a word of its own.
        answer = read_answer("" if said is None else said, shown)
        if isinstance(answer, tuple) and len(answer) > question.top and len(answer) < len(question.items):
            raise InvalidInput(f"The question asks for at most {question.top} places.")
        return answer[: question.top] if isinstance(answer, tuple) else answer
    except InvalidInput as error:
        why = str(error).rstrip(".")
        raise JudgeFailed(
            f"question {question.id} was answered {json.dumps(told)[:80]}; {why[0].lower()}{why[1:]}"
        ) from None


class _Program:
    """One process, started when needed."""

    def __init__(self, words: Sequence[str], name: str) -> None:
        self.name = name
        self._words = words
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._errors: IO[bytes] | None = None

    def start(self) -> None:
        """Start the process unless it runs."""
        if self._process is not None:
            return
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process, closed by stop
        try:
            self._process = subprocess.Popen(
                self._words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                encoding="utf-8",
                bufsize=1,
                # Ctrl-C reaches only us, and we end the programs in order: they have their own session, or on Windows
                # their own group.
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except OSError as error:
            self._errors.close()
            raise InvalidInput(
                f"The judge {self._words[0]!r} cannot be started ({error.strerror}); check the command."
            ) from None
        self._lines = queue.SimpleQueue()
        threading.Thread(target=_read_lines, args=(self._process.stdout, self._lines), daemon=True).start()

    def exchange(self, line: str, number: int, timeout: float) -> dict[str, Any]:
        """Write a question, and read until its answer comes."""
        self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except OSError:
            raise JudgeFailed(self._how_it_ended()) from None
        end = time.monotonic() + timeout
        while True:
            try:
                told = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise JudgeFailed(f"no answer to question {number} within {timeout:g} seconds") from None
            if told is None:
                raise JudgeFailed(self._how_it_ended())
            if not told.strip():
                continue
            try:
                fields = json.loads(told)
            except ValueError:
                raise JudgeFailed(f"the judge wrote {told.strip()[:80]!r}, which is not JSON") from None
            if not isinstance(fields, dict):
                raise JudgeFailed(f"the judge wrote {told.strip()[:80]!r}, which is not a JSON object")
            if fields.get("id", number) == number:  # an answer to an earlier question comes too late
                return fields

    def stop(self) -> None:
        """End the process; the next question starts a new one."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was still to be written has no reader
                    pipe.close()
        if self._errors is not None:
            self._errors.close()
        self._process = None

    def _how_it_ended(self) -> str:
        """How the process ended, with the last line of its standard error."""
        assert self._process is not None
        assert self._errors is not None
        try:
            code: int | None = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            code = None
        self._errors.seek(0)
        last = self._errors.read().decode("utf-8", "replace").strip().splitlines()[-1:]
        said = f": {last[0][:120]}" if last else ""
        return f"the judge ended with code {code}{said}" if code is not None else "the judge closed its output"


def _read_lines(source: IO[str] | None, lines: "queue.SimpleQueue[str | None]") -> None:
    """Hand over lines until the end, then None."""
    assert source is not None
    try:
        for line in source:
            lines.put(line)
    except (OSError, ValueError):  # closed while reading: the process was stopped
        pass
    lines.put(None)
