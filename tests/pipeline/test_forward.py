"""Prompts, resources and completions reach the one server they are about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.sections.limits import Timeouts
from pactgate.core.failures import Reply
from pactgate.core.principal import Principal
from pactgate.protocol.versions import Era
from tests.pipeline.conftest import open_gateway
from tests.support.callers import caller
from tests.support.servers import methods, scripted

OFFER: dict[str, Any] = {"prompts": ["ask"], "resources": ["file:///a"], "templates": ["file:///{path}"]}


def result_of(reply: Reply) -> Any:
    assert reply.result is not None, reply
    return json.loads(reply.result)


def code_of(reply: Reply) -> int:
    assert reply.error is not None, reply
    return reply.error.code


@pytest.mark.requirement("S0/ECO-003")
@pytest.mark.parametrize("spelling", ["files__ask", "files.ask", "ask"])
async def test_a_prompt_is_got_from_its_server_under_every_spelling(spelling: str) -> None:
    async with open_gateway(scripted(options=OFFER), scripted("other")) as inside:
        reply = await inside.ask("prompts/get", params={"name": spelling, "arguments": {"a": "1"}})
    sent = json.loads(result_of(reply)["messages"][0]["content"]["text"])
    assert sent == {"name": "ask", "arguments": {"a": "1"}}


async def test_a_prompt_of_two_servers_is_ambiguous() -> None:
    async with open_gateway(scripted(options=OFFER), scripted("other", options=OFFER)) as inside:
        reply = await inside.ask("prompts/get", params={"name": "ask"})
    assert code_of(reply) == -32602
    assert reply.error is not None
    assert reply.error.data["candidates"] == ["files.ask", "other.ask"]


@pytest.mark.requirement("S0/ECO-003")
@pytest.mark.parametrize("era", list(Era))
async def test_equal_uris_of_two_servers_are_listed_apart_and_each_is_read_from_its_own(era: Era) -> None:
    who = caller(era)
    async with open_gateway(scripted(options=OFFER), scripted("other", options=OFFER)) as inside:
        listed = result_of(await inside.ask("resources/list", who=who))["resources"]
        uris = [item["uri"] for item in listed]
        assert uris == ["pactgate://status", "files+file:///a", "other+file:///a"]
        for uri in uris[1:]:
            contents = result_of(await inside.ask("resources/read", who=who, params={"uri": uri}))["contents"]
            assert contents == [{"uri": uri, "text": "of file:///a", "odd": None}]
        ambiguous = await inside.ask("resources/read", who=who, params={"uri": "file:///a"})
    assert code_of(ambiguous) == -32602


async def test_on_its_own_endpoint_a_servers_uris_are_its_own() -> None:
    async with open_gateway(scripted(options=OFFER)) as inside:
        who = caller(scope="files")
        listed = result_of(await inside.ask("resources/templates/list", who=who))
        assert listed == {"resourceTemplates": [{"uriTemplate": "file:///{path}", "name": "file:///{path}"}]}
        read = await inside.ask("resources/read", who=who, params={"uri": "file:///a"})
    assert result_of(read)["contents"][0]["uri"] == "file:///a"


@pytest.mark.parametrize(("era", "code"), [(Era.LEGACY, -32002), (Era.MODERN, -32602)])
async def test_a_missing_resource_is_refused_with_the_code_of_the_callers_era(era: Era, code: int) -> None:
    async with open_gateway(scripted(options=OFFER)) as inside:
        reply = await inside.ask("resources/read", who=caller(era), params={"uri": "files+file:///nowhere"})
    assert code_of(reply) == code
    assert reply.error is not None
    assert reply.error.message == "Resource not found"
    assert reply.error.data["uri"] == "file:///nowhere"
    assert reply.error.data["server"] == "files"


async def test_the_status_of_the_gateway_can_be_read_by_any_caller() -> None:
    async with open_gateway(scripted(), scripted("off", enabled=False)) as inside:
        await inside.ask("tools/list")
        contents = result_of(await inside.ask("resources/read", params={"uri": "pactgate://status"}))["contents"]
        unknown = await inside.ask("resources/read", params={"uri": "pactgate://secrets"})
    status = json.loads(contents[0]["text"])
    assert [server["status"] for server in status["servers"]] == ["connected", "disabled"]
    assert status["missing"] == {}
    assert code_of(unknown) == -32002


@pytest.mark.parametrize(
    ("reference", "sent"),
    [
        ({"type": "ref/prompt", "name": "files__ask"}, {"type": "ref/prompt", "name": "ask"}),
        ({"type": "ref/resource", "uri": "files+file:///{path}"}, {"type": "ref/resource", "uri": "file:///{path}"}),
        ({"type": "ref/resource", "uri": "file:///{path}"}, {"type": "ref/resource", "uri": "file:///{path}"}),
    ],
)
async def test_completions_are_asked_of_the_server_the_reference_points_at(reference: Any, sent: Any) -> None:
    async with open_gateway(scripted(options=OFFER)) as inside:
        params = {"ref": reference, "argument": {"name": "path", "value": ""}}
        completion = result_of(await inside.ask("completion/complete", params=params))["completion"]
    assert json.loads(completion["values"][0]) == sent


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {}),
        ("prompts/get", {"name": 7}),
        ("prompts/get", {"name": "ask", "_meta": 7}),
        ("resources/read", {"uri": None}),
        ("completion/complete", {}),
        ("completion/complete", {"ref": {"type": "ref/secret"}}),
        ("completion/complete", {"ref": {"type": "ref/prompt"}}),
    ],
)
async def test_params_that_can_not_be_meant_are_refused(method: str, params: Any) -> None:
    async with open_gateway(scripted(options=OFFER)) as inside:
        assert code_of(await inside.ask(method, params=params)) == -32602


async def test_a_server_that_is_gone_is_an_error_that_says_so() -> None:
    config = scripted(options={"hang": "handshake"}, era="legacy")
    async with open_gateway(config, timeouts=Timeouts(default_timeout_ms=200)) as inside:
        reply = await inside.ask("resources/read", params={"uri": "files+file:///a"})
    assert code_of(reply) == -32603
    assert reply.error is not None
    assert reply.error.data["failure_mode"] == "timeout"


@pytest.mark.requirement("S0/ECO-002")
async def test_a_broken_list_of_resources_costs_nothing_but_itself() -> None:
    broken = scripted(options={**OFFER, "broken_lists": ["resources/list"]})
    async with open_gateway(broken) as inside:
        await inside.ask("tools/list")
        row = inside.gateway.snapshot()["servers"][0]
    assert (row["toolCount"], row["promptCount"], row["resourceCount"]) == (10, 1, 0)
    assert "resources/list" in row["leftOut"][0]


@pytest.mark.parametrize(
    ("hints", "asked"),
    [
        ({"ttlMs": 60000, "cacheScope": "private"}, 2),
        ({"ttlMs": 60000, "cacheScope": "public"}, 1),
        ({"ttlMs": 0}, 4),
        ({}, 4),
    ],
)
async def test_a_resource_is_kept_as_long_as_and_for_whom_its_server_says(
    hints: dict[str, Any], asked: int, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    options = {**OFFER, "era": "modern", "hints": hints, "log": str(log)}
    async with open_gateway(scripted(options=options)) as inside:
        me, other = caller(), caller(Era.MODERN)
        other = type(other)(principal=Principal("other"), era=other.era, version=other.version, channel=other.channel)
        for who in (me, me, other, other):
            read = result_of(await inside.ask("resources/read", who=who, params={"uri": "files+file:///a"}))
            assert read["contents"][0]["text"] == "of file:///a"
    assert methods(log).count("resources/read") == asked
    assert read["cacheScope"] == hints.get("cacheScope", "private")


@pytest.mark.parametrize(("era", "code"), [(Era.LEGACY, -32002), (Era.MODERN, -32602)])
async def test_a_resource_nobody_lists_is_refused_with_the_code_of_the_callers_era(era: Era, code: int) -> None:
    async with open_gateway(scripted(options=OFFER)) as inside:
        reply = await inside.ask("resources/read", who=caller(era), params={"uri": "file:///etc/passwd"})
    assert code_of(reply) == code
