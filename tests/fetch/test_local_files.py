"""file: URLs: what they may name, and that nothing outside of the allowed folder is ever read."""

from __future__ import annotations

import hashlib
import io
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError
from metaharvest.fetch.local_files import copy, is_file_url, refusal
from metaharvest.model import Finding
from metaharvest.rules import RULES
from support.fetching import WaitingFetcher as Fetcher
from support.http_server import HttpServer

SECRET = b"root:x:0:0"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that is allowed; beside it is a file that nobody may see."""
    (tmp_path / "outside.xml").write_bytes(SECRET)
    (tmp_path / "site" / "more").mkdir(parents=True)
    (tmp_path / "site" / "more" / "eml.xml").write_bytes(b"<eml/>")
    return tmp_path / "site"


def read(url: str, folder: Path | None, limit: int = 1000) -> bytes:
    to = io.BytesIO()
    size, digest = copy(url, folder, to, limit)
    assert (size, digest) == (len(to.getvalue()), hashlib.sha256(to.getvalue()).hexdigest())
    return to.getvalue()


def refused(url: str, folder: Path | None, rule: str, *, transient: bool = False) -> Finding:
    to = io.BytesIO()
    with pytest.raises(FetchError) as caught:
        copy(url, folder, to, 1000)
    (finding,) = caught.value.findings
    assert (finding.rule, caught.value.transient) == (rule, transient)
    assert rule in RULES
    assert finding.remedy
    assert SECRET not in to.getvalue()
    return finding


SPELLINGS: list[Callable[[str], str]] = [
    lambda path: f"file:{path}",
    lambda path: f"file://{path}",
    lambda path: f"FILE://LocalHost{path}",
    lambda path: f"file:///{path}",
    lambda path: f"file://{path}".replace("more", "m%6Fre"),
    lambda path: f"file://{path}".replace("/more/", "/more/../more/./"),
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_file_is_read_in_every_spelling_of_its_url(folder: Path, spelling: Callable[[str], str]) -> None:
    url = spelling(str(folder / "more" / "eml.xml"))
    assert is_file_url(url)
    assert read(url, folder) == b"<eml/>"
    assert refusal(url, folder) is None


@pytest.mark.parametrize("name", ["ein gruß.xml", "a#b?.xml", "100%.xml", b"latin-\xe9.xml"])
def test_a_file_may_have_any_name(folder: Path, name: str | bytes) -> None:
    file = folder / os.fsdecode(name)
    file.write_bytes(b"<eml/>")
    assert read(file.as_uri(), folder) == b"<eml/>"


def test_a_name_may_be_written_in_the_letters_of_its_language(folder: Path) -> None:
    (folder / "gruß.xml").write_bytes(b"<eml/>")
    assert read(f"file://{folder}/gruß.xml", folder) == b"<eml/>"


@pytest.mark.parametrize(
    "url",
    [
        "file://example.org/srv/eml.xml",
        "file://127.0.0.1/srv/eml.xml",
        "file://me:secret@localhost/srv/eml.xml",
        "file:eml.xml",
        "file:",
        "file://",
        "file:///srv/eml.xml?raw=1",
        "file:///srv/eml.xml#part",
        "file:///srv/%00eml.xml",
        "file:\\\\srv\\eml.xml",
    ],
)
def test_a_url_that_names_no_file_here_is_refused(folder: Path, url: str) -> None:
    assert "secret" not in repr(refused(url, folder, "http.bad-url"))


def test_without_a_folder_every_file_is_refused_with_the_setting_that_allows_it(folder: Path) -> None:
    finding = refused(f"file://{folder}/more/eml.xml", None, "file.not-allowed")
    assert 'file_folder in [sites."NAME"]' in finding.remedy
    assert refusal(f"file://{folder}/more/eml.xml", None) == finding


@pytest.mark.parametrize(
    "path", ["../outside.xml", "%2e%2e/outside.xml", "more/../../outside.xml", "../none.xml", "../site-2/x.xml", ".."]
)
def test_what_is_outside_is_refused_in_the_same_words_whether_it_is_there_or_not(folder: Path, path: str) -> None:
    url = f"file://{folder}/{path}"
    message = refused(url, folder, "file.not-allowed").message
    assert message.replace(url, "URL") == refused("file:///no/such", folder, "file.not-allowed").message.replace(
        "file:///no/such", "URL"
    )


def test_links_that_lead_out_are_refused_and_those_that_stay_inside_are_followed(folder: Path) -> None:
    (folder / "out.xml").symlink_to("../outside.xml")
    (folder / "out").symlink_to(folder.parent)
    (folder / "absolute.xml").symlink_to("/etc/passwd")
    (folder / "hanging.xml").symlink_to("../none.xml")
    (folder / "in.xml").symlink_to("more/eml.xml")
    (folder / "in").symlink_to(folder / "more")
    for path in ("out.xml", "out/outside.xml", "absolute.xml", "hanging.xml"):
        refused(f"file://{folder}/{path}", folder, "file.not-allowed")
    assert read(f"file://{folder}/in.xml", folder) == read(f"file://{folder}/in/eml.xml", folder) == b"<eml/>"


def test_the_folder_itself_may_be_a_link(folder: Path) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    assert read(f"file://{link}/more/eml.xml", link) == read(f"file://{folder}/more/eml.xml", link) == b"<eml/>"


def test_what_is_no_file_is_refused_and_nothing_hangs(folder: Path) -> None:
    os.mkfifo(folder / "pipe.xml")
    (folder / "circle.xml").symlink_to("circle.xml")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))
        for path in ("pipe.xml", "more", "", "socket", "circle.xml"):
            refused(f"file://{folder}/{path}", folder, "file.not-a-file")
    refused("file:///dev/zero", Path("/"), "file.not-a-file")


def test_a_link_put_into_the_place_of_what_was_judged_gains_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Swapped at the very moment between judging and opening, as an attacker with access to the folder would try."""
    real = os.path.realpath
    (folder.parent / "eml.xml").write_bytes(SECRET)
    swaps = [(folder / "more" / "eml.xml", folder.parent / "outside.xml"), (folder / "more", folder.parent)]
    for place, leads_to in swaps:

        def swap(path: str, *, strict: bool = False, place: Path = place, leads_to: Path = leads_to) -> str:
            judged = real(path, strict=strict)
            if strict:
                return judged
            place.rename(place.with_name("away"))
            place.symlink_to(leads_to)
            return judged

        monkeypatch.setattr("metaharvest.fetch.local_files.os.path.realpath", swap)
        to = io.BytesIO()
        with pytest.raises(FetchError):
            copy(f"file://{folder}/more/eml.xml", folder, to, 1000)
        assert to.getvalue() == b""
        monkeypatch.undo()
        place.unlink()
        place.with_name("away").rename(place)


