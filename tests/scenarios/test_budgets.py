"""How much of a host a run takes, whatever number of sites is on it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.harvester import Harvester, eml, harvest_list
from support.http_server import Asking, HttpServer


def slowly(content: bytes) -> Callable[[Asking], None]:
    def route(asking: Asking) -> None:
        asking.pause(0.05)
        asking.answer(content)

    return route


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_all_sites_of_a_host_share_its_budget_and_other_hosts_have_theirs(
    harvester: Harvester, server: HttpServer
) -> None:
    """Four connections a host are the default."""
    with HttpServer(host="127.0.0.2") as other:
        for host, names in ((server, ("alder", "basalt", "cedar")), (other, ("dune", "elm"))):
            for name in names:
                docids = [f"{name}.{number}.1" for number in range(1, 9)]
                for docid in docids:
                    host.route(f"/{docid}.xml", slowly(eml(docid)))
                listed = harvest_list((docid, host.url(f"/{docid}.xml")) for docid in docids)
                harvester.add_site(name, host.url(f"/{name}-list.xml"))
                host.serve(f"/{name}-list.xml", listed)
        done = harvester.run("2026-11-20")
        assert {site["inserted"] for site in done["sites"]} == {8}
        assert (server.most_at_once, other.most_at_once) == (4, 4)
        assert max(server.most_connections, other.most_connections) <= 4
