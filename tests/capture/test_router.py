"""Which session an HTTP request belongs to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pactgate.capture.capture_files import CaptureFolder
from pactgate.capture.router import MAX_SESSIONS, SessionRouter
from pactgate.capture.session_writer import RecordedConnection, SessionWriter
from tests.capture.inline import inline_context

JSON = b"Content-Type: application/json\r\n"
MODERN = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


class Site:
    """A router whose files are read back when it closes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        context = inline_context(CaptureFolder(folder, 10_000))
        self.router = SessionRouter(
            context.redaction,
            lambda path, is_modern: SessionWriter(
                RecordedConnection(f"x{path}", "callers", "http", "2026-11-19T20:00:00.000+00:00", is_modern), context
            ),
        )
        self._number = 0

    def post(self, session: str | None = None, *, path: str = "/mcp", given: str | None = None, **message: Any) -> None:
        self._number += 1
        headers = {} if session is None else {"mcp-session-id": [session]}
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.router.requested(0.0, self._number, "POST", path, headers, body)
        told = JSON + (f"Mcp-Session-Id: {given}\r\n".encode() if given else b"")
        answer = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": {}}).encode()
        self.router.answered(1.0, self._number, 200, told, answer)

    def captures(self) -> list[list[str]]:
        self.router.close()
        files = [json.loads(file.read_text()) for file in sorted(self.folder.iterdir())]
        return [[each["request"]["method"] for each in file["exchanges"] if "request" in each] for file in files]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_sessions_are_told_apart_by_the_id_their_handshake_was_given(site: Site) -> None:
    site.post(id=1, method="initialize", given="one")
    site.post(id=1, method="initialize", given="two")
    site.post("one", id=2, method="a")
    site.post("two", id=2, method="b")
    assert site.captures() == [["initialize", "a"], ["initialize", "b"]]


def test_a_server_without_session_ids_has_one_session_from_handshake_to_handshake(site: Site) -> None:
    for method in ("initialize", "a", "initialize", "b"):
        site.post(id=1, method=method)
    assert site.captures() == [["initialize", "a"], ["initialize", "b"]]


def test_modern_requests_of_one_path_are_kept_together_and_marked_as_shared(site: Site, tmp_path: Path) -> None:
    site.post(id=1, method="a", params=MODERN)
    site.post(id=1, method="b", params=MODERN)
    site.post(id=1, method="c", params=MODERN, path="/mcp/x")
    assert site.captures() == [["a", "b"], ["c"]]
    assert all(json.loads(file.read_text())["shared"] for file in tmp_path.iterdir())


def test_a_deleted_session_is_closed_at_once(site: Site, tmp_path: Path) -> None:
    site.post(id=1, method="initialize", given="one")
    site.router.requested(2.0, 99, "DELETE", "/mcp", {"mcp-session-id": ["one"]}, b"")
    site.router.answered(3.0, 99, 200, b"", b"")
    assert [file.suffix for file in tmp_path.iterdir()] == [".json"]


def test_the_session_unused_for_the_longest_time_makes_room(site: Site, tmp_path: Path) -> None:
    for number in range(MAX_SESSIONS + 1):
        site.post(id=1, method="initialize", given=f"s{number}")
    assert sum(file.suffix == ".json" for file in tmp_path.iterdir()) == 1
    site.router.close()


def test_on_http_with_sse_posts_and_events_are_plain_messages(site: Site, tmp_path: Path) -> None:
    router = site.router
    router.requested(0.0, 1, "GET", "/sse", {}, b"")
    router.streaming(1, 200, b"Content-Type: text/event-stream\r\n")
    router.events(0.0, 1, b"event: endpoint\ndata: /messages?id=1\n\n")
    router.requested(1.0, 2, "POST", "/messages", {}, b'{"id":1,"method":"a"}')
    router.answered(2.0, 2, 202, b"", b"Accepted")
    router.events(3.0, 1, b'event: message\ndata: {"id":1,"result":{}}\n\n')
    router.close()
    (capture,) = (json.loads(file.read_text()) for file in tmp_path.iterdir())
    asked = [each for each in capture["exchanges"] if "request" in each]
    assert asked[0]["response"]["id"] == 1
    assert "http" not in asked[0]


def test_after_a_loss_recording_begins_anew(site: Site) -> None:
    site.post(id=1, method="a", params=MODERN)
    site.router.restart(3)
    site.post(id=1, method="b", params=MODERN)
    assert site.captures() == [["a"], ["b"]]
