"""A small REST API, to show one behind the gateway: a lending library of eight books, kept in memory.

`python -m pactgate.demo.library FD` serves on a listening socket it inherits and ends when its standard input does, so that it can't
outlive whoever started it. Connections, heads, bodies and loans are bounded.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from pactgate.demo.library_api import openapi

MAX_CONNECTIONS: Final = 64
MAX_HEAD_BYTES: Final = 16_384
MAX_BODY_BYTES: Final = 16_384
MAX_LOANS: Final = 100
IDLE_S: Final = 60.0
_REASONS: Final = {200: "OK", 201: "Created", 204: "No Content", 400: "Bad Request", 404: "Not Found", 409: "Conflict"}

BOOKS: Final = {
    number: {"id": number, "title": title, "author": author, "year": year}
    for number, title, author, year in (
        ("emma", "Emma", "Jane Austen", 1815),
        ("frankenstein", "Frankenstein", "Mary Shelley", 1818),
        ("jane-eyre", "Jane Eyre", "Charlotte Brontë", 1847),
        ("middlemarch", "Middlemarch", "George Eliot", 1871),
        ("moby-dick", "Moby-Dick", "Herman Melville", 1851),
        ("persuasion", "Persuasion", "Jane Austen", 1817),
        ("the-time-machine", "The Time Machine", "H. G. Wells", 1895),
        ("walden", "Walden", "Henry David Thoreau", 1854),
    )
}


class Answer(NamedTuple):
    status: int
    body: bytes = b""
    content_type: str = "application/json"


class Library:
    """The books and who has them. One request at a time changes it."""

    def __init__(self) -> None:
        self._loans: dict[str, dict[str, Any]] = {}
        self._last_loan = 0

    def answer(self, method: str, url: str, body: bytes) -> Answer:
        parts = urlsplit(url)
        words = [unquote(word) for word in parts.path.strip("/").split("/")]
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        match method, words:
            case "GET", ["openapi.json"]:
                return _json(openapi())
            case "GET", ["books"]:
                return self._search(query)
            case "GET", ["books", book]:
                return self._with_book(book, self._show)
            case "GET", ["books", book, "card"]:
                return self._with_book(book, self._card)
            case "POST", ["books", book, "loans"]:
                return self._with_book(book, lambda found: self._lend(found, body))
            case "DELETE", ["loans", loan]:
                return self._take_back(loan)
        return _problem(404, "There is nothing here. /openapi.json says what there is.")

    def _search(self, query: dict[str, str]) -> Answer:
        wanted, limit = query.get("q", "").casefold(), query.get("limit", "10")
        if not limit.isdecimal():
            return _problem(400, "limit must be a number.")
        found = [book for book in BOOKS.values() if wanted in f"{book['title']} {book['author']}".casefold()]
        return _json({"books": found[: int(limit)], "total": len(found)})

    def _with_book(self, number: str, run: Callable[[dict[str, Any]], Answer]) -> Answer:
        book = BOOKS.get(number)
        return _problem(404, f"There is no book {number[:100]!r}.") if book is None else run(book)

    def _show(self, book: dict[str, Any]) -> Answer:
        return _json({**book, "available": self._loan_of(book["id"]) is None})

    def _card(self, book: dict[str, Any]) -> Answer:
        text = f"{book['author']}\n  {book['title']}. {book['year']}.\n"
        return Answer(200, text.encode(), "text/plain; charset=utf-8")

    def _lend(self, book: dict[str, Any], body: bytes) -> Answer:
        reader = _reader(body)
        if reader is None:
            return _problem(400, "The body must be an object with a reader.")
        taken = self._loan_of(book["id"])
        if taken is not None:
            return _problem(409, f"{taken['reader']} has it: loan {taken['loan']}.")
        if len(self._loans) >= MAX_LOANS:
            return _problem(409, "Too many books are out.")
        self._last_loan += 1
        loan = {"loan": str(self._last_loan), "book": book["id"], "reader": reader[:100]}
        self._loans[loan["loan"]] = loan
        return _json(loan, 201)

    def _take_back(self, loan: str) -> Answer:
        return (
            _problem(404, f"There is no loan {loan[:100]!r}.") if self._loans.pop(loan, None) is None else Answer(204)
        )

    def _loan_of(self, book: str) -> dict[str, Any] | None:
        return next((loan for loan in self._loans.values() if loan["book"] == book), None)


def _reader(body: bytes) -> str | None:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return None
    reader = said.get("reader") if isinstance(said, dict) else None
    return reader if isinstance(reader, str) else None


def _json(value: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(value, ensure_ascii=False).encode())


def _problem(status: int, detail: str) -> Answer:
    text = json.dumps({"title": _REASONS[status], "status": status, "detail": detail}, ensure_ascii=False)
    return Answer(status, text.encode(), "application/problem+json")


class Server:
    """HTTP/1.1 over streams, as far as this API needs it."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            while self._open <= MAX_CONNECTIONS and await self._exchange(reader, writer):
                pass
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the other side went away, or is not worth waiting for
        finally:
            self._open -= 1
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether another may follow."""
        async with asyncio.timeout(IDLE_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.split("\r\n")
            words = first.split(" ")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            length = headers.get("content-length", "0")
            if len(words) != 3 or not length.isdecimal() or int(length) > MAX_BODY_BYTES:
                return await self._write(writer, _problem(400, "This is not a request that can be read."), is_last=True)
            body = await reader.readexactly(int(length))
            answer = self._library.answer(words[0], words[1], body)
            return await self._write(writer, answer, is_last=headers.get("connection", "").lower() == "close")

    async def _write(self, writer: asyncio.StreamWriter, answer: Answer, *, is_last: bool) -> bool:
        lines = [f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}", f"Content-Type: {answer.content_type}"]
        if answer.status != 204:
            lines.append(f"Content-Length: {len(answer.body)}")
        if is_last:
            lines.append("Connection: close")
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + answer.body)
        await writer.drain()
        return not is_last


async def serve(listener: socket.socket) -> None:
    """Serve until standard input ends."""
    server = await asyncio.start_server(Server(Library()).serve, sock=listener, limit=MAX_HEAD_BYTES)
    async with server:
        await asyncio.to_thread(sys.stdin.buffer.read)


def main() -> None:
    listener = socket.socket(fileno=int(sys.argv[1]))
    asyncio.run(serve(listener))


if __name__ == "__main__":
    main()
