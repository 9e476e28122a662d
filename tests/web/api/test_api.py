"""The API as a program uses it: keys, lists with cursors, actions, edits, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
import requests

from metaharvest.database.engine import writers
from metaharvest.errors import DatabaseUnavailable
from metaharvest.jobs import claims, making, workers
from metaharvest.jobs.claims import Used
from metaharvest.jobs.making import NewJob
from metaharvest.jobs.workers import WorkerProcess
from metaharvest.model.jobs import JobState, Step
from metaharvest.queries.sites import RegisteredSite, registered_site
from metaharvest.services import accounts
from metaharvest.web.api import acting, reading
from metaharvest.web.api.call import Answer, Call
from support import schemas
from support.console import Served, served_console
from support.databases import on_one_database
from support.harvester import Harvester, publish
from support.http_server import HttpServer

DAY = "2026-11-20"

pytestmark = on_one_database


@dataclass
class Program:
    """A program with a key."""

    url: str
    secret: str

    def __call__(self, method: str, path: str, **options: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.secret}", **options.pop("headers", {})}
        return requests.request(method, f"{self.url}/api/v1{path}", headers=headers, timeout=30, **options)

    def data(self, path: str) -> Any:
        answer = self("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]


@pytest.fixture
def console(harvester: Harvester, server: HttpServer) -> Iterator[Served]:
    harvester.add_site("elm", publish(server, "a.1.1", "b.1.1"))
    harvester.add_site("fir", publish(server, "c.1.1", path="/fir.xml"))
    harvester.run(DAY)
    with served_console(harvester) as made:
        yield made


def program(console: Served, role: str, name: str = "") -> Program:
    return Program(console.url, accounts.add_key(console.harvester, name or f"{role} program", role, "test", 30))


def problem(answer: requests.Response) -> tuple[int, str]:
    body = answer.json()
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert body["status"] == answer.status_code
    assert body["title"]
    return answer.status_code, body["detail"]


def test_only_a_valid_key_is_answered_and_cookies_do_not_count(console: Served) -> None:
    answer = requests.get(f"{console.url}/api/v1/sites", timeout=30)
    assert problem(answer)[0] == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="metaharvest"'
    browser = console.signed_in("operator")
    assert browser.session.cookies
    assert browser.session.get(f"{console.url}/api/v1/sites", timeout=30).status_code == 401
    wrong = Program(console.url, "mh_wrong")
    answer = wrong("GET", "/sites")
    assert problem(answer)[0] == 401
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
    viewer = program(console, "viewer")
    me = viewer.data("/me")
    assert (me["key"], me["role"]) == ("viewer program", "viewer")
    [key] = accounts.list_keys(console.harvester)
    assert key.last_used_at is not None
    accounts.revoke_key(console.harvester, key.key_id)
    assert viewer("GET", "/me").status_code == 401


def test_the_data_are_the_documents_of_the_command_line(console: Served, harvester: Harvester) -> None:
    viewer = program(console, "steward")
    documents = {
        "sites-list": ("/sites", ["sites", "list"]),
        "site": ("/sites/elm", ["sites", "show", "elm"]),
        "runs": ("/runs", ["runs"]),
        "runs-show": ("/runs/1", ["runs", "show", "1"]),
        "documents": ("/documents", ["documents"]),
        "documents-show": ("/documents/a.1", ["documents", "show", "a.1"]),
        "log": ("/log", ["log"]),
        "problems": ("/problems", ["problems"]),
        "figures": (f"/figures?since={DAY}&until={DAY}", ["figures", "--from", DAY, "--to", DAY]),
        "reports": ("/outbox", ["reports"]),
        "requests": ("/requests", ["requests"]),
        "decisions": ("/decisions", ["decisions"]),
    }
    for schema, (path, command) in documents.items():
        data = viewer.data(path)
        assert schemas.problems(schema, data) == [], path
        assert data == json.loads(harvester(*command, "--json").out), path


def test_lists_are_read_in_pages(console: Served, harvester: Harvester) -> None:
    harvester.run("2026-11-21")
    viewer = program(console, "steward")
    harvester("sites", "skip", "elm")
    harvester("sites", "skip", "fir")
    for path in ("sites", "runs", "documents", "log?run=1&level=debug", "outbox", "requests", "decisions"):
        whole = viewer.data(f"/{path}")
        found: list[Any] = []
        mark, pages, cursor = "&" if "?" in path else "?", 0, None
        while pages < 50:
            place = f"&cursor={cursor}" if cursor else ""
            page = viewer("GET", f"/{path}{mark}limit=1{place}").json()
            found, pages, cursor = [*found, *page["data"]], pages + 1, page["next_cursor"]
            assert len(page["data"]) <= 1, path
            if cursor is None:
                break
        key = "log_id" if path.startswith("log") else None
        assert sorted(found, key=str) == sorted(whole, key=str), path
        assert len(found) == len(whole) >= 2, path
        assert key is None or [row[key] for row in found] == [row[key] for row in reversed(whole)]
        assert problem(viewer("GET", f"/{path}{mark}cursor=nonsense"))[0] == 400


def test_jobs_are_read_with_their_events_and_workers(console: Served, harvester: Harvester) -> None:
    make_jobs(harvester)
    viewer = program(console, "viewer")
    documents = {
        "jobs": ("/jobs", ["jobs"]),
        "jobs-show": ("/jobs/2", ["jobs", "show", "2"]),
        "workers": ("/workers", ["workers"]),
    }
    for schema, (path, command) in documents.items():
        data = viewer.data(path)
        assert data
        assert schemas.problems(schema, data) == [], path
        assert data == json.loads(harvester(*command, "--json").out), path
    assert [each["job_id"] for each in viewer.data("/jobs?open=true")] == [3, 1]
    assert [each["job_id"] for each in viewer.data("/jobs?state=done&run=1")] == [2]
    assert viewer.data("/jobs/2")["events"][0]["step"] == "started"
    first = viewer("GET", "/jobs?limit=2").json()
    second = viewer("GET", f"/jobs?limit=2&cursor={first['next_cursor']}").json()
    assert [each["job_id"] for each in first["data"] + second["data"]] == [3, 2, 1]
    assert second["next_cursor"] is None
    assert problem(viewer("GET", "/jobs?state=lost"))[0] == 400
    assert problem(viewer("GET", "/jobs/4")) == (404, "There is no job 4.")


def make_jobs(harvester: Harvester) -> None:
    """Three jobs; the worker alder has done the second."""
    process = WorkerProcess("alder", "alder.example.org", 7, "1.0")
    with writers(harvester.engine).begin() as session:
        jobs = [NewJob("harvest_site", f"key {each}", priority=each % 2, run_id=1) for each in (2, 1, 0)]
        making.make(session, jobs)
        [claim] = claims.claim(session, process.name, ["harvest_site"])
        workers.note_steps(session, [(claim, Step.STARTED, "")], datetime.now(UTC))
        claims.end(session, claim, Used(), JobState.DONE)
        workers.note(session, process, [])


def test_a_request_has_its_address_in_the_folder_of_the_public_url(harvester: Harvester) -> None:
    harvester.add_site("elm", "http://127.0.0.1:1/elm.xml")
    with served_console(harvester, url="https://example.org/harvest") as console:
        answer = program(console, "steward")("POST", "/harvests", json={"site": "elm"})
    number = answer.json()["data"]["request_id"]
    assert answer.headers["Location"] == answer.json()["data"]["url"] == f"/harvest/api/v1/requests/{number}"


def test_a_requested_harvest_has_an_address_and_is_asked_for_once(console: Served) -> None:
    steward = program(console, "steward", "portal")
    answer = steward("POST", "/harvests", json={"site": "elm", "scope": "everything", "priority": 5})
    assert answer.status_code == 202
    location = answer.headers["Location"]
    data = answer.json()["data"]
    assert location == data["url"] == f"/api/v1/requests/{data['request_id']}"
    assert (data["site"], data["scope"], data["priority"], data["state"]) == ("elm", "everything", 5, "waiting")
    assert "the daemon does not run" in data["waits_for"]
    assert steward.data(location.removeprefix("/api/v1")) == data
    same = steward("POST", "/harvests", json={"site": "elm", "scope": "everything"})
    assert same.json()["data"]["request_id"] == data["request_id"]
    [entry, *_] = steward.data("/decisions")
    assert (entry["actor"], entry["via"], entry["action"], entry["subject"]) == (
        "key portal",
        "api",
        "sites.harvest",
        "elm",
    )
    assert problem(steward("POST", "/harvests", json={"site": "oak"})) == (422, "There is no site of this name.")
    assert problem(steward("POST", "/stops", json={})) == (409, "No run is under way: there is nothing to stop.")
    assert steward("DELETE", location.removeprefix("/api/v1")).json()["data"]["state"] == "cancelled"
    assert problem(steward("DELETE", location.removeprefix("/api/v1")))[0] == 409
    assert steward("POST", "/skips", json={"site": "fir"}).status_code == 202
    viewer = program(console, "viewer")
    assert problem(viewer("POST", "/harvests", json={"site": "elm"}))[0] == 403


def test_a_repeated_call_with_an_idempotency_key_is_carried_out_once(console: Served, harvester: Harvester) -> None:
    steward = program(console, "steward")
    once = {"Idempotency-Key": "one"}
    first = steward("POST", "/outbox/1/resend", json={"to": ["oak@example.org"]}, headers=once)
    assert first.status_code == 202
    again = steward("POST", "/outbox/1/resend", json={"to": ["oak@example.org"]}, headers=once)
    assert (again.status_code, again.json()) == (202, first.json())
    assert again.headers["Idempotency-Replayed"] == "true"
    number = "SELECT COUNT(*) FROM audit_entry WHERE action = 'reports.resend'"
    assert harvester.rows(number) == [(1,)]
    other = steward("POST", "/outbox/2/resend", json={"to": ["oak@example.org"]}, headers=once)
    assert problem(other)[0] == 422
    assert problem(steward("POST", "/skips", json={"site": "elm"}, headers={"Idempotency-Key": "a b"}))[0] == 400
    refused = steward("POST", "/stops", json={}, headers={"Idempotency-Key": "two"})
    assert problem(steward("POST", "/stops", json={}, headers={"Idempotency-Key": "two"})) == problem(refused)


def test_a_call_that_fails_after_its_action_is_not_carried_out_again(
    console: Served, harvester: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    steward, read = program(console, "steward"), iter([reading.mail, fails, fails, reading.mail, reading.mail])
    monkeypatch.setattr(acting, "mail", lambda call: next(read)(call))
    sent = {"json": {"to": ["oak@example.org"]}, "headers": {"Idempotency-Key": "one"}}
    assert steward("POST", "/outbox/1/resend", **sent).status_code == 503
    assert problem(steward("POST", "/outbox/1/resend", **sent))[0] == 409
    sent["headers"] = {"Idempotency-Key": "two"}
    assert steward("POST", "/outbox/1/resend", **sent).status_code == 503
    assert harvester.rows("SELECT COUNT(*) FROM audit_entry WHERE action = 'reports.resend'") == [(1,)]
    assert steward("POST", "/outbox/1/resend", **sent).status_code == 202


def test_a_call_that_is_not_possible_can_be_repeated_with_its_key(console: Served, harvester: Harvester) -> None:
    steward, once = program(console, "steward"), {"Idempotency-Key": "one"}
    assert problem(steward("POST", "/stops", json={}, headers=once))[0] == 409
    harvester.rows("UPDATE harvest_run SET status = 'running', ended_at = NULL, heartbeat_at = ?", datetime.now(UTC))
    assert steward("POST", "/stops", json={}, headers=once).status_code == 202


def test_a_confirmation_that_is_not_possible_can_be_repeated_with_its_key(
    console: Served, harvester: Harvester
) -> None:
    steward, once = program(console, "steward"), {"Idempotency-Key": "one"}
    kind = {"source_kind": "oai-pmh", "options": '{"oai": {"origin": "frogs"}, "deletions": "note"}'}
    harvester.add_site("frogs", "https://frogs.example.org/oai", **kind)
    assert problem(steward("POST", "/sites/frogs/confirm", headers=once))[0] == 409
    harvester.rows("UPDATE harvest_site_schedule SET options = ? WHERE name = 'frogs'", '{"oai": {"origin": "frogs"}}')
    assert steward("POST", "/sites/frogs/confirm", headers=once).status_code == 200


def fails(_call: Call) -> Answer:
    raise DatabaseUnavailable("It does not answer.")


def test_the_etag_of_a_site_that_is_changed_while_it_is_read_is_too_old(
    console: Served, harvester: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_before_a_change(*given: Any) -> RegisteredSite:
        found = registered_site(*given)
        harvester.rows("UPDATE harvest_site_schedule SET notify = 'never' WHERE name = 'elm'")
        return found

    steward = program(console, "steward")
    monkeypatch.setattr(reading, "registered_site", read_before_a_change)
    etag = steward("GET", "/sites/elm").headers["ETag"]
    monkeypatch.undo()
    assert problem(steward("PATCH", "/sites/elm", json={"every": 2}, headers={"If-Match": etag}))[0] == 412


def test_a_site_is_changed_only_as_it_was_read(console: Served, harvester: Harvester) -> None:
    steward = program(console, "steward")
    etag = steward("GET", "/sites/elm").headers["ETag"]
    change = {"every": 2, "unit": "weeks", "contacts": ["new@example.org"], "groups": ["north"], "enabled": False}
    assert problem(steward("PATCH", "/sites/elm", json=change))[0] == 428
    assert problem(steward("PATCH", "/sites/elm", json=change, headers={"If-Match": '"other"'}))[0] == 412
    for wrong in ("foo*", "*, *", etag.strip('"'), ""):
        assert problem(steward("PATCH", "/sites/elm", json=change, headers={"If-Match": wrong}))[0] == 400, wrong
    answer = steward("PATCH", "/sites/elm", json=change, headers={"If-Match": f'"other", {etag}'})
    assert answer.status_code == 200, answer.text
    data = answer.json()["data"]
    assert {name: data[name] for name in change} == change
    assert answer.headers["ETag"] != etag
    assert problem(steward("PATCH", "/sites/elm", json={"every": 3}, headers={"If-Match": etag}))[0] == 412
    etag = answer.headers["ETag"]
    harvester.run("2026-11-21")
    assert steward("GET", "/sites/elm").headers["ETag"] == etag
    renamed = steward("PATCH", "/sites/elm", json={"site": "yew", "groups": []}, headers={"If-Match": etag})
    assert (renamed.json()["data"]["site"], renamed.json()["data"]["groups"]) == ("yew", [])
    assert problem(steward("GET", "/sites/elm"))[0] == 404
    switched = steward("PATCH", "/sites/yew", json={"enabled": True}, headers={"If-Match": renamed.headers["ETag"]})
    assert (switched.status_code, switched.json()["data"]["enabled"]) == (200, True)
    assert problem(steward("PATCH", "/sites/yew", json={"enabled": False}, headers={"If-Match": '"other"'}))[0] == 412
    actions = "SELECT action FROM audit_entry WHERE subject = 'yew' ORDER BY audit_entry_id"
    assert harvester.rows(actions)[-1:] == [("sites.enable",)]
    mistakes: tuple[dict[str, Any], ...]
    mistakes = {"every": 0}, {"colour": "red"}, {"contacts": ["nobody"]}, {"list_url": "ftp://x"}, {}, {"every": None}
    for mistake in mistakes:
        assert problem(steward("PATCH", "/sites/yew", json=mistake, headers={"If-Match": "*"}))[0] == 422, mistake


def test_the_address_of_a_site_as_it_was_read_keeps_its_login(console: Served, harvester: Harvester) -> None:
    steward = program(console, "steward")
    with_login = "https://me:secret@rowan.example.org/list.xml"
    harvester.add_site("rowan", with_login)
    read = steward("GET", "/sites/rowan").json()["data"]
    change = {"every": 3, "list_url": read["list_url"]}
    assert steward("PATCH", "/sites/rowan", json=change, headers={"If-Match": "*"}).json()["data"]["every"] == 3
    url = "SELECT documentlisturl FROM harvest_site_schedule WHERE name = 'rowan'"
    assert harvester.rows(url) == [(with_login,)]


def test_a_broken_repository_gets_another_address_and_other_groups(console: Served, harvester: Harvester) -> None:
    steward = program(console, "steward")
    options = '{"groups": ["north", "south"], "oai": {"origin": "frogs"}}'
    kind = {"source_kind": "oai-pmh", "options": options}
    harvester.add_site("frogs", "https://frogs.example.org/oai", **kind)
    harvester.rows("UPDATE harvest_site_schedule SET contact_email = 'nobody' WHERE name = 'frogs'")
    change = {"contacts": ["f@example.org"], "groups": ["south"], "list_url": "https://new.example.org/oai"}
    answer = steward("PATCH", "/sites/frogs", json=change, headers={"If-Match": "*"})
    assert answer.status_code == 200, answer.text
    data = answer.json()["data"]
    assert {name: data[name] for name in change} == change


def test_mistakes_become_problems_with_sentences(console: Served) -> None:
    steward = program(console, "steward")
    assert problem(steward("GET", "/nothing"))[0] == 404
    for path in ("/runs/99", "/runs/x", "/sites/oak", "/sites/%00", "/documents/none.1", "/outbox/99", "/requests/9"):
        assert problem(steward("GET", path))[0] == 404, path
    answer = steward("PUT", "/sites/elm")
    assert (problem(answer)[0], answer.headers["Allow"]) == (405, "GET, HEAD, PATCH")
    assert problem(steward("GET", "/sites?limit=0"))[0] == 400
    assert problem(steward("GET", "/sites?colour=red")) == (
        400,
        "An argument cannot be used: colour: Extra inputs are not permitted.",
    )
    assert problem(steward("GET", "/sites?limit=1&limit=2")) == (400, "limit is given twice.")
    assert problem(steward("GET", "/figures?since=1700000000"))[0] == 400
    assert problem(steward("GET", "/log?since=2026-11-21&until=2026-11-20"))[0] == 422
    assert problem(steward("POST", "/harvests", data="{", headers={"Content-Type": "application/json"}))[0] == 400
    assert problem(steward("POST", "/harvests", data="site=elm"))[0] == 415
    assert problem(steward("POST", "/harvests", data=b"x" * 70_000))[0] == 413
    answer = steward("POST", "/harvests", json={"site": "elm", "priority": 1000})
    assert problem(answer)[0] == 422
    assert answer.json()["errors"][0]["name"] == "priority"
    assert steward("HEAD", "/sites").status_code == 200


def test_too_many_wrong_keys_have_to_wait(console: Served) -> None:
    wrong = Program(console.url, "mh_guess")
    statuses = [wrong("GET", "/me").status_code for _ in range(31)]
    assert statuses[-1] == 429
    answer = wrong("GET", "/me")
    assert problem(answer)[0] == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 60
    assert program(console, "viewer")("GET", "/me").status_code == 200


def test_registrations_are_for_stewards(console: Served) -> None:
    assert program(console, "steward").data("/registrations") == []
    viewer = program(console, "viewer")
    assert problem(viewer("GET", "/registrations"))[0] == 403
    steward = program(console, "steward", "second")
    assert problem(steward("POST", "/registrations/7/refuse", json={"reason": "No."}))[0] == 404


def test_everybody_may_read_the_description(console: Served) -> None:
    answer = requests.get(f"{console.url}/api/v1/openapi.json", timeout=30)
    assert answer.json()["openapi"] == "3.1.0"
    assert requests.get(f"{console.url}/api/v2/sites", timeout=30).status_code == 404


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ("[]", 422, "A value cannot be used: Input should be an object."),
        ("[" * 30_000, 400, "The JSON of the body is nested too deeply."),
        ('{"priority": ' + "9" * 5_000 + "}", 400, "The body is not JSON: a number has more than 100 digits."),
    ],
    ids=["no object", "deep", "long number"],
)
def test_a_body_that_cannot_be_read_gets_a_sentence(console: Served, body: str, status: int, detail: str) -> None:
    steward = program(console, "steward")
    answer = steward("POST", "/harvests", data=body, headers={"Content-Type": "application/json"})
    assert problem(answer) == (status, detail)


def test_a_registration_is_accepted(console: Served, server: HttpServer) -> None:
    url = publish(server, "n.1.1", path="/new.xml")
    values = {"url": url, "name": "new", "address": "new@example.org"}
    assert console.visitor().open("/console/register").submit("Check and register", values).status == 200
    steward = program(console, "steward")
    [waiting] = steward.data("/registrations")
    assert schemas.problems("registrations-list", [waiting]) == []
    path = f"/registrations/{waiting['registration_id']}"
    assert steward.data(path) == waiting
    assert problem(program(console, "viewer")("POST", f"{path}/accept", json={}))[0] == 403
    assert problem(steward("POST", f"{path}/accept", json={}))[0] == 409
    assert problem(steward("POST", f"{path}/refuse", json={"reason": " "}))[0] == 422
    answer = steward("POST", f"{path}/accept", json={"without_proofs": True})
    assert (answer.status_code, answer.json()["data"]["state"]) == (200, "accepted")
    assert steward.data("/sites/new")["list_url"] == url
    assert problem(steward("POST", f"{path}/refuse", json={"reason": "No."}))[0] == 409
