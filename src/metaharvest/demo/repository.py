"""Answers OAI-PMH requests from a static repository: one XML file with all records (the static-repository format).

The sample network serves one in this way. The repository has a clock of its own: its night N is the Nth of May 2012, at
03:00. Harvests follow that clock, not the harvester's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from lxml import etree

_OAI = "http://www.openarchives.org/OAI/2.0/"
_STATIC = "http://www.openarchives.org/OAI/2.0/static-repository"
_NAMES = {"o": _OAI, "s": _STATIC}
_UNPREFIXED: Any = {None: _OAI}
_PAGE = 5
"""Records of a page: few, so that there are several pages."""


class _Refused(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def answer(repository: bytes, arguments: Mapping[str, str], base_url: str, night: int) -> bytes:
    """The response to a request with these arguments (OAI-PMH 2.0), from the file `repository`."""
    tree = etree.fromstring(repository)
    verb = arguments.get("verb", "")
    try:
        if verb not in _VERBS:
            raise _Refused("badVerb", f"There is no verb '{verb}'.")
        body = _element(verb, *_VERBS[verb](tree, arguments))
    except _Refused as error:
        body = _element("error", text=str(error), code=error.code)
    request = _element("request", text=base_url)
    response = _element("OAI-PMH", _element("responseDate", text=f"2012-05-{night:02}T03:00:00Z"), request, body)
    for element in response.iter(f"{{{_OAI}}}baseURL"):
        element.text = base_url
    return etree.tostring(response, encoding="UTF-8", xml_declaration=True)


def _element(name: str, *children: etree._Element, text: str = "", **attributes: str) -> etree._Element:
    element = etree.Element(f"{{{_OAI}}}{name}", attributes, nsmap=_UNPREFIXED)
    element.text = text
    element.extend(children)
    return element


def _description(tree: etree._Element, arguments: Mapping[str, str]) -> Iterator[etree._Element]:
    yield from map(deepcopy, tree.iterfind(f"s:{arguments['verb']}/*", _NAMES))


def _sets(_tree: etree._Element, _arguments: Mapping[str, str]) -> Iterator[etree._Element]:
    raise _Refused("noSetHierarchy", "This repository has no sets.")


def _record(tree: etree._Element, arguments: Mapping[str, str]) -> Iterator[etree._Element]:
    for record in _records(tree, arguments.get("metadataPrefix", "")):
        if _text(record, "identifier") == arguments.get("identifier"):
            yield deepcopy(record)
            return
    raise _Refused("idDoesNotExist", "There is no such record.")


def _list(tree: etree._Element, arguments: Mapping[str, str]) -> Iterator[etree._Element]:
    """A page of records, or of headers, and the token for the next one: `PREFIX,FROM,UNTIL,POSITION`."""
    token = arguments.get("resumptionToken")
    try:
        prefix, begin, until, position = token.split(",") if token is not None else (
            arguments.get("metadataPrefix", ""), arguments.get("from", ""), arguments.get("until", ""), "0",
        )  # fmt: skip
        first = int(position)
    except ValueError:
        raise _Refused("badResumptionToken", "This is no token of this repository.") from None
    if "set" in arguments:
        raise _Refused("noSetHierarchy", "This repository has no sets.")
    found = [each for each in _records(tree, prefix) if begin <= _text(each, "datestamp") <= (until or "9")]
    page = found[first : first + _PAGE]
    if not page:
        raise _Refused("noRecordsMatch", "Nothing has changed.")
    for record in page:
        header = record.find("o:header", _NAMES)
        wanted = record if arguments["verb"] == "ListRecords" or header is None else header
        yield deepcopy(wanted)
    if len(found) > _PAGE:
        is_last = first + _PAGE >= len(found)
        following = "" if is_last else f"{prefix},{begin},{until},{first + _PAGE}"
        yield _element("resumptionToken", text=following, completeListSize=str(len(found)), cursor=str(first))


_VERBS = {
    "Identify": _description,
    "ListMetadataFormats": _description,
    "ListSets": _sets,
    "ListIdentifiers": _list,
    "ListRecords": _list,
    "GetRecord": _record,
}


def _records(tree: etree._Element, prefix: str) -> list[etree._Element]:
    for records in tree.iterfind("s:ListRecords", _NAMES):
        if records.get("metadataPrefix") == prefix:
            return records.findall("o:record", _NAMES)
    raise _Refused("cannotDisseminateFormat", f"There is no format '{prefix}'.")


def _text(record: etree._Element, name: str) -> str:
    return record.findtext(f"o:header/o:{name}", "", _NAMES)
