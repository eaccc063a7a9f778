"""A language model as a judge: which of two texts or images is better, over any OpenAI-compatible server.

What it is shown is in `model_prompts`, how it is called in `model_calls`, and how its replies are read in
`model_replies`. Every reply is kept in a cache, by what was asked and how often it had been asked before. At
temperature 0 a repeated question takes the first reply again, since the model would say the same. Such answers are not
independent, which the assumption "winner" allows and "features" does not (docs/language-models.md).
"""

import asyncio
import base64
import mimetypes
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import KW_ONLY, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from surepick.answer import Answer
from surepick.errors import InvalidInput
from surepick.io.items import ItemTable
from surepick.io.systems import SystemTable
from surepick.judges.in_flight import in_order
from surepick.judges.listwise import ListPrompt, SaidOfSet
from surepick.judges.model_calls import (
    Body,
    CallFailed,
    ModelFailed,
    ModelServer,
    ReplyCache,
    address,
    event_loop,
    key_of,
)
from surepick.judges.model_prompts import Candidate, Prompt
from surepick.judges.model_replies import Said, soft_probability
from surepick.session import Question, Reply, Session
from surepick.session.find import GIVE_UP

Kind = Literal["answer", "unreadable", "refused", "failed"]

OPENAI = "https://api.openai.com/v1"

MOST_REPEATS = 1_000
"""Questions in a row that had all been answered before, at temperature 0, after which the search ends: a few dozen of
them would have proved a winner."""

MOST_UNDECIDED = 100
"""Replies in a row that choose neither item, after which the search ends."""

EQUAL = "[not asked: both texts are the same]"
"""What the log has in place of a reply."""

PER_TOKEN = 4
"""Characters of a token, where the server does not count them; heuristic."""


class Reading(NamedTuple):
    """What one call brought."""

    said: Said | SaidOfSet | None
    probability: float | None
    """Of A, where the server gave log-probabilities."""
    raw: str
    cost: float | None
    repeated: bool
    """Whether it is the reply to an earlier question, taken again."""
    cut_off: bool


class Asking(NamedTuple):
    """A prompt, its name in the cache, and how often it has been asked with this one."""

    prompt: Prompt | ListPrompt
    key: str
    draw: int


@dataclass(frozen=True)
class ModelReply(Reply):
    """A reply with what became of it, for counting."""

    kind: Kind = "answer"
    repeated: bool = False
    """Whether the same was said to the same question before."""


