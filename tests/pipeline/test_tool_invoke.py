"""`tool_invoke`: a call of the tool it names in every respect, and never of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.sections.cache import Cache, CacheRule
from pactgate.core.events import RequestFinished
from pactgate.core.failures import Reply
from pactgate.policy.access import ADMINISTRATOR
from pactgate.protocol.versions import Era
from tests.pipeline.conftest import Inside, open_gateway, text_of
from tests.pipeline.test_management import failure
from tests.support.callers import Heard, caller
from tests.support.servers import logged, methods, scripted

RUN = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}


async def invoke(inside: Inside, *, who: Any = None, **arguments: Any) -> Reply:
    return await inside.call("pactgate.tool_invoke", arguments, who=who or caller(Era.MODERN, roles=ADMINISTRATOR))


async def test_it_answers_what_the_tool_answers_and_is_recorded_as_a_call_of_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(options={"log": str(log)})) as inside:
        reply = await invoke(inside, name="files.echo", arguments={"text": "through"})
        bare = await invoke(inside, name="echo", arguments={"text": "bare"})
        records = [event.record for event in inside.events if isinstance(event, RequestFinished)]
    assert (text_of(reply), text_of(bare)) == ("through", "bare")
    assert json.loads(reply.result or b"")["_meta"]["dev.pactgate/envelope"]["tool"] == "files.echo"
    assert [(record.tool, record.subject, record.outcome) for record in records] == [("files.echo", "tester", "ok")] * 2
    sent = [entry["params"] for entry in logged(log) if entry["method"] == "tools/call"]
    assert [(params["name"], params["arguments"]) for params in sent] == [
        ("echo", {"text": "through"}),
        ("echo", {"text": "bare"}),
    ]


@pytest.mark.requirement("S2/MCP-006")
async def test_it_is_charged_to_the_tool_it_invokes_and_to_nothing_else() -> None:
    categories = {"files.echo": "execution"}
    async with open_gateway(scripted(options={"definitions": [RUN]}), categories=categories) as inside:
        who = caller(Era.MODERN, roles=ADMINISTRATOR)
        direct = [await inside.call("files.echo", {"text": "a"}, who=who) for _ in range(3)]
        indirect = [await invoke(inside, who=who, name="files.echo", arguments={"text": "a"}) for _ in range(3)]
        other = await invoke(inside, who=who, name="pactgate.config_get", arguments={"path": "limits"})
    assert [text_of(reply) for reply in (*direct, *indirect[:2])] == ["a"] * 5
    told = failure(indirect[2])
    assert (told["code"], told["tool"], told["limit"]) == ("RATE_LIMITED", "files.echo", 30)
    assert "isError" not in json.loads(other.result or b"") or not json.loads(other.result or b"")["isError"]


async def test_the_tools_own_bounds_and_times_hold() -> None:
    async with open_gateway(scripted()) as inside:
        slow = await invoke(inside, name="files.slow", arguments={"ms": 60000}, timeoutMs=50)
        large = await invoke(inside, name="files.echo", arguments={"text": list(range(101))})
        unknown = await invoke(inside, name="files.nothing")
    assert (failure(slow)["failure_mode"], failure(slow)["timeoutMs"]) == ("timeout", 50)
    assert failure(large)["code"] == "ARRAY_TOO_LARGE"
    assert (failure(unknown)["failure_mode"], failure(unknown)["tool"]) == ("unknown_tool", "files.nothing")


async def test_it_can_not_invoke_itself_by_any_name() -> None:
    async with open_gateway(scripted()) as inside:
        for name in ("pactgate.tool_invoke", "pactgate__tool_invoke", "tool_invoke"):
            reply = await invoke(inside, name=name, arguments={"name": "files.echo"})
            assert failure(reply)["code"] == "INVALID_INPUT"
            assert "can't invoke itself" in (reply.error.message if reply.error else "")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"name": 5},
        {"name": ""},
        {"name": "a.b", "arguments": []},
        {"name": "a.b", "timeoutMs": 0},
        {"name": "x", "y": 1},
    ],
)
async def test_arguments_that_name_no_call_are_refused(arguments: dict[str, Any]) -> None:
    async with open_gateway() as inside:
        reply = await invoke(inside, **arguments)
    assert failure(reply)["code"] == "INVALID_INPUT"


async def test_progress_reaches_whoever_invoked() -> None:
    who = caller(Era.LEGACY, roles=ADMINISTRATOR)
    async with open_gateway(scripted()) as inside:
        await inside.call(
            "pactgate.tool_invoke",
            {"name": "files.progress", "arguments": {"n": 3}},
            who=who,
            _meta={"progressToken": "mine"},
        )
    assert isinstance(who.channel, Heard)
    assert [json.loads(params)["progressToken"] for _, params in who.channel.notes] == ["mine"] * 3


async def test_a_call_known_by_its_bytes_is_still_one_of_the_tool_and_only_for_administrators(tmp_path: Path) -> None:
    log = tmp_path / "log"
    kept = Cache(tools={"files.echo": CacheRule(ttl_ms=600_000)})
    async with open_gateway(scripted(options={"log": str(log)}), cache=kept) as inside:
        wish = {"name": "files.echo", "arguments": {"text": "same"}}
        replies = [await invoke(inside, **wish) for _ in range(4)]
        stranger = await invoke(inside, who=caller(Era.MODERN), **wish)
        changed = await invoke(
            inside,
            name="pactgate.config_set",
            arguments={"path": "rateLimits.mutation", "value": {"rpm": 1, "burst": 1}},
        )
        limited = await invoke(inside, **wish)
    assert [text_of(reply) for reply in replies] == ["same"] * 4
    assert methods(log).count("tools/call") == 1
    assert failure(stranger)["failure_mode"] == "unknown_tool"
    assert changed.error is None
    assert (failure(limited)["code"], failure(limited)["tool"]) == ("RATE_LIMITED", "files.echo")


async def test_others_can_not_invoke_by_it() -> None:
    async with open_gateway(scripted()) as inside:
        await inside.ask("tools/list")
        reply = await invoke(inside, who=caller(Era.MODERN), name="files.echo", arguments={"text": "a"})
    assert failure(reply)["failure_mode"] == "unknown_tool"
