"""Metacat's old interface, against a server that behaves as Metacat does, its quirks and errors included."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from metaharvest.config.settings import Settings
from metaharvest.errors import SettingsError, TargetError
from metaharvest.model import Action, FetchedDocument, Finding, ListedDocument, Site
from metaharvest.rules import RULES
from metaharvest.targets.base import RemoteTarget, Upload
from metaharvest.targets.metacat.session import Untransportable, charset_of, form
from metaharvest.targets.metacat.target import MetacatTarget
from support.metacat_server import (
    Behaviour,
    Connection,
    Metacat,
    Work,
    answering,
    dropping,
    in_turn,
    late,
    refusing_connections,
    well,
)

HARVESTER = "uid=harvester,o=LTER,dc=ecoinformatics,dc=org"
ALDER = "uid=alder,o=LTER,dc=ecoinformatics,dc=org"
AT = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)
LATIN = '<?xml version="1.0" encoding="ISO-8859-1"?><e>é ±</e>'.encode("iso-8859-1")


@pytest.fixture
def metacat(monkeypatch: pytest.MonkeyPatch) -> Iterator[Metacat]:
    monkeypatch.setenv("METACAT_PASSWORD", "harvester-secret")
    monkeypatch.setenv("ALDER_PASSWORD", "älder&-secret")
    with Metacat({HARVESTER: "harvester-secret", ALDER: "älder&-secret"}) as running:
        yield running


def settings(url: str, **target: object) -> Settings:
    login = {"username": HARVESTER, "password": "env:METACAT_PASSWORD"}
    times = {"connect_timeout": 1, "read_timeout": 1, "deadline": 3}
    values = {"kind": "metacat", "url": url, **login, **times, **target}
    return Settings.model_validate({"http": {"retry_wait": 0.01}, "target": values})


def target_at(metacat: Metacat, **options: object) -> MetacatTarget:
    return MetacatTarget(settings(metacat.url, **options))


@pytest.fixture
def target(metacat: Metacat) -> MetacatTarget:
    return target_at(metacat)


@pytest.fixture
def session(target: MetacatTarget) -> Iterator[RemoteTarget]:
    with target.session(None) as opened:
        yield opened


def site(name: str | None = ALDER, password: str | None = "env:ALDER_PASSWORD") -> Site:
    return Site(7, "alder", "https://e.org/l.xml", ("a@e.org",), ldap_name=name, ldap_password=password)


def upload(docid: str, content: bytes = b"") -> Upload:
    document_id, _, revision = docid.rpartition(".")
    content = content or f"<eml>{docid}</eml>".encode()
    document = ListedDocument(document_id, int(revision), "eml://ecoinformatics.org/eml-2.1.1", "https://e.org/1.xml")
    return Upload(FetchedDocument(document, content, hashlib.sha256(content).hexdigest(), 0.1), 7, AT)


@contextmanager
def refused(rule: str, *, transient: bool = False) -> Iterator[list[Finding]]:
    """What is done here raises a TargetError with this rule, whose findings are there afterwards."""
    findings: list[Finding] = []
    with pytest.raises(TargetError) as caught:
        yield findings
    findings.extend(caught.value.findings)
    assert ([finding.rule for finding in findings], caught.value.transient) == ([rule], transient)
    for finding in findings:
        assert finding.rule in RULES
        assert finding.message.endswith(".")
        assert finding.remedy.endswith(".")
        assert "-secret" not in finding.message + finding.remedy


# -- logins


def test_a_session_is_logged_in_as_its_site_or_as_the_settings_say_and_logged_out(metacat: Metacat) -> None:
    target = target_at(metacat)
    for who, expected in ((site(), ALDER), (site(None, None), HARVESTER), (None, HARVESTER)):
        with target.session(who) as session:
            assert session.upload(upload(f"a.{len(metacat.written)}.1")) is Action.INSERT
            assert list(metacat.sessions.values()) == [expected]
        assert metacat.sessions == {}
    assert [user for _, user in metacat.current.values()] == [ALDER, HARVESTER, HARVESTER]
    assert [each.method for each in metacat.asked if each.action in ("login", "logout")] == ["POST"] * 6


def test_two_sessions_at_once_are_two_logins(metacat: Metacat) -> None:
    target = target_at(metacat)
    with target.session(site()) as one, target.session(None) as other:
        one.upload(upload("a.1.1"))
        other.upload(upload("a.2.1"))
    assert {name: owner for name, (_, owner) in metacat.current.items()} == {"a.1": ALDER, "a.2": HARVESTER}


def test_a_login_that_is_refused_fails_with_who_and_where_it_is_mended(
    metacat: Metacat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALDER_PASSWORD", "wrong-secret")
    with refused("target.login") as findings, target_at(metacat).session(site()):
        pass
    assert findings[0].message == f"Metacat does not let {ALDER} in: Authentication failed for user: {ALDER}."
    assert "Nothing is uploaded until" in findings[0].remedy
    assert "`metaharvest sites edit alder`" in findings[0].remedy
    assert metacat.actions() == ["login"]


def test_a_login_that_nobody_can_check_is_no_refusal(metacat: Metacat) -> None:
    metacat.ldap_is_away = True
    with refused("target.away", transient=True) as findings, target_at(metacat).session(None):
        pass
    assert "could not check the login" in findings[0].message


@pytest.mark.parametrize(
    ("behaviour", "rule", "transient", "words"),
    [
        (refusing_connections, "target.away", True, "did not answer"),
        (late(1.5), "target.away", True, "read_timeout"),
        (answering(b"<html><title>Down for repair</title>", 503), "target.away", True, "503"),
        (answering(b"<html><title>Sign in</title></html>"), "target.answer", False, "a page titled 'Sign in'"),
        (answering(b""), "target.answer", False, "neither a success nor an error"),
        (answering(b"", 404), "target.answer", False, "404"),
        (answering(b"<error>Password not specified</error>"), "target.login", False, "Password not specified"),
    ],
)
def test_a_login_without_an_answer_to_it(
    metacat: Metacat, behaviour: Behaviour, rule: str, transient: bool, words: str
) -> None:
    metacat.on["login"] = behaviour
    with refused(rule, transient=transient) as findings, target_at(metacat).session(None):
        pass
    assert words in findings[0].message


@pytest.mark.parametrize("version", ["3", "3.0"])
def test_metacat_3_is_told_as_that_with_what_to_use(metacat: Metacat, version: str) -> None:
    metacat.version = version
    with refused("target.moved") as findings, target_at(metacat).session(None):
        pass
    assert "no longer has that interface" in findings[0].message
    assert f'kind = "dataone" and url = "http://127.0.0.1:{metacat.port}/knb/d1/mn/v2"' in findings[0].remedy
    [standing] = target_at(metacat).check(None)
    assert standing.status == "problem"
    assert "use the dataone target" in standing.sentence


@pytest.mark.parametrize(
    ("name", "password", "words"),
    [
        (ALDER, None, "a login name for the Metacat, but no password"),
        (None, "env:ALDER_PASSWORD", "a password for the Metacat, but no login name"),
        (ALDER, "env:NOT_SET_AT_ALL", "NOT_SET_AT_ALL"),
        (ALDER, "file:nowhere", "cannot be read"),
    ],
)
def test_half_a_login_or_one_whose_password_is_not_there_fails_the_site(
    metacat: Metacat, name: str | None, password: str | None, words: str
) -> None:
    with refused("target.login") as findings, target_at(metacat).session(site(name, password)):
        pass
    assert words in findings[0].message
    assert "`metaharvest sites edit alder --ldap" in findings[0].remedy
    assert metacat.asked == []


def test_without_any_login_nothing_is_asked(metacat: Metacat) -> None:
    target = target_at(metacat, username="", password="")
    with refused("target.login") as findings, target.session(site(None, None)):
        pass
    assert "the site has none" in findings[0].message
    with refused("target.login"), target.session(None):
        pass
    assert metacat.asked == []
    with target.session(site()) as session:
        assert session.holdings(["a.1"]) == {}


@pytest.mark.parametrize("options", [{"password": ""}, {"username": ""}, {"password": "env:NOT_SET_AT_ALL"}])
def test_half_a_login_in_the_settings_is_told_at_once(metacat: Metacat, options: dict[str, str]) -> None:
    with pytest.raises(SettingsError):
        target_at(metacat, **options)


@pytest.mark.parametrize("behaviour", [refusing_connections, answering(b"", 500), answering(b"<error>x</error>")])
def test_a_logout_that_fails_is_nothing_to_anybody(metacat: Metacat, behaviour: Behaviour) -> None:
    metacat.on["logout"] = behaviour
    with target_at(metacat).session(None) as session:
        session.upload(upload("a.1.1"))
    assert metacat.actions("logout") == ["logout"]


def test_it_is_logged_out_after_an_error_too(metacat: Metacat) -> None:
    with pytest.raises(RuntimeError), target_at(metacat).session(None):
        raise RuntimeError
    assert metacat.sessions == {}


# -- uploads


def test_a_success_or_it_did_not_happen(metacat: Metacat, session: RemoteTarget) -> None:
    metacat.on["insert"] = answering(b"<?xml version='1.0'?><error>Element 'x' is &lt;bad&gt; <b>here</b></error>")
    with refused("target.refused") as findings:
        session.upload(upload("a.1.1"))
    assert findings[0].message == "Metacat refused a.1.1: Element 'x' is <bad> here."
    metacat.on["insert"] = answering(b"<error>no</error><success/>")
    with refused("target.refused"):
        session.upload(upload("a.1.1"))
    metacat.on["insert"] = answering(b"<html><head><title>Welcome to Tomcat</title></head></html>")
    with refused("target.answer") as findings:
        session.upload(upload("a.1.1"))
    assert "neither a success nor an error, but with a page titled 'Welcome to Tomcat'" in findings[0].message
    assert metacat.files == {}


def test_what_is_public_is_said_with_every_revision(metacat: Metacat) -> None:
    with target_at(metacat).session(None) as session:
        session.upload(upload("a.1.1"))
        session.upload(upload("a.1.2"))
    with target_at(metacat, read=["uid=somebody"]).session(None) as session:
        session.upload(upload("a.2.1"))
    assert metacat.public == {"a.1.1", "a.1.2"}


def test_a_lower_revision_is_refused_before_it_is_sent(metacat: Metacat, session: RemoteTarget) -> None:
    session.upload(upload("a.1.5"))
    for sent in (upload("a.1.4"), upload("a.1.5", b"<other/>")):
        with refused("target.exists"):
            session.upload(sent)
    assert metacat.actions("insert", "update") == ["insert"]


def test_a_document_of_somebody_else_is_refused_by_metacat_and_not_sent_twice(metacat: Metacat) -> None:
    target = target_at(metacat)
    with target.session(None) as session:
        session.upload(upload("a.1.1"))
    with target.session(site()) as session, refused("target.refused") as findings:
        session.upload(upload("a.1.2"))
    assert f"User {ALDER} does not have permission to update" in findings[0].message
    assert metacat.actions("login", "update") == ["login", "login", "update"]


def test_what_another_one_inserted_meanwhile_is_there_already(metacat: Metacat, session: RemoteTarget) -> None:
    def meanwhile(connection: Connection, work: Work) -> None:
        metacat.files["a.1", 1] = b"<other/>"
        metacat.current["a.1"] = (1, ALDER)
        well(connection, work)

    metacat.on["insert"] = meanwhile
    with refused("target.exists") as findings:
        session.upload(upload("a.1.1"))
    assert "already in use" in findings[0].message
    assert metacat.held == {"a.1.1": b"<other/>"}


def test_the_same_bytes_that_got_there_before_are_not_sent_and_no_error(
    metacat: Metacat, session: RemoteTarget
) -> None:
    """As where they were under way when the run that sent them was killed."""
    assert session.upload(upload("a.1.5")) is session.upload(upload("a.1.5")) is Action.INSERT
    assert session.upload(upload("a.1.6")) is session.upload(upload("a.1.6")) is Action.UPDATE
    assert metacat.written == [("insert", "a.1.5"), ("update", "a.1.6")]


@pytest.mark.parametrize("revision", [1, 2])
def test_the_same_bytes_that_got_there_meanwhile_are_no_error(
    metacat: Metacat, session: RemoteTarget, revision: int
) -> None:
    def twice(connection: Connection, work: Work) -> None:
        work()
        well(connection, work)

    metacat.on["insert"] = metacat.on["update"] = twice
    actions = [session.upload(upload(f"a.1.{number}")) for number in range(1, revision + 1)]
    assert actions == [Action.INSERT, Action.UPDATE][:revision]
    assert metacat.held == {f"a.1.{number}": upload(f"a.1.{number}").fetched.content for number in (1, revision)}


def test_a_question_about_them_that_is_not_answered_leaves_it_open(metacat: Metacat, session: RemoteTarget) -> None:
    session.upload(upload("a.1.5"))
    metacat.on["read"] = refusing_connections
    with refused("target.away", transient=True):
        session.upload(upload("a.1.5"))


@pytest.mark.parametrize(
    "behaviour",
    [
        dropping,
        late(1.5),
        answering(b"<html><title>Gateway timeout</title>", 504, works=True),
        answering(b"", works=True),
        answering(b"<html></html>", works=True),
    ],
    ids=["dropped", "late", "504", "empty", "a page"],
)
@pytest.mark.parametrize("content", [b"", LATIN], ids=["utf-8", "latin-1"])
def test_an_upload_without_an_answer_that_was_done_is_found_out(
    metacat: Metacat, session: RemoteTarget, behaviour: Behaviour, content: bytes
) -> None:
    metacat.on["insert"] = behaviour
    sent = upload("a.1.1", content)
    assert session.upload(sent) is Action.INSERT
    assert metacat.written == [("insert", "a.1.1")]
    assert metacat.held == {"a.1.1": sent.fetched.content}


@pytest.mark.parametrize(
    "behaviour", [refusing_connections, answering(b"<html><title>Busy</title>", 503)], ids=["broken", "503"]
)
def test_an_upload_without_an_answer_that_was_not_done_is_not_sent_again(
    metacat: Metacat, session: RemoteTarget, behaviour: Behaviour
) -> None:
    metacat.on["insert"] = behaviour
    with refused("target.away", transient=True):
        session.upload(upload("a.1.1"))
    assert metacat.actions("insert") == ["insert"]
    del metacat.on["insert"]
    assert session.upload(upload("a.1.1")) is Action.INSERT


def test_if_nobody_can_say_whether_it_arrived_it_is_left_open(metacat: Metacat, session: RemoteTarget) -> None:
    metacat.on["insert"] = dropping
    metacat.on["getrevisionanddoctype"] = in_turn(well, refusing_connections)
    with refused("target.away", transient=True):
        session.upload(upload("a.1.1"))
    del metacat.on["getrevisionanddoctype"]
    assert session.holds("a.1", 1, upload("a.1.1").fetched.sha256)


def test_something_else_under_this_docid_is_told(metacat: Metacat, session: RemoteTarget) -> None:
    def other(connection: Connection, work: Work) -> None:
        metacat.files["a.1", 1] = b"<other/>"
        metacat.current["a.1"] = (1, HARVESTER)
        connection.reset()

    metacat.on["insert"] = other
    with refused("target.other-content"):
        session.upload(upload("a.1.1"))


@pytest.mark.parametrize("path", ["insert", "update"])
def test_a_session_that_metacat_has_forgotten_is_begun_anew_and_nothing_is_sent_blindly(
    metacat: Metacat, session: RemoteTarget, path: str
) -> None:
    if path == "update":
        session.upload(upload("a.1.1"))
    metacat.asked.clear()
    metacat.sessions.clear()
    session.upload(upload("a.1.2"))
    assert metacat.actions() == [
        *("getrevisionanddoctype", path, "login", "getrevisionanddoctype", path),
    ]
    assert metacat.held["a.1.2"] == b"<eml>a.1.2</eml>"


def test_a_forgotten_session_of_many_threads_is_begun_anew_once(metacat: Metacat, session: RemoteTarget) -> None:
    metacat.sessions.clear()
    together, failed = threading.Barrier(6), []

    def send(number: int) -> None:
        together.wait()
        try:
            session.upload(upload(f"a.{number}.1"))
        except TargetError as error:
            failed.append(error)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failed == []
    assert len(metacat.files) == 6
    assert metacat.actions("login") == ["login"] * 2


def test_a_login_that_is_refused_in_the_middle_is_told_and_nothing_goes_in(
    metacat: Metacat, session: RemoteTarget
) -> None:
    metacat.sessions.clear()
    metacat.users = {}
    with refused("target.login"):
        session.upload(upload("a.1.1"))
    assert metacat.files == {}


def test_a_document_that_the_server_drops_for_its_size_is_told_as_that(metacat: Metacat, session: RemoteTarget) -> None:
    metacat.most_form_bytes = 1000
    with refused("target.answer") as findings:
        session.upload(upload("a.1.1", b"<e>" + b"x" * 2000 + b"</e>"))
    assert "its 2,007 bytes are more than the server lets in" in findings[0].message
    assert "maxPostSize" in findings[0].remedy
    for answer in (answering(b"", 413), answering(b"<error>\nAction not specified\n</error>")):
        metacat.on["insert"] = answer
        with refused("target.answer") as findings:
            session.upload(upload("a.1.1"))
        assert "maxPostSize" in findings[0].remedy


# -- encodings

BYTES = {
    "utf-8": '<?xml version="1.0" encoding="UTF-8"?><e>é € 𝄞 &amp; + % = ;</e>'.encode(),
    "no declaration": "<e>é</e>\r\n\t ".encode(),
    "latin-1": LATIN,
    "latin-9": '<?xml version="1.0" encoding="ISO-8859-15"?><e>€</e>'.encode("iso-8859-15"),
    "windows": "<?xml version='1.0' encoding='windows-1252'?><e>„€“</e>".encode("cp1252"),
    "cyrillic": '<?xml version="1.0" encoding="KOI8-R"?><e>Привет</e>'.encode("koi8-r"),
    "japanese": '<?xml version="1.0" encoding="EUC-JP"?><e>日本</e>'.encode("euc-jp"),
    "ascii": b'<?xml version="1.0" encoding="ISO-8859-1"?><e>e</e>',
}


@pytest.mark.parametrize("content", BYTES.values(), ids=BYTES)
def test_bytes_arrive_as_they_were_received(metacat: Metacat, session: RemoteTarget, content: bytes) -> None:
    session.upload(upload("a.1.1", content))
    assert metacat.held == {"a.1.1": content}
    assert session.holds("a.1", 1, hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("<?xml version='1.0' encoding='UTF-16'?><e>é</e>".encode("utf-16"), "it is in UTF-16"),
        ("<e>é</e>".encode("utf-16-le"), "it is in UTF-16"),
        ("<e>é</e>".encode("utf-32"), "it is in UTF-16 or UTF-32"),
        (b"<e>\xe9</e>", "it is not text in UTF-8"),
        (b"<?xml version='1.0' encoding='EUC-JP'?><e>\xff</e>", "it is not text in EUC-JP, the encoding that it names"),
        (b"<?xml version='1.0' encoding='UTF-16'?><e>e</e>", "it is not text in UTF-16, the encoding that it names"),
        (b"<?xml version='1.0' encoding='x-mine'?><e>\xe9</e>", "its encoding x-mine is not known"),
        (b"<?xml version='1.0' encoding='utf-7'?><e>\xe9</e>", "it is not text in utf-7"),
        (b"<?xml version='1.0' encoding='hex'?><e>\xe9</e>", "its encoding hex is not known"),
        (b"<?xml version='1.0' encoding='cp037'?><e>\xe9</e>", "it is not text in cp037"),
    ],
)
def test_what_would_not_keep_its_bytes_is_not_sent(
    metacat: Metacat, session: RemoteTarget, content: bytes, words: str
) -> None:
    with refused("target.encoding") as findings:
        session.upload(upload("a.1.1", content))
    assert words in findings[0].message
    assert "Save the document as UTF-8" in findings[0].remedy
    assert metacat.actions("insert") == []


def test_a_document_that_metacat_writes_otherwise_is_told_and_never_taken_for_well(
    metacat: Metacat, session: RemoteTarget
) -> None:
    def in_utf8(connection: Connection, work: Work) -> None:
        answer = work()
        metacat.files["a.1", 1] = metacat.files["a.1", 1].decode("iso-8859-1").encode()
        connection.answer(answer)

    metacat.on["insert"] = in_utf8
    with refused("target.other-content"):
        session.upload(upload("a.1.1", LATIN))


def test_a_form_names_the_encoding_of_its_bytes() -> None:
    body, headers = form([("docid", "a.1.1"), ("doctext", b"<e>\xe9 &+</e>")], "ISO-8859-1")
    assert body == b"docid=a.1.1&doctext=%3Ce%3E%E9+%26%2B%3C%2Fe%3E"
    assert headers == {"Content-Type": "application/x-www-form-urlencoded; charset=ISO-8859-1"}
    assert charset_of(b"<?xml version='1.0' encoding='ISO-8859-1'?><e>e</e>") == "UTF-8"
    with pytest.raises(Untransportable):
        charset_of(bytes(range(256)))


# -- questions


def test_each_document_is_one_question_a_few_side_by_side(metacat: Metacat, session: RemoteTarget) -> None:
    at_once, most, lock = [0], [0], threading.Lock()

    def counted(connection: Connection, work: Work) -> None:
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        threading.Event().wait(0.02)
        with lock:
            at_once[0] -= 1
        well(connection, work)

    metacat.on["getrevisionanddoctype"] = counted
    assert session.holdings([f"a.{number}" for number in range(40)]) == {}
    assert len(metacat.actions("getrevisionanddoctype")) == 40
    assert 2 <= most[0] <= 4


@pytest.mark.parametrize(
    "behaviour",
    [
        refusing_connections,
        answering(b"", 503),
        answering(b"<error>Timeout waiting for a connection of the pool</error>"),
        answering(b"<html><title>Tomcat</title></html>"),
        answering(b"null;null"),
        answering(b""),
    ],
    ids=["broken", "503", "another error", "a page", "null", "empty"],
)
def test_that_metacat_cannot_say_is_not_that_there_is_none(
    metacat: Metacat, session: RemoteTarget, behaviour: Behaviour
) -> None:
    metacat.on["getrevisionanddoctype"] = in_turn(well, well, behaviour)
    with refused("target.away", transient=True):
        session.holdings([f"a.{number}" for number in range(8)])
    with refused("target.away", transient=True):
        session.upload(upload("a.1.1"))
    assert metacat.actions("insert") == []


def test_a_question_is_asked_again_if_the_connection_breaks(metacat: Metacat, session: RemoteTarget) -> None:
    metacat.on["getrevisionanddoctype"] = in_turn(refusing_connections, answering(b"", 503), well)
    assert session.holdings(["a.1"]) == {}


def test_names_that_are_patterns_there_are_told_apart(metacat: Metacat, session: RemoteTarget) -> None:
    for docid in ("pisco-a.1.5", "pisco_a.1.3", "pisco_a.2.1", "other.1.1"):
        session.upload(upload(docid))
    metacat.asked.clear()
    asked = ["pisco_a.1", "pisco_a.2", "pisco_a.3", "pisco%.1", "pisco-a.1"]
    found = session.holdings(asked)
    assert {name: held.revision for name, held in found.items()} == {"pisco_a.1": 3, "pisco_a.2": 1, "pisco-a.1": 5}
    assert metacat.actions("getalldocids") == ["getalldocids"] * 2


@pytest.mark.parametrize("name", ["a", "a.b.1", "", "a.", ".1", "a .1", "ä.1"])
def test_names_that_metacat_cannot_have_are_not_asked_for_and_not_sent(
    metacat: Metacat, session: RemoteTarget, name: str
) -> None:
    metacat.asked.clear()
    assert session.holdings([name]) == {}
    assert not session.holds(name, 1, "0" * 64)
    with refused("target.name"):
        session.upload(upload(f"{name}.1"))
    with refused("target.name"):
        session.upload(upload(f"a.1.{2**31}"))
    assert metacat.asked == []


def test_private_documents_are_read_by_their_owner_and_a_refusal_is_not_that_there_is_none(metacat: Metacat) -> None:
    target = target_at(metacat, read=[])
    with target.session(site()) as session:
        session.upload(upload("a.1.1"))
        assert session.holds("a.1", 1, upload("a.1.1").fetched.sha256)
        assert not session.holds("a.1", 2, upload("a.1.1").fetched.sha256)
    with refused("target.refused"):
        target.content("a.1", 1)


# -- deletions


def test_a_document_is_deleted_once_and_never_erased(metacat: Metacat, session: RemoteTarget) -> None:
    session.upload(upload("a.1.1"))
    session.upload(upload("a.1.2"))
    assert session.delete("a.1")
    assert not session.delete("a.1")
    assert not session.delete("a.2")
    with refused("target.exists"):
        session.upload(upload("a.1.2"))
    assert metacat.written[2:] == [("delete", "a.1.2")]
    assert sorted(metacat.held) == ["a.1.1", "a.1.2"]
    # Metacat goes on telling of it: its revisions are used up.
    assert session.holdings(["a.1"])["a.1"].revision == 2


@pytest.mark.parametrize("behaviour", [dropping, late(1.5)])
def test_a_deletion_without_an_answer_is_found_out(
    metacat: Metacat, session: RemoteTarget, behaviour: Behaviour
) -> None:
    session.upload(upload("a.1.1"))
    metacat.on["delete"] = behaviour
    assert session.delete("a.1")
    assert metacat.actions("delete") == ["delete"]
    assert sorted(metacat.held) == ["a.1.1"]


def test_a_deletion_after_a_lost_login_logs_in_again(metacat: Metacat, session: RemoteTarget) -> None:
    session.upload(upload("a.1.1"))
    metacat.sessions.clear()
    assert session.delete("a.1")
    assert metacat.written[1:] == [("delete", "a.1.1")]


def test_a_deletion_that_is_refused_or_did_not_arrive_is_told(metacat: Metacat, session: RemoteTarget) -> None:
    session.upload(upload("a.1.1"))
    metacat.on["delete"] = answering(b"<error>User does not have permission</error>")
    with refused("target.refused"):
        session.delete("a.1")
    metacat.on["delete"] = refusing_connections
    with refused("target.away", transient=True):
        session.delete("a.1")
    metacat.on["read"] = answering(b"<error>Something else</error>")
    with refused("target.away", transient=True):
        session.delete("a.1")
    assert metacat.current.keys() == {"a.1"}


# -- what it says of itself


def test_it_says_as_whom_it_is_let_in(metacat: Metacat) -> None:
    standings = [*target_at(metacat).check(None), *target_at(metacat).check(site())]
    assert [standing.status for standing in standings] == ["ok"] * 4
    assert [standing.sentence for standing in standings] == [
        f"Metacat 2.8.5 answers at {metacat.url}.",
        f"It lets {HARVESTER} in.",
        f"Metacat 2.8.5 answers at {metacat.url}.",
        f"It lets {ALDER} in.",
    ]
    assert metacat.sessions == {}
    assert metacat.written == []
    *_, last = target_at(metacat, username="", password="").check(None)
    assert last.status == "ok"
    assert "each site needs its own" in last.sentence


def problem_of(target: MetacatTarget) -> str:
    *_, problem = target.check(None)
    assert problem.status == "problem"
    return problem.sentence


def test_it_says_what_is_wrong(metacat: Metacat, target: MetacatTarget) -> None:
    metacat.on["login"] = answering(b"<login></login>")
    assert "took us for 'public'" in problem_of(target)
    metacat.on.clear()
    metacat.users = {}
    assert "does not let" in problem_of(target)
    metacat.stop()
    assert "did not answer" in problem_of(target)


@pytest.mark.parametrize("body", [b"", b"<html><title>Welcome</title></html>", b"<harvestList/>"])
def test_what_answers_and_is_no_metacat_is_not_taken_for_one(metacat: Metacat, body: bytes) -> None:
    metacat.on["getversion"] = answering(body)
    [only] = target_at(metacat).check(None)
    assert only.status == "problem"
    assert "has to be that of Metacat's servlet" in only.sentence
    assert metacat.actions("login") == []


def test_a_metacat_that_does_not_know_the_question_for_its_version_is_one(metacat: Metacat) -> None:
    metacat.on["getversion"] = answering(b"<error>Error: action not registered.  Please report this error.</error>")
    assert [standing.sentence for standing in target_at(metacat).check(None)] == [
        f"Metacat answers at {metacat.url}.",
        f"It lets {HARVESTER} in.",
    ]


def test_a_password_that_would_travel_in_clear_is_warned_of() -> None:
    os.environ["METACAT_PASSWORD"] = "harvester-secret"
    target = MetacatTarget(settings("http://metacat.invalid/knb/metacat", connect_timeout=0.2))
    *_, last = target.check(None)
    assert (last.status, "unencrypted" in last.sentence) == ("warning", True)


def test_it_cannot_list_and_names_who_can(metacat: Metacat, target: MetacatTarget) -> None:
    with refused("target.unsupported") as findings:
        target.held()
    assert f"http://127.0.0.1:{metacat.port}/knb/d1/mn/v2" in findings[0].remedy


def test_the_revisions_of_a_document_and_their_bytes(target: MetacatTarget, session: RemoteTarget) -> None:
    session.upload(upload("a.1.1"))
    session.upload(upload("a.1.10"))
    session.upload(upload("a.10.3"))
    assert [held.docid for held in target.revisions("a.1")] == ["a.1.10", "a.1.1"]
    assert target.revisions("a.2") == target.revisions("nothing") == []
    assert target.content("a.1", 10) == b"<eml>a.1.10</eml>"
    assert target.content("a.1", 2) is target.content("a.1", 11) is target.content("b.1", 1) is None


def test_it_is_described_in_a_few_words(target: MetacatTarget, metacat: Metacat) -> None:
    assert target.describe() == f"Metacat at {metacat.url}"
