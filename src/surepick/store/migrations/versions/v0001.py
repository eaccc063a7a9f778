"""The tables of `schema`.

Before the first release there is one migration, and it follows the schema. At the release the tables are to be written
out here, so that later migrations start from tables that no longer change.
"""

from alembic import op

from surepick.store.schema import metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create all tables and indexes."""
    metadata.create_all(op.get_bind())


def downgrade() -> None:
    """Remove them."""
    metadata.drop_all(op.get_bind())
