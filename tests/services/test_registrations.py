"""A person outside registers a site: the rehearsal, the two proofs, the decision; and what a stranger cannot do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from time import sleep

import pytest
from sqlalchemy import text

from metaharvest.errors import DatabaseUnavailable, RequestError, ScheduleError
from metaharvest.model.requests import Actor
from metaharvest.rehearsal import trial
from metaharvest.services import installation, my_site, registrations, sites, trials
from metaharvest.services.harvester import Harvester as Opened
from metaharvest.services.registrations import Proof, Question, State
from metaharvest.sites.registrations import policy, store
from support.databases import on_one_database
from support.harvester import EML, Harvester, harvest_list, publish
from support.http_server import HttpServer
from support.mails import text_of
from support.oai_server import Asked, OaiServer
from support.ports import free_port

BASE = "https://harvest.example.org"
ANNA = "anna@station.example.org"


class Clock:
    """A time that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 20, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(harvester: Harvester, clock: Clock) -> Iterator[Opened]:
    with harvester.opened(clock=clock) as made:
        yield made


def mailed(harvester: Harvester, address: str, subject: str = "") -> str:
    """The text of the one mail to this address with these words in its subject."""
    [mail] = [mail for mail in harvester.mails() if mail["To"] == address and subject in mail["Subject"]]
    return text_of(mail)


def token_in(text: str, page: str) -> str:
    """The token of the link to a page."""
    found = re.search(re.escape(BASE + page) + r"(\S+)", text)
    assert found, text
    return found[1]


def asked(opened: Opened, url: str, name: str = "Alder Creek", address: str = ANNA) -> registrations.Asked:
    return registrations.ask(opened, Question(name, url, address), BASE)


def number_of(answer: registrations.Asked) -> int:
    assert answer.registration is not None
    return answer.registration.registration_id


def test_a_list_is_registered_by_two_proofs_and_a_decision(
    harvester: Harvester, opened: Opened, server: HttpServer
) -> None:
    url = publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))])
    answer = asked(opened, url)
    assert answer.report.is_readable
    assert answer.report.has_errors
    assert [(each.rule, each.docid) for each in answer.report.findings] == [("http.status", "a.2.1")]
    assert answer.registration is not None
    assert answer.registration.state is State.WAITING_FOR_PROOFS
    number = answer.registration.registration_id
    letter, proof = mailed(harvester, ANNA), registrations.comment(answer.registration)
    assert proof in letter
    token = token_in(letter, registrations.ADDRESS_PAGE)
    assert not any(token in str(row) for row in harvester.rows("SELECT * FROM site_registration"))

    with pytest.raises(RequestError, match="no comment with this token yet"):
        registrations.look_for_comment(opened, token)
    assert registrations.prove_address(opened, token, BASE).state is State.WAITING_FOR_PROOFS
    with pytest.raises(RequestError, match="still waits for proofs"):
        registrations.accept(opened, number)
    content = harvest_list([("a.1.1", server.url("/a.1.1.xml"))])
    server.serve("/list.xml", content.replace(b"<document>", proof.encode() + b"<document>", 1))
    proved = registrations.look_for_comment(opened, token)
    assert (proved.state, proved.source_proof) == (State.WAITING_FOR_DECISION, Proof.COMMENT)
    assert harvester.rows("SELECT * FROM harvest_site_schedule") == []

    accepted = registrations.accept(opened.acting(Actor("steward")), number)
    assert (accepted.state, accepted.decided_by) == (State.ACCEPTED, "steward")
    site = sites.find(opened, "Alder Creek")
    assert (site.list_url, site.contacts, accepted.site_id) == (url, (ANNA,), site.site_id)
    assert "from now on, every day" in " ".join(mailed(harvester, ANNA, "is registered").split())
    with pytest.raises(RequestError, match="is accepted"):
        registrations.refuse(opened, number, "too late")


