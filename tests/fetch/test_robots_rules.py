"""The rules of a robots.txt for the harvester, and the cost of the nastiest files."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from metaharvest.fetch.robots import MOST_RULES, rules_for

SITE = "https://example.org"


def allows(text: str, path: str) -> bool:
    return rules_for("metaharvest", text.encode()).allow(SITE + path)


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        ("", "/a", True),
        ("User-agent: *\nDisallow: /a", "/a.xml", False),
        ("User-agent: *\nDisallow: /a", "/b.xml", True),
        ("user-AGENT:*\ndisallow:/a", "/a", False),
        ("User-agent *\nDisallow /a", "/a", False),
        ("User-agent: *\nDissallow: /a", "/a", False),
        ("Disallow: /a\n", "/a", True),  # no group
        ("User-agent: a\nUser-agent: *\nUser-agent: b\nDisallow: /a", "/a", False),
        ("User-agent: *\nDisallow: /a\nUser-agent: b\nDisallow: /b", "/b", True),
        ("User-agent: *\nDisallow: /a\n\nUser-agent: b\nDisallow: /b\nUser-agent: *\nDisallow: /c", "/c", False),
        ("User-agent: *\nCrawl-delay: 3\nUser-agent: b\nDisallow: /b", "/b", True),
        ("User-agent: *\nSitemap: /s\nUser-agent: b\nDisallow: /b", "/b", False),
        ("User-agent: *\nDisallow: /\nUser-agent: MetaHarvest\nAllow: /", "/a", True),
        ("User-agent: *\nAllow: /\nUser-agent: metaharvest/1.0 (x)\nDisallow: /", "/a", False),
        ("User-agent: metaharvester\nDisallow: /", "/a", True),
        ("User-agent: meta\nDisallow: /", "/a", True),
        ("User-agent: metaharvest\nUser-agent: *\nDisallow: /", "/a", False),
        ("User-agent: *\nDisallow: /\nUser-agent: metaharvest\nDisallow:", "/a", True),
        ("User-agent: *\nDisallow: /*.xml$", "/a/b.xml", False),
        ("User-agent: *\nDisallow: /*.xml$", "/a/b.xml?c", True),
        ("User-agent: *\nDisallow: /\nAllow: /a/", "/a/b", True),
        ("User-agent: * # all\nDisallow: /a # not this\n", "/a", False),
        ("\ufeffUser-agent: *\r\nDisallow: /a\r\n", "/a", False),
    ],
)
def test_what_a_robots_txt_says(text: str, path: str, allowed: bool) -> None:
    assert allows(text, path) is allowed


def agents_and_rules(number: int, star: str = "") -> bytes:
    agents = "".join(f"User-agent: {n}\n" for n in range(number))
    rules = "".join(f"Disallow: /{n}\n" for n in range(number))
    return f"{agents}{star}{rules}".encode()


def repeated(piece: bytes) -> bytes:
    return piece * (524_288 // len(piece))


NASTY = {
    "agents and rules": agents_and_rules(12_000),
    "agents and rules for all": agents_and_rules(12_000, "User-agent: *\n"),
    "our name again and again": repeated(b"User-agent: metaharvest\nUser-agent: *\n") + b"Disallow: /a\n" * 1000,
    "one rule of wildcards": b"User-agent: *\nDisallow: /" + repeated(b"*a"),
    "rules of wildcards": b"User-agent: *\n"
    + b"".join(b"Disallow: /*%d" % n + b"*a" * 100 + b"\n" for n in range(2500)),
    "wildcards at the limit": b"User-agent: *\n"
    + b"".join(b"Disallow: /%d" % n + b"*a" * 10 + b"\n" for n in range(9999)),
    "dollars": b"User-agent: *\n" + b"".join(b"Disallow: /%d" % n + b"$" * 20 + b"\n" for n in range(9000)),
    "escapes": b"User-agent: *\nDisallow: /" + repeated(b"%41"),
    "lines of nothing": repeated(b"\n"),
    "colons": repeated(b":"),
    "comments": repeated(b"#\r"),
}


@pytest.mark.slow
@pytest.mark.parametrize("which", NASTY)
def test_the_nastiest_cost_little(which: str) -> None:
    url = f"{SITE}/" + "a" * 2000
    tracemalloc.start()
    began = time.process_time()
    rules = rules_for("metaharvest", NASTY[which])
    for _ in range(10):
        rules.allow(url)
    seconds, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 20
    assert peak < 100_000_000


def test_rules_beyond_the_limits_are_counted() -> None:
    many = "User-agent: *\n" + "".join(f"Disallow: /{n}\n" for n in range(MOST_RULES + 5))
    rules = rules_for("metaharvest", (many + "Disallow: /" + "*a" * 11 + "\nDisallow: /" + "b" * 3000).encode())
    assert rules.left_out == 7
    assert not rules.allow(f"{SITE}/1")
