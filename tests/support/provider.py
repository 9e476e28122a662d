"""The OAI-PMH provider in tests: documents for its catalogue, its answers checked by the schemas, a real server."""

from __future__ import annotations

import hashlib
import io
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from email.message import Message
from functools import cache
from pathlib import Path
from typing import Any

import uvicorn
from lxml import etree

from metaharvest.database.engine import readers, writers
from metaharvest.model import Deletion, FetchedDocument, ListedDocument, RecordOrigin, Upload
from metaharvest.model.kinds import Role
from metaharvest.services import harvester as services
from metaharvest.services.harvester import utc_now
from metaharvest.targets.embedded import EmbeddedTarget
from metaharvest.web.api.dispatch import api_application
from metaharvest.web.application import application
from metaharvest.web.pages.routes import Pages
from metaharvest.web.provider.provider import Provider
from metaharvest.web.readers import readers_of
from metaharvest.web.server import describe, listen
from support.catalogue import AT
from support.harvester import Harvester

OAI = "{http://www.openarchives.org/OAI/2.0/}"
OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
EML = "eml://ecoinformatics.org/eml-2.1.1"
DATACITE = "http://datacite.org/schema/kernel-4"
KEY = '[web]\ntoken_key = "for tests"\n'
_SCHEMAS = Path(__file__).parent.parent / "web" / "schemas"
_IMPORTS = """\
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <xs:import namespace="http://www.openarchives.org/OAI/2.0/" schemaLocation="OAI-PMH.xsd"/>
  <xs:import namespace="http://www.openarchives.org/OAI/2.0/oai_dc/" schemaLocation="oai_dc.xsd"/>
  <xs:import namespace="http://www.openarchives.org/OAI/2.0/provenance" schemaLocation="provenance.xsd"/>
  <xs:import namespace="http://www.openarchives.org/OAI/2.0/oai-identifier" schemaLocation="oai-identifier.xsd"/>
</xs:schema>
"""


def dc(title: str) -> bytes:
    """A record in Dublin Core."""
    return (
        f'<oai_dc:dc xmlns:oai_dc="{OAI_DC}" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{title}</dc:title></oai_dc:dc>"
    ).encode()


def document(document_id: str, content: bytes, kind: str = EML, site: int = 1, *, revision: int = 1) -> Upload:
    """A document of a harvest list, for the catalogue."""
    listed = ListedDocument(document_id, revision, kind, "https://e.org/1.xml")
    return Upload(FetchedDocument(listed, content, hashlib.sha256(content).hexdigest(), 0.1), site, AT, title="A title")


def record(
    identifier: str,
    content: bytes,
    *,
    prefix: str = "oai_dc",
    kind: str = OAI_DC,
    origin: str = "frogs",
    sets: Sequence[str] = (),
    about: Sequence[bytes] = (),
    altered: bool = False,
    site: int = 1,
    revision: int = 1,
) -> Upload:
    """A record of a source repository, for the catalogue. The identifier is as in document ids."""
    came_from = RecordOrigin(
        "https://frogs.example.org/oai",
        urllib.parse.unquote(identifier),
        prefix,
        "2026-11-19",
        "2026-11-20T02:30:00Z",
        kind,
        sets=tuple(sets),
        about=tuple(about),
    )
    listed = ListedDocument(f"{origin}/{prefix}/{identifier}", revision, kind, "https://e.org/", origin=came_from)
    digest = hashlib.sha256(content).hexdigest()
    fetched = FetchedDocument(listed, content, digest, None, received=b"<as-received/>" if altered else None)
    return Upload(fetched, site, AT, title="A title")


def store(harvester: Harvester, *uploads: Upload) -> None:
    with writers(harvester.engine).begin() as session:
        EmbeddedTarget(readers(harvester.engine)).upload(list(uploads), session)


def delete(harvester: Harvester, upload: Upload) -> None:
    with writers(harvester.engine).begin() as session:
        deletion = Deletion(upload.fetched.document, upload.site_id, AT)
        EmbeddedTarget(readers(harvester.engine)).delete(deletion, session)


