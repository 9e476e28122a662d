"""From a request to an answer: finds the operation, knows the key, reads query and body, turns errors into problems."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote

from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from metaharvest.config.paths import data_folder
from metaharvest.errors import DatabaseError, HarvestError, LockHeld, MetaharvestError, RequestError, RunLost
from metaharvest.model.actions import todo
from metaharvest.model.kinds import Role
from metaharvest.model.requests import Actor
from metaharvest.model.values import frozen
from metaharvest.queries.json_keys import as_json
from metaharvest.services import accounts
from metaharvest.services.accounts import Key
from metaharvest.services.harvester import Harvester
from metaharvest.text import counted, one_line
from metaharvest.web.api.call import ROOT, Answer, Call, Operation
from metaharvest.web.api.operations import OPERATIONS
from metaharvest.web.api.problems import Problem
from metaharvest.web.bodies import read_body
from metaharvest.web.readers import Readers
from metaharvest.web.turns import RateLimit, address_of, client_of

log = logging.getLogger(__name__)

MOST_BYTES = 65_536
"""The largest body of a request."""

_A_MINUTE = 600
"""The most calls of a key in a minute."""

_FAILURES_A_MINUTE = 30
"""The most calls without a valid key from one address in a minute."""

_MOST_DIGITS = 100
"""The most digits of a number in a body."""

_DESCRIPTION = "/openapi.json"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Vary": "Authorization",
}
_BEARER = re.compile(r"Bearer +([A-Za-z0-9._~+/-]+=*) *", re.IGNORECASE)
_JSON = ("application/json", "application/merge-patch+json")
_ETAG = re.compile(r'\*|"[^"]*"')
_IF_MATCH = re.compile(r'\*|(W/)?"[^"]*"(\s*,\s*(W/)?"[^"]*")*')
_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_UNEXPECTED = "Something went wrong here. The operator finds it in the log of the server."


@frozen
class _Api:
    """The API of one process: its operations, and its limits of rates."""

    harvester: Harvester
    readers: Readers
    operations: Sequence[Operation]
    calls: RateLimit
    failures: RateLimit


def api_application(harvester: Harvester, readers: Readers, *, least: Role = Role.OPERATOR) -> ASGIApp:
    """The application that answers at /api/v1, with the operations for this role; PUBLIC: for everybody."""
    operations = [each for each in OPERATIONS if each.least <= least]
    api = _Api(harvester, readers, operations, RateLimit(_A_MINUTE, 60), RateLimit(_FAILURES_A_MINUTE, 60))

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            body = await read_body(request, MOST_BYTES)
        except ClientDisconnect:  # a part of a body may say something else than the whole
            return
        response = await run_in_threadpool(_answer, api, request, body)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    return application


def _answer(api: _Api, request: Request, body: bytes | None) -> Response:
    """The answer to a request; its body is None if it is too large. Each error becomes a problem."""
    try:
        return _carry_out(api, request, body)
    except Problem as problem:
        return problem.response()
    except DatabaseError as error:
        log.error("A call of the API was not answered: %s", error)
        detail = "The database cannot be used at this moment. Please try again."
        return Problem(503, detail, kind="database", headers={"Retry-After": "60"}).response()
    except Exception:
        log.exception("A call of the API was not answered: an unexpected error")
        return Problem(500, _UNEXPECTED, kind="unexpected").response()


def _carry_out(api: _Api, request: Request, body: bytes | None) -> Response:
    path = _path(request)
    if path == _DESCRIPTION:
        if request.method in ("GET", "HEAD"):
            return Response(_description_of(api.operations), media_type="application/json")
        raise Problem(405, f"{one_line(request.method, 20)} is not possible here.", headers={"Allow": "GET, HEAD"})
    operation, names = _found(api.operations, request.method, path)
    key = _key_for(operation, api, request) if operation.least > Role.PUBLIC else None
    call = Call(
        api.harvester.acting(Actor(f"key {key.name}", "api")) if key else api.harvester,
        api.readers,
        client_of(address_of(request)),
        key,
        names,
        _query(operation, request),
        _checked_body(operation, request, body),
        _expected(operation, request),
    )
    once = request.headers.get("idempotency-key")
    if once is None or not operation.is_action:
        return _response(_perform(operation, call))
    parts = (request.method, path, _query_string(request), (body or b"").decode("latin-1"))
    return _answer_once(operation, call, once, hashlib.sha256(json.dumps(parts).encode()).hexdigest())


def _path(request: Request) -> str:
    """The raw path below the root."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    path = raw.partition(b"?")[0].decode("latin-1")
    return path[path.find(ROOT) + len(ROOT) :]


