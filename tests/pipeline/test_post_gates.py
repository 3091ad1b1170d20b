"""What came back is judged, and shaped for the caller's era only."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.core.failures import Reply
from pactgate.protocol.versions import Era
from tests.pipeline.conftest import open_gateway
from tests.support.callers import caller
from tests.support.servers import scripted

ODD = (
    '{"content":[{"type":"hologram","beam":18446744073709551616}],"structuredContent":{"f":0.30000000000000004,"n":null},'
    '"isError":false,"extra":[],"_meta":{"com.example/a":null}}'
)


def unstamped(reply: Reply) -> Any:
    """The result without our envelope, numbers as they were written; and what the envelope says."""
    got = json.loads(reply.result or b"", parse_int=str, parse_float=str)
    envelope = got["_meta"].pop("dev.pactgate/envelope")
    assert envelope["requestId"]
    if not got["_meta"]:
        del got["_meta"]
    return got


def exact(text: str) -> Any:
    return json.loads(text, parse_int=str, parse_float=str)


async def test_a_legacy_result_reaches_a_legacy_caller_as_it_was_written_beside_our_stamp() -> None:
    async with open_gateway(scripted()) as inside:
        reply = await inside.call("files.raw", {"text": ODD})
    assert unstamped(reply) == exact(ODD)


async def test_a_modern_caller_gets_what_its_era_asks_for_and_everything_else_unchanged() -> None:
    async with open_gateway(scripted()) as inside:
        reply = await inside.call("files.raw", {"text": ODD}, who=caller(Era.MODERN))
    got = unstamped(reply)
    assert got.pop("resultType") == "complete"
    assert got["_meta"].pop("io.modelcontextprotocol/serverInfo")["name"] == "pactgate"
    assert got == exact(ODD)


async def test_a_legacy_caller_sees_nothing_of_the_modern_vocabulary() -> None:
    modern = ODD[:-2] + ',"io.modelcontextprotocol/serverInfo":{"name":"x","version":"1"}},"resultType":"complete"}'
    async with open_gateway(scripted(options={"era": "modern"})) as inside:
        reply = await inside.call("files.raw", {"text": modern})
    assert unstamped(reply) == exact(ODD)


@pytest.mark.parametrize(
    "result",
    [
        "7",
        "null",
        "[]",
        '"text"',
        "{}",
        '{"content":{}}',
        '{"content":null}',
        '{"content":[],"isError":"false"}',
        '{"content":[],"isError":1}',
        '{"resultType":"input_required","inputRequests":{}}',
        '{"content":[],"resultType":"task"}',
    ],
)
async def test_a_result_that_breaks_the_protocol_is_never_delivered_as_success(result: str) -> None:
    async with open_gateway(scripted()) as inside:
        reply = await inside.call("files.raw", {"text": result})
    got = json.loads(reply.result or b"{}")
    assert got["isError"] is True
    assert got["_meta"]["dev.pactgate/envelope"]["failure"]["failure_mode"] == "malformed_result"


@pytest.mark.requirement("S4/UNDECIDED-1")
@pytest.mark.parametrize(
    ("result", "is_flagged"),
    [
        ('{"content":[]}', True),
        ('{"content":[],"structuredContent":{}}', False),
        ('{"content":[],"isError":true}', False),
    ],
)
async def test_an_empty_list_of_content_is_allowed_and_said(result: str, is_flagged: bool) -> None:
    async with open_gateway(scripted()) as inside:
        reply = await inside.call("files.raw", {"text": result})
    stamped = json.loads(reply.result or b"{}")["_meta"]["dev.pactgate/envelope"]
    assert stamped.get("empty", False) is is_flagged


LINK = '{"type":"resource_link","uri":"file:///a","name":"a"}'


@pytest.mark.parametrize(("scope", "uri"), [(None, "files+file:///a"), ("files", "file:///a")])
async def test_a_link_in_a_result_leads_back_to_its_server(scope: str | None, uri: str) -> None:
    async with open_gateway(scripted()) as inside:
        name = "raw" if scope else "files.raw"
        reply = await inside.call(name, {"text": f'{{"content":[{LINK}]}}'}, who=caller(scope=scope))
        assert json.loads(reply.result or b"")["content"][0]["uri"] == uri


async def test_an_older_caller_gets_a_result_it_can_read() -> None:
    async with open_gateway(scripted()) as inside:
        old = replace(caller(), version="2025-03-26")
        text = f'{{"content":[{LINK}],"structuredContent":{{"a":1}}}}'
        result = json.loads((await inside.call("files.raw", {"text": text}, who=old)).result or b"")
        assert [block["text"] for block in result["content"]] == ["a: files+file:///a", '{"a":1}']
        assert "structuredContent" not in result


@pytest.mark.parametrize(
    "result",
    [
        '{"content":[],"isError":true,"isError":false}',
        '{"content":[{"type":"resource_link","uri":"file:///a","uri":"file:///b","name":"a"}]}',
        '{"content":[],"_meta":{"a":1,"a":2}}',
        '{"content":[],"extra":1,"extra":2}',
    ],
)
async def test_a_result_that_can_be_read_in_two_ways_is_refused(result: str) -> None:
    async with open_gateway(scripted()) as inside:
        reply = await inside.call("files.raw", {"text": result})
    failure = json.loads(reply.result or b"")["_meta"]["dev.pactgate/envelope"]["failure"]
    assert (failure["failure_mode"], failure["party"]) == ("malformed_result", "upstream")
