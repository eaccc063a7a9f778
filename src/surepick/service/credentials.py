"""What lets somebody in, made and checked: the admins' tokens and cookies, judges' links, streams' tokens."""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass

import sqlalchemy as sa
from itsdangerous import BadData, URLSafeSerializer, URLSafeTimedSerializer

from surepick.store import Database, members
from surepick.store.members import OPERATOR, Member
from surepick.store.schema import server

COOKIE = "surepick_admin"
COOKIE_SECONDS = 12 * 3600

HASH_SHOWN = 16
"""Digits of a token's hash in a cookie, which is signed but can be read."""

_SIGNER = {"key_derivation": "hmac", "digest_method": hashlib.sha256}


@dataclass(frozen=True)
class JudgeLink:
    """What a judge's link says."""

    study: str
    judge: str
    until: float


@dataclass(frozen=True)
class LogIn:
    """What an admin's cookie says: its own id, whose it is, and how the hash of the token that it stands for begins."""

    id: str
    member: str
    of: str


def shared_secret(database: Database) -> str:
    """The secret that signs links, the same for all processes on a database; made when first needed."""
    with database.writing() as connection:
        # Several processes may start at once: the first secret stays, and all read that one.
        connection.execute(database.insert_new(server), [{"key": "link secret", "value": secrets.token_urlsafe(32)}])
        secret: str = connection.execute(sa.select(server.c.value).where(server.c.key == "link secret")).scalar_one()
    return secret


class Credentials:
    """Makes and checks what lets somebody in: the admin's token and cookie, judges' links, streams' tokens.

    Links and tokens are signed, not stored: any process with the shared secret can check one without the database.
    Every kind has its own salt, so a judge's link is no admin's cookie.
    """

    def __init__(self, secret: str, token_hash: str) -> None:
        self._secret = secret
        self._token_hash = token_hash
        self._shared = hmac.digest(secret.encode(), b"shared link", "sha256")
        self._links = URLSafeSerializer(secret, salt="judge", signer_kwargs=_SIGNER)
        self._streams = URLSafeSerializer(secret, salt="stream", signer_kwargs=_SIGNER)
        self._cookies = URLSafeSerializer(secret, salt="admin", signer_kwargs=_SIGNER)

    def signer(self, purpose: str) -> URLSafeTimedSerializer:
        """Signs notes for another purpose than those here."""
        return URLSafeTimedSerializer(self._secret, salt=purpose, signer_kwargs=_SIGNER)

    def is_admin(self, token: str) -> bool:
        """Whether this is the service's own token; it takes the same time for every wrong one."""
        return bool(self._token_hash) and hmac.compare_digest(members.hashed(token), self._token_hash)

    def is_own_hash(self, beginning: str) -> bool:
        """Whether the hash of the service's own token begins like this."""
        return bool(self._token_hash) and hmac.compare_digest(beginning, self._token_hash[:HASH_SHOWN])

    def cookie(self, now: float, member: Member = OPERATOR, token_hash: str | None = None) -> str:
        """A cookie that stands for an admin's token, by default the service's own: for COOKIE_SECONDS, until log-out,
        or until the token is changed."""
        of = (self._token_hash if token_hash is None else token_hash)[:HASH_SHOWN]
        return str(self._cookies.dumps([now + COOKIE_SECONDS, member.id, of, secrets.token_urlsafe(12)]))

    def login_of(self, cookie: str, now: float) -> LogIn | None:
        """The log-in of this cookie; None for a forged or expired one. Whether it has ended, the database knows."""
        try:
            until, member, of, login = self._cookies.loads(cookie)
            return LogIn(str(login), str(member), str(of)) if now < float(until) else None
        except (BadData, ValueError, TypeError):
            return None

    def link(self, study: str, judge: str, until: float) -> str:
        """The signed part of a judge's link."""
        return str(self._links.dumps([study, judge, until]))

    def judge(self, link: str, now: float) -> JudgeLink | None:
        """The judge of this link; None for a forged or expired one. Whether it was revoked, the database knows."""
        try:
            study, judge, until = self._links.loads(link)
            found = JudgeLink(str(study), str(judge), float(until))
        except (BadData, ValueError, TypeError):
            return None
        return found if now < found.until else None

    def shared_code(self, study: str, turn: int) -> str:
        """The code of a study's shared link: short, since people may have to type it."""
        digest = hmac.digest(self._shared, f"{study} {turn}".encode(), "sha256")
        return base64.b32encode(digest[:10]).decode().lower()

    def is_shared_code(self, code: str, study: str, turn: int) -> bool:
        """Whether this is the code of that link, however it was typed."""
        given = code.strip().lower().encode("utf-8", "replace")
        return hmac.compare_digest(given, self.shared_code(study, turn).encode())

    def stream_token(self, stream: str, number: int = 0) -> str:
        """The token with which programs ask a stream for decisions, after it was changed this many times."""
        return str(self._streams.dumps([stream, number]))

    def stream_token_number(self, token: str, stream: str) -> int | None:
        """Which token of that stream this is; None if it is none. Whether it is the present one, the database knows."""
        try:
            of, number = self._streams.loads(token)
            return int(number) if of == stream else None
        except (BadData, ValueError, TypeError):
            return None
