"""The built-in server `pactgate`, through the whole gateway: for administrators a server like any other, for others nothing at all."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from pactgate.app import Gateway
from pactgate.config.load import load
from pactgate.config.model import Config, ResponseSection
from pactgate.config.sections.rate_limits import RateLimits, ReadRate
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import ConfigurationChanged, ConfigurationRestored, Event, RequestFinished
from pactgate.core.failures import Reply
from pactgate.core.values import Caller
from pactgate.policy.access import ADMINISTRATOR
from pactgate.protocol.versions import Era
from tests.config.writing import written
from tests.pipeline.conftest import Inside, open_gateway, text_of
from tests.support.callers import caller
from tests.support.eventually import eventually
from tests.support.servers import UPSTREAM, scripted

NAMES = {
    "config_get",
    "config_set",
    "config_show",
    "servers_list",
    "server_enable",
    "server_disable",
    "tools_discover",
    "tools_list",
    "tool_invoke",
    "explain",
}
ERAS = (Era.LEGACY, Era.MODERN)
ECHO = {
    "name": "echo",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}


def admin(era: Era = Era.MODERN, **more: Any) -> Caller:
    return caller(era, roles=ADMINISTRATOR, **more)


def facts(reply: Reply) -> dict[str, Any]:
    assert reply.result is not None, reply
    result = json.loads(reply.result)
    assert not result.get("isError"), result
    structured: dict[str, Any] = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == structured
    return structured


def failure(reply: Reply) -> dict[str, Any]:
    if reply.error is not None:
        data: dict[str, Any] = reply.error.data
        return data
    told: dict[str, Any] = json.loads(reply.result or b"")["_meta"]["dev.pactgate/envelope"]["failure"]
    return told


async def manage(inside: Inside, tool: str, **arguments: Any) -> Reply:
    return await inside.call(f"pactgate.{tool}", arguments, who=admin())


async def listed(inside: Inside, who: Caller) -> set[str]:
    reply = await inside.ask("tools/list", who=who)
    return {tool["name"] for tool in json.loads(reply.result or b"")["tools"]}


# Who sees it.


@pytest.mark.parametrize("era", ERAS)
async def test_administrators_see_it_in_every_list_and_others_in_none(era: Era) -> None:
    async with open_gateway(scripted(options={"tools": ["explain"]})) as inside:
        everybody = await listed(inside, caller(era))
        assert everybody
        assert not any(name.startswith("pactgate") for name in everybody)
        assert await listed(inside, admin(era)) == everybody | {f"pactgate__{name}" for name in NAMES}
        assert await listed(inside, admin(era, scope="pactgate")) == NAMES
        assert await listed(inside, caller(era, scope="pactgate")) == set()
        assert await listed(inside, caller(era)) == everybody


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("roles", [frozenset(), frozenset({"dev"})])
async def test_to_others_its_tools_are_names_like_any_that_is_not_there(era: Era, roles: frozenset[str]) -> None:
    async with open_gateway(scripted()) as inside:
        await inside.ask("tools/list")
        for name in ("pactgate.config_get", "pactgate__config_get", "config_get", "pactgate.tool_invoke"):
            for scope in (None, "pactgate"):
                who = caller(era, roles=roles, scope=scope)
                refused = await inside.call(name, {"path": "limits"}, who=who)
                nonsense = await inside.call("no.such_tool", who=who)
                assert refused.error is not None
                assert nonsense.error is not None
                assert refused.error.code == nonsense.error.code == -32602
                assert refused.error.message == nonsense.error.message.replace("no.such_tool", name)
                assert failure(refused).keys() == failure(nonsense).keys()
        changed = [event for event in inside.events if isinstance(event, RequestFinished) and event.record.tool]
    assert changed == []


async def test_a_tool_of_the_same_bare_name_is_not_made_ambiguous_for_others() -> None:
    async with open_gateway(scripted(options={"tools": ["explain"]})) as inside:
        await inside.ask("tools/list")
        reply = await inside.call("explain", {"text": "mine"})
        assert "candidates" not in (reply.error.data if reply.error else {})
        both = await inside.call("explain", {"requestId": "x"}, who=admin())
    assert failure(both)["candidates"] == ["files.explain", "pactgate.explain"]


async def test_it_is_in_no_status_snapshot_or_report() -> None:
    async with open_gateway(scripted()) as inside:
        await inside.ask("tools/list")
        await manage(inside, "config_get", path="limits")
        shown = inside.gateway.snapshot()
        status = await inside.ask("resources/read", params={"uri": "pactgate://status"})
        report = await inside.gateway.discover(include_disabled=True)
    assert [row["serverId"] for row in shown["servers"]] == ["files"]
    assert {row["serverId"] for row in shown["tools"]} == {"files"}
    assert [row["serverId"] for row in json.loads(_text(status))["servers"]] == ["files"]
    assert [row.server_id for row in report.server_results] == ["files"]


def _text(reply: Reply) -> str:
    return str(json.loads(reply.result or b"")["contents"][0]["text"])


async def test_the_program_that_holds_the_gateway_may_manage_it() -> None:
    async with Gateway.open(Config()) as gateway:
        envelope = await gateway.invoke("pactgate.config_get", {"path": "limits.maxArraySize"})
    assert envelope["data"]["structuredContent"]["value"] == 100


# Its tools are contract tools.


async def test_arguments_it_does_not_declare_are_refused_before_it_runs() -> None:
    async with open_gateway() as inside:
        reply = await manage(inside, "config_get", path="limits", scope="file")
        missing = await manage(inside, "config_set", path="limits.maxArraySize")
    assert failure(reply)["code"] == failure(missing)["code"] == "INVALID_INPUT"


async def test_reading_is_charged_as_reading_and_changing_as_changing() -> None:
    async with open_gateway() as inside:
        rows = facts(await manage(inside, "tools_list", serverId="pactgate"))["tools"]
    categories = {row["fullName"].removeprefix("pactgate."): row["category"] for row in rows}
    assert categories["config_get"] == "query"
    assert categories["config_set"] == categories["server_disable"] == "mutation"
    assert all(row["idempotent"] is not None for row in rows)


# config_set.


@pytest.mark.requirement("S2/MCP-006")
async def test_a_lowered_limit_is_felt_by_the_next_call() -> None:
    async with open_gateway(scripted()) as inside:
        assert text_of(await inside.call("files.echo", {"text": "a", "more": [1, 2, 3]})) == "a"
        done = facts(await manage(inside, "config_set", path="limits.maxArraySize", value=2))
        refused = await inside.call("files.echo", {"text": "a", "more": [1, 2, 3]})
    assert (done["oldValue"], done["newValue"], done["persisted"], done["needsRestart"]) == (100, 2, False, False)
    assert failure(refused)["code"] == "ARRAY_TOO_LARGE"


@pytest.mark.requirement("S2/MCP-006")
async def test_rates_change_while_callers_are_counted() -> None:
    options = {"definitions": [ECHO]}
    async with open_gateway(scripted(options=options), rate_limits=RateLimits(read=ReadRate(rpm=2, burst=2))) as inside:
        for _ in range(2):
            await inside.call("files.echo", {"text": "a"})
        assert failure(await inside.call("files.echo", {"text": "a"}))["code"] == "RATE_LIMITED"
        await manage(inside, "config_set", path='rateLimits.tools["files.*"]', value={"rpm": 10000, "burst": 1000})
        assert text_of(await inside.call("files.echo", {"text": "a"})) == "a"
        await manage(inside, "config_set", path="rateLimits", value={"enabled": False})
        assert [text_of(await inside.call("files.echo", {"text": "a"})) for _ in range(9)] == ["a"] * 9
        await manage(inside, "config_set", path="rateLimits", value={"read": {"rpm": 1, "burst": 1}})
        assert failure(await inside.call("files.echo", {"text": "a"}))["code"] == "RATE_LIMITED", (
            "on again, and felt at once"
        )


async def test_an_invalid_change_lists_every_problem_and_changes_nothing() -> None:
    async with open_gateway(scripted()) as inside:
        before = facts(await manage(inside, "config_show"))
        reply = await manage(
            inside, "config_set", path="limits", value={"maxArraySize": -1, "maxObjectDepth": 0, "x": 1}
        )
        after = facts(await manage(inside, "config_show"))
    told = failure(reply)
    assert told["code"] == "INVALID_INPUT"
    assert [problem["path"] for problem in told["problems"]] == [
        "limits.maxArraySize",
        "limits.maxObjectDepth",
        "limits.x",
    ]
    assert before == after
    assert not [event for event in inside.events if isinstance(event, ConfigurationChanged)]


async def test_of_two_competing_changes_one_wins_and_the_other_is_told() -> None:
    async with open_gateway() as inside:
        seen = facts(await manage(inside, "config_get", path="limits"))["revision"]
        wishes = [
            manage(inside, "config_set", path="limits.maxArraySize", value=value, expectedRevision=seen)
            for value in (5, 6)
        ]
        replies = await asyncio.gather(*wishes)
        lost = [reply for reply in replies if json.loads(reply.result or b"").get("isError")]
        now = facts(await manage(inside, "config_get", path="limits.maxArraySize"))
    assert len(lost) == 1
    assert failure(lost[0])["code"] == "CONFLICT"
    assert failure(lost[0])["currentRevision"] == now["revision"]
    assert now["value"] in (5, 6)


@pytest.mark.parametrize(
    "path", ["mcpServers.files.command", "mcpServers.files.env.A", "auth.anonymous", "listen.port"]
)
async def test_no_request_can_define_a_server_or_open_a_door(path: str) -> None:
    async with open_gateway(scripted()) as inside:
        reply = await manage(inside, "config_set", path=path, value="x")
    assert failure(reply)["code"] == "PERMISSION_DENIED"


async def test_who_changed_what_is_told_by_the_name_of_the_token() -> None:
    async with open_gateway() as inside:
        await inside.call("pactgate.config_set", {"path": "naming.exposed", "value": "dot"}, who=admin())
        told = [event for event in inside.events if isinstance(event, ConfigurationChanged)]
    assert [(event.who, event.path, event.old, event.new) for event in told] == [
        ("tester", "naming.exposed", '"double_underscore"', '"dot"')
    ]


async def test_no_setting_locks_out_whoever_has_to_take_it_back() -> None:
    async with open_gateway(scripted()) as inside:
        await manage(inside, "config_set", path="limits", value={"maxStringLength": 1, "maxObjectDepth": 1})
        await manage(inside, "config_set", path="timeouts.toolTimeouts.mutation", value=100)
        back = facts(await manage(inside, "config_set", path="limits", value={"maxObjectDepth": 10}))
    assert back["newValue"]["maxStringLength"] == 100_000


@pytest.mark.parametrize("suffix", [".jsonc", ".yaml", ".toml"])
async def test_a_change_that_is_kept_is_there_after_a_restart(tmp_path: Path, suffix: str) -> None:
    texts = {".jsonc": "{} // mine\n", ".yaml": "{} # mine\n", ".toml": "# mine\n"}
    path = written(tmp_path, texts[suffix], suffix)
    async with Gateway.open(path) as gateway:
        change = {"path": "limits.maxArraySize", "value": 7, "persist": True}
        assert (await gateway.invoke("pactgate.config_set", change))["success"]
        await gateway.invoke("pactgate.config_set", {"path": "limits.maxObjectDepth", "value": 7})
    assert "mine" in path.read_text()
    async with Gateway.open(path) as gateway:
        assert (gateway.config.limits.max_array_size, gateway.config.limits.max_object_depth) == (7, 10)


async def test_reading_the_file_again_drops_what_was_not_written(tmp_path: Path) -> None:
    path = written(tmp_path, "{}")
    async with Gateway.open(path) as gateway:
        await gateway.invoke("pactgate.config_set", {"path": "limits.maxArraySize", "value": 7})
        await gateway.reload(load(path, environ=os.environ))
        assert gateway.config.limits.max_array_size == 100


async def test_a_change_that_costs_another_server_its_connection_is_rolled_back(tmp_path: Path) -> None:
    """Two servers that can't stand each other: the second one kills the first when it starts, and the first can't come back."""
    pid, first = tmp_path / "pid", tmp_path / "first.py"
    first.write_text(
        f"import os, sys; open({str(pid)!r}, 'w').write(str(os.getpid())); "
        f"os.execv(sys.executable, [sys.executable, {str(UPSTREAM)!r}, '{{}}'])"
    )
    rival = f"import os; os.unlink({str(first)!r}); os.kill(int(open({str(pid)!r}).read()), 9)"
    a = ServerConfig(id="a", command=sys.executable, args=(str(first),), max_retries=0)
    b = ServerConfig(id="b", command=sys.executable, args=("-c", rival), enabled=False, max_retries=0)
    async with open_gateway(a, b) as inside:
        await inside.gateway.connections.session("a")
        # The rival strikes a moment after the change is applied, so the look at the servers has to be a patient one.
        original = inside.gateway.connections.set_enabled

        async def enable_and_let_it_strike(server: str, enabled: bool) -> None:
            await original(server, enabled)
            if enabled:
                await eventually(lambda: not inside.gateway.connections.connected("a"))

        inside.gateway.connections.set_enabled = enable_and_let_it_strike  # type: ignore[method-assign]
        reply = await manage(inside, "server_enable", serverId="b")
        rows = {row["serverId"]: row["status"] for row in inside.gateway.connections.rows()}
        told = [event for event in inside.events if isinstance(event, ConfigurationRestored)]
    assert failure(reply)["code"] == "OPERATION_FAILED"
    assert "with it a lost its connection" in json.loads(reply.result or b"")["content"][0]["text"]
    assert rows["b"] == "disabled"
    assert [event.path for event in told] == ["mcpServers.b.enabled"]


# Servers, tools, calls.


@pytest.mark.requirement("S0/ECO-201")
async def test_servers_are_switched_off_and_on_again() -> None:
    async with open_gateway(scripted()) as inside:
        await inside.call("files.echo", {"text": "a"})
        off = facts(await manage(inside, "server_disable", serverId="files"))
        gone = await inside.call("files.echo", {"text": "a"})
        rows = facts(await manage(inside, "servers_list", status="disabled"))
        on = facts(await manage(inside, "server_enable", serverId="files"))
        assert text_of(await inside.call("files.echo", {"text": "b"})) == "b"
        unknown = await manage(inside, "server_enable", serverId="nothing")
        own = await manage(inside, "server_disable", serverId="pactgate")
    assert (off["wasEnabled"], off["enabled"], off["status"]) == (True, False, "disabled")
    assert failure(gone)["failure_mode"] == "unknown_tool"
    assert [row["serverId"] for row in rows["servers"]] == ["files"]
    assert (on["wasEnabled"], on["enabled"]) == (False, True)
    assert failure(unknown)["code"] == failure(own)["code"] == "NOT_FOUND"


async def test_lists_come_in_pages() -> None:
    async with open_gateway(scripted(), rate_limits=RateLimits()) as inside:
        await inside.ask("tools/list")
        names: list[str] = []
        offset, has_more = 0, True
        while has_more:
            page = facts(await manage(inside, "tools_list", serverId="files", limit=4, offset=offset))
            names += [row["fullName"] for row in page["tools"]]
            offset, has_more = offset + 4, page["hasMore"]
        some = facts(await manage(inside, "tools_list", query="ECHO"))
        beyond = facts(await manage(inside, "tools_list", offset=1000))
    assert len(names) == len(set(names)) == page["total"]
    assert [row["fullName"] for row in some["tools"]] == ["files.echo"]
    assert (beyond["tools"], beyond["hasMore"]) == ([], False)
    row = some["tools"][0]
    assert row["rateLimit"] == {"rpm": 100, "burst": 20, "setting": "rateLimits.mutation"}
    assert row["timeoutMs"] == 30000


async def test_discovery_has_a_row_for_every_server_whatever_became_of_it() -> None:
    broken = ServerConfig(id="broken", command="no-such-program-anywhere", max_retries=0)
    async with open_gateway(scripted(), broken) as inside:
        report = facts(await manage(inside, "tools_discover", forceRefresh=True))
    assert {row["serverId"]: row["status"] for row in report["serverResults"]} == {
        "files": "success",
        "broken": "error",
    }


async def test_nothing_that_is_shown_holds_a_secret_or_a_command() -> None:
    secret = "hunter2-hunter2"
    server = scripted(env={"KEY": secret}, description=f"with {secret}")
    async with open_gateway(server, secrets=(secret,)) as inside:
        await inside.ask("tools/list")
        replies = [
            await manage(inside, "config_show"),
            await manage(inside, "config_show", scope="file"),
            await manage(inside, "config_get", path="mcpServers"),
            await manage(inside, "servers_list"),
            await manage(inside, "tools_list"),
        ]
    text = b"".join(reply.result or b"" for reply in replies).decode()
    assert secret not in text
    assert "stdio_upstream" not in text


async def test_an_administrator_is_told_the_story_of_anybodys_call() -> None:
    async with open_gateway(scripted()) as inside:
        other = await inside.call("files.echo", {"text": "a"}, who=caller(key="somebody"))
        known = json.loads(other.result or b"")["_meta"]["dev.pactgate/envelope"]["requestId"]
        told = facts(await manage(inside, "explain", requestId=known))
        kept = inside.gateway.observers.stories.get(known)
        unknown = await manage(inside, "explain", requestId="r2")
    assert told["requestId"] == known
    story = told["story"]
    assert (story["tool"], story["subject"], story["outcome"]) == ("files.echo", "somebody", "ok")
    assert {"gate": "authorize", "state": "passed", "text": "checked access"} in story["gates"]
    assert kept is not None
    assert {**story, "time": None} == {**kept, "time": None}
    assert failure(unknown)["code"] == "NOT_FOUND"


async def test_a_change_survives_the_one_who_asked_for_it() -> None:
    events: list[Event] = []
    async with Gateway.open(Config(servers={"files": scripted()}), events.append) as gateway:
        await gateway.connections.session("files")
        asking = asyncio.create_task(gateway.invoke("pactgate.server_disable", {"serverId": "files"}))
        await eventually(lambda: not gateway.config.servers["files"].enabled)
        asking.cancel()
        await asyncio.wait({asking})
        await gateway.configuration.close()
        assert gateway.connections.rows()[0]["status"] == "disabled"
    assert [event.path for event in events if isinstance(event, ConfigurationChanged)] == ["mcpServers.files.enabled"]


async def test_facts_that_fit_once_into_a_response_are_not_refused_because_they_are_repeated_as_text() -> None:
    servers = [scripted(f"server-{number}", enabled=False) for number in range(40)]
    async with open_gateway(*servers, response=ResponseSection(max_response_bytes=32768)) as inside:
        reply = await inside.call("pactgate.servers_list", {"limit": 40}, who=admin())
    result = json.loads(reply.result or b"")
    assert not result.get("isError"), result
    assert len(result["structuredContent"]["servers"]) == 40
    assert result["content"][0]["text"] == "See structuredContent: it is too long to be repeated here."
