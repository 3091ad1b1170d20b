"""Elicitation, sampling and roots over all four pairings of eras, with the official SDK on both ends."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import pytest
from mcp.client.client import Client
from mcp.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    Root,
    TextContent,
)

from tests.interop.processes import HERE, Fleet

SERVER = HERE / "servers" / "asking.py"
MODES = {"legacy": "legacy", "modern": "2026-07-28"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server of the SDK, which speaks both eras, behind a gateway that speaks to it in each; over HTTP, and as a program."""
    with Fleet(tmp_path_factory.mktemp("asking")) as fleet:
        fleet.add("legacy-http", [sys.executable, SERVER, "http"], "/mcp", era="legacy")
        fleet.add_again("modern-http", "legacy-http", era="modern")
        fleet.add_again("dual-http", "legacy-http")
        fleet.add("legacy-stdio", [sys.executable, SERVER, "stdio"], None, era="legacy", isolation="session")
        yield fleet.start_gateway("greet")[1]


def client(url: str, caller: str, name: str) -> Client:
    async def elicit(context: object, params: ElicitRequestParams) -> ElicitResult:
        await asyncio.sleep(0)
        return ElicitResult(action="accept", content={"name": name})

    async def sample(context: object, params: CreateMessageRequestParams) -> CreateMessageResult:
        return CreateMessageResult(role="assistant", model="none", content=TextContent(type="text", text=name))

    async def roots(context: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=f"file:///{name}")])  # type: ignore[arg-type]

    return Client(
        url, mode=MODES[caller], elicitation_callback=elicit, sampling_callback=sample, list_roots_callback=roots
    )


async def said(talking: Client, tool: str) -> str:
    result = await asyncio.wait_for(talking.call_tool(tool, {}), 20)
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert not result.is_error, block.text
    return block.text


@pytest.mark.parametrize("upstream", ["legacy-http", "modern-http", "dual-http", "legacy-stdio"])
@pytest.mark.parametrize("caller", list(MODES))
async def test_a_server_asks_and_its_caller_answers(gateway: str, caller: str, upstream: str) -> None:
    async with client(f"{gateway}/mcp/{upstream}", caller, "Ada") as talking:
        assert await said(talking, "greet") == "hello Ada"
        assert await said(talking, "think") == "the model said Ada"
        assert await said(talking, "look") == "file:///Ada"


@pytest.mark.parametrize("caller", list(MODES))
async def test_on_the_merged_endpoint_each_of_two_clients_answers_its_own_calls(gateway: str, caller: str) -> None:
    async with client(f"{gateway}/mcp", caller, "Ada") as ada, client(f"{gateway}/mcp", caller, "Eve") as eve:
        calls = [said(talking, "legacy-http__greet") for _ in range(4) for talking in (ada, eve)]
        assert await asyncio.gather(*calls) == ["hello Ada", "hello Eve"] * 4
