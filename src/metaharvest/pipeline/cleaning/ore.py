"""Resource maps of OAI-ORE, in Atom and in RDF/XML: https://www.openarchives.org/ore/1.0/toc."""

from __future__ import annotations

from itertools import islice

from lxml import etree

from metaharvest.pipeline.cleaning import dublin_core
from metaharvest.pipeline.cleaning.draft import MOST, Draft
from metaharvest.pipeline.cleaning.names import agents
from metaharvest.transform.crosswalks.rows import plain

ATOM = "http://www.w3.org/2005/Atom"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

_ORE = "http://www.openarchives.org/ore/terms/"
_ALTERNATE = "alternate"


def read_atom(root: etree._Element, draft: Draft) -> None:
    """Read an entry of Atom: DSpace has its records in this form, with the files as links."""
    entry = root if root.tag == f"{{{ATOM}}}entry" else next(root.iterchildren(f"{{{ATOM}}}entry"), root)
    draft.title(plain(entry.find(f"{{{ATOM}}}title")), "entry/title[1]")
    for number, author in enumerate(islice(entry.iterchildren(f"{{{ATOM}}}author"), MOST), 1):
        draft.creator(agents(plain(author.find(f"{{{ATOM}}}name")), f"entry/author[{number}]"))
    draft.date(plain(entry.find(f"{{{ATOM}}}published")), "Issued", "entry/published[1]")
    for number, link in enumerate(islice(entry.iterchildren(f"{{{ATOM}}}link"), MOST), 1):
        source = f"entry/link[{number}]"
        if link.get("rel") == f"{_ORE}aggregates":
            draft.file(link.get("href", ""), source, media_type=link.get("type") or "")
        elif link.get("rel") == _ALTERNATE:
            draft.identifier(link.get("href", ""), source)


def read_rdf(root: etree._Element, draft: Draft) -> None:
    """Read RDF/XML: the Dublin Core of the resources, and what they aggregate."""
    dublin_core.read(root, draft)
    for number, each in enumerate(islice(root.iter(f"{{{_ORE}}}aggregates"), MOST), 1):
        draft.file(each.get(f"{{{RDF}}}resource", ""), f"ore:aggregates[{number}]")
