"""Where studies live: an append-only log in SQLite or PostgreSQL, judges' messages, and the planner between them.

Reading order: `schema`, `question_queue` (what judges do), `log` and `planner` (what follows from it), `verify`;
`streams` is independent of the others.
"""

from surepick.store.database import Conflict, Database, Forbidden, NotFound, open_database
from surepick.store.group_commit import GroupCommit
from surepick.store.planner import Planner

__all__ = ["Conflict", "Database", "Forbidden", "GroupCommit", "NotFound", "Planner", "open_database"]
