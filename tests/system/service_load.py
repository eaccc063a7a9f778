"""Answers per second under 200 concurrent judges, beside a bare handler that does one insert.

They are timed again while a study of 3,000 items is planned.

    python tests/system/service_load.py sqlite --judges 200 --seconds 5

Both servers are one uvicorn worker on the same database in the same run, in turn; the ratio is ours to the bare one's.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from databases import fresh_database, postgres_server
from running_service import ADMIN, RunningService

PER_STUDY = 20
"""Judges of one study."""

HELD = 100
"""Questions a judge leases before the clock runs: what is timed is answering."""

LARGE = 3_000
"""Items of the study that is planned meanwhile."""


class Connection:
    """One judge's connection, with as little work for the client as there can be."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def post(self, path: str, body: bytes, token: str) -> tuple[int, bytes]:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        return int(answer[9:12]), await self.reader.readexactly(length)


async def drive(port: int, requests: list[list[tuple[str, bytes, str]]], seconds: float) -> dict[str, Any]:
    """Every connection sends its requests one after the other; requests per second and how long they took."""
    connections = [Connection(port) for _ in requests]
    await asyncio.gather(*(connection.open() for connection in connections))
    end, times, statuses = time.perf_counter() + seconds, [], set()

    async def one(connection: Connection, mine: list[tuple[str, bytes, str]]) -> None:
        for path, body, token in mine:
            begun = time.perf_counter()
            if begun > end:
                return
            status, _ = await connection.post(path, body, token)
            times.append(time.perf_counter() - begun)
            statuses.add(status)

    begun = time.perf_counter()
    await asyncio.gather(*(one(*pair) for pair in zip(connections, requests, strict=True)))
    took = time.perf_counter() - begun
    for connection in connections:
        connection.writer.close()
    assert statuses == {200}, statuses
    p50, p99 = np.quantile(times, [0.5, 0.99])
    return {
        "requests": len(times),
        "per_second": round(len(times) / took),
        "p50_ms": round(1000 * float(p50), 1),
        "p99_ms": round(1000 * float(p99), 1),
        "largest_ms": round(1000 * max(times), 1),
    }


@contextmanager
def bare_server(url: str, port: int) -> Iterator[None]:
    """The bare handler on the same database."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "uvicorn", "--factory", "service_load:bare_app", "--port", str(port)),
            *("--log-level", "warning", "--no-access-log"),
        ],
        cwd=Path(__file__).parent,
        env=os.environ | {"BARE_DATABASE": url},
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
    """What somebody would write in ten minutes: a handler that inserts the answer and says so."""
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

    class Answer(BaseModel):
        question: str
        answer: str

    class Recorded(BaseModel):
        question: str
        answer: str
        turn: int

    app = FastAPI()

    @app.post("/answers")
    def answer(body: Answer) -> Recorded:
        with database.writing() as connection:
            connection.execute(sa.insert(table).values(question=body.question, answer=body.answer))
        return Recorded(question=body.question, answer=body.answer, turn=0)

    return app


def prepare(service: RunningService, judges: int) -> list[list[tuple[str, bytes, str]]]:
    """Studies and judges, each holding questions; the answers they are going to give."""
    items = [{"name": str(number), "features": [number / 9, (number * 7 % 10) / 9]} for number in range(10)]
    requests = []
    with httpx.Client(base_url=service.url, timeout=120) as client:
        for _ in range(max(1, judges // PER_STUDY)):
            body = {"title": "load", "items": items, "policy": "uniform", "options": {"kappa": 0.01}, "lease": 3_600}
            study = client.post("/studies", headers=ADMIN, json=body).json()["id"]
            for _ in range(min(judges, PER_STUDY)):
                token = client.post(f"/studies/{study}/judges", headers=ADMIN, json={}).json()["token"]
                held: list[Any] = []
                while len(held) < HELD:
                    taken = client.post(
                        f"/studies/{study}/questions?n={HELD}", headers={"Authorization": f"Bearer {token}"}
                    ).json()
                    assert taken["open"], taken
                    held = taken["questions"]
                requests.append(
                    [
                        (f"/studies/{study}/answers", json.dumps({"question": q["id"], "answer": "a"}).encode(), token)
                        for q in held
                    ]
                )
    return requests


def large_study(service: RunningService) -> None:
    """A study whose planning keeps a planner busy."""
    chance = np.random.default_rng(0)
    items = [{"name": str(n), "features": chance.normal(size=25).round(3).tolist()} for n in range(LARGE)]
    reply = httpx.post(f"{service.url}/studies", headers=ADMIN, json={"title": "large", "items": items}, timeout=120)
    assert reply.status_code == 201, reply.text


def load(url: str, *, judges: int, seconds: float) -> dict[str, Any]:
    """All measurements on one database."""
    service = RunningService(url)
    found: dict[str, Any] = {}
    try:
        service.start()
        ours = prepare(service, judges)
        half = [mine[: HELD // 2] for mine in ours]
        rest = [mine[HELD // 2 :] for mine in ours]
        time.sleep(2)  # planners are done with what was asked for
        port = service.port + 1
        with bare_server(url, port):
            body = json.dumps({"question": "0123456789abcdef", "answer": "a"}).encode()
            bare = [[("/answers", body, "x" * 100)] * HELD for _ in range(judges)]
            found["bare"] = asyncio.run(drive(port, bare, seconds))
            found["answers"] = asyncio.run(drive(service.port, half, seconds))
        found["ratio"] = found["answers"]["per_second"] / found["bare"]["per_second"]
        large_study(service)
        time.sleep(0.5)
        found["answers_while_planning"] = asyncio.run(drive(service.port, rest, seconds))
        service.stop()
    finally:
        service.kill_all()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", choices=["sqlite", "postgresql"])
    parser.add_argument("--judges", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=5.0)
    chosen = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder}/load.db"
        if chosen.database == "postgresql":
            url = stack.enter_context(fresh_database(stack.enter_context(postgres_server())))
        print(
            json.dumps(
                {"database": chosen.database} | load(url, judges=chosen.judges, seconds=chosen.seconds), indent=2
            )
        )


if __name__ == "__main__":
    main()
