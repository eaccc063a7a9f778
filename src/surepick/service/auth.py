"""Who may do what: the admin by a bearer token (or a cookie got for it), judges by signed links."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass

import sqlalchemy as sa
from itsdangerous import BadData, URLSafeSerializer

from surepick.errors import InvalidInput
from surepick.store import Database
from surepick.store.schema import server

COOKIE = "surepick_admin"
COOKIE_SECONDS = 12 * 3600
SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class JudgeLink:
    """What a judge's link says."""

    study: str
    judge: str
    until: float


def new_token() -> str:
    """A token nobody guesses."""
    return secrets.token_urlsafe(24)


def hash_token(token: str) -> str:
    """What is kept of an admin's token."""
    if len(token) < SHORTEST_TOKEN:
        raise InvalidInput(
            f"An admin's token must have at least {SHORTEST_TOKEN} characters, got {len(token)}; leave it out and one "
            "is made."
        )
    return hashlib.sha256(token.encode()).hexdigest()


def shared_secret(database: Database) -> str:
    """The secret that signs links, the same for all processes on a database; made when first asked for."""
    with database.writing() as connection:
        connection.execute(database.insert_new(server), [{"key": "link secret", "value": secrets.token_urlsafe(32)}])
        secret: str = connection.execute(sa.select(server.c.value).where(server.c.key == "link secret")).scalar_one()
    return secret


class Gate:
    """Signs and checks."""

    def __init__(self, secret: str, token_hash: str) -> None:
        self._token_hash = token_hash
        self._links = URLSafeSerializer(secret, salt="judge", signer_kwargs=_SIGNER)
        self._streams = URLSafeSerializer(secret, salt="stream", signer_kwargs=_SIGNER)
        self._visits = URLSafeSerializer(secret, salt="admin", signer_kwargs=_SIGNER)

    def is_admin(self, token: str) -> bool:
        """Whether this is the admin's token; takes the same time for every wrong one."""
        given = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
        return bool(self._token_hash) and hmac.compare_digest(given, self._token_hash)

    def cookie(self, now: float) -> str:
        """A cookie that stands for the token for a while; a changed token ends it."""
        return str(self._visits.dumps([now + COOKIE_SECONDS, self._token_hash[:16]]))

    def is_admins_cookie(self, cookie: str, now: float) -> bool:
        """Whether the cookie is one of ours and still good."""
        try:
            until, of = self._visits.loads(cookie)
        except (BadData, ValueError, TypeError):
            return False
        return bool(self._token_hash) and now < float(until) and hmac.compare_digest(str(of), self._token_hash[:16])

    def link(self, study: str, judge: str, until: float) -> str:
        """The signed part of a judge's link."""
        return str(self._links.dumps([study, judge, until]))

    def judge(self, link: str, now: float) -> JudgeLink | None:
        """Who comes with this link; None for a forged or expired one. Whether it was revoked the database knows."""
        try:
            study, judge, until = self._links.loads(link)
            found = JudgeLink(str(study), str(judge), float(until))
        except (BadData, ValueError, TypeError):
            return None
        return found if now < found.until else None

    def stream_token(self, stream: str) -> str:
        """The token with which programs ask a stream for decisions."""
        return str(self._streams.dumps(stream))

    def is_streams_token(self, token: str, stream: str) -> bool:
        """Whether this is the token of that very stream."""
        try:
            return bool(self._streams.loads(token) == stream)
        except BadData:
            return False


_SIGNER = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
