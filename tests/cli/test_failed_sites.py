"""Sites that fail as a whole: every view names them, with the reason and since when."""

import json

import pytest

from support.databases import on_one_database
from support.harvester import Harvester, publish
from support.http_server import HttpServer

NIGHTS = ("2026-11-20", "2026-11-21", "2026-11-22")


@pytest.fixture
def failing(harvester: Harvester, server: HttpServer) -> Harvester:
    """Three sites: a list that is gone since the second night, a list that was never there, and a healthy list."""
    harvester.add_site("well", publish(server, "a.1.1", path="/well.xml"))
    harvester.add_site("gone", publish(server, "b.1.1", path="/gone.xml"))
    harvester.add_site("never", server.url("/never.xml"))
    harvester.run(NIGHTS[0])
    server.serve("/gone.xml", b"away", status=410)
    for night in NIGHTS[1:]:
        harvester.run(night)
    return harvester


def test_every_view_names_them_with_the_reason_and_since_when(failing: Harvester) -> None:
    views = {
        "runs": failing("runs").out,
        "runs show": failing("runs", "show", "3").out,
        "sites list": failing("sites", "list").out,
    }
    for view, said in views.items():
        output = " ".join(said.split())
        assert "gone: list-failed since 2026-11-21 (" in output, view
        assert "410 Gone" in output, view
        assert "never: list-failed since 2026-11-20 (" in output, view
        assert "well: " not in output, view
    output = " ".join(failing("sites", "show", "gone").out.split())
    assert "gone: list-failed since 2026-11-21 (" in output
    assert "410 Gone" in output
    assert "list-failed since" not in failing("sites", "show", "well").out


@on_one_database
def test_documents_failing_names_documents_by_the_number_of_failed_nights(failing: Harvester) -> None:
    output = failing("documents", "--failing").out
    assert "Sites that failed as a whole" in output
    assert [line.split()[:3] for line in output.splitlines() if "list-failed" in line] == [
        ["gone", "list-failed", "2026-11-21"],
        ["never", "list-failed", "2026-11-20"],
    ]
    assert "410 Gone" in output
    assert "list-failed" in failing("documents", "--failing", "--for", "3", "--site", "never").out
    assert "list-failed" not in failing("documents", "--failing", "--for", "1000").out
    assert "list-failed" not in failing("documents", "--failing", "--site", "well").out


def test_programs_read_it_in_json(failing: Harvester) -> None:
    newest, *_, first = json.loads(failing("runs", "--json").out)
    assert (newest["sites"], newest["failed"], first["failed"]) == (3, 2, 1)
    known = {site["site"]: site for site in json.loads(failing("sites", "list", "--json").out)}
    assert (known["gone"]["failed_since"], "410 Gone" in known["gone"]["failure_reason"]) == ("2026-11-21", True)
    assert known["gone"]["failed_nights"] > 1
    assert (known["well"]["failed_since"], known["well"]["failed_nights"]) == (None, 0)
    shown = json.loads(failing("runs", "show", "2", "--json").out)
    since = {site["site"]: (site["failed_since"], site["failed_nights"]) for site in shown["sites"]}
    assert since == {"gone": ("2026-11-21", 1), "never": ("2026-11-20", 2), "well": (None, 0)}


@on_one_database
def test_a_site_that_is_read_again_fails_no_longer(failing: Harvester, server: HttpServer) -> None:
    publish(server, "b.1.1", path="/gone.xml")
    failing.run("2026-11-23")
    assert "gone: " not in failing("runs").out
    assert "gone: " not in failing("sites", "list").out
    assert "\ngone " not in failing("documents", "--failing").out
