"""A DataONE member node as a target: what a real one has afterwards, and what nodes of other kinds answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest

from metaharvest.config.settings import Settings
from metaharvest.errors import SettingsError, TargetError
from metaharvest.model import Action, FetchedDocument, ListedDocument
from metaharvest.rules import RULES
from metaharvest.targets.base import Upload
from metaharvest.targets.dataone import listing
from metaharvest.targets.dataone.session import DataOneSession
from metaharvest.targets.dataone.target import DataOneTarget
from metaharvest.validation.schemas import VERSIONS
from support.gmn import HARVESTER, READER, MemberNode
from support.harvester import eml
from support.http_server import Asking, HttpServer, answering, in_turn, reset_after

TYPE = "eml://ecoinformatics.org/eml-2.1.1"
AT = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)

Make = Callable[..., DataOneTarget]


@pytest.fixture
def target_at(tmp_path: Path) -> Make:
    """A target at this URL, with this token and these other keys."""

    def made(url: str, token: str = "", **keys: object) -> DataOneTarget:
        section = {"kind": "dataone", "url": url, "rights_holder": HARVESTER, **keys}
        if token:
            (tmp_path / "token").write_text(token)
            (tmp_path / "token").chmod(0o600)
            section["token"] = f"file:{tmp_path / 'token'}"
        return DataOneTarget(Settings.model_validate({"target": section, "http": {"retry_wait": 0.01}}))

    return made


@pytest.fixture
def session(node: MemberNode, target_at: Make) -> Iterator[DataOneSession]:
    """A session at the real node."""
    with target_at(node.url, node.token()).session(None) as opened:
        yield opened


def upload(docid: str, content: bytes = b"", document_type: str = TYPE) -> Upload:
    document_id, _, revision = docid.rpartition(".")
    document = ListedDocument(document_id, int(revision), document_type, "https://example.org/1.xml")
    content = content or eml(docid)
    return Upload(FetchedDocument(document, content, hashlib.sha256(content).hexdigest(), 0.1), 1, AT)


def refused(session: DataOneSession, *arguments: str | bytes, transient: bool = False) -> tuple[str, str]:
    """Rule and message of a refusal of this upload."""
    with pytest.raises(TargetError) as caught:
        session.upload(upload(*arguments))  # type: ignore[arg-type]
    (finding,) = caught.value.findings
    assert caught.value.transient is transient
    assert finding.rule in RULES
    assert finding.remedy.endswith(".")
    return finding.rule, finding.message


def revisions(session: DataOneSession, *document_ids: str) -> dict[str, int]:
    return {document_id: held.revision for document_id, held in session.holdings(document_ids).items()}


# -- a real node: uploads


def test_a_pid_that_is_there_with_the_same_content_is_a_success(node: MemberNode, session: DataOneSession) -> None:
    node.put("a.1.1", eml("a.1.1"))
    node.put("a.1.2", eml("a.1.2"), supersedes="a.1.1")
    assert session.upload(upload("a.1.1")) is Action.INSERT
    assert session.upload(upload("a.1.2")) is Action.UPDATE
    assert node.number() == 2


def test_a_pid_that_is_there_with_other_content_stays_as_it_is(node: MemberNode, session: DataOneSession) -> None:
    node.put("a.1.1", eml("a.1.1", "Another title"))
    rule, message = refused(session, "a.1.1")
    assert rule == "target.other-content"
    assert message.startswith("The repository has other content under a.1.1: ")
    assert node.held() == {"a.1.1": eml("a.1.1", "Another title")}


def test_revisions_ascend_though_the_node_does_not_care(node: MemberNode, session: DataOneSession) -> None:
    node.put("a.1.5", eml("a.1.5"), series_id="a.1")
    node.put("a.1.3", eml("a.1.3"), series_id="a.1", supersedes="a.1.5")
    node.put("a.2.5", eml("a.2.5"))
    for docid in ("a.1.4", "a.2.4"):
        assert refused(session, docid) == ("target.exists", f"The repository has revision 5 of {docid[:3]} by now.")
    assert session.upload(upload("a.1.6")) is Action.UPDATE
    assert node.stored()["a.1.6"].obsoletes == "a.1.3"


def test_a_series_whose_objects_have_other_pids_is_gone_on_with(node: MemberNode, session: DataOneSession) -> None:
    node.put("urn:uuid:1", b"<eml/>", series_id="a.1", format_id="text/xml")
    assert revisions(session, "a.1") == {}
    assert session.upload(upload("a.1.1")) is Action.UPDATE
    assert node.stored()["a.1.1"].obsoletes == "urn:uuid:1"
    assert revisions(session, "a.1") == {"a.1": 1}


def test_a_document_id_that_is_the_pid_of_something_else(node: MemberNode, session: DataOneSession) -> None:
    """The docid of `a` with revision 1 is also the document id `a.1`."""
    node.put("a.1", eml("a.1"))
    assert revisions(session, "a.1", "a") == {"a": 1}
    rule, message = refused(session, "a.1.1")
    assert rule == "target.refused"
    assert "Identifier is already in use as a Persistent ID (PID)" in message


def test_an_identifier_may_have_any_character(node: MemberNode, session: DataOneSession) -> None:
    docids = ["oai:host/1?a=b&c#d.1", "a+b.1", "100%.1", "a;b@c=d.1", "q\"u'o<t>e.1", "..a...1"]
    for docid in docids:
        assert session.upload(upload(docid, b"<x/>", "text/xml")) is Action.INSERT
        assert session.holds(docid[:-2], 1, hashlib.sha256(b"<x/>").hexdigest())
    assert node.held() == dict.fromkeys(docids, b"<x/>")
    assert revisions(session, *(docid[:-2] for docid in docids)) == {docid[:-2]: 1 for docid in docids}


@pytest.mark.parametrize("document_id", ["a b", "a" * 799])
def test_an_identifier_that_dataone_has_no_room_for(session: DataOneSession, document_id: str) -> None:
    rule, message = refused(session, f"{document_id}.1")
    assert rule == "target.refused"
    assert message.endswith("is no identifier for DataONE: it may have 800 characters, and no spaces.")
    assert revisions(session, document_id) == {}


def test_uploads_side_by_side(node: MemberNode, session: DataOneSession) -> None:
    docids = [f"a.{number}.1" for number in range(12)]
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(lambda docid: session.upload(upload(docid)), docids)) == {Action.INSERT}
    assert node.held() == {docid: eml(docid) for docid in docids}


def test_the_settings_say_whose_an_object_is_and_who_may_see_it(node: MemberNode, target_at: Make) -> None:
    keys = {"read": [READER], "write": [], "rights_holder": "CN=Owner & Sons,DC=example,DC=org"}
    target = target_at(node.url, node.token(), checksum_algorithm="MD5", format_id="text/xml", **keys)
    with target.session(None) as session:
        session.upload(upload("a.1.1"))
        sysmeta = node.sysmeta("a.1.1")
        assert "<rightsHolder>CN=Owner &amp; Sons,DC=example,DC=org</rightsHolder>" in sysmeta
        assert "<formatId>text/xml</formatId>" in sysmeta
        assert f'<checksum algorithm="MD5">{hashlib.md5(eml("a.1.1")).hexdigest()}</checksum>' in sysmeta
        allowed = f"<allow><subject>{READER}</subject><permission>read</permission></allow>"
        assert f"<accessPolicy>{allowed}</accessPolicy>" in sysmeta
        # Who may not read it hears no more of it.
        assert revisions(session, "a.1") == {"a.1": 1}
    with target_at(node.url, node.token()).session(None) as session:
        rule, message = refused(session, "a.1.1")
        assert (rule, revisions(session, "a.1")) == ("target.login", {})
        assert "NotAuthorized" in message


def test_without_readers_an_object_is_private(node: MemberNode, target_at: Make) -> None:
    with target_at(node.url, node.token(), read=[]).session(None) as session:
        session.upload(upload("a.1.1"))
        assert "<accessPolicy>" not in node.sysmeta("a.1.1").replace(f"<subject>{HARVESTER}</subject>", "")
        assert revisions(session, "a.1") == {"a.1": 1}
        assert session.upload(upload("a.1.2")) is Action.UPDATE


def test_an_object_of_somebody_else_is_not_superseded(node: MemberNode, session: DataOneSession) -> None:
    node.put("a.1.1", eml("a.1.1"), series_id="a.1", owner=READER)
    rule, message = refused(session, "a.1.2")
    assert rule == "target.login"
    assert 'Operation is denied. level="write", pid="a.1.1"' in message
    assert node.number() == 1


# -- a real node: deletions


def test_a_deletion_archives_the_last_revision_and_uses_its_revisions_up(
    node: MemberNode, session: DataOneSession, target_at: Make
) -> None:
    for docid in ("a.1.1", "a.1.2", "a.2.1"):
        session.upload(upload(docid))
    assert session.delete("a.1")
    assert not session.delete("a.1")
    assert not session.delete("a.3")
    assert {pid: each.archived for pid, each in node.stored().items()} == {
        "a.1.1": False,
        "a.1.2": True,
        "a.2.1": False,
    }
    with target_at(node.url, node.token()).session(None) as another:
        for each in (session, another):
            assert revisions(each, "a.1", "a.2") == {"a.2": 1}
            assert each.holds("a.1", 2, hashlib.sha256(eml("a.1.2")).hexdigest())
            for docid in ("a.1.1", "a.1.2"):
                assert refused(each, docid, eml(docid, "Other"))[0] in ("target.exists", "target.other-content")
        assert refused(another, "a.1.2")[0] == "target.exists"
        # It comes back as another chain: a node lets nothing supersede what is archived.
        assert another.upload(upload("a.1.3")) is Action.INSERT
        assert another.upload(upload("a.1.4")) is Action.UPDATE
        assert revisions(another, "a.1") == {"a.1": 4}
        assert another.delete("a.1")
        assert revisions(another, "a.1") == {}
    assert node.stored()["a.1.4"].archived


# -- nodes of other kinds


def object_list(pids: Sequence[str], total: int, start: int = 0) -> bytes:
    infos = "".join(
        f'<objectInfo><identifier>{pid}</identifier><formatId>{TYPE}</formatId><checksum algorithm="MD5">0</checksum>'
        f"<dateSysMetadataModified>2026-01-01T00:00:00Z</dateSysMetadataModified><size>1</size></objectInfo>"
        for pid in pids
    )
    namespace = "http://ns.dataone.org/service/types/v1"
    counts = f'count="{len(pids)}" start="{start}" total="{total}"'
    return f'<n:objectList xmlns:n="{namespace}" {counts}>{infos}</n:objectList>'.encode()


def sysmeta(pid: str, content: bytes, series_id: str = "", algorithm: str = "SHA-256", more: str = "") -> bytes:
    name = {"SHA-256": "sha256", "MD5": "md5"}.get(algorithm, "sha1")
    return (
        '<n:systemMetadata xmlns:n="http://ns.dataone.org/service/types/v2.0">'
        f"<identifier>{pid}</identifier><formatId>{TYPE}</formatId><size>{len(content)}</size>"
        f'<checksum algorithm="{algorithm}">{hashlib.new(name, content).hexdigest()}</checksum>'
        f"<rightsHolder>x</rightsHolder>{more}<seriesId>{series_id}</seriesId></n:systemMetadata>"
    ).encode()


def error(name: str, status: int, code: str, description: str) -> bytes:
    return (
        f'<?xml version="1.0"?><error name="{name}" errorCode="{status}" detailCode="{code}">'
        f"<description>{description}</description></error>"
    ).encode()


NOT_FOUND = answering(error("NotFound", 404, "1420", "No system metadata"), status=404)


class Stub:
    """A node of few words: what it is not told to answer it does not have."""

    def __init__(self, server: HttpServer, total: int = 0) -> None:
        self.server = server
        self.url = server.url("/v2")
        self.list_page(0, 0, [], total)
        if not total:
            self.list_page(0, 1000, [], 0)
        server.route("/v2/object", answering(error("InvalidRequest", 400, "1102", "no pid"), status=400))
        server.otherwise = NOT_FOUND

    def list_page(self, start: int, count: int, pids: Sequence[str], total: int, query: str = "") -> None:
        self.server.serve(f"/v2/object?{query}start={start}&count={count}", object_list(pids, total, start))

    def meta(self, identifier: str, body: bytes) -> None:
        self.server.serve(f"/v2/meta/{quote(identifier)}", body)

    def asked(self, prefix: str) -> list[str]:
        return [each.path for each in self.server.requests if each.path.startswith(prefix)]


@pytest.fixture
def stub(server: HttpServer) -> Stub:
    return Stub(server)


def test_many_documents_are_looked_up_in_the_listing(server: HttpServer, target_at: Make) -> None:
    stub = Stub(server, total=2_500)
    pids = [f"a.{number}.{number % 7 + 1}" for number in range(2_500)]
    for start in (0, 1000, 2000):
        stub.list_page(start, 1000, pids[start : start + 1000], 2_500)
    with target_at(stub.url).session(None) as session:
        asked = [f"a.{number}" for number in range(2_000, 3_000)]
        assert revisions(session, *asked) == {f"a.{number}": number % 7 + 1 for number in range(2_000, 2_500)}
        assert revisions(session, "a.7", "b.7") == {"a.7": 1}
    assert stub.asked("/v2/meta") == []
    assert len(stub.asked("/v2/object?")) == 5


def test_few_documents_of_a_large_node_are_asked_about_one_by_one(server: HttpServer, target_at: Make) -> None:
    stub = Stub(server, total=1_000_000)
    for number in range(20):
        stub.meta(f"a.{number}", sysmeta(f"a.{number}.3", b"x", f"a.{number}"))
    with target_at(stub.url).session(None) as session:
        held = session.holdings([f"a.{number}" for number in range(20)])
    assert {each.revision for each in held.values()} == {3}
    assert {each.sha256 for each in held.values()} == {hashlib.sha256(b"x").hexdigest()}
    assert (len(stub.asked("/v2/meta")), stub.asked("/v2/object?")) == (20, [])


def test_an_unknown_series_of_a_large_node_is_looked_for_by_the_formats_of_documents(
    server: HttpServer, target_at: Make
) -> None:
    stub = Stub(server, total=1_000_000)
    for version in ("2.0.0", "2.0.1", "2.1.0", "2.1.1"):
        query = f"formatId=eml%3A%2F%2Fecoinformatics.org%2Feml-{version}&"
        found = ["a.1.4", "doi:10.5072/1.5"] if version == "2.1.0" else []
        stub.list_page(0, 1000, found, len(found), query)
    stub.list_page(0, 1000, [], 0, "formatId=https%3A%2F%2Feml.ecoinformatics.org%2Feml-2.2.0&")
    with target_at(stub.url).session(None) as session:
        assert revisions(session, "a.1", "a.2") == {"a.1": 4}


def test_many_documents_of_a_large_node_with_other_formats_are_looked_up_by_series(
    stub: Stub, target_at: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listing of such a node has only the formats of documents."""
    monkeypatch.setattr(listing, "_FEW", 0)
    monkeypatch.setattr(listing, "_WHOLE", 0)
    stub.list_page(0, 0, [], 1)
    stub.list_page(0, 1000, ["a.1.2"], 1, f"formatId={quote(TYPE, safe='')}&")
    for each in VERSIONS:
        if each != TYPE:
            stub.list_page(0, 1000, [], 0, f"formatId={quote(each, safe='')}&")
    stub.meta("a.2", sysmeta("a.2.4", b"<oai_dc/>", "a.2"))
    with target_at(stub.url).session(None) as session:
        assert revisions(session, "a.1", "a.2", "a.3") == {"a.1": 2, "a.2": 4}
    assert sorted(stub.asked("/v2/meta")) == ["/v2/meta/a.2", "/v2/meta/a.3"]