def test_a_file_that_is_missing_is_told(folder: Path) -> None:
    for path in ("none.xml", "none/eml.xml", "more/eml.xml/more"):
        refused(f"file://{folder}/{path}", folder, "file.missing")


def test_a_folder_that_is_gone_may_be_back_the_next_time(folder: Path) -> None:
    refused(f"file://{folder}/eml.xml", folder / "gone", "file.unreadable", transient=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_that_may_not_be_read_is_told(folder: Path) -> None:
    (folder / "more" / "eml.xml").chmod(0)
    refused(f"file://{folder}/more/eml.xml", folder, "file.unreadable")


def test_a_file_has_the_limits_of_a_document(folder: Path) -> None:
    file = folder / "eml.xml"
    file.write_bytes(b"x" * 1001)
    assert "larger than the 1,000 bytes" in refused(file.as_uri(), folder, "http.too-large").message
    file.write_bytes(b"x" * 1000)
    assert len(read(file.as_uri(), folder)) == 1000
    file.write_bytes(b"")
    refused(file.as_uri(), folder, "http.empty")


def test_a_redirect_never_leads_to_a_file_whatever_is_allowed(server: HttpServer, folder: Path) -> None:
    from ipaddress import ip_network

    file = folder / "more" / "eml.xml"
    http = HttpSettings(allow_networks=(ip_network("127.0.0.0/8"),))
    with Fetcher(http, name="x", administrator=None) as fetcher:
        assert fetcher.fetch(file.as_uri(), file_folder=folder)[1] == b"<eml/>"
        for location in (file.as_uri(), f"FILE:{file}", f"file://localhost{file}"):
            with pytest.raises(FetchError) as caught:
                fetcher.fetch(server.redirect("/x", location), file_folder=folder)
            assert caught.value.findings[0].rule == "http.scheme"