@on_one_database
def test_a_repository_is_proved_by_a_mail_to_its_own_address(harvester: Harvester, opened: Opened) -> None:
    with OaiServer(records=3) as repository:
        question = Question("Frogs", repository.base_url, ANNA, "oai-pmh", 2)
        answer = registrations.ask(opened, question, BASE)
        assert answer.registration is not None
        assert answer.repository is not None
        assert answer.report.story == "3 documents: 3 would be added"
        [keeper] = answer.registration.source_contacts
        assert [mail["To"] for mail in harvester.mails()] == [ANNA]
        token = token_in(mailed(harvester, ANNA), registrations.ADDRESS_PAGE)
        registrations.prove_address(opened, token, BASE)
        letter = mailed(harvester, keeper)
        assert ANNA in letter
        with pytest.raises(RequestError, match="was mailed to"):
            registrations.mail_source(opened, token, keeper, BASE)
        proved = registrations.prove_source(opened, token_in(letter, registrations.SOURCE_PAGE))
        assert (proved.state, proved.source_proof) == (State.WAITING_FOR_DECISION, Proof.MAIL)
        registrations.accept(opened, proved.registration_id)
        site = sites.find(opened, "Frogs")
        assert harvester.rows("SELECT source_kind, updatefrequency FROM harvest_site_schedule") == [("oai-pmh", 2)]
        assert site.contacts == (ANNA,)


