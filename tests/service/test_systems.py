"""Systems on a test set in the service: upload, blind questions with their input, nothing shown to a judge twice."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from in_process_service import ADMIN, FakeJudge, InProcessService
from surepick.store.verify import verify

QUALITY = {"gpt-new": 0.9, "gpt-old": 0.5, "gpt-tiny": 0.1}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[InProcessService]:
    made = InProcessService(f"sqlite:///{tmp_path}/studies.db", upload_bytes=300_000)
    yield made
    made.close()


def outputs(inputs: int) -> str:
    rows = [
        f'{name},mail {number},"**{quality}** for {number}"'
        for name, quality in QUALITY.items()
        for number in range(inputs)
    ]
    return "system,input,output\n" + "\n".join(rows)


def upload(service: InProcessService, table: str, inputs: str | None = None, **settings: Any) -> httpx.Response:
    files = {"outputs": ("outputs.csv", table.encode(), "text/csv")}
    if inputs is not None:
        files["inputs"] = ("inputs.csv", inputs.encode(), "text/csv")
    data = {"settings": json.dumps({"title": "Which reply?", "seed": 1, **settings})}
    return service.client.post("/studies/systems", files=files, data=data, headers=ADMIN)


def begin(service: InProcessService, inputs: int, table: str | None = None, **settings: Any) -> str:
    reply = upload(service, outputs(inputs), table, **settings)
    assert reply.status_code == 201, reply.text
    service.planner.round()
    return str(reply.json()["id"])


def better(question: dict[str, Any], chance: random.Random) -> str:
    """By the output alone, as a blind judge does."""
    first, second = (float(question[side]["text"].split("**")[1]) for side in "ab")
    return "a" if chance.random() < 0.5 + (first - second) / 2 else "b"


def test_a_blind_judge_sees_the_input_and_two_outputs_and_there_is_a_verdict(service: InProcessService) -> None:
    table = "input,text\n" + "\n".join(f'mail {number},"Reply to *mail* {number}"' for number in range(20))
    study = begin(service, 20, table, delta=0.2)
    judges: list[FakeJudge] = [service.judge(study, name) for name in ("Ann", "Ben")]
    chance, shown, most = random.Random(2), Counter[tuple[str, ...]](), 0
    for _ in range(300):
        over = False
        for judge in judges:
            reply = service.client.post(f"/studies/{study}/questions", headers=judge.headers)
            assert "gpt-" not in reply.text
            taken = reply.json()
            over = over or not taken["open"]
            for question in taken["questions"]:
                number = question["input"]["text"].rsplit(" ", 1)[1]
                assert question["input"]["html"] == f"<p>Reply to <em>mail</em> {number}</p>"
                assert question["a"]["text"].endswith(f"for {number}")
                assert question["a"]["html"].startswith("<p><strong>")
                assert [item["label"] for item in question["items"]] == ["A", "B"]
                shown[judge.id, number, *sorted(item["text"] for item in question["items"])] += 1
                judge.answer(question["id"], better(question, chance))
            service.planner.round()
        if over:
            break
    result = service.get(f"/studies/{study}/result")
    assert (result["best"], result["status"], result["guarantee"]) == ("gpt-new", "certain", "proved")
    assert any("on average over these 20 inputs" in sentence for sentence in result["assumptions"])
    assert max(shown.values()) == 1  # nobody was shown the same outputs twice
    assert service.get(f"/studies/{study}")["inputs"] == 20
    rows = service.client.get(f"/studies/{study}/export?what=answers&format=jsonl", headers=ADMIN).text.splitlines()
    assert {json.loads(row)["input"] for row in rows} <= {f"mail {number}" for number in range(20)}
    most = len(rows)
    assert most >= sum(shown.values())
    assert [report.wrong for report in verify(service.parts.database)] == [[]]


def test_the_first_answer_to_the_same_outputs_stands_for_later_ones(service: InProcessService) -> None:
    study = begin(service, 2, budget=40)
    judge = service.judge(study)
    said: dict[tuple[str, ...], str] = {}
    chance = random.Random(5)
    for _ in range(60):
        taken = judge.lease()
        if not taken["open"]:
            break
        for question in taken["questions"]:
            texts = [item["text"] for item in question["items"]]
            key = tuple(sorted(texts))
            assert key not in said
            word = chance.choice(["a", "b", "tie"])
            said[key] = word if word == "tie" else texts["ab".index(word)]
            judge.answer(question["id"], word)
        service.planner.round()
    assert len(said) <= 6  # three pairs on two inputs
    rows = [
        json.loads(row)
        for row in service.client.get(
            f"/studies/{study}/export?what=answers&format=jsonl", headers=ADMIN
        ).text.splitlines()
    ]
    assert len(rows) > len(said)  # the rest was answered as before, without asking
    for row in rows:
        number = row["input"].split()[1]
        texts = {side: f"**{QUALITY[row[f'item_{side}']]}** for {number}" for side in "ab"}
        first = said[tuple(sorted(texts.values()))]
        assert row["winner"] == "tie" if first == "tie" else texts[row["winner"]] == first
    assert [report.wrong for report in verify(service.parts.database)] == [[]]


def test_systems_need_outputs_for_the_same_inputs(service: InProcessService) -> None:
    reply = upload(service, "system,input,output\nx,1,one\nx,2,two\ny,1,uno\n")
    assert reply.status_code == 201
    prepared = reply.json()["prepare"]["left_out"]
    assert any("left out" in sentence for sentence in prepared)
    assert not any("/tmp" in sentence for sentence in prepared)
    study = reply.json()["id"]
    assert service.get(f"/studies/{study}")["inputs"] == 1
    service.post(f"/studies/{study}/items", {"add": [{"name": "z"}]}, status=409)
    for table, settings, part in (
        ("system,output\nx,1\n", {}, "outputs.csv has no column 'input'"),
        ("system,input,output\nx,1,one\n", {}, "fewer than two systems"),
        ("system,input,output\nx,1,one\ny,2,two\n", {}, "no input has an output of every system"),
        (f"system,input,output\nx,1,{'long ' * 25_000}\ny,1,two\n", {}, "at most 100000"),
        (f"system,input,output\n{'x' * 300},1,one\ny,1,two\n", {}, "at most 200"),
        (outputs(2), {"kind": "items"}, "two at a time"),
        (outputs(2), {"answer": "rank", "show": 3}, "two at a time"),
        (outputs(2), {"nonsense": 1}, "nonsense"),
        ("PK\x03\x04", {}, "neither CSV nor JSON lines"),
    ):
        reply = upload(service, table, **settings)
        assert (reply.status_code, part in reply.json()["detail"]) == (422, True), reply.text
    assert upload(service, outputs(2) + "x" * 300_000).status_code == 413
    assert service.judge(begin(service, 2, blind=False)).lease()["questions"][0]["a"]["name"].startswith("gpt-")
