"""Through the search surface a client reaches the tools of the view, under their own rules, and no other."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.catalog.search_surface import SearchSurface
from pactgate.catalog.tool_search import ToolSearch
from pactgate.config.sections.rate_limits import RateLimits, ToolRate
from pactgate.config.sections.views import ViewSection
from pactgate.core.failures import ENVELOPE_KEY
from pactgate.protocol.versions import Era
from tests.pipeline.conftest import open_gateway, text_of
from tests.support.callers import caller
from tests.support.permitted import allow, listed, permitting, some, written
from tests.support.servers import scripted

TOOLS = [
    {
        "name": "echo",
        "description": "Repeat a text.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    },
    {"name": "pid", "description": "Number of the process.", "inputSchema": {"type": "object"}},
    {"name": "wire", "description": "Show the request.", "inputSchema": {"type": "object", "required": ["repo"]}},
]
LAZY = ViewSection(tools=("files.echo", "files.pid"), surface="search", pin=("files.pid",))
SPLIT = ViewSection(
    tools=("files.*",),
    surface="search",
    split_calls=True,
    rename={"files.wire": "review"},
    arguments={"files.wire": {"repo": "acme"}},
)


def at(view: str, era: Era = Era.MODERN, **more: Any) -> Any:
    return caller(era, view=view, **more)


@pytest.fixture
def server(tmp_path: Path) -> Any:
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    return scripted(options={"definitions_file": str(tmp_path / "tools.json")})


@pytest.mark.parametrize("era", Era)
async def test_the_list_has_the_surface_and_the_pinned_tools(era: Era, server: Any) -> None:
    async with open_gateway(server, views={"lazy": LAZY, "split": SPLIT}) as inside:
        names = listed(await inside.ask("tools/list", who=at("lazy", era)), "tools")
        assert names == ["find_tools", "describe_tools", "call_tool", "files__pid"]
        assert len(listed(await inside.ask("tools/list", who=at("split", era)), "tools")) == 4


async def test_a_tool_is_found_described_and_called(server: Any) -> None:
    async with open_gateway(server, views={"lazy": LAZY}) as inside:
        before = (await inside.ask("tools/list", who=at("lazy"))).result
        found = text_of(await inside.call("find_tools", {"query": "repeat what I say"}, who=at("lazy")))
        assert "files__echo(" in found
        assert '"description":"Repeat a text."' in text_of(
            await inside.call("describe_tools", {"names": ["files__echo"]}, who=at("lazy"))
        )
        reply = await inside.call("call_tool", {"name": "files__echo", "arguments": {"text": "hello"}}, who=at("lazy"))
        assert text_of(reply) == "hello"
        envelope = json.loads(reply.result or b"")["_meta"][ENVELOPE_KEY]
        assert (envelope["tool"], envelope["server"]) == ("files.echo", "files")
        story = inside.gateway.observers.stories.get(envelope["requestId"])
        assert story is not None
        assert (story["via"], story["tool"]) == ("pactgate.call_tool", "files.echo")
        assert (await inside.ask("tools/list", who=at("lazy"))).result == before, (
            "a list depends on nothing that was asked before"
        )


async def test_other_calls_go_on_while_the_first_search_makes_its_index(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_finish, prepare = threading.Event(), SearchSurface.prepare

    def wait_and_prepare(surface: SearchSurface) -> ToolSearch:
        assert may_finish.wait(timeout=5)
        return prepare(surface)

    monkeypatch.setattr(SearchSurface, "prepare", wait_and_prepare)
    async with open_gateway(server, views={"lazy": LAZY}) as inside:
        search = asyncio.create_task(inside.call("find_tools", {"query": "repeat"}, who=at("lazy")))
        assert text_of(await inside.call("files.echo", {"text": "x"}, who=at("lazy"))) == "x"
        may_finish.set()
        assert "files__echo(" in text_of(await search)


@pytest.mark.parametrize(
    "name", ["files.wire", "wire", "files__wire", "find_tools", "call_tool", "pactgate.config_get", "nothing"]
)
async def test_call_tool_reaches_nothing_outside_the_view(name: str, server: Any) -> None:
    admin = frozenset({"admin"})
    async with open_gateway(server, views={"lazy": LAZY}) as inside:
        for roles in (frozenset[str](), admin):
            reply = await inside.call(
                "call_tool", {"name": name, "arguments": {"repo": "x"}}, who=at("lazy", roles=roles)
            )
            assert reply.error is not None
            assert reply.error.code == -32602
            told = text_of(await inside.call("describe_tools", {"names": [name]}, who=at("lazy", roles=roles)))
            assert told.startswith("There is no tool")
        assert "wire" not in text_of(await inside.call("find_tools", {"query": "show the request"}, who=at("lazy")))


async def test_the_surface_exists_in_its_view_alone(server: Any) -> None:
    async with open_gateway(server, views={"lazy": LAZY}) as inside:
        for who in (caller(), at("other")):
            assert (await inside.call("find_tools", {"query": "x"}, who=who)).error is not None
            assert (await inside.call("call_tool", {"name": "files.echo"}, who=who)).error is not None


async def test_a_denied_tool_is_neither_found_nor_called_and_answered_like_an_unknown_one(server: Any) -> None:
    async with open_gateway(server, views={"lazy": LAZY}, **permitting(allow("files.pid"))) as inside:
        who = some(view="lazy")
        assert "None of 1 tools" in text_of(await inside.call("find_tools", {"query": "repeat"}, who=who))
        denied, unknown = [
            await inside.call("call_tool", {"name": f"files.{name}"}, who=who) for name in ("echo", "echx")
        ]
        assert written(denied) == written(unknown).replace(b"echx", b"echo")
        assert text_of(await inside.call("call_tool", {"name": "files.pid"}, who=who)).isdigit()


async def test_reads_and_writes_have_tools_of_their_own_where_the_view_splits_them(server: Any) -> None:
    async with open_gateway(server, views={"split": SPLIT}) as inside:
        who = at("split")
        assert (
            text_of(await inside.call("call_read_tool", {"name": "files.echo", "arguments": {"text": "x"}}, who=who))
            == "x"
        )
        refused = await inside.call("call_read_tool", {"name": "files.pid"}, who=who)
        assert refused.error is not None
        assert "call_write_tool" in refused.error.message
        sent = text_of(await inside.call("call_write_tool", {"name": "review", "arguments": {"x": 1}}, who=who))
        assert '"arguments":{"repo":"acme","x":1}' in sent


async def test_a_read_of_a_server_that_is_still_starting_is_checked_too(server: Any, tmp_path: Path) -> None:
    """The name is resolved later then, by another way."""
    slow = replace(server, args=(server.args[0], json.dumps({**json.loads(server.args[1]), "starts_after_s": 0.3})))
    async with open_gateway(slow, views={"split": SPLIT}) as inside:
        refused = await inside.call("call_read_tool", {"name": "files.pid"}, who=at("split"))
        assert refused.error is not None
        assert "call_write_tool" in refused.error.message


async def test_the_quota_is_that_of_the_real_tool(server: Any) -> None:
    rates = RateLimits(tools={"files.echo": ToolRate(rpm=1, burst=1)})
    async with open_gateway(server, views={"lazy": LAZY}, rate_limits=rates) as inside:
        replies = [
            await inside.call("call_tool", {"name": "files.echo", "arguments": {"text": "x"}}, who=at("lazy"))
            for _ in range(2)
        ]
        assert text_of(replies[0]) == "x"
        assert b'"rate_limited"' in (replies[1].result or b"")


@pytest.mark.parametrize(
    "arguments", [{}, {"query": ""}, {"query": "x", "limit": 0}, {"query": "x", "odd": 1}, {"query": 5}]
)
async def test_arguments_of_the_surface_are_validated(arguments: dict[str, Any], server: Any) -> None:
    async with open_gateway(server, views={"lazy": LAZY}) as inside:
        reply = await inside.call("find_tools", arguments, who=at("lazy"))
        assert reply.error is not None
        assert reply.error.data["failure_mode"] == "invalid_arguments"
