"""A run within a daemonic process, as job queues have them: multiprocessing lets such a process have no children."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from support.costly_documents import empty_references
from support.harvester import Harvester, any_day, eml, harvest_list
from support.hostile_oai import FORMAT, IDENTIFY, HostileRepository, answer, record, records
from support.http_server import HttpServer
from support.waiting import wait_until

pytestmark = [
    pytest.mark.parametrize("database", ["sqlite"], indirect=True),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to find workers in"),
]

DAEMONIC = (
    "import multiprocessing, sys\n"
    "from metaharvest.__main__ import main\n"
    "class Key(bytes):\n"
    "    def __reduce__(self):\n"
    "        raise TypeError('as the key of billiard, which Celery uses')\n"
    "def job():\n"
    "    config = multiprocessing.current_process()._config\n"
    "    config['authkey'] = Key(config['authkey'])\n"
    "    main()\n"
    "process = multiprocessing.get_context('fork').Process(target=job, daemon=True)\n"
    "process.start()\n"
    "process.join()\n"
    "sys.exit(process.exitcode)\n"
)
DAMAGED = records(*(record(number) for number in range(300)), b"<!-- & --> & " + b"x" * 100_000)


def start(harvester: Harvester, *arguments: str, daemonic: bool) -> subprocess.Popen[str]:
    """Start a command in a process of its own; if `daemonic`, in a daemonic process below it."""
    how = ["-c", DAEMONIC] if daemonic else ["-m", "metaharvest"]
    command = [sys.executable, *how, "--config", str(harvester.config), *any_day(arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.timeout(100)
@pytest.mark.long
@pytest.mark.parametrize("daemonic", [False, True])
def test_the_outcomes_are_those_of_any_other_process(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, daemonic: bool
) -> None:
    """A site with filters, a document that takes too long, and a long damaged answer of a source repository."""
    monkeypatch.setenv("METAHARVEST_VALIDATION__TIME_LIMIT", "1")
    filters = harvester.folder / "filters.xml"
    filters.write_text("<filters match='any'><filter xpath='//title' regexp='^A title'/></filters>", encoding="utf-8")
    kept, other = eml("f.1.1"), eml("f.2.1", "Another title")
    entries = [(docid, server.serve(f"/{docid}", content)) for docid, content in (("f.1.1", kept), ("f.2.1", other))]
    url = server.serve("/filtered.xml", harvest_list(entries))
    harvester.add_site("filtered", url, options=json.dumps({"filters": str(filters)}))
    costly = empty_references().replace(b'packageId="alder.1.1"', b'packageId="c.1.1"')
    entries = [("c.1.1", server.serve("/c", costly)), ("c.2.1", server.serve("/c2", eml("c.2.1")))]
    harvester.add_site("costly", server.serve("/costly.xml", harvest_list(entries)))
    with HostileRepository(
        Identify=answer("Identify", IDENTIFY),
        ListMetadataFormats=answer("ListMetadataFormats", FORMAT),
        ListRecords=DAMAGED,
    ) as repository:
        options = json.dumps({"oai": {"origin": "damaged"}})
        harvester.add_site("damaged", repository.base_url, source_kind="oai-pmh", options=options)
        process = start(harvester, "run", "--json", "--date", "2026-11-20", daemonic=daemonic)
        out, err = process.communicate(timeout=90)
    run = json.loads(out)
    sites = {site["site"]: [site[key] for key in OUTCOMES] for site in run["sites"]}
    assert sites == {"filtered": [2, 1, 1, 0, 0, 0], "costly": [2, 1, 0, 1, 0, 0], "damaged": [300, 300, 0, 0, 0, 0]}, (
        err
    )
    rules = [(document, rule) for document, _, rule in harvester.findings(run["run_id"])]
    assert ("c.1", "validation.too-expensive") in rules
    assert "own process" not in err


@pytest.mark.slow
def test_no_worker_stays_behind_when_the_daemonic_process_is_killed(harvester: Harvester, server: HttpServer) -> None:
    filters = harvester.folder / "filters.xml"
    filters.write_text("<filters match='any'><filter xpath='//title'/></filters>", encoding="utf-8")
    slow = ("f.2.1", server.route("/slow", lambda asking: asking.pause(60)))
    url = server.serve("/filtered.xml", harvest_list([("f.1.1", server.serve("/f", eml("f.1.1"))), slow]))
    harvester.add_site("filtered", url, options=json.dumps({"filters": str(filters)}))
    process = start(harvester, "run", "--date", "2026-11-20", daemonic=True)
    wait_until(lambda: bool(of_session(process.pid, b"multiprocessing.spawn")))
    [daemonic] = set(of_session(process.pid, b"metaharvest.__main__")) - {process.pid}
    os.kill(daemonic, signal.SIGKILL)
    wait_until(lambda: not of_session(process.pid, b"multiprocessing"))
    process.communicate(timeout=20)


def of_session(session: int, words: bytes) -> list[int]:
    """The processes of this session with these words in their command lines."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getsid(int(folder.name)) == session and words in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


OUTCOMES = ("listed", "inserted", "filtered", "invalid", "deferred", "access_error")
