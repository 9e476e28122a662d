"""The list of sites: filters, orders, pages; changes of many sites at once; the file of all sites."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

from starlette.responses import Response

from metaharvest.errors import MetaharvestError, RequestError, ScheduleError, TransformError
from metaharvest.model import Notify, Unit
from metaharvest.model.kinds import Role
from metaharvest.queries.sites import SiteOrder, SiteSelection, chosen_sites, site_page
from metaharvest.services import schedule_files, sites
from metaharvest.services.sites import Edited, SiteValues
from metaharvest.text import counted, shown_url
from metaharvest.web.console.pages.site_form import parsed_groups, shown_value, value_of
from metaharvest.web.console.visit import Visit

_FILE_BYTES = 20_000_000
"""The largest file of sites."""

IMPORT_BYTES = _FILE_BYTES * 3 // 2
"""The largest form with a file of sites: the form that confirms the import has the file in Base64."""

FORM_BYTES = 1_000_000
MOST_AT_ONCE = 1000
_TOGETHER = 50
"""Sites that are changed in one transaction: a run does not wait long for it."""

STATES = ("off", "due", "waiting", "overdue", "broken")
_CHANGES = ("add_groups", "remove_groups", "every", "unit", "notify", "enabled")
_FILTERS = ("state", "kind", "group", "overdue", "failing", "text", "order")


def show(visit: Visit) -> Response:
    """The sites of a selection."""
    given = visit.query
    wanted, after = _selection(given), given.get("after", "")
    with visit.harvester.reading() as session:
        page = site_page(session, wanted, visit.harvester.today(), after=after)
    filters = {name: given.get(name, "") for name in _FILTERS}
    return visit.render(
        "sites.html",
        page=page,
        filters=filters,
        is_filtered=any(value for name, value in filters.items() if name != "order"),
        after=after,
        states=STATES,
        may_change=visit.visitor.role >= Role.STEWARD,
        units=list(map(str, Unit)),
        occasions=list(map(str, Notify)),
    )


def change_several(visit: Visit) -> Response:
    """Change many sites: first the values before and after, then, confirmed, the change."""
    form = visit.form
    names = _chosen(visit)
    given = {name: form.text(name) for name in _CHANGES}
    if not names:
        raise RequestError("No site is chosen: tick the boxes of some sites, or the box for all of them.")
    if len(names) > MOST_AT_ONCE:
        raise RequestError(f"{len(names):,} sites are chosen; at most {MOST_AT_ONCE:,} can be changed at once.")
    if not any(value for name, value in given.items() if name != "unit"):
        raise RequestError("No change is chosen: fill in at least one field under the table.")
    values = _several_values(given)
    is_confirmed = form.is_set("confirmed")
    edits = list[Edited]()
    for start in range(0, len(names), _TOGETHER):
        some = names[start : start + _TOGETHER]
        try:
            edits += sites.edit(visit.harvester, some, values, dry_run=not is_confirmed)
        except (RequestError, ScheduleError, TransformError) as error:
            if not is_confirmed or not edits:
                raise
            done = counted(len(_changed(edits)), "site was", "sites were")
            raise RequestError(f"{done} changed, and the others were not: {error.in_form or error}") from error
    changed = _changed(edits)
    if is_confirmed:
        return visit.go_back(form.text("back"), f"{counted(len(changed), 'site was', 'sites were')} changed.")
    return visit.render(
        "sites_change.html", changed=changed, unchanged=len(edits) - len(changed), values=given, back=form.text("back")
    )


def _changed(edits: Sequence[Edited]) -> Sequence[Edited]:
    return [edited for edited in edits if edited.changes]


def export(visit: Visit) -> Response:
    """All sites as a file, without logins."""
    is_json = visit.query.get("format") == "json"
    content = schedule_files.export_file(visit.harvester, as_csv=not is_json).content
    today = visit.harvester.today()
    if is_json:
        return visit.download(content, f"sites-{today}.json", "application/json")
    return visit.download(content, f"sites-{today}.csv", "text/csv; charset=utf-8")


def show_import(visit: Visit) -> Response:
    """The form for a file of sites."""
    return visit.render("sites_import.html", imported=None, content="")


def import_file(visit: Visit) -> Response:
    """Import a file of sites: first the values before and after, then, confirmed, the import."""
    form = visit.form
    is_confirmed = form.is_set("confirmed")
    with visit.mistakes(MetaharvestError):
        content = _stored(form.text("content")) if is_confirmed else _uploaded(visit)
        done = schedule_files.import_file(visit.harvester, content, dry_run=not is_confirmed)
        if is_confirmed:
            added, changed = (sum(each.verdict == verdict for each in done.changes) for verdict in ("added", "changed"))
            notice = f"Imported: {added:,} new, {changed:,} changed, {len(done.changes) - added - changed:,} unchanged."
            return visit.redirect("/console/sites", notice=notice)
        text = base64.b64encode(content).decode()
        return visit.render("sites_import.html", imported=done, content=text, shown=_shown)
    return show_import(visit)


def _selection(given: Mapping[str, str]) -> SiteSelection:
    """The selection that the arguments of an address, or the fields of a form, name."""
    order = given.get("order", "")
    return SiteSelection(
        state=given.get("state") or None,
        kind=given.get("kind") or None,
        group=given.get("group") or None,
        overdue=bool(given.get("overdue")),
        failing=bool(given.get("failing")),
        text=given.get("text", "")[:200],
        order=SiteOrder(order) if order in list(SiteOrder) else SiteOrder.NAME,
    )


def _chosen(visit: Visit) -> Sequence[str]:
    """The sites whose boxes are ticked, or all sites of the selection."""
    form = visit.form
    if not form.is_set("all"):
        return form.texts("name")
    given = {name: form.text(f"filter_{name}") for name in _FILTERS}
    with visit.harvester.reading() as session:
        return [site.site for site in chosen_sites(session, _selection(given), visit.harvester.today())]


def _several_values(given: dict[str, str]) -> SiteValues:
    """Raises RequestError."""
    values: dict[str, object] = {}
    for name in ("add_groups", "remove_groups"):
        if given[name]:
            values[name] = parsed_groups(given[name])
    if given["every"]:
        values["every"] = value_of("every", given["every"], "Every")
        values["unit"] = value_of("unit", given["unit"])
    if given["notify"]:
        values["notify"] = value_of("notify", given["notify"])
    if given["enabled"]:
        values["enabled"] = given["enabled"] == "on"
    return SiteValues(**values)  # type: ignore[arg-type]


def _uploaded(visit: Visit) -> bytes:
    files = visit.form.files("file")
    if not files or not files[0].content:
        raise RequestError("Choose a file: one that was exported here, or by the command line.")
    if len(files[0].content) > _FILE_BYTES:
        raise RequestError(f"The file is too large: it may have at most {_FILE_BYTES // 1_000_000} MB.")
    return files[0].content


def _stored(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise RequestError("This form is not complete. Choose the file again.") from None


def _shown(name: str, value: object) -> str:
    """A value of a file for people, without logins."""
    if name == "list_url" and value:
        return shown_url(str(value))
    if isinstance(value, dict):
        return ", ".join(
            f"{key}: {_shown(key, each)}" for key, each in value.items() if each not in (None, "", [], False)
        )
    return shown_value(value) or "none"
