"""The service as strangers and judges reach it: how long a request takes, and what nobody can do to it from outside."""

import http.client
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from running_service import RunningService


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("door")
    running = RunningService(f"sqlite:///{folder}/studies.db", log=folder / "log")
    running.start()
    yield running
    running.kill_all()


def seconds_per_request(connection: http.client.HTTPConnection, count: int = 50) -> list[float]:
    """How long each of several requests on one connection takes."""
    taken = []
    for _ in range(count):
        begun = time.perf_counter()
        connection.request("GET", "/judge")
        reply = connection.getresponse()
        reply.read()
        taken.append(time.perf_counter() - begun)
        assert reply.status == 200
    return taken


def test_no_time_is_lost_on_a_connection_that_stays_open(service: RunningService) -> None:
    """With Nagle's algorithm the body of a response waits for the client's delayed acknowledgement, about 40 ms."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port)
    assert statistics.median(seconds_per_request(connection)) < 0.02
    connection.close()
