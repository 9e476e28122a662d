"""The descriptions in Identify: the form of identifiers, friends, rights, branding. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import quoteattr

from metaharvest.model.namespaces import XSI
from metaharvest.web.provider.answers import element
from metaharvest.web.provider.view import Public

_OAI = "http://www.openarchives.org/OAI/2.0"


def all_of(public: Public, identifiers: Iterable[str]) -> Iterator[str]:
    """The description elements of this provider. The first of these identifiers that has its domain is the sample."""
    domain = public.domain
    sample = next((each for each in identifiers if each.startswith(f"oai:{domain}:")), f"oai:{domain}:alder-creek.1")
    yield _description(
        "oai-identifier",
        f"{_OAI}/oai-identifier",
        f"{_OAI}/oai-identifier.xsd",
        element("scheme", "oai")
        + element("repositoryIdentifier", domain)
        + element("delimiter", ":")
        + element("sampleIdentifier", sample),
    )
    if public.rights:
        reference = f"<rights><rightsReference ref={quoteattr(public.rights)}/></rights>"
        yield _description(
            "rightsManifest",
            f"{_OAI}/rights/",
            f"{_OAI}/rightsManifest.xsd",
            reference,
            f' appliesTo="{_OAI}/entity#metadata"',
        )
    if public.friends:
        inner = "".join(element("baseURL", each) for each in public.friends)
        yield _description("friends", f"{_OAI}/friends/", f"{_OAI}/friends.xsd", inner)
    if public.branding:
        inner = f"<collectionIcon>{element('url', public.branding)}</collectionIcon>"
        yield _description("branding", f"{_OAI}/branding/", f"{_OAI}/branding.xsd", inner)


def _description(name: str, namespace: str, schema: str, inner: str, attributes: str = "") -> str:
    return (
        f'<description><{name} xmlns="{namespace}" xmlns:xsi="{XSI}" xsi:schemaLocation="{namespace} {schema}"'
        f"{attributes}>{inner}</{name}></description>"
    )
