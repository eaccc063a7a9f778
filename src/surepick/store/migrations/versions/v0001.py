"""The tables of the first release."""

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
            "sealed", sa.Integer(), nullable=False, comment="Stages of this phase whose answers stay as they are."
        ),
        sa.Column("answered", sa.Integer(), nullable=False, comment="Answers of this phase in the log."),
        sa.Column("demand", sa.Integer(), nullable=False, comment="Questions a judge asked for in vain."),
        sa.Column("verdict", sa.Text(), nullable=True, comment="JSON of the last look; final once its status is."),
        sa.Column("decided", sa.Float(), nullable=True, comment="When the verdict became final."),
        sa.Column("certificate", sa.Text(), nullable=True, comment="JSON, once there is a proved verdict."),
        sa.Column(
            "insight", sa.Text(), nullable=True, comment="JSON: scores, checks, judges, as an observer saw them."
        ),
        sa.Column("insight_head", sa.Integer(), nullable=False, comment="Events in the log when it did."),
        sa.Column("insight_from", sa.Float(), nullable=False, comment="No new insight before this time."),
        sa.Column(
            "forecast",
            sa.Text(),
            nullable=True,
            comment="JSON: how many more answers after `at`, as an observer simulated it.",
        ),
        sa.Column("forecast_from", sa.Float(), nullable=False, comment="No new forecast before this time."),
        sa.Column(
            "notice", sa.Text(), nullable=False, comment="Why planning does not go on, as a sentence; mostly empty."
        ),
        sa.Column("planner", sa.Text(), nullable=True, comment="Who plans it now."),
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
        "looks",
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False, comment="Events in the log when it was taken."),
        sa.Column("phase", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("answered", sa.Integer(), nullable=False),
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
        sa.Column("closed", sa.Boolean(), nullable=False, comment="Answered, skipped, tied or expired, in the log."),
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
            sqlite_where=sa.text("judge IS NOT NULL AND closed IS 0"),
            postgresql_where=sa.text("judge IS NOT NULL AND closed IS false"),
        )
        batch_op.create_index("questions_in_hand", ["study", "judge", "closed"], unique=False)
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
        sa.Column("seq", sa.Integer(), nullable=True, comment="Its event in the log; null until it is filed."),
        sa.ForeignKeyConstraint(
            ["question"],
            ["questions.id"],
        ),
        sa.PrimaryKeyConstraint("question", "turn"),
    )
    with op.batch_alter_table("messages", schema=None) as batch_op:
        batch_op.create_index("messages_of_judge", ["study", "judge", "at"], unique=False)
        batch_op.create_index(
            "messages_unfiled",
            ["study", "at"],
            unique=False,
            sqlite_where=sa.text("seq IS NULL"),
            postgresql_where=sa.text("seq IS NULL"),
        )
