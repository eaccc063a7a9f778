"""Contextual decisions over HTTP, on SQLite and PostgreSQL alike."""

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from in_process_service import ADMIN, InProcessService
from surepick.baselines import SquareCb
from surepick.session import ContextualSession
from surepick.session.contextual import read_decisions
from surepick.store import Database, GroupCommit
from surepick.store.schema import stream_events, streams
from surepick.store.streams import Decide, Reward, Streams
from surepick.store.verify import verify

LIKING = (2.0, -1.0)


@pytest.fixture
def service(database_url: str) -> Iterator[InProcessService]:
    made = InProcessService(database_url)
    yield made
    made.close()


class Shop:
    """A program that asks a stream for decisions."""

    def __init__(self, service: InProcessService, **fields: Any) -> None:
        self.service = service
        made = service.post("/streams", {"title": "shop", "dimension": 2, "seed": 5, **fields}, status=201)
        self.id = made["id"]
        self.headers = {"Authorization": f"Bearer {made['token']}"}
        self.chance = random.Random(3)

    def decide(self, arms: Any, status: int = 200, **more: Any) -> Any:
        return self.service.post(f"/streams/{self.id}/decide", {"arms": arms, **more}, self.headers, status)

    def reward(self, decision: Any, reward: Any, status: int = 200) -> Any:
        body = {"decision": decision, "reward": reward}
        return self.service.post(f"/streams/{self.id}/reward", body, self.headers, status)

    def visitor(self) -> list[list[float]]:
        return [[self.chance.gauss(0, 1) for _ in LIKING] for _ in range(3)]

    def log(self) -> list[dict[str, Any]]:
        text = self.service.client.get(f"/streams/{self.id}/log", headers=ADMIN).text
        return [json.loads(line) for line in text.splitlines()]


def well(service: InProcessService) -> bool:
    assert [sentence for report in verify(service.parts.database) for sentence in report.wrong] == []
    return True


def test_rewards_come_late_in_any_order_twice_or_never(service: InProcessService, tmp_path: Path) -> None:
    shop = Shop(service, policy="square-cb")
    alone = ContextualSession(SquareCb(), dimension=2, seed=5)
    waiting: list[tuple[int, int]] = []
    for number in range(60):
        arms = shop.visitor()
        made = shop.decide(arms, context=f"visit {number}")
        wanted = alone.choose(arms, f"visit {number}")
        assert made == {
            "decision": number,
            "arm": wanted.index,
            "propensity": wanted.propensity,
            "context": f"visit {number}",
        }
        waiting.append((number, int(shop.chance.random() < 0.5)))
        shop.chance.shuffle(waiting)
        if number % 3:
            decision, reward = waiting.pop()
            assert shop.reward(decision, reward) == {"decision": decision, "reward": reward}
            assert shop.reward(decision, reward) == {"decision": decision, "reward": reward}
            assert "cannot be changed" in shop.reward(decision, 1 - reward, status=409)["detail"]
            alone.learn(decision, reward)
    shown = service.get(f"/streams/{shop.id}")
    assert (shown["decisions"], shown["waiting"]) == (60, 20)
    assert (shown["policy"], shown["guarantee"]) == ("square-cb", "heuristic")
    assert service.get("/streams") == [shown]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in shop.log()))
    assert ContextualSession.replay(path).waiting == alone.waiting
    logged = read_decisions(path)
    assert sum(one.reward is not None for one in logged) == 40
    assert all(0 < one.propensity < 1 for one in logged)
    assert well(service)


@pytest.mark.parametrize("order", ["arrival", "decision"])
def test_a_restarted_process_decides_as_if_nothing_had_happened(
    service: InProcessService, database_url: str, order: str
) -> None:
    shop = Shop(service, order=order)
    twin = Shop(service, order=order)
    for number in range(20):
        if number == 10:
            shop.service = InProcessService(database_url)  # as a process does that has nothing in memory
        arms = shop.visitor()
        assert shop.decide(arms)["arm"] == twin.decide(arms)["arm"]
        for one in (shop, twin):
            one.reward(number, None if number % 7 == 0 else number % 2)
    assert shop.log()[1:] == twin.log()[1:]
    assert well(service)
    shop.service.close()


