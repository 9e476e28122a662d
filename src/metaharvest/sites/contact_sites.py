"""The sites of which an address is a contact."""

from __future__ import annotations

from sqlalchemy.orm import Session

from metaharvest.sites.registry import raw_rows
from metaharvest.sites.rows import checked_row


def sites_of_contact(session: Session, address: str) -> dict[int, str]:
    """The names of the sites that have this address, in lower case, as a contact; by their numbers."""
    escaped = address.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    # A database may not know the lower case of letters outside of ASCII: for these any characters will do.
    pattern = "".join(each if each.isascii() else "%" for each in escaped)
    rows = raw_rows(session, "WHERE lower(contact_email) LIKE :pattern ESCAPE '!'", {"pattern": f"%{pattern}%"})
    sites = [checked_row(row) for row in rows]
    return {site.site_id: site.name for site in sites if address in map(str.lower, site.contacts)}
