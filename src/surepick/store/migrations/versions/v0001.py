"""The tables of the first release. Written out, not taken from `schema`, which later migrations change."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Change the schema."""
    op.create_table(
        "server",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
        comment="What all processes on this database share, such as the secret that signs links.",
    )
    op.create_table(
        "studies",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column(
            "settings", sa.Text(), nullable=False, comment="JSON: kind, policy, seed, lease, budget as asked for."
        ),
        sa.Column("state", sa.Text(), nullable=False, comment="running, paused, closed or archived."),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column(
            "phase", sa.Integer(), nullable=False, comment="Counted from 0; changing the items begins a new one."
        ),
        sa.Column("head", sa.Integer(), nullable=False, comment="Events in the log."),
        sa.Column(
            "evaluated_stages", sa.Integer(), nullable=False, comment="Stages of this phase that cannot be undone."
        ),
        sa.Column("answers", sa.Integer(), nullable=False, comment="Answers of this phase in the log."),
        sa.Column("demand", sa.Integer(), nullable=False, comment="Questions a judge asked for in vain."),
        sa.Column(
            "verdict", sa.Text(), nullable=True, comment="JSON of the last evaluation; final once its status is."
        ),
        sa.Column("decided", sa.Float(), nullable=True, comment="When the verdict became final."),
        sa.Column("certificate", sa.Text(), nullable=True, comment="JSON, once there is a proved verdict."),
        sa.Column("insight", sa.Text(), nullable=True, comment="JSON: scores, checks, judges, for the dashboard."),
        sa.Column("insight_head", sa.Integer(), nullable=False, comment="Events in the log when it was computed."),
        sa.Column("insight_until", sa.Float(), nullable=False, comment="No new insight is computed before this time."),
        sa.Column(
            "forecast",
            sa.Text(),
            nullable=True,
            comment="JSON: simulated number of answers left after `at`.",
        ),
        sa.Column(
            "forecast_until", sa.Float(), nullable=False, comment="No new forecast is computed before this time."
        ),
        sa.Column(
            "notice", sa.Text(), nullable=False, comment="Why planning cannot go on, as a sentence; usually empty."
        ),
        sa.Column("planner", sa.Text(), nullable=True, comment="Name of the planner that holds the lease."),
        sa.Column("planner_until", sa.Float(), nullable=False),
        sa.Column("term", sa.Integer(), nullable=False, comment="Grows whenever another planner takes over."),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "events",
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False, comment="From 0, without gaps."),
        sa.Column("phase", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False, comment="The session's event as JSON."),
        sa.ForeignKeyConstraint(
            ["study"],
            ["studies.id"],
        ),
        sa.PrimaryKeyConstraint("study", "seq"),
    )
    op.create_table(
        "images",
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["study"],
            ["studies.id"],
        ),
        sa.PrimaryKeyConstraint("study", "name"),
    )
    op.create_table(
        "items",
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("colour", sa.Text(), nullable=False),
        sa.Column("image", sa.Text(), nullable=False, comment="Name of an uploaded image."),
        sa.Column("features", sa.Text(), nullable=True, comment="JSON list; null where items have no features."),
        sa.Column("removed", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["study"],
            ["studies.id"],
        ),
        sa.PrimaryKeyConstraint("study", "name"),
    )
    op.create_table(
        "judges",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("revoked", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["study"],
            ["studies.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("judges", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_judges_study"), ["study"], unique=False)

    op.create_table(
        "evaluations",
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False, comment="Events in the log at the time."),
        sa.Column("phase", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("answers", sa.Integer(), nullable=False),
        sa.Column(
            "body", sa.Text(), nullable=False, comment="JSON: status, best, surviving, evidence against the closest."
        ),
        sa.ForeignKeyConstraint(
            ["study"],
            ["studies.id"],
        ),
        sa.PrimaryKeyConstraint("study", "seq"),
    )
    op.create_table(
        "questions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("phase", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, comment="Its id in the session."),
        sa.Column("stage", sa.Integer(), nullable=False),
        sa.Column("first", sa.Text(), nullable=False),
        sa.Column("second", sa.Text(), nullable=True, comment="Null for a yes/no question."),
        sa.Column("judge", sa.Text(), nullable=True, comment="Null until it is handed out."),
        sa.Column("leased_at", sa.Float(), nullable=True),
        sa.Column("leased_until", sa.Float(), nullable=True),
        sa.Column("answered", sa.Boolean(), nullable=False, comment="An answer, skip, tie or expiry is in the log."),
        sa.ForeignKeyConstraint(
            ["study"],
            ["studies.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("study", "phase", "number"),
    )
    with op.batch_alter_table("questions", schema=None) as batch_op:
        batch_op.create_index(
            "questions_expiring",
            ["leased_until"],
            unique=False,
            sqlite_where=sa.text("judge IS NOT NULL AND answered IS 0"),
            postgresql_where=sa.text("judge IS NOT NULL AND answered IS false"),
        )
        batch_op.create_index("questions_held", ["study", "judge", "answered"], unique=False)
        batch_op.create_index("questions_leased", ["study", "leased_at"], unique=False)
        batch_op.create_index(
            "questions_ready",
            ["study", "number"],
            unique=False,
            sqlite_where=sa.text("judge IS NULL"),
            postgresql_where=sa.text("judge IS NULL"),
        )

    op.create_table(
        "messages",
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False, comment="Of the messages about one question, from 0."),
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("judge", sa.Text(), nullable=False),
        sa.Column("said", sa.Text(), nullable=False, comment="a, b, yes, no, tie, skip or undo."),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=True, comment="Its event in the log; null until it is there."),
        sa.ForeignKeyConstraint(
            ["question"],
            ["questions.id"],
        ),
        sa.PrimaryKeyConstraint("question", "turn"),
    )
    with op.batch_alter_table("messages", schema=None) as batch_op:
        batch_op.create_index("messages_of_judge", ["study", "judge", "at"], unique=False)
        batch_op.create_index(
            "messages_not_in_log",
            ["study", "at"],
            unique=False,
            sqlite_where=sa.text("seq IS NULL"),
            postgresql_where=sa.text("seq IS NULL"),
        )

    op.create_table(
        "streams",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("head", sa.Integer(), nullable=False, comment="Events in the log."),
        sa.Column("decisions", sa.Integer(), nullable=False),
        sa.Column("answered", sa.Integer(), nullable=False, comment="Decisions whose reward was told or given up."),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "stream_events",
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False, comment="From 0, without gaps."),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False, comment="Names the transaction that wrote it."),
        sa.Column("body", sa.Text(), nullable=False, comment="A line of the contextual session's log as JSON."),
        sa.ForeignKeyConstraint(["stream"], ["streams.id"]),
        sa.PrimaryKeyConstraint("stream", "seq"),
    )
