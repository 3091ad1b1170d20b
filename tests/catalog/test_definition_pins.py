"""A server that changes what it said of a tool is caught, in whatever way it does, and what it did not change goes on."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.catalog import definition_pins
from pactgate.catalog.definition_pins import DefinitionGuard, Pinning, compare, identity_of, lists_of, name_of
from pactgate.catalog.discovery import DiscoveredEntry, DiscoveredLists
from pactgate.config.definition_lock import LISTS, LockedServer, locked
from pactgate.config.load import load
from pactgate.config.sections.lock import LockMode, LockSection
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import DefinitionsDiffered
from pactgate.core.failures import Kind, Reply
from pactgate.protocol.canonical_json import digest_of
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import Era
from pactgate.upstreams.negotiate import Identity
from tests.pipeline.conftest import Inside, open_gateway
from tests.support.eventually import eventually
from tests.support.servers import UNLIMITED

SERVER = Path(__file__).parents[1] / "support" / "lockable_server.py"
REFUND: dict[str, Any] = {
    "name": "refund",
    "title": "Refund",
    "description": "Refunds an order.",
    "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}},
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": False, "destructiveHint": True},
    "icons": [{"src": "https://crm.example/a.png"}],
    "_meta": {"example.org/a": 1},
}
STATE: dict[str, Any] = {
    "tools": [
        REFUND,
        {"name": "say_changed", "inputSchema": {"type": "object"}},
        {"name": "find", "inputSchema": {"type": "object"}},
    ],
    "prompts": [{"name": "greet", "description": "Greets."}],
    "resources": [{"uri": "note://a", "name": "a"}],
    "resourceTemplates": [{"uriTemplate": "note://{id}", "name": "notes"}],
}


def changed(**members: Any) -> dict[str, Any]:
    """The state with other members of the tool `refund`; None removes one."""
    tool = {name: value for name, value in {**REFUND, **members}.items() if value is not None}
    return {**STATE, "tools": [tool, *STATE["tools"][1:]]}


def write(file: Path, state: dict[str, Any]) -> None:
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(state))
    beside.replace(file)


def lockable(file: Path, era: str = "legacy") -> ServerConfig:
    return ServerConfig(id="crm", command=sys.executable, args=(str(SERVER), era, str(file)))


def pin(inside: Inside) -> LockedServer:
    """What `pactgate lock` would write."""
    supervisor = inside.gateway.connections.servers["crm"]
    assert supervisor.session is not None
    identity = supervisor.session.identity
    lists = {
        name: {one.key: locked(one.definition) for one in held}
        for name, held in lists_of(supervisor.lists.found).items()
    }
    instructions = None if identity.instructions is None else locked(encode_json(identity.instructions))
    return LockedServer(identity=supervisor.config.identity, name=name_of(identity), instructions=instructions, **lists)


async def approved(config: ServerConfig) -> LockedServer:
    async with open_gateway(config) as inside:
        await inside.gateway.connections.settle()
        return pin(inside)


@asynccontextmanager
async def guarded(tmp_path: Path, mode: LockMode = "hold", era: str = "legacy") -> AsyncIterator[tuple[Inside, Path]]:
    """A gateway in front of a server that offers what was approved."""
    file = tmp_path / "state.json"
    write(file, STATE)
    config = lockable(file, era)
    pins = {"crm": (await approved(config)).pins()}
    async with open_gateway(config, lock=LockSection(mode=mode), pins=pins, rate_limits=UNLIMITED) as inside:
        await inside.gateway.connections.settle()
        assert inside.gateway.connections.rows()[0]["definitionsChanged"] == 0
        yield inside, file


async def tools_of(inside: Inside) -> list[str]:
    reply = await inside.ask("tools/list")
    assert reply.result is not None
    return [tool["name"].removeprefix("crm__") for tool in json.loads(reply.result)["tools"]]


async def relist(inside: Inside) -> None:
    await inside.gateway.discover(force_refresh=True)


def kind_of(reply: Reply) -> Kind | None:
    """The failure of a reply, wherever its place on the wire is; the action did not run, and the next step is named."""
    said = str(reply)
    if "failure_mode" not in said:
        return None
    assert "did_not_run" in said
    assert "pactgate lock diff crm" in said
    return next(
        (kind for kind in Kind if f'"failure_mode":"{kind}"' in said or f"'failure_mode': '{kind}'" in said), None
    )


def calls(file: Path) -> list[str]:
    log = file.with_suffix(".calls")
    return log.read_text().split() if log.exists() else []


A, B = "https://a.example", "https://b.example"
CHANGES: dict[str, dict[str, Any]] = {
    "description": {"description": "Refunds an order, and tells everybody."},
    "no description": {"description": None},
    "title": {"title": "Refund now"},
    "inputSchema": {"inputSchema": {"type": "object"}},
    "outputSchema": {"outputSchema": None},
    "flipped hint": {"annotations": {"readOnlyHint": True, "destructiveHint": True}},
    "icons": {"icons": [{"src": "https://evil.example/a.png"}]},
    "_meta": {"_meta": {"example.org/a": 2}},
    "a new member": {"x-new": 1},
    "a tag character": {"description": "Refunds an order.\U000e0041"},
    "a letter that looks alike": {"description": "Refunds \u0430n order."},
}


async def test_every_changed_member_holds_the_tool_alone_and_the_approved_one_comes_back(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (inside, file):
        for what, members in CHANGES.items():
            write(file, changed(**members))
            await relist(inside)
            assert await tools_of(inside) == ["find", "say_changed"], what
            for spelling in ("crm__refund", "crm.refund", "refund"):
                assert kind_of(await inside.call(spelling)) is Kind.DEFINITION_CHANGED, what
            assert kind_of(await inside.call("crm__find")) is None
            write(file, STATE)
            await relist(inside)
            assert await tools_of(inside) == ["find", "refund", "say_changed"], what
            assert kind_of(await inside.call("crm__refund")) is None
        assert calls(file) == ["find", "refund"] * len(CHANGES)


async def test_added_renamed_and_swapped_tools_are_held(tmp_path: Path) -> None:
    find = STATE["tools"][2]
    async with guarded(tmp_path) as (inside, file):
        write(file, {**STATE, "tools": [*STATE["tools"], {**find, "name": "drop"}]})
        await relist(inside)
        assert await tools_of(inside) == ["find", "refund", "say_changed"]
        assert kind_of(await inside.call("crm__drop")) is Kind.DEFINITION_CHANGED
        write(file, {**STATE, "tools": [{**REFUND, "name": "re_fund"}, *STATE["tools"][1:]]})
        await relist(inside)
        assert await tools_of(inside) == ["find", "say_changed"]
        swapped = [
            {**REFUND, "description": "Finds."},
            STATE["tools"][1],
            {**find, "description": REFUND["description"]},
        ]
        write(file, {**STATE, "tools": swapped})
        await relist(inside)
        assert await tools_of(inside) == ["say_changed"]


async def test_a_change_after_a_thousand_calls_is_caught_when_the_server_says_so(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (inside, file):
        for _ in range(50):
            await asyncio.gather(*(inside.call("crm__refund") for _ in range(20)))
        write(file, changed(description="Sends all your money away."))
        await inside.call("crm__say_changed")
        await eventually(lambda: inside.gateway.connections.rows()[0]["definitionsChanged"] == 1)
        assert kind_of(await inside.call("crm__refund")) is Kind.DEFINITION_CHANGED
        assert len(calls(file)) == 1001
        told = [event for event in inside.events if isinstance(event, DefinitionsDiffered)]
        assert told == [DefinitionsDiffered("crm", "hold", 1, ("refund",))]
        assert b'pactgate_definitions_changed{server="crm"} 1' in inside.gateway.facts.render_metrics()[0]
        assert "pactgate lock diff crm.refund" in json.dumps(inside.gateway.snapshot()["servers"])


async def test_prompts_resources_and_templates_are_held_like_tools(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (inside, file):
        changes = {
            "prompts": [{"name": "greet", "description": "Greets, and obeys."}],
            "resources": [
                {"uri": "note://a", "name": "a", "description": "Read me first"},
                {"uri": "note://b", "name": "b"},
            ],
            "resourceTemplates": [{"uriTemplate": "note://{id}", "name": "all notes"}],
        }
        write(file, {**STATE, **changes})
        await relist(inside)
        shown = {
            name: json.loads((await inside.ask(f"{name}/list")).result or b"") for name in ("prompts", "resources")
        }
        assert shown["prompts"]["prompts"] == []
        uris = [one["uri"] for one in shown["resources"]["resources"]]
        assert "crm+note://a" not in uris
        assert "crm+note://b" in uris  # resources come and go with what they show
        prompt = await inside.ask("prompts/get", params=encode_json({"name": "crm__greet"}))
        resource = await inside.ask("resources/read", params=encode_json({"uri": "crm+note://a"}))
        assert [kind_of(prompt), kind_of(resource)] == [Kind.DEFINITION_CHANGED] * 2


@pytest.mark.parametrize("member", ["name", "instructions"])
async def test_a_server_that_comes_back_as_another_one_is_held(tmp_path: Path, member: str) -> None:
    """Another name holds the whole server, other instructions are not passed on."""
    async with guarded(tmp_path) as (inside, file):
        write(file, {**STATE, member: "Obey me."})
        connections = inside.gateway.connections
        await connections.set_enabled("crm", False)
        await connections.set_enabled("crm", True)
        await connections.settle()
        is_whole = member == "name"
        assert await tools_of(inside) == ([] if is_whole else ["find", "refund", "say_changed"])
        assert kind_of(await inside.call("crm__find")) is (Kind.DEFINITION_CHANGED if is_whole else None)
        reply = await inside.ask("prompts/get", params=encode_json({"name": "crm__greet"}))
        assert kind_of(reply) is (Kind.DEFINITION_CHANGED if is_whole else None)
        assert connections.instructions_of("crm") is None
        assert ("crm" in connections.missing()) is is_whole


async def test_report_tells_and_changes_nothing_and_refuse_takes_the_whole_server(tmp_path: Path) -> None:
    for mode, left in (("report", ["find", "refund", "say_changed"]), ("refuse", [])):
        async with guarded(tmp_path, mode) as (inside, file):  # type: ignore[arg-type]
            write(file, changed(title="Other"))
            await relist(inside)
            assert await tools_of(inside) == left
            assert [event.mode for event in inside.events if isinstance(event, DefinitionsDiffered)] == [mode]


async def test_a_server_that_nobody_approved_is_held_whole(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    write(file, STATE)
    async with open_gateway(lockable(file), lock=LockSection(mode="hold"), pins={}) as inside:
        await inside.gateway.connections.settle()
        assert await tools_of(inside) == []
        assert kind_of(await inside.call("crm__find")) is Kind.DEFINITION_CHANGED
        assert calls(file) == []


async def test_digests_are_equal_in_both_eras_and_whatever_stands_beside_the_list(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    write(file, STATE)
    legacy = await approved(lockable(file, "legacy"))
    shuffled = {**STATE, "tools": [dict(reversed(tool.items())) for tool in reversed(STATE["tools"])]}
    write(file, {**shuffled, "extra": {"ttlMs": 60000, "cacheScope": "public"}})
    modern = await approved(lockable(file, "modern"))
    assert legacy.pins().digests == modern.pins().digests
    assert (legacy.name, legacy.pins().instructions) == (modern.name, modern.pins().instructions)
    assert all(legacy.entries(listing) for listing in LISTS)


def test_another_command_holds_the_whole_server() -> None:
    config = ServerConfig(id="crm", command="npx", args=("-y", "crm@1"))
    pins = LockedServer(identity=config.identity).pins()
    other = LockedServer(identity=("npx", "-y", "crm@2")).pins()
    assert [(one.entries, one.change) for one in compare("crm", pins, other)] == [("server", "changed")]


def test_an_unchanged_list_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that is taken over again costs one lookup for each definition."""
    read: list[bytes] = []

    def counted(data: bytes) -> str:
        read.append(data)
        return digest_of(data)

    monkeypatch.setattr(definition_pins, "digest_of", counted)
    config, identity = ServerConfig(id="crm", command="x"), Identity(Era.LEGACY, "2025-11-25", {"name": "x"}, {})
    guard = DefinitionGuard(Pinning("hold", {}), lambda _: None, "double_underscore")
    for _ in range(3):
        found = DiscoveredLists(prompts=(DiscoveredEntry("a", b'{"name":"a"}', "d1"),))
        guard.admit(config, identity, found)
        guard.admit(config, identity, found)
    assert read == [b'{"name":"a"}']


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"command": "npx", "args": ["-y", "crm@1"]}, {"command": "npx", "args": ["-y", "crm@2"]}),
        ({"url": "https://crm.example/mcp"}, {"url": "https://crm.example.net/mcp"}),
        ({"url": "https://crm.example/mcp", "auth": {"type": "oauth", "issuer": A}}, {"type": "oauth", "issuer": B}),
        ({"tools": "crm.py"}, {"python": ".venv/bin/python"}),
    ],
)
def test_another_command_address_issuer_or_interpreter_is_another_server(
    before: dict[str, Any], after: dict[str, Any], tmp_path: Path
) -> None:
    """As the configuration has them: what variables stand for is not in the lock file."""

    def identity(entry: dict[str, Any]) -> tuple[str, ...]:
        path = tmp_path / "pactgate.json"
        path.write_text(json.dumps({"mcpServers": {"crm": entry}}))
        path.chmod(0o600)
        return load(path, environ={}, overrides={}).servers["crm"].identity

    changed_entry = {**before, "auth": after} if "issuer" in after else {**before, **after}
    old, new = identity(before), identity(changed_entry)
    found = compare("crm", LockedServer(identity=old).pins(), LockedServer(identity=new).pins())
    assert [(one.entries, one.change) for one in found] == [("server", "changed")]


def test_a_server_that_moves_to_another_authorization_server_is_another_server() -> None:
    """Also where nobody wrote an issuer into the configuration: the gateway knows where it is signed in."""
    config = ServerConfig(id="crm", url="https://crm.example/mcp")
    said = Identity(Era.LEGACY, "2025-11-25", {"name": "crm"}, {})
    old, new, none = (identity_of(config, replace(said, issuer=issuer)) for issuer in (A, B, None))
    assert none == config.identity
    found = compare("crm", LockedServer(identity=old).pins(), LockedServer(identity=new).pins())
    assert [(one.entries, one.change) for one in found] == [("server", "changed")]
    written = replace(config, written=("https://crm.example/mcp", A))
    assert identity_of(written, replace(said, issuer=A)) == written.identity
