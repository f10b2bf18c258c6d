"""What bounds keys, files, agents and the queue."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _keys()
    _files()
    _agents()
    _queue()


def downgrade() -> None:
    _agents_before()


def _agents_before() -> None:
    with op.batch_alter_table("agents") as agents:
        agents.drop_column("reach")
        agents.drop_column("sandbox")


def _keys() -> None:
    pass


def _files() -> None:
    pass


def _agents() -> None:
    # Agents that exist already are bounded as new ones are.
    with op.batch_alter_table("agents") as agents:
        agents.add_column(
            sa.Column("reach", sa.Text(), nullable=False, server_default="conversation")
        )
        agents.add_column(sa.Column("sandbox", sa.Text(), nullable=False, server_default="none"))
    with op.batch_alter_table("agents") as agents:
        agents.alter_column("reach", server_default=None)
        agents.alter_column("sandbox", server_default=None)


def _queue() -> None:
    # Larger numbers were taken once, which PostgreSQL's columns cannot hold.
    op.execute("UPDATE lanes SET max_depth = 1000000000 WHERE max_depth > 1000000000")
    op.execute("UPDATE lanes SET max_attempts = 1000000000 WHERE max_attempts > 1000000000")
