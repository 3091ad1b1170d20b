"""Answers of a hostile server, through a real gateway: no secret is shown, nobody waits, nothing stays in memory, nothing is ambiguous."""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bench.cpu import PROC
from tests.cli.program import Served, write_config
from tests.interop.raw import MODERN

PASSWORD = 'CANARY"quote\\\\back9'
ACCOUNT = "123456789"
SERVER = Path(__file__).with_name("hostile_answers.py")
MAX_GROWTH_BYTES = 64 * 1024 * 1024
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "journey", "version": "1"},
}

pytestmark = pytest.mark.timeout(60)


class Gateway:
    def __init__(self, served: Served, folder: Path) -> None:
        self.served = served
        self.folder = folder
        self.port = int(served.url.rpartition(":")[2])

    def get(self, path: str) -> str:
        return self._exchange("GET", path, None, {})

    def ask(self, method: str, **params: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}})
        name = params.get("name") or params.get("uri") or ""
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, "Mcp-Name": name}
        return json.loads(self._exchange("POST", "/mcp", body, headers))

    def call(self, tool: str) -> Any:
        return self.ask("tools/call", name=f"evil__{tool}", arguments={})

    def _exchange(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        both = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        try:
            connection.request(method, path, body=body, headers={**both, **headers})
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def resident_bytes(self) -> int:
        lines = (PROC / str(self.served.process.pid) / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    evil = {
        "command": sys.executable,
        "args": ["-I", "-S", str(SERVER)],
        "env": {"ACCOUNT_ID": ACCOUNT, "PW": PASSWORD, "MARK": str(tmp_path / "mark")},
        "era": "legacy",
    }
    os.mkfifo(tmp_path / "mark")
    write_config(
        tmp_path,
        {"evil": evil},
        rateLimits={"enabled": False},
        audit={"file": str(tmp_path / "audit.jsonl"), "arguments": "values"},
        capture={"dir": str(tmp_path / "captures")},
        log={"level": "debug", "format": "json"},
    )
    with Served(tmp_path) as served:
        served.wait_for("ok +evil")
        yield Gateway(served, tmp_path)


def test_a_number_that_is_a_secret_ends_its_call_and_loses_no_other_answer(gateway: Gateway) -> None:
    with ThreadPoolExecutor(1) as other:
        held = other.submit(gateway.call, "hold")
        (gateway.folder / "mark").read_bytes()  # until the server holds the call
        started = time.monotonic()
        refused = gateway.call("number")
        assert time.monotonic() - started < 5
        assert held.result(10)["result"]["content"] == [{"type": "text", "text": "held"}]
    failure = refused["result"]["_meta"]["dev.pactgate/envelope"]["failure"]
    assert failure["upstream"] == {"code": -32000, "message": "boom", "data": {"n": "***"}}
    assert refused["result"]["isError"] is True


def test_no_secret_is_shown_in_answers_log_audit_captures_or_history(gateway: Gateway) -> None:
    shown = [json.dumps(gateway.call("repeat")), json.dumps(gateway.call("number"))]
    shown.append(json.dumps(gateway.ask("prompts/get", name="evil__greet")))
    uri = gateway.ask("resources/list")["result"]["resources"][0]["uri"]
    shown.append(json.dumps(gateway.ask("resources/read", uri=uri)))
    calls = json.loads(gateway.get("/api/calls"))["calls"]
    shown += [gateway.get(f"/api/calls/{call['requestId']}") for call in calls]
    assert len(calls) >= 2
    gateway.served.stop()
    files = [path for path in gateway.folder.rglob("*") if path.is_file() and path.name != "pactgate.json"]
    shown += [path.read_text(errors="replace") for path in files]
    assert any(path.suffix == ".jsonl" and "audit" in path.name for path in files)
    for text in shown:
        assert "back9" not in text
        assert ACCOUNT not in text
        assert "msgspec" not in text
    assert any('"upstream"' in text for text in shown)


def test_large_errors_and_results_that_are_refused_leave_no_memory(gateway: Gateway) -> None:
    gateway.call("ok")
    before = gateway.resident_bytes()
    for number in range(18):
        answer = gateway.call(("large_error", "large_message", "large_misfit")[number % 3])
        assert answer["result"]["isError"] is True
    grown = gateway.resident_bytes() - before
    print(f"grown {grown >> 20} MiB")
    assert grown <= MAX_GROWTH_BYTES


@pytest.mark.parametrize("tool", ["twice", "twice_inside"])
def test_an_answer_with_a_key_twice_is_a_failure_of_the_server(gateway: Gateway, tool: str) -> None:
    refused = gateway.call(tool)["result"]
    failure = refused["_meta"]["dev.pactgate/envelope"]["failure"]
    assert (failure["failure_mode"], failure["party"]) == ("malformed_result", "upstream")
    assert "twice" in refused["content"][0]["text"]
    assert gateway.call("ok")["result"]["structuredContent"] == {"n": 1}
