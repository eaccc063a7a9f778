"""Requests made up from the API's own description: whatever comes, the service never fails by itself."""

from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings

from in_process_service import ADMIN, FakeJudge, InProcessService

EXAMPLES = 12
"""Requests for each operation, from a fixed seed."""

OPERATIONS = 26
"""The least number of operations described."""


def send(service: InProcessService, judge: FakeJudge, stream: str, case: Any) -> int:
    """Send a made-up request with good credentials; its status."""
    for kind, there in (("study", judge.study), ("stream", stream)):
        if len(case.path_parameters.get(kind, "")) % 2:
            case.path_parameters[kind] = there  # half of the requests are about something that is there
    judging = case.path.endswith(("/questions", "/answers", "/undo"))
    made = case.as_transport_kwargs(headers=judge.headers if judging else ADMIN)
    wanted = {name: made[name] for name in ("json", "data", "files", "params", "headers") if made.get(name)}
    if not isinstance(wanted.get("data", {}), dict):
        wanted["content"] = wanted.pop("data")
    return service.client.request(case.method, case.formatted_path, **wanted).status_code


def test_no_request_makes_it_fail(tmp_path: Path) -> None:
    service = InProcessService(f"sqlite:///{tmp_path}/studies.db", rate=1e6)
    judge = service.judge(service.begin())
    stream = service.post("/streams", {"title": "shop", "dimension": 1}, status=201)["id"]
    schema = schemathesis.openapi.from_dict(service.app.openapi())
    statuses: dict[str, set[int]] = {}
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.endswith("/events"):  # never ends
            continue

        @given(case=operation.as_strategy())
        @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), deadline=None, database=None)
        def probe(case: Any) -> None:
            status = send(service, judge, stream, case)
            statuses.setdefault(case.operation.label, set()).add(status)
            assert status < 500

        probe()
    assert len(statuses) >= OPERATIONS
    assert set().union(*statuses.values()) >= {200, 201, 404, 422}  # some were understood
    service.close()
