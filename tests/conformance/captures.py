"""Captures made on the spot, and the verdicts on them by code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pactgate.conformance.check import check_capture
from pactgate.conformance.report import ComplianceReport
from pactgate.conformance.rule import CheckStatus, RuleResult
from pactgate.protocol.modern import CAPABILITIES_KEY, CLIENT_INFO_KEY, PROTOCOL_VERSION_KEY

FIXTURES = Path(__file__).with_name("fixtures")
MODERN = {PROTOCOL_VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}, CLIENT_INFO_KEY: {"name": "probe", "version": "1"}}
HINTS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

Json = dict[str, Any]


def request(id_: Any, method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "id": id_, "method": method, **({} if params is None else {"params": params})}


def notice(method: str, params: Json | None = None, **more: Any) -> Json:
    return {"request": {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}, **more}


def call(id_: Any, method: str, params: Json | None, result: Any, **more: Any) -> Json:
    answer = {"jsonrpc": "2.0", "id": id_, "result": result}
    return {"request": request(id_, method, params), "response": answer, **more}


def failed(id_: Any, method: str, error: Any, params: Json | None = None, **more: Any) -> Json:
    answer = {"jsonrpc": "2.0", "id": id_, "error": error}
    return {"request": request(id_, method, params), "response": answer, **more}


def modern(id_: Any, method: str, result: Any, params: Json | None = None, **more: Any) -> Json:
    return call(id_, method, {**(params or {}), "_meta": MODERN}, result, **more)


def handshake(version: str = "2025-11-25", id_: Any = 1, capabilities: Json | None = None) -> tuple[Json, Json]:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}
    result = {"protocolVersion": version, "capabilities": {"tools": {}} if capabilities is None else capabilities}
    return call(id_, "initialize", params, result), notice("notifications/initialized")


def capture(*exchanges: Json, label: str = "almanac", capabilities: Any = None, **head: Any) -> Json:
    block = {"tools": {}} if capabilities is None else capabilities
    return {"server_label": label, "server_capabilities": block, **head, "exchanges": list(exchanges)}


def judged(session: Any, rules: str = "all", **options: Any) -> ComplianceReport:
    return check_capture(session, rules=rules, **options)


def verdicts(session: Any, **options: Any) -> dict[str, RuleResult]:
    """The verdict of every rule on the (first) session."""
    return {result.code: result for result in judged(session, **options).sessions[0].results}


def status(session: Any, code: str, **options: Any) -> CheckStatus:
    return verdicts(session, **options)[code].status


def long_capture(exchanges: int, row_count: int) -> Iterator[bytes]:
    """A clean session of any length, piece by piece."""
    rows = [{"id": number, "name": f"row {number}", "share": number * 1.5} for number in range(row_count)]
    tool = {"name": "query", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}
    opening = [*handshake(), call(2, "tools/list", {}, {"tools": [tool]})]
    yield b'{"server_label":"long","server_capabilities":{"tools":{}},"exchanges":['
    yield json.dumps(opening)[1:-1].encode()
    body = json.dumps(call(-1, "tools/call", {"name": "query"}, {"content": [], "structuredContent": {"rows": rows}}))
    before, _, rest = body.partition('"id": -1')
    between, _, after = rest.partition('"id": -1')
    for number in range(3, exchanges + 3):
        yield f',{before}"id": {number}{between}"id": {number}{after}'.encode()
    yield b"]}"
