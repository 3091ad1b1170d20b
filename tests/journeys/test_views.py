"""A view shows a part of everything under the operator's names; what is not in it does not exist in it, and it gives no right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.app import build
from pactgate.catalog.views import ORIGINAL_KEY
from pactgate.config.model import Config
from pactgate.config.sections.listen import ListenSection
from pactgate.config.sections.permissions import CallerClass
from pactgate.config.sections.views import ViewSection
from pactgate.core.events import ServerConnected
from pactgate.core.failures import ENVELOPE_KEY
from pactgate.protocol.versions import Era
from tests.pipeline.conftest import open_gateway, text_of
from tests.support.callers import caller
from tests.support.eventually import eventually
from tests.support.hearers import changing
from tests.support.permitted import allow, deny, listed, permitting, some, written
from tests.support.raw_http import RawClient, post
from tests.support.servers import scripted

SCHEMA = {
    "type": "object",
    "properties": {"owner": {"type": "string"}, "repo": {"type": "string"}, "text": {"type": "string"}},
    "required": ["owner", "repo"],
    "additionalProperties": False,
}
TOOLS = [
    {"name": "wire", "description": "Show the request.", "inputSchema": SCHEMA},
    {"name": "echo", "description": "Echo.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "pid", "description": "Process.", "inputSchema": {"type": "object"}},
]
REVIEW = ViewSection(
    tools=("files.wire", "category:query"),
    rename={"files.wire": "review"},
    describe={"files.wire": "Review one pull request."},
    arguments={"files.*": {"owner": "acme", "never": 1}},
)


def view(name: str = "review", era: Era = Era.MODERN, **more: Any) -> Any:
    return caller(era, view=name, **more)


def serving(tmp_path: Path, tools: list[dict[str, Any]] | None = None, **options: Any) -> Any:
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS if tools is None else tools))
    given = {"definitions_file": str(tmp_path / "tools.json"), "prompts": ["poem"], "resources": ["data:a"]}
    return scripted(options=given | options)


@pytest.mark.parametrize("era", Era)
async def test_a_view_lists_what_it_chooses_under_its_own_names(era: Era, tmp_path: Path) -> None:
    async with open_gateway(serving(tmp_path), views={"review": REVIEW}) as inside:
        reply = await inside.ask("tools/list", who=view(era=era))
        shown, echo = json.loads(reply.result or b"")["tools"]
        assert (shown["name"], shown["description"]) == ("review", "Review one pull request.")
        assert shown["inputSchema"]["properties"].keys() == {"repo", "text"}
        assert shown["inputSchema"]["required"] == ["repo"]
        assert shown["_meta"] == {ORIGINAL_KEY: "files.wire"}
        assert (echo["name"], "_meta" in echo) == ("files__echo", False)
        assert listed(await inside.ask("prompts/list", who=view(era=era)), "prompts") == []
        uris = listed(await inside.ask("resources/list", who=view(era=era)), "resources", "uri")
        assert uris == ["pactgate://status"]


async def test_a_fixed_argument_is_in_the_bytes_that_the_server_gets_and_can_not_be_overridden(tmp_path: Path) -> None:
    async with open_gateway(serving(tmp_path), views={"review": REVIEW}) as inside:
        sent = text_of(await inside.call("review", {"repo": "x"}, who=view()))
        assert '"arguments":{"owner":"acme","repo":"x"}' in sent
        reply = await inside.call("review", {"repo": "x", "owner": "evil"}, who=view())
        assert reply.error is not None
        assert "fixed" in reply.error.message
        missing = await inside.call("review", who=view())
        assert missing.error is not None
        assert "repo" in missing.error.message
        envelope = json.loads((await inside.call("review", {"repo": "x"}, who=view())).result or b"")["_meta"][
            ENVELOPE_KEY
        ]
        assert envelope["tool"] == "files.wire"


@pytest.mark.parametrize("name", ["files.pid", "files__pid", "pid"])
async def test_what_is_not_in_the_view_does_not_exist_in_it(name: str, tmp_path: Path) -> None:
    async with open_gateway(serving(tmp_path), views={"review": REVIEW}) as inside:
        hidden = await inside.call(name, who=view())
        unknown = await inside.call(name.replace("pid", "pix"), who=view())
        assert written(hidden) == written(unknown).replace(b"pix", b"pid")
        assert (await inside.ask("prompts/get", who=view(), params={"name": "files.poem"})).error is not None
        assert (await inside.ask("resources/read", who=view(), params={"uri": "files+data:a"})).error is not None
        assert text_of(await inside.call("files.pid")).isdigit()


async def test_a_view_gives_no_right(tmp_path: Path) -> None:
    settings = permitting(allow("files.echo"))
    async with open_gateway(serving(tmp_path), views={"review": REVIEW}, **settings) as inside:
        who = some(view="review")
        assert listed(await inside.ask("tools/list", who=who), "tools") == ["files__echo"]
        assert (await inside.call("review", {"repo": "x"}, who=who)).error is not None
        assert listed(await inside.ask("tools/list", who=view()), "tools") == []


async def test_a_rule_says_its_text_to_who_uses_the_name_that_the_view_gives_a_denied_tool(tmp_path: Path) -> None:
    settings = permitting(allow("files.*"), deny("files.wire", say="Ask Ann."))
    async with open_gateway(serving(tmp_path), views={"review": REVIEW}, **settings) as inside:
        assert text_of(await inside.call("review", {"repo": "x"}, who=some(view="review"))) == "Ask Ann."
        assert (await inside.call("review", {"repo": "x"}, who=some())).error is not None


async def test_a_condition_sees_the_fixed_argument(tmp_path: Path) -> None:
    settings = permitting(allow("files.wire", when="arguments.owner == 'acme'"))
    async with open_gateway(serving(tmp_path), views={"review": REVIEW}, **settings) as inside:
        assert '"owner":"acme"' in text_of(await inside.call("review", {"repo": "x"}, who=some(view="review")))
        assert "not permitted" in text_of(await inside.call("files.wire", {"repo": "x", "owner": "evil"}, who=some()))


async def test_a_class_has_its_view_at_the_path_of_all_servers(tmp_path: Path) -> None:
    classes = {"some": CallerClass(tokens=("some",), view="review")}
    async with open_gateway(serving(tmp_path), views={"review": REVIEW}, callers=classes) as inside:
        assert listed(await inside.ask("tools/list", who=some()), "tools") == ["review", "files__echo"]
        assert len(listed(await inside.ask("tools/list", who=caller()), "tools")) == 3
        assert len(listed(await inside.ask("tools/list", who=some(scope="files")), "tools")) == 3


async def test_a_view_that_a_reload_removes_has_nothing_left(tmp_path: Path) -> None:
    async with open_gateway(serving(tmp_path), views={"review": REVIEW}) as inside:
        assert listed(await inside.ask("tools/list", who=view()), "tools") != []
        await inside.gateway.reload(replace(inside.gateway.config, views={}))
        assert listed(await inside.ask("tools/list", who=view()), "tools") == []


async def test_prompts_and_resources_of_a_view_are_those_that_it_names(tmp_path: Path) -> None:
    whole = ViewSection(tools=("files.echo",), prompts=("files.*",), resources=("files+*",))
    async with open_gateway(serving(tmp_path), views={"review": whole}) as inside:
        assert listed(await inside.ask("prompts/list", who=view()), "prompts") == ["files__poem"]
        assert "files+data:a" in listed(await inside.ask("resources/list", who=view()), "resources", "uri")
        assert (await inside.ask("resources/read", who=view(), params={"uri": "files+data:a"})).result is not None


async def list_bytes(tmp_path: Path, order: tuple[str, ...], last: str, *, reverse: bool, era: Era) -> bytes:
    """The list of a view, from servers that are configured in this order, the last connected later, and list their tools in that one."""
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("alpha", "beta", "gamma")]
    made = ViewSection(tools=("*.beta", "*"))
    given = tools[::-1] if reverse else tools
    servers = [replace(serving(tmp_path, given, starts_after_s=0.1 * (id_ == last)), id=id_) for id_ in order]
    async with open_gateway(*servers, views={"all": made}) as inside:
        reply = await inside.ask("tools/list", who=view("all", era))
        return reply.result or b""


@pytest.mark.parametrize("era", Era)
async def test_the_bytes_of_a_list_do_not_depend_on_starts_or_on_the_order_of_servers_connections_and_tools(
    era: Era, tmp_path: Path
) -> None:
    lists = [
        await list_bytes(tmp_path, order, last, reverse=reverse, era=era)
        for order, last, reverse in ((("a", "b"), "b", False), (("b", "a"), "b", True), (("a", "b"), "a", True))
    ]
    assert len(set(lists)) == 1
    names = [tool["name"] for tool in json.loads(lists[0])["tools"]]
    assert names == ["a__beta", "b__beta", "a__alpha", "a__gamma", "b__alpha", "b__gamma"]


@pytest.mark.parametrize("era", Era)
async def test_the_bytes_of_a_list_are_the_same_after_a_server_was_down(era: Era) -> None:
    made = ViewSection(tools=("*",))
    async with open_gateway(changing("a", "legacy"), changing("b", "modern"), views={"all": made}) as inside:

        async def bytes_of_list() -> bytes | None:
            return (await inside.ask("tools/list", who=view("all", era))).result

        def connected() -> int:
            return sum(isinstance(event, ServerConnected) for event in inside.events)

        before, count = await bytes_of_list(), connected()
        await inside.call("a.crash", who=view("all", era))
        assert await bytes_of_list() != before, "the missing server is said"
        await eventually(lambda: connected() > count)
        assert await bytes_of_list() == before


async def test_a_view_has_a_path_and_its_sessions_are_bound_to_it(tmp_path: Path) -> None:
    gateway = build(
        Config(
            servers={"files": serving(tmp_path)},
            listen=ListenSection(port=0),
            views={"review": REVIEW},
        ),
        lambda event: None,
    )
    await gateway.start()
    try:
        port = int((await gateway.serve_http()).rpartition(":")[2])

        async def send(path: str, method: str, **headers: str) -> Any:
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            body = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": method,
                **({"params": params} if method == "initialize" else {}),
            }
            async with RawClient(port) as client:
                return await client.ask(post(body, path, **headers))

        opened = await send("/mcp/v/review", "initialize")
        assert opened.status == 200
        session = {"mcp_session_id": opened.header("mcp-session-id"), "mcp_protocol_version": "2025-11-25"}
        async with RawClient(port) as client:
            ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            assert (await client.ask(post(ready, "/mcp/v/review", **session))).status == 202
        tools = (await send("/mcp/v/review", "tools/list", **session)).json["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["review", "files__echo"]
        assert (await send("/mcp", "tools/list", **session)).status == 404
        for path in ("/mcp/v/other", "/mcp/v/", "/mcp/v"):
            assert (await send(path, "ping")).status == 404
    finally:
        await gateway.stop(grace_s=0)
