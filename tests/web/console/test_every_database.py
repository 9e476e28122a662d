"""Every page opens on every kind of database, after two harvests."""

from __future__ import annotations

import pytest

from metaharvest.web.console.access import PAGES
from support.console import served_console
from support.harvester import Harvester, publish
from support.http_server import HttpServer

NAMES = {"{site}": "alder", "{document}": "a.1", "{rule}": "http.status", "{number}": "1"}


@pytest.mark.slow
def test_every_page_opens(harvester: Harvester, server: HttpServer) -> None:
    also = [("a.2.1", server.url("/gone.xml"))]
    harvester.add_site("alder", publish(server, "a.1.1", path="/alder.xml", also=also))
    for day in ("2050-11-20", "2050-11-21"):
        harvester.run(day)
    with served_console(harvester) as console:
        operator = console.signed_in("operator")
        paths = [page.path for page in PAGES if page.method == "GET"]
        wrong, opened = [], 0
        for path in paths:
            asked = "/".join(NAMES.get(part, "1" if part.startswith("{") else part) for part in path.split("/"))
            answer = operator.open(asked)
            wrong += [(answer.status, asked)] if answer.status >= 500 else []
            opened += answer.status == 200
        searches = ("documents?q=water", "documents?rule=http.status", "sites?failing=yes&order=last-success", "log")
        wrong += [(page.status, path) for path in searches if (page := operator.open(f"/console/{path}")).status != 200]
        assert wrong == []
        assert opened > 40
