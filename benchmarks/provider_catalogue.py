"""A catalogue for the provider, filled by SQL: a thousand records at a time, which have one content and one time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    bindparam,
    cast,
    false,
    literal,
    select,
    text,
    true,
    union_all,
)

from benchmarks.oai_pages import ELEMENTS

BLOCK = 1_000
OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
_BEGIN = datetime(2024, 1, 1, tzinfo=UTC)


def fill(engine: Engine, records: int) -> None:
    """Records in Dublin Core of one source repository, each in one of its ten sets; a record has some 1.5 KB."""
    digits = union_all(*(select(literal(digit).label("digit")) for digit in range(10)))
    units, tens, hundreds = (digits.subquery(name) for name in ("units", "tens", "hundreds"))
    number = bindparam("before", type_=Integer) + units.c.digit + 10 * tens.c.digit + 100 * hundreds.c.digit + 1
    for name, values in _values(number).items():
        table = Table(name, MetaData(), autoload_with=engine)
        columns = [
            each.label(column) if isinstance(each, ColumnElement) else bindparam(each, type_=table.c[column].type)
            for column, each in values.items()
        ]
        query = select(*columns).select_from(units.join(tens, true()).join(hundreds, true())).order_by(number)
        statement = table.insert().from_select(list(values), query)
        with engine.begin() as connection:
            for before in range(0, records, BLOCK):
                connection.execute(statement, {"before": before, **_block(before // BLOCK)})
    counter = Table("catalogue_counter", MetaData(), autoload_with=engine)
    with engine.begin() as connection:
        last = _block(records // BLOCK - 1)["at"]
        connection.execute(counter.insert(), {"counter_id": 1, "change_seq": records, "changed_at": last})
    if engine.dialect.name == "postgresql":
        # As the server does by itself some time later.
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))


def texts(number: int) -> list[tuple[str, str]]:
    """The elements of the records of a block."""
    return [(name, f"The {name} of the records {number}, {'words ' * 14}") for name in ELEMENTS]


def _content(number: int) -> bytes:
    elements = "".join(f"<dc:{name}>{text}</dc:{name}>" for name, text in texts(number))
    return (
        f'<oai_dc:dc xmlns:oai_dc="{OAI_DC}" xmlns:dc="http://purl.org/dc/elements/1.1/" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{OAI_DC} http://www.openarchives.org/OAI/2.0/oai_dc.xsd">{elements}</oai_dc:dc>'
    ).encode()


def _block(number: int) -> dict[str, object]:
    """The values that the records of a block have in common."""
    return {
        "content": _content(number),
        "at": _BEGIN + timedelta(minutes=number),
        "set": f"s:{number % 10}",
        "sets": f'["s:{number % 10}"]',
    }


def _values(number: ColumnElement[int]) -> Mapping[str, Mapping[str, ColumnElement[Any] | str]]:
    """The values of each table for the record with this number; a text names a value of the block."""
    identifier = literal("oai:pages.example.org:") + cast(number, String(20))
    document: dict[str, ColumnElement[Any]] = {
        "document_id": literal("pages/oai_dc/") + identifier,
        "revision": literal(1),
    }
    site = {"site_schedule_id": literal(1)}
    digest, url = literal("0" * 64), literal("https://pages.example.org/oai")
    return {
        "document_revision": {
            "document_revision_id": number,
            **document,
            **site,
            "document_type": literal(OAI_DC),
            "size": literal(len(_content(0))),
            "sha256": digest,
            "source_url": url,
            "inserted_at": "at",
            "content": "content",
        },
        "document_origin": {
            **document,
            "base_url": url,
            "identifier": identifier,
            "prefix": literal("oai_dc"),
            "datestamp": literal("2024-01-01"),
            "response_date": literal("2024-01-01T00:00:00Z"),
            "namespace": literal(OAI_DC),
            "digest": digest,
            "altered": false(),
            "sets": "sets",
            "about": literal("[]"),
        },
        "catalogue_document": {
            "catalogue_document_id": number,
            **document,
            **site,
            "item_identifier": identifier,
            "origin": literal("pages"),
            "document_type": literal(OAI_DC),
            "sha256": digest,
            "title": literal(""),
            "deleted": false(),
            "changed_at": "at",
            "change_seq": number,
        },
        "catalogue_set": {"catalogue_document_id": number, "set_spec": "set"},
    }
