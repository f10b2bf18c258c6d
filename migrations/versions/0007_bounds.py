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
    pass


def _keys() -> None:
    pass


def _files() -> None:
    pass


def _agents() -> None:
    pass


def _queue() -> None:
    pass
