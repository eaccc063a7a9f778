"""The example judge for language models, against a stand-in of such a server on this machine."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from typer.testing import CliRunner

from surepick.cli import app

JUDGE = Path(__file__).parents[2] / "examples" / "llm_judge.py"
ITEMS = "item,text\nshort,Yes.\nmiddle,Yes indeed.\nlong,Yes and here is why: because.\n"


class Model(BaseHTTPRequestHandler):
    """Likes long texts, is busy at every fifth request, and wants a key."""

    seen: ClassVar[list[dict]] = []
    lock = threading.Lock()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.lock:
            self.seen.append({**body, "key": self.headers["Authorization"]})
            busy = len(self.seen) % 5 == 0
        if self.headers["Authorization"] != "Bearer secret":
            return self._say(401, {})
        if busy:
            return self._say(429, {}, {"Retry-After": "0.01"})
        first, second = body["messages"][1]["content"].split("[A]\n")[1].split("\n\n[B]\n")
        said = "A." if len(first) > len(second) else "**B** because"
        return self._say(200, {"choices": [{"message": {"content": said}}], "usage": {"total_tokens": 100}})

    def _say(self, code, fields, headers=None):
        content = json.dumps(fields).encode()
        self.send_response(code)
        for name, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    Model.seen = []
    running = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    monkeypatch.setenv("LLM_URL", f"http://127.0.0.1:{running.server_port}/v1/chat/completions")
    monkeypatch.setenv("LLM_KEY", "secret")
    (tmp_path / "items.csv").write_text(ITEMS)
    yield tmp_path / "items.csv"
    running.shutdown()
    running.server_close()


def found(items: Path, *words: str) -> dict:
    judge = f"{sys.executable} {JUDGE} --criterion 'Which answer explains more?' --model one --model two --price 1000"
    result = CliRunner().invoke(app, ["find", str(items), "--judge", judge, "--json", *words], catch_exceptions=False)
    return json.loads(result.stdout)


def test_several_judges_find_the_best_and_count_their_cost(server):
    fields = found(server, "--judges", "2")
    assert fields["best"] == "long"
    assert fields["status"] == "certain"
    assert not fields["troubles"]  # busy servers are asked again
    assert fields["spent"] >= 0.1 * fields["questions"]
    assert {request["model"] for request in Model.seen} == {"one", "two"}
    assert "Which answer explains more?" in Model.seen[0]["messages"][1]["content"]
    assert Model.seen[0]["temperature"] > 0


def test_the_cost_cap_ends_it(server):
    fields = found(server, "--judges", "2", "--cost-per-question", "0.1", "--max-cost", "0.5")
    assert fields["status"] == "cost cap reached"
    assert fields["spent"] <= 0.5 + 1e-9


def test_a_refused_key_is_told(server, monkeypatch):
    monkeypatch.setenv("LLM_KEY", "wrong")
    fields = found(server, "--retries", "0")
    assert fields["status"] == "judges failed"
    assert "The model server replied 401" in fields["troubles"][0]
