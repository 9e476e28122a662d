"""A call: one request of a program to the API, and the answer to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from metaharvest.model.kinds import Role
from metaharvest.model.values import frozen
from metaharvest.services.accounts import Key
from metaharvest.services.harvester import Harvester
from metaharvest.text import whole_number
from metaharvest.web.api.models import Nothing
from metaharvest.web.api.problems import Problem
from metaharvest.web.readers import Readers

ROOT = "/api/v1"


@frozen
class Call:
    """The input of an operation. `harvester` acts for the key; `path` has the texts in the places of the path's names.

    `query` and `body` are checked models of the operation. `expected` are the ETags of If-Match. `readers` is the
    search of the published outputs, `client` the address of the client. Without a `key` the operation is for everybody.
    """

    harvester: Harvester
    readers: Readers
    client: str
    key: Key | None
    path: Mapping[str, str]
    query: Any
    body: Any
    expected: tuple[str, ...] = ()

    def address(self, path: str) -> str:
        """The address of this path of the API, below the folder of [web] url."""
        return urlsplit(self.harvester.settings.web.url).path.rstrip("/") + ROOT + path

    def number(self, name: str, what: str) -> int:
        """The number in the path. Raises Problem."""
        number = whole_number(self.path[name])
        if number is None:
            raise Problem(404, f"There is no {what} with this number.")
        return number


@frozen
class Answer:
    """The answer of an operation: its data, and the cursor of the next page of a list."""

    data: object
    next_cursor: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@frozen
class Operation:
    """A method and a path of the API: the function, the least role of the key, and its description for OpenAPI.

    `schema` names a document in docs/schemas, or is a schema itself. `refused` is the status of a request that cannot
    be done: 409 if the state of things forbids it, 422 if a value does. `may_miss`: the path names something that may
    not be there. `is_edit`: it needs If-Match.
    """

    method: str
    path: str
    answer: Callable[[Call], Answer]
    least: Role
    summary: str
    schema: str | Mapping[str, Any]
    query: type[BaseModel] = Nothing
    body: type[BaseModel] | None = None
    status: int = 200
    refused: int = 422
    is_edit: bool = False

    @property
    def is_action(self) -> bool:
        """True if it takes an Idempotency-Key."""
        return self.method in ("POST", "DELETE")
