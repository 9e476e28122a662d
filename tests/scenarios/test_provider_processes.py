"""Two installations with a provider in a process of its own between them: changes and kills between two pages."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from lxml import etree

from metaharvest.model import Upload
from support.databases import Servers
from support.harvester import SETTINGS, Harvester
from support.http_server import HttpServer
from support.provider import DATACITE, EML, OAI_DC, asked, dc, delete, document, record, store
from support.provider_process import Front, ProviderProcess
from support.waiting import wait_until

BETWEEN = [("sqlite", "postgresql"), ("postgresql", "mariadb"), ("mariadb", "sqlite")]
"""The databases of the first and the second installation: each kind is on both sides once."""

PREFIXES = ("oai_dc", "datacite", "eml-2.0.0", "eml-2.1.1", "eml-2.2.0")
EML_22 = "https://eml.ecoinformatics.org/eml-2.2.0"
EML_20 = "eml://ecoinformatics.org/eml-2.0.0"
PROVENANCE = "http://www.openarchives.org/OAI/2.0/provenance"
NESTED = (
    f'<provenance xmlns="{PROVENANCE}"><originDescription harvestDate="2025-01-01T00:00:00Z" altered="false">'
    "<baseURL>https://first.org/oai</baseURL><identifier>oai:first.org:1</identifier>"
    "<datestamp>2024-01-01</datestamp><metadataNamespace>urn:x</metadataNamespace></originDescription></provenance>"
).encode()
RIGHTS = (
    b'<rights xmlns="http://www.openarchives.org/OAI/2.0/rights/">'
    b'<rightsReference ref="https://creativecommons.org/licenses/by/4.0/"/></rights>'
)
WEB = '[web]\nurl = "{url}"\ndomain = "first.example.org"\ntoken_key = "for tests"\npage_records = 5\n'


@dataclass(frozen=True)
class Given:
    """A record as the second installation is to have it: canonical bytes, None if it is deleted; sets; sources."""

    content: bytes | None
    sets: tuple[str, ...]
    sources: tuple[str, ...] = ()
    rights: bool = False


def canonical(content: bytes) -> bytes:
    return etree.tostring(etree.fromstring(content), method="c14n", exclusive=True)


def eml(namespace: str, title: str, encoding: str = "utf-8") -> bytes:
    """EML with all that a stored document may have: an encoding, comments, CDATA, prefixes in values, a tail."""
    text = (
        f'<?xml version="1.0" encoding="{encoding}"?>\n<!-- before -->\n<?style sheet?>\n'
        f'<eml:eml xmlns:eml="{namespace}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xmlns:t="urn:types" packageId="x.1.1" system="s">\n  <dataset><!-- inside -->\n'
        f"    <title>{title} é</title>\n    <creator><organizationName><![CDATA[A & B]]></organizationName></creator>\n"
        '    <contact><organizationName xsi:type="t:name">C\n  D</organizationName></contact>\n'
        "  </dataset>\n</eml:eml>\n<!-- behind -->\n"
    )
    return text.encode(encoding)


def datacite(title: str) -> bytes:
    return f'<resource xmlns="{DATACITE}"><titles><title>{title}</title></titles></resource>'.encode()


@dataclass
class First:
    """The first installation, and what the second one is to have of it, by prefix and identifier."""

    harvester: Harvester
    given: dict[tuple[str, str], Given] = field(default_factory=dict)
    uploads: dict[tuple[str, str], Upload] = field(default_factory=dict)

    def put(self, upload: Upload, prefix: str, identifier: str, given: Given) -> None:
        store(self.harvester, upload)
        self.given[prefix, identifier], self.uploads[prefix, identifier] = given, upload

    def frog(self, number: int, title: str, *, prefix: str = "oai_dc", revision: int = 1, part: str = "tree") -> None:
        """A record of the source repository `frogs`, in one of its two formats."""
        content, kind = (dc(title), OAI_DC) if prefix == "oai_dc" else (datacite(title), DATACITE)
        identifier = f"oai:frogs.org:{number}"
        upload = record(
            identifier,
            content,
            sets=(f"amphibia:{part}",),
            about=[NESTED, RIGHTS],
            site=2,
            revision=revision,
            prefix=prefix,
            kind=kind,
        )
        sets = ("site:frogs", f"origin:frogs:amphibia:{part}", f"format:{prefix}")
        sources = ("https://frogs.example.org/oai", "https://first.org/oai")
        self.put(upload, prefix, identifier, Given(canonical(content), sets, sources, rights=True))

    def marsh(self, number: int, title: str, revision: int = 1) -> None:
        """A record that was normalised."""
        upload = record(str(number), dc(title), origin="marsh", altered=True, site=3, revision=revision)
        sets = ("site:marsh", "origin:marsh", "format:oai_dc")
        given = Given(canonical(dc(title)), sets, ("https://frogs.example.org/oai",))
        self.put(upload, "oai_dc", f"oai:first.example.org:marsh/{number}", given)

    def eml(self, number: int, content: bytes, namespace: str, revision: int = 1) -> None:
        """A document of a harvest list."""
        upload = document(f"alder.{number}", content, namespace, revision=revision)
        prefix = f"eml-{namespace[-5:]}"
        self.put(
            upload,
            prefix,
            f"oai:first.example.org:alder.{number}",
            Given(canonical(content), ("site:alder", "format:eml")),
        )

    def delete(self, prefix: str, identifier: str) -> None:
        delete(self.harvester, self.uploads[prefix, identifier])
        self.given[prefix, identifier] = replace(self.given[prefix, identifier], content=None)

    def fill(self) -> None:
        for name in ("alder", "frogs", "marsh"):
            self.harvester.add_site(name, f"https://{name}.example.org/list.xml")
        for number in range(14):
            self.frog(number, f"Frog {number}")
        for number in range(8):
            self.frog(number, f"Frog {number}", prefix="datacite")
        for number in range(4):
            self.marsh(number, f"Marsh {number}")
        for number, namespace in enumerate([EML_20, EML, EML_22] * 3):
            self.eml(number, eml(namespace, f"Alder {number}", "iso-8859-1" if number < 3 else "utf-8"), namespace)
        for gone in (("oai_dc", "oai:frogs.org:13"), ("eml-2.1.1", "oai:first.example.org:alder.7")):
            self.delete(*gone)
            # The second installation never had it.
            del self.given[gone]

    def change(self, number: int) -> None:
        """Changes of all kinds, all at once; `number` makes them differ from the last ones."""
        self.frog(1, f"Changed {number}", revision=number + 1)
        self.frog(2, f"Changed {number}", prefix="datacite", revision=number + 1)
        self.frog(3, "Frog 3", revision=number + 1, part=f"bush{number}")
        self.frog(100 + number, "A new frog")
        self.marsh(2, f"Changed {number}", revision=number + 1)
        namespace = (EML_20, EML, EML_22)[number]
        self.eml(number, eml(namespace, f"Changed {number}"), namespace, 9)
        self.delete("oai_dc", f"oai:frogs.org:{8 + number}")
        self.delete("datacite", f"oai:frogs.org:{4 + number}")


@dataclass
class Two:
    """Both installations, the process between them, and the web server in front of it."""

    first: First
    second: Harvester
    provider: ProviderProcess
    front: Front

    def found(self) -> dict[tuple[str, str], Given]:
        """The records of the second installation in the formats that the first one holds; digests are checked."""
        rows = self.second.rows(
            "SELECT d.document_id, d.deleted, d.sha256, r.sha256, r.content, o.sets, o.about FROM catalogue_document d "
            "JOIN document_revision r ON r.document_id = d.document_id AND r.revision = d.revision "
            "JOIN document_origin o ON o.document_id = d.document_id AND o.revision = d.revision"
        )
        found = {}
        for document_id, deleted, digest, digest_of_revision, content, sets, about in rows:
            assert digest == digest_of_revision == hashlib.sha256(content).hexdigest()
            _, prefix, identifier = document_id.split("/", 2)
            containers = json.loads(about)
            sources = tuple(re.findall("<baseURL>([^<]*)</baseURL>", "".join(containers)))
            has_rights = canonical(RIGHTS) in [canonical(each.encode()) for each in containers]
            found[prefix, unquote(identifier)] = Given(
                None if deleted else canonical(content), tuple(json.loads(sets)), sources, has_rights
            )
        return found

    def require_equal(self) -> None:
        """Both hold equal records; Dublin Core that was made of others is as the provider gives it.

        The second installation may lack records that were deleted before it saw them.
        """
        found = self.found()
        given = {key: value for key, value in self.first.given.items() if value.content is not None or key in found}
        assert {key: found.get(key) for key in given} == given
        made = {key for key in found if key not in given}
        others = {identifier for prefix, identifier in given if prefix.startswith("eml-")}
        assert made == {("oai_dc", identifier) for identifier in others}
        with asked(self.first.harvester, domain="first.example.org", url=self.front.server.url("")) as ask:
            for _, identifier in made:
                root = ask("GetRecord", metadataPrefix="oai_dc", identifier=identifier)
                metadata = root.find(".//{*}metadata/*")
                expected = None if metadata is None else etree.tostring(metadata, method="c14n", exclusive=True)
                assert found["oai_dc", identifier].content == expected

    def harvest(self, day: str) -> None:
        """A night of the second installation, in which all sites succeed."""
        run = self.second.run(day)
        rows = self.second.rows("SELECT rule, error_message FROM harvest_detail_log")
        assert {site["status"] for site in run["sites"]} == {"succeeded"}, rows

    def harvest_in_process(self, day: str) -> subprocess.Popen[str]:
        return self.second.start("run", "--date", day)


@pytest.fixture(params=BETWEEN, ids="-".join)
def two(request: pytest.FixtureRequest, tmp_path: Path, servers: Servers) -> Iterator[Two]:
    of_first, of_second = (servers.test_database(kind) for kind in request.param)
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    with HttpServer() as server:
        first = First(Harvester(folders[0], SETTINGS + WEB.format(url=server.url("")), of_first))
        first.fill()
        second = Harvester(folders[1], SETTINGS, of_second)
        provider = ProviderProcess(first.harvester)
        front = Front(server, provider)
        provider.start()
        try:
            for prefix in PREFIXES:
                options = ("--oai", front.base_url, "--prefix", prefix, "--origin", "hub", "--allow-duplicate")
                said = second("sites", "add", prefix, *options)
                assert said.code == 0, said.err
            yield Two(first, second, provider, front)
        finally:
            provider.kill()
            second.close()
            first.harvester.close()


def on_page(number: int, action: Callable[[], None]) -> Callable[[int], None]:
    return lambda page: action() if page == number else None


@pytest.mark.slow
def test_records_that_change_between_two_pages_are_equal_after_the_next_night(two: Two) -> None:
    two.harvest("2030-01-01")
    assert two.front.pages > 3
    two.require_equal()
    two.first.change(1)
    two.front.watch(on_page(1, lambda: two.first.change(2)))
    two.harvest("2030-01-02")
    assert two.front.pages > 0
    two.harvest("2030-01-03")
    two.require_equal()
    found = two.found()
    assert [found["oai_dc", f"oai:frogs.org:{number}"].content for number in (9, 10)] == [None, None]
    assert [found["datacite", f"oai:frogs.org:{number}"].content for number in (5, 6)] == [None, None]


@pytest.mark.slow
def test_a_provider_that_is_killed_between_two_pages_goes_on_with_its_lists(two: Two) -> None:
    def away(page: int) -> None:
        if page == 2:
            two.provider.kill()
        if page == 3:
            two.first.change(1)
            two.provider.start()

    two.front.watch(away)
    two.harvest("2030-01-01")
    assert two.front.pages > 3
    two.harvest("2030-01-02")
    two.require_equal()


@pytest.mark.slow
def test_a_run_that_is_killed_between_two_pages_has_everything_in_the_end(two: Two) -> None:
    started: list[subprocess.Popen[str]] = []
    two.front.watch(on_page(2, lambda: wait_until(lambda: started)[0].kill()))
    started.append(run := two.harvest_in_process("2030-01-01"))
    run.communicate(timeout=60)
    assert run.returncode < 0
    two.first.change(1)
    two.front.watch(lambda _page: None)
    two.harvest("2030-01-02")
    two.harvest("2030-01-03")
    two.require_equal()
