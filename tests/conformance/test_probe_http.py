"""What a probe sends over HTTP, and what the rules make of good and bad servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pactgate.conformance.check import check_capture
from pactgate.conformance.live import record_live
from pactgate.conformance.probe import ProbeTarget
from pactgate.conformance.probe_http import FOREIGN_ORIGIN
from pactgate.conformance.rule import CheckStatus
from pactgate.protocol.versions import Era


async def recorded(url: str, path: Path, era: Era) -> list[dict[str, Any]]:
    await record_live(ProbeTarget(url=url), path, label="x", era=era)
    return exchanges_of(path)


def exchanges_of(path: Path) -> list[dict[str, Any]]:
    sessions = json.loads(path.read_text())
    return [
        exchange
        for session in (sessions if isinstance(sessions, list) else [sessions])
        for exchange in session["exchanges"]
    ]


def statuses(path: Path) -> dict[str, CheckStatus]:
    return {result.code: result.status for result in check_capture(path, rules="all").sessions[0].results}


@pytest.mark.parametrize("era", list(Era))
async def test_a_good_server_refuses_what_is_wrong_with_a_request(
    tmp_path: Path, official: dict[str, str], era: Era
) -> None:
    path = tmp_path / "capture.json"
    exchanges = await recorded(f"{official['streamable']}/mcp", path, era)
    found = {}
    for exchange in exchanges:
        sent = {name: values[0] for name, values in exchange["http"]["request_headers"].items()}
        key = tuple(sent.get(name, "") for name in ("origin", "accept", "content-type"))
        found[key] = exchange["http"].get("status")  # a request that was cancelled has none
    both, json_type = "application/json, text/event-stream", "application/json"
    assert found[FOREIGN_ORIGIN, both, json_type] == 403
    assert found["", "", json_type] == 406
    assert found["", "text/html", json_type] == 406
    assert found["", both, "text/plain"] in (400, 415)
    large = [each["http"]["status"] for each in exchanges if "(5 MiB)" in json.dumps(each.get("request"))]
    assert large == [413]
    judged = statuses(path)
    of_era = {Era.LEGACY: ["GW-015", "GW-016", "GW-017", "GW-020", "GW-055"], Era.MODERN: ["GW-032", "GW-035"]}
    wanted = ["GW-019", "GW-054", "GW-056", *of_era[era]]
    assert {code: judged[code] for code in wanted} == dict.fromkeys(wanted, CheckStatus.PASS)


class Careless(BaseHTTPRequestHandler):
    """A legacy server that gives out session ids and never looks at them, or at any other header."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message = json.loads(body)
        if self.headers.get("Content-Type") != "application/json":
            self.reply(500, b"")
        elif "id" not in message:
            self.reply(202, b"")
        elif message["method"] == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "c", "version": "1"}}
            self.reply(200, answer(message, {"result": result}), {"Mcp-Session-Id": "one"})
        elif message["method"] == "ping":
            self.reply(200, answer(message, {"result": {}}))
        else:
            self.reply(200, answer(message, {"error": {"code": -32601, "message": "Method not found"}}))

    def do_GET(self) -> None:
        self.reply(400, b"")

    def do_DELETE(self) -> None:
        self.reply(200, b"")

    def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        return


def answer(message: dict[str, Any], outcome: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}).encode()


@pytest.fixture
def careless() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Careless) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
        server.shutdown()
        thread.join()


async def test_a_server_that_looks_at_no_header_is_found_out(tmp_path: Path, careless: str) -> None:
    path = tmp_path / "capture.json"
    await recorded(careless, path, Era.LEGACY)
    assert {code for code, status in statuses(path).items() if status is CheckStatus.FAIL} == {
        "GW-016",  # the session is used after its end
        "GW-017",  # a version that does not exist
        "GW-020",  # GET gets 400
        "GW-054",  # a foreign Origin
        "GW-055",  # an unknown session id, and none
        "GW-056",  # 500 for another Content-Type
    }
