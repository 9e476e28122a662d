"""Who may open which page: one decision for all pages. Pure."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from starlette.responses import Response

from metaharvest.model.kinds import Role
from metaharvest.model.values import frozen
from metaharvest.services.accounts import Visitor

FORM_BYTES = 262_144
"""The largest body of a form without files."""


@frozen
class Page:
    """A path of the console, the function that answers a Visit, and the least role of its visitors.

    A part of the path in braces stands for any text, `{site}` for the name of a site. `most_bytes` is the largest body.
    `tries` is the number of times that one client may ask for a page in a quarter of an hour; 0: any number.
    """

    method: str
    path: str
    answer: Callable[[Any], Response]
    least: Role
    most_bytes: int = FORM_BYTES
    tries: int = 0

    @property
    def of_site(self) -> bool:
        """True if the page is about the one site that its path names."""
        return "{site}" in self.path.split("/")


class Decision(Enum):
    """Whether a visitor may open a page; HIDDEN: the visitor must not learn whether the site exists."""

    ALLOWED = 1
    SIGN_IN = 2
    FORBIDDEN = 3
    HIDDEN = 4


def decide(page: Page, visitor: Visitor, site: str | None) -> Decision:
    """The access of this visitor to this page, which is about `site` if its path names one.

    A page for contacts that names no site is allowed: it must show only the sites of the visitor.
    """
    if page.least is Role.PUBLIC:
        return Decision.ALLOWED
    if visitor.role is Role.PUBLIC:
        return Decision.SIGN_IN
    changes = page.method == "POST"
    if page.least > Role.CONTACT:
        return Decision.ALLOWED if visitor.role >= page.least else Decision.FORBIDDEN
    if not page.of_site or (site is not None and visitor.owns(site)):
        return Decision.ALLOWED
    if visitor.role is Role.CONTACT:
        return Decision.HIDDEN
    return Decision.ALLOWED if not changes or visitor.role >= Role.STEWARD else Decision.FORBIDDEN
