"""A small provider of OpenID Connect on loopback: one person, who is signed in at once. Tests make it misbehave."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

CLIENT, SECRET = "metaharvest", "a secret of 32 bytes for the tests"


@dataclass
class Provider:
    """`person` are the claims of the person; `changes` replace claims of each ID token; None leaves one out."""

    url: str = ""
    person: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    algorithm: str = "RS256"
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    published: RSAKey | None = None
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def answer(self, path: str, query: dict[str, str], form: dict[str, str], login: str) -> tuple[int, Any]:
        if path == "/.well-known/openid-configuration":
            ends = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
            return 200, {"issuer": self.url, **{name: self.url + end for name, end in ends.items()}}
        if path == "/keys":
            return 200, {"keys": [(self.published or self.key).as_dict(private=False)]}
        if path == "/authorize":
            code = f"code{len(self.codes)}"
            self.codes[code] = query
            return 302, f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"
        assert path == "/token"
        asked = self.codes.pop(form["code"])
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        if base64.b64decode(login.removeprefix("Basic ")).decode() != f"{CLIENT}:{SECRET}":
            return 401, {"error": "invalid_client"}
        return 200, {"access_token": "a", "token_type": "Bearer", "id_token": self._token(asked["nonce"])}

    def _token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": nonce}
        claims = {**claims, **self.person, **self.changes}
        claims = {name: value for name, value in claims.items() if value is not None}
        key = OctKey.import_key(SECRET) if self.algorithm == "HS256" else self.key
        return jwt.encode({"alg": self.algorithm, "kid": "one"}, claims, key, algorithms=[self.algorithm])


@contextmanager
def openid_provider() -> Iterator[Provider]:
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(urlsplit(self.path), {})

        def _send(self, parts: SplitResult, form: dict[str, str]) -> None:
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            status, found = provider.answer(parts.path, query, form, self.headers.get("Authorization", ""))
            self.send_response(status)
            body = b""
            if status == 302:
                self.send_header("Location", found)
            else:
                body = json.dumps(found).encode()
                self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            self._send(urlsplit(self.path), {name: values[0] for name, values in parse_qs(body).items()})

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
