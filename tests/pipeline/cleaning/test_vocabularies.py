"""Languages, licences, rights of access and types: the words that records have for them."""

from __future__ import annotations

from time import process_time

import pytest

from metaharvest.model.outputs import Access
from metaharvest.pipeline.cleaning.languages import language_of
from metaharvest.pipeline.cleaning.licences import access_of, embargo_in, spdx_of
from metaharvest.pipeline.cleaning.types import BROADER, LABELS, type_of


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("en", "en"),
        ("ENG", "en"),
        ("en-GB", "en"),
        ("en_US", "en"),
        ("English", "en"),
        ("English (United States)", "en"),
        ("In English", "en"),
        ("eng; eng", "en"),
        ("ger", "de"),
        ("deu", "de"),
        ("Deutsch", "de"),
        ("fre", "fr"),
        ("français", "fr"),
        ("Francais", "fr"),
        ("Español", "es"),
        ("Castilian; Spanish", "es"),
        ("zh-Hans", "zh"),
        ("cmn", "zh"),
        ("中文", "zh"),
        ("Chinese (Simplified)", "zh"),
        ("日本語", "ja"),
        ("nb", "no"),
        ("nob", "no"),
        ("Norwegian Bokmål", "no"),
        ("nno", "nn"),
        ("Modern Greek", "el"),
        ("ast", "ast"),
        ("http://id.loc.gov/vocabulary/iso639-2/fre", "fr"),
        ("https://lexvo.org/id/iso639-3/por", "pt"),
        ("cz", "cs"),
        ("iw", "he"),
        ("in_ID", "id"),
        ("Bahasa Indonesia", "id"),
        ("Bahasa Melayu", "ms"),
        ("Bahasa", None),
        ("und", None),
        ("mul", None),
        ("xx", None),
        ("n/a", None),
        ("English; French", None),
        ("Frogs", None),
        ("", None),
    ],
)
def test_a_language(text: str, code: str | None) -> None:
    assert language_of(text) == code


@pytest.mark.parametrize(
    ("text", "spdx"),
    [
        ("http://creativecommons.org/licenses/by/4.0/", "CC-BY-4.0"),
        ("https://creativecommons.org/licenses/by-nc-nd/3.0/de/deed.de", "CC-BY-NC-ND-3.0-DE"),
        ("http://creativecommons.org/licenses/by-nc-sa/2.5/es/", "CC-BY-NC-SA-2.5"),
        ("https://creativecommons.org/licenses/by/3.0/igo/", "CC-BY-3.0-IGO"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "CC0-1.0"),
        ("https://creativecommons.org/publicdomain/mark/1.0/", "CC-PDM-1.0"),
        ("CC-BY-4.0", "CC-BY-4.0"),
        ("CC BY-NC-SA 3.0", "CC-BY-NC-SA-3.0"),
        ("cc_by_4", "CC-BY-4.0"),
        ("cc by-nc-nd (4.0)", "CC-BY-NC-ND-4.0"),
        ("Creative Commons Attribution 4.0 International (CC BY 4.0)", "CC-BY-4.0"),
        ("Creative Commons Attribution-NonCommercial-NoDerivatives 4.0 International", "CC-BY-NC-ND-4.0"),
        ("Attribution-ShareAlike 3.0 Unported", "CC-BY-SA-3.0"),
        ("Released under Creative Commons Attribution 4.0.", "CC-BY-4.0"),
        ("Open access under CC BY-NC-ND (http://creativecommons.org/licenses/by-nc-nd/4.0/).", "CC-BY-NC-ND-4.0"),
        ("Atribución-NoComercial-SinDerivadas 3.0 España", "CC-BY-NC-ND-3.0"),
        ("Licencia Creative Commons Reconocimiento 4.0 Internacional", "CC-BY-4.0"),
        ("Namensnennung - Weitergabe unter gleichen Bedingungen 4.0 International", "CC-BY-SA-4.0"),
        ("CC0 1.0 Universal", "CC0-1.0"),
        ("Creative Commons Zero v1.0 Universal", "CC0-1.0"),
        ("https://spdx.org/licenses/CC-BY-4.0.html", "CC-BY-4.0"),
        ("https://spdx.org/licenses/mit", "MIT"),
        ("Public Domain Dedication and License", "PDDL-1.0"),
        ("ODbL", "ODbL-1.0"),
        ("MIT License", "MIT"),
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("http://www.apache.org/licenses/LICENSE-2.0", "Apache-2.0"),
        ("GPL-3.0-or-later", "GPL-3.0-or-later"),
        ("GNU General Public License v3.0 only", "GPL-3.0-only"),
        ("GNU General Public License v2 or later", "GPL-2.0-or-later"),
        ("https://www.gnu.org/licenses/gpl-3.0.en.html", "GPL-3.0-only"),
        ("BSD 3-Clause", "BSD-3-Clause"),
        ("Open Government Licence v3.0", "OGL-UK-3.0"),
        ("Licence Ouverte / Open Licence 2.0", "etalab-2.0"),
        ("CC BY", None),
        ("http://creativecommons.org/licenses/by/", None),
        ("All rights reserved", None),
        ("Attribution is required", None),
        ("Copyright 2004 the author", None),
        ("info:eu-repo/semantics/openAccess", None),
        ("http://rightsstatements.org/vocab/InC/1.0/", None),
        ("Please submit your permit request", None),
        ("", None),
    ],
)
def test_a_licence(text: str, spdx: str | None) -> None:
    assert spdx_of(text) == spdx


