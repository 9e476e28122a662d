"""Decisions about sites, as the audit has them: the registered values before and after, without logins."""

from __future__ import annotations

from metaharvest.accounts.audit import Decision, Values, changed
from metaharvest.config.secret_references import NOT_SHOWN
from metaharvest.model import Site
from metaharvest.sites.rows import BrokenSite
from metaharvest.sites.site_files import as_mapping, has_login
from metaharvest.text import shown_url

_FLAGS = ("enabled", "public")


def registration(site: Site) -> Decision:
    """A new site."""
    return about(site, "sites.add", after=values_of(site))


def edition(former: Site | BrokenSite, site: Site, action: str = "sites.edit") -> Decision:
    """The values of a site that have changed."""
    before, after = changed(values_of(former), values_of(site))
    if _has_other_login(former, site):
        # The URLs look alike without it.
        before, after = {**before, "login": NOT_SHOWN}, {**after, "login": f"another one {NOT_SHOWN}"}
    return about(site, action, before, after)


def about(site: Site | BrokenSite, action: str, before: Values | None = None, after: Values | None = None) -> Decision:
    """A decision about a site."""
    return Decision(action=action, kind="site", subject=site.name, site_id=site.site_id, before=before, after=after)


def values_of(site: Site | BrokenSite) -> Values:
    """The values of a site that are set, without logins."""
    if isinstance(site, BrokenSite):
        return {"list_url": shown_url(site.list_url), "contacts": list(site.contacts), "enabled": site.enabled}
    stored = as_mapping(site)
    oai = {f"oai_{name}": value for name, value in (stored.pop("oai") or {}).items()}
    values = {**stored, **oai, "list_url": shown_url(site.list_url)}
    if site.ldap_password and not values["ldappwd"]:
        values["ldappwd"] = NOT_SHOWN
    return {name: value for name, value in values.items() if value not in (None, "", [], False) or name in _FLAGS}


def _has_other_login(former: Site | BrokenSite, site: Site) -> bool:
    if not isinstance(former, Site):
        return False
    is_other = former.list_url != site.list_url and shown_url(former.list_url) == shown_url(site.list_url)
    logins = has_login(former) or has_login(site)
    return (is_other and logins) or former.ldap_password != site.ldap_password
