"""Checks that a document matches its entry in the list: EML, of the listed version, with the docid as its packageId.

The settings have the level of a finding about another packageId. The packageId of a document without a list is checked
by itself.
"""

from __future__ import annotations

import difflib
import re

from lxml import etree

from metaharvest.model import Level, ListedDocument
from metaharvest.model.actions import Remedy, todo
from metaharvest.text import one_line
from metaharvest.validation.formats import format_of
from metaharvest.validation.places import ElementFinding
from metaharvest.validation.schemas import VERSIONS, EmlVersion

_NEWEST = list(VERSIONS.values())[-1]
_NAMESPACES = {version.number: version.namespace for version in VERSIONS.values()}
"""The namespace of each version of EML, by its number."""

_NUMBER = re.compile(r"eml-(\d{1,9}(?:\.\d{1,9}){0,2})")
_SCOPED = re.compile(r"(.+)\.(0|[1-9][0-9]{0,18})\.(0|[1-9][0-9]{0,18})", re.DOTALL)

_NEARLY = re.compile(r"(.{1,200}?)\.([0-9]{1,18})(?:\.([0-9]{1,18}))?", re.DOTALL)
_SCOPE = re.compile(r"[A-Za-z0-9_.\-]+")
_ENDS_IN_NUMBER = re.compile(r"\.-?[0-9]+$")
_OTHER_KIND = re.compile(r"(?:doi:|https?:|ftp:|urn:|10\.[0-9]{4}|[0-9a-f]{8}-[0-9a-f]{4}-)", re.IGNORECASE)
"""The beginnings of identifiers of other kinds: DOIs, URLs, URNs, UUIDs."""


def version_of(root: etree._Element) -> EmlVersion | None:
    """The EML version of a document's root element; None if it is not EML."""
    name = etree.QName(root)
    return VERSIONS.get(name.namespace or "") if name.localname == "eml" else None


def not_eml_finding(root: etree._Element, document_type: str) -> ElementFinding:
    """The reason why this is not the root element of an EML document, and the right root element."""
    name = etree.QName(root)
    namespace = name.namespace or ""
    where = f"in the namespace {one_line(namespace, 200)}" if namespace else "in no namespace"
    message = f"The root element is {one_line(name.localname, 100)} {where}; that is not EML in a version known here."
    if document_type.strip() and document_type.strip() not in VERSIONS:
        listed = one_line(document_type, 200)
        message += f" The harvest list gives its type as '{listed}', which this harvester does not accept either."
    remedy = _right_root(name.localname, namespace)
    if (other := format_of(root)) is not None:
        remedy = (
            f"This seems to be a document of {other.name}. Put an EML document there, or ask the administrator "
            "whether documents of this type are accepted, too."
        )
    return ElementFinding("eml.not-eml", message, remedy, root)


def meant_namespace(root: etree._Element) -> str:
    """The EML namespace that an element `eml` in another namespace should have; empty if it is unclear."""
    name = etree.QName(root)
    namespace = name.namespace or ""
    if name.localname != "eml" or not namespace or namespace in VERSIONS:
        return ""
    if number := _NUMBER.search(namespace):
        return _NAMESPACES.get(number[1]) or _NAMESPACES.get(_longer(number[1]), "")
    return _similar(namespace)


def _longer(number: str) -> str:
    """The newest version of EML whose number begins with this one; empty if there is none."""
    return next((each for each in reversed(_NAMESPACES) if each.startswith(f"{number}.")), "")


def _similar(namespace: str) -> str:
    """The namespace of EML that is similar to this one; empty if there is none."""
    return next(iter(difflib.get_close_matches(namespace[:200], VERSIONS, 1, 0.8)), "")


def _right_root(local: str, namespace: str) -> str:
    if local == "harvestList":
        return "This is a harvest list. Give the URL of the document itself in the list."
    if namespace in VERSIONS:
        return f'Let the root element be eml:eml, with xmlns:eml="{namespace}".'
    if found := _NUMBER.search(namespace):
        number = found[1]
        if number in _NAMESPACES:
            return f'The namespace of EML {number} is another: write xmlns:eml="{_NAMESPACES[number]}".'
        if longer := _longer(number):
            return f'Did you mean EML {longer}? It is declared as xmlns:eml="{_NAMESPACES[longer]}".'
        known = f"EML {number} is not known here; the newest known version is {_NEWEST.number}."
        return f'{known} Its documents have xmlns:eml="{_NEWEST.namespace}" in their root element.'
    if similar := _similar(namespace):
        return f"Did you mean the namespace {similar}?"
    if local == "eml":
        return f'Declare the namespace in the root element: <eml:eml xmlns:eml="{_NEWEST.namespace}" …>.'
    return "Put the EML document itself there, or its URL into the list. If there is none, remove the list entry."


