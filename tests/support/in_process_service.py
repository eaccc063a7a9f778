"""A service to test: the application without planning processes, and a planner that is called by hand."""

import asyncio
import random
from typing import Any

import httpx

from surepick.service.app import create_app
from surepick.service.settings import Settings, hash_token
from surepick.store import Planner

TOKEN = "a token of the tests only"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
COLOURS = {"red": [1.0, 0.0], "green": [0.0, 1.0], "blue": [0.5, 0.6]}
LIKING = {"red": 3.0, "green": 0.0, "blue": 1.0}


def study(**fields: Any) -> dict[str, Any]:
    """The body of a study of three colours, whose judges may be asked the same again: three pairs are soon used up."""
    items = [{"name": name, "features": features} for name, features in COLOURS.items()]
    chosen = {} if {"policy", "assume"} & set(fields) else {"policy": "anytime"}
    return {"title": "colours", "items": items, "seed": 1, "repeats": "independent", **chosen, **fields}


class Client:
    """Requests to the application in this process."""

    def __init__(self, app: Any) -> None:
        self._runner = asyncio.Runner()
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://test")

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self._runner.run(self._client.request(method, path, **options))

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    def delete(self, path: str, **options: Any) -> httpx.Response:
        return self.request("DELETE", path, **options)

    def forget_cookies(self) -> None:
        self._client.cookies.clear()

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()


class InProcessService:
    """One process of the service, with its clock in the test's hands."""

    def __init__(self, url: str, **settings: Any) -> None:
        self.now = 1_000_000.0
        self.app = create_app(Settings(database=url, token_hash=hash_token(TOKEN), **settings))
        self.parts = self.app.state.service
        self.parts.clock = self.parts.database.clock = lambda: self.now
        self.parts.patience = 0.0  # planners run when a test calls them
        self.client = Client(self.app)
        self.planner = Planner(self.parts.database)

    def close(self) -> None:
        self.client.close()
        self.parts.group_commit.close()
        self.parts.database.close()

    def post(self, path: str, body: Any = None, headers: dict[str, str] | None = None, status: int = 200) -> Any:
        """Post JSON and expect this status."""
        reply = self.client.post(path, json=body, headers=ADMIN if headers is None else headers)
        assert reply.status_code == status, reply.text
        return reply.json()

    def get(self, path: str, status: int = 200) -> Any:
        reply = self.client.get(path, headers=ADMIN)
        assert reply.status_code == status, reply.text
        return reply.json()

    def begin(self, **fields: Any) -> str:
        """A study with its first questions ready."""
        created = self.post("/studies", study(**fields), status=201)["id"]
        self.planner.round()
        return str(created)

    def judge(self, study: str, name: str = "jo") -> "FakeJudge":
        return FakeJudge(self, study, self.post(f"/studies/{study}/judges", {"name": name}, status=201))


class FakeJudge:
    """A judge with a taste (LIKING), who errs as the logistic model says."""

    def __init__(self, service: InProcessService, study: str, invitation: dict[str, Any]) -> None:
        self.service, self.study = service, study
        self.id = invitation["id"]
        self.headers = {"Authorization": f"Bearer {invitation['token']}"}
        self.chance = random.Random(7)

    def lease(self, n: int = 1, status: int = 200) -> Any:
        return self.service.post(f"/studies/{self.study}/questions?n={n}", headers=self.headers, status=status)

    def answer(self, question: str, answer: str, status: int = 200, **more: Any) -> Any:
        self.service.now += 1.0
        body = {"question": question, "answer": answer, **more}
        return self.service.post(f"/studies/{self.study}/answers", body, headers=self.headers, status=status)

    def undo(self, status: int = 200, **body: Any) -> Any:
        self.service.now += 1.0
        return self.service.post(f"/studies/{self.study}/undo", body, headers=self.headers, status=status)

    def prefers(self, question: dict[str, Any]) -> str:
        first, second = LIKING[question["a"]["name"]], LIKING[question["b"]["name"]]
        return "a" if self.chance.random() < 1 / (1 + 2.718281828 ** (second - first)) else "b"

    def work(self, most: int = 10_000, n: int = 2) -> int:
        """Answer until there is nothing left to ask; how many answers that took."""
        count = 0
        while count < most:
            taken = self.lease(n)
            if not taken["open"]:
                break
            for question in taken["questions"]:
                self.answer(question["id"], self.prefers(question))
                count += 1
            self.service.planner.round()
        return count
