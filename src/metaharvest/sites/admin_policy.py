"""The limits of the settings and this machine for a new or changed site; `rows.py` checks the row."""

from __future__ import annotations

from collections.abc import Collection

from metaharvest.config.settings import Settings
from metaharvest.config.trust_store import BadAuthorities, read_authorities
from metaharvest.errors import ScheduleError, TransformError
from metaharvest.fetch.local_files import is_file_url, refusal
from metaharvest.model import Site
from metaharvest.transform.filters import read_filters
from metaharvest.transform.normalize import read_normalization


def require_allowed(settings: Settings, site: Site, changed: Collection[str], former: str | None = None) -> None:
    """Raises ScheduleError if the columns that were changed have values not allowed, or not usable on this machine.

    `former` is the name that the site had, if it is not new. Raises TransformError if a file of the site's cannot be
    used.
    """
    if former is not None:
        _require_same_target(settings, former, site.name)
    site = settings.applied_to(site)
    judged = is_file_url(site.list_url) and {"documentlisturl", "name"} & set(changed)
    if judged and (refused := refusal(site.list_url, site.file_folder)):
        raise ScheduleError.about("list_url", refused.with_remedy)
    if site.options.ca_file and "options" in changed:
        path = site.options.ca_file
        try:
            read_authorities(path)
        except BadAuthorities as error:
            text = f"The certificate authorities in {path} cannot be used: {error}."
            raise ScheduleError.about("ca_file", text) from error
    files = (("filters", site.options.filters, read_filters), ("normalize", site.options.normalize, read_normalization))
    for field, file, read in files:
        if file and "options" in changed:
            try:
                read(file)
            except TransformError as error:
                error.fields = {field: str(error)}
                raise


def _require_same_target(settings: Settings, former: str, name: str) -> None:
    """Raises ScheduleError if the settings give a site another target under its new name."""
    # Also while all is rehearsed: the documents go there afterwards.
    has_own, has_other = (settings.sites[each].target if each in settings.sites else None for each in (former, name))
    if (has_own or settings.target) == (has_other or settings.target):
        return
    own, other = (f'[sites."{each}".target]' for each in (former, name))
    whose = f"{own} is for the site '{former}'" if has_own else f"{other} is for the site '{name}'"
    remedy = f"If it is to keep its target, copy {own} to {other} in that file first, then rename the site"
    if has_other and not has_own:
        remedy = f"If it is to keep its target, remove {other} from that file first, then rename the site"
    elif has_other:
        remedy = (
            f"If it is to keep its target, let {other} say the same as {own} in that file first, then rename the site"
        )
    raise ScheduleError.about(
        "name",
        f"{settings.file or 'The settings'}: {whose}, so that as '{name}' the documents of '{former}' would go "
        f"into another target. Nothing was changed. {remedy}; a section of a name that no site has can be removed.",
    )
