"""The messages of single calls are found in the captures of a gateway, on both sides."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from pactgate.capture import call_excerpt
from pactgate.capture.call_excerpt import CallSpan, excerpt
from pactgate.capture.capture_files import CaptureFolder, captures_in
from pactgate.capture.recorder import Recorder
from pactgate.capture.redaction import Redaction
from pactgate.conformance.check import check_capture
from pactgate.core.recording import ConnectionRecorder
from pactgate.protocol.messages import encode_json

HEADERS = {"content-type": ["application/json"]}


class Scene:
    """A recording gateway with one client and one server. Its clock may be set ahead, so that nobody waits until calls are apart."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.ahead_s = 0.0
        real = time.monotonic_ns
        monkeypatch.setattr("pactgate.capture.recorder.time.monotonic_ns", lambda: real() + int(self.ahead_s * 1e9))
        self.recorder = Recorder(CaptureFolder(folder, 100), Redaction(), max_file_bytes=10**8, emit=print)
        self.clients = self.recorder.address("pactgate", "callers", is_shared=True)
        self.server = self.recorder.connection("files", "servers", "stdio")
        send(self.server, {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})
        send(self.server, {"id": 0, "result": {"protocolVersion": "2025-11-25", "capabilities": {}}}, is_back=True)
        send(self.server, {"method": "notifications/initialized"})

    def call(self, number: int, request_id: str, tool: str = "read", *, is_answered: bool = True) -> CallSpan:
        began_at = time.time() + self.ahead_s
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
        params = {"name": f"files__{tool}", "arguments": {"n": number}, "_meta": meta}
        asked = self.clients.requested(
            "POST", "/mcp", HEADERS, said({"id": number, "method": "tools/call", "params": params})
        )
        send(self.server, {"id": number, "method": "tools/call", "params": {"name": tool, "arguments": {"n": number}}})
        send(self.server, {"method": "notifications/progress", "params": {"progress": 1}}, is_back=True)
        if is_answered:
            send(self.server, {"id": number, "result": {"content": []}}, is_back=True)
            envelope = {"dev.pactgate/envelope": {"requestId": request_id}}
            result = {"content": [], "resultType": "complete", "_meta": envelope}
            asked.answered(200, HEADERS, said({"id": number, "result": result}))
        else:
            asked.streaming(200, {"content-type": ["text/event-stream"]})
            asked.ended(by_client=True)
        return CallSpan(request_id, "files", tool, began_at, time.time() + self.ahead_s)

    def close(self) -> None:
        self.server.closed()
        self.clients.closed()
        self.recorder.close()


def found(folder: Path, calls: list[CallSpan]) -> list[dict[str, Any]]:
    """The excerpt as a client gets it."""
    sessions: list[dict[str, Any]] = json.loads(encode_json(excerpt(folder, calls)))
    return sessions


def said(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def send(to: ConnectionRecorder, message: dict[str, Any], *, is_back: bool = False) -> None:
    to.passed(said(message), from_client=not is_back)


def methods(session: dict[str, Any]) -> list[str]:
    return [exchange["request"]["method"] for exchange in session["exchanges"]]


def numbers(sessions: list[dict[str, Any]]) -> list[int]:
    """Which calls are in there."""
    exchanges = (exchange for session in sessions for exchange in session["exchanges"])
    return [one["request"]["id"] for one in exchanges if one["request"]["method"] == "tools/call"]


def test_a_call_is_found_on_both_sides_with_its_handshake_and_what_was_said_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, monkeypatch)
    scene.call(1, "first")
    scene.ahead_s += 0.5
    second = scene.call(2, "second")
    scene.close()
    clients, server = sorted(found(tmp_path, [second]), key=lambda session: session["leg"])
    assert (clients["leg"], numbers([clients])) == ("callers", [2])
    handshake = ["initialize", "notifications/initialized"]
    assert methods(server) == [*handshake, "tools/call", "notifications/progress"]
    assert numbers([server]) == [2]


def test_an_excerpt_passes_the_checker_and_does_not_claim_to_be_a_whole_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, monkeypatch)
    call = scene.call(1, "first")
    scene.close()
    sessions = found(tmp_path, [call])
    assert all("capture_version" not in session for session in sessions)
    assert check_capture(sessions).passed


def test_a_call_without_an_answer_is_found_by_its_tool_and_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, monkeypatch)
    lost = scene.call(1, "lost", is_answered=False)
    scene.ahead_s += 0.5
    scene.call(2, "later")
    scene.close()
    assert numbers(found(tmp_path, [lost])) == [1, 1]


def test_calls_of_other_servers_tools_and_times_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, monkeypatch)
    call = scene.call(1, "first")
    scene.close()
    assert found(tmp_path, [call._replace(request_id="x", tool="write")]) == []
    assert found(tmp_path, [call._replace(request_id="x", server="web")]) == []
    assert (
        found(tmp_path, [call._replace(request_id="x", began_at=call.began_at + 9, ended_at=call.ended_at + 9)]) == []
    )


def test_a_file_that_is_torn_counts_up_to_where_it_is_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, monkeypatch)
    first = scene.call(1, "first")
    scene.ahead_s += 0.5
    second = scene.call(2, "second")
    scene.close()
    for path in captures_in(tmp_path):
        data = path.read_bytes()
        path.write_bytes(data[: data.rindex(b'"n": 2')])
    assert numbers(found(tmp_path, [first, second])) == [1, 1]


def test_an_excerpt_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, monkeypatch)
    calls = [scene.call(number, str(number)) for number in range(10)]
    scene.close()
    monkeypatch.setattr(call_excerpt, "MAX_MESSAGES", 4)
    assert len(numbers(found(tmp_path, calls))) <= 4
    monkeypatch.setattr(call_excerpt, "MAX_BYTES", 10)
    assert found(tmp_path, calls) == []


def test_files_that_the_recorder_did_not_name_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, monkeypatch)
    call = scene.call(1, "first")
    scene.close()
    for path in captures_in(tmp_path):
        os.rename(path, path.with_name(f"mine-{path.name}"))
    assert found(tmp_path, [call]) == []


def test_messages_are_repeated_as_they_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, monkeypatch)
    number = 123456789012345678901234567890
    call = scene.call(number, "large")
    scene.close()
    text = encode_json(excerpt(tmp_path, [call])).decode()
    assert text.count(str(number)) >= 2
    (path,) = [one for one in captures_in(tmp_path) if "servers" in one.name]
    path.write_text(path.read_text().replace(str(number), "0.1234567890123456789e-7"))
    assert "0.1234567890123456789e-7" in encode_json(excerpt(tmp_path, [call])).decode()
