"""The query language: words, phrases, fields, years, brackets; and a sentence for each mistake."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaharvest.errors import QueryError
from metaharvest.pipeline.search.query_language import (
    EVERYTHING,
    LONGEST_QUERY,
    All,
    AnyOf,
    Query,
    Without,
    Words,
    Years,
    read_query,
    words_of,
)


def shown(query: Query) -> str:
    """A query on one line."""
    match query:
        case Words(terms, _, field):
            return f"{field + ':' if field else ''}{'_'.join(terms)}"
        case Years(first, last):
            return f"[{first or ''}..{last or ''}]"
        case All(parts):
            return f"({' & '.join(map(shown, parts))})"
        case AnyOf(parts):
            return f"({' | '.join(map(shown, parts))})"
        case Without(part):
            return f"-{shown(part)}"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("beech", "beech"),
        ("Beech forest", "(beech & forest)"),
        ("beech AND forest", "(beech & forest)"),
        ('"leaf area" beech', "(leaf_area & beech)"),
        ("“leaf area”", "leaf_area"),
        ("well-known", "well_known"),
        ("beech OR oak elm", "(beech | (oak & elm))"),
        ("(beech OR oak) elm", "((beech | oak) & elm)"),
        ("beech -oak", "(beech & -oak)"),
        ("beech NOT (oak OR elm)", "(beech & -(oak | elm))"),
        ('-"leaf area"', "-leaf_area"),
        ("-title:oak", "-title:oak"),
        ("author:Rivera", "author:rivera"),
        ('Title:"leaf area"', "title:leaf_area"),
        ("fulltext:soil keyword:moss", "(text:soil & subject:moss)"),
        ("year:2019", "[2019..2019]"),
        ("year:2010..2020", "[2010..2020]"),
        ("year:2010-2020", "[2010..2020]"),
        ("year:2010..", "[2010..]"),
        ("year:..2020", "[..2020]"),
        ("doi:10.5063/F1", "identifier:10_5063_f1"),
        ("https://doi.org/10.5063/F1", "https_doi_org_10_5063_f1"),
        ("oai:alder.example.org:7", "oai_alder_example_org_7"),
        ("10.1016/S0140(05)7-9 oak", "(10_1016_s0140_05_7_9 & oak)"),
        ("(doi:10.1016/S0140(05)7)", "identifier:10_1016_s0140_05_7"),
        ("title:(beech OR -oak elm) fir", "((title:beech | (-title:oak & title:elm)) & fir)"),
        ("title:(author:rivera)", "author:rivera"),
        ("year:(2019 OR 2021..)", "([2019..2019] | [2021..])"),
        ("licence:CC-BY-4.0", "licence_words:cc_by_4_0"),
        ("Beech: a study", "(beech & a & study)"),
        ("機械学習", "(機械学 & 械学習)"),
        ("", "()"),
        ("  \t ", "()"),
        ("*", "()"),
        ("C* algebras 5*3", "(c & algebras & 5_3)"),
        ("& beech ,", "beech"),
        ("or beech", "(or & beech)"),
        ("title: beech", "title:beech"),
        ("title : beech oak", "(title:beech & oak)"),
        ('author: "Smith, J."', "author:smith_j"),
        ("-title: (beech OR oak)", "-(title:beech | title:oak)"),
        ("year: 2019", "[2019..2019]"),
        ('year:"2019" date:“2010..2020”', "([2019..2019] & [2010..2020])"),
        ("year:2010 - 2020", "[2010..2020]"),
        ("year: 2010 to 2020 oak", "([2010..2020] & oak)"),
        ("year:[2010 TO 2020] oak", "([2010..2020] & oak)"),
        ("(date: [2010 TO *])", "[2010..]"),
        ("Date: [sic] beech", "(date & sic & beech)"),
        ("year:[* TO 2020]", "[..2020]"),
        ("Date: an introduction", "(date & an & introduction)"),
        ("doi: 10.5063/F1", "identifier:10_5063_f1"),
        ("https://dx.doi.org/10.5063/F1", "(https_dx_doi_org_10_5063_f1 | identifier:10_5063_f1)"),
        ("arXiv:2101.00001v2", "(arxiv_2101_00001v2 | identifier:2101_00001)"),
        ("hdl:1234/56", "(hdl_1234_56 | identifier:1234_56)"),
        ("https://orcid.org/0000-0002-1825-0097", "0000_0002_1825_0097"),
        ("orcid:0000-0002-1825-0097", "author:0000_0002_1825_0097"),
        ("mailto:ana@example.org", "ana_example_org"),
        ("https://example.org/a/b?id=7", "https_example_org_a_b_id_7"),
        ("beech | oak", "(beech | oak)"),
        ("beech || oak && elm", "(beech | (oak & elm))"),
        ("beech|oak||elm", "(beech | oak | elm)"),
        ("ORCID 0000-0002-1825-0097", "author:0000_0002_1825_0097"),
        ("ORCID iD: 0000-0002-1825-0097 oak", "(author:0000_0002_1825_0097 & oak)"),
        ("ORCID 2021", "(orcid & 2021)"),
        ("ISBN-13: 978-3-16-148410-0", "(isbn_978_3_16_148410_0 | identifier:9783161484100)"),
        ("(PMID: 12345678)", "(pmid_12345678 | identifier:12345678)"),
        ("ISBN 9783161484100, oak", "((isbn_9783161484100 | identifier:9783161484100) & oak)"),
        ("PMID 2020-2021", "(pmid & 2020_2021)"),
        ("arXiv hep-th/9901001", "(arxiv_hep_th_9901001 | identifier:hep_th_9901001)"),
        ("language:German", "(language_words:german | language_words:de)"),
        (
            "licence:https://creativecommons.org/licenses/by/4.0/",
            "(licence_words:https_creativecommons_org_licenses_by_4_0 | licence_words:cc_by_4_0)",
        ),
        ('licence:("CC BY" OR MIT)', "(licence_words:cc_by | licence_words:mit)"),
        ("10 per km^2", "(10 & per & km_2)"),
        ('"be*ch"', "be_ch"),
    ],
)
def test_queries(text: str, query: str) -> None:
    assert shown(read_query(text)) == query


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('"leaf area', "The quotation mark at character 1 has no second one"),
        ("beech OR", "Nothing stands after OR"),
        ("OR beech", "Nothing stands before OR"),
        ("beech NOT", "Nothing stands after NOT"),
        ("(beech", "The bracket that opens at character 1 is not closed"),
        ("beech) oak", "A bracket is closed at character 6 that was never opened"),
        ("colour:green", "There is no field colour. The fields are title, author,"),
        ("year:old", "old is not a year. Write year:2019"),
        ("year:[* TO *]", "[* TO *] is not a year. Write year:2019"),
        ("year:{2010 TO 2020}", "{2010 TO 2020} is not a year. Write year:2019"),
        ("date: [now-1y TO now] oak", "[now-1y TO now] is not a year. Write year:2019"),
        ("(year:[2010, 2020])", "[2010, 2020] is not a year. Write year:2019"),
        ("year:[2010 TO 2020]^2", "[2010 TO 2020]^2 is not a year. Write year:2019"),
        ("beech orcid:", "write it after the colon, as in title:beech"),
        ("year:2020..2010", "The year 2020 comes after 2010: write year:2010..2020"),
        ("🐸 ...", "It has no word to search for"),
        ("phenolog*", "There are no wildcards in phenolog*: write the whole word, or several with OR"),
        ("beech title:leaf*", "There are no wildcards in title:leaf*"),
        ("be*ch", "There are no wildcards in be*ch"),
        ("*ology", "There are no wildcards in *ology"),
        ("be?ch", "There are no wildcards in be?ch"),
        ("title: be*ch", "There are no wildcards in be*ch"),
        ("beech^3", "write the word without ^ and ~"),
        ("title:beech~", "write the word without ^ and ~"),
        ('"leaf area"~5', "A phrase has no ~ behind it"),
        ("!oak", "Write NOT oak to leave outputs out"),
        ("title:-oak", "write -title:oak"),
        ("title:-", "write -title:oak"),
        ("beech|", "Nothing stands after OR"),
        ("title=beech", "A field has a colon: write title:beech"),
        ("year>2010", "write year:2019, year:2010.. or year:..2020"),
        ("2010..2020", "The years have no field: write year:2010..2020"),
        ("beech title:", "The field title has no value: write it after the colon"),
        ("year:", "The field year has no value"),
        ("year:", "write it after the colon, as in year:2019"),
        ("AND", "write at least one word"),
        ("title:&", "title:& has no letter and no digit"),
        ("(" * 30 + "a" + ")" * 30, "more than 20 levels of brackets"),
        ("NOT " * 30 + "a", "more than 20 levels of brackets"),
        ("a " * 100, "more than 60 words"),
        ("a" * (LONGEST_QUERY + 1), "may have 2,000"),
    ],
)
def test_a_mistake_is_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(QueryError) as caught:
        read_query(text)
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")


@given(st.text(st.sampled_from('ab "“():-ORNT.&*\n\0機year2019:title'), max_size=40))
def test_every_text_is_a_query_or_a_mistake(text: str) -> None:
    found = _read(text)
    if isinstance(found, str):
        assert found.isprintable()
    else:
        assert all(each.terms for each in words_of(found))


def _read(text: str) -> Query | str:
    """The query, or the sentence about its mistake."""
    try:
        return read_query(text)
    except QueryError as error:
        return str(error)


def test_words_that_leave_documents_out_are_not_words_of_hits() -> None:
    found = words_of(read_query("beech -oak (elm OR title:fir) year:2019"))
    assert [each.text for each in found] == ["beech", "elm", "fir"]
    assert list(words_of(EVERYTHING)) == []
