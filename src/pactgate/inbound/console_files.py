"""The files of the console: the page and its bundle, built from `console/` and part of the package.

They are read and compressed once, at the first request for one, so a gateway whose console nobody opens pays nothing. Names in `assets`
carry a hash of their content and are kept by browsers for good. Every answer forbids frames and everything that is not from here.
Must not: look at the file system for a name that a client sends.
"""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Final

from msgspec import Struct

from pactgate.inbound.http_exchange import HttpExchange

ROOT: Final = "/console/"
_ASSETS: Final = "/console/assets/"
_PAGE: Final = "/console/index.html"
_STATIC: Final = Path(__file__).parents[1] / "console" / "static"
_TYPES: Final = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
}
SAFETY: Final = (
    b"Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n"
    b"X-Frame-Options: DENY\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
    b"Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Resource-Policy: same-origin\r\n"
)
_REDIRECT: Final = b"Location: /console/\r\nCache-Control: no-store\r\n"


class _File(Struct, frozen=True):
    head: bytes
    etag: str
    plain: bytes
    packed: bytes


class ConsoleFiles:
    def __init__(self, folder: Path = _STATIC) -> None:
        self._folder = folder
        self._files: dict[str, _File] | None = None

    def answer(self, exchange: HttpExchange) -> bool:
        """Answer a request for the page or one of its files. Returns whether the path is one of theirs."""
        path = exchange.path
        if path == "/" or path == "/console":
            if exchange.method not in ("GET", "HEAD") or (path == "/" and not _wants_page(exchange)):
                return False
            exchange.respond(302, _REDIRECT + SAFETY)
            return True
        if not path.startswith(ROOT) or exchange.method not in ("GET", "HEAD"):
            return False
        if self._files is None:
            self._files = _read(self._folder)
        found = self._files.get(path)
        if found is None and not path.startswith(_ASSETS):
            found = self._files.get(_PAGE)  # each screen has an address, and the page knows which one it is
        if found is None:
            return False
        _send(exchange, found)
        return True


def _wants_page(exchange: HttpExchange) -> bool:
    return any("text/html" in accepted for accepted in exchange.headers.get("accept", ()))


def _send(exchange: HttpExchange, file: _File) -> None:
    if file.etag in exchange.headers.get("if-none-match", ()):
        exchange.respond(304, file.head)
    elif any("gzip" in coding for coding in exchange.headers.get("accept-encoding", ())):
        exchange.respond(200, file.head + b"Content-Encoding: gzip\r\n", file.packed)
    else:
        exchange.respond(200, file.head, file.plain)


def _read(folder: Path) -> dict[str, _File]:
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in _TYPES:
            name, plain = ROOT + path.relative_to(folder).as_posix(), path.read_bytes()
            etag = f'"{hashlib.sha256(plain).hexdigest()[:32]}"'
            kept = b"public, max-age=31536000, immutable" if name.startswith(_ASSETS) else b"no-cache"
            head = b"Content-Type: %b\r\nCache-Control: %b\r\nETag: %b\r\nVary: Accept-Encoding\r\n" % (
                _TYPES[path.suffix],
                kept,
                etag.encode(),
            )
            files[name] = _File(head + SAFETY, etag, plain, gzip.compress(plain, 9, mtime=0))
    return files
