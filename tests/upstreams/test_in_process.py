"""A server inside the gateway is reached like any other: discovered, listed, called, and its failures stay typed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw

from pactgate.core.events import Event
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol import messages, modern
from pactgate.protocol.messages import Notification, encode_json
from pactgate.protocol.versions import Era
from pactgate.upstreams.in_process import InProcessChannel, unknown_tool
from pactgate.upstreams.negotiate import negotiate
from pactgate.upstreams.peer import Peer, UpstreamReplyError


class Sums:
    """One tool that adds, and says no to anything else."""

    def __init__(self) -> None:
        self.info = {"name": "sums", "version": "1"}
        self.is_closed = False

    def definitions(self) -> list[Raw]:
        return [Raw(encode_json({"name": "add", "inputSchema": {"type": "object"}}))]

    async def call(self, name: str, params: dict[str, Raw]) -> bytes:
        if name != "add":
            raise unknown_tool("sums", name)
        numbers = messages.value(params["arguments"])
        return encode_json({"content": [{"type": "text", "text": str(sum(numbers.values()))}]})

    async def close(self) -> None:
        self.is_closed = True


def ignore(event: Event) -> None:
    return


async def connected(server: Sums) -> tuple[Peer, InProcessChannel]:
    channel = InProcessChannel("sums", server)
    peer = Peer("sums", channel, ignore, {"name": "test", "version": "1"})
    await peer.open()
    identity = await negotiate(peer, Era.MODERN)
    assert identity.server_info == server.info
    return peer, channel


async def call(peer: Peer, name: str, arguments: dict[str, Any]) -> Any:
    members = {"name": Raw(encode_json(name)), "arguments": Raw(encode_json(arguments))}
    return messages.value(await peer.request("tools/call", members, name=name))


async def test_its_tools_are_listed_and_run() -> None:
    peer, _ = await connected(Sums())
    listed = messages.value(await peer.request("tools/list", {}))
    assert [tool["name"] for tool in listed["tools"]] == ["add"]
    assert (await call(peer, "add", {"a": 2, "b": 3}))["content"][0]["text"] == "5"
    await peer.close()


async def test_a_tool_that_has_gone_is_a_typed_failure_naming_the_server() -> None:
    peer, _ = await connected(Sums())
    with pytest.raises(GatewayFailure) as raised:
        await call(peer, "subtract", {})
    assert (raised.value.kind, raised.value.server) == (Kind.UNKNOWN_TOOL, "sums")
    await peer.close()


async def test_what_it_has_not_is_refused_as_an_unknown_method() -> None:
    peer, _ = await connected(Sums())
    with pytest.raises(UpstreamReplyError) as raised:
        await peer.request("prompts/list", {})
    assert raised.value.reply.code == messages.METHOD_NOT_FOUND
    await peer.close()


async def test_a_change_of_its_tools_is_noticed_until_it_is_closed() -> None:
    server = Sums()
    peer, channel = await connected(server)
    heard: list[Notification] = []
    peer.on_notice = heard.append
    channel.changed()
    await peer.close()
    channel.changed()
    assert [notice.method for notice in heard] == ["notifications/tools/list_changed"]
    assert server.is_closed


async def test_a_server_that_cant_go_on_ends_its_connection_with_the_reason() -> None:
    peer, channel = await connected(Sums())
    assert channel.left_out == ()
    channel.lost(GatewayFailure(Kind.CONNECTION_FAILED, "its document is broken"))
    channel.lost(GatewayFailure(Kind.CONNECTION_FAILED, "told only once"))
    reason = await peer.ended()
    assert reason.message == "its document is broken"
    await peer.close()


async def test_whoever_listens_is_told_so_and_listens_until_the_end() -> None:
    heard: list[Notification] = []
    is_heard = asyncio.Event()

    def hear(notification: Notification) -> None:
        heard.append(notification)
        is_heard.set()

    peer, _ = await connected(Sums())
    wanted = Raw(encode_json({"toolsListChanged": True, "promptsListChanged": True}))
    listening = asyncio.create_task(peer.request(modern.LISTEN, {"notifications": wanted}, on_change=hear))
    async with asyncio.timeout(5):
        await is_heard.wait()
    assert heard[0].method == modern.ACKNOWLEDGED
    assert messages.value(heard[0].params or b"")["notifications"] == {"toolsListChanged": True}
    assert not listening.done()
    await peer.close()
    async with asyncio.timeout(5):
        with pytest.raises(GatewayFailure):
            await listening
