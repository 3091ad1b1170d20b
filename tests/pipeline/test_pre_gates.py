"""Before a call leaves: params read exactly, names resolved, headers compared, nothing sent on refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.model import Config
from pactgate.core.events import Event
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Tool
from pactgate.pipeline.pre_gates import Authorize, ParseParams
from pactgate.pipeline.tool_policy import PolicyTable
from pactgate.policy.access import ADMINISTRATOR
from pactgate.protocol import messages
from pactgate.protocol.messages import Request
from pactgate.protocol.versions import Era
from tests.pipeline.conftest import open_gateway, text_of
from tests.support.callers import call_of, caller, context, request
from tests.support.servers import methods, scripted


@pytest.mark.requirement("S4/F1")
@pytest.mark.requirement("S4/R2")
@pytest.mark.parametrize(
    "params",
    [
        b"{}",
        b'{"name":7}',
        b'{"name":""}',
        b'{"name":null}',
        b'{"Name":"echo"}',
        b'{"name":"echo","Name":"crash"}',
        '{"name":"echo","argument\u017f":{}}'.encode(),
        b'{"name":"echo","arguments":[]}',
        b'{"name":"echo","arguments":"x"}',
        b'{"name":"echo","arguments":null}',
        b'{"name":"echo","arguments":7}',
        b'{"name":"echo","_meta":"x"}',
        b'{"name":"echo","_meta":{"progressToken":{}}}',
        b'{"name":"echo","_meta":{"progressToken":true}}',
        b'{"name":"' + b"x" * 600 + b'"}',
        b'{"name":"../../etc/passwd"}',
        b'{"name":"nobody.echo"}',
        b'{"name":"files.nothing"}',
    ],
    ids=lambda params: params[:40].decode(errors="replace"),
)
async def test_params_that_can_not_be_meant_are_refused_and_nothing_is_sent(params: bytes, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(options={"log": str(log)})) as inside:
        await inside.ask("tools/list")
        reply = await inside.ask("tools/call", params=params)
        assert reply.error is not None
        assert reply.error.code == -32602
        assert reply.error.data["verdict"] == "did_not_run"
        assert text_of(await inside.call("echo", {"text": "still here"})) == "still here"
    assert methods(log).count("tools/call") == 1


@pytest.mark.requirement("S4/F1")
async def test_an_unknown_tool_names_itself_in_the_error() -> None:
    async with open_gateway(scripted()) as inside:
        reply = await inside.call("files.nothing")
    assert reply.error is not None
    assert reply.error.data["failure_mode"] == "unknown_tool"
    assert reply.error.data["tool"] == "files.nothing"
    assert reply.error.data["ecosystemCode"] == "MCP_ECO_TOOL_NOT_FOUND"


async def test_absent_arguments_stay_absent() -> None:
    async with open_gateway(scripted()) as inside:
        sent = json.loads(text_of(await inside.call("wire")))
    assert "arguments" not in sent["params"]


async def test_a_call_by_a_qualified_name_waits_for_a_server_that_is_still_connecting() -> None:
    async with open_gateway(scripted()) as inside:
        assert text_of(await inside.call("files__echo", {"text": "early"})) == "early"


async def test_a_call_to_a_server_that_can_not_be_reached_says_why() -> None:
    config = scripted(era="legacy", max_retries=0)
    broken = type(config)(id="broken", command="no-such-program-anywhere", max_retries=0)
    async with open_gateway(broken) as inside:
        reply = await inside.call("broken.anything")
    assert reply.result is not None
    failure = json.loads(reply.result)["_meta"]["dev.pactgate/envelope"]["failure"]
    assert failure["failure_mode"] == "connection_failed"
    assert failure["server"] == "broken"
    assert failure["verdict"] == "did_not_run"


HEADER_TOOL: dict[str, Any] = {
    "name": "echo",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string", "x-mcp-header": "Text"}}},
}


@pytest.mark.parametrize(
    ("headers", "is_refused"), [({"mcp-param-text": ["a"]}, False), ({"mcp-param-text": ["b"]}, True), ({}, True)]
)
async def test_mirrored_arguments_must_agree_with_the_body(headers: dict[str, list[str]], is_refused: bool) -> None:
    async with open_gateway(scripted(options={"definitions": [HEADER_TOOL]})) as inside:
        reply = await inside.call("echo", {"text": "a"}, who=caller(Era.MODERN, headers=headers))
    assert (reply.error is not None) is is_refused
    if reply.error is not None:
        assert reply.error.code == -32020


async def test_callers_without_headers_are_not_asked_for_any() -> None:
    async with open_gateway(scripted(options={"definitions": [HEADER_TOOL]})) as inside:
        assert text_of(await inside.call("echo", {"text": "a"})) == "a"


def test_arguments_are_passed_as_they_were_written_although_an_equal_value_is_spelt_otherwise_elsewhere() -> None:
    meta = (
        '{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        '"io.modelcontextprotocol/clientCapabilities":{"experimental":{"x":{"n":100.0}}}}'
    )
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"n":1e2},"_meta":%s}}'
    read = messages.decode((body % meta).encode())
    assert isinstance(read, Request)
    call = call_of(context(), read, PolicyTable(Config(), b"{}"))
    ParseParams()(call)
    assert bytes(call.members["arguments"]) == b'{"n":1e2}'


def test_what_only_administrators_may_call_is_unknown_to_whoever_gets_hold_of_it() -> None:
    """The catalog shows it to nobody else; should a name lead there all the same, the gate still stands."""
    tool = Tool("pactgate", "config_set", "pactgate.config_set", "pactgate__config_set", b"{}", b"{}", "d")
    calls: dict[frozenset[str], Any] = {}
    events: list[Event] = []
    for roles in (frozenset[str](), frozenset({"dev"}), ADMINISTRATOR):
        who, policies = context(who=caller(roles=roles)), PolicyTable(Config(), b"{}")
        calls[roles] = call_of(who, request("tools/call"), policies)
        calls[roles].bind(tool, None)
    Authorize(events.append)(calls.pop(ADMINISTRATOR))
    for call in calls.values():
        with pytest.raises(GatewayFailure) as raised:
            Authorize(events.append)(call)
        assert raised.value.kind is Kind.UNKNOWN_TOOL
