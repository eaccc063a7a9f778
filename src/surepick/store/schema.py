"""The tables. The log (`events`) is the truth about a study; everything else the planner writes is derived from it.

Judges write to `messages`, one row for each answer, skip, tie or undo, and are acknowledged when it is committed. The
planner that holds the study's lease appends messages to the log, in the order of their ids, and writes what follows
from them: stages, questions, the verdict. A message that contradicts the log is quarantined: kept with the reason and
shown to the admin, so that it neither blocks the study nor disappears.

A question is answered when an answer, a skip, a tie or its expiry is in the log. A stage counts as evaluated once all
its questions are answered: its evidence may then be in a verdict. A study is decided when its verdict is final.

Streams of contextual decisions (`streams`, `stream_events`) have nothing to do with studies.
"""

import sqlalchemy as sa

from surepick.store.database import Lease

metadata = sa.MetaData()

server = sa.Table(
    "server",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    comment="What all processes on this database share, such as the secret that signs links.",
)

members = sa.Table(
    "members",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("project", sa.Text, comment="Null: all projects."),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("email", sa.Text, nullable=False, comment="For logging in by OpenID Connect; may be empty."),
    sa.Column("role", sa.Text, nullable=False, comment="viewer, editor or owner."),
    sa.Column("token_hash", sa.Text, nullable=False, unique=True),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("revoked", sa.Boolean, nullable=False),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("member", sa.Text, nullable=False, comment="Empty: whoever has the service's own token."),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("project", sa.Text, index=True, comment="Of what it is about, else of the member; null: all."),
    sa.Column("action", sa.Text, nullable=False, comment="Method and route."),
    sa.Column("target", sa.Text, nullable=False, comment="The path asked for, which has the ids."),
    sa.Column("request", sa.Text, nullable=False, comment="The id of the request, as in the logs."),
    sa.Column("status", sa.Integer, comment="Of the response; null where the process died before it."),
)