@cache
def _schema() -> etree.XMLSchema:
    """The schemas of the protocol together; they accept any other metadata inside of an answer."""

    class Files(etree.Resolver):
        def resolve(self, system_url: str, public_id: str, context: Any) -> Any:  # type: ignore[override]
            text = (_SCHEMAS / system_url.rpartition("/")[2]).read_text("utf-8")
            for strictness in ("skip", "strict"):
                text = text.replace(f'processContents="{strictness}"', 'processContents="lax"')
            return self.resolve_string(text, context, base_url=system_url)

    parser = etree.XMLParser()
    parser.resolvers.add(Files())
    return etree.XMLSchema(etree.parse(io.BytesIO(_IMPORTS.encode()), parser))


def checked(answer: bytes) -> etree._Element:
    """The root of an answer, which keeps the schemas."""
    root = etree.fromstring(answer)
    schema = _schema()
    assert schema.validate(root), schema.error_log
    return root


class Asked:
    """A provider that is asked without a server. All answers are checked by the schemas of the protocol."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider

    def __call__(self, verb: str, **arguments: str) -> etree._Element:
        pairs = [("verb", verb), *((name.removesuffix("_"), value) for name, value in arguments.items())]
        return self.pairs(*pairs)

    def pairs(self, *pairs: tuple[str, str]) -> etree._Element:
        return checked(self.provider.answer(pairs))

    def pages(self, verb: str = "ListRecords", **arguments: str) -> Iterator[etree._Element]:
        """The pages of a list, one after another."""
        root = self(verb, **arguments)
        while True:
            yield root
            token = root.findtext(f".//{OAI}resumptionToken")
            if not token:
                return
            root = self(verb, resumptionToken=token)

    def identifiers(self, verb: str = "ListRecords", **arguments: str) -> list[str]:
        return [each for page in self.pages(verb, **arguments) for each in texts(page, "identifier")]


def texts(root: etree._Element, name: str) -> list[str]:
    """The texts of all elements of the protocol with this name; of headers alone where it is an identifier."""
    return [each.text or "" for each in root.iter(f"{OAI}{name}")]


def codes(root: etree._Element) -> list[str]:
    return [each.get("code") or "" for each in root.iter(f"{OAI}error")]


@contextmanager
def asked(harvester: Harvester, **options: object) -> Iterator[Asked]:
    """A provider of this installation; `options` replace settings of [web]."""
    with opened_with(harvester, options) as opened:
        public, _ = describe(opened, "http://catalogue.example.org")
        yield Asked(Provider(opened, public, opened.settings.web.lists_at_once))


@contextmanager
def opened_with(
    harvester: Harvester, options: Mapping[str, object], clock: Callable[[], datetime] = utc_now
) -> Iterator[services.Harvester]:
    with harvester.opened(engine=harvester.engine) as opened:
        web = type(opened.settings.web).model_validate({"token_key": "for tests", **options})
        settings = opened.settings.model_copy(update={"web": web})
        with services.Harvester(settings, engine=harvester.engine, clock=clock) as changed:
            yield changed


@dataclass(frozen=True)
class Served:
    """A provider on loopback."""

    base_url: str

    def get(self, query: str, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request(urllib.request.Request(f"{self.base_url}{query}", headers=named))

    def request(self, request: urllib.request.Request) -> tuple[int, Mapping[str, str], bytes]:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, _in_lower_case(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _in_lower_case(error.headers), error.read()


def _in_lower_case(headers: Message) -> Mapping[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@contextmanager
def served(harvester: Harvester, **options: object) -> Iterator[Served]:
    """A provider of this installation behind a real server, in a thread; `options` replace settings of [web]."""
    with served_at(utc_now, harvester, **options) as server:
        yield server


@contextmanager
def served_at(clock: Callable[[], datetime], harvester: Harvester, **options: object) -> Iterator[Served]:
    """The same with this clock."""
    with opened_with(harvester, options, clock) as opened, listen("127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        public, _ = describe(opened, url)
        provider = Provider(opened, public, opened.settings.web.lists_at_once)
        readers = readers_of(opened, provider)
        api = api_application(opened, readers, least=Role.PUBLIC)
        answering = application(provider, Pages(opened, provider, readers), api=api)
        server = uvicorn.Server(uvicorn.Config(answering, log_config=None, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Served(f"{url}/oai")
        finally:
            server.should_exit = True
            thread.join(30)
