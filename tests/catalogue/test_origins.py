"""The formats of the records of many origins, and the sizes of their lists, with few statements."""

from __future__ import annotations

from metaharvest.catalogue.publication import document_types, has_several_formats, origins
from metaharvest.catalogue.selection import Selection
from metaharvest.database.engine import readers
from metaharvest.web.provider.view import ListSizes
from support.databases import on_one_database
from support.harvester import Harvester
from support.provider import DATACITE, OAI_DC, dc, document, record, store
from support.query_plans import executed

NUMBER = 60
"""Origins: more than one statement asks for."""


def fill(harvester: Harvester) -> None:
    store(
        harvester,
        document("alder.1", b"<eml/>"),
        *(record(f"oai:f.org:{number}", dc("x"), origin=f"r{number:02}") for number in range(NUMBER)),
    )


def test_few_statements_find_the_origins_and_their_formats(harvester: Harvester) -> None:
    fill(harvester)
    with readers(harvester.engine)() as session, executed(harvester.engine) as statements:
        assert origins(session) == [f"r{number:02}" for number in range(NUMBER)]
        assert OAI_DC in document_types(session)
        assert not has_several_formats(session)
    assert len(statements) <= 1 + 2 + 5
    last = record("oai:f.org:other", dc("x"), prefix="datacite", kind=DATACITE, origin=f"r{NUMBER - 1:02}")
    store(harvester, last)
    with readers(harvester.engine)() as session:
        assert has_several_formats(session)


@on_one_database
def test_a_list_is_counted_once_for_each_state_of_the_catalogue(harvester: Harvester) -> None:
    fill(harvester)
    sizes, selection = ListSizes(), Selection(one_of="item", preferred=OAI_DC)
    with readers(harvester.engine)() as session, executed(harvester.engine) as statements:
        assert sizes.size(session, selection) == NUMBER + 1
        first = len(statements)
        assert sizes.size(session, selection) == NUMBER + 1
    assert len(statements) == first + 1
    store(harvester, record("oai:f.org:new", dc("x"), origin="r00"))
    with readers(harvester.engine)() as session:
        assert sizes.size(session, selection) == NUMBER + 2
