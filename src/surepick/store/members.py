"""Who may administer what: members of projects, their roles and tokens, and the record of what they did.

A project has studies and streams of its own. A member belongs to one project, or to all of them (None). Roles include
each other: a viewer reads, an editor also creates and changes, an owner also deletes, and manages members.
"""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from surepick.errors import InvalidInput
from surepick.store.database import Conflict, NotFound
from surepick.store.schema import audit, members, streams, studies

Role = Literal["viewer", "editor", "owner"]

RANKS: dict[Role, int] = {"viewer": 0, "editor": 1, "owner": 2}

DEFAULT_PROJECT = "default"
"""Of what is created by somebody who belongs to all projects and names none."""


@dataclass(frozen=True)
class Member:
    """Somebody who may administer a project, or all of them."""

    id: str
    name: str
    project: str | None
    role: Role

    def may(self, role: Role) -> bool:
        """Whether this member has the rights of a role."""
        return RANKS[self.role] >= RANKS[role]

    def belongs_to(self, project: str | None) -> bool:
        """Whether this member administers a project; None stands for all of them."""
        return self.project is None or self.project == project


OPERATOR = Member("", "operator", None, "owner")
"""Whoever has the token that the service was started with."""


def hashed(token: str) -> str:
    """What is kept of a token. One round of SHA-256 is enough: it is random and long, unlike a password."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def add(
    connection: sa.Connection, *, project: str | None, name: str, email: str, role: Role, now: float
) -> tuple[str, str]:
    """A new member: id and token. The token is not kept, only its hash."""
    if email and connection.execute(sa.select(members.c.id).where(*_of_email(email))).first():
        raise Conflict(f"There is a member with the address {email!r} already; revoke that one first.")
    member, token = secrets.token_urlsafe(9), secrets.token_urlsafe(24)
    row = {"id": member, "project": project, "name": name, "email": email.lower(), "role": role, "created": now}
    connection.execute(sa.insert(members).values(**row, token_hash=hashed(token), revoked=False))
    return member, token


def every(connection: sa.Connection, project: str | None) -> list[sa.RowMapping]:
    """All members of a project, or of all projects, the oldest first."""
    wanted = sa.select(members).order_by(members.c.created, members.c.id)
    if project is not None:
        wanted = wanted.where(members.c.project == project)
    return list(connection.execute(wanted).mappings())


def get(connection: sa.Connection, member: str, project: str | None) -> sa.RowMapping:
    """The row of a member of a project, or of any."""
    row = connection.execute(sa.select(members).where(members.c.id == member)).mappings().first()
    if row is None or (project is not None and row["project"] != project):
        raise NotFound(f"There is no member {member!r}.")
    return row


def rotate_token(connection: sa.Connection, member: str, project: str | None) -> str:
    """A new token in place of the member's old one, which no longer lets anybody in; nor do cookies made with it."""
    if get(connection, member, project)["revoked"]:
        raise InvalidInput(f"The member {member!r} was revoked; add a new one.")
    token = secrets.token_urlsafe(24)
    connection.execute(sa.update(members).where(members.c.id == member).values(token_hash=hashed(token)))
    return token


def revoke(connection: sa.Connection, member: str, project: str | None) -> None:
    """End all access of a member; what the member did stays on record."""
    get(connection, member, project)
    connection.execute(sa.update(members).where(members.c.id == member).values(revoked=True))


def by_token_hash(connection: sa.Connection, token_hash: str) -> Member | None:
    """The member with this token."""
    return _first(connection, members.c.token_hash == token_hash)


def by_id(connection: sa.Connection, member: str, hash_begins: str) -> Member | None:
    """The member of this id, if the hash of their token begins like this."""
    return _first(connection, sa.and_(members.c.id == member, members.c.token_hash.startswith(hash_begins)))


def by_email(connection: sa.Connection, email: str) -> tuple[Member, str] | None:
    """The member with this address, and the hash of their token, which cookies are bound to."""
    row = connection.execute(sa.select(members).where(*_of_email(email))).first()
    return None if row is None else (Member(row.id, row.name, row.project, row.role), row.token_hash)


def _of_email(email: str) -> tuple[sa.ColumnElement[bool], ...]:
    return members.c.email == email.lower(), members.c.email != "", members.c.revoked.is_(False)


def _first(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> Member | None:
    row = connection.execute(sa.select(members).where(condition, members.c.revoked.is_(False))).first()
    return None if row is None else Member(row.id, row.name, row.project, row.role)


def project_of(connection: sa.Connection, kind: Literal["study", "stream"], key: str) -> str | None:
    """The project of a study or stream; None where there is none such."""
    table = studies if kind == "study" else streams
    return connection.execute(sa.select(table.c.project).where(table.c.id == key)).scalar()


def project_of_path(connection: sa.Connection, path: str) -> str | None:
    """The project of the study or stream that a path is about; None where it is about none."""
    kinds: dict[str, Literal["study", "stream"]] = {"studies": "study", "streams": "stream"}
    _, kind, key, *_ = [*path.split("/"), "", ""]
    return project_of(connection, kinds[kind], key) if kind in kinds and key else None


def note(
    connection: sa.Connection, who: Member, action: str, target: str, request: str, now: float, *, project: str | None
) -> int:
    """Record what somebody is about to do; the number of the entry. Its outcome is added by `note_outcome`.

    `project` is that of what it is about, whose owners may read the entry.
    """
    row: dict[str, Any] = {"at": now, "member": who.id, "name": who.name, "project": project}
    new = sa.insert(audit).values(**row, action=action, target=target, request=request)
    return int(connection.execute(new.returning(audit.c.id)).scalar_one())


def note_outcome(
    connection: sa.Connection, entry: int, status: int, *, made: str = "", project: str | None = None
) -> None:
    """Add to an entry how the request ended, the path of what it made, and the project of that.

    An entry without an outcome is of a process that died before it knew.
    """
    made_now = {name: value for name, value in (("target", made), ("project", project)) if value}
    connection.execute(sa.update(audit).where(audit.c.id == entry).values(status=status, **made_now))


@dataclass(frozen=True)
class AuditFilter:
    """Which entries of the record are wanted; what is empty leaves all."""

    who: str = ""
    """Part of the name of who acted, in any case."""
    action: str = ""
    """Method and route."""
    study: str = ""
    """Id of the study that it is about."""


def record(
    connection: sa.Connection, project: str | None, before: int | None, n: int, wanted: AuditFilter = AuditFilter()
) -> list[sa.RowMapping]:
    """The newest n entries about a project, or about all, older than the entry `before`."""
    entries = sa.select(audit).order_by(audit.c.id.desc()).limit(n)
    if project is not None:
        entries = entries.where(audit.c.project == project)
    if before is not None:
        entries = entries.where(audit.c.id < before)
    if wanted.who:
        entries = entries.where(audit.c.name.icontains(wanted.who, autoescape=True))
    if wanted.action:
        entries = entries.where(audit.c.action == wanted.action)
    if wanted.study:
        path = f"/studies/{wanted.study}"
        within = audit.c.target.startswith(f"{path}/", autoescape=True)
        entries = entries.where(sa.or_(audit.c.target == path, within))
    return list(connection.execute(entries).mappings())