def test_a_listing_that_changes_meanwhile_is_read_again(server: HttpServer, target_at: Make) -> None:
    stub = Stub(server, total=1_002)
    first = [f"a.{number}.1" for number in range(1000)]
    server.route("/v2/object?start=0&count=1000", answering(object_list(first, 1_002)))
    pages = (object_list(["a.0.1", "b.1.1"], 1_002, 1000), object_list(["b.1.1", "b.2.1"], 1_002, 1000))
    server.route("/v2/object?start=1000&count=1000", in_turn(*(answering(page) for page in pages)))
    with target_at(stub.url).session(None) as session:
        asked = [f"a.{number}" for number in range(100)]
        assert len(revisions(session, *asked, "b.1", "b.2")) == 102


def test_a_sha256_is_compared_and_any_other_digest_has_the_bytes_fetched(stub: Stub, target_at: Make) -> None:
    stub.meta("a.1.1", sysmeta("a.1.1", b"<x/>"))
    stub.meta("a.2.1", sysmeta("a.2.1", b"<x/>", algorithm="TIGER-192"))
    stub.server.serve("/v2/object/a.2.1", b"<x/>")
    here, other = hashlib.sha256(b"<x/>").hexdigest(), hashlib.sha256(b"<y/>").hexdigest()
    with target_at(stub.url).session(None) as session:
        assert (session.holds("a.1", 1, here), session.holds("a.1", 1, other)) == (True, False)
        assert stub.asked("/v2/object/") == []
        assert (session.holds("a.2", 1, here), session.holds("a.2", 1, other)) == (True, False)
        assert session.upload(upload("a.2.1", b"<x/>")) is Action.INSERT


