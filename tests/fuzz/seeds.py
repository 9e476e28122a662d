"""The real shapes that mutations start from, and what people with bad intentions put into them."""

from __future__ import annotations

import gzip
from pathlib import Path

from metaharvest.config.paths import data_folder
from support.eml_documents import NUMBERS, additional, eml
from support.harvester import eml as small_eml
from support.harvester import harvest_list
from support.hostile_oai import FORMAT, IDENTIFY, answer, errors, namespaces, record, records

_SITES: Path = data_folder("sample_sites")


def lists() -> list[bytes]:
    """The sample sites' harvest lists, and a short one."""
    short = harvest_list([("alder.1.1", "http://example.org/1"), ("alder.2.1", "http://example.org/?a=1&amp;b=2")])
    return [short, *(file.read_bytes() for file in sorted(_SITES.glob("**/harvest-list.xml")))]


def documents() -> list[bytes]:
    """The sample sites' documents, good and bad, and a small one of every EML version."""
    files = sorted(file for file in _SITES.glob("**/*.xml") if file.name != "harvest-list.xml")
    units = additional("2.2.0", '<unitList><unit id="u" name="u"/></unitList>', "<describes>creator-1</describes>")
    small = [small_eml("alder.1.1"), *(eml(number) for number in NUMBERS), eml("2.2.0", after=units)]
    return [*small, *(file.read_bytes() for file in files)]


_XML = b"<eml/>\n" * 30
_ZIPPED = gzip.compress(_XML, mtime=0)
_OK = b"HTTP/1.1 200 OK\r\n"


def answers() -> list[bytes]:
    """Whole HTTP answers, good and bad, as they are on the wire."""
    page = b"<html><head><title>Just a moment...</title></head></html>"
    return [
        _OK + b"Content-Type: application/xml; charset=utf-8\r\nContent-Length: %d\r\n\r\n%b" % (len(_XML), _XML),
        _OK + b'ETag: W/"1"\r\nLast-Modified: Fri, 20 Nov 2026 10:00:00 GMT\r\n\r\n' + _XML,
        _OK + b"Transfer-Encoding: chunked\r\n\r\n7\r\n<eml/>\n\r\n3;x=y\r\nabc\r\n0\r\nTrailer: y\r\n\r\n",
        _OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (len(_ZIPPED), _ZIPPED),
        _OK
        + b"Content-Encoding: x-gzip\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
        % (len(_ZIPPED), _ZIPPED),
        b"HTTP/1.0 200\r\n\r\n" + _XML,
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-6/210\r\n\r\n<eml/>\n",
        b"HTTP/1.1 304 Not Modified\r\n\r\n",
        b"HTTP/1.1 301 Moved\r\nLocation: http://user:secret@[::1]:1/x?y#z\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: ../a b\xc3\xa9\r\n\r\n",
        b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=x\r\nSet-Cookie: a=b\r\n\r\nno",
        b"HTTP/1.1 403 Forbidden\r\nServer: cloudflare\r\nContent-Type: text/html\r\n\r\n" + page,
        b"HTTP/1.1 404 Not Found\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(page, mtime=0),
        b"HTTP/1.1 429 Slow down\r\nRetry-After: 120\r\n\r\n",
        b"HTTP/1.1 503 Busy\r\nRetry-After: Fri, 20 Nov 2026 10:00:00 GMT\r\n\r\n" + page,
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + _OK + b"\r\n" + _XML,
        b"HTTP/2 200\r\n\r\n" + _XML,
        b"SSH-2.0-OpenSSH_9.2\r\n",
    ]


def robots() -> list[bytes]:
    """Files robots.txt: one as people write it, and some that cost much."""
    numbers = range(200)
    agents = b"".join(b"User-agent: %d\n" % number for number in numbers)
    rules = b"".join(b"Disallow: /*%d*a$\n" % number for number in numbers)
    return [
        b"User-agent: *\nDisallow: /private/\nAllow: /\nCrawl-delay: 10\nSitemap: https://example.org/s.xml\n",
        b"\xef\xbb\xbfuser-agent:metaharvest/1.0\r\nUser-agent: x\r\nDisallow: /*.xml$ # not these\r\n",
        agents + b"User-agent: *\n" + rules,
        b"User-agent: *\nDisallow: /" + b"*a" * 2_000,
    ]


