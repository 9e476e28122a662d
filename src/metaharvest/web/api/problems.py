"""The errors of the API: RFC 9457, application/problem+json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus

from starlette.responses import Response

from metaharvest.errors import DatabaseError, MetaharvestError

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """An error with its status and a sentence; `errors` are the mistakes in single values."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        kind: str = "request",
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Mapping[str, str]] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.kind = kind
        self.headers = dict(headers or {})
        self.errors = list(errors)

    def response(self) -> Response:
        """The answer. `kind` has the values of docs/schemas/error.json."""
        body: dict[str, object] = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "kind": self.kind,
        }
        if self.errors:
            body["errors"] = self.errors
        text = json.dumps(body, ensure_ascii=False)
        return Response(text.encode("utf-8", "replace"), self.status, media_type=MEDIA_TYPE, headers=self.headers)


@contextmanager
def known(missing: str = "") -> Iterator[None]:
    """A block that reads one thing: if it is not known, it raises Problem with this sentence, or with its own one."""
    try:
        yield
    except DatabaseError:
        raise
    except MetaharvestError as error:
        raise Problem(404, missing or str(error)) from error
