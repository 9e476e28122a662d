"""A page of a list: the records after a position, as many as a page may have, and the token for the next one.

A list ends at the time when its first page was made, if the request names no earlier end. A record that changes after
it gets a later datestamp: the harvester gets it with its next list, which begins at the responseDate of this one's
first page.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from metaharvest.catalogue import publication
from metaharvest.catalogue.change_feed import last_stamp
from metaharvest.catalogue.publication import PublishedDocument
from metaharvest.catalogue.selection import CatalogueEntry, Position, Selection
from metaharvest.model.namespaces import OAI_DC
from metaharvest.model.values import frozen
from metaharvest.queries.public_sites import numbers_of
from metaharvest.text import one_line
from metaharvest.transform.embedding import NotEmbeddable, embedded_document
from metaharvest.web.provider import answers, sets
from metaharvest.web.provider.about import about_containers
from metaharvest.web.provider.answers import Header
from metaharvest.web.provider.arguments import ProtocolError, Refused, Request
from metaharvest.web.provider.dublin_core import described_root, dublin_core_of
from metaharvest.web.provider.formats import DUBLIN_CORE, Format
from metaharvest.web.provider.tokens import Token, moment, read_token, written
from metaharvest.web.provider.view import View

log = logging.getLogger(__name__)

_NO_RECORDS = ProtocolError("noRecordsMatch", "No record has this format and this set, and a datestamp in this period.")
_NONE_LEFT = ProtocolError("noRecordsMatch", "No record of this list is left: it ends here.")
_NO_SET = ProtocolError("badResumptionToken", "The set of this list is no longer there.")


def list_page(view: View, request: Request, now: datetime) -> bytes:
    """A page of ListRecords or ListIdentifiers, as the content of an answer. Raises Refused."""
    list_ = _begun(view, request, now) if request.token is None else continued(view, request, now)
    of = format_of(view, list_.prefix)
    if (selection := _selection(view, list_, of)) is None:
        raise Refused(_NO_RECORDS if request.token is None else _NO_SET)
    if request.token is None:
        # If the request names no earlier end, all changes count, so that their number can be kept.
        ends_now = request.until is None or moment(list_.until) < request.until
        counted = replace(selection, until=None) if ends_now else selection
        list_ = replace(list_, size=view.public.sizes.size(view.session, counted))
    page = _page(view, list_, selection, of)
    if not list_.is_bounded and request.token is not None and not page.entries:
        # Everything that was left has changed meanwhile, and has moved behind the end of the list.
        page = _page(view, list_, replace(selection, until=None), of)
    if not page.written:
        # The schema has no list without a record. Harvesters take this error for the end of the list.
        raise Refused(_NO_RECORDS if request.token is None else _NONE_LEFT)
    start, end = f"<{request.verb}>".encode(), f"</{request.verb}>".encode()
    return b"".join((start, *page.written, _token(view, list_, page, now), end))


def record_of(view: View, entry: CatalogueEntry, of: Format) -> bytes:
    """One record, as an element. Raises Refused if it cannot be given out in this format."""
    written_records = list(_records(view, [publication.published_document(view.session, entry)], of))
    if not written_records:
        raise Refused(ProtocolError("cannotDisseminateFormat", "The document cannot stand inside of an answer."))
    return written_records[0]


def format_of(view: View, prefix: str) -> Format:
    """The format with this prefix. Raises Refused."""
    if prefix == DUBLIN_CORE.prefix:
        return DUBLIN_CORE
    found = next((each for each in view.formats if each.prefix == prefix), None)
    if found is None:
        raise Refused(ProtocolError("cannotDisseminateFormat", f"No record has the format {prefix}."))
    return found


@frozen
class _Page:
    entries: Sequence[CatalogueEntry]
    written: Sequence[bytes]
    is_last: bool


def _begun(view: View, request: Request, now: datetime) -> Token:
    end = max(now.replace(microsecond=0), last_stamp(view.session) or now)
    until = end if request.until is None else min(request.until, end)
    return Token(
        request.verb,
        request.prefix,
        request.set_spec or "",
        int(request.since.timestamp()) if request.since else 0,
        int(until.timestamp()),
        request.until is not None,
    )


def continued(view: View, request: Request, now: datetime) -> Token:
    """The place in a list that the token of a request names. Raises Refused."""
    token = read_token(request.token or "", view.public.key, request.verb, now)
    if isinstance(token, str):
        raise Refused(ProtocolError("badResumptionToken", token))
    return token


def _selection(view: View, list_: Token, of: Format) -> Selection | None:
    """The documents of a list; None if there can be none."""
    is_dublin_core = of == DUBLIN_CORE
    selection = Selection(
        document_types=() if is_dublin_core else (of.document_type,),
        since=moment(list_.since) if list_.since else None,
        until=moment(list_.until),
        hidden=view.hidden,
        one_of="item" if is_dublin_core else "format",
        preferred=OAI_DC if is_dublin_core else "",
    )
    return _in_set(view, selection, list_.set_spec) if list_.set_spec else selection


def _in_set(view: View, selection: Selection, set_spec: str) -> Selection | None:
    """The part of a selection that is in a set; None if there is no such set."""
    if (parts := sets.parts_of(set_spec)) is None:
        return None
    top, *names = parts
    if top == sets.ORIGIN:
        if not names:
            return replace(selection, has_origin=True)
        origin, *below = names
        if not publication.has_origin(view.session, origin):
            return None
        return replace(selection, origin=origin, set_spec=":".join(below) if below else None)
    if not names:
        return replace(selection, has_site=True) if top == sets.SITE else selection
    if len(names) > 1:
        return None
    if top == sets.SITE:
        number = numbers_of(view.session, names).get(names[0])
        return None if number is None else replace(selection, site_id=number)
    types = tuple(each.document_type for each in view.formats if each.set_name == names[0])
    if selection.document_types:
        types = tuple(each for each in types if each in selection.document_types)
    return replace(selection, document_types=types) if types else None


def _page(view: View, list_: Token, selection: Selection, of: Format) -> _Page:
    """The next page: at least one record, if there is one."""
    most = view.public.page_records
    is_of_headers = list_.verb == "ListIdentifiers"
    most_bytes = None if is_of_headers else view.public.page_bytes // most
    after = Position(moment(list_.last_at), list_.last_number) if list_.last_number else None
    while True:
        found = publication.published_documents(view.session, selection, most + 1, after, most_bytes)
        listed = _cut(found[:most], view.public.page_bytes)
        if is_of_headers:
            written_records = [answers.header(each) for each in view.headers(listed)]
        else:
            written_records = list(_records(view, listed, of))
        is_last = len(listed) == len(found)
        if written_records or is_last:
            return _Page([each.entry for each in listed], written_records, is_last)
        after = listed[-1].entry.position


def _cut(listed: Sequence[PublishedDocument], most_bytes: int) -> Sequence[PublishedDocument]:
    """The first of these documents that have room in a page; one in any case."""
    size = 0
    for number, each in enumerate(listed):
        size += each.revision.size if each.revision is not None and not each.entry.deleted else 0
        if size > most_bytes and number:
            return listed[:number]
    return listed


def _records(view: View, listed: Sequence[PublishedDocument], of: Format) -> Iterator[bytes]:
    """The records of these documents in this format. A document that cannot be embedded is left out, and logged."""
    live = (each.revision for each in listed if each.revision is not None and not each.entry.deleted)
    contents = publication.contents(view.session, live)
    for each, header in zip(listed, view.headers(listed), strict=True):
        entry, revision = each.entry, each.revision
        if entry.deleted:
            yield answers.record(header, b"", b"")
        # A document without content is being erased at this moment.
        elif revision is not None and revision.number in contents:
            is_made = of == DUBLIN_CORE and entry.document_type != OAI_DC
            content = contents[revision.number]
            try:
                metadata = _dublin_core(view, entry, header, content) if is_made else embedded_document(content)
                yield answers.record(header, metadata, about_containers(revision.provenance, altered=is_made))
            except NotEmbeddable as error:
                name, why = one_line(entry.document_id), one_line(str(error))
                log.warning("The document %s, revision %d, is not published: %s.", name, entry.revision, why)


def _dublin_core(view: View, entry: CatalogueEntry, header: Header, content: bytes) -> bytes:
    page_url = view.public.page_url(entry.document_id)
    root = described_root(content)
    return dublin_core_of(root, entry.document_type, entry.title, header.identifier, page_url)


def _token(view: View, list_: Token, page: _Page, now: datetime) -> bytes:
    """The token for the next page; an empty one ends a list that was cut, and a whole list has none.

    The empty one has the number of records that came: harvesters take a difference for a loss, but records that have
    changed meanwhile come with the next list.
    """
    next_cursor = list_.cursor + len(page.written)
    if page.is_last:
        return answers.token("", list_.cursor, next_cursor, None) if list_.cursor else b""
    last = page.entries[-1]
    following = replace(
        list_,
        last_at=int(last.changed_at.timestamp()),
        last_number=last.number,
        cursor=next_cursor,
        issued=int(now.astimezone(UTC).timestamp()),
    )
    return answers.token(written(following, view.public.key), list_.cursor, list_.size, following.expires)
