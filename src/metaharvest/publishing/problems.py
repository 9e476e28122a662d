"""The findings about documents that cannot be listed, or have a doubtful entry, in words."""

from __future__ import annotations

import shlex
from pathlib import Path

from metaharvest.model import Finding, Level
from metaharvest.publishing.documents import SiteDocument, read_again
from metaharvest.publishing.folder import FileFinding
from metaharvest.sources.harvest_list.values import MAX_LONG
from metaharvest.text import one_line


def copy(document: SiteDocument, others: list[str], *, is_other_listed: bool) -> FileFinding:
    """For a file with the docid of other files, of which one is listed, or none."""
    shown = ", ".join(one_line(file, 100) for file in others[:3]) + (", …" if len(others) > 3 else "")
    message = f"This file has the same docid as {shown}: {document.docid}. None of them can be listed."
    remedy = "Delete the copies or leave them out with --exclude; or give each document an identifier of its own."
    if is_other_listed:
        message = f"This file has the docid of {shown}, which is listed: {document.docid}."
        remedy = "If it is a copy, delete it or leave it out with --exclude; if not, give it an identifier of its own."
    return _at_root(document, "build.copy", message, remedy)


def outdated(document: SiteDocument, newest: SiteDocument) -> FileFinding:
    """For an older revision of a document, which is left out."""
    message = f"This is an older revision of {newest.docid}, which is listed: {one_line(newest.file, 100)}."
    remedy = "Choose with --revisions newest or --revisions all which ones the list has; or remove the old file."
    return _at_root(document, "build.older-revision", message, remedy)


def changed_older(document: SiteDocument) -> FileFinding:
    """For an older revision whose content has changed since it was listed."""
    message = f"{document.docid} was listed with other content, and a docid never changes its content."
    remedy = "Put its old content back; publish the change as a new revision, higher than all others."
    return _at_root(document, "build.changed-revision", message, remedy)


def cannot_be_raised(document: SiteDocument) -> FileFinding:
    """For a document that has changed, and was listed with the largest possible revision."""
    needed = f"{document.document_id} has changed and needs a new revision"
    message = f"{needed}, but it was listed with {MAX_LONG} already, which is the largest there is."
    remedy = "Give the document an identifier of its own, with revision 1; until then the list keeps what it has of it."
    return _at_root(document, "build.last-revision", message, remedy)


def behind(document: SiteDocument, docid: str) -> FileFinding:
    """For a packageId whose revision differs from the list."""
    message = f"The packageId is '{one_line(document.package_id, 100)}', and the list calls the document {docid}."
    remedy = f'Write packageId="{docid}"; with --write, that is done when the list is built.'
    return _at_root(document, "build.package-id-behind", message, remedy, Level.WARNING)


def of_another(document: SiteDocument, docid: str, *, from_names: bool) -> FileFinding:
    """For a packageId of another document than the file name, or the person, says."""
    other_source = f"by its name the file is {docid}" if from_names else f"--docid calls the document {docid}"
    message = f"The packageId is '{one_line(document.package_id, 100)}', and {other_source}."
    other = "give the file another name" if from_names else "give the docid of the packageId with --docid"
    remedy = f'Write packageId="{docid}", or {other}.'
    return _at_root(document, "build.package-id-behind", message, remedy, Level.WARNING)


def not_written(document: SiteDocument, docid: str, reason: str) -> FileFinding:
    """For a packageId that could not be written."""
    message = f"The packageId could not be written: {reason}."
    return _at_root(document, "build.not-written", message, f'Write packageId="{docid}" yourself.')


def other_list(folder: Path, file: str) -> FileFinding:
    """For a harvest list with another name than the list that begins."""
    message = "This is a harvest list with another name: the list that begins here has no revisions from it."
    remedy = f"To go on with the old list, add this option: -o {shlex.quote(one_line(str(folder / file), 300))}."
    return FileFinding(file, Finding("build.list-instead", message, remedy, Level.WARNING))


def listed_again(file: str, docid: str, number: int) -> FileFinding:
    """For a docid that several entries of the list in this file name."""
    message = f"{number:,} entries name {docid}: a harvest uses the first one."
    remedy = "Delete the others, or give the newer document a higher revision."
    return FileFinding(file, Finding("list.duplicate", message, remedy, Level.WARNING, docid=docid))


def _at_root(document: SiteDocument, rule: str, message: str, remedy: str, level: Level = Level.ERROR) -> FileFinding:
    return FileFinding(document.file, read_again(document).finding(rule, message, remedy, level))