@on_one_database
@pytest.mark.slow
def test_sets_without_an_end_do_not_hold_the_server(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(body: bytes, asked: Asked) -> bytes:
        if asked.verb != "ListSets":
            return body
        sleep(0.1)
        number = len(repository.asked("ListSets"))
        more = f"<set><setSpec>s{number}</setSpec></set><resumptionToken>{number}</resumptionToken></ListSets>"
        return body.replace(b"</ListSets>", more.encode())

    monkeypatch.setattr(trial, "_SECONDS", 3)
    with OaiServer(records=3) as repository:
        repository.sets, repository.tamper = {"frogs": "Frogs"}, endless
        answer = registrations.ask(opened, Question("Frogs", repository.base_url, ANNA, "oai-pmh"), BASE)
        assert answer.registration is not None
        of_a_set = Question("Toads", repository.base_url, ANNA, "oai-pmh", set_spec="toads")
        refused = registrations.ask(opened, of_a_set, BASE)
        assert [each.message for each in refused.report.findings] == [trials.UNREACHED.message]
        assert len(repository.asked("ListSets")) < 100


@on_one_database
def test_a_contact_of_the_documents_needs_no_second_proof(
    harvester: Harvester, opened: Opened, server: HttpServer
) -> None:
    url = publish(server, "a.1.1")
    contact = f"<organizationName>Test station</organizationName><electronicMailAddress>{ANNA}</electronicMailAddress>"
    document = EML.format(docid="a.1.1", title="A title")
    place = document.rindex("<organizationName>")
    end = document.index("</contact>")
    server.serve("/a.1.1.xml", f"{document[:place]}{contact}{document[end:]}".encode())
    answer = asked(opened, url, address=ANNA.upper())
    assert answer.report.contacts == (ANNA,)
    token = token_in(mailed(harvester, ANNA.upper()), registrations.ADDRESS_PAGE)
    proved = registrations.prove_address(opened, token, BASE)
    assert (proved.state, proved.source_proof) == (State.WAITING_FOR_DECISION, Proof.ADDRESS)


@on_one_database
def test_two_requests_at_once_send_one_mail(opened: Opened, server: HttpServer) -> None:
    found = asked(opened, publish(server, "a.1.1")).registration
    assert found is not None
    for counter in ("address_mails", "source_mails"):
        with opened.writing() as session:
            assert store.count_mail(session, found, counter)
        with opened.writing() as session:
            assert not store.count_mail(session, found, counter)


def test_a_refusal_is_mailed_with_its_reason(harvester: Harvester, opened: Opened, server: HttpServer) -> None:
    answer = asked(opened, publish(server, "a.1.1"))
    assert answer.registration is not None
    registrations.prove_address(opened, token_in(mailed(harvester, ANNA), registrations.ADDRESS_PAGE), BASE)
    with pytest.raises(RequestError, match="Give the reason"):
        registrations.refuse(opened, answer.registration.registration_id, " ")
    registrations.refuse(opened, answer.registration.registration_id, "No <b>river</b> data.")
    assert "No <b>river</b> data." in mailed(harvester, ANNA, "refused")
    [newest] = [mail for mail in harvester.mails() if "refused" in mail["Subject"]]
    html = newest.get_body(("html",))
    assert html is not None
    assert "No &lt;b&gt;river&lt;/b&gt; data." in html.get_content()


@on_one_database
def test_a_list_that_cannot_be_read_sends_no_mail_and_waits_for_nobody(
    harvester: Harvester, opened: Opened, server: HttpServer
) -> None:
    server.serve("/list.xml", b"<harvestList><document>")
    answer = asked(opened, server.url("/list.xml"))
    assert answer.registration is None
    assert not answer.report.is_readable
    [first, *_] = answer.report.findings
    assert first.rule.startswith("list.")
    assert first.line == 1
    assert harvester.mails() == []
    assert registrations.waiting(opened) == []


@on_one_database
def test_a_document_is_no_list(opened: Opened, server: HttpServer) -> None:
    server.serve("/one.xml", EML.format(docid="a.1.1", title="One").encode())
    answer = asked(opened, server.url("/one.xml"))
    assert answer.registration is None
    assert answer.report.is_document


@on_one_database
def test_closed_ports_private_networks_and_unknown_hosts_look_the_same(opened: Opened) -> None:
    urls = (f"http://127.0.0.1:{free_port()}/", "http://10.0.0.1/list.xml", "http://no-such-host.invalid/list.xml")
    said = {
        asked(opened, url, f"Site {number}", f"a{number}@example.org").report.findings[0].message
        for number, url in enumerate(urls)
    }
    assert said == {trials.UNREACHED.message}


@on_one_database
def test_a_list_does_not_ask_many_other_servers(opened: Opened, server: HttpServer) -> None:
    elsewhere = [(f"a.{number}.1", f"http://127.0.0.1:{port}/") for number, port in enumerate(range(2000, 2010), 10)]
    report = asked(opened, publish(server, "a.1.1", also=elsewhere)).report
    assert len(report.findings) == 2
    assert {each.message for each in report.findings} == {trials.UNREACHED.message}
    assert "8 more documents of the list would be harvested, and not checked here." in report.sentences


@on_one_database
def test_the_rights_that_the_settings_give_to_a_site_are_not_given_to_strangers(
    harvester: Harvester, opened: Opened, server: HttpServer
) -> None:
    with harvester.config.open("a") as file:
        file.write(f'[sites."Alder Creek"]\nfile_folder = "{harvester.folder}"\n')
    server.serve("/list.xml", harvest_list([("a.1.1", harvester.config.as_uri())]))
    with harvester.opened() as again:
        report = registrations.ask(again, Question("Alder Creek", server.url("/list.xml"), ANNA), BASE).report
    assert [each.rule for each in report.findings] == ["list.url"]


@on_one_database
def test_requests_are_limited_by_address_and_by_host(opened: Opened, server: HttpServer, clock: Clock) -> None:
    url = server.serve("/list.xml", b"no list")
    for number in range(policy.ASKED_BY_ADDRESS):
        asked(opened, url, address=f"Anna+{number}@example.org")
    with pytest.raises(RequestError, match="This address has made 3 requests today"):
        asked(opened, url, address="anna@EXAMPLE.org")
    for number in range(policy.ASKED_OF_HOST - policy.ASKED_BY_ADDRESS):
        asked(opened, url, address=f"b{number}@example.org")
    requests = len(server.requests)
    with pytest.raises(RequestError, match="There were 6 requests about this web server today"):
        asked(opened, url, address="c@example.org")
    assert len(server.requests) == requests
    clock.now += timedelta(days=1, seconds=1)
    asked(opened, url, address="anna@example.org")


@on_one_database
def test_a_link_ends_with_the_request(harvester: Harvester, opened: Opened, server: HttpServer, clock: Clock) -> None:
    asked(opened, publish(server, "a.1.1"))
    token = token_in(mailed(harvester, ANNA), registrations.ADDRESS_PAGE)
    clock.now += policy.LIFETIME + timedelta(seconds=1)
    with pytest.raises(RequestError, match="no longer valid"):
        registrations.prove_address(opened, token, BASE)
    assert registrations.waiting(opened) == []
    assert [each.state for each in registrations.waiting(opened, everything=True)] == [State.EXPIRED]
    with pytest.raises(RequestError, match="no longer valid"):
        registrations.of_address(opened, "x" * 43)


@on_one_database
def test_a_site_that_cannot_be_registered_stays_a_request(
    harvester: Harvester, opened: Opened, server: HttpServer
) -> None:
    answer = asked(opened, publish(server, "a.1.1"))
    assert answer.registration is not None
    harvester.add_site("Alder Creek", server.url("/other.xml"), contact_email="a@example.org")
    with pytest.raises(ScheduleError, match="There is a site named"):
        registrations.accept(opened, answer.registration.registration_id, without_proofs=True)
    assert registrations.find(opened, answer.registration.registration_id).state is State.WAITING_FOR_PROOFS


def test_two_stewards_accept_one_request_once(harvester: Harvester, opened: Opened, server: HttpServer) -> None:
    number = number_of(asked(opened, publish(server, "a.1.1")))
    together = Barrier(2)

    def accepted(steward: str) -> str:
        together.wait()
        try:
            registrations.accept(opened.acting(Actor(steward, "console")), number, without_proofs=True)
        except (RequestError, ScheduleError) as error:
            return str(error)
        return "accepted"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(accepted, ["anna", "ben"]))[1:] == ["accepted"]
    assert len(harvester.rows("SELECT name FROM harvest_site_schedule")) == 1
    assert len(harvester.rows("SELECT actor FROM audit_entry WHERE action = 'registrations.accept'")) == 1
    assert len([mail for mail in harvester.mails() if "is registered" in mail["Subject"]]) == 1


