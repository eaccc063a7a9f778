"""The client of the service: typed results, retries, and nothing done twice, against the real application."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from in_process_service import TOKEN, InProcessService
from surepick.client import AdminClient, ServiceRefused, ServiceUnreachable
from surepick.store.schema import messages, studies


class Network:
    """Between client and service: loses what it is told to."""

    def __init__(self, service: InProcessService) -> None:
        self.service = service
        self.faults: list[str] = []
        """What happens to the next requests: `lost reply`, `no connection` or a status."""
        self.waited: list[float] = []
        self.seen: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        fault = self.faults.pop(0) if self.faults else ""
        self.seen.append(request)
        if fault == "no connection":
            raise httpx.ConnectError("refused")
        if fault.isdigit():
            return httpx.Response(int(fault), json={"detail": "Not now."}, headers={"Retry-After": "7"})
        reply = self.service.client.request(
            request.method, str(request.url.raw_path.decode()), content=request.content, headers=dict(request.headers)
        )
        if fault == "lost reply":
            raise httpx.ReadError("reset")
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    service = InProcessService(f"sqlite:///{tmp_path}/studies.db")
    yield Network(service)
    service.close()


def admin(network: Network, **options: Any) -> AdminClient:
    chosen: dict[str, Any] = {"transport": httpx.MockTransport(network), "sleep": network.waited.append} | options
    return AdminClient("http://test", TOKEN, **chosen)


def count(network: Network, table: sa.Table) -> int:
    with network.service.parts.database.reading() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def test_a_study_from_beginning_to_end(network: Network) -> None:
    with admin(network) as client:
        study = client.create_study("shoes", ["red", {"name": "green", "label": "Green"}, "blue"], epsilon=4.0)
        assert [row["id"] for row in client.studies()] == [study]
        judge = client.invite(study, "Jo").connect()
        network.service.planner.round()
        held = judge.questions(2)
        assert held.open
        assert not held.exhausted
        first = held.questions[0]
        assert {first.a.name, first.b.name if first.b else ""} < {"red", "green", "blue"}
        assert set(first.answers) == {"a", "b", "tie", "skip"}
        assert judge.answer(first.id, "a").turn == 0
        turn = judge.undo(first.id)
        assert judge.answer(first.id, "b", turn=turn).answer == "b"
        assert client.study(study)["title"] == "shoes"
        assert "status" in client.result(study)
        assert b"answer" in client.export(study)
        with pytest.raises(ServiceRefused, match="close it first") as refused:
            client.delete_study(study)
        assert refused.value.status == 409
        client.set_state(study, "closed")
        client.delete_study(study)
        assert client.studies(archived=True) == []


def test_what_is_sent_again_is_done_once(network: Network) -> None:
    client = admin(network)
    network.faults = ["lost reply", "503", "no connection"]
    study = client.create_study("shoes", ["red", "green", "blue"])
    assert count(network, studies) == 1
    assert network.waited == [0.2, 7.0, 0.8]  # doubled, or what the service asked for
    assert len({request.headers["Idempotency-Key"] for request in network.seen}) == 1
    judge = client.invite(study).connect()
    network.service.planner.round()
    question = judge.questions().questions[0]
    network.faults = ["lost reply"]
    judge.answer(question.id, "a")
    assert count(network, messages) == 1
    stream = client.create_stream("shop", 2)
    network.faults = ["lost reply", "lost reply"]
    made = stream.decide([[0.0, 1.0], [1.0, 0.0]], context="first visit")
    assert made.decision == 0
    network.faults = ["lost reply"]
    stream.reward(made.decision, 1)
    assert stream.decide([[0.0, 1.0]]).decision == 1  # no decision was made twice
    with pytest.raises(ServiceRefused, match=r"(?i)reward"):
        stream.reward(made.decision, 0)


def test_patience_ends(network: Network) -> None:
    network.faults = ["no connection"] * 99
    with pytest.raises(ServiceUnreachable, match=r"http://test did not answer in 0.5 s: refused"):
        admin(network, patience=0.5).studies()
    network.faults = ["503"] * 99
    with pytest.raises(ServiceUnreachable, match="Not now"):
        admin(network, patience=3.0).studies()
    assert network.waited == [0.2, 0.4]  # a wait that is longer than the patience is not begun


def test_a_refusal_is_not_repeated(network: Network) -> None:
    with pytest.raises(ServiceRefused, match="at least two items"):
        admin(network).create_study("shoes", ["red"])
    assert len(network.seen) == 1