def metacat() -> list[bytes]:
    """Answers of a Metacat's old interface."""
    return [
        b'<?xml version="1.0"?>\n<login>\n<message>User is in</message>\n<sessionId>1</sessionId></login>',
        b"<unauth_login>\n<message>Access denied for http://user:secret@example.org/</message>\n</unauth_login>",
        b"<?xml version='1.0'?><error>\nDocument a.1.2 not found &#169; <b>http://user:secret@example.org</b>\n</error>",
        b"<success>insert of a.1.1</success>",
        b"12;eml://ecoinformatics.org/eml-2.1.1",
        b"<idList scope='a'>\n<docid>a.1.1</docid>\n<docid> a.1.2 </docid>\n</idList>",
        b"<metacatVersion>Metacat 2.8.5</metacatVersion>",
        b"<user>\n<username>\nuid=a,o=LTER\n</username>\n</user>",
        b"<username>" + b" " * 3_000,
        b"<docid>" * 500,
        b"<error>&#" + b"1" * 5_000 + b";",
    ]


def node() -> list[bytes]:
    """Answers of a DataONE member node."""
    types = b"http://ns.dataone.org/service/types/v2.0"
    entry = b"<identifier>a.1.1</identifier><formatId>f</formatId><checksum algorithm='MD5'>0</checksum><size>1</size>"
    return [
        b'<d:systemMetadata xmlns:d="%b">%b<obsoletedBy>a.1.2</obsoletedBy></d:systemMetadata>' % (types, entry),
        b'<d:objectList xmlns:d="%b" total="1"><objectInfo>%b</objectInfo></d:objectList>' % (types, entry),
        b'<d:identifier xmlns:d="%b">a</d:identifier>' % types,
        b'<error name="NotFound" errorCode="404" detailCode="1020"><description>Traceback (most recent call last):\n'
        b"no http://user:secret@example.org/</description></error>",
        b"<objectList total='" + b"9" * 5_000 + b"'/>",
        b"<systemMetadata>" + b"<a/>" * 2_000 + b"</systemMetadata>",
        b"<!DOCTYPE a [<!ENTITY b 'c'>]><error name='x'>&b;</error>",
        b"<html><head><title>502 Bad Gateway</title></head></html>",
    ]


def repositories() -> list[bytes]:
    """Answers of an OAI-PMH repository: usual ones, and small shapes of the costly ones."""
    listed = records(record(1), record(2, header=b"<setSpec>a</setSpec>"), token=b"next")
    header = b"<header status='deleted'><identifier>oai:a:1</identifier><datestamp>2026-01-01</datestamp></header>"
    sets = b"<set><setSpec>a</setSpec><setName>A</setName></set>" * 20
    return [
        listed,
        ('<?xml version="1.0" encoding="UTF-16"?>' + listed.decode()).encode("utf-16"),
        listed[:-60],
        listed.replace(b"<metadata>", b"<metadata>&nbsp;\0\xff", 1),
        records(*(record(each, about=b"<about><a/></about>" * 20) for each in range(5)), attributes=namespaces(200)),
        records(record(1, metadata=b"<a>" + b"<a/>" * 2_000 + b"</a>")),
        records(record(1, metadata=b"<a " + b"".join(b"a%d='' " % each for each in range(1_000)) + b"/>")),
        records(record(1, metadata=b"<a " + b"b" * 10_000)),
        records(record(1, metadata=b"<a>" * 1_500 + b"</a>" * 1_500)),
        records(record(1, header=b"<setSpec>" + b"s" * 5_000 + b"</setSpec>"), token=b"t" * 10_000),
        records(token=b"t<!-- -->" * 500),
        answer("ListIdentifiers", header * 3 + b"<resumptionToken completeListSize='3'/>"),
        answer("GetRecord", record(1)),
        answer("Identify", IDENTIFY),
        answer("Identify", IDENTIFY + b"<description><a/></description>" * 200),
        answer("Identify", IDENTIFY.replace(b"repositoryName>", b"dc:title>")),
        answer("Identify", IDENTIFY + b"<adminEmail>a@example.org</adminEmail>" * 200),
        answer("ListMetadataFormats", FORMAT * 20),
        answer("ListSets", sets + b"<resumptionToken>next</resumptionToken>"),
        errors(b'<error code="noRecordsMatch">none</error>' * 30),
        errors(b'<error code="badArgument">' + b"x<!-- -->" * 1_000 + b"</error>"),
        errors(b'<error code="badArgument">' + b"x<?y?>" * 1_000 + b"</error>"),
        b"<!DOCTYPE a [<!ENTITY b 'c'>]>" + listed,
        listed.replace(b"OAI/2.0/", b"OAI/1.1/OAI_ListRecords"),
    ]


