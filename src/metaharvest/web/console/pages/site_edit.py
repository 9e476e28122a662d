"""The form of a site's registration: the values before and after, then the change."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy.orm import Session
from starlette.responses import Response

from metaharvest.errors import MetaharvestError, RequestError, SameSource
from metaharvest.queries.sites import RegisteredSite, registered_site
from metaharvest.services import sites
from metaharvest.services.sites import Edited
from metaharvest.web.console.pages.site_form import (
    FORMER,
    changed_texts,
    fields_of,
    require_unchanged,
    texts_of,
    values_from,
)
from metaharvest.web.console.visit import Visit


def show(visit: Visit) -> Response:
    """The form with the values of now."""
    site = _site(visit)
    return _form(visit, site, texts_of(site))


def change(visit: Visit) -> Response:
    """The values before and after; confirmed, the change."""
    site = _site(visit)
    changed = changed_texts(visit.form, site)
    is_confirmed = visit.form.is_set("confirmed")
    if not changed:
        if is_confirmed:
            return visit.redirect("/console/sites", visit.site.name, notice="The site has these values already.")
        visit.error = RequestError("Nothing was changed: the site has these values already.")
        return _form(visit, site, texts_of(site), 200)
    edited: Edited | None = None

    def require_own_change(session: Session, _site: object) -> None:
        require_unchanged(visit.form, changed, registered_site(session, visit.site.name, visit.harvester.today()))

    with visit.mistakes(MetaharvestError):
        values = values_from(changed, site, visit.harvester.today())
        allow_duplicate = visit.form.is_set("allow_duplicate")
        [edited] = sites.edit(
            visit.harvester,
            [visit.site.name],
            values,
            allow_duplicate=allow_duplicate,
            dry_run=not is_confirmed,
            also=require_own_change,
        )
    if edited is None:
        return _form(visit, site, {**texts_of(site), **changed})
    if is_confirmed:
        return visit.redirect("/console/sites", edited.site.name, notice=f"{edited.site.name} was changed.")
    return _preview(visit, edited, changed, site)


def _preview(visit: Visit, edited: Edited, changed: dict[str, str], site: RegisteredSite) -> Response:
    answer = sites.ask_again(visit.harvester, edited)
    problems = [each.with_remedy for each in answer.problems] if answer else []
    shown = [(each.name, each.before, each.after) for each in edited.changes]
    texts = {**changed, **_former(site, changed)}
    return visit.render("site_change.html", edited=edited, shown=shown, texts=texts, problems=problems)


def _form(visit: Visit, site: RegisteredSite, texts: dict[str, str], status: int | None = None) -> Response:
    """The form. If another site has the source, the person may allow that."""
    parts: dict[str, list[object]] = {}
    for field in fields_of(site):
        parts.setdefault(field.part, []).append(field)
    is_taken = isinstance(visit.error, SameSource)
    former = _former(site, [field.name for field in fields_of(site)])
    return visit.render("site_edit.html", status, site=site, parts=parts, texts=texts, former=former, is_taken=is_taken)


def _former(site: RegisteredSite, names: Iterable[str]) -> dict[str, str]:
    """The hidden fields with the present texts of these fields."""
    now = texts_of(site)
    return {FORMER + name: now[name] for name in names}


def _site(visit: Visit) -> RegisteredSite:
    with visit.harvester.reading() as session:
        return registered_site(session, visit.site.name, visit.harvester.today())
