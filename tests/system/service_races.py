"""Judges send contradicting requests at once, over several workers whose clocks differ; nothing may get stuck.

    python tests/system/service_races.py postgresql --requests 100000

Every judge is a thread that takes, renews, answers, skips, calls a tie and undoes at random, often two of these at the
same moment through two workers. Workers and planners are those of the service (`GroupCommit`, `Planner`), each with a
database connection of its own, on two servers with clocks 20 s apart. Meanwhile the admin pauses studies and changes
their items. Afterwards every acknowledged message must be in a log once or visibly quarantined, every table must agree
with its log, and every log must equal that of a session that got the same answers one after the other.
"""

import argparse
import json
import logging
import random
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from databases import fresh_database, postgres_server
from running_service import PATIENCE
from service_crash import rederived
from surepick.errors import SurepickError
from surepick.store import Database, GroupCommit, Planner, log, open_database, studies
from surepick.store.database import UNAVAILABLE
from surepick.store.question_queue import (
    LeaseQuestions,
    RecordedMessage,
    SubmitAnswer,
    UndoAnswer,
    lease_questions,
    submit_answers,
    undo_answers,
)
from surepick.store.schema import messages
from surepick.store.verify import verify

SKEW = 10.0
"""Seconds by which one server is ahead and the other behind."""

LEASE = 2.0
"""Of questions: so short that many expire while their judge is about to answer."""

ITEMS = {"red": (1.0, 0.2), "green": (0.0, 1.0), "blue": (0.6, 0.6), "grey": (0.1, 0.1)}


