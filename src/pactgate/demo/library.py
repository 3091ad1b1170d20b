"""A small REST API, to show one behind the gateway: a lending library in memory, described by `library.json` (OpenAPI).

`python -m pactgate.demo.library FD` serves on an inherited socket, one request at a time, and ends with its standard input.
"""

from __future__ import annotations

import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

MAX_BODY_BYTES: Final = 16_384
BOOKS: Final = {
    "emma": "Emma, Jane Austen",
    "jane-eyre": "Jane Eyre, Charlotte Brontë",
    "walden": "Walden, H. D. Thoreau",
}
_readers: dict[str, str] = {}


def answer(method: str, url: str, body: bytes) -> tuple[int, Any]:
    """The status and the body of the answer to a request."""
    parts = urlsplit(url)
    match method, [unquote(word) for word in parts.path.strip("/").split("/")]:
        case "GET", ["openapi.json"]:
            return 200, msgspec.Raw(Path(__file__).with_suffix(".json").read_bytes())
        case "GET", ["books"]:
            wanted = parse_qs(parts.query).get("q", [""])[0].casefold()
            return 200, {"books": [_row(id_) for id_ in BOOKS if wanted in BOOKS[id_].casefold()]}
        case "POST", ["books", id_, "loan"] if id_ in BOOKS:
            return _lend(id_, body)
        case "DELETE", ["books", id_, "loan"] if _readers.pop(id_, None) is not None:
            return 204, None
    return 404, {"detail": "Not found; /openapi.json lists the operations."}


def _row(id_: str) -> dict[str, Any]:
    return {"id": id_, "title": BOOKS[id_], "available": id_ not in _readers}


def _lend(id_: str, body: bytes) -> tuple[int, Any]:
    try:
        reader = msgspec.json.decode(body, type=dict[str, str])["reader"]
    except (msgspec.DecodeError, KeyError):
        return 400, {"detail": "The body must be an object with a reader."}
    if id_ in _readers:
        return 409, {"detail": f"{_readers[id_]} has borrowed it."}
    _readers[id_] = reader[:100]
    return 201, _row(id_)


class Handler(BaseHTTPRequestHandler):
    """One request on a connection of its own (HTTP/1.0)."""

    timeout = 5.0

    def do_GET(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            self.send_error(413)
            return
        status, value = answer(self.command, self.path, self.rfile.read(int(length)))
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status < 400 else "application/problem+json")
        self.end_headers()
        self.wfile.write(b"" if value is None else msgspec.json.encode(value))

    do_POST = do_DELETE = do_GET  # noqa: N815 - the names http.server looks up


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = socket.socket(fileno=int(sys.argv[1]))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.buffer.read()