def _query_string(request: Request) -> str:
    raw: bytes = request.scope.get("query_string", b"")
    return raw.decode("latin-1")


def _key_for(operation: Operation, api: _Api, request: Request) -> Key:
    """The key of a call, which has calls left and the role for the operation. Raises Problem."""
    key = _key(api, request)
    if wait := api.calls.seconds_to_wait(str(key.key_id)):
        raise _too_many(wait, f"A key has at most {_A_MINUTE} calls a minute.")
    if key.role < operation.least:
        detail = f"The key {key.name} has the role {key.role.word}; this needs the role {operation.least.word}."
        raise Problem(403, detail)
    return key


def _found(operations: Sequence[Operation], method: str, path: str) -> tuple[Operation, Mapping[str, str]]:
    """The operation of this method and path, and the texts in the places of the path's names. Raises Problem."""
    parts = [unquote(part) for part in path.split("/")]
    allowed: list[str] = []
    wanted_method = "GET" if method == "HEAD" else method
    for operation in operations:
        wanted = operation.path.split("/")
        pairs = list(zip(wanted, parts, strict=False))
        if len(wanted) == len(parts) and all(bool(has) if want[:1] == "{" else want == has for want, has in pairs):
            if operation.method == wanted_method:
                if "\0" in "".join(parts):
                    break
                return operation, {want[1:-1]: has for want, has in pairs if want[:1] == "{"}
            allowed += ["GET", "HEAD"] if operation.method == "GET" else [operation.method]
    if allowed:
        detail = f"{one_line(method, 20)} is not possible here."
        raise Problem(405, detail, headers={"Allow": ", ".join(allowed)})
    raise Problem(404, f"There is nothing at this address. {ROOT}{_DESCRIPTION} lists all addresses.")


def _key(api: _Api, request: Request) -> Key:
    """The key of the header Authorization; cookies do not count. Raises Problem."""
    given = request.headers.get("authorization", "")
    found = _BEARER.fullmatch(given)
    key = accounts.key_of(api.harvester, found[1]) if found else None
    if key is not None:
        return key
    if wait := api.failures.seconds_to_wait(client_of(address_of(request))):
        raise _too_many(wait, "There were too many calls without a valid key from this address.")
    challenge = 'Bearer realm="metaharvest"'
    if not given:
        detail = f"This needs a key of the API: Authorization: Bearer KEY. {todo('keys.add')} makes one."
        raise Problem(401, detail, headers={"WWW-Authenticate": challenge})
    detail = "The key is not valid: it is unknown, expired or revoked, or the header is not: Authorization: Bearer KEY."
    raise Problem(401, detail, headers={"WWW-Authenticate": f'{challenge}, error="invalid_token"'})


def _too_many(wait: int, detail: str) -> Problem:
    return Problem(429, f"{detail} Try again in {counted(wait, 'second')}.", headers={"Retry-After": str(wait)})


def _query(operation: Operation, request: Request) -> BaseModel:
    """The checked arguments. Raises Problem."""
    text = _query_string(request)
    try:
        pairs = parse_qsl(text, keep_blank_values=True, encoding="utf-8", errors="strict", max_num_fields=50)
    except ValueError as error:
        detail = "The arguments cannot be read: write at most 50, percent-encoded from UTF-8."
        raise Problem(400, detail) from error
    given: dict[str, str] = {}
    for name, value in pairs:
        if name in given:
            raise Problem(400, f"{one_line(name, 60)} is given twice.")
        if "\0" in value:
            raise Problem(400, f"{one_line(name, 60)} has a character that is not allowed.")
        given[name] = value
    try:
        return operation.query.model_validate(given)
    except ValidationError as error:
        raise _mistakes(400, "An argument cannot be used", error) from error


def _checked_body(operation: Operation, request: Request, body: bytes | None) -> BaseModel | None:
    """The checked body; None for an operation without one. Raises Problem."""
    if body is None:
        raise Problem(413, f"A body has at most {MOST_BYTES:,} bytes.")
    if operation.body is None:
        if body.strip() and operation.method not in ("GET", "DELETE"):
            raise Problem(400, "This operation takes no body. Send the call without one.")
        return None
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and media_type not in _JSON:
        raise Problem(415, "The body is JSON: Content-Type: application/json.")
    try:
        value: Any = json.loads(body or b"{}", parse_constant=_no_number, parse_int=_integer, object_pairs_hook=_object)
    except RecursionError as error:
        raise Problem(400, "The JSON of the body is nested too deeply.") from error
    except ValueError as error:
        raise Problem(400, f"The body is not JSON: {one_line(str(error), 200)}.") from error
    text = json.dumps(value)
    if "\\u0000" in text:
        raise Problem(422, "A value has the character U+0000, which is not allowed.")
    try:
        return operation.body.model_validate_json(text)
    except ValidationError as error:
        raise _mistakes(422, "A value cannot be used", error) from error


