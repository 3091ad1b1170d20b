"""A tap that only remembers."""

from __future__ import annotations

from typing import Any


class Noted:
    def __init__(self) -> None:
        self.passed_texts: list[tuple[bytes, bool]] = []
        self.hops: list[NotedHop] = []
        self.is_closed = False

    def passed(self, data: bytes, *, from_client: bool) -> None:
        self.passed_texts.append((data, from_client))

    def requested(self, verb: str, path: str, headers: Any, body: bytes) -> NotedHop:
        self.hops.append(NotedHop(verb, path, headers, body))
        return self.hops[-1]

    def closed(self) -> None:
        self.is_closed = True


class NotedHop:
    def __init__(self, verb: str, path: str, headers: Any, body: bytes) -> None:
        self.verb, self.path, self.headers, self.body = verb, path, headers, body
        self.answer: tuple[int, Any, bytes] | None = None
        self.stream: tuple[int, Any] | None = None
        self.data = b""
        self.ended_by_client: bool | None = None

    def answered(self, status: int, headers: Any, body: bytes) -> None:
        self.answer = (status, headers, body)

    def streaming(self, status: int, headers: Any) -> None:
        self.stream = (status, headers)

    def events(self, data: bytes) -> None:
        self.data += data

    def ended(self, *, by_client: bool) -> None:
        assert self.ended_by_client is None, "the end is told once"
        self.ended_by_client = by_client