METACAT = {
    "an id in use": (
        400,
        "InvalidSystemMetadata",
        "1180",
        "The series id a.1 is already used by another object",
        "use",
    ),
    "invalid": (400, "InvalidRequest", "1181", "The document is not valid: element x", "correct the document"),
    "unknown old": (400, "InvalidRequest", "1202", "The object with the provided identifier was not found", "words"),
    "too large": (413, "InsufficientResources", "1160", "Too much", "too large for the repository"),
    "unsupported": (400, "UnsupportedType", "1140", "No such format", "words are the repository's own"),
}


@pytest.mark.parametrize(("status", "name", "code", "description", "remedy"), METACAT.values(), ids=METACAT)
def test_metacat_s_refusals_are_told_with_its_words(
    stub: Stub, target_at: Make, status: int, name: str, code: str, description: str, remedy: str
) -> None:
    stub.server.route("/v2/object", answering(error(name, status, code, description), status=status))
    with target_at(stub.url).session(None) as session, pytest.raises(TargetError) as caught:
        session.upload(upload("a.1.1"))
    (finding,) = caught.value.findings
    assert (finding.rule, caught.value.transient) == ("target.refused", False)
    assert finding.message == f"The repository refused a.1.1: {name} {code}: {description}."
    assert remedy in finding.remedy