studies = sa.Table(
    "studies",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("project", sa.Text, nullable=False, server_default="default", index=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("settings", sa.Text, nullable=False, comment="JSON: kind, policy, seed, lease, budget as asked for."),
    sa.Column("state", sa.Text, nullable=False, comment="running, paused, closed or archived."),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("phase", sa.Integer, nullable=False, comment="Counted from 0; changing the items begins a new one."),
    sa.Column("head", sa.Integer, nullable=False, comment="Events in the log."),
    sa.Column("evaluated_stages", sa.Integer, nullable=False, comment="Stages of this phase that cannot be undone."),
    sa.Column("answers", sa.Integer, nullable=False, comment="Answers of this phase in the log."),
    sa.Column("verdict", sa.Text, comment="JSON of the last evaluation; final once its status is."),
    sa.Column("decided", sa.Float, comment="When the verdict became final."),
    sa.Column("certificate", sa.Text, comment="JSON, once there is a proved verdict."),
    sa.Column("insight", sa.Text, comment="JSON: scores, checks, judges, for the dashboard."),
    sa.Column("insight_head", sa.Integer, nullable=False, comment="Events in the log when it was computed."),
    sa.Column("insight_until", sa.Float, nullable=False, comment="No new insight is computed before this time."),
    sa.Column("watched_until", sa.Float, nullable=False, comment="Until then its insight is kept up to date."),
    sa.Column("forecast", sa.Text, comment="JSON: simulated number of answers left after `at`."),
    sa.Column("forecast_until", sa.Float, nullable=False, comment="No new forecast is computed before this time."),
    sa.Column("notice", sa.Text, nullable=False, comment="Why planning cannot go on, as a sentence; usually empty."),
    sa.Column("shared_link", sa.Text, comment="JSON of `invitations.SharedLink`; null if there never was one."),
    sa.Column("planner", sa.Text, comment="Name of the planner that holds the lease."),
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

inputs = sa.Table(
    "inputs",
    metadata,
    sa.Column("study", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("text", sa.Text, nullable=False, comment="What systems were given, as judges see it."),
    sa.Column("weight", sa.Float, comment="How often it is drawn, relative to the others; null for equally often."),
    comment="Of studies that compare systems on a test set.",
)

outputs = sa.Table(
    "outputs",
    metadata,
    sa.Column("study", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("input", sa.Text, primary_key=True),
    sa.Column("item", sa.Text, primary_key=True, comment="The system."),
    sa.Column("text", sa.Text, nullable=False),
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
    sa.Column("until", sa.Float, nullable=False, server_default="0", comment="When the judge's link expires."),
    sa.Column("visitor", sa.Boolean, nullable=False, server_default=sa.false(), comment="Came by the shared link."),
    sa.Column("wanted", sa.Integer, nullable=False, server_default="0", comment="Questions asked for in vain ..."),
    sa.Column("wanted_at", sa.Float, nullable=False, server_default="0", comment="... and when that was."),
    sa.Column("exhausted", sa.Boolean, nullable=False, server_default=sa.false(), comment="Had all that helps."),
)

sa.Index(
    "judges_waiting",
    judges.c.wanted_at,
    sqlite_where=judges.c.wanted > 0,
    postgresql_where=judges.c.wanted > 0,
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
    sa.Column("others", sa.Text, comment="JSON: items shown after the second; null where there are none."),
    sa.Column("top", sa.Integer, comment="Places asked for; null for two items or one."),
    sa.Column("input", sa.Text, comment="The input whose outputs are compared, in a study of systems."),
    sa.Column("measurement", sa.BigInteger, nullable=False, comment="The same for the same question asked again."),
    sa.Column("planned", sa.Float, nullable=False, comment="When it was ready."),
    sa.Column("judge", sa.Text, comment="Null until it is handed out."),
    sa.Column("leased_at", sa.Float),
    sa.Column("leased_until", sa.Float),
    sa.Column("answered", sa.Boolean, nullable=False, comment="An answer, skip, tie or expiry is in the log."),
    sa.UniqueConstraint("study", "phase", "number"),
)

sa.Index(  # few, however many questions a study has had
    "questions_open",
    questions.c.study,
    questions.c.phase,
    questions.c.number,
    sqlite_where=questions.c.answered.is_(False),
    postgresql_where=questions.c.answered.is_(False),
)
sa.Index("questions_had", questions.c.study, questions.c.judge, questions.c.measurement)
sa.Index(
    "questions_held",
    questions.c.judge,
    sqlite_where=questions.c.answered.is_(False),
    postgresql_where=questions.c.answered.is_(False),
)
sa.Index("questions_leased", questions.c.study, questions.c.leased_at)
sa.Index(
    "questions_expiring",
    questions.c.leased_until,
    sqlite_where=sa.and_(questions.c.judge.is_not(None), questions.c.answered.is_(False)),
    postgresql_where=sa.and_(questions.c.judge.is_not(None), questions.c.answered.is_(False)),
)

messages = sa.Table(
    "messages",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, comment="In the order of arrival, whatever clocks say."),
    sa.Column("question", sa.ForeignKey("questions.id"), nullable=False),
    sa.Column("turn", sa.Integer, nullable=False, comment="Of the messages about one question, from 0."),
    sa.Column("study", sa.Text, nullable=False),
    sa.Column("judge", sa.Text, nullable=False),
    sa.Column("said", sa.Text, nullable=False, comment="A word of `answers.words_for`, or undo."),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("late", sa.Boolean, nullable=False, comment="It came after its stage was evaluated: it does not count."),
    sa.Column("seq", sa.Integer, comment="Its event in the log; null until it is there, negative where there is none."),
    sa.Column("quarantine", sa.Text, comment="Why it cannot enter the log, as a sentence; usually null."),
    sa.UniqueConstraint("question", "turn"),
)

sa.Index(
    "messages_not_in_log",
    messages.c.study,
    messages.c.id,
    sqlite_where=messages.c.seq.is_(None),
    postgresql_where=messages.c.seq.is_(None),
)
sa.Index(
    "messages_quarantined",
    messages.c.study,
    sqlite_where=messages.c.quarantine.is_not(None),
    postgresql_where=messages.c.quarantine.is_not(None),
)
sa.Index("messages_of_judge", messages.c.study, messages.c.judge, messages.c.id)

comments = sa.Table(
    "comments",
    metadata,
    sa.Column("question", sa.ForeignKey("questions.id"), primary_key=True),
    sa.Column("study", sa.Text, nullable=False, index=True),
    sa.Column("judge", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    comment="What judges wrote about questions; no answer depends on it.",
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("study", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, comment="From 0, without gaps."),
    sa.Column("phase", sa.Integer, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("body", sa.Text, nullable=False, comment="The session's event as JSON."),
)

evaluations = sa.Table(
    "evaluations",
    metadata,
    sa.Column("study", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, comment="Events in the log at the time."),
    sa.Column("phase", sa.Integer, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("answers", sa.Integer, nullable=False),
    sa.Column("body", sa.Text, nullable=False, comment="JSON: status, best, surviving, evidence against the closest."),
)

streams = sa.Table(
    "streams",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("project", sa.Text, nullable=False, server_default="default", index=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("tokens", sa.Integer, nullable=False, server_default="0", comment="How often the token was changed."),
    sa.Column("head", sa.Integer, nullable=False, comment="Events in the log."),
    sa.Column("decisions", sa.Integer, nullable=False),
    sa.Column("answered", sa.Integer, nullable=False, comment="Decisions whose reward was told or given up."),
    sa.Column("patience", sa.Float, comment="Seconds after which a reward is given up; null for never."),
)

stream_events = sa.Table(
    "stream_events",
    metadata,
    sa.Column("stream", sa.ForeignKey("streams.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, comment="From 0, without gaps."),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("token", sa.Text, nullable=False, comment="Names the transaction that wrote it."),
    sa.Column("body", sa.Text, nullable=False, comment="A line of the contextual session's log as JSON."),
)

replies = sa.Table(
    "replies",
    metadata,
    sa.Column("scope", sa.Text, primary_key=True, comment="What was asked: studies, or a stream's id."),
    sa.Column("key", sa.Text, primary_key=True, comment="The client's Idempotency-Key."),
    sa.Column("at", sa.Float, nullable=False, index=True),
    sa.Column("digest", sa.Text, nullable=False, comment="Of the request."),
    sa.Column("body", sa.Text, nullable=False, comment="JSON: the reply."),
)

QUESTION_LEASE = Lease(questions.c.id, questions.c.leased_until, questions.c.judge)
"""Of the judge to whom a question was handed out. When it expires the planner skips the question, so that the study
need not wait for that judge; a late answer still counts until the stage is evaluated."""

PLANNER_LEASE = Lease(studies.c.id, studies.c.planner_until, studies.c.planner)
"""Of the planner with the study's session in memory; `term` guards its writes. When it expires any planner may take
over and replay the log."""

INSIGHT_LEASE = Lease(studies.c.id, studies.c.insight_until)
FORECAST_LEASE = Lease(studies.c.id, studies.c.forecast_until)
"""Of the dashboard worker that computes. No holder and no term: what an overtaken one writes is true as well."""
