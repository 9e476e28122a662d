"""Runs the migrations on the connection that `metaharvest.database.engine.upgrade` hands over."""

from alembic import context

from metaharvest.database.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
