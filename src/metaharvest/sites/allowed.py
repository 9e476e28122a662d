"""What the settings and this machine allow of a site that is registered or changed; `rows.py` checks the row itself."""

from __future__ import annotations

from collections.abc import Collection

from metaharvest.config.settings import Settings
from metaharvest.config.trust_store import BadAuthorities, read_authorities
from metaharvest.errors import ScheduleError
from metaharvest.fetch.local_files import is_file_url, refusal
from metaharvest.model import Site
from metaharvest.transform import read_filters, read_normalization


def require_allowed(settings: Settings, site: Site, changed: Collection[str]) -> None:
    """Raises ScheduleError if the columns that were changed have values not allowed, or not usable on this machine.

    Raises TransformError if a file of the site's cannot be used.
    """
    site = settings.applied_to(site)
    judged = is_file_url(site.list_url) and {"documentlisturl", "name"} & set(changed)
    if judged and (refused := refusal(site.list_url, site.file_folder)):
        raise ScheduleError(f"{refused.message} {refused.remedy}")
    if site.options.ca_file and "options" in changed:
        path = site.options.ca_file
        try:
            read_authorities(path)
        except BadAuthorities as error:
            raise ScheduleError(f"The certificate authorities in {path} cannot be used: {error}.") from error
    if site.options.filters and "options" in changed:
        read_filters(site.options.filters)
    if site.options.normalize and "options" in changed:
        read_normalization(site.options.normalize)
