"""The tables. The log (`events`) is the truth about a study; what else the planner writes can be derived from it.

Judges write to `messages`, one row for each answer, skip, tie or undo, and are acknowledged when it is committed. The
one planner that holds the study's lease files messages into the log, in an order that is then fixed for ever, and
writes what follows from them: stages, questions, the verdict.

Streams of contextual decisions (`streams`, `stream_events`) have nothing to do with studies.
"""

import sqlalchemy as sa

metadata = sa.MetaData()

server = sa.Table(
    "server",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    comment="What all processes on this database share, such as the secret that signs links.",
)

studies = sa.Table(
    "studies",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("settings", sa.Text, nullable=False, comment="JSON: kind, policy, seed, lease, budget as asked for."),
    sa.Column("state", sa.Text, nullable=False, comment="running, paused, closed or archived."),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("phase", sa.Integer, nullable=False, comment="Counted from 0; changing the items begins a new one."),
    sa.Column("head", sa.Integer, nullable=False, comment="Events in the log."),
    sa.Column("sealed", sa.Integer, nullable=False, comment="Stages of this phase whose answers stay as they are."),
    sa.Column("answered", sa.Integer, nullable=False, comment="Answers of this phase in the log."),
    sa.Column("demand", sa.Integer, nullable=False, comment="Questions a judge asked for in vain."),
    sa.Column("verdict", sa.Text, comment="JSON of the last look; final once its status is."),
    sa.Column("decided", sa.Float, comment="When the verdict became final."),
    sa.Column("certificate", sa.Text, comment="JSON, once there is a proved verdict."),
    sa.Column("insight", sa.Text, comment="JSON: scores, checks, judges, as an observer saw them."),
    sa.Column("insight_head", sa.Integer, nullable=False, comment="Events in the log when it did."),
    sa.Column("insight_from", sa.Float, nullable=False, comment="No new insight before this time."),
    sa.Column("forecast", sa.Text, comment="JSON: how many more answers after `at`, as an observer simulated it."),
    sa.Column("forecast_from", sa.Float, nullable=False, comment="No new forecast before this time."),
    sa.Column("notice", sa.Text, nullable=False, comment="Why planning does not go on, as a sentence; mostly empty."),
    sa.Column("planner", sa.Text, comment="Who plans it now."),
    sa.Column("planner_until", sa.Float, nullable=False),
    sa.Column("term", sa.Integer, nullable=False, comment="Grows whenever another planner takes over."),
)

items = sa.Table(
    "items",
    metadata,
    sa.Column("study", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("colour", sa.Text, nullable=False),
    sa.Column("image", sa.Text, nullable=False, comment="Name of an uploaded image."),
    sa.Column("features", sa.Text, comment="JSON list; null where items have no features."),
    sa.Column("removed", sa.Boolean, nullable=False),
)

images = sa.Table(
    "images",
    metadata,
    sa.Column("study", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
)

judges = sa.Table(
    "judges",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("study", sa.ForeignKey("studies.id"), nullable=False, index=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("revoked", sa.Boolean, nullable=False),
)

questions = sa.Table(
    "questions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("study", sa.ForeignKey("studies.id"), nullable=False),
    sa.Column("phase", sa.Integer, nullable=False),
    sa.Column("number", sa.Integer, nullable=False, comment="Its id in the session."),
    sa.Column("stage", sa.Integer, nullable=False),
    sa.Column("first", sa.Text, nullable=False),
    sa.Column("second", sa.Text, comment="Null for a yes/no question."),
    sa.Column("judge", sa.Text, comment="Null until it is handed out."),
    sa.Column("leased_at", sa.Float),
    sa.Column("leased_until", sa.Float),
    sa.Column("closed", sa.Boolean, nullable=False, comment="Answered, skipped, tied or expired, in the log."),
    sa.UniqueConstraint("study", "phase", "number"),
)

sa.Index(
    "questions_ready",
    questions.c.study,
    questions.c.number,
    sqlite_where=questions.c.judge.is_(None),
    postgresql_where=questions.c.judge.is_(None),
)
sa.Index("questions_in_hand", questions.c.study, questions.c.judge, questions.c.closed)
sa.Index("questions_leased", questions.c.study, questions.c.leased_at)
sa.Index(
    "questions_expiring",
    questions.c.leased_until,
    sqlite_where=sa.and_(questions.c.judge.is_not(None), questions.c.closed.is_(False)),
    postgresql_where=sa.and_(questions.c.judge.is_not(None), questions.c.closed.is_(False)),
)

messages = sa.Table(
    "messages",
    metadata,
    sa.Column("question", sa.ForeignKey("questions.id"), primary_key=True),
    sa.Column("turn", sa.Integer, primary_key=True, comment="Of the messages about one question, from 0."),
    sa.Column("study", sa.Text, nullable=False),
    sa.Column("judge", sa.Text, nullable=False),
    sa.Column("said", sa.Text, nullable=False, comment="a, b, yes, no, tie, skip or undo."),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("seq", sa.Integer, comment="Its event in the log; null until it is filed."),
)

sa.Index(
    "messages_unfiled",
    messages.c.study,
    messages.c.at,
    sqlite_where=messages.c.seq.is_(None),
    postgresql_where=messages.c.seq.is_(None),
)
sa.Index("messages_of_judge", messages.c.study, messages.c.judge, messages.c.at)

events = sa.Table(
    "events",
    metadata,
    sa.Column("study", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, comment="From 0, without gaps."),
    sa.Column("phase", sa.Integer, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("body", sa.Text, nullable=False, comment="The session's event as JSON."),
)

looks = sa.Table(
    "looks",
    metadata,
    sa.Column("study", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, comment="Events in the log when it was taken."),
    sa.Column("phase", sa.Integer, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("answered", sa.Integer, nullable=False),
    sa.Column("body", sa.Text, nullable=False, comment="JSON: status, best, surviving, evidence against the closest."),
)

streams = sa.Table(
    "streams",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("head", sa.Integer, nullable=False, comment="Events in the log."),
    sa.Column("decisions", sa.Integer, nullable=False),
    sa.Column("settled", sa.Integer, nullable=False, comment="Decisions that were rewarded or given up."),
)

stream_events = sa.Table(
    "stream_events",
    metadata,
    sa.Column("stream", sa.ForeignKey("streams.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, comment="From 0, without gaps."),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("token", sa.Text, nullable=False, comment="Of the transaction that wrote it."),
    sa.Column("body", sa.Text, nullable=False, comment="A line of the contextual session's log as JSON."),
)
