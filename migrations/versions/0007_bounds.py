"""What bounds keys, files, agents and the queue."""

import sqlalchemy as sa  # noqa: F401 - the columns of the other functions need it
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
    pass


def _keys() -> None:
    pass


def _files() -> None:
    pass


def _agents() -> None:
    pass


def _queue() -> None:
    # Larger numbers were taken once, which PostgreSQL's columns cannot hold.
    op.execute("UPDATE lanes SET max_depth = 1000000000 WHERE max_depth > 1000000000")
    op.execute("UPDATE lanes SET max_attempts = 1000000000 WHERE max_attempts > 1000000000")