def test_no_session_at_metacat_fails_the_login(stub: Stub, target_at: Make) -> None:
    body = error("InvalidToken", 401, "1110", "Session is required to WRITE to the Node.")
    stub.server.route("/v2/object", answering(body, status=401))
    with pytest.raises(TargetError) as caught, target_at(stub.url, "abc").session(None):
        pass
    (finding,) = caught.value.findings
    assert (finding.rule, caught.value.transient) == ("target.login", False)
    assert "InvalidToken 1110: Session is required to WRITE to the Node." in finding.message


def test_a_node_is_asked_again_after_a_refusal(stub: Stub, target_at: Make) -> None:
    target = target_at(stub.url, "abc")
    stub.server.route("/v2/object", answering(error("NotAuthorized", 403, "1100", "not yet"), status=403))
    with pytest.raises(TargetError), target.session(None):
        pass
    stub.server.route("/v2/object", answering(error("InvalidRequest", 400, "1102", "no pid"), status=400))
    with target.session(None) as session:
        assert session.holdings(["a.1"]) == {}


BROKEN = {
    "an HTML page": answering(b"<html><title>500 Internal Server Error</title></html>", status=500),
    "a failure": answering(error("ServiceFailure", 500, "1190", "No space left"), status=500),
    "no answer": reset_after(),
    "in use": answering(error("IdentifierNotUnique", 409, "1120", "in use"), status=409),
    "a time-out of a proxy": answering(b"", status=504),
    "a page of somebody in between": answering(b"<html><title>Please log in</title></html>"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("has_arrived", [True, False])
def test_after_a_doubtful_answer_the_node_is_asked_what_it_has(
    stub: Stub, target_at: Make, name: str, has_arrived: bool
) -> None:
    """The creation of nothing is answered, the document that follows is not, and then looked for."""
    meta = in_turn(NOT_FOUND, answering(sysmeta("a.1.1", eml("a.1.1"), "a.1")) if has_arrived else NOT_FOUND)
    stub.server.route("/v2/meta/a.1.1", meta)
    probe = answering(error("InvalidRequest", 400, "1102", "no pid"), status=400)
    stub.server.route("/v2/object", in_turn(probe, BROKEN[name]))
    with target_at(stub.url).session(None) as session:
        if has_arrived:
            assert session.upload(upload("a.1.1")) is Action.INSERT
        else:
            lasting = {"in use": "target.refused", "a page of somebody in between": "target.answer"}
            rule, _ = refused(session, "a.1.1", transient=name not in lasting)
            assert rule == lasting.get(name, "target.away")
    assert len([each for each in stub.server.requests if each.method == "POST"]) == 2


def test_if_the_node_does_not_tell_what_it_has_the_next_run_asks(stub: Stub, target_at: Make) -> None:
    stub.server.route("/v2/meta/a.1.1", in_turn(NOT_FOUND, answering(b"", status=503)))
    probe = answering(error("InvalidRequest", 400, "1102", "no pid"), status=400)
    in_use = answering(error("IdentifierNotUnique", 409, "1120", "in use"), status=409)
    stub.server.route("/v2/object", in_turn(probe, in_use))
    with target_at(stub.url).session(None) as session:
        assert refused(session, "a.1.1", transient=True)[0] == "target.refused"


def test_a_wrong_address_is_no_empty_node(server: HttpServer, target_at: Make) -> None:
    target = target_at(server.url("/metacat"))
    with target.session(None) as session, pytest.raises(TargetError) as caught:
        session.holdings(["a.1"])
    assert caught.value.findings[0].rule == "target.answer"
    with target.session(None) as session, pytest.raises(TargetError):
        session.upload(upload("a.1.1"))
    ((status, sentence),) = [(each.status, each.sentence) for each in target.check(None)]
    assert (status, "answered 404 Not Found: a page titled '404 Not Found'" in sentence) == ("problem", True)


def test_a_page_that_is_no_node_is_told_as_such(server: HttpServer, target_at: Make) -> None:
    server.serve("/node", b"<html><title>Welcome</title></html>")
    (standing,) = target_at(server.url("")).check(None)
    assert standing.status == "problem"
    assert "did not answer as a DataONE member node does" in standing.sentence
    assert "it ends with /v2, as in https://repository.example.org/metacat/d1/mn/v2" in standing.sentence


NODE = (
    '<n:node xmlns:n="http://ns.dataone.org/service/types/v2.0" state="{state}"><identifier>urn:node:X</identifier>'
    '<name>X</name><services><service name="MNStorage" version="{version}" available="true"/></services></n:node>'
)


@pytest.mark.parametrize(
    ("state", "version", "words"),
    [("down", "v2", "says that it is down"), ("up", "v1", "does not offer the storage API, version 2")],
)
def test_a_node_that_takes_nothing(stub: Stub, target_at: Make, state: str, version: str, words: str) -> None:
    stub.server.serve("/v2/node", NODE.format(state=state, version=version).encode())
    first = next(iter(target_at(stub.url).check(None)))
    assert (first.status, words in first.sentence) == ("problem", True)


def test_a_node_that_is_away_is_one_problem(target_at: Make) -> None:
    (standing,) = target_at("http://127.0.0.1:9/v2").check(None)
    assert standing.status == "problem"
    assert standing.sentence.startswith("http://127.0.0.1:9/v2/node did not answer: Connection refused.")


def token_with(claims: object) -> str:
    return token_of(json.dumps(claims).encode())


def token_of(claims: bytes) -> str:
    import base64

    middle = base64.urlsafe_b64encode(claims).rstrip(b"=").decode()
    return f"e30.{middle}.c2ln"


TOKENS = {
    "an orcid": ({"userId": "http://orcid.org/0000-0001", "sub": "x", "exp": 4102444800}, "http://orcid.org/0000-0001"),
    "a subject": ({"sub": "CN=H"}, "CN=H"),
}


@pytest.mark.parametrize(("claims", "subject"), TOKENS.values(), ids=TOKENS)
def test_the_rights_holder_is_whom_the_token_names(stub: Stub, target_at: Make, claims: object, subject: str) -> None:
    stub.server.serve("/v2/node", NODE.format(state="up", version="v2").encode())
    standings = [each.sentence for each in target_at(stub.url, token_with(claims), rights_holder="").check(None)]
    assert f"The token is that of {subject}; it " in standings[1]
    assert standings[2].endswith(f"They will belong to {subject}.")


DEEP = token_of(b"[" * 40_000)
NO_TOKENS = ["opaque", "a.b.c", "..", "e30.e30.e30", token_with([1]), token_with({"sub": 7, "exp": "x"}), "é.é.é", DEEP]


@pytest.mark.parametrize("token", NO_TOKENS, ids=range(len(NO_TOKENS)))
def test_a_token_that_names_nobody_needs_a_rights_holder(target_at: Make, token: str) -> None:
    told = "rights_holder is not set, and the token .* does not say whose it is|is not one line of ASCII"
    with pytest.raises(SettingsError, match=told):
        target_at("http://127.0.0.1:9/v2", token, rights_holder="")
    with pytest.raises(SettingsError, match="rights_holder is not set, and there is no token"):
        target_at("http://127.0.0.1:9/v2", "", rights_holder="")


@pytest.mark.parametrize("expires", [1e300, -1, 0, True])
def test_a_token_of_strange_times(target_at: Make, expires: object) -> None:
    target = target_at("http://127.0.0.1:9/v2", token_with({"sub": "x", "exp": expires}))
    with pytest.raises(TargetError), target.session(None):
        pass


def test_a_token_of_several_lines_is_refused_without_being_shown(target_at: Make) -> None:
    with pytest.raises(SettingsError) as caught:
        target_at("http://127.0.0.1:9/v2", "secret-one\nsecret-two")
    assert "secret" not in str(caught.value).replace("not one line", "")


def test_answers_that_would_exhaust_the_memory_are_refused(server: HttpServer, stub: Stub, target_at: Make) -> None:
    bomb = (
        b'<!DOCTYPE e [<!ENTITY a "'
        + b"a" * 1000
        + b'">'
        + b"".join(b'<!ENTITY %c "%b">' % (98 + n, (b"&%c;" % (97 + n)) * 1000) for n in range(4))
        + b"]><e>&e;</e>"
    )

    def bombed(asking: Asking) -> None:
        asking.answer(bomb)

    server.route("/v2/meta/a.1.1", bombed)
    with target_at(stub.url).session(None) as session, pytest.raises(TargetError) as caught:
        session.holds("a.1", 1, "0")
    assert caught.value.findings[0].rule == "target.answer"


@pytest.mark.parametrize(
    ("url", "is_told"),
    [
        ("http://node.invalid/v2", True),
        ("http://node.invalid./v2", True),
        ("https://node.invalid/v2", False),
        ("http://127.0.0.1:9/v2", False),
        ("http://localhost.:9/v2", False),
        ("http://[::1]:9/v2", False),
    ],
)
def test_a_token_that_would_travel_in_clear_is_a_problem(target_at: Make, url: str, is_told: bool) -> None:
    token = token_with({"sub": "CN=us"})
    first = next(iter(target_at(url, token, connect_timeout=0.2).check(None)))
    assert ("The token goes to" in first.sentence, first.status) == (is_told, "problem")
    without = next(iter(target_at(url, connect_timeout=0.2).check(None)))
    assert "The token goes to" not in without.sentence
