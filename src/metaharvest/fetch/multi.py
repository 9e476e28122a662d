"""libcurl's multi interface under an asyncio event loop: many transfers at a time, none of which needs a thread.

libcurl reports the sockets that it waits for, and the time of its next call. Its sockets have a selector of their own,
which the event loop watches as one: libcurl is then called for all sockets that are ready, one after the other.
"""

from __future__ import annotations

import asyncio
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector

import pycurl

from metaharvest.fetch.transfer import CurlHandle

IDLE_CONNECTIONS = 128
"""The number of connections that stay open for the next request, over all hosts."""

_LOOK_SECONDS = 0.2
"""The interval of the search for servers that have been silent for too long."""

Result = tuple[int, str]
"""libcurl's result code (0: none) and its words."""


class CurlMulti:
    """Performs transfers for the event loop in which it was made."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._under_way: dict[pycurl.Curl, tuple[CurlHandle, asyncio.Future[Result]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._soon: asyncio.Handle | None = None
        self._look: asyncio.TimerHandle | None = None
        self._sockets: set[int] = set()
        self._selector = DefaultSelector()
        self._loop.add_reader(self._selector, self._ready)
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, IDLE_CONNECTIONS)
        # One exchange at a time over each connection, also by HTTP/2, as connections are counted.
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_NOTHING)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)

    async def perform(self, handle: CurlHandle) -> Result:
        """Perform the exchange that `handle` was prepared for. Cancelling it ends the transfer."""
        result: asyncio.Future[Result] = self._loop.create_future()
        self._under_way[handle.curl] = handle, result
        if self._look is None:
            self._look = self._loop.call_later(_LOOK_SECONDS, self._look_who_is_silent)
        self._multi.add_handle(handle.curl)
        try:
            return await result
        finally:
            del self._under_way[handle.curl]
            self._multi.remove_handle(handle.curl)

    def close(self) -> None:
        """Close all connections."""
        for call in (self._timer, self._soon, self._look):
            if call:
                call.cancel()
        self._multi.close()
        self._loop.remove_reader(self._selector)
        self._selector.close()

    def _look_who_is_silent(self) -> None:
        """End the transfers of servers that have been silent for longer than the read time-out."""
        try:
            for handle, result in self._under_way.values():
                if not result.done() and handle.stop_for_silence():
                    result.set_result((pycurl.E_ABORTED_BY_CALLBACK, ""))
        finally:  # also without memory: otherwise no later look would come
            is_idle = not self._under_way
            self._look = None if is_idle else self._loop.call_later(_LOOK_SECONDS, self._look_who_is_silent)

    def _on_socket(self, event: int, socket: int, _multi: object, _data: object) -> None:
        """libcurl waits for another event of this socket than before."""
        if event == pycurl.POLL_REMOVE:
            if socket in self._sockets:
                self._sockets.remove(socket)
                self._selector.unregister(socket)
            return
        events = (EVENT_READ if event & pycurl.POLL_IN else 0) | (EVENT_WRITE if event & pycurl.POLL_OUT else 0)
        if socket in self._sockets:
            self._selector.modify(socket, events)
        else:
            self._sockets.add(socket)
            self._selector.register(socket, events)

    def _on_timer(self, milliseconds: int) -> None:
        """libcurl wants to be called after this number of milliseconds. It accepts earlier calls."""
        if milliseconds == 0:
            self._soon = self._soon or self._loop.call_soon(self._time_is_up)
        elif milliseconds > 0:
            at = self._loop.time() + milliseconds / 1000
            if self._timer is None or self._timer.when() > at:
                if self._timer:
                    self._timer.cancel()
                self._timer = self._loop.call_at(at, self._time_is_up)

    def _time_is_up(self) -> None:
        self._soon = None
        if self._timer and self._timer.when() <= self._loop.time():
            self._timer = None
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._finish_those_done()

    def _ready(self) -> None:
        for key, events in self._selector.select(0):
            reading = pycurl.CSELECT_IN if events & EVENT_READ else 0
            self._multi.socket_action(key.fd, reading | (pycurl.CSELECT_OUT if events & EVENT_WRITE else 0))
        self._finish_those_done()

    def _finish_those_done(self) -> None:
        waiting = 1
        while waiting:
            waiting, done, failed = self._multi.info_read()
            for curl in done:
                self._finish(curl, 0, "")
            for curl, code, words in failed:
                self._finish(curl, code, words)

    def _finish(self, curl: pycurl.Curl, code: int, words: str) -> None:
        if curl in self._under_way:
            _, result = self._under_way[curl]
            if not result.done():
                result.set_result((code, words))
