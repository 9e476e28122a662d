"""What the settings and this machine allow of a site that is registered or changed; `rows.py` checks the row itself."""

from __future__ import annotations

from collections.abc import Collection

from metaharvest.config.settings import Settings
from metaharvest.config.trust_store import BadAuthorities, read_authorities
from metaharvest.errors import ScheduleError
from metaharvest.fetch.local_files import is_file_url, refusal
from metaharvest.model import Site


def require_allowed(settings: Settings, site: Site, changed: Collection[str]) -> None:
    """Raises ScheduleError if the columns that were changed have values not allowed, or not usable on this machine."""
    site = settings.applied_to(site)
    if is_file_url(site.list_url) and {"documentlisturl", "name"} & set(changed):
        refused = refusal(site.list_url, site.file_folder)
        if refused:
            raise ScheduleError(f"{refused.message} {refused.remedy}")
    if site.options.ca_file and "options" in changed:
        try:
            read_authorities(site.options.ca_file)
        except BadAuthorities as error:
            path = site.options.ca_file
            raise ScheduleError(f"The certificate authorities in {path} cannot be used: {error}.") from error
