"""Adds sites: an address is asked first; or source repositories are chosen from a registry."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from metaharvest.errors import MetaharvestError, RequestError
from metaharvest.model import Notify, Unit
from metaharvest.services import sites, source_preview, source_repositories
from metaharvest.services.sites import SiteValues
from metaharvest.services.source_preview import KINDS, OAI, SourcePreview
from metaharvest.services.source_repositories import NamedRepositories
from metaharvest.text import counted
from metaharvest.web.console.pages.site_form import day_in, split_parts, value_of
from metaharvest.web.console.visit import Visit

FILE_BYTES = 10_000_000
MOST_SHOWN = 1000


def show(visit: Visit) -> Response:
    """The form for an address, and the form for a registry."""
    return visit.render("add_site.html", kinds=KINDS)


def ask(visit: Visit) -> Response:
    """Ask the source, and propose its registration."""
    form = visit.form
    with visit.mistakes(MetaharvestError):
        source = source_preview.look_at(visit.harvester, form.text("url"), form.text("kind") or KINDS[0])
        return _proposal(visit, source, _proposed(visit, source))
    return show(visit)


def add(visit: Visit) -> Response:
    """Register the site."""
    form = visit.form
    with visit.mistakes(MetaharvestError):
        done = sites.register(
            visit.harvester,
            _values(visit),
            [] if form.text("kind") != OAI else form.texts("set"),
            unasked=form.is_set("unasked"),
            allow_duplicate=form.is_set("allow_duplicate"),
        )
        if len(done.sites) == 1:
            site = done.sites[0]
            notice = f"Registered {site.name}. Its next harvest is due {site.next_harvest or 'in the next run'}."
            return visit.redirect("/console/sites", site.name, notice=notice)
        return visit.redirect("/console/sites", notice=f"Registered {len(done.sites)} sites, one for each set.")
    texts = {name: form.text(name) for name in _proposed(visit, SourcePreview("", ""))}
    return _proposal(visit, SourcePreview(form.text("url"), form.text("kind"), formats=(), sets=()), texts)


def read_registry(visit: Visit) -> Response:
    """The source repositories that another one names, or that a file names, to be chosen."""
    files = visit.form.files("file")
    with visit.mistakes(MetaharvestError):
        if files:
            named = source_repositories.usable(source_repositories.base_urls_of(files[0].content))
        else:
            named = source_preview.friends_of(visit.harvester, visit.form.text("friends_of"))
        if not named.base_urls and not named.left_out:
            raise RequestError("No repository is named there.")
        return _registry(visit, named)
    return show(visit)


def add_several(visit: Visit) -> Response:
    """Register the chosen source repositories, switched off."""
    form = visit.form
    named = source_repositories.usable(form.texts("url"))
    contacts = ", ".join(split_parts(form.text("contacts")))
    with visit.mistakes(MetaharvestError):
        if not named.base_urls:
            raise RequestError("No repository is chosen: tick the boxes of some of them.")
        if not contacts:
            raise RequestError("Give the address of the person who gets the reports.")
        added = source_repositories.register_repositories(
            visit.harvester, named.base_urls, contacts, form.text("prefix") or "oai_dc"
        )
        number = counted(len(added), "site is", "sites are")
        notice = f"{number} registered, switched off. Rehearse them, then switch them on."
        return visit.redirect("/console/sites", state="off", notice=notice)
    return _registry(visit, NamedRepositories(tuple(form.texts("shown")) or named.base_urls, ()))


def _proposal(visit: Visit, source: SourcePreview, texts: dict[str, str]) -> Response:
    return visit.render(
        "add_proposal.html",
        source=source,
        texts=texts,
        chosen_sets=visit.form.texts("set"),
        units=list(map(str, Unit)),
        occasions=list(map(str, Notify)),
    )


def _registry(visit: Visit, named: NamedRepositories) -> Response:
    shown = named.base_urls[:MOST_SHOWN]
    return visit.render(
        "add_registry.html",
        base_urls=shown,
        number=len(named.base_urls),
        left_out=named.left_out,
        registered=source_repositories.registered_as(visit.harvester, shown),
        chosen=visit.form.texts("url"),
        address=visit.visitor.address,
    )


def _proposed(visit: Visit, source: SourcePreview) -> dict[str, str]:
    """The texts of the form for a new source."""
    prefixes = [each.prefix for each in source.formats]
    return {
        "name": source.name,
        "prefix": "oai_dc" if "oai_dc" in prefixes or not prefixes else prefixes[0],
        "contacts": ", ".join(source.contacts),
        "every": "1",
        "unit": str(Unit.DAYS),
        "next_harvest": visit.harvester.today().isoformat(),
        "notify": str(Notify.ALWAYS),
        "groups": "",
        "full_every": "30" if source.needs_full_lists else "",
        "enabled": "yes",
    }


def _values(visit: Visit) -> SiteValues:
    """The values of the form. Raises RequestError."""
    form = visit.form
    url, is_repository = form.text("url"), form.text("kind") == OAI
    values: dict[str, object] = {
        "name": form.text("name"),
        "base_url" if is_repository else "list_url": url,
        "every": value_of("every", form.text("every") or "1"),
        "unit": value_of("unit", form.text("unit")),
        "notify": value_of("notify", form.text("notify")),
        "enabled": form.text("enabled") != "no",
        "contacts": value_of("contacts", form.text("contacts")),
    }
    if groups := form.text("groups"):
        values["add_groups"] = value_of("groups", groups)
    if day := form.text("next_harvest"):
        today_or_later = partial(day_in, today=visit.harvester.today())
        values["next_harvest"] = value_of("next_harvest", day, "First harvest", today_or_later)
    if is_repository:
        values["prefix"] = form.text("prefix") or None
        if full := form.text("full_every"):
            values["full_every"] = value_of("full_every", full, "Full list every")
    return SiteValues(**values)  # type: ignore[arg-type]
