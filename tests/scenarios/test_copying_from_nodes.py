"""`metaharvest target copy` and `target get` from a DataONE node that misbehaves: 0 means that all is there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from support.harvester import TYPE, Harvester, eml
from support.http_server import Asking, HttpServer

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

_NOT_FOUND = b'<error name="NotFound" errorCode="404" detailCode="1"><description>no</description></error>'


class Node:
    """A node that lists `docids` in this order, at most `most` a page, and says that there are `total` of them.

    `after_page` is called with where a page began, once the node knows what is in it. The entries of `served` are
    given in place of the bytes that the node says it has.
    """

    def __init__(self, server: HttpServer, docids: list[str], most: int = 1000) -> None:
        self.docids = docids
        self.most = most
        self.total: Callable[[], int] = lambda: len(self.docids)
        self.after_page: Callable[[int], object] = lambda start: None
        self.algorithm = "MD5"
        self.served: dict[str, bytes] = {}
        self.listings = 0
        server.otherwise = self._answer
        self.url = server.url("/v2")

    def touch(self, docid: str) -> None:
        """Have it changed last: it moves to the end of the listing."""
        self.docids.remove(docid)
        self.docids.append(docid)

    def _answer(self, asking: Asking) -> None:
        parts = urlsplit(asking.path)
        docid = unquote(parts.path.rpartition("/")[2])
        if parts.path == "/v2/object":
            asking.answer(self._page(dict(parse_qsl(parts.query))))
        elif docid not in self.docids:
            asking.answer(_NOT_FOUND, 404)
        elif parts.path.startswith("/v2/meta/"):
            body = f"<n:systemMetadata {_namespace('v2.0')}>{self._info(docid)}</n:systemMetadata>"
            asking.answer(body.encode())
        else:
            asking.answer(self.served.get(docid, eml(docid)))

    def _page(self, query: Mapping[str, str]) -> bytes:
        start, count = int(query["start"]), min(int(query["count"]), self.most)
        page, total = self.docids[start : start + count], self.total()
        if count:
            self.listings += not start
            self.after_page(start)
        infos = "".join(f"<objectInfo>{self._info(each)}</objectInfo>" for each in page)
        counts = f'count="{len(page)}" start="{start}" total="{total}"'
        return f"<n:objectList {_namespace('v1')} {counts}>{infos}</n:objectList>".encode()

    def _info(self, docid: str) -> str:
        known = {"MD5": "md5", "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512"}
        content = eml(docid)
        digest = hashlib.new(known.get(self.algorithm, "md5"), content).hexdigest()
        return (
            f"<identifier>{docid}</identifier><formatId>{TYPE}</formatId><size>{len(content)}</size>"
            f'<checksum algorithm="{self.algorithm}">{digest}</checksum>'
        )


def _namespace(version: str) -> str:
    return f'xmlns:n="http://ns.dataone.org/service/types/{version}"'


@pytest.fixture
def node(harvester: Harvester, server: HttpServer) -> Node:
    """A node with twelve documents, five of them on a page, which the settings name as `node`."""
    made = Node(server, [f"n.{number}.1" for number in range(12)], most=5)
    section = f'[targets.node]\nkind = "dataone"\nurl = "{made.url}"\nrights_holder = "CN=x"\n'
    harvester.config.write_text(f"{harvester.config.read_text()}{section}", encoding="utf-8")
    return made


def copy(harvester: Harvester, *arguments: str) -> dict[str, Any]:
    """What `target copy --json` printed, with its exit code."""
    said = harvester("target", "copy", "node", "embedded", "--json", *arguments)
    assert said.out, said.err
    return {**json.loads(said.out), "exit_code": said.code}


# -- the listing


def test_an_object_that_moves_while_the_listing_is_read_is_copied_all_the_same(
    harvester: Harvester, node: Node
) -> None:
    def once(start: int) -> None:
        node.after_page = lambda start: None
        node.touch("n.0.1")

    node.after_page = once
    everything = {docid: eml(docid) for docid in node.docids}
    told = copy(harvester)
    assert (told["exit_code"], told["read"], told["copied"]) == (0, 12, 12)
    assert harvester.held() == everything


def test_an_object_that_is_gone_while_the_listing_is_read_hides_no_other(harvester: Harvester, node: Node) -> None:
    def once(start: int) -> None:
        node.after_page = lambda start: None
        node.docids.remove("n.0.1")

    node.after_page = once
    assert copy(harvester)["exit_code"] == 0
    assert set(harvester.held()) == {f"n.{number}.1" for number in range(1, 12)}


def test_objects_that_come_while_the_listing_is_read_are_no_reason_to_read_it_again(
    harvester: Harvester, node: Node
) -> None:
    node.after_page = lambda start: node.docids.extend([f"new.{start}.1"] if start < 10 else [])
    told = copy(harvester)
    assert (told["exit_code"], told["copied"], node.listings) == (0, 14, 1)


def test_a_listing_that_never_comes_out_right_is_told(harvester: Harvester, node: Node) -> None:
    node.docids.append("n.0.1")
    told = copy(harvester)
    assert told["exit_code"] == 1
    assert "changed while it was read" in told["cut_short"]
    assert "the same command goes on" in told["cut_short"]


@pytest.mark.parametrize("listed", [0, 5])
def test_a_node_that_lists_less_than_it_says_is_told(harvester: Harvester, node: Node, listed: int) -> None:
    del node.docids[listed:]
    node.total = lambda: 1000
    told = copy(harvester)
    assert told["exit_code"] == 1
    assert f"lists {listed} of the 1,000 objects that it says it has" in told["cut_short"]
    assert harvester.held() == {}
    listing = harvester("target", "list", "--target", "node")
    assert listing.code != 0
    assert f"lists {listed} of the 1,000 objects" in listing.err


# -- bytes


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-1", "SHA-256", "SHA-384", "SHA-512"])
@pytest.mark.parametrize("kind", ["cut off", "others of the same length"])
def test_bytes_that_the_node_says_are_others_are_not_copied(
    harvester: Harvester, node: Node, tmp_path: Path, algorithm: str, kind: str
) -> None:
    node.algorithm = algorithm
    right = eml("n.3.1")
    wrong = right[:100] if kind == "cut off" else right.replace(b"A title", b"a title")
    node.served["n.3.1"] = wrong
    told = copy(harvester)
    assert (told["exit_code"], told["copied"], told["unreadable"]) == (1, 11, 1)
    [problem] = told["problems"]
    assert (problem["document_id"], problem["rule"], problem["ended"]) == ("n.3", "copy.unreadable", "unreadable")
    assert "n.3.1" in problem["message"]
    assert problem["remedy"].endswith(".")
    assert "n.3.1" not in harvester.held()
    got = harvester("target", "get", "n.3.1", "--target", "node", "--output", str(tmp_path / "got.xml"))
    assert got.code != 0
    assert "n.3.1" in got.err
    assert not (tmp_path / "got.xml").exists()


def test_of_a_checksum_of_an_unknown_kind_the_length_is_compared(harvester: Harvester, node: Node) -> None:
    node.algorithm = "TIGER-192"
    node.served["n.3.1"] = eml("n.3.1")[:100]
    told = copy(harvester)
    assert (told["copied"], told["unreadable"]) == (11, 1)
