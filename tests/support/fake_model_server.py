"""An OpenAI-compatible server that misbehaves on request; it likes the longer text unless told otherwise.

`python tests/support/fake_model_server.py 8000` runs it by hand.
"""

import json
import math
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def chat(text: Any, *, finish: str = "stop", logprobs: list[dict] | None = None, **message: Any) -> dict:
    """The body of a good reply."""
    said = {"role": "assistant", "content": text, **message}
    return {
        "id": "fake",
        "object": "chat.completion",
        "choices": [
            {"index": 0, "message": said, "finish_reason": finish, "logprobs": logprobs and {"content": logprobs}}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def token_chances(**chances: float) -> list[dict]:
    """Log-probabilities of the tokens of {"answer":"A"}, with these chances of the letter."""
    top = [{"token": word, "logprob": math.log(chance)} for word, chance in chances.items() if chance > 0]
    first = max(top, key=lambda one: one["logprob"])
    certain = [{"token": part, "logprob": 0.0, "top_logprobs": []} for part in ('{"', "answer", '":"')]
    return [*certain, {**first, "top_logprobs": top}, {"token": '"}', "logprob": 0.0, "top_logprobs": []}]


def error(message: str, code: str | None = None, param: str | None = None) -> dict:
    """The body of an error, as OpenAI writes it."""
    return {"error": {"message": message, "type": "invalid_request_error", "code": code, "param": param}}


@dataclass
class Canned:
    """A reply that is given once, whatever was asked."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


class FakeModelServer:
    """A server in a thread of this process; `with FakeModelServer() as server` starts and stops it."""

    def __init__(self, port: int = 0) -> None:
        self.key: str | None = None
        self.models = {"judge-1"}
        self.rejects: set[str] = set()
        """Parameters that it refuses, as reasoning models do."""
        self.seconds = 0.0
        """How long each reply takes."""
        self.canned: deque[Canned] = deque()
        """Replies to give first."""
        self.judge: Callable[[str, str], Any] = lambda first, second: "A" if len(first) > len(second) else "B"
        """From the two texts to a letter, or to a whole body."""
        self.seen: list[dict] = []
        self.busiest = 0
        self._busy = 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer._lock:
                    outer.seen.append({**sent, "path": self.path, "key": self.headers["Authorization"]})
                    outer._busy += 1
                    outer.busiest = max(outer.busiest, outer._busy)
                    reply = outer.canned.popleft() if outer.canned else outer.reply(sent, self.headers["Authorization"])
                time.sleep(reply.seconds or outer.seconds)
                with outer._lock:
                    outer._busy -= 1
                content = reply.body.encode() if isinstance(reply.body, str) else json.dumps(reply.body).encode()
                try:
                    self.send_response(reply.status)
                    for name, value in {**reply.headers, "Content-Length": str(len(content))}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(content)
                except OSError:  # nobody waits for it any more
                    pass

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True

    def __enter__(self) -> "FakeModelServer":
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def reply(self, sent: dict, key: str | None) -> Canned:
        """What a careful server would say."""
        if self.key is not None and key != f"Bearer {self.key}":
            return Canned(401, error("Incorrect API key provided: sk-wr***ng.", "invalid_api_key"))
        if sent["model"] not in self.models:
            return Canned(404, error(f"The model `{sent['model']}` does not exist.", "model_not_found"))
        for name in ("max_tokens", "temperature", "response_format", "logprobs"):
            if name in self.rejects and name in sent:
                return Canned(
                    400, error(f"Unsupported parameter: '{name}' is not supported with this model.", None, name)
                )
        if sent.get("stream"):
            return Canned(400, error("Streaming is off."))
        if len(candidates(sent)) > 2:
            return Canned(200, chat(ranked(sent)))
        said = self.judge(*texts(sent))
        if isinstance(said, dict):
            return Canned(200, said)
        text = json.dumps({"answer": said}) if "response_format" in sent else f"Let me see.\n\nAnswer: {said}"
        return Canned(200, chat(text))


def candidates(sent: dict) -> list[tuple[str, str]]:
    """Letters and texts of all candidates of a prompt without images."""
    content = sent["messages"][-1]["content"]
    found = r"<candidate_([A-L])>\n(.*?)\n</candidate_\1>"
    return re.findall(found, content, re.S) if isinstance(content, str) else []


def ranked(sent: dict) -> str:
    """Several candidates in the order of their length, in the format asked for."""
    order = [letter for letter, _ in sorted(candidates(sent), key=lambda one: -len(one[1]))]
    if "response_format" not in sent:
        return f"Let me see.\n\nAnswer: {' > '.join(order)}"
    [name] = sent["response_format"]["json_schema"]["schema"]["required"]
    return json.dumps({name: order if name == "ranking" else order[0]})


def texts(sent: dict) -> tuple[str, str]:
    """The two texts of a prompt, or the addresses of the two images."""
    content = sent["messages"][-1]["content"]
    if isinstance(content, list):
        first, second = (part["image_url"]["url"] for part in content if part["type"] == "image_url")
        return first, second
    shown = [re.search(rf"<candidate_{letter}>\n(.*)\n</candidate_{letter}>", content, re.S) for letter in "AB"]
    return shown[0][1], shown[1][1]


if __name__ == "__main__":
    with FakeModelServer(int(sys.argv[1])) as running:
        print(f"export OPENAI_BASE_URL={running.url} OPENAI_API_KEY=none  # the model is judge-1", flush=True)
        threading.Event().wait()
