"""A judge's whole cycle under load: take one question, answer it. Beside it, a bare handler on the same database.

    python tests/system/service_load.py sqlite --judges 50 200 --seconds 10

Judges answer without a pause, 20 to a study of 60 items with the default policy, so what is measured is how much work
the service does in a second. The bare server is what somebody would write in ten minutes with FastAPI: one request
reads a question, another inserts an answer. Both have one worker and run in the same minutes, in turn; the ratio is
ours to the bare one's, in cycles per second. Ours has been under load for a few seconds before.

Then the same judges think for two seconds before each answer, as quick people do, and the time until the next question
is there is what each of them feels. At the end the whole service's memory is compared over many answers (`--answers`).
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from databases import fresh_database, postgres_server
from running_service import ADMIN, TOKEN, RunningService, free_port

PER_STUDY = 20
"""Judges of one study."""

ITEMS = 60
FEATURES = 5
THINKING = 2.0
"""Seconds a judge thinks on average where that is timed."""

Cycle = Callable[["Connection", "Times"], Awaitable[None]]


class Times:
    """How long requests took, by kind."""

    def __init__(self) -> None:
        self.take: list[float] = []
        self.answer: list[float] = []
        self.statuses: Counter[int] = Counter()

    def summary(self, seconds: float) -> dict[str, Any]:
        shown: dict[str, Any] = {"cycles_per_second": round(len(self.answer) / seconds, 1)}
        for kind, taken in (("next_question", self.take), ("answer", self.answer)):
            p50, p99 = np.quantile(taken, [0.5, 0.99]) if taken else (np.nan, np.nan)
            shown |= {f"{kind}_p50_ms": round(1000 * float(p50)), f"{kind}_p99_ms": round(1000 * float(p99))}
        return shown


class Connection:
    """One judge's connection, with as little work for the client as there can be."""

    def __init__(self, port: int, token: str = "x" * 100) -> None:
        self.port, self.token = port, token

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def post(self, path: str, body: Any = None, *, token: str | None = None) -> Any:
        content = b"" if body is None else json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token or self.token}\r\n"
        kind = f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        self.writer.write((head + kind).encode() + content)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        reply = await self.reader.readexactly(length)
        assert answer[9:11] == b"20", answer + reply
        return json.loads(reply)


async def drive(people: list[tuple[Connection, Cycle]], seconds: float, thinking: float = 0.0) -> dict[str, Any]:
    """All judges at once, for so long."""
    await asyncio.gather(*(connection.open() for connection, _ in people))
    times, begun = Times(), time.perf_counter()

    async def judge(connection: Connection, cycle: Cycle) -> None:
        if thinking:
            await asyncio.sleep(random.uniform(0, thinking))
        while time.perf_counter() < begun + seconds:
            await cycle(connection, times)
            if thinking:
                await asyncio.sleep(random.uniform(0.5, 1.5) * thinking)

    await asyncio.gather(*(judge(*one) for one in people))
    for connection, _ in people:
        connection.writer.close()
    return times.summary(time.perf_counter() - begun)


def our_cycle(study: str) -> Cycle:
    """Take one question, waiting for it if need be, and answer it. A judge who has had all that helps is replaced."""

    async def cycle(connection: Connection, times: Times) -> None:
        begun, questions = time.perf_counter(), list[Any]()
        while not questions:
            taken = await connection.post(f"/studies/{study}/questions")
            assert taken["open"], "the study is decided; make it harder"
            questions = taken["questions"]
            if taken["exhausted"] and not questions:
                invited = await connection.post(f"/studies/{study}/judges", {}, token=TOKEN)
                connection.token, begun = invited["token"], time.perf_counter()
        there = time.perf_counter()
        times.take.append(there - begun)
        await connection.post(f"/studies/{study}/answers", {"question": questions[0]["id"], "answer": coin()})
        times.answer.append(time.perf_counter() - there)

    return cycle


async def bare_cycle(connection: Connection, times: Times) -> None:
    begun = time.perf_counter()
    question = await connection.post("/question")
    there = time.perf_counter()
    times.take.append(there - begun)
    await connection.post("/answers", {"question": question["question"], "answer": coin()})
    times.answer.append(time.perf_counter() - there)


def coin() -> str:
    return random.choice("ab")  # nearly equal items: no study of this test is ever decided