def test_processes_that_decide_at_once_write_one_log(service: InProcessService, database_url: str) -> None:
    shop = Shop(service, policy="logistic-thompson")
    databases = [Database(database_url) for _ in range(2)]
    processes = [(GroupCommit(database), Streams(database)) for database in databases]

    def visits(number: int) -> list[Any]:
        group_commit, memory = processes[number % 2]
        made = []
        for _ in range(15):
            decided = group_commit.submit(memory.act, Decide(shop.id, [[1.0, 0.0], [0.0, 1.0]], None)).result()
            made.append(decided.id)
            group_commit.submit(memory.act, Reward(shop.id, decided.id, decided.index)).result()
        return made

    with ThreadPoolExecutor(4) as pool:
        made = [decision for decisions in pool.map(visits, range(4)) for decision in decisions]
    assert sorted(made) == list(range(60))
    assert service.get(f"/streams/{shop.id}")["waiting"] == 0
    assert well(service)
    for (group_commit, _), database in zip(processes, databases, strict=True):
        group_commit.close()
        database.close()


def test_what_was_not_committed_was_not_decided(service: InProcessService) -> None:
    shop = Shop(service)
    arms = [[1.0, 0.0], [0.0, 1.0]]
    for _ in range(3):
        shop.decide(arms)
    database, memory = service.parts.database, service.parts.streams
    with database.writing() as connection:
        memory.act(database, connection, [Reward(shop.id, 0, 1), Decide(shop.id, arms, None)])
        connection.rollback()  # as where the disk is full
    assert service.get(f"/streams/{shop.id}")["decisions"] == 3
    shop.reward(0, 0)  # the other reward never was
    assert shop.decide(arms)["decision"] == 3
    assert [line["event"] for line in shop.log()] == ["start", "choose", "choose", "choose", "learn", "choose"]
    assert well(service)


