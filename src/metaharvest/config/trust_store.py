"""Trusted certificate authorities: of the operating system, and in PEM files.

`metaharvest.fetch` decides which of them each request uses.
"""

from __future__ import annotations

import ssl
from pathlib import Path

import certifi

from metaharvest.config.files import read_file
from metaharvest.errors import SettingsError

_SYSTEM_STORES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


_MOST_BYTES = 16_777_216
"""The largest size of a file of certificate authorities: operating systems trust a quarter of a megabyte of them."""


class BadAuthorities(ValueError):
    """A file of certificate authorities cannot be used; the message is the second half of a sentence."""


def system_trust() -> Path:
    """The file with the operating system's certificate authorities; on a machine without one, Mozilla's from certifi.

    libcurl's own default cannot be used: it is the path on the system where libcurl was compiled.
    """
    candidates = (*_SYSTEM_STORES, ssl.get_default_verify_paths().openssl_cafile)
    return next((path for path in map(Path, candidates) if path.is_file()), Path(certifi.where()))


def read_authorities(file: Path) -> bytes:
    """The certificates in a PEM file. Raises BadAuthorities if it cannot be read or holds none."""
    try:
        content = read_file(file, _MOST_BYTES)
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=content.decode("ascii", "ignore"))
    except (OSError, ValueError) as error:
        unreadable = isinstance(error, OSError) and not isinstance(error, ssl.SSLError)
        problem = getattr(error, "strerror", None) if unreadable else "it holds no certificates in PEM form"
        raise BadAuthorities(problem or "it cannot be read") from error
    return content


def configured_authorities(file: Path, place: str = "[http] ca_file") -> bytes:
    """The certificates in the file that the settings name for all sites, at `place`. Raises SettingsError."""
    try:
        return read_authorities(file)
    except BadAuthorities as error:
        problem = f"The certificate authorities in {file} ({place}) cannot be used: {error}."
        raise SettingsError(problem) from error
