"""The keys of JSON documents. A read model has one name for each value; some keys are older names of it."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any

from metaharvest.model.mappings import picked

_FINDING = "level rule error_message=message remedy line_number=line column_number=column xpath excerpt"
_SITE_RUN = (
    "site_run_id run_id site_schedule_id=site_id site_name=site kind rehearsal status started_at ended_at "
    "failure_reason list_url listed inserted updated unchanged deleted filtered stale duplicate deferred access_error "
    "invalid upload_error warnings next_harvest server_seconds waiting_seconds checking_seconds storing_seconds "
    "site_id site failing took_seconds failed_since failed_nights"
)
_KEYS = {
    "StoredFinding": f"{_FINDING} message line column",
    "LoggedFinding": f"document_id {_FINDING} message line column",
    "RunFinding": (
        "detail_log_id harvest_log_id=log_id level scope identifier revision document_id document_url=url "
        "document_type error_message=message rule line_number=line column_number=column xpath excerpt remedy "
        "fingerprint log_id url message line column"
    ),
    "LogEntry": (
        "harvest_log_id=log_id logged_at harvest_date level status operation message run_id site_run_id site site_id "
        "document_id revision document_url=url outcome target_revision=repository_revision seconds size=bytes log_id "
        "url repository_revision bytes docid findings"
    ),
    "SiteRunRecord": _SITE_RUN,
    "RunRecord": (
        "run_id harvest_date started_at ended_at status host pid heartbeat_at took_seconds rehearsal=is_rehearsal "
        "sites targets_away"
    ),
    "DocumentRow": (
        "site site_id docid document_id revision outcome repository_revision url document_type failing_since nights "
        "attempts next_attempt missing_since title run_id harvest_date findings"
    ),
    "JobRecord": (
        "job_id kind run_id subject site_host=host priority state worker attempts slices made_at not_before began_at "
        "lease_until ended_at seconds cpu_seconds memory_bytes sentence"
    ),
    "OutputLine": "document_id title creators year doi origin",
    "WorkerRecord": "worker=name host pid version began_at seen_at is_ending is_silent jobs job_id kind subject",
    "RegisteredSite": (
        "name=site site site_id state source_kind list_url contacts frequency every unit next_harvest last_harvest "
        "notify enabled public package_id_mismatch allow_networks ca_file validation filters normalize deletions "
        "max_loss full_text groups oai ldapdn ldappwd options problems last_status last_run_id last_site_run_id "
        "failing failing_since failed_since failed_nights failure_reason took_seconds trend last_full_list"
    ),
}
"""By the name of a read model: its keys in order, each as `key=value` if the value has another name."""


def as_mapping(row: Any) -> dict[str, Any]:
    """The values of a read model by the keys of JSON: its own keys in _KEYS, otherwise the names of its values."""
    return picked(row, _keys(row.__class__))


def as_json(value: object) -> object:
    """A value of a type that JSON lacks. A sum, which is a Decimal on some databases, stays a number."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return as_mapping(value) if is_dataclass(value) else str(value)


@cache
def _keys(model: Any) -> str:
    """The keys of this read model. Raises TypeError if it is no dataclass."""
    return _KEYS.get(model.__name__) or " ".join(field.name for field in fields(model))
