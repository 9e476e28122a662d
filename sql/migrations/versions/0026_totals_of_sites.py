"""Totals of sites over weeks"""

from __future__ import annotations

from datetime import date, timedelta

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0026"
down_revision = "0025"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DOUBLE = sa.Float(53).with_variant(mysql.DOUBLE(asdecimal=False), "mysql", "mariadb")
_MYSQL = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
TEXTS = {f"{dialect}_{option}": value for dialect in ("mysql", "mariadb") for option, value in _MYSQL.items()}
SUMS = "runs harvests failed_harvests went_well inserted updated deleted bytes"
SECONDS = {
    "sqlite": "(julianday(r.ended_at) - julianday(r.started_at)) * 86400.0",
    "postgresql": "EXTRACT(EPOCH FROM (r.ended_at - r.started_at))",
    "mysql": "TIMESTAMPDIFF(MICROSECOND, r.started_at, r.ended_at) / 1000000.0",
}
RUNS = "SELECT run_id, harvest_date FROM harvest_run WHERE status <> 'imported'"
ITS = (
    "FROM harvest_site_run r JOIN harvest_run n ON n.run_id = r.run_id {0} "
    "WHERE r.run_id IN :runs AND r.rehearsal IS FALSE"
)
LOGGED = "JOIN harvest_log l ON l.site_run_id = r.site_run_id AND l.outcome IN ('inserted', 'updated')"
WENT_WELL = "r.kind <> 'retry' AND r.status = 'succeeded'"
HAS_FAILED = "r.kind <> 'retry' AND r.status IN ('list-failed', 'failed', 'incomplete', 'interrupted')"
# A CASE, as SQLite would read all site runs of a status.
HARVESTED = "CASE WHEN r.kind <> 'retry' AND r.status IN ('succeeded', 'with-errors') THEN 1 ELSE 0 END = 1"


def upgrade() -> None:
    op.create_table(
        "site_totals",
        sa.Column("site_totals_id", KEY, nullable=False),
        sa.Column("first_day", sa.Date(), nullable=False),
        sa.Column("site_schedule_id", KEY, nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in SUMS.split()),
        sa.Column("seconds", DOUBLE, nullable=False),
        sa.Column("failing", sa.BigInteger(), nullable=True),
        sa.Column("last_success", sa.Date(), nullable=True),
        sa.PrimaryKeyConstraint("site_totals_id", name=op.f("pk_site_totals")),
        sa.UniqueConstraint("first_day", "site_schedule_id", name=op.f("uq_site_totals_first_day_site_schedule_id")),
        sqlite_autoincrement=True,
        **TEXTS,
    )
    fill()


def fill() -> None:
    """Add up the site runs of each span: the days of one week within one month."""
    connection = op.get_bind()
    op.execute("DELETE FROM site_totals")  # of a first attempt that broke off
    dialect = "mysql" if connection.dialect.name == "mariadb" else connection.dialect.name
    runs: dict[date, list[int]] = {}
    for run_id, day in connection.execute(sa.text(RUNS).columns(run_id=sa.BigInteger(), harvest_date=sa.Date())):
        runs.setdefault(first_of_span(day), []).append(run_id)
    # The numbers of runs, as SQLite would read all site runs for a condition on their dates.
    statement = sa.text(totals(SECONDS[dialect])).bindparams(
        sa.bindparam("first", type_=sa.Date()), sa.bindparam("runs", expanding=True)
    )
    for first, run_ids in sorted(runs.items()):
        connection.execute(statement, {"first": first, "runs": run_ids})


def first_of_span(day: date) -> date:
    """The first day of the span that has this day."""
    return max(day - timedelta(days=day.weekday()), day.replace(day=1))


def totals(seconds: str) -> str:
    """The statement that adds up one span."""
    failing = "r.access_error + r.invalid + r.upload_error + r.deferred"
    order = "PARTITION BY r.site_schedule_id ORDER BY n.harvest_date DESC, r.site_run_id DESC"
    return f"""
        INSERT INTO site_totals (first_day, site_schedule_id, {SUMS.replace(" ", ", ")}, seconds, failing, last_success)
        SELECT :first, s.site_schedule_id, s.runs, s.harvests, s.failed, s.well, s.inserted, s.updated, s.deleted,
            COALESCE(z.size, 0), s.seconds, e.failing, e.day
        FROM (
            SELECT r.site_schedule_id, COUNT(DISTINCT r.run_id) AS runs,
                SUM(CASE WHEN r.kind <> 'retry' THEN 1 ELSE 0 END) AS harvests,
                SUM(CASE WHEN {HAS_FAILED} THEN 1 ELSE 0 END) AS failed,
                SUM(CASE WHEN {WENT_WELL} THEN 1 ELSE 0 END) AS well,
                SUM(r.inserted) AS inserted, SUM(r.updated) AS updated, SUM(r.deleted) AS deleted,
                COALESCE(SUM({seconds}), 0) AS seconds
            {ITS.format("")} GROUP BY r.site_schedule_id
        ) s
        LEFT JOIN (
            SELECT r.site_schedule_id, {failing} AS failing, n.harvest_date AS day,
                ROW_NUMBER() OVER ({order}) AS place
            {ITS.format("")} AND {HARVESTED}
        ) e ON e.site_schedule_id = s.site_schedule_id AND e.place = 1
        LEFT JOIN (
            SELECT r.site_schedule_id, SUM(l.size) AS size {ITS.format(LOGGED)} GROUP BY r.site_schedule_id
        ) z ON z.site_schedule_id = s.site_schedule_id
    """


def downgrade() -> None:
    op.drop_table("site_totals")
