"""Streams of contextual decisions."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Change the schema."""
    op.create_table(
        "streams",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("head", sa.Integer(), nullable=False, comment="Events in the log."),
        sa.Column("decisions", sa.Integer(), nullable=False),
        sa.Column("settled", sa.Integer(), nullable=False, comment="Decisions that were rewarded or given up."),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "stream_events",
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False, comment="From 0, without gaps."),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False, comment="Of the transaction that wrote it."),
        sa.Column("body", sa.Text(), nullable=False, comment="A line of the contextual session's log as JSON."),
        sa.ForeignKeyConstraint(["stream"], ["streams.id"]),
        sa.PrimaryKeyConstraint("stream", "seq"),
    )
