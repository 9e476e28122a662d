"""libcurl's multi interface under an asyncio event loop: many transfers at a time, none of which needs a thread.

libcurl says which sockets it waits for and when it wants to be called again; the event loop calls it.
"""

from __future__ import annotations

import asyncio

import pycurl

from metaharvest.fetch.transfer import CurlHandle

IDLE_CONNECTIONS = 128
"""How many connections stay open for the next request, over all hosts."""

Result = tuple[int, str]
"""libcurl's result code (0: none) and its words."""


class CurlMulti:
    """Performs transfers for the event loop in which it was made."""

    def __init__(self, read_timeout: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._read_timeout = read_timeout
        self._results: dict[pycurl.Curl, asyncio.Future[Result]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, IDLE_CONNECTIONS)
        # One exchange at a time over each connection, also by HTTP/2, as connections are counted.
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_NOTHING)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)

    async def perform(self, handle: CurlHandle) -> Result:
        """Perform the exchange that `handle` was made ready for. Cancelling it ends the transfer."""
        result: asyncio.Future[Result] = self._loop.create_future()
        self._results[handle.curl] = result
        silence = self._loop.call_later(self._read_timeout, self._watch, handle, result)
        self._multi.add_handle(handle.curl)
        try:
            return await result
        finally:
            silence.cancel()
            del self._results[handle.curl]
            self._multi.remove_handle(handle.curl)

    def close(self) -> None:
        """Close all connections."""
        if self._timer:
            self._timer.cancel()
        self._multi.close()

    def _watch(self, handle: CurlHandle, result: asyncio.Future[Result]) -> None:
        """End the transfer if its server has been silent too long; otherwise look again when it may have been."""
        if result.done():
            return
        if handle.stop_for_silence():
            result.set_result((pycurl.E_ABORTED_BY_CALLBACK, ""))
            return
        left = self._read_timeout - handle.silent_for()
        self._loop.call_later(max(left, 0.01), self._watch, handle, result)

    def _on_socket(self, event: int, socket: int, _multi: object, _data: object) -> None:
        if event == pycurl.POLL_REMOVE:
            self._loop.remove_reader(socket)
            self._loop.remove_writer(socket)
            return
        if event & pycurl.POLL_IN:
            self._loop.add_reader(socket, self._act, socket, pycurl.CSELECT_IN)
        else:
            self._loop.remove_reader(socket)
        if event & pycurl.POLL_OUT:
            self._loop.add_writer(socket, self._act, socket, pycurl.CSELECT_OUT)
        else:
            self._loop.remove_writer(socket)

    def _on_timer(self, milliseconds: int) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if milliseconds >= 0:
            self._timer = self._loop.call_later(milliseconds / 1000, self._act, pycurl.SOCKET_TIMEOUT, 0)

    def _act(self, socket: int, events: int) -> None:
        self._multi.socket_action(socket, events)
        waiting = 1
        while waiting:
            waiting, done, failed = self._multi.info_read()
            for curl in done:
                self._finish(curl, 0, "")
            for curl, code, words in failed:
                self._finish(curl, code, words)

    def _finish(self, curl: pycurl.Curl, code: int, words: str) -> None:
        result = self._results.get(curl)
        if result is not None and not result.done():
            result.set_result((code, words))
