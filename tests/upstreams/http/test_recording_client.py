"""A recorded HTTP channel tells what passes, and changes none of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.recording_client import RecordingClient
from pactgate.upstreams.http.request_message import HttpTarget
from tests.capture.taps import Noted, NotedHop
from tests.support.eventually import eventually
from tests.support.scripted_http import LAST_CHUNK, LIMIT_S, Peer, ScriptedHttp, answer, chunk, event, stream_head

HEADERS = b"X-One: 1\r\n"


async def ask(play: Callable[[Peer], object], *, read: int | None = None, cancel: bool = False) -> NotedHop:
    """One request to a server that plays bytes; `read` pieces of a stream are read, then it is closed."""
    tap, client = Noted(), HttpClient()
    async with ScriptedHttp(play) as server, asyncio.timeout(LIMIT_S):  # type: ignore[arg-type]
        request = RecordingClient(client, tap).request(b"POST", HttpTarget("x", server.url), HEADERS, b"{}")
        try:
            if cancel:
                task = asyncio.create_task(request)
                await eventually(lambda: tap.hops)
                task.cancel()
                await asyncio.wait({task})
            else:
                response = await request
                if response.stream is not None:
                    while read != 0 and await response.stream.read():
                        read = None if read is None else read - 1
                    response.stream.close()
        finally:
            await client.close()
    (hop,) = tap.hops
    assert (hop.verb, hop.headers, hop.body) == ("POST", HEADERS, b"{}")
    return hop


async def test_a_whole_answer_is_told_whole() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(b'{"a":1}'))

    hop = await ask(play)
    assert hop.answer is not None
    assert (hop.answer[0], hop.answer[2]) == (200, b'{"a":1}')
    assert hop.ended_by_client is None


@pytest.mark.parametrize(("read", "by_client"), [(None, False), (0, True)])
async def test_a_stream_is_told_as_it_is_read_and_its_end_once(read: int | None, by_client: bool) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(stream_head(), chunk(event("{}")), LAST_CHUNK)

    hop = await ask(play, read=read)
    assert hop.stream is not None
    assert hop.stream[0] == 200
    assert hop.ended_by_client is by_client
    assert (b"{}" in hop.data) is (read is None)


async def test_a_lost_connection_and_a_caller_who_gives_up_end_the_exchange() -> None:
    async def hang_up(peer: Peer) -> None:
        await peer.request()

    with pytest.raises(GatewayFailure):
        await ask(hang_up)

    async def wait(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    assert (await ask(wait, cancel=True)).ended_by_client is True
