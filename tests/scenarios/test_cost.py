"""Documents that are made to take long cost their own site a finding, and no other site anything."""

from __future__ import annotations

import gzip

import pytest

from support.costly_documents import COSTLY
from support.harvester import Harvester, harvest_list, publish
from support.http_server import HttpServer

TOO_EXPENSIVE = "validation.too-expensive"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("time_limit", [0, 60, 0.2])
@pytest.mark.timeout(200)
@pytest.mark.long
def test_documents_made_to_take_long_end_by_what_is_wrong_with_them(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, time_limit: float
) -> None:
    """Without a limit and below it; and a limit that some of them reach, however little they cost."""
    monkeypatch.setenv("METAHARVEST_VALIDATION__TIME_LIMIT", str(time_limit))
    expected: dict[str, set[str]] = {}
    with HttpServer(host="127.0.0.2") as other:
        entries = []
        for number, (made, rules) in enumerate(COSTLY.items(), 1):
            content = made().replace(b'packageId="alder.1.1"', b'packageId="costly.%d.1"' % number)
            expected[f"costly.{number}"] = rules
            headers = {"Content-Encoding": "gzip"}
            url = other.serve(f"/{number}.xml", gzip.compress(content, 1), headers=headers)
            entries.append((f"costly.{number}.1", url))
        kind = "https://eml.ecoinformatics.org/eml-2.2.0"
        harvester.add_site("costly", other.serve("/list.xml", harvest_list(entries, kind)))
        harvester.add_site("good", publish(server, "good.1.1", "good.2.1"))
        run = harvester.run("2026-11-20")
    good = harvester.rows("SELECT inserted FROM harvest_site_run WHERE site_name = 'good'")
    assert good == [(2,)], harvester.rows("SELECT * FROM harvest_detail_log WHERE document_id IS NULL")
    found: dict[str, set[str]] = {document: set() for document in expected}
    for document, _, rule in harvester.findings(run["run_id"]):
        found[str(document)].add(rule)
    late = {document for document in found if found[document] == {TOO_EXPENSIVE}}
    assert bool(late) is (time_limit == 0.2)
    for document in set(expected) - late:
        assert found[document] - {"findings.more", "schema.missing-element"} == expected[document]