def _no_number(word: str) -> object:
    raise ValueError(f"{word} is not a number")


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number has more than {_MOST_DIGITS} digits")
    return int(digits)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a name is given twice")
    return made


def _mistakes(status: int, start: str, error: ValidationError) -> Problem:
    mistakes = [
        {
            "name": one_line(".".join(str(part) for part in each["loc"]), 100),
            "message": one_line(each["msg"].removeprefix("Value error, "), 300),
        }
        for each in error.errors(include_url=False, include_input=False, include_context=False)[:20]
    ]
    first = mistakes[0]
    where = f"{first['name']}: " if first["name"] else ""
    return Problem(status, f"{start}: {where}{first['message']}.", errors=mistakes)


def _expected(operation: Operation, request: Request) -> tuple[str, ...]:
    """The ETags of If-Match. Raises Problem if an edit has none."""
    given = request.headers.get("if-match")
    if not operation.is_edit:
        return ()
    if given is None:
        raise Problem(428, "Give If-Match with the ETag of the site, so that no other change is lost.")
    if not _IF_MATCH.fullmatch(given.strip()):
        raise Problem(400, 'If-Match is *, or the ETag of the site in its double quotes, such as "3f2a".')
    return tuple(_ETAG.findall(given))


def _perform(operation: Operation, call: Call) -> Answer:
    """The answer of the operation; errors that a program can cause become problems."""
    try:
        return operation.answer(call)
    except DatabaseError:
        raise
    except HarvestError as error:
        raise Problem(422, " ".join(error.sentences), kind="target") from error
    except (LockHeld, RunLost) as error:
        raise Problem(409, str(error), kind="locked") from error
    except RequestError as error:
        raise Problem(operation.refused, str(error)) from error
    except MetaharvestError as error:
        raise Problem(422, str(error)) from error


def _answer_once(operation: Operation, call: Call, name: str, fingerprint: str) -> Response:
    """The answer to a call that is carried out once, however often it is sent; it has this name and fingerprint."""
    if not _IDEMPOTENCY_KEY.fullmatch(name):
        raise Problem(400, "Idempotency-Key has 1 to 255 printable characters of ASCII, without blanks.")
    harvester = call.harvester
    assert call.key is not None  # no action is for everybody
    begun = accounts.begin_call(harvester, call.key.key_id, name, fingerprint)
    if not begun.is_new:
        if begun.fingerprint != fingerprint:
            raise Problem(422, "This Idempotency-Key was used for another call. Use a new one.")
        if begun.status is None:
            raise Problem(409, "The first call with this Idempotency-Key has not ended. Try again later.")
        kept = json.loads(begun.answer)
        return Response(kept["body"], begun.status, headers={**kept["headers"], "Idempotency-Replayed": "true"})
    written = harvester.transactions
    try:
        response = _response(_perform(operation, call))
    except Problem as problem:
        response = problem.response()
    except BaseException:
        # An error after a transaction can mean that the action is done: the call stays without an answer.
        if harvester.transactions == written:
            accounts.forget_call(harvester, begun.call_id)
        raise
    if response.status_code == 409 and harvester.transactions == written:
        # The action is not possible at this moment: the same call can be sent later.
        accounts.forget_call(harvester, begun.call_id)
        return response
    names = ("content-type", "location", "etag")
    headers = {name: response.headers[name] for name in names if name in response.headers}
    kept = {"headers": headers, "body": bytes(response.body).decode()}
    accounts.end_call(harvester, begun.call_id, response.status_code, json.dumps(kept))
    return response


def _response(answer: Answer) -> Response:
    envelope = {"data": answer.data, "next_cursor": answer.next_cursor}
    text = json.dumps(envelope, ensure_ascii=False, default=as_json)
    return Response(
        text.encode("utf-8", "replace"), answer.status, media_type="application/json", headers=dict(answer.headers)
    )


@cache
def description() -> bytes:
    """The description of the API in the terms of OpenAPI 3.1."""
    return (data_folder("docs") / "openapi.json").read_bytes()


def _description_of(operations: Sequence[Operation]) -> bytes:
    """The description of these operations alone."""
    if len(operations) == len(OPERATIONS):
        return description()
    named = {ROOT + each.path for each in operations}
    whole = json.loads(description())
    paths = {path: value for path, value in whole["paths"].items() if path in named}
    return json.dumps({**whole, "paths": paths}).encode()