def nearest_docid(package_id: str) -> str:
    """The intended docid of a packageId such as `alder.10` or `alder.010.1`; empty if unclear."""
    parts = _NEARLY.fullmatch(package_id)
    if parts is None or _OTHER_KIND.match(package_id):
        return ""
    scope = re.sub(r"\s+", "-", parts[1])
    if not _SCOPE.fullmatch(scope) or (parts[3] is None and _ENDS_IN_NUMBER.search(scope)):
        return ""
    docid = f"{scope}.{int(parts[2])}.{int(parts[3] or 1)}"
    return docid if docid != package_id and _SCOPED.fullmatch(docid) else ""


def how_to_write_docid(package_id: str) -> str:
    """The remedy for a packageId that is no docid."""
    if meant := nearest_docid(package_id):
        return f'Write packageId="{meant}": scope, number and revision.'
    how = "Write the scope of your site, a number and a revision, with points between them, as in your-site.12.1."
    if _OTHER_KIND.match(package_id):
        return f"{how} Where the other identifier is to stay, leave it, and let the list give the document a docid."
    return how


def _own_package_id_findings(
    root: etree._Element, found: str, document: ListedDocument, level: Level
) -> list[ElementFinding]:
    """A finding if a document without a list has a packageId that is no docid, or that another document has too."""
    if (refusal := document.refusal) is not None:
        return [ElementFinding(refusal.rule, refusal.message, refusal.remedy, root, refusal.level)]
    if _SCOPED.fullmatch(found) is None or nearest_docid(found):
        shown = one_line(found, 200)
        message = f"The packageId is '{shown}'; a harvest list names each document by scope.identifier.revision."
        remedy = how_to_write_docid(found)
        return [ElementFinding("eml.package-id", message, remedy, root, level)]
    if document.twin:
        message = f"The packageId is '{one_line(found, 200)}', as it is in {document.twin}."
        remedy = (
            "Give each document an identifier of its own, or the newer one a higher revision: a list can name only one."
        )
        return [ElementFinding("eml.package-id-repeated", message, remedy, root, Level.WARNING)]
    return []


def listed_type_findings(root: etree._Element, version: EmlVersion, document: ListedDocument) -> list[ElementFinding]:
    """A warning if the list's documentType is not the namespace of the document."""
    listed = document.document_type.strip()
    if listed == version.namespace or document.by_itself or document.origin is not None:
        return []
    known = VERSIONS.get(listed)
    shown = f"EML {known.number}" if known else f"'{one_line(listed, 200)}'" if listed else "nothing"
    message = f"The harvest list gives the document's type as {shown}; it is EML {version.number}."
    remedy = f"Write {version.namespace} as documentType in the harvest list."
    return [ElementFinding("eml.document-type", message, remedy, root, Level.WARNING)]


def package_id_findings(root: etree._Element, document: ListedDocument, level: Level) -> list[ElementFinding]:
    """A finding of this `level` if the packageId is not the docid in the list; records of a repository have none."""
    if document.origin is not None:
        return []
    found = (root.get("packageId") or "").strip()
    if document.by_itself:
        return _own_package_id_findings(root, found, document, level)
    docid = document.docid
    if found == docid:
        return []
    shown = one_line(found, 200)
    message = f"The packageId is '{shown}', and the harvest list calls the document {docid}."
    remedy = f'Write packageId="{docid}", or correct the docid in the harvest list.'
    scoped = _SCOPED.fullmatch(found)
    if scoped is None and _OTHER_KIND.match(found):
        message += " It is of another kind (such as a DOI or URN) than scope.identifier.revision."
        remedy = f'Where the other identifier is meant to stay, this may be left; otherwise write packageId="{docid}".'
    elif scoped is None:
        message += " It is no docid: scope.identifier.revision."
        remedy = f'Write packageId="{docid}".'
    elif f"{scoped[1]}.{scoped[2]}" == document.document_id:
        message += " Only the revision differs."
        remedy = _about_revision(int(scoped[3]), document)
    elif found.lower() == docid.lower():
        message += " Only capital and small letters differ."
    return [ElementFinding("eml.package-id-mismatch", message, remedy, root, level)]


def _about_revision(own: int, document: ListedDocument) -> str:
    """The remedy for a packageId with another revision than the list: a revision only rises."""
    if own > document.revision:
        bump = todo("lists.bump", list=document.list_file or None, docid=document.document_id, revision=own)
        return Remedy(
            "The document is newer than the list: raise the revision in the list to {}, with {}. "
            "If the list has an entry of that revision already, delete this one.",
            own,
            bump,
        )
    build = todo("lists.build")
    return Remedy(
        'Write packageId="{}". {} does so whenever a document has changed. '
        "Once the document is harvested, write it with the next revision.",
        document.docid,
        build,
    )
