"""One table of calls, each made through every way into the gateway and out by every kind of server.

A row says what the client sends, what the server does and which members the response has. It says it once: a way in or a way out that
differs from the others fails.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import product
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from tests.journeys.ways import (
    ENVELOPE,
    EVERY_OUT,
    FRAIL,
    MAX_RESULT_BYTES,
    MCP,
    MODERN_META,
    WAYS_IN,
    House,
    Request,
    Seen,
    Stdio,
    housed,
)
from tests.support.each import naming
from tests.support.eventually import eventually
from tests.support.servers import logged

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVERY_IN = tuple(WAYS_IN)
ON_THE_WIRE = tuple(name for name in EVERY_IN if name != "library")
"""A program hands Python values over: it chooses no spelling, no `_meta` and no member beside the arguments."""
STRUCTURED = tuple(name for name in ON_THE_WIRE if name != "HTTP batch")
"""Revision 2025-03-26, which has batches, has no structured content: the client gets it as text."""


class Failure(NamedTuple):
    """How a call fails. `number` is the code of a JSON-RPC error, None where the failure is a tool result."""

    mode: str
    code: str
    verdict: str
    number: int | None = None


class Row(NamedTuple):
    """`text` is in the text of the first content item, `result` are members of the result, `spelled` is in the response byte for byte,
    `received` is in the request that the server received, byte for byte."""

    name: str
    request: Request
    text: str | None = None
    result: dict[str, Any] | None = None
    spelled: str = ""
    received: str = ""
    envelope: dict[str, Any] | None = None
    failure: Failure | None = None
    progress: int = 0
    times: int = 1
    ways_in: tuple[str, ...] = EVERY_IN
    ways_out: tuple[str, ...] = MCP


def raw(result: str) -> Request:
    """A call that the server answers with exactly this result."""
    return Request("raw", json.dumps({"text": result}))


def said(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


BIG = '{"n":123456789012345678901234567890,"small":1.0e-7,"whole":1.0,"minus":-0}'
ODD = '"\\u00e9\\ud83d\\ude00 \\u2028 \\"quoted\\" \\\\ \\/ é😀"'
INVALID = Failure("invalid_arguments", "INVALID_INPUT", "did_not_run", -32602)
NOT_FOUND = Failure("unknown_tool", "NOT_FOUND", "did_not_run", -32602)
LOST = Failure("connection_lost", "OPERATION_FAILED", "may_have_run")

TABLE = [
    # The call succeeds.
    Row("a success", Request("echo", '{"text":"hello"}'), text="hello", ways_out=EVERY_OUT),
    Row("no arguments at all", Request("echo"), text=""),
    Row("empty content", raw('{"content":[]}'), result={"content": []}, envelope={"empty": True}),
    Row(
        "structured content alone",
        raw('{"structuredContent":{"n":1}}'),
        spelled='"structuredContent":{"n":1}',
        ways_in=STRUCTURED,
    ),
    Row(
        "several content items",
        raw('{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}'),
        text="a",
        result={"content": said("a") + said("b")},
    ),
    Row(
        "structured content",
        raw('{"content":[],"structuredContent":{"a":[1,{"b":null}]}}'),
        spelled='"structuredContent":{"a":[1,{"b":null}]}',
        ways_in=STRUCTURED,
    ),
    Row(
        "structured content for a revision without it",
        raw('{"content":[],"structuredContent":{"a":1}}'),
        result={"content": said('{"a":1}')},
        ways_in=("HTTP batch",),
    ),
    Row(
        "a result that its output schema allows",
        Request("raw_typed", '{"text":"{\\"content\\":[],\\"structuredContent\\":{\\"n\\":1}}"}'),
        result={"structuredContent": {"n": 1}},
        envelope={"validated": True},
        ways_in=STRUCTURED,
    ),
    Row(
        "progress before the answer",
        Request("progress", '{"n":3}', meta='"progressToken":"mine"'),
        text="progress",
        progress=3,
        ways_in=ON_THE_WIRE,
    ),
    Row("a cached response", Request("counted"), text="", times=2, envelope={"cached": True}, ways_out=EVERY_OUT),
    Row(
        "a text too long for a client",
        Request("echo", json.dumps({"text": "x" * 2 * MAX_RESULT_BYTES})),
        text="xxx",
        envelope={"truncated": True},
    ),
    # What the gateway does not know passes unchanged.
    Row(
        "a foreign member of _meta on its way to the server",
        Request("wire", meta='"example.com/a":{"b":[1.50,"\\u00e9"]}'),
        received='"example.com/a":{"b":[1.50,"\\u00e9"]}',
        ways_in=ON_THE_WIRE,
    ),
    Row(
        "a foreign member of _meta on its way back",
        raw('{"content":[],"_meta":{"example.com/a":{"b":[1.50]}}}'),
        spelled='"example.com/a":{"b":[1.50]}',
        ways_in=ON_THE_WIRE,
    ),
    Row(
        "an unknown member of params",
        Request("wire", more='"example":{"kept":true}'),
        received='"example":{"kept":true}',
        ways_in=ON_THE_WIRE,
    ),
    Row(
        "an unknown member of the result",
        raw('{"content":[],"example":{"kept":[1.50]}}'),
        spelled='"example":{"kept":[1.50]}',
        ways_in=ON_THE_WIRE,
    ),
    Row(
        "an unknown kind of content",
        raw('{"content":[{"type":"hologram","depth":1.50}]}'),
        spelled='{"type":"hologram","depth":1.50}',
        ways_in=ON_THE_WIRE,
    ),
    Row(
        "escapes and other alphabets on their way to the server",
        Request("wire", f'{{"text":{ODD}}}'),
        received=f'{{"text":{ODD}}}',
        ways_in=ON_THE_WIRE,
    ),
    Row(
        "escapes and other alphabets on their way back",
        raw(f'{{"content":[{{"type":"text","text":{ODD}}}]}}'),
        spelled=ODD,
        ways_in=ON_THE_WIRE,
    ),
    Row(
        "numbers no machine holds, on their way to the server", Request("wire", BIG), received=BIG, ways_in=ON_THE_WIRE
    ),
    Row(
        "numbers no machine holds, on their way back",
        raw(f'{{"content":[],"structuredContent":{BIG}}}'),
        spelled=BIG,
        ways_in=STRUCTURED,
    ),
    Row(
        "the member order of the TypeScript SDK",
        Request("echo", '{"text":"order"}', layout="typescript"),
        text="order",
        ways_in=ON_THE_WIRE,
        ways_out=EVERY_OUT,
    ),
    Row(
        "spaces and tabs between members",
        Request("echo", '{ "text" :\t"spaces" }', layout="spaces"),
        text="spaces",
        ways_in=ON_THE_WIRE,
        ways_out=EVERY_OUT,
    ),
    Row(
        "a result with its members in another order",
        raw('{"structuredContent":{"a":1} , "isError" : false, "content" :[]}'),
        result={"content": [], "structuredContent": {"a": 1}},
        ways_in=STRUCTURED,
    ),
    # The request is refused before a server sees it.
    Row("an unknown tool", Request("nothing_like_it"), failure=NOT_FOUND, ways_out=EVERY_OUT),
    Row(
        "an argument of another type than the schema wants",
        Request("strict", '{"n":"one"}'),
        failure=INVALID,
        ways_out=EVERY_OUT,
    ),
    Row("a missing argument", Request("strict"), failure=INVALID, ways_out=EVERY_OUT),
    Row("an unknown argument", Request("strict", '{"n":1,"m":2}'), failure=INVALID, ways_out=EVERY_OUT),
    Row(
        "arguments that are no object",
        Request("echo", "[1]"),
        failure=Failure("invalid_params", "INVALID_INPUT", "did_not_run", -32602),
        ways_out=EVERY_OUT,
    ),
    Row(
        "a list longer than the limit",
        Request("echo", json.dumps({"text": ["x"] * 11})),
        failure=Failure("limit_exceeded", "ARRAY_TOO_LARGE", "did_not_run", -32602),
    ),
    Row(
        "more calls than the rate limit allows",
        Request("limited"),
        times=2,
        failure=Failure("rate_limited", "RATE_LIMITED", "did_not_run"),
        ways_out=EVERY_OUT,
    ),
    # The server fails.
    Row(
        "a tool's own error",
        raw('{"content":[{"type":"text","text":"no such file"}],"isError":true}'),
        failure=Failure("tool_error", "OPERATION_FAILED", "ran"),
    ),
    Row(
        "a tool's own error with a code of its contract",
        Request("fail"),
        failure=Failure("tool_error", "GONE", "ran"),
        ways_out=("python",),
    ),
    Row(
        "a protocol error of the server",
        Request("refuse", '{"code":-32000}'),
        failure=Failure("upstream_error", "OPERATION_FAILED", "may_have_run"),
    ),
    Row(
        "an HTTP error of an API",
        Request("unavailable"),
        failure=Failure("http_status", "SERVICE_UNAVAILABLE", "may_have_run"),
        ways_out=("rest",),
    ),
    Row(
        "an answer that is no JSON",
        raw("{"),
        failure=Failure("invalid_frame", "OPERATION_FAILED", "may_have_run"),
        ways_out=("http", "modern"),
    ),
    Row(
        "an API's answer that is no JSON",
        Request("garbled"),
        failure=Failure("non_json_response", "INVALID_OUTPUT", "ran"),
        ways_out=("rest",),
    ),
    Row(
        "an API's answer without content",
        Request("nothing"),
        failure=Failure("empty_response", "INVALID_OUTPUT", "ran"),
        ways_out=("rest",),
    ),
    Row("a result that is none", raw('{"content":7}'), failure=Failure("malformed_result", "INVALID_OUTPUT", "ran")),
    Row(
        "a result that its output schema forbids",
        Request("raw_typed", '{"text":"{\\"content\\":[],\\"structuredContent\\":{\\"n\\":\\"x\\"}}"}'),
        failure=Failure("schema_mismatch", "INVALID_OUTPUT", "ran"),
    ),
    Row(
        "structured content too large for a client",
        raw(json.dumps({"content": [], "structuredContent": {"x": ["y" * 100] * 300}})),
        failure=Failure("response_too_large", "OPERATION_FAILED", "ran"),
    ),
    Row(
        "a server that does not answer in time",
        Request("slow", '{"ms":60000}'),
        ways_out=MCP,
        failure=Failure("timeout", "TOOL_TIMEOUT", "may_have_run", -32603),
    ),
    Row(
        "a tool or an API that does not answer in time",
        Request("slow"),
        ways_out=("python", "rest"),
        failure=Failure("timeout", "TOOL_TIMEOUT", "may_have_run", -32603),
    ),
    Row(
        "a server that goes away during the call",
        Request("crash"),
        failure=LOST,
        ways_out=("http", "modern", FRAIL, "rest"),
    ),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with housed(tmp_path_factory.mktemp("call-path")) as opened:
        yield opened


@pytest.mark.requirement("S1/RESP-001")
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
async def test_a_call_ends_the_same_on_every_way(row: Row, house: House) -> None:
    for way_in, way_out in product(row.ways_in, row.ways_out):
        with naming(way_in=way_in, way_out=way_out):
            await check_call(row, way_in, way_out, house)


async def check_call(row: Row, way_in: str, way_out: str, house: House) -> None:
    server = f"{FRAIL}-{EVERY_IN.index(way_in)}" if way_out == FRAIL else way_out
    request = row.request._replace(tool=f"{server}.{row.request.tool}")
    for _ in range(row.times):
        seen = await house.clients[way_in].call(request)
    notes = [note["params"] for note in seen.before if note["method"] == "notifications/progress"]
    told = [{"progressToken": "mine", "progress": step, "message": "on"} for step in range(1, row.progress + 1)]
    assert notes == told
    if row.failure is None:
        check_success(row, seen)
    else:
        check_failure(row.failure, seen, is_on_the_wire=way_in != "library")
    if seen.status is not None:
        is_refused = row.failure is not None and row.failure.number == -32602 and way_in == "modern HTTP"
        assert seen.status == (400 if is_refused else 200)


def check_success(row: Row, seen: Seen) -> None:
    result = seen.message["result"]
    assert not result.get("isError"), result
    if row.text is not None:
        assert row.text in result["content"][0]["text"]
    for member, value in (row.result or {}).items():
        assert result[member] == value
    assert row.spelled.encode() in seen.data
    if row.received:
        assert row.received in result["content"][0]["text"]
    envelope = {"cached": False, "truncated": False, **(row.envelope or {})}
    assert {name: result["_meta"][ENVELOPE].get(name) for name in envelope} == envelope


def check_failure(expected: Failure, seen: Seen, *, is_on_the_wire: bool) -> None:
    message = seen.message
    if is_on_the_wire and expected.number is None:
        assert message["result"]["isError"] is True
        assert message["result"]["content"]
        failure = message["result"]["_meta"][ENVELOPE]["failure"]
    else:
        failure = message["error"]["data"]
        if is_on_the_wire:
            assert message["error"]["code"] == expected.number
    assert (failure["failure_mode"], failure["code"], failure["verdict"]) == expected[:3]
    assert failure["dispatched"] is (expected.verdict != "did_not_run")


# What takes more than one message.


def counted(house: House, method: str) -> int:
    """How many such messages the servers received."""
    return sum(entry["method"] == method for entry in logged(house.log))


async def begin(client: Stdio, house: House, way_out: str) -> bytes:
    """Start a call that waits for a minute, and return it once the server has it."""
    meta = [MODERN_META] if client.is_modern else []
    message = Request(f"{way_out}.slow_and_patient", '{"ms":60000}').message(client.new_id(), *meta)
    begun = counted(house, "tools/call")
    await client.send(message)
    await eventually(lambda: counted(house, "tools/call") > begun)
    return message


@pytest.mark.parametrize("way_out", ["http", "stdio"])  # over HTTP, a modern server sees a closed stream instead
@pytest.mark.parametrize("way_in", ["legacy stdio", "modern stdio"])
async def test_a_cancelled_call_is_not_answered_and_its_server_is_told(way_in: str, way_out: str, house: House) -> None:
    client = house.clients[way_in]
    assert isinstance(client, Stdio)
    told = counted(house, "notifications/cancelled")
    cancelled_id = json.loads(await begin(client, house, way_out))["id"]
    params = {"requestId": cancelled_id}
    await client.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).encode())
    await eventually(lambda: counted(house, "notifications/cancelled") > told)
    after = await client.call(Request(f"{way_out}.echo", '{"text":"next"}'))
    assert after.message["result"]["content"] == said("next")
    assert cancelled_id not in [message.get("id") for message in after.before]


@pytest.mark.parametrize("way_out", MCP)
@pytest.mark.parametrize("way_in", ["legacy stdio", "modern stdio"])
async def test_an_id_that_is_in_use_is_refused_and_the_first_request_goes_on(
    way_in: str, way_out: str, house: House
) -> None:
    client = house.clients[way_in]
    assert isinstance(client, Stdio)
    message = await begin(client, house, way_out)
    used_id = json.loads(message)["id"]
    running = counted(house, "tools/call")
    await client.send(message)
    refused = (await client.answer(used_id)).message
    assert refused["error"]["code"] == -32600
    assert counted(house, "tools/call") == running
    params = {"requestId": used_id}
    await client.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).encode())


@pytest.mark.parametrize("way_in", ON_THE_WIRE)
async def test_the_gateways_own_tools_are_for_administrators(way_in: str, house: House) -> None:
    seen = await house.clients[way_in].call(Request("pactgate.servers_list"))
    check_failure(NOT_FOUND, seen, is_on_the_wire=True)
    allowed = await house.clients["library"].call(Request("pactgate.servers_list", '{"limit": 1}'))
    check_success(Row("a tool of the gateway", Request("")), allowed)
