"""Protection services in front of a site: what they send instead of a document is told from what web servers send.

The pages are written after those that are met in the wild, cut down to what they are known by.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from metaharvest.config.field_types import check_network
from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError
from metaharvest.model import Finding
from support.fetching import WaitingFetcher as Fetcher
from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer
from support.mails import words_of


@dataclass(frozen=True)
class Page:
    """What a service answers; `name` is what the finding calls it."""

    name: str
    status: int
    body: str
    headers: dict[str, str] = field(default_factory=dict)


def html(title: str, body: str = "") -> str:
    head = f"<head><meta charset='utf-8'><title>{title}</title></head>"
    return f"<!DOCTYPE html>\n<html lang='en'>{head}<body>{body}</body></html>"


CHALLENGES = {
    "cloudflare-challenge": Page(
        "Cloudflare",
        403,
        html("Just a moment...", "<script>(function(){window._cf_chl_opt={cvId:'3',cType:'managed'};}());</script>"),
        {"Server": "cloudflare", "cf-mitigated": "challenge", "CF-RAY": "8f1-FRA"},
    ),
    "cloudflare-under-attack": Page(
        "Cloudflare",
        503,
        html("Just a moment...", "<h2>Checking your browser before accessing</h2>"),
        {"Server": "cloudflare"},
    ),
    "cloudflare-firewall": Page(
        "Cloudflare",
        403,
        html("Attention Required! | Cloudflare", "<h1>Sorry, you have been blocked</h1>"),
        {"Server": "cloudflare"},
    ),
    "cloudflare-in-plain-text": Page(
        "Cloudflare", 403, "error code: 1020\n", {"Server": "cloudflare", "Content-Type": "text/plain"}
    ),
    "cloudflare-in-short": Page(
        "Cloudflare",
        403,
        "<html>\r\n<head><title>403 Forbidden</title></head>\r\n<body>\r\n<center><h1>403 Forbidden</h1></center>\r\n"
        "<hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n",
        {"Server": "cloudflare"},
    ),
    "akamai": Page(
        "Akamai",
        403,
        "<HTML><HEAD>\n<TITLE>Access Denied</TITLE>\n</HEAD><BODY>\n<H1>Access Denied</H1>\nYou don't have permission "
        "to access this on this server.<P>\nReference&#32;&#35;18&#46;2d&#46;17\n<P>https&#58;&#47;&#47;errors"
        "&#46;edgesuite&#46;net&#47;18</P>\n</BODY>\n</HTML>\n",
        {"Server": "AkamaiGHost"},
    ),
    "aws-waf-captcha": Page(
        "AWS WAF",
        405,
        html("Human Verification", "<script>window.awsWafCookieDomainList = [];window.gokuProps = {};</script>"),
        {"x-amzn-waf-action": "captcha"},
    ),
    "aws-waf-challenge": Page(
        "AWS WAF",
        202,
        html("", '<script>window.awsWafCookieDomainList = []; window.gokuProps = {"key":"A"};</script>'),
        {"x-amzn-waf-action": "challenge", "Server": "CloudFront"},
    ),
    "aws-waf-challenge-without-a-page": Page("AWS WAF", 202, "", {"x-amzn-waf-action": "challenge"}),
    "cloudfront": Page(
        "Amazon CloudFront",
        403,
        "<HTML><HEAD><TITLE>ERROR: The request could not be satisfied</TITLE></HEAD><BODY><H1>403 ERROR</H1>\n"
        "Request blocked.\nWe can't connect to the server for this app or website at this time.</BODY></HTML>",
        {"Server": "CloudFront"},
    ),
    "sucuri": Page(
        "Sucuri",
        403,
        html("Sucuri WebSite Firewall - Access Denied", "<h1>Access Denied - Sucuri Website Firewall</h1>"),
        {"Server": "Sucuri/Cloudproxy", "X-Sucuri-ID": "11005", "x-sucuri-block": "EXP"},
    ),
    "imperva-200": Page(
        "Imperva",
        200,
        '<html style="height:100%"><head><META NAME="ROBOTS" CONTENT="NOINDEX"></head><body><iframe id="main-iframe" '
        'src="/_Incapsula_Resource?CWUDNSAI=23&xinfo=4">Request unsuccessful. Incapsula incident ID: 123-456</iframe>'
        "</body></html>",
        {"X-Iinfo": "4-123", "X-CDN": "Imperva"},
    ),
    "anubis": Page(
        "Anubis",
        200,
        html(
            "Making sure you&#39;re not a bot!",
            "<link rel='stylesheet' href='/.within.website/x/xess/xess.min.css'>"
            "<script src='/.within.website/x/cmd/anubis/static/js/main.mjs'></script>",
        ),
    ),
    "ddos-guard": Page(
        "DDoS-Guard",
        403,
        html("DDoS-Guard", "<script src='/.well-known/ddos-guard/js-challenge/index.js'></script>"),
        {"Server": "ddos-guard"},
    ),
    "f5-200": Page(
        "F5",
        200,
        "<html><head><title>Request Rejected</title></head><body>The requested URL was rejected. Please consult with "
        "your administrator.<br><br>Your support ID is: 1234</body></html>",
    ),
    "mod-security": Page(
        "ModSecurity",
        406,
        "<head><title>Not Acceptable!</title></head><body><h1>Not Acceptable!</h1><p>An appropriate representation of "
        "the requested resource could not be found on this server. This error was generated by Mod_Security.</p>",
        {"Server": "Apache"},
    ),
    "wordfence": Page(
        "Wordfence",
        503,
        html("Your access to this site has been limited by the site owner", "<p>Generated by Wordfence at Fri</p>"),
    ),
    "datadome": Page(
        "DataDome",
        403,
        '{"url":"https://geo.captcha-delivery.com/captcha/?initialCid=A"}',
        {"X-DataDome": "protected", "Content-Type": "application/json"},
    ),
    "a-waf-without-a-name": Page("", 403, html("Web Page Blocked!", "<p>Attack ID: 20000051</p>")),
    "fastly-200": Page("", 200, html("Client Challenge", "<script src='/_fs-ch-1T1wmsGaOgGaSxcX/script.js'></script>")),
    "a-captcha-without-a-name": Page("", 200, html("Captcha", "<form></form>")),
}

NONE = {
    "nginx": Page("http.status", 403, html("403 Forbidden"), {"Server": "nginx"}),
    "nginx-behind-cloudflare": Page(
        "http.status", 403, html("403 Forbidden", "<center>nginx</center>"), {"Server": "cloudflare"}
    ),
    "password-behind-imperva": Page(
        "http.status", 401, html("Sign in"), {"X-Iinfo": "4-1", "WWW-Authenticate": "Basic"}
    ),
    "maintenance-behind-akamai": Page("http.status", 503, html("503 Service Unavailable"), {"Server": "AkamaiGHost"}),
    "a-drupal-that-wants-a-login": Page("http.status", 403, html("Access denied | Alder Creek"), {"Server": "Apache"}),
    "not-found-behind-cloudflare": Page("http.status", 404, html("404 Not Found"), {"Server": "cloudflare"}),
    "cloudfront-without-the-file": Page(
        "http.status",
        404,
        html("ERROR: The request could not be satisfied", "Error from origin"),
        {"Server": "CloudFront"},
    ),
    "a-web-page-behind-fastly": Page(
        "", 200, html("Alder Creek data", "<script src='/_fs-ch-1T1wmsGaOgGaSxcX/script.js'></script>")
    ),
    "a-web-page-behind-cloudflare": Page(
        "",
        200,
        html("Alder Creek data", "<script src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'></script>"),
        {"Server": "cloudflare", "X-Iinfo": "4-1"},
    ),
}


@pytest.fixture
def fetcher() -> Iterator[Fetcher]:
    http = HttpSettings(contact_url="https://example.org/harvester", allow_networks=(check_network("127.0.0.0/8"),))
    with Fetcher(http, name="Example network", administrator="steward@example.org") as fetcher:
        yield fetcher


def answer(server: HttpServer, page: Page, path: str = "/x.xml") -> str:
    headers = {"Content-Type": "text/html; charset=utf-8", **page.headers}
    return server.serve(path, page.body.encode(), status=page.status, headers=headers)


def finding_of(fetcher: Fetcher, url: str) -> tuple[Finding, bool]:
    with pytest.raises(FetchError) as caught:
        fetcher.fetch(url)
    [finding] = caught.value.findings
    return finding, caught.value.transient


@pytest.mark.parametrize("page", CHALLENGES.values(), ids=CHALLENGES)
def test_a_challenge_is_told_with_a_letter_to_the_web_administrator(
    server: HttpServer, fetcher: Fetcher, page: Page
) -> None:
    url = answer(server, page)
    finding, transient = finding_of(fetcher, url)
    assert finding.rule == "http.blocked"
    assert f"a protection service{f' ({page.name})' if page.name else ''} keeps the harvester out" in finding.message
    assert transient == (page.status in (429, 503))
    assert finding.remedy.startswith("Send this to your web administrator: ")
    assert f'User-Agent is "{fetcher.user_agent}"' in finding.remedy
    assert "https://example.org/harvester" in finding.remedy
    assert "From: steward@example.org" in finding.remedy
    assert url in finding.remedy
    assert len(finding.remedy) < 800


def test_the_letter_of_a_repository_speaks_of_no_harvest_list(harvester: Harvester, server: HttpServer) -> None:
    url = answer(server, CHALLENGES["anubis"], "/oai")
    told = " ".join(harvester("oai", "identify", url).err.split())
    assert "Send this to your web administrator: " in told
    assert f"It asks for {url}?verb=Identify and the pages that follow it." in told


@pytest.mark.parametrize("page", NONE.values(), ids=NONE)
def test_what_the_web_server_itself_says_is_not_blamed_on_a_service(
    server: HttpServer, fetcher: Fetcher, page: Page
) -> None:
    url = answer(server, page)
    if page.status == 200:
        assert fetcher.fetch(url)[1] == page.body.encode()
    else:
        assert finding_of(fetcher, url)[0].rule == page.name


def test_a_compressed_challenge_is_recognised(server: HttpServer, fetcher: Fetcher) -> None:
    for number, name in enumerate(("anubis", "cloudflare-firewall")):
        page = CHALLENGES[name]
        headers = {"Content-Type": "text/html", "Content-Encoding": "gzip"}
        url = server.serve(f"/{number}", gzip.compress(page.body.encode()), status=page.status, headers=headers)
        assert finding_of(fetcher, url)[0].rule == "http.blocked"


def test_a_document_that_speaks_of_challenges_is_a_document(server: HttpServer, fetcher: Fetcher) -> None:
    content = eml("a.1.1", "A captcha study: just a moment, _cf_chl_opt and gokuProps")
    for kind in ("application/xml", "text/html"):
        url = server.serve("/a.xml", content, headers={"Content-Type": kind, "Server": "cloudflare"})
        assert fetcher.fetch(url)[1] == content


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", ["anubis", "cloudflare-challenge", "imperva-200"])
def test_a_contact_reads_what_to_send_whether_the_list_or_a_document_is_kept_from_us(
    harvester: Harvester, server: HttpServer, name: str
) -> None:
    page = CHALLENGES[name]
    harvester.add_site("list-kept", answer(server, page, "/kept.xml"))
    harvester.add_site("one-kept", publish(server, "a.1.1", "a.2.1"))
    url = answer(server, page, "/a.2.1.xml")
    run = harvester.run("2026-11-20")
    assert {site["site_name"]: site["status"] for site in run["sites"]} == {
        "list-kept": "list-failed",
        "one-kept": "with-errors",
    }
    assert harvester.outcomes(run["run_id"]) == {"a.1.1": "inserted", "a.2.1": "access-error"}
    assert {rule for _, _, rule in harvester.findings(run["run_id"])} == {"http.blocked"}
    for mail in harvester.mails():
        if mail["To"] in ("list-kept@example.org", "one-kept@example.org"):
            words = words_of(mail)
            assert "Send this to your web administrator" in words
            assert "From: steward@example.org" in words
            assert "metaharvest/" in words
    assert url in " ".join(mail.as_string() for mail in harvester.mails())
