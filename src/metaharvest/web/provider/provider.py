"""Answers the requests of harvesters: the six verbs of OAI-PMH 2.0.

The responseDate of every answer lies some seconds before the present: see docs/provider.md. The database is left before
the answer is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import replace
from datetime import datetime
from xml.sax.saxutils import quoteattr

from metaharvest.catalogue import publication
from metaharvest.catalogue.selection import CatalogueEntry, Selection, former_formats, list_entries
from metaharvest.model.namespaces import OAI_DC, XSI
from metaharvest.queries.public_sites import names_of, public_sites
from metaharvest.services.harvester import Harvester
from metaharvest.text import one_line
from metaharvest.web.provider import answers, sets
from metaharvest.web.provider.answers import element, stamp
from metaharvest.web.provider.arguments import ProtocolError, Refused, Request, read_request
from metaharvest.web.provider.formats import DUBLIN_CORE, Format
from metaharvest.web.provider.list_pages import continued, format_of, list_page, record_of
from metaharvest.web.provider.tokens import Token, written
from metaharvest.web.provider.view import Public, View
from metaharvest.web.turns import Turns

_WAIT_SECONDS = 2
"""The time that a request for one document waits for its turn, in a thread."""


class Provider:
    """The provider of one installation, for several threads.

    `lists_at_once`: the number of requests that read lists or documents together; pages of documents count, too. One
    address has at most half of them.
    """

    def __init__(self, harvester: Harvester, public: Public, lists_at_once: int) -> None:
        self.public = public
        self._harvester = harvester
        self._turns = Turns(lists_at_once)

    def answer(self, pairs: Sequence[tuple[str, str]]) -> bytes:
        """The answer to a request with these arguments; a list or a record needs a turn. Raises DatabaseError."""
        now = self._harvester.now()
        echoed: dict[str, str] = {}
        try:
            request = read_request(pairs)
            echoed = {"verb": request.verb, **request.arguments}
            inner = self._with_view(request, now)
        except Refused as refused:
            inner = answers.errors(refused.errors)
            if any(each.code in ("badVerb", "badArgument") for each in refused.errors):
                echoed = {}
        return answers.envelope(self.public.base_url, echoed, now - self.public.lag, inner)

    def turn(self, address: str = "", seconds: float = _WAIT_SECONDS) -> AbstractContextManager[None]:
        """The turn of a request from this address that reads a document, in a thread. Raises Busy after this time."""
        return self._turns.turn(address, seconds)

    def turn_without_thread(self, address: str, seconds: float) -> AbstractAsyncContextManager[None]:
        """The turn of a request from this address that reads a list or a record. Raises Busy after this time."""
        return self._turns.turn_without_thread(address, seconds)

    def _with_view(self, request: Request, now: datetime) -> bytes:
        with self._harvester.reading() as session:
            view = View(session, self.public)
            match request.verb:
                case "Identify":
                    return _identify(view, now)
                case "ListMetadataFormats":
                    return _list_metadata_formats(view, request.identifier)
                case "ListSets":
                    return _list_sets(view, request, now)
                case "GetRecord":
                    return _get_record(view, request)
                case _:
                    return list_page(view, request, now)


def _identify(view: View, now: datetime) -> bytes:
    public = view.public
    earliest = list_entries(view.session, Selection(hidden=view.hidden), 1)
    headers = view.headers([publication.published_document(view.session, each) for each in earliest])
    # A former format may have an older datestamp than all documents.
    types = tuple(each.document_type for each in view.formats)
    in_format = list_entries(view.session, Selection(document_types=types, hidden=view.hidden, one_of="format"), 1)
    datestamps = [now - public.lag, *(each.changed_at for each in (*earliest, *in_format))]
    return "".join(
        (
            "<Identify>",
            element("repositoryName", one_line(public.name)),
            element("baseURL", public.base_url),
            element("protocolVersion", "2.0"),
            *(element("adminEmail", each) for each in public.administrators),
            element("earliestDatestamp", stamp(min(datestamps))),
            element("deletedRecord", "persistent"),
            element("granularity", "YYYY-MM-DDThh:mm:ssZ"),
            element("compression", "gzip"),
            *_descriptions(public, [each.identifier for each in headers]),
            "</Identify>",
        )
    ).encode()


def _descriptions(public: Public, identifiers: Iterable[str]) -> Iterator[str]:
    """The description elements: the form of identifiers, rights, friends, branding.

    The first of these identifiers that has the domain of this provider is the sample.
    """
    domain = public.domain
    sample = next((each for each in identifiers if each.startswith(f"oai:{domain}:")), f"oai:{domain}:alder-creek.1")
    yield _description(
        "oai-identifier",
        "oai-identifier",
        element("scheme", "oai")
        + element("repositoryIdentifier", domain)
        + element("delimiter", ":")
        + element("sampleIdentifier", sample),
    )
    if public.rights:
        reference = f"<rights><rightsReference ref={quoteattr(public.rights)}/></rights>"
        yield _description("rightsManifest", "rights/", reference, f' appliesTo="{answers.OAI}entity#metadata"')
    if public.friends:
        yield _description("friends", "friends/", "".join(element("baseURL", each) for each in public.friends))
    if public.branding:
        icon = f"<collectionIcon>{element('url', public.branding)}</collectionIcon>"
        yield _description("branding", "branding/", icon)


def _description(name: str, namespace: str, inner: str, attributes: str = "") -> str:
    """A description element. Its namespace and schema are below the namespace of OAI-PMH."""
    namespace, schema = answers.OAI + namespace, f"{answers.OAI}{name}.xsd"
    return (
        f'<description><{name} xmlns="{namespace}" xmlns:xsi="{XSI}" xsi:schemaLocation="{namespace} {schema}"'
        f"{attributes}>{inner}</{name}></description>"
    )


def _list_metadata_formats(view: View, identifier: str) -> bytes:
    formats = view.formats
    if identifier:
        documents = _documents_of(view, identifier)
        types = {each.document_type for each in (*documents, *former_formats(view.session, documents))}
        formats = [each for each in formats if each == DUBLIN_CORE or each.document_type in types]
    inner = "".join(answers.metadata_format(each) for each in formats)
    return f"<ListMetadataFormats>{inner}</ListMetadataFormats>".encode()


def _get_record(view: View, request: Request) -> bytes:
    found: list[ProtocolError] = []
    of: Format | None = None
    documents: Sequence[CatalogueEntry] = ()
    try:
        of = format_of(view, request.prefix)
    except Refused as refused:
        found += refused.errors
    try:
        documents = _documents_of(view, request.identifier)
    except Refused as refused:
        found += refused.errors
    if of is None or not documents:
        raise Refused(*found)
    if (chosen := _chosen(documents, of) or _chosen(former_formats(view.session, documents), of)) is None:
        raise Refused(ProtocolError("cannotDisseminateFormat", f"The record does not have the format {of.prefix}."))
    return b"<GetRecord>" + record_of(view, chosen, of) + b"</GetRecord>"


def _documents_of(view: View, identifier: str) -> Sequence[CatalogueEntry]:
    """The documents of the item with this identifier. Raises Refused if there are none."""
    if found := view.documents_of(identifier):
        return found
    raise Refused(ProtocolError("idDoesNotExist", "No record has this identifier."))


def _chosen(documents: Sequence[CatalogueEntry], of: Format) -> CatalogueEntry | None:
    """The document of an item that stands for it in this format, as lists choose it; None: it lacks the format."""
    fitting = [each for each in documents if of == DUBLIN_CORE or each.document_type == of.document_type]
    return min(fitting, key=lambda each: (each.deleted, each.document_type != OAI_DC, each.number), default=None)


def _list_sets(view: View, request: Request, now: datetime) -> bytes:
    token = Token(request.verb) if request.token is None else continued(view, request, now)
    every = sorted(dict(_all_sets(view)).items())
    left = [each for each in every if each[0] > token.last]
    page, rest = left[: view.public.page_records], left[view.public.page_records :]
    inner = "".join(f"<set>{element('setSpec', spec)}{element('setName', name)}</set>" for spec, name in page).encode()
    if rest:
        following = replace(
            token, last=page[-1][0], cursor=token.cursor + len(page), size=len(every), issued=int(now.timestamp())
        )
        inner += answers.token(written(following, view.public.key), token.cursor, len(every), following.expires)
    elif token.cursor:
        inner += answers.token("", token.cursor, len(every), None)
    return b"<ListSets>" + inner + b"</ListSets>"


def _all_sets(view: View) -> Iterator[tuple[str, str]]:
    """All sets with their names for people; also the sets of sites that have no documents yet."""
    yield from sets.NAMES.items()
    sites = public_sites(view.session, view.hidden)
    for site in sites:
        yield sets.site_set(site.name), one_line(f"Site {site.name}")
    if view.hidden.withheld:
        for name in names_of(view.session, publication.retracted_sites(view.session)).values():
            yield sets.site_set(name), one_line(f"Site {name}")
    origins = {*publication.origins(view.session, view.hidden), *(site.origin for site in sites if site.origin)}
    for origin in origins:
        yield sets.origin_set(origin), one_line(f"Source repository {origin}")
    of_sites = ((site.origin, site.set_spec) for site in sites if site.origin and site.set_spec)
    for origin, source_set in {*publication.source_sets(view.session, view.hidden), *of_sites}:
        if origin in origins:
            parts = source_set.split(":")
            for number in range(1, len(parts) + 1):
                upper = ":".join(parts[:number])
                yield sets.origin_set(origin, upper), one_line(f"Set {upper} of the source repository {origin}")
    for each in view.formats:
        yield f"{sets.FORMAT}:{sets.escaped(each.set_name)}", f"Records in the format {each.set_name}"
