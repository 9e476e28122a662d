"""The documents of all sites: found by any of their names, filtered, page by page."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlalchemy.orm import Session
from starlette.responses import Response

from metaharvest.errors import RequestError
from metaharvest.model import OutcomeKind
from metaharvest.model.kinds import Role
from metaharvest.model.values import frozen
from metaharvest.queries.document_search import (
    LEAST_LETTERS,
    RuleCursor,
    count_with_rule,
    documents_with_rule,
    search_documents,
)
from metaharvest.queries.documents import (
    DocumentCursor,
    DocumentFilter,
    DocumentRow,
    RowCount,
    document_count,
    document_page,
)
from metaharvest.queries.sites import last_names, site_names
from metaharvest.reports.phrasing import LABELS
from metaharvest.rules import RULES
from metaharvest.services.documents import record_ids
from metaharvest.services.tables import listed_documents_table
from metaharvest.text import one_line, whole_number
from metaharvest.web.console.visit import NotFound, Visit

_ON_A_PAGE = 50
_NO_SITE = "There is no site of this name, or you are not one of its contacts."
_NO_CURSOR = "The address of this page is not complete. Begin with the first page."
OUTCOMES = [("", "any"), *((kind.value, LABELS[kind]) for kind in OutcomeKind)]


@frozen
class _Page:
    """Documents of a page, `after` in the address of the `next` one, and the number of documents on all pages.

    `share`: the part of the ledger that was searched.
    """

    rows: Sequence[DocumentRow]
    next: str
    count: RowCount
    share: float = 1.0


def show(visit: Visit) -> Response:
    """The documents that are asked for, or all of them."""
    query = visit.query
    words = one_line(query.get("q", "")).strip()
    with visit.harvester.reading() as session:
        sites = _sites(visit, session)
        wanted = _filter(visit, sites, is_search=bool(words))
        after = query.get("after", "")
        page = _page(visit, session, words, wanted, sites)
    return visit.render(
        "documents.html",
        rows=page.rows,
        count=page.count,
        share=page.share,
        is_partial=page.next != "" and page.share < 1 and len(page.rows) < _ON_A_PAGE,
        first=_link(visit, words, wanted) if after else "",
        next=_link(visit, words, wanted, page.next) if page.next else "",
        csv="" if words else _link(visit, "", wanted, path="/console/documents.csv"),
        words=words,
        wanted=wanted,
        sites=sorted(sites.values(), key=str.casefold),
        outcomes=OUTCOMES,
        rules=[("", "any"), *((rule, rule) for rule in sorted(RULES))],
        is_contact=visit.visitor.role is Role.CONTACT,
        least=LEAST_LETTERS,
    )


def _page(visit: Visit, session: Session, words: str, wanted: DocumentFilter, sites: dict[int, str]) -> _Page:
    """The page of the documents with these words, with a rule, or of all that the filters let through."""
    after, today = visit.query.get("after", ""), visit.harvester.today()
    if visit.visitor.role is Role.CONTACT:
        wanted = replace(wanted, site_ids=set(sites))
    if words or (wanted.site is None and (wanted.outcome or wanted.missing) and not wanted.rule):
        begin = whole_number(after or "0")
        if begin is None:
            raise RequestError(_NO_CURSOR)
        page = search_documents(
            session,
            words,
            wanted,
            today,
            record_ids=record_ids(session, words) if words else (),
            limit=_ON_A_PAGE,
            after=begin,
        )
        return _Page(page.documents, str(page.next or ""), page.count, page.share)
    if wanted.rule:
        place = _rule_cursor(after)
        rows, later = documents_with_rule(session, wanted, today, limit=_ON_A_PAGE, after=place)
        is_all = place is None and later is None
        number = len({(each.site, each.document_id) for each in rows})
        count = RowCount(number) if is_all else count_with_rule(session, wanted, today)
        return _Page(rows, f"{later.site_id}.{later.document_id}" if later else "", count)
    cursor = _cursor(session, after, sites)
    found, following = document_page(session, wanted, today, _ON_A_PAGE, cursor)
    is_all = cursor is None and following is None
    count = RowCount(len(found)) if is_all else document_count(session, wanted, today)
    behind = f"{following.site_id}.{following.revision}.{following.document_id}" if following else ""
    return _Page(found, behind, count)


def send(visit: Visit) -> Response:
    """All documents that the filters let through, as a table."""
    with visit.harvester.reading() as session:
        wanted = _filter(visit, _sites(visit, session), is_search=False)
    chunks = listed_documents_table(visit.harvester, wanted)
    return visit.send_table(chunks, "documents.csv")


def _sites(visit: Visit, session: Session) -> dict[int, str]:
    """The sites whose documents the visitor may see, names by number."""
    registered = dict(site_names(session))
    if visit.visitor.role is Role.CONTACT:
        return {number: name for number, name in registered.items() if number in visit.visitor.sites}
    return registered


def _filter(visit: Visit, sites: dict[int, str], *, is_search: bool) -> DocumentFilter:
    """The filter in the address. A contact always sees one site, or searches the own ones."""
    query = visit.query
    site = query.get("site") or None
    if visit.visitor.role is Role.CONTACT:
        if site is not None and site not in sites.values():
            raise NotFound(_NO_SITE)
        if site is None and not is_search:
            site = min(sites.values(), key=str.casefold, default=None)
        if not sites:
            raise NotFound(_NO_SITE)
    rule, outcome = query.get("rule") or None, query.get("outcome") or None
    if rule is not None and rule not in RULES:
        raise RequestError(f"There is no rule '{one_line(rule)}'.")
    if outcome is not None and outcome not in list(OutcomeKind):
        raise RequestError(f"There is no outcome '{one_line(outcome)}'.")
    return DocumentFilter(
        site=site,
        failing=bool(query.get("failing")),
        missing=bool(query.get("missing")),
        rule=rule,
        outcome=OutcomeKind(outcome) if outcome else None,
    )


def _link(
    visit: Visit, words: str, wanted: DocumentFilter, after: object = None, path: str = "/console/documents"
) -> str:
    return visit.link(
        path,
        q=words,
        site=wanted.site,
        failing="yes" if wanted.failing else None,
        missing="yes" if wanted.missing else None,
        rule=wanted.rule,
        outcome=wanted.outcome.value if wanted.outcome else None,
        after=after,
    )


def _cursor(session: Session, text: str, sites: Collection[int]) -> DocumentCursor | None:
    """The cursor that a link has; None for the first page. Raises RequestError if it is none."""
    if not text:
        return None
    number, _, rest = text.partition(".")
    revision, _, document_id = rest.partition(".")
    site_id, at = whole_number(number), whole_number(revision)
    name = last_names(session).get(site_id) if site_id in sites and site_id is not None else None
    if name is None or site_id is None or at is None:
        raise RequestError(_NO_CURSOR)
    return DocumentCursor(name, site_id, document_id, at)


def _rule_cursor(text: str) -> RuleCursor | None:
    if not text:
        return None
    number, _, document_id = text.partition(".")
    site_id = whole_number(number)
    if site_id is None:
        raise RequestError(_NO_CURSOR)
    return RuleCursor(site_id, document_id)
