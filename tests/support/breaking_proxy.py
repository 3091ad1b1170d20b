"""A small HTTP proxy with one switch for each fault: it passes everything unchanged but for the switch that is set."""

from __future__ import annotations

import http.client
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

HOP = {"transfer-encoding", "content-length", "connection", "host", "keep-alive"}


class Switch(Struct, frozen=True):
    """One fault. `response` gets the request and a response message, and gives the message to pass on, or None to drop it."""

    response: Callable[[str, str], str | None] = lambda request, response: response
    request: Callable[[str], str] = lambda request: request
    status: Callable[[str, int], int] = lambda request, status: status
    times: Callable[[str], int] = lambda request: 1
    """How often a request is sent on."""
    headers: Callable[[str, dict[str, str]], dict[str, str]] = lambda request, headers: headers
    """The headers with which a request is sent on."""
    opening: Callable[[str], str] = lambda request: ""
    """What an event stream begins with."""
    closing: Callable[[str], str] = lambda request: ""
    """What an event stream ends with."""
    response_headers: Callable[[str, str], str] = lambda name, value: value
    """The value of a header of the response."""
    gone: Callable[[str], str | None] = lambda request: ""
    """What is sent on when the client closes its connection: nothing, but the request is closed too (""), or nothing at all (None)."""
    is_behind: bool = False
    """Whether the proxy stands between the gateway and its servers, instead of before the gateway."""


Watch = Callable[[socket.socket, threading.Event], None]
"""Looks after a request until it has ended."""


class BreakingProxy:
    """Passes requests on to one URL. All proxies of a test share one switch."""

    def __init__(self, target: str) -> None:
        self.switch = Switch()
        parts = urlsplit(target)
        assert parts.hostname is not None
        self._host, self._port, self._path = parts.hostname, parts.port, parts.path
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}{self._path}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    @contextmanager
    def sent(
        self, verb: str, body: bytes, headers: dict[str, str], watch: Watch | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        connection, ended = http.client.HTTPConnection(self._host, self._port, timeout=20), threading.Event()
        try:
            connection.request(verb, self._path, body=body or None, headers=headers)
            if watch is not None:
                threading.Thread(target=watch, args=(connection.sock, ended), daemon=True).start()
            yield connection.getresponse()
        finally:
            ended.set()
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64  # a connection that finds no room in the queue comes again after a second

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that resets its connection is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    proxy: BreakingProxy

    def _pass(self) -> None:
        switch = self.proxy.switch
        body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode("utf-8", "surrogateescape")
        text = switch.request(body)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
        headers = switch.headers(body, headers)
        for _ in range(switch.times(body) - 1):
            with self.proxy.sent(self.command, _bytes(text), headers) as response:
                response.read()
        try:
            with self.proxy.sent(self.command, _bytes(text), headers, self._watch(body, headers)) as response:
                if response.getheader("Content-Type", "").startswith("text/event-stream"):
                    self._stream(response, body, switch)
                else:
                    self._whole(response, body, switch)
        except (OSError, http.client.HTTPException):  # one of the two has gone
            self.close_connection = True

    def _watch(self, request: str, headers: dict[str, str]) -> Watch:
        def watch(sent: socket.socket, ended: threading.Event) -> None:
            while not ended.wait(0.02):
                try:
                    readable, _, _ = select.select([self.connection], [], [], 0)
                    is_gone = bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""
                except (OSError, ValueError):
                    return
                if is_gone:
                    self._on_gone(request, headers, sent)
                    return

        return watch

    def _on_gone(self, request: str, headers: dict[str, str], sent: socket.socket) -> None:
        text = self.proxy.switch.gone(request)
        if text == "":
            with suppress(OSError):
                sent.shutdown(socket.SHUT_RDWR)
        elif text is not None:
            with self.proxy.sent("POST", _bytes(text), headers) as response:
                response.read()

    do_POST = do_GET = do_DELETE = _pass  # noqa: N815 - the names of the base class

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        return

    def _whole(self, response: http.client.HTTPResponse, request: str, switch: Switch) -> None:
        text = response.read().decode("utf-8", "surrogateescape")
        data = _bytes((switch.response(request, text) if text else text) or "")
        self._head(response, switch.status(request, response.status))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, response: http.client.HTTPResponse, request: str, switch: Switch) -> None:
        self._head(response, switch.status(request, response.status))
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        try:
            if opening := switch.opening(request):
                self._chunk(b"data: " + _bytes(opening) + b"\n\n")
            while line := response.readline():
                if line.startswith(b"data:"):
                    text = switch.response(request, line[5:].decode("utf-8", "surrogateescape").strip())
                    line = b"data: " + _bytes(text) + b"\n" if text is not None else b": dropped\n"
                self._chunk(line)
            if closing := switch.closing(request):
                self._chunk(b"data: " + _bytes(closing) + b"\n\n")
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        except (OSError, http.client.HTTPException):
            self.close_connection = True

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _head(self, response: http.client.HTTPResponse, status: int) -> None:
        self.send_response(status)
        for name, value in response.getheaders():
            if name.lower() not in HOP and name.lower() not in ("date", "server"):
                self.send_header(name, self.proxy.switch.response_headers(name.lower(), value))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