@dataclass(eq=False)
class LanguageModel:
    """Asks a model which of two items is better; several questions are out at once.

    Args:
        model: the model's name at the server.
        items: what to show of each item: a table of items (columns text, image, label), or a text for every name.
            Without it the model sees the names. Of a table of systems it sees the input and the two outputs.
        url: the server's base URL or full path; otherwise OPENAI_BASE_URL, or OpenAI's own server.
        api_key: otherwise OPENAI_API_KEY; servers on your own machine may need none.
        rubric: by which criteria to judge.
        swap: ask in both orders; the answer counts if both agree, and is a tie otherwise. Twice the calls.
        at_once: most questions out at the same time.
        temperature: at 0 a repeated question takes the reply from the cache; above 0 every question is a new call.
        max_tokens: most tokens of a reply; by default the server's own limit.
        price_in, price_out: prices of a million tokens sent and received. Without them no cost is counted.
        cache: a file that keeps every reply; a second run takes its replies from there.
        timeout: seconds to wait for a reply.
        retries: how often a failed call is made again.
        calls_per_minute: most calls per minute, retries included.
        most_unreadable: replies that cannot be read after which the search ends.
        seed: answers that are drawn from log-probabilities depend on it and on the question's number.
        inputs: the input that both outputs of a question answer, shown above them.

    A reply with log-probabilities gives a probability p that the first item is better, which counts as a score by
    itself. For policies that take only 0 and 1 the answer is drawn: 1 with probability p. The draw has the mean p, so
    whatever holds for p on average holds for the answer (docs/language-models.md).

    >>> judge = LanguageModel("some-model", {"short": "Yes.", "long": "Yes, because."}, url="http://localhost:8000")
    >>> judge.server.url
    'http://localhost:8000/v1/chat/completions'
    """

    model: str
    items: ItemTable | Mapping[str, str] | None = None
    _: KW_ONLY
    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    rubric: str = ""
    swap: bool = False
    at_once: int = 8
    temperature: float = 0.0
    max_tokens: int | None = None
    price_in: float | None = None
    price_out: float | None = None
    cache: str | PathLike[str] | None = None
    timeout: float = 120.0
    retries: int = 6
    calls_per_minute: float | None = None
    most_unreadable: int = 20
    seed: int = 0
    inputs: Callable[[Question], str] | None = None

    def __post_init__(self) -> None:
        if not self.model:
            raise InvalidInput("The language model needs a name, such as the one your server lists; got ''.")
        if (self.price_in is None) != (self.price_out is None):
            raise InvalidInput("Give both prices or none: --price-in and --price-out, per million tokens.")
        for name in ("at_once", "most_unreadable"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be at least 1, got {getattr(self, name)!r}.")
        if not 0 <= self.temperature <= 2:
            raise InvalidInput(f"temperature must be from 0 to 2, got {self.temperature!r}.")
        if self.calls_per_minute is not None and self.calls_per_minute <= 0:
            raise InvalidInput(f"calls_per_minute must be positive, got {self.calls_per_minute!r}.")
        where = address(self.url or os.environ.get("OPENAI_BASE_URL") or OPENAI)
        key = self.api_key or os.environ.get("OPENAI_API_KEY")
        self.server = ModelServer(where, key, self.timeout, self.retries, self.calls_per_minute)
        self.replies_kept = ReplyCache.at(self.cache)
        self.counts: Counter[str] = Counter()
        self.example = ""
        self._asked: Counter[str] = Counter()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._images: dict[str, str] = {}
        self._failures = self._repeats = self._undecided = 0

    def replies(self, next_question: Callable[[], Question | None]) -> Iterator[tuple[Question, Reply]]:
        """Ask the model. Raises ModelFailed where the search cannot go on."""
        self.server.open()
        self._locks.clear()
        with event_loop(self.server.close) as submit:

            def ask(question: Question) -> "Future[Reply]":
                asked = [self._asking(prompt) for prompt in self._prompts(question)]
                return submit(self._ask(question, asked))

            for question, reply in in_order(ask, next_question, self.at_once):
                yield question, reply  # filed before anything ends the search: it was paid for
                self._check_progress(cast("ModelReply", reply))

    def resume(self, session: Session) -> None:
        """Count the questions that a session had answered before: none of their replies may be taken for a new one."""
        outstanding = {question.id for question in session.outstanding}
        for question in session.questions.values():
            if question.id not in outstanding:
                for prompt in self._prompts(question):
                    self._asking(prompt)

    @property
    def summary(self) -> str:
        """What was asked and what came back, in a sentence."""
        calls = "1 call" if self.server.calls == 1 else f"{self.server.calls:,} calls"
        parts = [calls, f"{self.counts['cached']:,} taken from the cache"]
        parts += [f"{self.counts[kind]:,} {kind}" for kind in ("unreadable", "refused") if self.counts[kind]]
        parts += (
            [f"{self.counts['equal']:,} without a call as the texts are equal (ties)"] if self.counts["equal"] else []
        )
        example = f", such as {self.example!r}" if self.example else ""
        return f"{self.model}: {', '.join(parts)}{example}."

    def _asking(self, prompt: Prompt | ListPrompt) -> Asking:
        """Count one more asking of this prompt."""
        key = key_of(self.server.url, self.model, prompt.messages(False), self.temperature, self.max_tokens)
        self._asked[key] += 1
        return Asking(prompt, key, self._asked[key])

    async def _ask(self, question: Question, asked: list[Asking]) -> Reply:
        """One answer from one call, or from two in both orders."""
        if len(set(asked[0].prompt.candidates)) == 1:  # systems often write the same; a call could not say more
            self.counts["equal"] += 1
            return ModelReply("tie", self.model, None if self.price_in is None else 0.0, raw=EQUAL)
        readings: list[Reading] = []
        try:
            for asking in asked:
                readings.append(await self._call(asking))
                if readings[-1].said in (None, "REFUSED"):
                    break  # a second call could not make an answer of it
        except CallFailed as failed:
            return self._reply(None, readings, trouble=str(failed), kind="failed")
        last = readings[-1]
        if last.said is None:
            why = "was cut off (finish_reason length)" if last.cut_off else "could not be read"
            trouble = f"the reply {why}: {_shortened(last.raw)!r}"
            return self._reply(None, readings, trouble=trouble, kind="unreadable")
        if last.said == "REFUSED":
            trouble = f"the model refused: {_shortened(last.raw)!r}"
            return self._reply(None, readings, trouble=trouble, kind="refused")
        if isinstance(last.said, tuple):
            return self._reply(last.said, readings)
        if all(reading.probability is not None for reading in readings):
            # Of the first item, whichever letter it had: in the second call it is B.
            chances = [reading.probability or 0.0 for reading in readings]
            probability = chances[0] if len(chances) == 1 else (chances[0] + 1 - chances[1]) / 2
            drawn = np.random.default_rng([self.seed, question.id, 2]).random() < probability
            return self._reply(int(drawn), readings, probability=probability)
        answers = [_answer(cast("Said", reading.said), swapped=bool(place)) for place, reading in enumerate(readings)]
        return self._reply(answers[0] if len(set(answers)) == 1 else "tie", readings)

    def _reply(
        self,
        answer: Answer,
        readings: list[Reading],
        *,
        trouble: str = "",
        probability: float | None = None,
        kind: Kind = "answer",
    ) -> ModelReply:
        raw = "\n\n[in the other order]\n\n".join(reading.raw for reading in readings)
        costs = [reading.cost for reading in readings if reading.cost is not None]
        cost = sum(costs) if costs else None
        repeated = kind != "failed" and all(reading.repeated for reading in readings)
        return ModelReply(answer, self.model, cost, trouble, raw or None, probability, kind, repeated)

    def _check_progress(self, reply: ModelReply) -> None:
        """Raise where going on would only cost money or time."""
        self._failures = self._failures + 1 if reply.trouble else 0
        self._undecided = self._undecided + 1 if reply.answer in (None, "tie") else 0
        self._repeats = self._repeats + 1 if reply.repeated else 0
        if not reply.repeated:
            self.counts[reply.kind] += 1
        if reply.kind == "unreadable":
            self.example = _shortened(reply.raw or "")
        if self.counts["unreadable"] >= self.most_unreadable:
            raise ModelFailed(
                f"{self.counts['unreadable']} replies of {self.model} could not be read, so the search ended; the last "
                f"one: {self.example!r}. Try another model or a rubric that asks for a plain answer."
            )
        if self._failures >= GIVE_UP * self.at_once:
            raise ModelFailed(
                f"The last {self._failures} questions to {self.model} got no answer, so the search ended; the last: "
                f"{reply.trouble}."
            )
        if self._undecided >= MOST_UNDECIDED:
            raise ModelFailed(
                f"The last {MOST_UNDECIDED} replies of {self.model} chose neither item, so the search ended; a rubric "
                "that says what matters may help."
            )
        if self._repeats >= MOST_REPEATS:
            raise ModelFailed(
                f"{self.model} has answered every question that matters at temperature 0, and no item wins all its "
                "comparisons clearly; try --temperature 1, --epsilon, or a rubric that says what matters."
            )

    async def _call(self, asking: Asking) -> Reading:
        """The reply to a prompt: from the cache where it is there, else from the server."""
        prompt, key, draw = asking
        # One at a time for each prompt: at temperature 0 a question that is asked twice at once is paid for once.
        async with self._locks[key] if self.temperature == 0 else asyncio.Lock():
            first = self.replies_kept.get(key, 1)
            # The server may have refused to set a temperature; then replies vary, and each asking needs its own.
            fixed = first is not None and self.temperature == 0 and first["temperature"] == 0
            record = first if fixed else self.replies_kept.get(key, draw)
            if record is not None:
                self.counts["cached"] += 1
                reading = self._reading(prompt, record["reply"], None if self.price_in is None else 0.0)
                return reading._replace(repeated=fixed and draw > 1 and reading.probability is None)
            options: Body = {
                "temperature": self.temperature,
                "max_tokens": self.max_tokens,
                "response_format": prompt.response_format,
                "logprobs": True,
            }
            body, temperature = await self.server.complete(
                lambda structured: {"model": self.model, "messages": prompt.messages(structured), "stream": False},
                options,
            )
            # Nothing is awaited between the reply and the cache: a reply that was paid for is kept. At temperature 0 it
            # is the reply to every asking, also where the file of an earlier run is gone.
            self.replies_kept.put(key, 1 if self.temperature == temperature == 0 else draw, temperature, body)
            return self._reading(prompt, body, self._cost(body, prompt))

    def _reading(self, prompt: Prompt | ListPrompt, body: Body, cost: float | None) -> Reading:
        """What a server's reply says."""
        choice = _dict(body["choices"][0])
        message = _dict(choice.get("message"))
        text, refusal = _text(message), message.get("refusal")
        cut_off = choice.get("finish_reason") == "length"
        said: Said | SaidOfSet | None
        if refusal or choice.get("finish_reason") == "content_filter":
            said, text = "REFUSED", str(refusal or text)
        else:
            said = None if cut_off else prompt.read(text)
        probability = None
        if isinstance(prompt, Prompt) and said in ("A", "B", "TIE"):
            probability = soft_probability(_dict(choice.get("logprobs")).get("content"), said)
        return Reading(said, probability, text, cost, False, cut_off)

    def _cost(self, body: Body, prompt: Prompt | ListPrompt) -> float | None:
        """What the call cost, from the server's count of tokens, or from lengths where it does not count."""
        if self.price_in is None or self.price_out is None:
            return None
        used = _dict(body.get("usage"))
        sent, received = used.get("prompt_tokens"), used.get("completion_tokens")
        if not isinstance(sent, int | float) or not isinstance(received, int | float):
            sent = len(str(prompt.messages(True))) / PER_TOKEN
            received = len(str(body["choices"][0])) / PER_TOKEN
        return float((sent * self.price_in + received * self.price_out) / 1e6)

    def _prompts(self, question: Question) -> list[Prompt | ListPrompt]:
        """The pair as it is shown, and with `swap` also the other way round; or all items of a set."""
        if question.about_set:
            if self.swap:
                raise InvalidInput("swap asks about two items in both orders; for picks and rankings leave it out.")
            candidates = tuple(self._candidate(name, question.input) for name in question.items)
            return [ListPrompt(candidates, question.top, self._input(question), self.rubric)]
        if question.first is None or question.second is None:
            raise InvalidInput("A language model compares two items, and this question shows one; use --kind pairs.")
        given = self._input(question)
        first, second = (self._candidate(name, question.input) for name in (question.first, question.second))
        shown = Prompt(first, second, given, self.rubric)
        return [shown, Prompt(second, first, given, self.rubric)] if self.swap else [shown]

    def _input(self, question: Question) -> str:
        """What the candidates of a question answer; "" where there is nothing of the kind."""
        given = "" if self.inputs is None else self.inputs(question)
        if isinstance(self.items, SystemTable) and question.input is not None:
            return given or self.items.text(question.input)
        return given

    def _candidate(self, name: str, given: str | None = None) -> Candidate:
        """What is shown of an item, or of a system for an input; its name only where there is nothing else."""
        if self.items is None:
            return Candidate(name)
        if isinstance(self.items, SystemTable) and given is not None:
            return Candidate(self.items.output(name, given))
        if isinstance(self.items, ItemTable):
            shown = self.items.display(name)
            image = self._image(shown["image"]) if "image" in shown else ""
            text = shown.get("text") or ("" if image else shown.get("label") or shown.get("colour") or name)
            return Candidate(text, image)
        if name not in self.items:
            raise InvalidInput(f"There is no text for the item {name!r}; items must have one for every name.")
        return Candidate(self.items[name])

    def _image(self, cell: str) -> str:
        """The image's URL; a file becomes a data URL."""
        if cell.startswith(("http://", "https://", "data:")):
            return cell
        if cell not in self._images:
            try:
                content = base64.b64encode(Path(cell).read_bytes()).decode()
            except OSError as error:
                raise InvalidInput(
                    f"The image {cell} cannot be read ({error.strerror}); give a URL or a file."
                ) from None
            self._images[cell] = f"data:{mimetypes.guess_type(cell)[0] or 'image/png'};base64,{content}"
        return self._images[cell]


def _answer(said: Said | None, *, swapped: bool) -> Answer:
    """The answer for the item shown first in the question."""
    return "tie" if said == "TIE" else int((said == "A") != swapped)


def _dict(value: Any) -> dict[str, Any]:
    """A JSON object, or an empty one where a server sent something else."""
    return value if isinstance(value, dict) else {}


def _text(message: Mapping[str, Any]) -> str:
    """A message's text, which may come in parts; without one, what the message has instead."""
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(str(_dict(part).get("text") or "") for part in content)
    if isinstance(content, str) and content.strip():
        return content
    others = [name for name, value in message.items() if value and name not in ("role", "content")]
    return f"[no text; the message has {', '.join(others) or 'nothing'}]"


def _shortened(text: str, most: int = 160) -> str:
    """The end of a reply, where its answer should be."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"… {line[-most:]}"
