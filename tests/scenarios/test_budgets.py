"""How much of a host a run takes, whatever number of sites is on it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from metaharvest.harvest.limits import RunLimits
from support.harvester import Harvester, eml, harvest_list, publish
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


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_site_whose_servers_drag_out_every_request_leaves_room_for_the_others(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow documents drip until the good site was served: as long as they may take, where it is not."""
    settings = {"HARVESTER__WORKERS": 8, "HTTP__CONNECTIONS_PER_HOST": 16, "HTTP__DOCUMENT_DEADLINE": 25}
    for name, value in settings.items():
        monkeypatch.setenv(f"METAHARVEST_{name}", str(value))
    good, slow = ["good.1.1", "good.2.1"], [f"slow.{number}.1" for number in range(20)]
    all_held, served = threading.Event(), threading.Barrier(len(good))
    done = threading.Event()

    def dripping(content: bytes) -> Callable[[Asking], None]:
        def route(asking: Asking) -> None:
            asking.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + content)
            while not done.is_set():
                all_held.set()
                asking.send(b" ")
                asking.pause(0.1)
            asking.end()

        return route

    def late(asking: Asking) -> None:
        assert all_held.wait(20)
        asking.pause(1)
        asking.answer(harvest_list((docid, server.url(f"/{docid}.xml")) for docid in good))

    def at_last(content: bytes) -> Callable[[Asking], None]:
        def route(asking: Asking) -> None:
            served.wait(20)
            asking.answer(content)
            done.set()

        return route

    with HttpServer(host="127.0.0.2") as other:
        for docid in slow:
            other.route(f"/{docid}.xml", dripping(eml(docid)))
        other.serve("/list.xml", harvest_list((docid, other.url(f"/{docid}.xml")) for docid in slow))
        for docid in good:
            server.route(f"/{docid}.xml", at_last(eml(docid)))
        harvester.add_site("good", server.route("/list.xml", late))
        harvester.add_site("slow", other.url("/list.xml"))
        run = harvester.run("2026-11-20")
    assert [site["inserted"] for site in run["sites"]] == [2, 20]
    assert other.most_at_once < 8


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_site_whose_server_drags_out_its_list_leaves_its_place_to_the_next(
    harvester: Harvester, server: HttpServer
) -> None:
    """The list drips until the other site was served: as long as it may take, where that is not."""
    harvester.limits = RunLimits(sites_at_once=1, site_seconds=0.3)
    content = harvest_list([("a.1.1", server.url("/a.1.1.xml"))])

    def dripping(asking: Asking) -> None:
        asking.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + content)
        while not server.asked("/b.1.1.xml"):
            asking.send(b" ")
            asking.pause(0.05)
        asking.end()

    server.serve("/a.1.1.xml", eml("a.1.1"))
    harvester.add_site("alder", server.route("/list.xml", dripping))
    harvester.add_site("birch", publish(server, "b.1.1", path="/birch.xml"))
    run = harvester.run("2026-11-20")
    assert [site["inserted"] for site in run["sites"]] == [1, 1]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_sites_of_a_host_that_hangs_leave_places_for_others(harvester: Harvester, server: HttpServer) -> None:
    """The lists of the one host hang until the site of the other, which is the last, was served."""
    harvester.limits = RunLimits(sites_at_once=4, site_seconds=30)
    served = threading.Event()

    def hanging(asking: Asking) -> None:
        served.wait(25)
        asking.answer(harvest_list([]))

    def document(asking: Asking) -> None:
        waited.append(served.is_set())
        served.set()
        asking.answer(eml("b.1.1"))

    waited: list[bool] = []
    with HttpServer(host="127.0.0.2") as other:
        for number in range(12):
            harvester.add_site(f"alder-{number}", other.route(f"/{number}.xml", hanging))
        server.route("/b.1.1.xml", document)
        server.serve("/list.xml", harvest_list([("b.1.1", server.url("/b.1.1.xml"))]))
        harvester.add_site("birch", server.url("/list.xml"))
        harvester.run("2026-11-20")
        began = min(request.at for request in other.requests)
        assert min(request.at for request in server.requests) - began < 20
    assert waited == [False]