def refuse(opened: Opened, event: str, condition: str) -> None:
    """Let the database refuse changes of this kind from now on."""
    with opened.writing() as session:
        session.execute(
            text(f"CREATE TRIGGER refusing BEFORE {event} WHEN {condition} BEGIN SELECT RAISE(ABORT, 'refused'); END")
        )


@on_one_database
def test_a_decision_is_carried_out_as_a_whole_or_not_at_all(
    harvester: Harvester, opened: Opened, server: HttpServer
) -> None:
    harvester.add_site("elm", "https://elm.example.org/list.xml")
    new = number_of(asked(opened, publish(server, "a.1.1")))
    moved = my_site.move(opened, "elm", "elm@example.org", "https://oak.example.org/list.xml")
    assert moved is not None
    refuse(opened, "INSERT ON audit_entry", "NEW.action = 'registrations.accept'")
    for number in (new, moved.registration_id):
        before = registrations.find(opened, number)
        with pytest.raises(DatabaseUnavailable):
            registrations.accept(opened, number, without_proofs=True)
        assert registrations.find(opened, number) == before
    urls = harvester.rows("SELECT documentlisturl FROM harvest_site_schedule")
    assert urls == [("https://elm.example.org/list.xml",)]


@on_one_database
def test_a_decision_without_its_mail_says_so(harvester: Harvester, opened: Opened, server: HttpServer) -> None:
    number = number_of(asked(opened, publish(server, "a.1.1")))
    refuse(opened, "UPDATE ON site_registration", "NEW.mail_problem IS NULL AND OLD.mail_problem IS NOT NULL")
    with pytest.raises(DatabaseUnavailable):
        registrations.accept(opened, number, without_proofs=True)
    found = registrations.find(opened, number)
    assert found.state is State.ACCEPTED
    assert found.mail_problem.startswith("The server ended, or lost its database")
    harvester.rows("DROP TRIGGER refusing")
    assert registrations.mail_last(opened, number, BASE).mail_problem == ""


