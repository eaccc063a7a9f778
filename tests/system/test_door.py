"""The service as strangers and judges reach it: how long a request takes, and what nobody can do to it from outside."""

import contextlib
import http.client
import resource
import socket
import statistics
import time
from collections.abc import Iterator

import pytest

from running_service import RunningService
from surepick.service.connection import HEAD_SECONDS


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


def test_half_open_connections_keep_nobody_out(service: RunningService) -> None:
    """More of them than a process usually may have files; each sends a byte of a request now and then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = []
    try:
        for _ in range(1_100):
            held.append(socket.create_connection(("127.0.0.1", service.port), timeout=5))
            held[-1].sendall(b"GET /judge HTTP/1.1\r\nHost: x\r\nX: ")
        begun = time.monotonic()
        while time.monotonic() < begun + HEAD_SECONDS + 2:
            asked = time.monotonic()
            connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=5)
            seconds_per_request(connection, 1)
            connection.close()
            assert time.monotonic() - asked < 1.0
            time.sleep(1.0)
            for one in held[:50]:
                with contextlib.suppress(OSError):  # closed by the service
                    one.sendall(b"x")
        assert all(is_closed(one) for one in held)
        assert service.log_size() < 10_000
    finally:
        for one in held:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def is_closed(connection: socket.socket) -> bool:
    """Whether the other side has closed it."""
    connection.settimeout(0.01)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_nonsense_does_not_fill_the_log(service: RunningService) -> None:
    before = service.log_size()
    for _ in range(300):
        with socket.create_connection(("127.0.0.1", service.port), timeout=5) as connection:
            connection.sendall(b"nonsense\r\n\r\n")
            assert b"400" in connection.recv(1_000)
    assert service.log_size() - before < 3_000
