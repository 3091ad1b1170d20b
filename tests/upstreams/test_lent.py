"""A borrowed child as a channel: lines both ways, the reason of its end, and nothing left open. The lender is the test."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import cast

import pytest

from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.upstreams.channel import Outgoing
from pactgate.upstreams.lent import LETTING_GO_S, LentChannel, Loan
from pactgate.upstreams.pending import Ledger, Sink
from tests.support.children import descriptors
from tests.support.loops import on_both_loops

CONFIG = ServerConfig(id="files", command="x")
NOBODY = cast("Ledger", None), cast("Sink", None)
"""Lines tell the receiver what comes of a request, and nobody else."""


class Borrowed:
    """A channel, what it brought, and the lender's end."""

    def __init__(self, max_frame_bytes: int = 1000) -> None:
        self.lender, worker = socket.socketpair()
        self.lender.setblocking(False)
        self._descriptor = worker.detach()
        self.frames: asyncio.Queue[bytes] = asyncio.Queue()
        self.failure: asyncio.Future[GatewayFailure] = asyncio.get_running_loop().create_future()
        self.channel = LentChannel(CONFIG, self._lend, max_frame_bytes=max_frame_bytes)

    async def _lend(self, config: ServerConfig) -> Loan:
        return Loan(self._descriptor, 4711, "enforced")

    def receive(self, frame: bytes, for_request: int | None = None) -> bool:
        self.frames.put_nowait(frame)
        return True

    def lost(self, failure: GatewayFailure) -> None:
        self.failure.set_result(failure)

    async def say(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.lender, data)

    async def hear(self) -> bytes:
        return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(self.lender, 65536), 5)


@on_both_loops
async def test_messages_pass_both_ways_and_letting_go_waits_for_the_lender_s_word() -> None:
    before = descriptors()
    one = Borrowed()
    await one.channel.open(one)
    assert (one.channel.pid, one.channel.sandbox_level) == (4711, "enforced")
    await one.channel.send(Outgoing(b'{"a":\n1}'))
    assert await one.hear() == b'{"a": 1}\n'
    await one.say(b'{"b":1}\n{"c":')
    await one.say(b"2}\n")
    assert [await asyncio.wait_for(one.frames.get(), 5) for _ in range(2)] == [b'{"b":1}', b'{"c":2}']
    closing = asyncio.create_task(one.channel.close())
    assert await one.hear() == b"", "it lets go"
    assert not closing.done(), "and waits until the child has ended, if it was the last"
    one.lender.close()
    await asyncio.wait_for(closing, 5)
    assert not one.failure.done()
    assert one.channel.pid is None
    assert descriptors() == before


@on_both_loops
async def test_the_reason_of_an_end_is_the_child_s_and_told_once() -> None:
    one = Borrowed()
    await one.channel.open(one)
    word = {"kind": Kind.CONNECTION_LOST.value, "message": "files ended with exit code 7", "details": {"exitCode": 7}}
    await one.say(b"!" + json.dumps(word).encode() + b"\n")
    one.lender.close()
    failure = await asyncio.wait_for(one.failure, 5)
    assert (failure.kind, failure.message, failure.details) == (Kind.CONNECTION_LOST, word["message"], {"exitCode": 7})
    with pytest.raises(GatewayFailure) as refused:
        await one.channel.send(Outgoing(b"{}"))
    assert refused.value.verdict is Verdict.DID_NOT_RUN
    await one.channel.close()


@on_both_loops
async def test_a_write_that_finds_the_stream_broken_says_no_more_than_that() -> None:
    one = Borrowed()
    await one.channel.open(one)
    word = {"kind": Kind.CONNECTION_LOST.value, "message": "it was killed"}
    await one.say(b"!" + json.dumps(word).encode() + b"\n")
    one.lender.close()
    one.channel.begin(Outgoing(b"{}"), 1, *NOBODY)
    with pytest.raises(GatewayFailure, match="was not sent"):
        await one.channel.send(Outgoing(b"{}"))
    assert (await asyncio.wait_for(one.failure, 5)).message == "it was killed", "the reason is not lost over it"
    await one.channel.close()


@on_both_loops
async def test_a_small_request_goes_out_without_waiting_and_a_large_one_does_not() -> None:
    one = Borrowed()
    await one.channel.open(one)
    assert one.channel.begin(Outgoing(b'{"small":1}'), 1, *NOBODY)
    assert await one.hear() == b'{"small":1}\n'
    assert not one.channel.begin(Outgoing(b"x" * 100_000), 2, *NOBODY)
    one.lender.close()
    await one.channel.close()


@on_both_loops
async def test_without_a_reason_it_is_the_lender_that_is_gone() -> None:
    one = Borrowed()
    await one.channel.open(one)
    one.lender.close()
    assert "the process that runs it has ended" in (await asyncio.wait_for(one.failure, 5)).message
    await one.channel.close()


async def test_a_message_beyond_its_bound_ends_it() -> None:
    one = Borrowed(max_frame_bytes=10)
    await one.channel.open(one)
    await one.say(b"x" * 10_000)
    assert "too long" in (await asyncio.wait_for(one.failure, 5)).message
    await one.channel.close()
    one.lender.close()


async def test_a_channel_that_was_never_opened_closes_at_once() -> None:
    one = Borrowed()
    await asyncio.wait_for(one.channel.close(), LETTING_GO_S / 2)
    socket.socket(fileno=one._descriptor).close()
    one.lender.close()