@on_one_database
def test_requests_are_listed_while_the_database_refuses_writing(
    opened: Opened, server: HttpServer, clock: Clock
) -> None:
    number = number_of(asked(opened, publish(server, "a.1.1")))
    refuse(opened, "UPDATE ON site_registration", "NEW.state = 'expired'")
    clock.now += timedelta(days=15)
    assert [each.registration_id for each in registrations.waiting(opened)] == [number]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (Question("", "https://a.example.org/l.xml", ANNA), "Give the site a name"),
        (Question("Buy at www.shop.example", "https://a.example.org/l.xml", ANNA), "not contain a web address"),
        (Question("A", "file:///etc/passwd", ANNA), "Only http and https"),
        (Question("A", "/etc/passwd", ANNA), "cannot be used"),
        (Question("A", "-", ANNA), "cannot be used"),
        (Question("A", "http://a.example.org:22/", ANNA), "Port 22"),
        (Question("A", "http://me:secret@a.example.org/", ANNA), "contains a user name"),
        (Question("A", "https://a.example.org/l.xml", "a@b.org, c@d.org"), "one email address"),
        (Question("A", "https://a.example.org/l.xml", "nobody"), "not an email address"),
        (Question("A", "https://a.example.org/oai", "a@example.org", "oai-pmh", prefix="x" * 256), "at most 255"),
        (Question("A", "https://a.example.org/l.xml", ANNA, every=0), "every day at most"),
        (Question("A", "https://a.example.org/l.xml", ANNA, "gopher"), "Choose one"),
    ],
)
@on_one_database
def test_a_wrong_field_gets_a_sentence_and_asks_nobody(opened: Opened, question: Question, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        registrations.ask(opened, question, BASE)
    assert registrations.waiting(opened, everything=True) == []


@on_one_database
def test_networks_of_the_installation_are_not_open_for_strangers(harvester: Harvester, server: HttpServer) -> None:
    harvester.config.write_text(harvester.config.read_text().replace('door_networks = ["127.0.0.0/8"]', ""))
    with harvester.opened() as opened:
        report = asked(opened, publish(server, "a.1.1")).report
    assert [each.message for each in report.findings] == [trials.UNREACHED.message]
    assert server.requests == []


@on_one_database
def test_a_forgotten_address_is_in_no_request(harvester: Harvester, opened: Opened, server: HttpServer) -> None:
    url = publish(server, "a.1.1")
    number = registrations.ask(opened, Question("A", url, ANNA), BASE).registration
    assert number is not None
    registrations.refuse(opened.acting(Actor(ANNA)), number.registration_id, f"{ANNA} is unknown here.")
    asked(opened, url, "B", "ben@example.org")
    harvester.rows("UPDATE site_registration SET source_contacts = ? WHERE name = 'B'", f'["{ANNA}"]')
    installation.forget_address(opened, ANNA.upper())
    for table in ("site_registration", "audit_entry"):
        assert ANNA not in str(harvester.rows(f"SELECT * FROM {table}")).casefold()
    assert [each.name for each in registrations.waiting(opened, everything=True)] == ["B"]


@on_one_database
@pytest.mark.parametrize("address", ["straße@station.example.org", "MÜLLER@station.example.org"])
def test_an_address_with_other_letters_is_forgotten(
    harvester: Harvester, opened: Opened, server: HttpServer, address: str
) -> None:
    asked(opened, publish(server, "a.1.1"), address=address)
    harvester.rows("UPDATE site_registration SET source_mailed_to = ?", address)
    installation.forget_address(opened, address)
    assert harvester.rows("SELECT * FROM site_registration") == []


@on_one_database
def test_a_link_stays_valid_if_there_is_no_address_for_another_one(
    harvester: Harvester, opened: Opened, server: HttpServer
) -> None:
    number = number_of(asked(opened, publish(server, "a.1.1")))
    token = token_in(mailed(harvester, ANNA), registrations.ADDRESS_PAGE)
    for _ in range(policy.MOST_MAILS):
        with pytest.raises(RequestError, match="has to set"):
            registrations.mail_link(opened, number)
    assert registrations.of_address(opened, token).registration_id == number
    registrations.mail_link(opened, number, BASE)
