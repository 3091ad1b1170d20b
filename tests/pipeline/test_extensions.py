"""Tasks and extensions pass unchanged on a server's own path between equal eras; elsewhere they are refused with the reason."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.config.sections.limits import Timeouts
from pactgate.config.server_settings import ServerConfig
from pactgate.core.values import Caller
from pactgate.protocol.modern import CAPABILITIES_KEY
from pactgate.protocol.versions import Era
from tests.pipeline.conftest import Inside, open_gateway
from tests.support.hearers import ERAS, Ear, changing, heard_by, legacy_caller, list_all, modern_caller

OFFER: dict[str, Any] = {
    "capabilities": {"extensions": {"com.example/x": {}}, "tasks": {}},
    "methods": ["com.example/do", "tasks/get"],
}
CALLS = ("tools/call", "tasks/get")
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


def of_era(era: str, scope: str | None) -> Caller:
    return legacy_caller(Ear(), scope=scope) if era == "legacy" else modern_caller(Ear(), scope, capabilities=TASKS)


async def begin(inside: Inside, who: Caller) -> None:
    """Have the server begin its task "t1"."""
    await inside.call("later", who=who, **({"task": {"ttl": 1000}} if who.era is Era.LEGACY else {}))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("method", ["com.example/do", "tasks/get"])
async def test_a_method_of_an_extension_reaches_the_server_of_this_path(era: str, method: str) -> None:
    async with open_gateway(replace(changing("a", era, **OFFER), extensions=("com.example/*",))) as inside:
        await list_all(inside)
        trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "baggage": "k=v"}
        await begin(inside, of_era(era, "a"))
        params = {"taskId": "t1", "odd": [None, 2**64], "_meta": trace}
        reply = await inside.ask(method, who=of_era(era, "a"), params=params)
        assert reply.result is not None, reply
        echoed = json.loads(reply.result)["echoed"]
        assert {name: echoed[name] for name in ("taskId", "odd")} == {"taskId": "t1", "odd": [None, 2**64]}
        assert trace.items() <= echoed["_meta"].items()


@pytest.mark.parametrize(
    ("caller", "server", "scope", "offer", "why"),
    [
        ("modern", "legacy", "a", OFFER, "another protocol version"),
        ("legacy", "modern", "a", OFFER, "another protocol version"),
        ("modern", "modern", "a", {}, "does not offer it"),
        ("modern", "modern", None, OFFER, "one server"),
    ],
)
async def test_where_it_can_not_pass_the_refusal_says_why(
    caller: str, server: str, scope: str | None, offer: dict[str, Any], why: str
) -> None:
    async with open_gateway(changing("a", server, **offer)) as inside:
        await list_all(inside)
        reply = await inside.ask("tasks/get", who=of_era(caller, scope), params={"taskId": "t1"})
        assert reply.error is not None
        assert reply.error.code == -32601
        assert why in reply.error.message


async def test_an_unknown_method_on_the_merged_path_stays_unknown() -> None:
    async with open_gateway(replace(changing("a", "modern", **OFFER), extensions=("com.example/*",))) as inside:
        await list_all(inside)
        reply = await inside.ask("com.example/do", who=of_era("modern", None))
        assert reply.error is not None
        assert reply.error.code == -32601


@pytest.mark.parametrize("era", ERAS)
async def test_a_task_is_given_to_who_offered_to_follow_it(era: str) -> None:
    async with open_gateway(changing("a", era, **OFFER)) as inside:
        await list_all(inside)
        more = {"task": {"ttl": 1000}} if era == "legacy" else {}
        reply = await inside.call("later", who=of_era(era, "a"), **more)
        result = json.loads(reply.result or b"")
        assert (result["task"] if era == "legacy" else result)["taskId"] == "t1"
        assert "isError" not in result


async def test_a_modern_server_is_told_who_can_follow_tasks_with_every_request_on_its_own_path_only() -> None:
    async with open_gateway(changing("a", "modern", **OFFER)) as inside:
        await list_all(inside)
        await inside.call("later", who=of_era("modern", "a"))
        await inside.ask("tasks/get", who=of_era("modern", "a"), params={"taskId": "t1"})
        await inside.call("a.steps", who=of_era("modern", None))
        told = [each["params"]["_meta"][CAPABILITIES_KEY] for each in await heard_by(inside) if each["method"] in CALLS]
        assert told[:3] == [TASKS, TASKS, {}]


async def test_a_task_is_followed_in_the_session_it_was_begun_in() -> None:
    async with open_gateway(replace(changing("a", "legacy", **OFFER), isolation="session")) as inside:
        await list_all(inside)
        for session in ("s1", "s2"):
            who = legacy_caller(Ear(), session, scope="a")
            await inside.call("later", who=who, task={})
            await inside.ask("tasks/get", who=who, params={"taskId": "t1"})
            heard = json.loads(json.loads((await inside.call("heard", who=who)).result or b"")["content"][0]["text"])
            assert [each["params"].get("taskId") for each in heard if each["method"] in CALLS] == [None, "t1", None]


@pytest.mark.parametrize("era", ERAS)
async def test_a_task_nobody_could_follow_is_no_result(era: str) -> None:
    async with open_gateway(changing("a", era, **OFFER)) as inside:
        await list_all(inside)
        result = json.loads((await inside.call("a.later", who=of_era(era, None))).result or b"")
        assert result["isError"] is True


@pytest.mark.parametrize(("caller", "server"), [(caller, server) for caller in ERAS for server in ERAS])
async def test_trace_context_is_carried_in_every_pairing(caller: str, server: str) -> None:
    async with open_gateway(changing("a", server)) as inside:
        await list_all(inside)
        trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1"}
        await inside.call("a.steps", {}, who=of_era(caller, None), _meta=trace)
        call = next(each for each in await heard_by(inside) if each["params"].get("name") == "steps")
        assert trace.items() <= call["params"]["_meta"].items()


@pytest.mark.parametrize("named", [(), ("com.other/*",), ("com.example/d",)])
@pytest.mark.parametrize("era", ERAS)
async def test_a_method_nobody_named_is_refused_unsent(era: str, named: tuple[str, ...]) -> None:
    async with open_gateway(replace(changing("a", era, **OFFER), extensions=named)) as inside:
        await list_all(inside)
        reply = await inside.ask("com.example/do", who=of_era(era, "a"))
        assert reply.error is not None
        assert reply.error.code == -32601
        assert "extensions" in reply.error.message
        assert "com.example/do" not in {each["method"] for each in await heard_by(inside)}


LOOKALIKES = (
    "tools/Call",
    "tools/call ",
    " tools/call",
    "tools/\u200bcall",
    "tools/\uff43all",
    "TOOLS/CALL",
    "tools/call\0",
)


@pytest.mark.parametrize("method", [*LOOKALIKES, "Tasks/get", "tasks/delete", "Notifications/cancelled", "roots/List"])
@pytest.mark.parametrize("scope", ["a", None])
async def test_a_name_that_looks_like_one_of_the_protocol_is_refused_whatever_is_named(
    method: str, scope: str | None
) -> None:
    server = replace(changing("a", "modern", capabilities=OFFER["capabilities"], methods=[method]), extensions=("*/*",))
    async with open_gateway(server) as inside:
        await list_all(inside)
        reply = await inside.ask(method, who=of_era("modern", scope), params={"taskId": "t1"})
        assert reply.error is not None
        assert reply.error.code == -32601
        assert method not in {each["method"] for each in await heard_by(inside)}


@pytest.mark.parametrize("era", ERAS)
async def test_what_a_server_says_of_a_task_is_heard_by_no_other_caller(era: str) -> None:
    async with open_gateway(changing("a", era, **OFFER)) as inside:
        await list_all(inside)
        other = Ear()
        who = legacy_caller(other, "s2", scope="a") if era == "legacy" else modern_caller(other, "a")
        inside.gateway.kernel.join(other)
        await inside.call("steps", who=who)
        await begin(inside, of_era(era, "a"))
        await inside.call("steps", who=who)
        assert not [method for method, _ in other.heard if "tasks" in method]
        assert other.told == []


async def test_a_reload_names_methods_without_a_new_process() -> None:
    server = changing("a", "modern", **OFFER)
    async with open_gateway(server) as inside:
        await list_all(inside)
        before = inside.gateway.connections.connected("a")
        named = replace(inside.gateway.config, servers={"a": replace(server, extensions=("com.example/do",))})
        await inside.gateway.reload(named)
        reply = await inside.ask("com.example/do", who=of_era("modern", "a"))
        assert reply.result is not None, reply
        assert inside.gateway.connections.connected("a") is before


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tasks/get", {"taskId": "t1"}),
        ("com.example/do", {}),
        ("prompts/get", {"name": "poem"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "poem"}}),
    ],
)
async def test_a_server_that_does_not_connect_is_not_waited_for_beyond_the_time_limit(
    method: str, params: dict[str, Any]
) -> None:
    mute = ServerConfig(
        id="a",
        command=sys.executable,
        args=("-c", "import sys; sys.stdin.read()"),
        connection_timeout_ms=60_000,
        extensions=("com.example/*",),
    )
    async with open_gateway(mute, timeouts=Timeouts(default_timeout_ms=300)) as inside:
        reply = await inside.ask(method, who=of_era("modern", "a"), params=params)
        assert reply.error is not None
        assert (reply.error.data["failure_mode"], reply.error.data["verdict"]) == ("timeout", "did_not_run")