def test_what_is_refused_changes_nothing(service: InProcessService) -> None:
    shop = Shop(service)
    first = shop.decide([[1.0, 0.0]])
    assert first == {"decision": 0, "arm": 0, "propensity": 1.0, "context": None}
    before = shop.log()
    for arms in ([], [[1.0]], [[1.0, 2.0], [1.0]], [[1.0, "x"]], [[1.0, None]], "arms", [[1e400, 0.0]], None):
        text = json.dumps({"arms": arms})
        headers = {**shop.headers, "Content-Type": "application/json"}
        reply = service.client.post(f"/streams/{shop.id}/decide", content=text, headers=headers)
        assert reply.status_code == 422, arms
        assert reply.json()["detail"].endswith(".")
    for decision, reward, status in ((1, 1, 404), (-1, 1, 422), (0, 2, 422), (0, 0.5, 422), ("x", 1, 422)):
        assert shop.reward(decision, reward, status)["detail"].endswith(".")
    stranger = Shop(service)
    for headers in ({}, stranger.headers, {"Authorization": "Bearer forged"}):
        service.post(f"/streams/{shop.id}/decide", {"arms": [[1.0, 0.0]]}, headers, status=401)
        service.post(f"/streams/{shop.id}/reward", {"decision": 0, "reward": 1}, headers, status=401)
    service.post("/streams", {"title": "mine", "dimension": 2}, shop.headers, status=401)
    service.post("/streams/nosuchstream/decide", {"arms": [[1.0, 0.0]]}, status=404)
    service.get("/streams/nosuchstream/log", status=404)
    assert shop.log() == before
    assert shop.reward(0, None) == {"decision": 0, "reward": None}
    assert "given up" in shop.reward(0, 1, status=409)["detail"]
    assert well(service)


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"policy": "nonsense"}, "no contextual policy"),
        ({"policy": "one-pass-ucb"}, "norm_bound"),
        ({"policy": "sup-logistic"}, "horizon"),
        ({"policy": "sup-cb-glm", "horizon": 100, "norm_bound": 1.0}, "most_arms"),
        ({"delta": 0.0}, "delta"),
        ({"dimension": 0}, "dimension"),
        ({"dimension": 1_000_000}, "features"),
        ({"order": "none"}, "order"),
        ({"seed": -1}, "seed"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_streams_that_cannot_be(service: InProcessService, fields: dict[str, Any], part: str) -> None:
    reply = service.post("/streams", {"title": "shop", "dimension": 2, **fields}, status=422)
    assert part in reply["detail"]
    assert service.get("/streams") == []


@pytest.mark.parametrize(
    ("damage", "part"),
    [
        (sa.delete(stream_events).where(stream_events.c.seq == 1), "should have the events"),
        (sa.update(streams).values(decisions=9), "counts 9 decisions"),
        (sa.update(streams).values(answered=9), "counts 9 answered"),
        (sa.update(stream_events).where(stream_events.c.seq == 2).values(body='{"event": "x"}'), "cannot be replayed"),
    ],
)
def test_verify_finds_what_was_tampered_with(service: InProcessService, damage: Any, part: str) -> None:
    shop = Shop(service)
    shop.reward(shop.decide([[1.0, 0.0], [0.0, 1.0]])["decision"], 1)
    assert well(service)
    with service.parts.database.writing() as connection:
        connection.execute(damage)
    assert any(part in sentence for report in verify(service.parts.database) for sentence in report.wrong)


def test_another_choice_than_the_policys_is_found(service: InProcessService) -> None:
    shop = Shop(service)
    shop.decide([[1.0, 0.0], [0.0, 1.0]])
    line = shop.log()[1]
    with service.parts.database.writing() as connection:
        body = json.dumps({**line, "index": 1 - line["index"]})
        connection.execute(sa.update(stream_events).where(stream_events.c.seq == 1).values(body=body))
    report = verify(service.parts.database)[0]
    assert "Replay of decision 0" in report.wrong[0]


def test_a_decision_asked_for_again_with_the_same_key_is_the_first(service: InProcessService) -> None:
    stream = service.post("/streams", {"title": "t", "dimension": 2}, status=201)
    path, token = f"/streams/{stream['id']}/decide", {"Authorization": f"Bearer {stream['token']}"}
    body = {"arms": [[1.0, 0.0], [0.0, 1.0]], "context": "visit 1"}
    key = {**token, "Idempotency-Key": "visit-1"}
    first = service.post(path, body, key)
    assert service.post(path, body, key) == first
    assert service.post(path, body, {**token, "Idempotency-Key": "visit-2"})["decision"] == first["decision"] + 1
    service.post(path, body | {"context": "visit 3"}, key, 422)
    service.post(path, {"arms": [[1.0]]}, {**token, "Idempotency-Key": "visit-3"}, 422)  # refused, so the key is free
    assert service.post(path, body, {**token, "Idempotency-Key": "visit-3"})["decision"] == 2
    assert service.get(f"/streams/{stream['id']}")["decisions"] == 3


def test_a_reward_that_never_comes_does_not_stop_learning(service: InProcessService) -> None:
    body = {"title": "t", "dimension": 2, "order": "decision", "patience": 60.0}
    stream = service.post("/streams", body, status=201)
    path, token = f"/streams/{stream['id']}", {"Authorization": f"Bearer {stream['token']}"}
    arms = {"arms": [[1.0, 0.0], [0.0, 1.0]]}
    lost = service.post(f"{path}/decide", arms, token)["decision"]  # nobody gets this reply
    service.now += 50.0
    second = service.post(f"{path}/decide", arms, token)["decision"]
    service.post(f"{path}/reward", {"decision": second, "reward": 1}, token)

    def learnt() -> int:
        return int(service.parts.streams._known[stream["id"]].session.learnt)

    assert learnt() == 0
    service.now += 20.0
    service.post(f"{path}/decide", arms, token)
    assert learnt() == 1
    assert service.get(path)["waiting"] == 1
    assert "given up" in service.post(f"{path}/reward", {"decision": lost, "reward": 1}, token, 409)["detail"]
    service.parts.streams._known.clear()  # as after a restart, times are read from the log
    service.now += 100.0
    service.post(f"{path}/decide", arms, token)
    assert service.get(path)["waiting"] == 1
    unnamed = service.post("/streams", {"title": "t", "dimension": 2, "order": "decision"}, status=201)
    assert service.get(f"/streams/{unnamed['id']}")["patience"] == 7 * 86_400
