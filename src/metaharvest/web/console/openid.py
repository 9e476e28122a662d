"""Signing in by OpenID Connect: the request to the provider, and the check of its answer.

Authorization code flow with PKCE: https://openid.net/specs/openid-connect-core-1_0.html
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

import requests

from metaharvest.config.secret_references import resolve_secret
from metaharvest.config.settings import Settings
from metaharvest.errors import MetaharvestError
from metaharvest.model.values import frozen
from metaharvest.services.accounts import Identity, new_token
from metaharvest.text import one_line

_SECONDS = 10
_KEPT_SECONDS = 3600
_LEEWAY = 60
"""The seconds by which the clocks of the provider and of this machine may differ."""

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a key that only the provider has; never `none`, never one with the client's own secret."""

_LONGEST_SUBJECT = 255
"""By https://openid.net/specs/openid-connect-core-1_0.html#IDToken, a subject has at most this number of characters."""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class NotSignedIn(MetaharvestError):
    """The provider did not sign the person in, or its answer cannot be trusted."""


@frozen
class Started:
    """The values that the browser keeps during a visit to the provider."""

    state: str
    nonce: str
    verifier: str
    to: str

    def as_cookie(self) -> str:
        """The value of the cookie."""
        return urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode()


def started_from(cookie: str) -> Started | None:
    """The values in a cookie; None if it has none."""
    try:
        found = json.loads(urlsafe_b64decode(cookie))
        values = [str(found[name]) for name in ("state", "nonce", "verifier", "to")]
        return Started(*values) if all(value.isascii() for value in values) and all(values) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def is_safe(url: str) -> bool:
    """True for https, and on this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in _LOOPBACK


class OpenIdProvider:
    """The provider that the settings name; `return_url` is the page to which it sends people back."""

    def __init__(self, settings: Settings, return_url: str) -> None:
        web = settings.web
        self.issuer = web.oidc_issuer
        self._client_id = web.oidc_client_id
        self._settings = settings
        self._return_url = return_url
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, Mapping[str, Any]]] = {}

    def start(self, to: str) -> tuple[str, Started]:
        """The address at the provider for the browser, and what the browser keeps. Raises NotSignedIn."""
        started = Started(new_token(), new_token(), new_token(), to)
        with self._client() as client:
            url, _ = client.create_authorization_url(
                self._endpoint("authorization_endpoint"),
                state=started.state,
                nonce=started.nonce,
                code_verifier=started.verifier,
            )
        return str(url), started

    def finish(self, started: Started | None, query: Mapping[str, str]) -> Identity:
        """The person whom the provider signed in. Raises NotSignedIn."""
        if started is None or not secrets.compare_digest(started.state.encode(), query.get("state", "").encode()):
            raise NotSignedIn("This answer does not belong to your browser, or it is too old. Please sign in again.")
        # The answer of another provider: https://www.rfc-editor.org/rfc/rfc9207
        if query.get("iss", self.issuer) not in (self.issuer, f"{self.issuer}/"):
            raise NotSignedIn("This answer comes from another provider. Please sign in again.")
        if "code" not in query:
            reason = query.get("error_description") or query.get("error") or "it gave no reason"
            raise NotSignedIn(f"The provider did not sign you in: {one_line(reason, 200)}.")
        token = self._token(query["code"], started.verifier)
        return self._identity(self._claims(str(token.get("id_token", ""))), started.nonce)

    def _token(self, code: str, verifier: str) -> Mapping[str, Any]:
        from authlib.common.errors import AuthlibBaseError

        try:
            with self._client() as client:
                found: Mapping[str, Any] = client.fetch_token(
                    self._endpoint("token_endpoint"),
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=verifier,
                    timeout=_SECONDS,
                )
        except (AuthlibBaseError, requests.RequestException, ValueError) as error:
            raise NotSignedIn(f"The provider did not confirm the sign-in: {one_line(str(error), 200)}.") from error
        return found

    def _claims(self, id_token: str) -> Mapping[str, Any]:
        """The claims of an ID token with a valid signature and dates, for this client."""
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        required = jwt.JWTClaimsRegistry(
            leeway=_LEEWAY,
            iss={"essential": True, "value": self._endpoint("issuer")},
            aud={"essential": True, "value": self._client_id},
            sub={"essential": True},
            exp={"essential": True},
        )
        # The provider may have changed its keys since they were fetched.
        for is_fresh in (False, True):
            try:
                keys = KeySet.import_key_set(dict(self._fetched(self._endpoint("jwks_uri"), is_fresh)))  # type: ignore[arg-type]
                found = jwt.decode(id_token, keys, algorithms=list(_ALGORITHMS))
                required.validate(found.claims)
            except (JoseError, ValueError, KeyError) as error:
                if is_fresh:
                    raise NotSignedIn(f"The provider's answer is not valid: {one_line(str(error), 200)}.") from error
            else:
                return found.claims
        raise AssertionError

    def _identity(self, claims: Mapping[str, Any], nonce: str) -> Identity:
        if not secrets.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise NotSignedIn("The provider's answer belongs to another sign-in. Please sign in again.")
        audience = claims["aud"]
        if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != self._client_id:
            raise NotSignedIn("The provider's answer is for another program.")
        subject = claims["sub"]
        if not isinstance(subject, str) or len(subject) > _LONGEST_SUBJECT:
            raise NotSignedIn("The provider's answer is not valid: its subject is not a short text.")
        is_verified = claims.get("email_verified") is True
        address = str(claims.get("email") or "") if is_verified else ""
        return Identity(self.issuer, subject, address, str(claims.get("name") or ""))

    def _client(self) -> Any:
        from authlib.integrations.requests_client import OAuth2Session

        secret = resolve_secret(self._settings.web.oidc_client_secret, self._settings.folder)
        return OAuth2Session(
            self._client_id,
            secret or None,
            scope="openid email profile",
            redirect_uri=self._return_url,
            code_challenge_method="S256",
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
        )

    def _endpoint(self, name: str) -> str:
        found = self._fetched(f"{self.issuer}/.well-known/openid-configuration")
        if found.get("issuer") not in (self.issuer, f"{self.issuer}/") or not isinstance(found.get(name), str):
            raise NotSignedIn(f"The description of the provider {self.issuer} names another issuer, or no {name}.")
        url = str(found[name])
        if not is_safe(url):
            raise NotSignedIn(f"The provider {self.issuer} is not asked without https.")
        return url

    def _fetched(self, url: str, is_fresh: bool = False) -> Mapping[str, Any]:
        """A JSON object of the provider, kept for an hour."""
        with self._lock:
            kept = self._kept.get(url)
        if kept and not is_fresh and time.monotonic() - kept[0] < _KEPT_SECONDS:
            return kept[1]
        try:
            answer = requests.get(url, timeout=_SECONDS, allow_redirects=False)
            answer.raise_for_status()
            found = answer.json()
        except (requests.RequestException, ValueError) as error:
            raise NotSignedIn(f"The provider {self.issuer} does not answer. Please try again later.") from error
        if not isinstance(found, dict):
            raise NotSignedIn(f"The provider {self.issuer} does not answer as it should.")
        with self._lock:
            self._kept[url] = time.monotonic(), found
        return found
