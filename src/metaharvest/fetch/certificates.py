"""The fault of a server's certificate, by OpenSSL's number for it: the second half of a sentence about it."""

from __future__ import annotations

_UNKNOWN_AUTHORITY = (
    "it comes from an authority that this harvester does not trust, or the server does not send the certificate between"
)

CERTIFICATE_PROBLEMS = {
    9: "it is not valid yet",
    10: "it has expired",
    18: "it is self-signed",
    19: "it comes from an authority that this harvester does not trust (a self-signed one)",
    20: _UNKNOWN_AUTHORITY,
    21: _UNKNOWN_AUTHORITY,
    23: "it has been revoked",
    62: "it is for another host name",
    64: "it is for another address",
}
"""X509_V_ERR_... in OpenSSL's x509_vfy.h."""
