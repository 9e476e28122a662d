"""A run with too little memory ends, says so, and leaves the lock: the next one does what is left."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import HttpServer

DAY = "2026-11-20"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("kilobytes", [280_000, 340_000, 450_000])
def test_a_run_with_little_memory_ends_and_the_next_one_goes_on(
    harvester: Harvester, server: HttpServer, kilobytes: int
) -> None:
    elements = (
        b"<additionalMetadata><metadata><x>" + b"<a/>" * 900_000 + b"</x></metadata></additionalMetadata></eml:eml>"
    )
    docids = [f"a.{number}.1" for number in range(1, 7)]
    entries = [(docid, server.serve(f"/{docid}.xml", eml(docid).replace(b"</eml:eml>", elements))) for docid in docids]
    harvester.add_site("large", server.serve("/large.xml", harvest_list(entries)))
    harvester.add_site("small", publish(server, "b.1.1", path="/small.xml"))
    command = f"ulimit -v {kilobytes}; exec {sys.executable} -m metaharvest --config {harvester.config} run"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    # Without memory, libxml2 may crash: the next run closes such a run.
    has_crashed = ended.returncode in (-signal.SIGSEGV, -signal.SIGABRT)
    assert has_crashed or harvester.rows("SELECT count(*) FROM harvest_run WHERE status = 'running'") == [(0,)]
    assert not harvester.rows("SELECT document_id, error_message FROM harvest_detail_log WHERE rule LIKE 'xml.%'")
    run = harvester.run(DAY, "--force")
    assert run["status"] == "succeeded", run
    assert set(harvester.held()) == {*docids, "b.1.1"}
