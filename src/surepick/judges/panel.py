"""Who answers: a program that reads questions and writes answers, recorded votes, or a simulated judge."""

import json
import queue
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from surepick.errors import InvalidInput, SurepickError
from surepick.glm import probability_of_yes
from surepick.io.items import ItemTable
from surepick.judges import RecordedJudge
from surepick.session import Answer, Question

ANSWERS: dict[Any, Answer] = {
    **dict.fromkeys((1, True, "1", "a", "first", "yes"), 1),
    **dict.fromkeys((0, False, "0", "b", "second", "no"), 0),
    "tie": "tie",
    "skip": None,
}
"""What a program may say in the field `answer` or `winner`."""

PAUSE = 0.25
"""Seconds before the first retry; twice as long before each further one."""


@dataclass(frozen=True)
class Reply:
    """An answer, who gave it, and what it cost; or no answer and why."""

    answer: Answer
    judge: str | None = None
    cost: float | None = None
    """None where nobody is paid."""
    trouble: str = ""


class Panel(Protocol):
    """One or several judges."""

    @property
    def seats(self) -> int:
        """How many questions they can answer at the same time."""

    def ask(self, question: Question) -> Reply:
        """Answer a question; called from as many threads as there are seats."""

    def close(self) -> None:
        """Nothing more will be asked."""


@dataclass(frozen=True, eq=False)
class SimulatedPanel:
    """Answers drawn from θ; each depends on the seed and the question's number alone, so resuming changes nothing."""

    theta: NDArray[np.float64]
    seed: int
    seats: int = 1

    def ask(self, question: Question) -> Reply:
        """1 with probability 1/(1+exp(−xᵀθ))."""
        draw = np.random.default_rng([self.seed, question.id, 2]).random()
        return Reply(int(draw < probability_of_yes(question.vector @ self.theta)))

    def close(self) -> None:
        """Nothing to do."""


@dataclass(frozen=True, eq=False)
class RecordedPanel:
    """Recorded votes, one after the other."""

    judge: RecordedJudge
    seats: int = 1

    def ask(self, question: Question) -> Reply:
        """The next vote on this question."""
        return Reply(self.judge(question))

    def close(self) -> None:
        """Nothing to do."""


class JudgeFailed(SurepickError):
    """A judge's program ended, kept silent for too long, or wrote what is no answer."""


@dataclass(eq=False)
class ProgramPanel:
    """Processes of one command; each gets one question at a time as a line of JSON and writes one line of JSON back."""

    command: str
    items: ItemTable
    seats: int = 1
    timeout: float = 60.0
    retries: int = 2
    cost_per_question: float = 0.0
    _idle: "queue.SimpleQueue[_Program]" = field(default_factory=queue.SimpleQueue, init=False)
    _all: "list[_Program]" = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise InvalidInput(f"--judge {self.command!r} is no command line ({error}).") from None
        if not words:
            raise InvalidInput("--judge is empty; name a program that reads questions and writes answers.")
        self._all = [_Program(words, str(number + 1)) for number in range(self.seats)]
        for program in self._all:
            program.start()  # a command that is not there is refused before anything is asked
            self._idle.put(program)

    def ask(self, question: Question) -> Reply:
        """The answer of the next idle process; a failed one is started anew and asked again, `retries` times."""
        program = self._idle.get()
        try:
            line = json.dumps(question_for_judge(question, self.items))
            for attempt in range(self.retries + 1):
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
        """End all processes."""
        for program in self._all:
            program.stop()


def question_for_judge(question: Question, items: ItemTable) -> dict[str, Any]:
    """What a program gets to know of a question: `first` wins, or `second`; or yes/no about `first`."""
    assert question.first is not None  # problems made from items have items in all questions
    shown = {"first": items.display(question.first)}
    if question.second is None:
        return {"id": question.id, "kind": "item", "first": question.first, "show": shown}
    shown["second"] = items.display(question.second)
    return {"id": question.id, "kind": "pair", "first": question.first, "second": question.second, "show": shown}


def _answer(told: dict[str, Any], question: Question) -> Answer:
    said = told.get("answer", told.get("winner"))
    said = said.strip().lower() if isinstance(said, str) else said
    try:
        return ANSWERS[said]
    except (KeyError, TypeError):
        raise JudgeFailed(
            f"question {question.id} was answered {json.dumps(told)[:80]}; "
            'the field "answer" must be 1, 0, "a", "b", "yes", "no", "tie" or "skip"'
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
                start_new_session=True,  # Ctrl-C is ours; the programs are ended in order
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
            raise JudgeFailed(self._obituary()) from None
        end = time.monotonic() + timeout
        while True:
            try:
                told = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise JudgeFailed(f"no answer to question {number} within {timeout:g} seconds") from None
            if told is None:
                raise JudgeFailed(self._obituary())
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

    def _obituary(self) -> str:
        """What is known of the end of the process."""
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
