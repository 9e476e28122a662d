"""The cookies of a visit: the session, the secret of forms before it, and the notice for the next page."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping

from starlette.responses import Response

from metaharvest.services.accounts import SESSION_LIFE, new_token

_SESSION = "metaharvest"
_FORMS = "metaharvest-forms"
_STARTED = "metaharvest-oidc"
_STARTED_SECONDS = 900
_NOTICE = "metaharvest-notice"
_MOST_NOTICE = 3000


class Cookies:
    """The cookies that a browser sent, and the cookies that the answer sets.

    With https their names begin with __Host-, so that no other host of the domain can set them.
    """

    def __init__(self, sent: Mapping[str, str], is_https: bool) -> None:
        self._prefix = "__Host-" if is_https else ""
        self._is_https = is_https
        self._sent = sent
        self._changed: dict[str, tuple[str, int | None]] = {}

    @property
    def session(self) -> str:
        """The token of the session; empty without one."""
        return self._get(_SESSION)

    def set_session(self, token: str) -> None:
        """Sign the browser in."""
        self._changed[_SESSION] = token, int(SESSION_LIFE.total_seconds())

    def end_session(self) -> None:
        """Forget the session in the browser."""
        self._changed[_SESSION] = "", 0

    def secret(self, *, is_new: bool = True) -> str:
        """The secret that the token of forms derives from; a browser without one gets it if `is_new`."""
        found = self.session or self._get(_FORMS)
        if not found and is_new:
            found = new_token()
            self._changed[_FORMS] = found, None
        return found

    def started(self) -> str:
        """The sign-in that the browser started at a provider; reading it deletes it."""
        found = self._get(_STARTED)
        self._changed[_STARTED] = "", 0
        return found

    def set_started(self, text: str) -> None:
        """Keep a sign-in at a provider."""
        self._changed[_STARTED] = text, _STARTED_SECONDS

    def notice(self) -> str:
        """The sentence for this page; reading it deletes it."""
        text = self._get(_NOTICE)
        if not text:
            return ""
        self._changed[_NOTICE] = "", 0
        try:
            return urlsafe_b64decode(text[:_MOST_NOTICE]).decode(errors="ignore")
        except ValueError:
            return ""

    def set_notice(self, text: str) -> None:
        """Show a sentence on the next page."""
        self._changed[_NOTICE] = urlsafe_b64encode(text.encode()[: _MOST_NOTICE // 2]).decode(), 60

    def write_to(self, response: Response) -> None:
        """Set the changed cookies with this answer."""
        for name, (value, age) in self._changed.items():
            response.set_cookie(
                self._prefix + name,
                value,
                max_age=age,
                path="/",
                secure=self._is_https,
                httponly=True,
                samesite="lax",
            )

    def _get(self, name: str) -> str:
        changed = self._changed.get(name)
        return changed[0] if changed else self._sent.get(self._prefix + name, "")
