"""URLs as people write them, and which addresses are public."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from metaharvest.fetch.url import BadUrl, UnsupportedScheme, is_allowed, is_loopback, literal_address, parse_url, shown


@pytest.mark.parametrize(
    ("written", "asked_for"),
    [
        ("http://Example.ORG", "http://example.org/"),
        (" https://example.org:443/a b/ä.xml?q=ü&r=[1]#part ", "https://example.org/a%20b/%C3%A4.xml?q=%C3%BC&r=[1]"),
        ("http://example.org:8080/100%25/%C3%A4", "http://example.org:8080/100%25/%C3%A4"),
        ("HTTP://bücher.example/x", "http://xn--bcher-kva.example/x"),
        ("http://straße.example/", "http://xn--strae-oqa.example/"),
        ("http://[2001:DB8::1]:80/x", "http://[2001:db8::1]/x"),
        ("http://under_score.example/x;y=1", "http://under_score.example/x;y=1"),
    ],
)
def test_a_url_is_made_ready_for_the_wire(written: str, asked_for: str) -> None:
    assert parse_url(written).url == asked_for


@pytest.mark.parametrize(
    "text",
    [
        "",
        "eml.xml",
        "//example.org/x",
        "http://",
        "http:///x",
        "http:example.org",
        "http://exa mple.org/",
        "http://example.org:99999/",
        "http://example.org:0/",
        "http://example.org:port/",
        "http://a..b/",
        "http://-a/",
        "http://%31%32/",
        "http://[::1/",
        "http://[12345::1]/",
        "http://example.org/\nHost: other",
        "http://example.org/\x00",
        "http://example.org/\ud800",
        "http://" + "a" * 300 + "/",
        "http://ex\u0378ample.org/",
        "http://u%00:p@example.org/",
        "http://u:p%0A@example.org/",
        "http://u:\ud800@example.org/",
    ],
)
def test_what_is_no_url_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(BadUrl, match=r"^(it|its|'.*' is not) "):
        parse_url(text)


@pytest.mark.parametrize("scheme", ["file", "ftp", "gopher", "dict", "ldap", "javascript", "data"])
def test_only_http_and_https_are_asked_for(scheme: str) -> None:
    with pytest.raises(UnsupportedScheme, match=scheme):
        parse_url(f"{scheme}:///etc/passwd")


def test_a_strange_host_name_is_safe_to_show() -> None:
    with pytest.raises(BadUrl) as caught:
        parse_url("http://exa\u202emple\x85.org" + "x" * 5000)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


def test_credentials_are_taken_out_of_the_url_and_decoded() -> None:
    address = parse_url("https://an%20na:p%40ss:w@example.org/x")
    assert (address.url, address.username, address.password) == ("https://example.org/x", "an na", "p@ss:w")
    assert "p@ss" not in repr(address)


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("/other", True),
        ("https://example.org/x", True),
        ("http://example.org:8080/x", False),
        ("http://www.example.org/x", False),
        ("https://example.org:8443/x", False),
    ],
)
def test_a_redirect_keeps_credentials_only_for_their_own_host(url: str, kept: bool) -> None:
    assert (parse_url("http://u:p@example.org/list.xml").following(url).username == "u") is kept


def test_a_redirect_from_https_to_http_loses_the_credentials() -> None:
    assert parse_url("https://u:p@example.org/").following("http://example.org/").username is None


@pytest.mark.parametrize(
    "url",
    [
        "http://u:secret@example.org/x",
        "http://u:sec ret@example.org/x",
        "http://u:secret@bad host/x",
        "http://u:se/cret@example.org/x",
        "http://u:se#cret@example.org/x",
        "http://u:se?cret@example.org/x",
        "http:u:secret@example.org/x",
        "//u:secret@example.org/x",
        "http:\\\\u:secret@example.org/x",
        "ftp://u:secret@example.org/x",
        "http://u:sec\nret@example.org/x",
    ],
)
def test_a_password_is_never_shown_however_the_url_is_broken(url: str) -> None:
    assert "cret" not in shown(url)
    assert "sec" not in shown(url)


PUBLIC = [
    *("9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255"),
    *("172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.167.255.255"),
    *("198.17.255.255", "198.20.0.0", "203.0.114.0", "223.255.255.255", "192.31.196.1", "2001:200::1", "2001:db7::1"),
    *("2001:db9::1", "3ffe:ffff::1", "3fff:1000::1", "2a00:1450::1", "2620:4f:8000::1"),
    *("8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "2002:808:808::1", "64:ff9b::808:808"),
]
NOT_PUBLIC = [
    *("0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1"),
    *("192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::7f00:1", "::ffff:10.0.0.1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1"),
    *("ff02::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:a01:203::1", "64:ff9b::7f00:1"),
    *("64:ff9b::a01:203", "64:ff9b:1::1"),
    *("192.0.0.1", "192.0.0.8", "192.0.0.9", "192.0.0.170", "192.0.0.255", "198.51.100.7", "203.0.113.9"),
    *("100.127.255.255", "172.31.255.255", "239.1.1.1", "0.1.2.3", "198.19.255.255", "::ffff:192.0.0.8"),
    *("3fff::1", "3fff:fff:ffff::1", "2001:0:4136:e378::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:30::1"),
    *("2001:1ff:ffff::1", "5f00::1", "100:0:0:1::1", "2002:c000:8::1", "64:ff9b::c000:8", "::ffff:0:10.0.0.1"),
    *("::10.0.0.1", "ff0e::1", "::ffff:127.0.0.1", "3fff:0:1::", "4000::1"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_harvested(address: str) -> None:
    assert is_allowed(address, ())


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_may_not(address: str) -> None:
    assert not is_allowed(address, ())


def test_a_network_that_is_allowed_may_be_harvested_in_its_mapped_form_too() -> None:
    allowed = (ip_network("10.0.0.0/8"),)
    assert is_allowed("10.1.2.3", allowed)
    assert is_allowed("::ffff:10.1.2.3", allowed)
    assert not is_allowed("2002:a01:203::1", allowed)
    assert not is_allowed("127.0.0.1", allowed)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "localhost", "a.localhost."),
        *("localhost.", "127.0.0.1.", "127.1.", "2130706433.", "0x7f.1.", "localhost.."),
    ],
)
def test_an_address_is_known_in_every_spelling(host: str) -> None:
    assert literal_address(host) == "127.0.0.1"


def test_a_host_name_is_no_address() -> None:
    assert literal_address("example.org") is None
    assert literal_address("[::1]") == "::1"


@pytest.mark.parametrize(
    ("host", "is_it"),
    [
        *(("localhost", True), ("LOCALHOST.", True), ("127.9.9.9", True), ("127.1.", True), ("[::1]", True)),
        *(("[::ffff:127.0.0.1]", True), ("10.0.0.1", False), ("example.org", False), ("localhost.org", False)),
        *(("", False), ("[fe80::1%25eth0]", False)),
    ],
)
def test_what_is_this_machine(host: str, is_it: bool) -> None:
    assert is_loopback(host) is is_it
