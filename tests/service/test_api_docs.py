"""The description of the API: true, complete, readable offline, and in the release."""

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from in_process_service import ADMIN, InProcessService

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[InProcessService]:
    made = InProcessService(f"sqlite:///{tmp_path}/studies.db")
    yield made
    made.close()


def test_the_file_of_the_release_is_what_the_service_says() -> None:
    made = runpy.run_path(str(DOCS / "make_openapi.py"))["described"]()
    assert (DOCS / "openapi.json").read_text() == made, "run `make openapi`"


def test_refusals_are_described_as_they_are_sent(service: InProcessService) -> None:
    described = service.client.get("/openapi.json").json()
    for methods in described["paths"].values():
        for operation in methods.values():
            content = operation["responses"]["422"]["content"]["application/json"]
            assert content["schema"] == {"$ref": "#/components/schemas/Refusal"}
    assert "HTTPValidationError" not in described["components"]["schemas"]
    refused = service.client.post("/studies", headers=ADMIN, json={"title": 3})
    assert refused.status_code == 422
    assert list(refused.json()) == list(described["components"]["schemas"]["Refusal"]["properties"]) == ["detail"]
    create = described["paths"]["/studies"]["post"]["responses"]
    assert {"201", "401", "403", "409", "422", "429", "503"} <= set(create)
    assert "401" not in described["paths"]["/health"]["get"]["responses"]


def test_the_page_shows_every_operation_and_schema_and_loads_nothing_from_elsewhere(service: InProcessService) -> None:
    described, page = service.client.get("/openapi.json").json(), service.client.get("/docs").text
    for path, methods in described["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in page
    for name in described["components"]["schemas"]:
        assert f'id="schema-{name}"' in page
    assert "://" not in page
    assert "<script" not in page
    assert service.client.get("/docs.css").headers["content-type"].startswith("text/css")
