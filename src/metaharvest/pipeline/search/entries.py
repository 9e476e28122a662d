"""Entries of the index: made from an output, its work and its full text. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from metaharvest.model.outputs import Agent, Identifier, Licence, Output, Text
from metaharvest.model.values import frozen
from metaharvest.pipeline.cleaning.languages import language_of
from metaharvest.pipeline.letters import EAST_ASIAN_LETTER
from metaharvest.pipeline.search.contract import Entry
from metaharvest.pipeline.search.terms import indexed
from metaharvest.pipeline.stage import Document
from metaharvest.pipeline.text_language import UNKNOWN, language_of_output

LONGEST_TEXT = 2_000_000
"""Characters of a full text that can be found: some 300,000 words."""

_LONGEST_KEPT = 500
"""Characters of texts whose terms are kept."""

_SPELLED = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ø": "oe", "Ø": "Oe", "å": "aa", "Å": "Aa"}
)
"""Letters of names that many people write as two."""

_APOSTROPHE = re.compile("['’]")


@frozen
class FullText:
    """The text of an output, with its digest. `language` is an ISO code, None if it is not known."""

    sha256: str
    text: str
    language: str | None = None


def entry_of(document: Document, output: Output, work: int, full_text: FullText | None = None) -> Entry:
    """The entry of a document with this output; `work` is the number of its work."""
    language = _language(output, full_text)
    main_type = output.types[0] if output.types else None
    licence = _licence(output)
    facets = {
        "site": document.site,
        "year": str(output.year) if output.year is not None else None,
        "type": main_type.label if main_type else None,
        "language": language,
        "licence": licence.spdx if licence else None,
        "full_text": "yes" if full_text else "no",
    }
    return Entry(
        number=document.number,
        document_id=document.document_id,
        change_seq=document.change_seq,
        site_id=document.site_id,
        origin=document.origin,
        work=work,
        year=output.year,
        words=_words(document, output, language, full_text),
        facets={name: value for name, value in facets.items() if value},
        record=_record(document, output, work, language, full_text),
    )


def _language(output: Output, full_text: FullText | None) -> str | None:
    """The language of the text, which took the declared one into account; else of the title and the abstract.

    An output that an older version of the program has cleaned has no likely language.
    """
    of_text = full_text.language if full_text else None
    known = of_text if of_text and of_text != UNKNOWN else output.likely_language
    code = known or language_of_output(output)
    return None if code == UNKNOWN else code


def _words(document: Document, output: Output, language: str | None, full_text: FullText | None) -> Mapping[str, str]:
    """The texts to search by field of the index."""
    words = {
        "title": _terms([each.text for each in output.titles]),
        "author": _terms(_with_other_spellings([part for each in output.creators for part in _names(each)])),
        "subject": _terms([each.text for each in output.subjects]),
        "abstract": _terms([each.text for each in output.abstracts]),
        "identifier": _terms(
            [document.document_id, document.item_identifier, *map(_identifier, output.identifiers)],
        ),
        "site_words": _shared_terms(document.site, document.origin),
        "type_words": _shared_terms(*[part for each in output.types for part in (each.label, each.text)]),
        "language_words": _shared_terms(language, *_codes_and_texts([each.text for each in output.languages])),
        "licence_words": _shared_terms(*[p for each in output.licences for p in (each.spdx, each.text, each.url)]),
        "text": _terms([full_text.text[:LONGEST_TEXT]]) if full_text else "",
    }
    return {name: text for name, text in words.items() if text}


def _terms(texts: Sequence[str | None]) -> str:
    """The terms of these texts, each text once, on lines of their own."""
    return indexed((texts[0] or "") if len(texts) == 1 else "\n".join(dict.fromkeys(filter(None, texts))))


def _shared_terms(*texts: str | None) -> str:
    """The terms of texts that many outputs have, if they are short: a statement of rights may have pages."""
    is_short = sum(len(each or "") for each in texts) <= _LONGEST_KEPT
    return _kept_terms(texts) if is_short else _terms(texts)


_kept_terms = lru_cache(1_000)(_terms)


def _codes_and_texts(languages: Sequence[str]) -> list[str | None]:
    return [part for text in languages for part in (language_of(text), text)]


def _identifier(identifier: Identifier) -> str:
    """An identifier as it is found: a DOI also by its address, which people paste."""
    return f"https://doi.org/{identifier.value}" if identifier.scheme == "doi" else identifier.value


def _names(agent: Agent) -> Sequence[str | None]:
    """The name as given; also with the given name first, so that both are phrases. A name in Han has no blank."""
    if not (agent.family and agent.given):
        return agent.name, agent.orcid, agent.ror
    if EAST_ASIAN_LETTER.match(agent.family):
        return agent.name, f"{agent.family}{agent.given}", agent.orcid
    return agent.name, f"{agent.given} {agent.family}", agent.orcid


def _with_other_spellings(names: Sequence[str | None]) -> Sequence[str | None]:
    """The names; those with umlauts also as Mueller and Soerensen, those with an apostrophe also as OBrien.

    `folded` gives only Muller, Sorensen, and O Brien.
    """
    umlauts = [unicodedata.normalize("NFC", each).translate(_SPELLED) for each in names if each and not each.isascii()]
    joined = [_APOSTROPHE.sub("", each) for each in names if each and ("'" in each or "’" in each)]
    return [*names, *umlauts, *joined]


def _licence(output: Output) -> Licence | None:
    """The first licence that has an identifier of SPDX; without one, the first."""
    return next((each for each in output.licences if each.spdx), next(iter(output.licences), None))


def _record(
    document: Document, output: Output, work: int, language: str | None, full_text: FullText | None
) -> dict[str, Any]:
    """What answers show of an output, as JSON."""
    licence = _licence(output)
    return {
        "document_id": document.document_id,
        "number": document.number,
        "work": work,
        "change_seq": document.change_seq,
        "format": document.document_type,
        "site": document.site,
        "site_id": document.site_id,
        "origin": document.origin,
        "title": output.title or None,
        "other_titles": [each.text for each in output.titles[1:]],
        "creators": [_agent(each) for each in output.creators],
        "contributors": [_agent(each) for each in output.contributors],
        "publishers": _texts(output.publishers),
        "abstract": "\n\n".join(_texts(output.abstracts)) or None,
        "subjects": _texts(output.subjects),
        "type": output.types[0].label or output.types[0].text if output.types else None,
        "year": output.year,
        "dates": [{"date": each.edtf, "kind": each.kind} for each in output.dates],
        "doi": output.doi,
        "identifiers": [{"scheme": each.scheme, "value": each.value} for each in output.identifiers],
        "relations": [{"kind": each.kind, "scheme": each.scheme, "value": each.value} for each in output.relations],
        "licence": licence and {"spdx": licence.spdx, "url": licence.url, "text": licence.text},
        "access": output.access,
        "embargo_until": output.embargo_until,
        "files": [{"url": each.url, "role": each.role, "media_type": each.media_type} for each in output.files],
        "language": language,
        "full_text": full_text and {"sha256": full_text.sha256, "characters": len(full_text.text)},
    }


def _agent(agent: Agent) -> Mapping[str, str | None]:
    parts = ("name", "family", "given", "kind", "orcid", "ror", "role")
    return {name: value for name in parts if (value := getattr(agent, name)) is not None}


def _texts(texts: Sequence[Text]) -> list[str]:
    return list(dict.fromkeys(each.text for each in texts))
