"""Runs migrations on the connection that bullpen.core.store.migrate hands over."""

from alembic import context

from bullpen.core.models import whole_schema

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=whole_schema(), render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
