"""Runs the migrations on the connection that `metaharvest.database.engine.upgrade` hands over."""

from typing import Any

from alembic import context
from alembic.ddl.mysql import MariaDBImpl, MySQLImpl
from sqlalchemy import Column, Index, Table, inspect

from metaharvest.database.all_tables import Base


class ResumableMySQL(MySQLImpl):
    """Makes an interrupted upgrade repeatable by skipping what exists: MySQL commits each change of a table at once."""

    __dialect__ = "mysql"

    def create_table(self, table: Table, **options: Any) -> None:
        if not inspect(self.connection).has_table(table.name):
            super().create_table(table, **options)

    def add_column(self, table_name: str, column: Column[Any], **options: Any) -> None:
        if column.name not in self._columns(table_name):
            super().add_column(table_name, column, **options)

    def drop_column(self, table_name: str, column: Column[Any], **options: Any) -> None:
        if column.name in self._columns(table_name):
            super().drop_column(table_name, column, **options)

    def create_index(self, index: Index, **options: Any) -> None:
        if not self._is_there(index):
            super().create_index(index, **options)

    def drop_index(self, index: Index, **options: Any) -> None:
        if self._is_there(index):
            super().drop_index(index, **options)

    def _columns(self, table_name: str) -> set[str]:
        return {known["name"] for known in inspect(self.connection).get_columns(table_name)}

    def _is_there(self, index: Index) -> bool:
        assert index.table is not None
        return any(known["name"] == index.name for known in inspect(self.connection).get_indexes(index.table.name))


class ResumableMariaDB(ResumableMySQL, MariaDBImpl):
    """The same for MariaDB."""

    __dialect__ = "mariadb"


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