class Race:
    """Some studies, the workers and planners on their database, and what judges were told."""

    def __init__(self, url: str, *, workers: int, judges: int, skew: float, seed: int) -> None:
        self.url, self.seed = url, seed
        self.databases = [open_database(url) for _ in range(workers + 2)]
        for number, database in enumerate(self.databases):
            if skew:
                database.clock = _skewed(skew if number % 2 else -skew)
        self.workers = [GroupCommit(database) for database in self.databases[2:]]
        self.planners = [Planner(database) for database in self.databases[:2]]
        self.stopping = threading.Event()
        self.acknowledged: dict[tuple[str, int], str] = {}
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.lock = threading.Lock()
        self.studies: list[str] = []
        self.judges: list[tuple[str, str]] = []
        for number in range(max(1, judges // 10)):
            items = [studies.Item(name, features=features) for name, features in ITEMS.items()]
            options = studies.StudyOptions("race", repeats="independent", lease=LEASE, seed=seed + number)
            with self.databases[0].writing() as connection:
                study = studies.create(connection, options, items, [], time.time())
                people = [studies.add_judge(connection, study, "", time.time()) for _ in range(min(judges, 10))]
            self.studies.append(study)
            self.judges += [(study, judge) for judge in people]

    def send(self, chance: random.Random, handler: Any, request: Any) -> "Future[Any]":
        return chance.choice(self.workers).submit(handler, request)

    def judge(self, number: int, requests: int) -> None:
        """One judge who makes this many requests, unless the race ends before."""
        study, judge = self.judges[number]
        chance = random.Random(f"{self.seed} {number}")
        held: list[tuple[str, int | None]] = []
        made = 0
        while made < requests and not self.stopping.is_set():
            kind = chance.random()
            sent: list[Future[Any]] = []
            if not held or kind < 0.3:
                sent.append(self.send(chance, lease_questions, LeaseQuestions(study, judge, chance.randint(1, 4))))
            elif kind < 0.85:
                question, turn = chance.choice(held)
                # Without a turn in half of the cases: then the server finds out whether it is new or sent again.
                for said in chance.choice([("a",), ("b",), ("skip", "a"), ("tie", "skip"), ("skip",), ("b", "a")]):
                    told = chance.choice([None, turn])
                    sent.append(self.send(chance, submit_answers, SubmitAnswer(study, judge, question, said, told)))
            if kind > 0.75:
                question, _ = chance.choice(held) if held else ("", 0)
                which = chance.choice([None, question or None])
                sent += [
                    self.send(chance, undo_answers, UndoAnswer(study, judge, which))
                    for _ in range(chance.choice([1, 1, 2]))
                ]
            made += len(sent)
            for future in sent:
                taken = self.received(future)
                if taken is not None:
                    held = [(row["id"], row["turn"]) for row in taken] or held[-3:]
        with self.lock:
            self.counts["requests"] += made

    def received(self, future: "Future[Any]") -> Any:
        """Note what a judge was told; the questions, if it is that."""
        try:
            told = future.result(timeout=PATIENCE)
        except SurepickError as refused:
            with self.lock:
                self.counts[f"refused: {type(refused).__name__}"] += 1
            return None
        except UNAVAILABLE:  # on a busy machine a lock may take too long: 503, and deadlocks are counted at the end
            with self.lock:
                self.counts["unavailable"] += 1
            return None
        except Exception as error:  # a broken constraint, a request that is stuck: no judge should ever see one
            with self.lock:
                self.wrong.append(f"A request failed: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
            return None
        if not isinstance(told, RecordedMessage):
            return told.questions
        with self.lock:
            self.counts[told.said] += 1
            before = self.acknowledged.setdefault((told.question, told.turn), told.said)
        if before != told.said:
            self.wrong.append(f"Turn {told.turn} of {told.question} was acknowledged as {before} and as {told.said}.")
        return None

    def plan(self, planner: Planner, chance: random.Random) -> None:
        while not self.stopping.is_set():
            with suppress(*UNAVAILABLE):  # tried again, as the service does
                planner.round()
            time.sleep(chance.uniform(0.0, 0.03))

    def administrate(self, chance: random.Random) -> None:
        """Pause, resume, add and remove items."""
        number = 0
        while not self.stopping.wait(chance.uniform(0.3, 1.0)):
            study, number = chance.choice(self.studies), number + 1
            database = chance.choice(self.databases)
            with suppress(*UNAVAILABLE), database.writing() as connection:
                if chance.random() < 0.3:
                    item = studies.Item(f"new {number}", features=(chance.random(), chance.random()))
                    studies.begin_phase(connection, study, [item], [], [], time.time())
                else:
                    studies.change_state(connection, study, chance.choice(["running", "running", "paused"]))

    def run(self, *, seconds: float, requests: int) -> None:
        """All at once, until the time is over or every judge has made its share of the requests."""
        failures: list[Future[None]] = []
        with ThreadPoolExecutor(len(self.judges) + 3) as pool:
            for number, planner in enumerate(self.planners):
                failures.append(pool.submit(self.plan, planner, random.Random(number)))
            failures.append(pool.submit(self.administrate, random.Random(self.seed)))
            share = -(-requests // len(self.judges))
            crowd = [pool.submit(self.judge, number, share) for number in range(len(self.judges))]
            end = time.monotonic() + seconds
            while time.monotonic() < end and not all(future.done() for future in crowd):
                time.sleep(0.05)
            self.stopping.set()
        for future in crowd + failures:
            future.result()
        for worker in self.workers:
            worker.close()

    def finish(self) -> dict[str, Any]:
        """Let the planners ingest what is left, and compare."""
        database = self.databases[0]
        end = time.monotonic() + PATIENCE
        while True:
            for planner in self.planners:
                with suppress(*UNAVAILABLE):
                    planner.round()
            with database.reading() as connection:
                waiting = log.message_counts(connection).waiting
            if not waiting or time.monotonic() > end:
                break
        if waiting:
            self.wrong.append(f"{waiting} messages are stuck.")
        self.wrong += [
            sentence for report in verify(database) for sentence in report.wrong if "is quarantined" not in sentence
        ]
        quarantined = 0
        with database.reading() as connection:
            stored = {(row.question, row.turn): row.said for row in connection.execute(sa.select(messages))}
            for key in stored.keys() | self.acknowledged.keys():
                if stored.get(key) != self.acknowledged.get(key):
                    self.wrong.append(f"{key} was acknowledged as {self.acknowledged.get(key)}, is {stored.get(key)}.")
            for study in self.studies:
                row = studies.get(connection, study)
                self.counts["phases"] += row["phase"] + 1
                self.counts["evaluated stages"] += row["evaluated_stages"]
                quarantined += len(log.quarantined(connection, study))
                logged = list(log.read(connection, study, row["phase"]))
                if json.dumps(rederived(logged)) != json.dumps(logged):
                    self.wrong.append(f"The log of study {study} is not that of a session with the same answers.")
        for used in self.databases:
            used.close()
        deadlocks = _deadlocks(self.url)
        if deadlocks:
            self.wrong.append(f"PostgreSQL found {deadlocks} deadlocks.")
        return {
            "acknowledged": len(self.acknowledged),
            "quarantined": quarantined,
            "deadlocks": deadlocks,
            "counts": dict(sorted(self.counts.items())),
            "wrong": self.wrong,
        }


def _skewed(seconds: float) -> Any:
    return lambda: time.time() + seconds


def _deadlocks(url: str) -> int:
    """How many PostgreSQL has counted; connections that found one report it at their end, a moment later."""
    database = Database(url)
    if database.is_sqlite:
        return 0
    time.sleep(1.0)
    found = sa.text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    with database.reading() as connection:
        count = int(connection.execute(found).scalar_one())
    database.close()
    return count


def race(
    url: str,
    *,
    requests: int,
    seconds: float,
    judges: int = 20,
    workers: int = 4,
    skew: float = SKEW,
    seed: int = 0,
) -> dict[str, Any]:
    """Run and compare; every difference is in `wrong`."""
    database = open_database(url)
    if not database.is_sqlite:  # found sooner, a deadlock leaves time for more of them
        with database.writing() as connection:
            name = connection.execute(sa.text("SELECT current_database()")).scalar_one()
            connection.execute(sa.text(f"ALTER DATABASE {name} SET deadlock_timeout = '20ms'"))
    database.close()
    racing = Race(url, workers=workers, judges=judges, skew=skew, seed=seed)
    begun = time.monotonic()
    racing.run(seconds=seconds, requests=requests)
    passed = time.monotonic() - begun
    return {"seconds": passed, **racing.finish()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", choices=["sqlite", "postgresql"])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--judges", type=int, default=20)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--skew", type=float, default=SKEW)
    parser.add_argument("--seed", type=int, default=0)
    chosen = vars(parser.parse_args())
    logging.basicConfig(level=logging.WARNING)
    with ExitStack() as stack:
        url = f"sqlite:///{Path(stack.enter_context(tempfile.TemporaryDirectory()))}/races.db"
        if (kind := chosen.pop("database")) == "postgresql":
            url = stack.enter_context(fresh_database(stack.enter_context(postgres_server())))
        found = race(url, **chosen)
    print(json.dumps({"database": kind, **found}, indent=2))
    raise SystemExit(bool(found["wrong"]))


if __name__ == "__main__":
    main()