@pytest.mark.parametrize(
    ("text", "access"),
    [
        ("info:eu-repo/semantics/openAccess", Access.OPEN),
        ("http://purl.org/coar/access_right/c_abf2", Access.OPEN),
        ("Open Access", Access.OPEN),
        ("Acceso abierto", Access.OPEN),
        ("info:eu-repo/semantics/embargoedAccess", Access.EMBARGOED),
        ("https://purl.org/coar/access_right/c_f1cf/", Access.EMBARGOED),
        ("Restricted Access", Access.RESTRICTED),
        ("closedAccess", Access.METADATA_ONLY),
        ("metadata only access", Access.METADATA_ONLY),
        ("Open the box", None),
        ("CC BY 4.0", None),
        ("", None),
    ],
)
def test_rights_of_access(text: str, access: Access | None) -> None:
    assert access_of(text) == access


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("Embargo until 2021-05-01", "2021-05-01"),
        ("embargoed until 01/05/2021", "01/05/2021"),
        ("info:eu-repo/date/embargoEnd/2021-05-01", "2021-05-01"),
        ("Embargo end date: 2021-05-01", "2021-05-01"),
        ("Copyright 2021-05-01", None),
    ],
)
def test_the_end_of_an_embargo(text: str, date: str | None) -> None:
    assert embargo_in(text) == date


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("article", "journal article"),
        ("Thesis (M.A., History)", "master thesis"),
        ("Thesis (Ph.D.)--University of Alder, 1999", "doctoral thesis"),
        ("Dissertation (B.Sc.)", "bachelor thesis"),
        ("Thesis (Student)", "thesis"),
        ("Trabajo de fin de grado", "bachelor thesis"),
        ("Articles", "journal article"),
        ("info:eu-repo/semantics/article", "journal article"),
        ("JournalArticle", "journal article"),
        ("Text/Article", "journal article"),
        ("departmental bulletin paper", "journal article"),
        ("Skripsi", "bachelor thesis"),
        ("Diplomová práce", "master thesis"),
        ("Disertační práce", "doctoral thesis"),
        ("Диссертация", "thesis"),
        ("Zeitschriftenartikel", "journal article"),
        ("Journal Article/Review", "journal article"),
        ("http://purl.org/coar/resource_type/c_6501", "journal article"),
        ("https://purl.org/coar/resource_type/R60J-J5BD", "conference presentation"),
        ("Thesis", "thesis"),
        ("Thesis or Dissertation", "thesis"),
        ("Thesis - PhD", "doctoral thesis"),
        ("text.thesis.doctoral", "doctoral thesis"),
        ("Doctoral Thesis (PhD)", "doctoral thesis"),
        ("Tesis doctoral", "doctoral thesis"),
        ("masterThesis", "master thesis"),
        ("BookChapter", "book part"),
        ("book_section", "book part"),
        ("Conference or Workshop Item", "conference output"),
        ("Technical Report", "technical report"),
        ("Learning Object", "learning object"),
        ("http://purl.org/dc/dcmitype/StillImage", "still image"),
        ("OutputManagementPlan", "data management plan"),
        ("Dataset", "dataset"),
        ("Text", "text"),
        ("PeerReviewed", None),
        ("info:eu-repo/semantics/publishedVersion", None),
        ("Frogs", None),
        ("", None),
    ],
)
def test_a_type(text: str, label: str | None) -> None:
    found = type_of(text)
    assert (found[1] if found else None) == label


def test_broader_types_are_types() -> None:
    assert {*BROADER, *BROADER.values()} <= set(LABELS)


def test_long_texts_take_little_time() -> None:
    began = process_time()
    for piece in ("cc by nc ", "embargo ", "creativecommons.org/licenses/by-", "a/", "english "):
        for read in (language_of, spdx_of, access_of, embargo_in, type_of):
            read(piece * 100_000)
    assert process_time() - began < 5
