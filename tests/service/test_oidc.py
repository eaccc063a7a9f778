"""Log-in by OpenID Connect, at a small provider that the test starts itself."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from in_process_service import ADMIN, InProcessService

CLIENT = ("surepick", "the client's secret")


class Provider:
    """Discovery, keys and tokens; what it says about people is in the test's hands."""

    def __init__(self) -> None:
        self.key: Any = RSAKey.generate_key(2048, {"kid": "one"})
        self.published = self.key
        self.claims: dict[str, Any] = {}
        """Changes to what an ID token says."""
        self.algorithm = "RS256"
        self.codes: dict[str, dict[str, str]] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                self.reply(provider.configuration if "configuration" in self.path else provider.keys)

            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                reply = provider.token({name: values[0] for name, values in form.items()}, self.headers)
                self.reply(reply, 200 if reply else 400)

            def reply(self, body: Any, status: int = 200) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def configuration(self) -> dict[str, str]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
        }

    @property
    def keys(self) -> dict[str, Any]:
        return {"keys": [self.published.as_dict(private=False)]}

    def authorise(self, address: str) -> str:
        """Somebody logs in at the provider; where the browser is sent then."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        self.codes["the-code"] = asked
        return f"/oidc/callback?code=the-code&state={asked['state']}"

    def token(self, form: dict[str, str], headers: Any) -> Any:
        asked = self.codes.pop(form["code"], None)
        basic = base64.b64encode(":".join(CLIENT).encode()).decode()
        verified = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        if asked is None or headers["Authorization"] != f"Basic {basic}":
            return None
        assert verified.decode() == asked["code_challenge"]
        assert form["redirect_uri"] == asked["redirect_uri"] == "https://surepick.example.org/oidc/callback"
        said = {"iss": self.url, "aud": CLIENT[0], "exp": int(time.time()) + 60, "nonce": asked["nonce"], "sub": "7"}
        claims = said | {"email": "jo@example.org", "email_verified": True} | self.claims
        return {"id_token": jwt.encode({"alg": self.algorithm, "kid": "one"}, claims, self.key)}


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.server.shutdown()
    provider.server.server_close()


@pytest.fixture
def provider(running: Provider) -> Provider:
    running.key, running.claims, running.algorithm = running.published, {}, "RS256"
    return running


@pytest.fixture
def service(provider: Provider, tmp_path: Path) -> Iterator[InProcessService]:
    made = InProcessService(
        f"sqlite:///{tmp_path}/studies.db",
        oidc_issuer=provider.url,
        oidc_client_id=CLIENT[0],
        oidc_client_secret=CLIENT[1],
        public_url="https://surepick.example.org",
    )
    made.client._client.base_url = "https://surepick.example.org"
    member = {"name": "Jo", "project": "shoes", "role": "editor", "email": "Jo@Example.org"}
    made.post("/members", member, ADMIN, status=201)
    yield made
    made.close()


def log_in(service: InProcessService, provider: Provider) -> Any:
    begun = service.client.get("/oidc/login")
    assert begun.status_code == 303
    assert begun.headers["location"].startswith(f"{provider.url}/authorize?")
    return service.client.get(provider.authorise(begun.headers["location"]))


def test_a_member_logs_in_with_the_rights_of_the_member(service: InProcessService, provider: Provider) -> None:
    assert "/oidc/login" in service.client.get("/", headers={"Accept": "text/html"}).text
    done = log_in(service, provider)
    assert done.status_code == 200
    assert "url=/" in done.text
    assert "SameSite=strict" in done.headers["set-cookie"]
    assert service.client.get("/studies").status_code == 200
    assert service.client.get("/members").status_code == 403  # an editor
    origin = {"Origin": "https://surepick.example.org"}
    made = service.client.post("/studies", headers=origin, json={"title": "x", "items": [{"name": "a"}, {"name": "b"}]})
    assert made.status_code == 201
    entry = service.client.get("/audit", headers=ADMIN).json()[0]
    assert (entry["name"], entry["project"], entry["action"]) == ("Jo", "shoes", "POST /studies")
    assert service.client.post("/logout", headers=origin).status_code == 204
    assert service.client.get("/studies").status_code == 401


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "somebody@example.org"},
        {"email_verified": False},
        {"email": None},
        {"aud": "another client"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"nonce": "of another log-in"},
    ],
    ids=str,
)
def test_others_are_refused(service: InProcessService, provider: Provider, claims: dict[str, Any]) -> None:
    provider.claims = claims
    assert log_in(service, provider).status_code == 401
    assert service.client.get("/studies").status_code == 401


def test_signatures_are_checked(service: InProcessService, provider: Provider) -> None:
    provider.key = RSAKey.generate_key(2048, {"kid": "one"})
    assert log_in(service, provider).status_code == 401
    provider.key, provider.algorithm = OctKey.import_key("the client's secret" * 2), "HS256"
    assert log_in(service, provider).status_code == 401


def test_a_log_in_begun_by_somebody_else_is_refused(service: InProcessService, provider: Provider) -> None:
    begun = service.client.get("/oidc/login")
    address = provider.authorise(begun.headers["location"])
    assert service.client.get(address.replace("state=", "state=x")).status_code == 401
    service.client._client.cookies.clear()  # the address was sent to somebody whose browser did not begin
    assert service.client.get(address).status_code == 401


def test_a_provider_that_is_away_is_said_to_be(service: InProcessService, provider: Provider) -> None:
    begun = service.client.get("/oidc/login")
    service.client.get(address := provider.authorise(begun.headers["location"]))
    assert service.client.get(address).status_code in (401, 502)  # the code was used


def test_without_a_provider_there_is_no_log_in(tmp_path: Path) -> None:
    plain = InProcessService(f"sqlite:///{tmp_path}/studies.db")
    assert plain.client.get("/oidc/login").status_code == 404
    assert "/oidc/login" not in plain.client.get("/", headers={"Accept": "text/html"}).text
    plain.close()
