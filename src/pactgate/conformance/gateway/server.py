"""A scripted MCP server: `python -m pactgate.conformance.gateway.server SCRIPT.json http PORT|stdio`.

Carries messages between a client and the answers of `server_answers.py`, over HTTP or the standard streams. It ends when its standard
input ends, or after its lifetime: nothing is left behind. Must not: import the gateway.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from msgspec import convert

from pactgate.conformance.gateway.script import ServerScript
from pactgate.conformance.gateway.server_answers import ScriptedServer

_MAX_BODY_BYTES: Final = 32 * 1024 * 1024


class HttpHandler(BaseHTTPRequestHandler):
    """Streamable HTTP: a response in one body, or in an event stream if something was sent before it."""

    protocol_version = "HTTP/1.1"
    server_version = "gwp"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one write
    server_of: ScriptedServer

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        if length > _MAX_BODY_BYTES:
            self.close_connection = True
            return self._whole(413, b"")
        data = self.rfile.read(length).decode("utf-8", "surrogateescape")
        self._streaming = False
        server = self.server_of
        opened = server.next_id() if '"initialize"' in data[:4096] and server.script.era != "modern" else ""
        head = tuple((name.lower(), value) for name, value in self.headers.items())
        session = opened or self.headers.get("Mcp-Session-Id", "")
        found = server.take(data, self._event, head, session, self._is_gone)
        if self._streaming:
            if found is not None:
                self._event(found[0])
            elif "subscriptions/listen" in data:
                self._until_gone()
            self.wfile.write(b"0\r\n\r\n")
            return None
        if found is None:
            return self._whole(202, b"")
        body = found[0].encode("utf-8", "surrogateescape")
        return self._whole(found[1], body, session=opened)

    def do_GET(self) -> None:
        """The stream on which a legacy client hears of changes."""
        server = self.server_of
        key = f" {server.next_id()}"
        if server.script.era == "modern" or not server.listen(key, self._event, self._begin_stream):
            return self._whole(405, b"")
        self._until_gone()
        return server.end_listening(key)

    def do_DELETE(self) -> None:
        self._whole(200, b"")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        return

    def _is_gone(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def _until_gone(self) -> None:
        """A comment line now and then shows when the reader has gone."""
        pause = threading.Event()
        while not pause.wait(1.0):
            try:
                self._chunk(b": still here\n\n")
            except OSError:
                return

    def _begin_stream(self) -> None:
        self._streaming = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def _event(self, data: str) -> None:
        if not self._streaming:
            self._begin_stream()
        self._chunk(b"data: " + data.encode("utf-8", "surrogateescape") + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _whole(self, status: int, body: bytes, session: str = "") -> None:
        self.send_response(status)
        if session:
            self.send_header("Mcp-Session-Id", session)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # a connection that finds no room in the queue comes again after a second


def serve_http(server: ScriptedServer, port: int) -> None:
    """Serve on 127.0.0.1 until the standard input ends. The first line of the output is the port."""
    handler = type("Handler", (HttpHandler,), {"server_of": server})
    with _HttpServer(("127.0.0.1", port), handler) as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        sys.stdout.write(f"{listener.server_address[1]}\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()
    os._exit(0)


def serve_stdio(server: ScriptedServer) -> None:
    """Serve on the standard streams until the input ends; each request has a thread of its own."""
    writing = threading.Lock()

    def send(data: str) -> None:
        with writing:
            sys.stdout.buffer.write(data.encode("utf-8", "surrogateescape") + b"\n")
            sys.stdout.buffer.flush()

    def answer(data: str) -> None:
        found = server.take(data, send)
        if found is not None:
            send(found[0])

    signal.signal(signal.SIGTERM, lambda *_: None if server.stays else os._exit(0))
    if server.script.era != "modern":
        server.listen(" stdio", send)
    for data in _lines():
        threading.Thread(target=answer, args=(data,), daemon=True).start()
    if server.stays:
        threading.Event().wait(server.script.lifetime_s)
    os._exit(0)


def _lines() -> Iterator[str]:
    while line := sys.stdin.buffer.readline(_MAX_BODY_BYTES):
        yield line.decode("utf-8", "surrogateescape").rstrip("\r\n")


def main() -> None:
    path, transport, *port = sys.argv[1:]
    server = ScriptedServer(convert(json.loads(Path(path).read_text(encoding="ascii")), ServerScript))
    timer = threading.Timer(server.script.lifetime_s, os._exit, (4,))
    timer.daemon = True
    timer.start()
    if transport == "http":
        serve_http(server, int(port[0]))
    serve_stdio(server)


if __name__ == "__main__":
    main()
