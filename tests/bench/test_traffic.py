"""The benchmark sends what real clients send, and says so truthfully."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from bench.answers import Upstream
from bench.traffic import FIXED, MIXED, Shape, Template, Writer, texts, traceparent
from bench.workloads import ASPECTS, WORKLOADS


def writer(shape: Shape, era: str = "legacy") -> Writer:
    return Writer(start_line="/mcp HTTP/1.1", headers=["Host: here"], era=era, version="2025-11-25", shape=shape)


def sent(template: Template, request_id: int = 7, text: bytes = b"hello") -> tuple[list[str], bytes]:
    """The header lines and the body of one request; the content length must be that of the body."""
    head, _, body = template.fill(b"%d" % request_id, text).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert f"Content-Length: {len(body)}" in lines
    return lines, body


def test_mixed_texts_have_lengths_from_1_to_2000_bytes_and_few_are_alike() -> None:
    sizes = [len(text.with_prefix(3, 9)[0]) for text in texts(MIXED)]
    assert min(sizes) == 1
    assert 1900 <= max(sizes) <= 2000
    assert len(set(sizes)) > 300
    assert sum(size < 45 for size in sizes) == pytest.approx(len(sizes) / 2, rel=0.1), "half of them are short"


def test_each_text_is_the_json_of_the_text_expected_back() -> None:
    for text in texts(MIXED):
        encoded, decoded = text.with_prefix(1, 2)
        assert json.loads(b'"' + encoded + b'"') == decoded
    written = b"".join(text.encoded for text in texts(MIXED))
    assert all(mark in written for mark in (b"\\n", b'\\"', "ü".encode()))


def test_long_texts_differ_between_clients_and_calls() -> None:
    text = next(text for text in texts(MIXED) if len(text.encoded) > 20)
    assert len({text.with_prefix(client, call) for client in (0, 1) for call in (0, 1)}) == 4


def test_repeated_texts_are_the_same_for_all_clients() -> None:
    repeated = texts(msgspec.structs.replace(MIXED, repeats=True))
    assert len(repeated) < 100
    assert all(text.with_prefix(0, 1) == text.with_prefix(5, 9) for text in repeated)


def test_mixed_requests_use_both_member_orders_for_each_of_three_tools() -> None:
    seen = set()
    for template in writer(MIXED).calls("up__echo"):
        body = sent(template)[1]
        message: dict[str, Any] = json.loads(body)
        assert message["id"] == 7
        assert message["params"]["arguments"]["text"] == "hello"
        seen.add((tuple(message), message["params"]["name"]))
    orders = {("jsonrpc", "id", "method", "params"), ("method", "params", "jsonrpc", "id")}
    tools = ("up__echo", "up__filler_0000", "up__filler_0001")
    assert seen == {(order, tool) for order in orders for tool in tools}


def test_modern_requests_carry_the_headers_and_metadata_of_their_call() -> None:
    for template in writer(MIXED, era="modern").calls("up__echo"):
        lines, body = sent(template)
        message = json.loads(body)
        assert {"Mcp-Method: tools/call", f"Mcp-Name: {message['params']['name']}"} <= set(lines)
        assert "MCP-Protocol-Version: 2026-07-28" in lines
        assert message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"


def test_a_request_of_the_fixed_shape_always_has_the_same_length() -> None:
    template = writer(FIXED).calls("echo")[0]
    lengths = {len(template.fill(b"10000000", text.with_prefix(0, 0)[0])) for text in texts(FIXED)}
    assert len(lengths) == 1


def test_spaces_are_written_after_commas_and_colons() -> None:
    body = sent(writer(msgspec.structs.replace(FIXED, is_spaced=True)).calls("echo")[0])[1]
    assert body.startswith(b'{"jsonrpc": "2.0", "id": 7, ')


def test_each_call_has_a_trace_of_its_own() -> None:
    headers = {traceparent(client, call) for client in range(4) for call in range(50)}
    assert len(headers) == 200
    assert all(len(header.split(b"-")[1]) == 32 and len(header.split(b"-")[2]) == 16 for header in headers)


def test_each_aspect_differs_from_the_fixed_shape_in_one_property() -> None:
    for workload in ASPECTS[1:]:
        changed = [name for name in Shape.__struct_fields__ if getattr(workload.shape, name) != getattr(FIXED, name)]
        for_server = [row for row in workload.rows if row.order != "python" or row.tokens.count]
        assert len(changed) + bool(for_server) == 1, workload.name


def test_each_workload_has_a_name_of_its_own() -> None:
    assert len({workload.name for workload in WORKLOADS}) == len(WORKLOADS)


@pytest.mark.parametrize(
    ("order", "tool", "members"),
    [
        ("python", "filler_0001", ["jsonrpc", "id", "result"]),
        ("typescript", "echo", ["result", "jsonrpc", "id"]),
        ("both", "echo", ["jsonrpc", "id", "result"]),
        ("both", "filler_0001", ["result", "jsonrpc", "id"]),
    ],
)
def test_the_server_answers_in_the_member_order_asked_for(order: str, tool: str, members: list[str]) -> None:
    params = {"name": tool, "arguments": {"text": "hello"}}
    request = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}).encode()
    answer = Upstream(23, order).answer(request)
    assert isinstance(answer, bytes)
    response = json.loads(answer)
    assert list(response) == members
    assert (response["id"], response["result"]["content"][0]["text"]) == (5, "hello")
