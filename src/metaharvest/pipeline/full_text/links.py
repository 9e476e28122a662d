"""The addresses in a record that may lead to its file, the best first.

The order: files that the record names as such; addresses in the identifiers of the record, its own host first;
relations and sources; a DOI only if there is nothing else. Addresses of people, of social networks and of licences are
never asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from metaharvest.model.outputs import Access, FileLink, FileRole, Output
from metaharvest.pipeline.full_text.anchors import has_other_name, name_of
from metaharvest.pipeline.full_text.candidates import Candidate, Expects, host_of, is_same_place, web_address
from metaharvest.pipeline.full_text.kinds import bare_type
from metaharvest.pipeline.full_text.patterns import file_of, guesses, has_pdf_name
from metaharvest.pipeline.full_text.words import words_of
from metaharvest.pipeline.letters import word_set

MOST = 5
"""The number of addresses of a record, or of a page, that are tried."""

_NEVER = word_set(
    "orcid.org pubmed.ncbi.nlm.nih.gov researcherid.com publons.com scopus.com webofscience.com facebook.com "
    "twitter.com x.com linkedin.com instagram.com youtube.com youtu.be vimeo.com t.me reddit.com pinterest.com "
    "mastodon.social bsky.app researchgate.net academia.edu mendeley.com scholar.google.com books.google.com "
    "wikipedia.org wikidata.org creativecommons.org rightsstatements.org opensource.org opendatacommons.org gnu.org "
    "ror.org isni.org viaf.org grid.ac worldcat.org amazon.com purl.org w3.org loc.gov geonames.org id.loc.gov "
    "vocabularies.coar-repositories.org vocab.getty.edu portal.issn.org crossref.org api.crossref.org "
    "data.crossref.org altmetric.com openarchives.org dx.doi.org doi.org"
)
"""Hosts that have no file of an output; hosts below them count too. A DOI is tried last, by itself."""

_SUPPLEMENT = "/downloadsuppfile/"
"""OJS 2 names the supplements of an article among its relations: https://github.com/pkp/pkp-lib/issues/5140."""

_OWN_LICENCE = "license.txt"
"""The licence that an author grants to a repository with DSpace: https://github.com/ufal/clarin-dspace/issues/1355."""

_NEVER_PATHS = ("www.ncbi.nlm.nih.gov/pubmed", "d-nb.info/gnd", "hdl.handle.net/api", "info:eu-repo")
_DOI_HOSTS = ("doi.org", "dx.doi.org")

_USEFUL_RELATIONS = word_set(
    "relation source hasversion isversionof isidenticalto isvariantformof isoriginalformof isnewversionof "
    "ispreviousversionof hasformat isformatof haspart ispublishedin isdescribedby"
)
_TEXT_TYPES = ("application/pdf", "application/xml", "text/xml", "text/html", "application/xhtml+xml", "text/plain")
_WITHOUT_TEXT = word_set(
    "c_ddb1 c_5ce6 c_c513 c_ecc8 c_18cc c_12cc c_12cd c_12ce c_8a7e c_18cd c_e9a0 c_f744 ACF7-8YT9 AM6W-6QAW "
    "H6QP-SC1X c_393c c_7ad9 NHD0-W6SY FXF3-D3G7 c_12cc"
)
"""Types of COAR whose files are no texts: datasets, software, images, sounds, films, maps, workflows, websites."""

_DATA_FORMATS = ("eml", "iso", "gmd")


def candidates(output: Output, own_hosts: Collection[str] = ()) -> tuple[Candidate, ...]:
    """The addresses to try, at most five, the best first. `own_hosts` are hosts of the repository of the record."""
    title = frozenset(words_of(output.title))
    # Records name all files, in any order: https://github.com/rero/sonar/issues/800.
    ranked = sorted(_all(output, own_hosts), key=lambda each: (each[0], has_other_name(each[1].url, title)))
    found: dict[str, Candidate] = {}
    for place, each in ranked:
        if place >= _DOI and found:
            break
        found.setdefault(each.url, each)
    licence = licence_of(output)
    first = list(found.values())[:MOST]
    return tuple(replace(each, start=each.url, licence=each.licence or licence) for each in first)


def is_without_text(output: Output) -> bool:
    """True if an output of this type has no full text: a dataset, software, an image. Its record need not name one."""
    kinds = [each.coar for each in output.types if each.coar]
    if kinds:
        return kinds[0] in _WITHOUT_TEXT
    return output.format.lower().startswith(_DATA_FORMATS)


def is_closed(output: Output, today: str) -> bool:
    """True if the record says that its file is not open, or not yet on this ISO date."""
    if output.access in (Access.RESTRICTED, Access.METADATA_ONLY):
        return True
    if output.embargo_until is not None and output.embargo_until > today:
        return True
    return output.access is Access.EMBARGOED and output.embargo_until is None


