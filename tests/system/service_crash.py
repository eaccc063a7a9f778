"""The service is killed again and again under load; no acknowledged answer may be lost, doubled or changed.

    python tests/system/service_crash.py sqlite --kills 200 --judges 50

Kills hit a worker, a planner or a dashboard worker, which is replaced, or (one in twenty) all processes at once,
after which the same command is started again. PostgreSQL itself is killed too, once for every ten other kills, and
started again a moment later. Judges repeat each request until it is acknowledged; only 503 is an answer they accept
from a service whose database is away.
"""

import argparse
import asyncio
import contextlib
import json
import random
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import sqlalchemy as sa

from databases import PostgresServer, fresh_database
from running_service import ADMIN, PATIENCE, RunningService
from surepick.session import Session
from surepick.store import Database, log, studies
from surepick.store.schema import messages
from surepick.store.verify import verify

LIKING = {"red": 1.0, "green": 0.0, "blue": 0.6, "grey": -0.5}
FEATURES = {"red": [1.0, 0.2], "green": [0.0, 1.0], "blue": [0.6, 0.6], "grey": [0.1, 0.1]}
RULES: list[dict[str, Any]] = [{"epsilon": 0.5, "policy": "posterior"}, {"epsilon": 2.0, "delta": 0.2}]
"""Of studies in turn: the first decide soon, the second have certificates."""

PER_STUDY = 10
"""Judges of one study."""

ALL_AT_ONCE = 0.05
"""Share of kills that hit all processes."""

BETWEEN_DATABASE_KILLS = 10
"""Kills of processes for each kill of PostgreSQL."""


@dataclass
class Acknowledgements:
    """What judges were told."""

    acknowledged: dict[tuple[str, int], str] = field(default_factory=dict)
    repeats: int = 0
    failures: Counter[str] = field(default_factory=Counter)


