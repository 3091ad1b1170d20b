"""In a view with groups, tools are in no list: a client that knows the draft extension fetches them by server or view."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pactgate.app import build
from pactgate.catalog.tool_groups import EXTENSION
from pactgate.config.model import Config
from pactgate.config.sections.listen import ListenSection
from pactgate.config.sections.permissions import CallerClass
from pactgate.config.sections.views import ViewSection
from pactgate.protocol.versions import Era
from tests.pipeline.conftest import Inside, open_gateway, text_of
from tests.support.callers import caller
from tests.support.facing import META, message
from tests.support.permitted import allow, listed, permitting, some, written
from tests.support.raw_http import RawClient, post
from tests.support.servers import scripted

TOOLS = [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in ("echo", "pid", "wire")]
VIEWS = {
    "desk": ViewSection(
        tools=("files.*",), surface="groups", pin=("files.pid",), describe={"files.wire": "Show the request."}
    ),
    "review": ViewSection(tools=("files.wire", "files.pid"), rename={"files.wire": "review"}),
    "other": ViewSection(tools=("files.nothing",)),
}
KNOWS: dict[str, Any] = {"extensions": {EXTENSION: {}}}


def desk(**more: Any) -> Any:
    return caller(Era.MODERN, **{"view": "desk", "capabilities": KNOWS, **more})


@asynccontextmanager
async def grouping(folder: Path, **settings: Any) -> AsyncIterator[Inside]:
    (folder / "tools.json").write_text(json.dumps(TOOLS))
    server = scripted(options={"definitions_file": str(folder / "tools.json")})
    async with open_gateway(server, **{"views": VIEWS, **settings}) as inside:
        yield inside


async def group(inside: Inside, name: str, who: Any = None) -> list[dict[str, Any]]:
    reply = await inside.ask("groups/get", who=who or desk(), params={"name": name})
    assert reply.result is not None, reply
    tools: list[dict[str, Any]] = json.loads(reply.result)["contents"]["tools"]
    return tools


async def test_servers_and_other_views_are_groups_of_what_is_not_pinned(tmp_path: Path) -> None:
    async with grouping(tmp_path) as inside:
        reply = await inside.ask("groups/list", who=desk())
        assert json.loads(reply.result or b"")["groups"] == [
            {"name": "files", "description": "Be kind."},
            {"name": "review", "description": "Tools: files__wire"},
        ]
        assert listed(await inside.ask("tools/list", who=desk()), "tools") == ["files__pid"]
        assert [tool["name"] for tool in await group(inside, "files")] == ["files__echo", "files__wire"]
        assert [tool["name"] for tool in await group(inside, "review")] == ["files__wire"]
        assert json.loads((await inside.ask("server/discover", who=desk())).result or b"")["capabilities"][
            "extensions"
        ] == {EXTENSION: {}}


async def test_definitions_of_a_group_are_those_of_a_list_and_its_tools_are_called_as_any(tmp_path: Path) -> None:
    flat = {**VIEWS, "flat": ViewSection(tools=("files.*",), describe=VIEWS["desk"].describe)}
    async with grouping(tmp_path, views=flat) as inside:
        reply = await inside.ask("tools/list", who=desk(view="flat"))
        every = (await inside.ask("groups/get", who=desk(), params={"name": "files"})).result or b""
        for tool in await group(inside, "files"):
            start = json.dumps({"name": tool["name"]}, separators=(",", ":"))[:-1].encode()
            assert _definition(every, start) == _definition(reply.result or b"", start)
        assert text_of(await inside.call("files__echo", {"text": "x"}, who=desk())) == "x"


def _definition(result: bytes, start: bytes) -> bytes:
    """The bytes of one definition in a result."""
    at = result.index(start)
    return result[at : at + json.JSONDecoder().raw_decode(result[at:].decode())[1]]


@pytest.mark.parametrize(
    "who", [desk(capabilities={}), desk(view=None), desk(view="review"), desk(view=None, scope="files")]
)
async def test_there_are_no_groups_for_who_does_not_know_them_and_elsewhere(who: Any, tmp_path: Path) -> None:
    async with grouping(tmp_path) as inside:
        for method in ("groups/list", "groups/get"):
            reply = await inside.ask(method, who=who, params={"name": "files"})
            assert reply.error is not None
            assert reply.error.data["failure_mode"] == "method_not_found"
        pinned = listed(await inside.ask("tools/list", who=desk(capabilities={})), "tools")
        assert pinned == listed(await inside.ask("tools/list", who=desk()), "tools"), (
            "a list never depends on the client"
        )


async def test_a_group_gives_no_right(tmp_path: Path) -> None:
    async with grouping(tmp_path, **permitting(allow("files.echo", "files.pid"))) as inside:
        who = some(view="desk", capabilities=KNOWS)
        assert [tool["name"] for tool in await group(inside, "files", who)] == ["files__echo"]
        denied = await inside.ask("groups/get", who=who, params={"name": "review"})
        unknown = await inside.ask("groups/get", who=who, params={"name": "nobody"})
        assert written(denied) == written(unknown).replace(b"nobody", b"review")
        assert (await inside.ask("groups/get", who=who, params={"name": 5})).error is not None


@pytest.mark.parametrize("path", ["/mcp/v/desk", "/mcp"])
async def test_groups_are_asked_for_over_http(path: str, tmp_path: Path) -> None:
    classes = {"all": CallerClass(view="desk")}
    config = Config(servers={"files": scripted()}, views=VIEWS, callers=classes, listen=ListenSection(port=0))
    gateway = build(config, lambda event: None)
    await gateway.start()
    try:
        address = await gateway.serve_http()
        await gateway.connections.settle()
        async with RawClient(int(address.rpartition(":")[2])) as client:
            meta = {**META, "io.modelcontextprotocol/clientCapabilities": KNOWS}
            headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": "groups/list"}
            answer = await client.ask(post(message("groups/list", {"_meta": meta}), path, **headers))
            assert [one["name"] for one in answer.json["result"]["groups"]] == ["files", "review"]
            plain = await client.ask(post(message("groups/list", {"_meta": META}), path, **headers))
            assert (plain.status, plain.json["error"]["code"]) == (404, -32601)
    finally:
        await gateway.stop(grace_s=0)
