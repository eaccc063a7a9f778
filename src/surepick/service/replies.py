"""Replies kept by Idempotency-Key: a request that is sent again gets the first reply and is not carried out twice.

The key is stored in the transaction that carries out the request, so either both are there or neither is. Of two
processes that get the same key at once the database lets one insert it, and the other waits and finds the reply.
"""

import hashlib
import json
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import Header
from pydantic import BaseModel

from surepick.errors import InvalidInput
from surepick.store import Database
from surepick.store.schema import replies

KEEP_SECONDS = 86_400.0
"""How long a reply is kept; whoever sends a request again does so within a day."""

IdempotencyKey = Annotated[
    str | None,
    Header(
        pattern=r"^[!-~]{1,200}$",
        description="Any word of your choice for this request: the same again within a day gets the first reply.",
    ),
]


def digest(body: BaseModel | bytes) -> str:
    """What tells one request from another with the same key."""
    content = body if isinstance(body, bytes) else body.model_dump_json().encode()
    return hashlib.sha256(content).hexdigest()


def first_reply(database: Database, connection: sa.Connection, scope: str, key: str, what: str, now: float) -> Any:
    """The reply to the request that came with this key before; None for a new key, which is taken by this call.

    `what` is the digest of the request. A key is refused for another request than its first.
    """
    connection.execute(_delete_old, {"before": now - KEEP_SECONDS})
    row = {"scope": scope, "key": key, "at": now, "digest": what, "body": "null"}
    if connection.execute(database.insert_new(replies), [row]).rowcount == 1:
        return None
    found = connection.execute(sa.select(replies).where(*_row(scope, key))).one()
    if found.digest != what:
        raise InvalidInput(f"The Idempotency-Key {key!r} was used for another request; choose another.")
    return json.loads(found.body)


def keep_reply(connection: sa.Connection, scope: str, key: str, reply: Any) -> None:
    """Keep the reply to the request of a key that `first_reply` found new."""
    connection.execute(sa.update(replies).where(*_row(scope, key)).values(body=json.dumps(reply)))


def give_back(connection: sa.Connection, scope: str, key: str) -> None:
    """Make a key new again whose request was refused."""
    connection.execute(sa.delete(replies).where(*_row(scope, key)))


# Rows that another process is about to delete are left to it: to wait for it could mean to wait for each other.
_old = sa.select(replies.c.scope, replies.c.key).where(replies.c.at < sa.bindparam("before"))
_delete_old = sa.delete(replies).where(
    sa.tuple_(replies.c.scope, replies.c.key).in_(_old.with_for_update(skip_locked=True))
)


def _row(scope: str, key: str) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return replies.c.scope == scope, replies.c.key == key
