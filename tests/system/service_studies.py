"""Many open studies on one PostgreSQL with two servers: how long a judge waits for the next question.

    python tests/system/service_studies.py --studies 500 --judges 50

All studies have 60 items and the default policy, and are open: planners keep a few questions of each ready. Two servers
share the database, each with its own planners. In every round the judges, two to a study, work for some seconds on
studies that nobody has touched before; each thinks for two seconds before an answer, as quick people do. What counts is
the time until the next question is there, first questions of a study included.
"""

import argparse
import asyncio
import json
import sys
import time
from contextlib import ExitStack
from typing import Any

import httpx
import numpy as np
import sqlalchemy as sa

from databases import fresh_database, postgres_server
from running_service import ADMIN, RunningService
from service_load import ITEMS, THINKING, Connection, Cycle, drive, memory, our_cycle, processor_seconds
from surepick.store import open_database, studies
from surepick.store.schema import questions

PER_STUDY = 2
"""Judges of one study."""


def prepare(url: str, count: int) -> list[str]:
    """The ids of open studies; made without requests, which would try for each whether it can be planned in time."""
    features = np.random.default_rng(0).normal(size=(ITEMS, 5)).round(3).tolist()
    items = [studies.Item(str(number), features=tuple(row)) for number, row in enumerate(features)]
    wanted = studies.StudyOptions("one of many")
    session, database = studies.new_session(wanted, items), open_database(url)
    with database.writing() as connection:
        now = database.now(connection)
        made = [studies.create(connection, wanted, items, (), now, session=session) for _ in range(count)]
    database.close()
    return made


def wait_until_planned(url: str, count: int) -> None:
    """Until every study has questions: the servers have just been started, with all studies new to them."""
    database, begun = open_database(url), time.monotonic()
    with_questions = sa.select(sa.func.count(questions.c.study.distinct()))
    while True:
        with database.reading() as connection:
            planned = connection.scalar(with_questions)
        if planned == count:
            break
        time.sleep(1.0)
    print(f"{count} studies planned in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    database.close()


def invited(service: RunningService, study: str) -> list[str]:
    """The tokens of the judges of a study."""
    with httpx.Client(base_url=service.url, timeout=120, headers=ADMIN) as client:
        replies = [client.post(f"/studies/{study}/judges", json={}).raise_for_status() for _ in range(PER_STUDY)]
    return [reply.json()["token"] for reply in replies]


def measure(url: str, *, count: int, judges: int, rounds: int, seconds: float) -> dict[str, Any]:
    """All rounds on one database."""
    made = prepare(url, count)
    servers = [RunningService(url), RunningService(url)]
    try:
        for server in servers:
            server.start()
        wait_until_planned(url, count)
        found: dict[str, Any] = {"studies": count, "judges": judges, "rounds": []}
        for number in range(rounds):
            busy = [made[(number * judges // PER_STUDY + place) % count] for place in range(judges // PER_STUDY)]
            people: list[tuple[Connection, Cycle]] = [
                (Connection(servers[place % 2].port, token), our_cycle(study))
                for study in busy
                for place, token in enumerate(invited(servers[0], study))
            ]
            before = [processor_seconds(server) for server in servers]
            summary = asyncio.run(drive(people, seconds, THINKING))
            summary["processor_seconds"] = [
                {name: round(after - then[name], 2) for name, after in processor_seconds(server).items()}
                for server, then in zip(servers, before, strict=True)
            ]
            found["rounds"].append(summary)
            print(json.dumps(summary), file=sys.stderr, flush=True)
        found["megabytes"] = [memory(server) for server in servers]
        for server in servers:
            server.stop()
    finally:
        for server in servers:
            server.kill_all()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", dest="count", type=int, default=500)
    parser.add_argument("--judges", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0)
    chosen = vars(parser.parse_args())
    with ExitStack() as stack:
        url = stack.enter_context(fresh_database(stack.enter_context(postgres_server())))
        print(json.dumps(measure(url, **chosen), indent=2))


if __name__ == "__main__":
    main()