def licence_of(output: Output) -> str | None:
    """The licence of the output: the first one that SPDX has, else the first address or words of the record."""
    known = next((each.spdx for each in output.licences if each.spdx), None)
    return known or next((each.url or each.text for each in output.licences), None)


_FILE, _SURE, _DIRECT, _OWN, _OTHER, _RELATED, _ELSEWHERE, _DOI = range(8)


def _all(output: Output, own_hosts: Collection[str]) -> Iterator[tuple[int, Candidate]]:
    has_text = not is_without_text(output)
    for link in output.files:
        yield from _of_file(link, has_text=has_text)
    if not has_text:
        return
    for identifier in output.identifiers:
        for text in _addresses(identifier.scheme, identifier.value):
            yield from _ranked(text, "identifier", own_hosts, own=_OWN, other=_OTHER)
    for relation in output.relations:
        if relation.kind.lower() in _USEFUL_RELATIONS:
            for text in _addresses(relation.scheme, relation.value):
                yield from _ranked(text, "relation", own_hosts, own=_RELATED, other=_ELSEWHERE)
    yield from _dois(output)


def _of_file(link: FileLink, *, has_text: bool) -> Iterator[tuple[int, Candidate]]:
    """A link that the record names as a file."""
    url = web_address(link.url)
    if url is None or _is_never(url):
        return
    kind = bare_type(link.media_type or "")
    is_text = kind in _TEXT_TYPES or (not kind and has_pdf_name(url))
    if link.role is FileRole.LANDING_PAGE:
        if has_text:
            yield _OWN, Candidate(url, "landing page of the record", licence=link.licence)
        return
    may_be_text = link.role is FileRole.FULL_TEXT or (link.role is FileRole.UNKNOWN and has_text and not kind)
    if not is_text and not may_be_text:
        return
    expects = Expects.HTML_TEXT if "html" in kind else Expects.FILE
    place = _FILE if link.role is FileRole.FULL_TEXT and expects is not Expects.HTML_TEXT else _SURE
    yield place, Candidate(url, "file of the record", expects, media_type=kind or None, licence=link.licence)
    for software, guess in guesses(url, is_sure=True):
        yield _SURE, Candidate(guess, f"file of the record > {software}", Expects.FILE, licence=link.licence)


def _addresses(scheme: str, value: str) -> Iterator[str]:
    """The web addresses that an identifier stands for, without DOIs."""
    if scheme in ("url", "other") and value.lower().startswith(("http://", "https://")):
        # web_address() refuses what is no URL, and _is_never() a DOI.
        yield value
    elif scheme == "handle":
        yield value if value.startswith("http") else f"https://hdl.handle.net/{value}"
    elif scheme == "arxiv":
        yield f"https://arxiv.org/abs/{value.lower().removeprefix('arxiv:')}"
    elif scheme == "pmcid":
        number = value.upper().removeprefix("PMC")
        yield f"https://pmc.ncbi.nlm.nih.gov/articles/PMC{number}/"
    elif scheme == "urn" and value.lower().startswith("urn:nbn:"):
        yield f"https://nbn-resolving.org/{value}"


def _ranked(
    text: str, found_by: str, own_hosts: Collection[str], *, own: int, other: int
) -> Iterator[tuple[int, Candidate]]:
    url = web_address(text)
    if url is None or _is_never(url):
        return
    host = host_of(url)
    is_own = any(is_same_place(host, each) for each in own_hosts)
    page = own if is_own else other
    is_identifier = own == _OWN
    for software, guess in guesses(url, is_sure=True):
        yield (_SURE if is_identifier else page), Candidate(guess, f"{found_by} > {software}", Expects.FILE)
    if known := file_of(url):
        yield (_DIRECT if is_identifier else page), Candidate(known[1], f"{found_by} > {known[0]}", Expects.FILE)
    elif has_pdf_name(url):
        yield (_DIRECT if is_identifier else page), Candidate(url, found_by, Expects.FILE)
    else:
        yield page, Candidate(url, found_by)


def _dois(output: Output) -> Iterator[tuple[int, Candidate]]:
    for identifier in output.identifiers:
        url = identifier.value if identifier.scheme == "url" else f"https://doi.org/{identifier.value}"
        address = web_address(url) if identifier.scheme in ("doi", "url") else None
        if address and host_of(address) in _DOI_HOSTS:
            yield _DOI, Candidate(address, "DOI")


def _is_never(url: str) -> bool:
    host = host_of(url)
    if _SUPPLEMENT in url.lower() or name_of(url) == _OWN_LICENCE:
        return True
    if any(host == each or host.endswith(f".{each}") for each in _NEVER):
        return True
    bare = url.partition("://")[2].removeprefix("www.")
    return any(bare.startswith(each.removeprefix("www.")) for each in _NEVER_PATHS)
