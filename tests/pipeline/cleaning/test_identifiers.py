"""DOIs and other identifiers: every spelling that records and texts have."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaharvest.pipeline.cleaning.identifiers import (
    as_doi,
    find_dois,
    identified,
    identifiers_in,
    orcid_in,
    ror_in,
)

SICI = "10.1002/(sici)1097-4571(199806)49:8<693::aid-asi4>3.0.co;2-o"


@pytest.mark.parametrize(
    ("value", "doi"),
    [
        ("10.5063/F1", "10.5063/f1"),
        (" doi:10.5063/F1 ", "10.5063/f1"),
        ("DOI: 10.5063/f1", "10.5063/f1"),
        ("info:doi/10.5063/f1", "10.5063/f1"),
        ("urn:doi:10.5063/f1", "10.5063/f1"),
        ("https://doi.org/10.5063/f1", "10.5063/f1"),
        ("http://dx.doi.org/10.5063/f1", "10.5063/f1"),
        ("doi.org/10.5063/f1", "10.5063/f1"),
        ("https://doi.org/doi:10.5063/f1", "10.5063/f1"),
        ("https://doi.org/ 10.5063/f1", "10.5063/f1"),
        ("<https://doi.org/10.5063/f1>", "10.5063/f1"),
        ("(doi:10.5063/f1).", "10.5063/f1"),
        ("DOI: https://doi.org/10.5063/f1", "10.5063/f1"),
        ("doi:http://dx.doi.org/10.5063/f1", "10.5063/f1"),
        ("https://doi.org/https://doi.org/10.5063/f1", "10.5063/f1"),
        ("10.5063/f1\u200e", "10.5063/f1"),
        ("http://dx.doi.org/10.5063%2Ff1%28a%29", "10.5063/f1(a)"),
        ("10.5063/f1?utm_source=feed", "10.5063/f1"),
        ("10.5063/f1#section-2", "10.5063/f1"),
        (SICI.upper(), SICI),
        ("10.1002/(SICI)1097-4571(199806)49:8&lt;693::AID-ASI4&gt;3.0.CO;2-O", SICI),
        ("https://press.example.org/doi/full/10.5063/f1?journalCode=x", "10.5063/f1"),
        ("https://press.example.org/doi/10.5063/f1/full", "10.5063/f1"),
        ("https://press.example.org/article/10.5063/f1/fulltext.html", "10.5063/f1"),
        ("https://press.example.org/journal/article?id=10.5063/f1", "10.5063/f1"),
        ("https://press.example.org/content/10.1101/2020.05.01.073262v2.full.pdf", "10.1101/2020.05.01.073262"),
        ("10.5063/f\u20101", "10.5063/f-1"),
        ("10.5063/f\u00ad1", "10.5063/f1"),
        ("10.5063/\u200bf1", "10.5063/f1"),
        ("10.5063/ f1", "10.5063/f1"),
        ("10.5063/a.\n118834", "10.5063/a.118834"),
        ("10.1000.10/123", "10.1000.10/123"),
        ("10.5063", None),
        ("10.5063/", None),
        ("10.5063/...", None),
        ("frogs", None),
        ("Frogs, 10.5063/f1", None),
        ("10.5063/f1 and 10.5063/f2", None),
        ("https://repository.example.org/bitstream/10.5063/f1.pdf", None),
        ("3.10.5063/f1", None),
        ("", None),
    ],
)
def test_a_value_as_a_doi(value: str, doi: str | None) -> None:
    assert as_doi(value) == doi


@pytest.mark.parametrize(
    ("text", "dois"),
    [
        ("See doi:10.5063/f1.", ["10.5063/f1"]),
        ("(https://doi.org/10.5063/f1)", ["10.5063/f1"]),
        ("(see 10.5063/f(1)a), and", ["10.5063/f(1)a"]),
        ("[10.5063/f[1]a]", ["10.5063/f[1]a"]),
        ("10.5063/f1)b", ["10.5063/f1"]),
        ("10.5063/f1, 10.5063/f2; 10.5063/f3", ["10.5063/f1", "10.5063/f2", "10.5063/f3"]),
        ("10.5063/f1,10.5063/f2", ["10.5063/f1", "10.5063/f2"]),
        ("10.5063/f1;doi:10.5063/f2", ["10.5063/f1", "10.5063/f2"]),
        ("10.5063/F1 and again 10.5063/f1", ["10.5063/f1"]),
        ("10.5063/0012345PubMed", ["10.5063/0012345"]),
        ("10.5063/f1.PMID:123", ["10.5063/f1"]),
        ('<a href="https://doi.org/10.5063/f1">10.5063/f1</a>', ["10.5063/f1"]),
        ("10.5063/f1<br>", ["10.5063/f1"]),
        ('"doi": "10.5063/a-b_c",', ["10.5063/a-b_c"]),
        ("doi = {10.5063/f1},", ["10.5063/f1"]),
        (r"10.5063/978-3-319\_12", ["10.5063/978-3-319_12"]),
        (f"in {SICI}.", [SICI]),
        ("10.1175/1520-0477(2001)082<0247:TNYRPT>2.3.CO;2.", ["10.1175/1520-0477(2001)082<0247:tnyrpt>2.3.co;2"]),
        ("10.1641/0006-3568(2004)054[0677:TV]2.0.CO;2", ["10.1641/0006-3568(2004)054[0677:tv]2.0.co;2"]),
        ("https://doi.org/10.1016/j.x.2019.\n118834 Next", ["10.1016/j.x.2019.118834"]),
        ("https://doi.org/10.1016/j.x.2019.05.003.\n12. Smith", ["10.1016/j.x.2019.05.003"]),
        ("https://doi.org/10.1016/j.x.2019.05.003.\n2003. Smith", ["10.1016/j.x.2019.05.003"]),
        ("https://doi.org/10.1016/j.x.2019.05.003.\nSmith", ["10.1016/j.x.2019.05.003"]),
        ("https://doi.org/10.1007/s00442-\n005-0044-4.", ["10.1007/s00442-005-0044-4"]),
        ("https://doi.org/10.1007/\ns00442", ["10.1007/s00442"]),
        ("https://doi.org/10.1016/s0140-6736(05)\n12345-6", ["10.1016/s0140-6736(05)"]),
        ("10.5063/f1的研究", ["10.5063/f1"]),
        ("10.5063/f1。", ["10.5063/f1"]),
        ("10.1093/nar/gkz1021/5628925", ["10.1093/nar/gkz1021"]),
        ("Version 10.1/2 of 10.12", []),
        ("", []),
    ],
)
def test_dois_in_a_text(text: str, dois: list[str]) -> None:
    assert list(find_dois(text)) == dois


@given(st.text(alphabet="10./-(<[a 5063f)>];,\n%2Fdoi:&", max_size=60))
def test_a_doi_is_found_again_in_its_own_form(text: str) -> None:
    for doi in find_dois(text):
        assert doi == doi.lower()
        assert doi.startswith("10.")
        assert not any(map(str.isspace, doi))
        assert find_dois(f"({doi})") == [doi]


@pytest.mark.slow
def test_a_long_text_takes_little_time() -> None:
    began = process_time()
    for text in ("10.5063/" + "(" * 200_000, "10.5063/a." * 50_000, "10.5063/<" * 50_000, "10." * 200_000):
        find_dois(text)
        as_doi(text)
        list(identifiers_in(text))
    assert process_time() - began < 5


@pytest.mark.parametrize(
    ("value", "said", "scheme", "plain"),
    [
        ("hdl:10023/1234", "", "handle", "10023/1234"),
        ("info:hdl:10023/1234", "", "handle", "10023/1234"),
        ("http://hdl.handle.net/10023/1234", "", "handle", "10023/1234"),
        ("hdl.handle.net/10023/1234", "", "handle", "10023/1234"),
        ("arXiv:1501.00001v1 [cs.CV]", "", "arxiv", "1501.00001"),
        ("hep-th/9901001v2", "", "arxiv", "hep-th/9901001"),
        ("cs/112017", "", "other", "cs/112017"),
        ("https://europepmc.org/article/MED/12345678", "", "pmid", "12345678"),
        ("3-16-148410-X", "", "isbn", "9783161484100"),
        ("3-16-148410-0", "", "other", "3-16-148410-0"),
        ("555-123-4567", "", "other", "555-123-4567"),
        ("https://repository.example.org/handle/123456789/22", "", "handle", "123456789/22"),
        ("https://repository.example.org/xmlui/handle/10023/12", "", "handle", "10023/12"),
        ("10023/1234", "Handle", "handle", "10023/1234"),
        ("10023/1234", "", "other", "10023/1234"),
        ("arXiv:2101.12345v2", "", "arxiv", "2101.12345"),
        ("https://arxiv.org/abs/hep-th/9901001", "", "arxiv", "hep-th/9901001"),
        ("2101.12345", "arXiv", "arxiv", "2101.12345"),
        ("PMID: 1234", "", "pmid", "1234"),
        ("1234", "PMID", "pmid", "1234"),
        ("1234", "", "other", "1234"),
        ("https://www.ncbi.nlm.nih.gov/pubmed/1234", "", "pmid", "1234"),
        ("PMC12345", "", "pmcid", "PMC12345"),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/PMC12345/", "", "pmcid", "PMC12345"),
        ("ISBN 978-3-16-148410-0", "", "isbn", "9783161484100"),
        ("978-3-16-148410-0 (pbk.)", "", "isbn", "9783161484100"),
        ("urn:isbn:0-306-40615-2", "", "isbn", "9780306406157"),
        ("0306406152", "ISBN", "isbn", "9780306406157"),
        ("ISBN 978-3-16-148410-1", "", "other", "ISBN 978-3-16-148410-1"),
        ("0378-5955", "", "issn", "0378-5955"),
        ("ISSN: 1050-124x", "", "issn", "1050-124X"),
        ("0378-5954", "", "other", "0378-5954"),
        ("2019-2020", "", "other", "2019-2020"),
        ("urn:nbn:de:0030-1", "", "urn", "urn:nbn:de:0030-1"),
        ("oai:alder.example.org:1", "", "oai", "oai:alder.example.org:1"),
        ("https://alder.example.org/frogs", "", "url", "https://alder.example.org/frogs"),
        ("www.alder.example.org/frogs", "", "url", "http://www.alder.example.org/frogs"),
        ("knb-lter-gce.109.6", "", "other", "knb-lter-gce.109.6"),
    ],
)
def test_the_scheme_of_an_identifier(value: str, said: str, scheme: str, plain: str) -> None:
    assert identified(value, said) == (scheme, plain)


def test_an_address_of_a_page_has_its_doi_or_handle_and_itself() -> None:
    page = "https://press.example.org/doi/full/10.5063/f1"
    assert list(identifiers_in(page)) == [("doi", "10.5063/f1"), ("url", page)]
    repository = "https://repository.example.org/handle/10023/12"
    assert list(identifiers_in(repository)) == [("handle", "10023/12"), ("url", repository)]
    assert list(identifiers_in("https://doi.org/10.5063/f1")) == [("doi", "10.5063/f1")]


def test_a_citation_has_its_only_doi() -> None:
    citation = "Alder, A. (2020). Frogs of Alder Creek. Journal of Frogs 1, 2-3. https://doi.org/10.5063/f1"
    assert list(identifiers_in(citation)) == [("other", citation), ("doi", "10.5063/f1")]
    assert list(identifiers_in(f"{citation} 10.5063/f2")) == [("other", f"{citation} 10.5063/f2")]


@pytest.mark.parametrize(
    ("text", "orcid"),
    [
        ("https://orcid.org/0000-0002-1825-0097", "0000-0002-1825-0097"),
        ("0000-0002-1694-233x", "0000-0002-1694-233X"),
        ("Carberry, J. (0000-0002-1825-0097)", "0000-0002-1825-0097"),
        ("0000000218250097", "0000-0002-1825-0097"),
        ("0000\u20100002\u20101825\u20100097", "0000-0002-1825-0097"),
        ("0000-0002-1825-0098", None),
        ("1234-5678-9012-3456", None),
        ("", None),
    ],
)
def test_an_orcid_has_the_right_check_digit(text: str, orcid: str | None) -> None:
    assert orcid_in(text) == orcid


@pytest.mark.parametrize(
    ("text", "ror"),
    [
        ("https://ror.org/02twcfp32", "02twcfp32"),
        ("ROR: 05DXPS055", "05dxps055"),
        ("05dxps055", "05dxps055"),
        ("https://ror.org/05dxps056", None),
        ("https://example.org/05dxps055", None),
    ],
)
def test_a_ror_identifier_has_the_right_check_digits(text: str, ror: str | None) -> None:
    assert ror_in(text) == ror


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Available at: https://alder.example.org/1.", {("url", "https://alder.example.org/1")}),
        ("URL:http://alder.example.org/a", {("url", "http://alder.example.org/a")}),
        (
            "https://alder.example.org/1/a.pdf ; https://doi.org/10.5063/f1",
            {("url", "https://alder.example.org/1/a.pdf"), ("doi", "10.5063/f1")},
        ),
        ("https://alder.example.org/?u=https://x.org", {("url", "https://alder.example.org/?u=https://x.org")}),
    ],
)
def test_addresses_with_a_label_and_in_a_list(text: str, values: set[tuple[str, str]]) -> None:
    assert set(identifiers_in(text)) == values
