"""The shared link of a study: everybody who opens it becomes a judge of their own.

Its code is derived from the server's secret, the study and the link's turn (`Credentials.shared_code`), so nothing that
lets anybody in is stored, and the link can be shown again at any time. A link that is opened again after it was closed
has another turn, and so another code.
"""

import hashlib
import hmac
import json
import secrets
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from surepick.store.database import Conflict, lock_studies
from surepick.store.schema import judges, studies
from surepick.store.studies import add_judge, get

_SCRYPT = {"n": 2**14, "r": 8, "p": 1}


@dataclass(frozen=True)
class SharedLink:
    """How a study is open to visitors."""

    turn: int
    """Grows whenever the link is opened again after it was closed."""
    most: int
    """Visitors in all."""
    until: float
    phrase: str
    """Salted hash of the pass phrase; empty where none is needed."""
    open: bool

    def usable(self, now: float) -> bool:
        """Whether it lets anybody in who finds a place."""
        return self.open and now < self.until

    def accepts(self, phrase: str) -> bool:
        """Whether this is the pass phrase, or none is needed. Takes about 50 ms, against guessing."""
        if not self.phrase:
            return True
        salt, _, digest = self.phrase.partition("$")
        return hmac.compare_digest(_hashed(phrase, salt), digest)


def _hashed(phrase: str, salt: str) -> str:
    return hashlib.scrypt(phrase.strip().encode(), salt=salt.encode(), **_SCRYPT).hex()


def hash_phrase(phrase: str) -> str:
    """What is kept of a pass phrase; of an empty one, nothing."""
    salt = secrets.token_hex(8)
    return f"{salt}${_hashed(phrase, salt)}" if phrase.strip() else ""


def shared_link(row: sa.RowMapping) -> SharedLink | None:
    """The shared link of a study; None if it never had one."""
    return None if row["shared_link"] is None else SharedLink(**json.loads(row["shared_link"]))


def open_shared_link(connection: sa.Connection, study: str, *, most: int, until: float, phrase: str) -> SharedLink:
    """Let visitors in, or change the limits of a link that is open; `phrase` comes from `hash_phrase`."""
    lock_studies(connection, [study], shared=False)
    row = get(connection, study)
    if row["state"] not in ("running", "paused") or row["decided"] is not None:
        raise Conflict("This study is over, so there is nothing to invite judges to.")
    before = shared_link(row)
    turn = 0 if before is None else before.turn + (not before.open)
    return _keep(connection, study, SharedLink(turn, most, until, phrase, open=True))


def close_shared_link(connection: sa.Connection, study: str) -> None:
    """Let no further visitors in; those who came stay judges."""
    lock_studies(connection, [study], shared=False)
    before = shared_link(get(connection, study))
    if before is not None and before.open:
        _keep(connection, study, SharedLink(**asdict(before) | {"open": False}))


def _keep(connection: sa.Connection, study: str, link: SharedLink) -> SharedLink:
    kept = json.dumps(asdict(link))
    connection.execute(sa.update(studies).where(studies.c.id == study).values(shared_link=kept))
    return link


def visitors(connection: sa.Connection, study: str) -> int:
    """How many judges came by the shared link; those whose data were deleted are no longer counted."""
    wanted = sa.select(sa.func.count()).where(judges.c.study == study, judges.c.visitor.is_(True))
    return int(connection.execute(wanted).scalar_one())


def join(connection: sa.Connection, study: str, turn: int, name: str, now: float, *, until: float) -> str:
    """Make a visitor with a link of this turn a judge; the id. The lock makes the number of visitors exact."""
    lock_studies(connection, [study], shared=False)
    row = get(connection, study)
    link = shared_link(row)
    if link is None or link.turn != turn or not link.usable(now):
        raise Conflict("This shared link was closed; ask whoever sent it for another one.")
    if row["state"] not in ("running", "paused") or row["decided"] is not None:
        raise Conflict("This study is over; thank you for coming.")
    if visitors(connection, study) >= link.most:
        raise Conflict("As many people as were invited have joined; ask whoever sent the link for a place.")
    return add_judge(connection, study, name, now, until=until, visitor=True)
