"""Requests made up from the API's own description, by everybody who has some credentials: whatever comes, the service
never fails by itself, and nobody but the admin changes what is the admin's."""

import os
from pathlib import Path
from typing import Any

import pytest
import schemathesis
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings

from in_process_service import ADMIN, FakeJudge, InProcessService
from surepick.store.schema import metadata

EXAMPLES = int(os.environ.get("SUREPICK_EXAMPLES", "6"))
"""Requests for each operation and role, from a fixed seed; `make fuzz` sends many more."""

OPERATIONS = 36
"""The least number of operations described."""

OPEN = {"GET /health", "GET /ready", "POST /login", "POST /logout", "GET /studies/{study}/images/{name}"}
"""Operations for which nobody needs credentials."""

ALLOWED: dict[str, set[str]] = {
    "judge": {
        "GET /judge/invitation",
        "POST /studies/{study}/questions",
        "POST /studies/{study}/answers",
        "POST /studies/{study}/undo",
        "POST /studies/{study}/comments",
    },
    "stream": {"POST /streams/{stream}/decide", "POST /streams/{stream}/reward"},
    "stranger": set(),
}

CHANGED: dict[str, set[str]] = {
    "judge": {"messages", "questions", "judges", "comments"},
    "stream": {"stream_events", "streams", "replies"},
    "stranger": set(),
}
"""Tables in which each of them may change something."""


class World:
    """A service with a study, a judge and a stream, and what each of them can show at the door."""

    def __init__(self, folder: Path) -> None:
        self.service = InProcessService(f"sqlite:///{folder}/studies.db", rate=1e6)
        self.service.parts.strangers._rate = self.service.parts.strangers._burst = 1e9  # their limit has its own test
        self.judge: FakeJudge = self.service.judge(self.service.begin())
        stream = self.service.post("/streams", {"title": "shop", "dimension": 1}, status=201)
        self.stream = stream["id"]
        self.headers = {
            "admin": ADMIN,
            "judge": self.judge.headers,
            "stream": {"Authorization": f"Bearer {stream['token']}"},
            "stranger": {},
        }

    def send(self, role: str, case: Any) -> int:
        """Send a made-up request; its status."""
        for kind, there in (("study", self.judge.study), ("stream", self.stream)):
            if len(case.path_parameters.get(kind, "")) % 2:
                case.path_parameters[kind] = there  # half of the requests are about something that is there
        made = case.as_transport_kwargs(headers=self.headers[role])
        wanted = {name: made[name] for name in ("json", "data", "files", "params", "headers") if made.get(name)}
        if not isinstance(wanted.get("data", {}), dict):
            wanted["content"] = wanted.pop("data")
        return self.service.client.request(case.method, case.formatted_path, **wanted).status_code

    def tables(self) -> dict[str, list[Any]]:
        """All that is stored."""
        with self.service.parts.database.reading() as connection:
            return {table.name: list(connection.execute(sa.select(table))) for table in metadata.sorted_tables}


@pytest.mark.parametrize("role", ["admin", "judge", "stream", "stranger"])
def test_no_request_makes_it_fail_or_changes_what_is_not_ones_own(role: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    before = world.tables()
    schema = schemathesis.openapi.from_dict(world.service.app.openapi())
    statuses: dict[str, set[int]] = {}
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.endswith("/events") and role == "admin":  # never ends
            continue

        @given(case=operation.as_strategy())
        @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), deadline=None, database=None)
        def probe(case: Any) -> None:
            status = world.send(role, case)
            statuses.setdefault(case.operation.label, set()).add(status)
            assert status < 500

        probe()
    assert len(statuses) >= OPERATIONS
    if role == "admin":
        assert set().union(*statuses.values()) >= {200, 201, 404, 422}  # some were understood
    else:
        let_in = {label for label, seen in statuses.items() if any(status < 400 for status in seen)}
        assert let_in <= OPEN | ALLOWED[role]
        after = world.tables()
        assert {name for name, rows in after.items() if rows != before[name]} <= CHANGED[role]
    world.service.close()
