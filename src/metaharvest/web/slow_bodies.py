"""The time for the body of a request: uvicorn has no limit, and a body that never ends keeps a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_SECONDS = 300
"""The time for a whole body: enough for the largest file on a slow line."""

_SENTENCE = "The body of the request did not arrive within {} seconds. Please send it again.\n"


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