class Crowd:
    """Judges who answer as fast as they are allowed to, in studies that follow each other."""

    def __init__(self, service: RunningService, judges: int, seed: int, server: PostgresServer | None = None) -> None:
        self.service, self.count, self.server = service, judges, server
        self.chance = random.Random(seed)
        self.told = Acknowledgements()
        self.stopping = asyncio.Event()
        self.studies: list[str] = []
        limits = httpx.Limits(max_connections=judges + 10)
        self.client = httpx.AsyncClient(base_url=service.url, timeout=20, limits=limits)

    async def insist(self, method: str, path: str, headers: dict[str, str], body: Any = None) -> httpx.Response:
        """Repeat a request until the response is not a failure of the server."""
        end = time.monotonic() + PATIENCE
        while True:
            assert time.monotonic() < end, f"{method} {path} fails again and again: {self.told.failures}"
            try:
                reply = await self.client.request(method, path, headers=headers, json=body)
                if reply.status_code < 500:
                    return reply
                self.told.failures[str(reply.status_code)] += 1
            except httpx.HTTPError as error:
                self.told.failures[type(error).__name__] += 1
            self.told.repeats += 1
            await asyncio.sleep(0.05)

    async def run_studies(self) -> None:
        """The judges of one study; when it is decided, of another."""
        while not self.stopping.is_set():
            items = [{"name": name, "features": features} for name, features in FEATURES.items()]
            rule = RULES[len(self.studies) % len(RULES)]
            body = {"title": "crash", "items": items, "lease": 5, "policy": "anytime", "repeats": "independent"} | rule
            study = (await self.insist("POST", "/studies", ADMIN, body)).json()["id"]
            self.studies.append(study)
            people = [await self.insist("POST", f"/studies/{study}/judges", ADMIN, {}) for _ in range(PER_STUDY)]
            await asyncio.gather(*(self.judge(study, person.json()["token"]) for person in people))

    async def judge(self, study: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        while not self.stopping.is_set():
            taken = (await self.insist("POST", f"/studies/{study}/questions?n=2", headers)).json()
            if not taken["open"]:
                return
            for question in taken["questions"]:
                first, second = LIKING[question["a"]["name"]], LIKING[question["b"]["name"]]
                wins = self.chance.random() < 1 / (1 + 2.718281828 ** (second - first))
                said = self.chance.choices(["a" if wins else "b", "tie", "skip"], [18, 1, 1])[0]
                body = {"question": question["id"], "answer": said, "turn": question["turn"]}
                reply = await self.insist("POST", f"/studies/{study}/answers", headers, body)
                assert reply.status_code == 200, reply.text
                self.told.acknowledged[question["id"], question["turn"]] = said
                if self.chance.random() < 0.03:
                    back = await self.insist("POST", f"/studies/{study}/undo", headers, {"question": question["id"]})
                    if back.status_code == 200:
                        self.told.acknowledged[question["id"], question["turn"] + 1] = "undo"

    async def killer(self, kills: int) -> Counter[str]:
        """Kill at random moments; what was hit."""
        hit: Counter[str] = Counter()
        while (done := hit.total() - hit["PostgreSQL"]) < kills:
            await asyncio.sleep(self.chance.uniform(0.05, 1.5))
            if self.server is not None and hit["PostgreSQL"] < (done + 5) // BETWEEN_DATABASE_KILLS:
                await asyncio.to_thread(self.server.kill)
                await asyncio.sleep(self.chance.uniform(0.0, 1.0))
                await asyncio.to_thread(self.server.start)
                hit["PostgreSQL"] += 1
            if self.chance.random() < ALL_AT_ONCE:
                await asyncio.to_thread(self.service.kill_all)
                await asyncio.to_thread(self.service.start)
                hit["all processes"] += 1
                continue
            children = await asyncio.to_thread(self.service.children)
            if children:
                with contextlib.suppress(psutil.Error):
                    self.chance.choice(children).kill()
                    hit["a worker, planner or dashboard worker"] += 1
        return hit

    async def progress(self) -> None:
        """Wait for one more answer: after the last kill the service goes on."""
        end, before = time.monotonic() + PATIENCE, len(self.told.acknowledged)
        while len(self.told.acknowledged) == before:
            assert time.monotonic() < end, f"No answer is acknowledged after the last kill: {self.told.failures}"
            await asyncio.sleep(0.05)

    async def run(self, kills: int) -> Counter[str]:
        tables = [asyncio.create_task(self.run_studies()) for _ in range(max(1, self.count // PER_STUDY))]
        hit = await self.killer(kills)
        await asyncio.to_thread(self.service.wait)
        await self.progress()
        self.stopping.set()
        await asyncio.gather(*tables)
        await self.client.aclose()
        return hit


def rederived(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The log of a session that was never interrupted and got the same answers in the same order."""
    session = Session.replay(events[:1])
    while len(session.log) < len(events):
        event = events[len(session.log)]
        kind, number, judge = event["event"], event.get("id", 0), event.get("judge")
        before = len(session.log)
        if kind == "answer":
            session.tell(number, event["answer"], judge=judge, late=event.get("late", False))
        elif kind in ("skip", "tie"):
            getattr(session, kind)(number, judge=judge)
        elif kind == "undo":
            session.undo(number)
        elif kind in ("look", "verdict"):  # an evaluation may decide before all questions of a stage are handed out
            session.verdict()
        else:
            session.ask(1)
        if len(session.log) == before:
            break
    return list(session.log)


def wait_until_ingested(database: Database) -> None:
    """Wait until every message is in a log."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with database.reading() as connection:
            if not connection.execute(sa.select(sa.func.count()).where(messages.c.seq.is_(None))).scalar_one():
                return
        time.sleep(0.1)
    raise TimeoutError("The planners do not ingest all messages.")


def crash(
    url: str,
    *,
    kills: int,
    judges: int,
    workers: int,
    seed: int,
    folder: Path,
    server: PostgresServer | None = None,
) -> dict[str, Any]:
    """Run, kill, and compare; every difference is in `wrong`."""
    service = RunningService(url, workers=workers, log=folder / "service.log")
    database = Database(url)

    async def run_crowd() -> tuple[Crowd, Counter[str]]:
        crowd = Crowd(service, judges, seed, server)
        return crowd, await crowd.run(kills)

    try:
        service.start()
        begun = time.monotonic()
        crowd, hit = asyncio.run(run_crowd())
        seconds = time.monotonic() - begun
        wait_until_ingested(database)
        service.stop()
    finally:
        service.kill_all()
    wrong = [sentence for report in verify(database) for sentence in report.wrong]
    wrong += [f"Some requests got {status}." for status in crowd.told.failures if status.isdigit() and status != "503"]
    with database.reading() as connection:
        stored = {(row.question, row.turn): row.said for row in connection.execute(sa.select(messages))}
        lost = {key: said for key, said in crowd.told.acknowledged.items() if stored.get(key) != said}
        extra = stored.keys() - crowd.told.acknowledged.keys()
        wrong += [f"{key} was acknowledged as {said} and is {stored.get(key)}." for key, said in lost.items()]
        wrong += [f"{key} is stored, and nobody sent it." for key in extra]
        decided = certificates = 0
        for study in crowd.studies:
            logged = list(log.read(connection, study, 0))
            if json.dumps(rederived(logged)) != json.dumps(logged):
                wrong.append(f"An uninterrupted replay of study {study} comes to something else.")
            row = studies.get(connection, study)
            decided += row["decided"] is not None
            certificates += row["certificate"] is not None  # `verify` has checked it
    database.close()
    return {
        "kills": dict(hit),
        "seconds": seconds,
        "studies": len(crowd.studies),
        "decided": decided,
        "certificates": certificates,
        "acknowledged": len(crowd.told.acknowledged),
        "repeated_requests": crowd.told.repeats,
        "failures": dict(crowd.told.failures),
        "wrong": wrong,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", choices=["sqlite", "postgresql"])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--judges", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder}/crash.db"
        server = None
        if chosen.database == "postgresql":
            server = PostgresServer()
            stack.callback(server.close)
            server.start()
            url = stack.enter_context(fresh_database(server.url))
        options = {name: getattr(chosen, name) for name in ("kills", "judges", "workers", "seed")}
        found = crash(url, **options, folder=folder, server=server)
    print(json.dumps({"database": chosen.database, **found}, indent=2))
    raise SystemExit(bool(found["wrong"]))


if __name__ == "__main__":
    main()
