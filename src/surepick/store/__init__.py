"""Where studies live: an append-only log in SQLite or PostgreSQL, judges' messages, and the planner between them.

Reading order: `schema`, `judging` (what judges do), `planner` (what follows from it), `verify`; `streams` by itself.
"""

from surepick.store.database import Database, open_database
from surepick.store.errors import Conflict, Forbidden, NotFound
from surepick.store.group_commit import Writer
from surepick.store.planner import Planner

__all__ = ["Conflict", "Database", "Forbidden", "NotFound", "Planner", "Writer", "open_database"]
