"""One workbook with the sites, documents, problems, runs and deliveries; the catalogue as dataset files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy.orm import Session

from metaharvest.errors import RequestError
from metaharvest.harvest.context import Progress
from metaharvest.harvest.deadlines import StopSignal
from metaharvest.queries.documents import DocumentFilter, document_rows
from metaharvest.queries.figures import COLUMNS as YEAR_COLUMNS
from metaharvest.queries.figures import SITE_COLUMNS, RuleOfYear, YearFigures, year_figures
from metaharvest.queries.outbox import newest_reports
from metaharvest.queries.problems import RuleTotal, open_problems
from metaharvest.queries.public_sites import hidden_by
from metaharvest.queries.runs import newest_runs
from metaharvest.queries.sites import registered_sites
from metaharvest.replication.dataset.exporter import DatasetRequest, export_dataset
from metaharvest.replication.dataset.formats import FORMATS
from metaharvest.replication.dataset.manifest import Manifest
from metaharvest.replication.dataset.texts import Texts
from metaharvest.reports import workbook
from metaharvest.reports.workbook import Sheet
from metaharvest.services.harvester import Harvester
from metaharvest.services.tables import names_of, values_of

__all__ = ["DatasetRequest"]

_SITES = (
    "state", "groups", "source_kind", "list_url", "contacts", "every", "unit", "notify", "enabled",
    "last_harvest", "next_harvest", "last_status", "failing", "failing_since", "took_seconds",
)  # fmt: skip
_DOCUMENTS = (
    "site", "docid", "document_id", "revision", "title", "outcome", "url", "document_type", "failing_since", "nights",
    "attempts", "next_attempt", "run_id", "harvest_date",
)  # fmt: skip
_FINDING = ("level", "rule", "line", "column", "message", "remedy")
_RUNS = ("run_id", "harvest_date", "status", "started_at", "ended_at")
_TOTALS = ("sites", "listed", "inserted", "updated", "unchanged", "attention", "errors")
_REPORT = ("report_id", "created_at", "kind", "run_id", "subject")
_DELIVERY = ("recipient", "status", "attempts", "last_attempt_at", "first_sent_at", "last_error")
_MOST = 10_000


def write_workbook(harvester: Harvester, file: Path) -> Mapping[str, int]:
    """Write the workbook; return the number of rows of each sheet. Raises OSError."""
    with harvester.reading() as session:
        return workbook.write_workbook(file, _sheets(session, harvester.today()))


def year_workbook(harvester: Harvester, first_day: date, last_day: date) -> bytes:
    """A workbook with the figures of this period, and the sheets of `write_workbook`. Raises OSError."""
    with TemporaryDirectory() as folder, harvester.reading() as session:
        file, figures = Path(folder) / "year.xlsx", year_figures(session, first_day, last_day)
        workbook.write_workbook(file, (*_year_sheets(figures), *_sheets(session, harvester.today())))
        return file.read_bytes()


def write_dataset(harvester: Harvester, request: DatasetRequest, progress: Progress, stop: StopSignal) -> Manifest:
    """Write the documents of the catalogue into files; see `export_dataset` for the result and the other errors.

    Raises RequestError if the format needs a library that is not installed, or cannot have texts, if there are no
    texts, or if no documents go to the embedded target.
    """
    if request.with_texts and not FORMATS[request.format].has_texts:
        raise RequestError(f"Files of the format {request.format} have no full texts. Give another --format.")
    if request.format == "parquet" and find_spec("pyarrow") is None:
        raise RequestError("Parquet needs pyarrow. Install it with `pip install 'metaharvest[parquet]'`.")
    settings = harvester.settings
    targets = [settings.target, *settings.targets.values(), *(settings.target_of(name) for name in settings.sites)]
    if all(each.kind != "embedded" for each in targets):
        raise RequestError(
            f"Dataset files are made from the embedded target. Here, the documents go to a target of the kind "
            f"{settings.target.kind}."
        )
    texts = Texts(settings.path(settings.pipeline.folder), harvester.now().date()) if request.with_texts else None
    hidden = harvester.read(hidden_by, settings.web.hidden)
    return export_dataset(request, harvester.reading, hidden, harvester.now, progress, stop, texts)


def _year_sheets(figures: YearFigures) -> Iterator[Sheet]:
    yield Sheet("figures", ("name", "value"), ([name, getattr(figures, name)] for name in YEAR_COLUMNS))
    yield Sheet("sites in the period", SITE_COLUMNS, (values_of(each, SITE_COLUMNS) for each in figures.sites))
    yield Sheet("silent sites", ("site",), ([name] for name in figures.silent))
    rules = names_of(RuleOfYear)
    yield Sheet("rules in the period", rules, (values_of(each, rules) for each in figures.rules))


def _sheets(session: Session, today: date) -> Iterator[Sheet]:
    sites = registered_sites(session, today)
    yield Sheet("sites", ("name", *_SITES), ([site.site, *values_of(site, _SITES)] for site in sites))
    documents = (
        [*values_of(row, _DOCUMENTS), *values_of(finding, _FINDING)]
        for row in document_rows(session, DocumentFilter(failing=True), today)
        for finding in row.findings or [None]
    )
    yield Sheet("documents failing", (*_DOCUMENTS, *_FINDING), documents)
    names = names_of(RuleTotal)
    yield Sheet("problems", names, (values_of(each, names) for each in open_problems(session)))
    runs = ([*values_of(run, _RUNS), *values_of(run.totals, _TOTALS)] for run in newest_runs(session, _MOST))
    yield Sheet("runs", (*_RUNS, *_TOTALS), runs)
    deliveries = ((report, each) for report in newest_reports(session, _MOST) for each in report.deliveries)
    rows = ([*values_of(report, _REPORT), *values_of(each, _DELIVERY)] for report, each in deliveries)
    yield Sheet("deliveries", (*_REPORT, *_DELIVERY), rows)