TEXTS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "'; DROP TABLE harvest_log; --",
    '=HYPERLINK("http://evil.example")',
    "+1+1|cmd",
    "-2+3",
    "@SUM(A1)",
    "x\r\nBcc: everybody@example.org\r\n\r\nbody",
    "=?utf-8?q?evil?=",
    "\x1b[2J\x1b]0;title\x07\x1b[31m",
    "\x9b31m\x90q\x9c",
    "\u202egnp.exe\u202c\u2066\u2069\u200f",
    "\u2028\u2029\x85\x0b\x0c",
    "\ufeff\ufffe\uffff\U0010ffff",
    "\ud800",
    "\x00",
    "{{ 7*7 }}{% raw %}${x}%s%n{0}",
    "../../../../etc/passwd",
    "C:\\x\\..\\con",
    "`backticks` and `code",
    "http://user:secret@example.org/",
    "a" * 5000,
    "é漢🦆" * 20,
)
"""Texts that mean something to a browser, a spreadsheet, a mail program, a terminal, a database or a template."""

PIECES = (
    *(text.encode("utf-8", "surrogatepass") for text in TEXTS),
    b"&",
    b"<",
    b">",
    b"]]>",
    b"<!--",
    b"-->",
    b"<![CDATA[",
    b"<?",
    b"?>",
    b"\xe9",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\xef\xbb\xbf",
    b"&amp;",
    b"&nbsp;",
    b"&x;",
    b"&#0;",
    b"&#x1b;",
    b"&#x9b;",
    b"&#xD800;",
    b"&#1114112;",
    b"&#x202e;",
    b"&#99999999999;",
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>",
    b"<!DOCTYPE x SYSTEM 'file:///etc/passwd'>",
    b"<!DOCTYPE html>",
    b"<html>",
    b"<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='file:///etc/passwd'/>",
    b" xmlns=''",
    b" xmlns:a='b'",
    b" a:b='c'",
    b" id='creator-1'",
    b" xml:base='file:///'",
    b" a='1' a='2'",
    b"<document>",
    b"</document>",
    b"<docid>",
    b"</eml:eml>",
    b"<references>nothing</references>",
    b"-1",
    b"9223372036854775808",
    b"1e5",
    b"0x10",
    b"\xd9\xa3",
    b"1" * 30,
    b"<a>" * 300,
    b"</a>" * 300,
    b"<a/>" * 3000,
    b" " * 5000,
    b"\n" * 5000,
    b"<a " + b"b" * 5000,
    b" c='%b'" % (b"d" * 5000),
)
"""Pieces that are put into lists and documents."""

HTTP_PIECES = (
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b":",
    b" ",
    b"\0",
    b"\x1b[31m",
    b"\xff",
    b"\x80",
    b"Content-Length: 99999999999999999999\r\n",
    b"Content-Length: -1\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Length: 7, 8\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Content-Encoding: br\r\n",
    b"Content-Encoding: \x1b[31m\r\n",
    b"Content-Type: text/html; charset=utf-7\r\n",
    b"Location: \r\n",
    b"Location: //\r\n",
    b"Location: http://[\r\n",
    b"Location: javascript:alert(1)\r\n",
    b"Location: http://\xe2\x80\xae.example/\r\n",
    b"Location: /\x1b[2J\r\n",
    b"Retry-After: -5\r\n",
    b"Retry-After: 1e9\r\n",
    b"Retry-After: Mon, 99 Foo 99999 99:99:99 XYZ\r\n",
    b"Retry-After: " + b"9" * 400 + b"\r\n",
    b"Retry-After: \xc2\xb2\r\n",
    b"ETag: " + b"e" * 3000 + b"\r\n",
    b"ETag: \x1b]0;x\x07\r\n",
    b"X: " + b"x" * 90_000 + b"\r\n",
    b"X: y\r\n" * 400,
    b" folded\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 999 \xe2\x80\xae\r\n",
    b"HTTP/1.1 200 " + b"r" * 3000 + b"\r\n",
    b"HTTP/1.1 500 @" + b"://a:b" * 16_000 + b"\r\n",
    b"HTTP/3 200\r\n",
    b"HTTP/0.9\r\n",
    b"Server: cloudflare\r\n",
    b"Connection: close, keep-alive, upgrade\r\nUpgrade: h2c\r\n",
    b"ffffffffffffffff\r\n",
    b"-1\r\n",
    b'Alt-Svc: h3=":1"\r\n',
    b"Strict-Transport-Security: max-age=9\r\n",
    b"Set-Cookie: a=b; domain=.\r\n",
)
"""Pieces that are put into HTTP answers."""