@contextmanager
def bare_server(url: str, port: int) -> Iterator[None]:
    """The bare handlers on the same database."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "uvicorn", "--factory", "service_load:bare_app", "--port", str(port)),
            *("--log-level", "warning", "--no-access-log"),
        ],
        cwd=Path(__file__).parent,
        env=os.environ | {"BARE_DATABASE": url, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
    )
    while True:
        try:
            httpx.get(f"http://127.0.0.1:{port}/openapi.json", timeout=5)
            break
        except httpx.HTTPError:
            time.sleep(0.05)
    yield
    process.send_signal(signal.SIGTERM)
    process.wait()


def bare_app() -> Any:
    """One handler that reads a row, and one that inserts a row and says so."""
    import sqlalchemy as sa
    from fastapi import FastAPI
    from pydantic import BaseModel

    from surepick.store import Database

    database = Database(os.environ["BARE_DATABASE"])
    table = sa.Table(
        "bare",
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("question", sa.Text),
        sa.Column("answer", sa.Text),
    )
    with database.writing() as connection:
        table.create(connection, checkfirst=True)
        connection.execute(sa.insert(table).values(question="0123456789abcdef", answer=""))

    class Question(BaseModel):
        question: str

    class Answer(BaseModel):
        question: str
        answer: str

    app = FastAPI()

    @app.post("/question")
    def question() -> Question:
        with database.reading() as connection:
            row = connection.execute(sa.select(table).order_by(table.c.id).limit(1)).one()
        return Question(question=row.question)

    @app.post("/answers")
    def answer(body: Answer) -> Answer:
        with database.writing() as connection:
            connection.execute(sa.insert(table).values(question=body.question, answer=body.answer))
        return body

    return app


def prepare(service: RunningService, judges: int) -> list[tuple[Connection, Cycle]]:
    """Studies and their judges."""
    chance = np.random.default_rng(0)
    people: list[tuple[Connection, Cycle]] = []
    with httpx.Client(base_url=service.url, timeout=120) as client:
        while len(people) < judges:
            features = chance.normal(size=(ITEMS, FEATURES)).round(3).tolist()
            items = [{"name": str(number), "features": row} for number, row in enumerate(features)]
            study = client.post("/studies", headers=ADMIN, json={"title": "load", "items": items}).json()["id"]
            for _ in range(min(judges - len(people), PER_STUDY)):
                token = client.post(f"/studies/{study}/judges", headers=ADMIN, json={}).json()["token"]
                people.append((Connection(service.port, token), our_cycle(study)))
    return people


def memory(service: RunningService) -> dict[str, float]:
    """Megabytes of every process."""
    return {name: round(process.memory_info().rss / 1e6) for name, process in service.processes().items()}


def processor_seconds(service: RunningService) -> dict[str, float]:
    """What every process has used so far."""
    return {name: sum(process.cpu_times()[:2]) for name, process in service.processes().items()}


def measured(service: RunningService, people: list[tuple[Connection, Cycle]], *how: float) -> dict[str, Any]:
    """What `drive` found, and the processor time of every process, whatever else the machine does."""
    before, begun = processor_seconds(service), time.perf_counter()
    found = asyncio.run(drive(people, *how))
    cycles = found["cycles_per_second"] * (time.perf_counter() - begun)
    used = {
        name: round(1000 * (after - before[name]) / cycles, 2) for name, after in processor_seconds(service).items()
    }
    return found | {"processor_ms_per_cycle": used}


def load(url: str, *, judges: list[int], seconds: float, answers: int) -> dict[str, Any]:
    """All measurements on one database."""
    service = RunningService(url)
    found: dict[str, Any] = {}
    try:
        service.start()
        port = free_port()
        for count in judges:
            busy = round(os.getloadavg()[0], 1)  # of this machine: figures of a busy one say little
            people = prepare(service, count)
            asyncio.run(drive(people, seconds / 2))  # planners learn how many questions are wanted
            with bare_server(url, port):
                # Ours between two halves of the bare one: whatever else this machine does, it does to both.
                halves = [asyncio.run(drive(bare(port, count), seconds / 2))]
                ours = measured(service, people, seconds)
                halves.append(asyncio.run(drive(bare(port, count), seconds / 2)))
            speed = sum(half["cycles_per_second"] for half in halves) / 2
            thinking = measured(service, people, max(seconds, 4 * THINKING), THINKING)
            found[f"{count} judges"] = {
                "load_before": busy,
                "bare": halves,
                "ours": ours,
                "ratio": round(ours["cycles_per_second"] / speed, 2),
                f"thinking {THINKING:g} s": thinking,
            }
        if answers:
            found["memory"] = memory_over(service, people, answers)
        service.stop()
    finally:
        service.kill_all()
    return found


def bare(port: int, count: int) -> list[tuple[Connection, Cycle]]:
    return [(Connection(port), bare_cycle) for _ in range(count)]


def memory_over(service: RunningService, people: list[tuple[Connection, Cycle]], answers: int) -> list[Any]:
    """What the processes use after each tenth of this many answers."""
    seen: list[Any] = [{"answers": 0, "megabytes": memory(service)}]
    given = 0.0
    while given < answers:
        begun = time.perf_counter()
        summary = asyncio.run(drive(people, 10.0))
        given += summary["cycles_per_second"] * (time.perf_counter() - begun)
        if given >= answers * len(seen) / 10:
            seen.append({"answers": round(given), "megabytes": memory(service)} | summary)
            print(seen[-1], file=sys.stderr, flush=True)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", choices=["sqlite", "postgresql"])
    parser.add_argument("--judges", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--answers", type=int, default=0, help="compare the memory over this many further answers")
    chosen = vars(parser.parse_args())
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder}/load.db"
        if (kind := chosen.pop("database")) == "postgresql":
            url = stack.enter_context(fresh_database(stack.enter_context(postgres_server())))
        print(json.dumps({"database": kind} | load(url, **chosen), indent=2))


if __name__ == "__main__":
    main()
