"""The bodies of requests and answers: the time for one, its size, and answers in gzip.

uvicorn has no limit of the time, and a body that never ends keeps a connection.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_SECONDS = 300
"""The time for a whole body: enough for the largest file on a slow line."""

_SENTENCE = "The body of the request did not arrive within {} seconds. Please send it again.\n"
_REFUSED = re.compile(r"0(\.0{0,3})?")
"""The weight of a coding that a client does not accept."""


async def read_body(request: Request, most_bytes: int) -> bytes | None:
    """The body of a request; None if it is larger. Raises ClientDisconnect if the client goes away before its end."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most_bytes:
            return None
    return bytes(body)


def accepts_gzip(request: Request) -> bool:
    """True if a client accepts answers in gzip: RFC 9110, section 12.5.3."""
    weights: dict[str, str] = {}
    for each in request.headers.get("accept-encoding", "").lower().split(","):
        coding, _, weight = each.partition(";")
        weights[coding.strip()] = weight.strip().removeprefix("q=").strip()
    weight = weights.get("gzip", weights.get("*", "0"))
    return _REFUSED.fullmatch(weight) is None


def with_time_limit(answering: ASGIApp, headers: Mapping[str, str]) -> ASGIApp:
    """The application; a request whose body takes too long gets the status 408 with these headers, and is closed."""

    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        end = asyncio.get_running_loop().time() + BODY_SECONDS
        is_whole = is_late = False

        async def receive_in_time() -> Message:
            nonlocal is_whole, is_late
            if is_whole:
                return await receive()
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError:
                is_late = True
                text, closes = _SENTENCE.format(BODY_SECONDS), {"Connection": "close"}
                await PlainTextResponse(text, 408, headers={**headers, **closes})(scope, receive, send)
                raise ClientDisconnect from None
            is_whole = not message.get("more_body", False)
            return message

        async def send_if_in_time(message: Message) -> None:
            if not is_late:
                await send(message)

        try:
            await answering(scope, receive_in_time, send_if_in_time)
        except ClientDisconnect:
            if not is_late:
                raise

    return limited
