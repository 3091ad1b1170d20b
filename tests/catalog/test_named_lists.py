"""What servers list, under the names that callers use."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pactgate.catalog.index import ToolIndex
from pactgate.config.model import Naming
from pactgate.core.events import EntriesChanged, ToolChanged
from pactgate.protocol.versions import Era
from tests.pipeline.conftest import open_gateway
from tests.support.callers import caller
from tests.support.eventually import eventually
from tests.support.servers import scripted


@pytest.mark.requirement("S0/ECO-003")
async def test_names_do_not_depend_on_the_order_of_connecting() -> None:
    seen = set()
    for _ in range(3):
        async with open_gateway(scripted("b"), scripted("a")) as inside:
            await inside.ask("tools/list")
            seen.add(tuple(tool.exposed_name for tool in inside.gateway.connections.unfiltered.tools.entries()))
    assert len(seen) == 1
    assert next(iter(seen))[0] == "b__change"


SHUFFLED: dict[str, Any] = {
    "shuffles": True,
    "pages": 3,
    "prompts": [f"p{number}" for number in range(8)],
    "resources": [f"file:///{number}" for number in range(8)],
    "templates": [f"file:///{number}/{{x}}" for number in range(8)],
}
"""A server that answers each list in another order."""


@pytest.mark.requirement("S0/ECO-001")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_lists_are_the_same_bytes_whatever_the_order_of_servers_and_their_lists_over_restarts(era: str) -> None:
    seen: dict[tuple[str, str | None, Era], set[bytes]] = {}
    for slow in ("b", "a", "b"):
        servers = [
            scripted(id_, options={**SHUFFLED, "era": era, "starts_after_s": 0.2 * (id_ == slow)}) for id_ in ("b", "a")
        ]
        async with open_gateway(*servers) as inside:
            for again in range(3):
                if again:
                    await inside.gateway.connections.discover(force=True)
                for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
                    for scope in (None, "a"):
                        for client in (Era.LEGACY, Era.MODERN):
                            reply = await inside.ask(method, who=caller(scope=scope, era=client))
                            seen.setdefault((method, scope, client), set()).add(reply.result or b"")
            assert [event for event in inside.events if isinstance(event, EntriesChanged | ToolChanged)] == []
    assert {key for key, lists in seen.items() if len(lists) != 1} == set()
    tools = json.loads(seen["tools/list", None, Era.LEGACY].pop())["tools"]
    names = [tool["name"] for tool in tools]
    assert names == sorted(names, key=lambda name: (name.startswith("a"), name))
    assert len(names) == 20


async def test_an_order_that_changes_is_no_change_of_a_list() -> None:
    async with open_gateway(scripted(options=SHUFFLED)) as inside:
        await inside.ask("tools/list")
        told: list[set[str]] = []
        inside.gateway.connections.on_lists_changed = lambda server, differing, said: told.append(differing)
        before = inside.gateway.connections.unfiltered
        for _ in range(3):
            await inside.gateway.connections.discover(force=True)
        assert (told, inside.gateway.connections.unfiltered is before) == ([], True)


async def test_dotted_names_are_exposed_where_the_operator_wants_them() -> None:
    async with open_gateway(scripted(), naming=Naming(exposed="dot")) as inside:
        await inside.ask("tools/list")
        assert "files.echo" in [tool.exposed_name for tool in inside.gateway.connections.unfiltered.tools.entries()]


@pytest.mark.requirement("S0/ECO-001")
async def test_a_tool_that_is_added_while_running_appears_without_a_restart() -> None:
    async with open_gateway(scripted()) as inside:
        await inside.call("files.change", {"name": "newcomer"})
        await eventually(lambda: _knows(inside.gateway.connections.unfiltered.tools, "files.newcomer"))


def _knows(index: ToolIndex, name: str) -> bool:
    return name in {tool.full_name for tool in index.entries()}
