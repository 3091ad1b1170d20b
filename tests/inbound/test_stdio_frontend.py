"""The stdio frontend over real pipes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from pactgate.core.events import Event, InternalFailure, RequestRefused
from pactgate.core.failures import GatewayFailure, Kind, WireError
from pactgate.inbound.stdio_frontend import MAX_RUNNING, serve_stdio
from pactgate.protocol import messages
from pactgate.protocol.versions import LATEST_MODERN
from tests.support.facing import META, call, initialize, message, modern_call, notification, until
from tests.support.fake_kernel import FakeKernel
from tests.support.loops import on_both_loops
from tests.support.raw_http import WAIT_S

CANCELLED = "notifications/cancelled"


async def reader_of(descriptor: int) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    reader = asyncio.StreamReader(limit=64 * 1024 * 1024)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb")
    )
    return reader, transport


async def writer_of(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    unread = asyncio.StreamReader()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(unread), os.fdopen(descriptor, "wb")
    )
    return asyncio.StreamWriter(transport, protocol, unread, loop)


class Peer:
    """The caller at the other end of the pipes."""

    def __init__(
        self, kernel: FakeKernel, events: list[Event], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.kernel = kernel
        self.events = events
        self.reader = reader
        self.writer = writer
        self.serving: asyncio.Task[None]
        self.reading: asyncio.BaseTransport

    async def send(self, *bodies: Any) -> None:
        lines = [body if isinstance(body, bytes) else json.dumps(body).encode() + b"\n" for body in bodies]
        self.writer.write(b"".join(lines))
        await asyncio.wait_for(self.writer.drain(), WAIT_S)

    async def line(self) -> Any:
        line = await asyncio.wait_for(self.reader.readline(), WAIT_S)
        assert line.endswith(b"\n")
        return json.loads(line)

    async def ask(self, *bodies: Any) -> Any:
        await self.send(*bodies)
        return await self.line()

    async def open(self, version: str = "2025-11-25") -> None:
        opened = await self.ask(initialize(version))
        assert opened["result"]["protocolVersion"] == version
        await self.send(notification("notifications/initialized"))

    async def hang_up(self) -> bytes:
        """Close our side and return what still comes."""
        self.writer.close()
        rest = await asyncio.wait_for(self.reader.read(), WAIT_S)
        await asyncio.wait_for(self.serving, WAIT_S)
        return rest


@asynccontextmanager
async def talking(**settings: Any) -> AsyncIterator[Peer]:
    events: list[Event] = []
    kernel = FakeKernel(events.append)
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    to_frontend, frontend_reading = await reader_of(their_in)
    from_frontend, peer_reading = await reader_of(our_in)
    peer = Peer(kernel, events, from_frontend, await writer_of(our_out))
    peer.reading = peer_reading
    answers = await writer_of(their_out)
    peer.serving = asyncio.create_task(serve_stdio(kernel, to_frontend, answers, emit=events.append, **settings))
    try:
        yield peer
    finally:
        peer.serving.cancel()
        with suppress(asyncio.CancelledError):
            await peer.serving
        peer.writer.close()
        frontend_reading.close()
        peer_reading.close()
        for writer in (answers, peer.writer):
            with suppress(ConnectionError):
                await writer.wait_closed()
        await asyncio.sleep(0)


@on_both_loops
async def test_a_legacy_conversation() -> None:
    async with talking() as peer:
        await peer.open()
        assert await peer.ask(message("ping", id_="p")) == {"jsonrpc": "2.0", "id": "p", "result": {}}
        assert (await peer.ask(call("echo", {"n": 2**64})))["result"]["arguments"] == {"n": 2**64}
        assert (await peer.ask(call("fail")))["error"]["data"] == {"why": "asked to"}
        await peer.send(notification("notifications/roots/list_changed"))
        await until(lambda: len(peer.kernel.notices) == 1)
        assert {caller.principal.key for caller in peer.kernel.callers} == {"local"}
        assert await peer.hang_up() == b""


@on_both_loops
async def test_a_modern_conversation() -> None:
    async with talking() as peer:
        assert (await peer.ask(modern_call("echo")))["result"]["name"] == "echo"
        assert peer.kernel.callers[0].version == LATEST_MODERN
        refused = await peer.ask(initialize())
        assert (refused["error"]["code"], refused["id"]) == (messages.UNSUPPORTED_VERSION, 1)
        assert refused["error"]["data"]["supported"] == [LATEST_MODERN]
        assert await peer.hang_up() == b""


async def test_a_handshake_the_kernel_refuses_may_be_tried_again() -> None:
    async with talking() as peer:
        peer.kernel.handshake_error = WireError(messages.INTERNAL_ERROR, "not now")
        assert (await peer.ask(initialize()))["error"]["message"] == "not now"
        peer.kernel.handshake_error = None
        await peer.open()


async def test_answers_come_in_the_order_they_are_ready() -> None:
    async with talking() as peer:
        await peer.open()
        await peer.send(call("hang", id_="slow"), call("echo", id_="quick"))
        assert (await peer.line())["id"] == "quick"
        peer.kernel.release.set()
        assert (await peer.line())["id"] == "slow"


async def test_a_handshake_and_requests_may_come_in_one_piece() -> None:
    async with talking() as peer:
        await peer.send(initialize("2025-06-18"), notification("notifications/initialized"), call("echo", id_=2))
        assert [(await peer.line())["id"], (await peer.line())["id"]] == [1, 2]
        assert {caller.version for caller in peer.kernel.callers} == {"2025-06-18"}


async def test_requests_before_the_handshake_are_refused() -> None:
    async with talking() as peer:
        assert (await peer.ask(call("echo")))["error"]["code"] == messages.INVALID_REQUEST
        await peer.open()
        assert "result" in await peer.ask(call("echo"))


@on_both_loops
async def test_progress_is_written_before_the_answer() -> None:
    async with talking() as peer:
        await peer.open()
        await peer.send(call("steps", {"count": 2}, "x"))
        assert [(await peer.line()).get("method") for _ in range(2)] == ["notifications/progress"] * 2
        assert (await peer.line())["id"] == "x"


@on_both_loops
async def test_a_cancelled_request_is_never_answered() -> None:
    async with talking() as peer:
        await peer.open()
        await peer.send(call("stepwise", id_=7))
        assert (await peer.line())["method"] == "notifications/progress"
        await peer.send(notification(CANCELLED, {"requestId": 7}))
        await asyncio.wait_for(peer.kernel.cancelled.wait(), WAIT_S)
        peer.kernel.callers[-1].channel.notify("notifications/progress", b"{}")
        assert (await peer.ask(call("echo", id_=7)))["result"]["name"] == "echo"
        assert await peer.hang_up() == b""


async def test_cancelling_the_handshake_or_what_does_not_run_changes_nothing() -> None:
    async with talking() as peer:
        await peer.send(initialize(), notification(CANCELLED, {"requestId": 1}), notification(CANCELLED))
        assert "result" in await peer.line()
        await peer.send(call("hang", id_=1), notification(CANCELLED, {"requestId": "1"}))
        await peer.kernel.started.wait()
        peer.kernel.release.set()
        assert (await peer.line())["result"] == {"released": True}


@pytest.mark.parametrize(
    ("line", "code", "id_"),
    [
        (b"nonsense\n", messages.PARSE_ERROR, None),
        (b"\xff\xfe\n", messages.PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":3}\n', messages.INVALID_REQUEST, 3),
        (b'[{"jsonrpc":"2.0","id":3,"method":"ping"}]\n', messages.INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping","METHOD":1}\n', messages.INVALID_REQUEST, 3),
    ],
)
async def test_lines_that_are_no_message_are_answered_and_the_next_one_works(line: bytes, code: int, id_: Any) -> None:
    async with talking() as peer:
        await peer.open()
        answer = await peer.ask(line)
        assert (answer["error"]["code"], answer["id"]) == (code, id_)
        assert "result" in await peer.ask(b"\n  \r\n", message("ping"))
        assert [type(event) for event in peer.events] == [RequestRefused]


@pytest.mark.parametrize("size", [1001, 100_000, 1_000_000])
async def test_a_line_that_is_too_long_is_refused_and_passed_over(size: int) -> None:
    async with talking(max_message_bytes=1000) as peer:
        await peer.open()
        await peer.send(b"x" * size + b"\n" + json.dumps(message("ping", id_="after")).encode() + b"\n")
        assert (await peer.line())["error"]["code"] == messages.PARSE_ERROR
        assert (await peer.line())["id"] == "after"


async def test_a_line_break_in_a_result_does_not_break_the_line() -> None:
    async with talking() as peer:
        await peer.open()
        assert (
            await peer.ask(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",\t"x":"a\\nb"}}\n')
        )["id"] == 1


async def test_an_id_that_is_still_running_can_not_be_used_again() -> None:
    async with talking() as peer:
        await peer.open()
        await peer.send(call("hang", id_=1))
        assert (await peer.ask(call("echo", id_=1)))["error"]["code"] == messages.INVALID_REQUEST
        peer.kernel.release.set()
        assert (await peer.line())["result"] == {"released": True}


async def test_answers_of_the_caller_are_passed_over() -> None:
    async with talking() as peer:
        await peer.open()
        assert (await peer.ask({"jsonrpc": "2.0", "id": 1, "result": {}}, message("ping", id_=2)))["id"] == 2


# -- the end


@on_both_loops
async def test_what_is_in_flight_when_the_caller_hangs_up_is_answered() -> None:
    async with talking() as peer:
        await peer.open()
        await peer.send(call("hang", id_=1))
        await peer.kernel.started.wait()
        peer.writer.close()
        peer.kernel.release.set()
        assert (await peer.line())["result"] == {"released": True}
        await asyncio.wait_for(peer.serving, WAIT_S)


@on_both_loops
async def test_what_does_not_end_in_time_is_given_up() -> None:
    async with talking(finish_s=0.02) as peer:
        await peer.open()
        await peer.send(call("hang", id_=1))
        await peer.kernel.started.wait()
        assert await peer.hang_up() == b""
        assert peer.kernel.cancelled.is_set() or await asyncio.wait_for(peer.kernel.cancelled.wait(), WAIT_S)
        assert peer.kernel.running == 0


@on_both_loops
async def test_a_caller_that_stops_reading_altogether_ends_the_conversation() -> None:
    async with talking() as peer:
        await peer.open()
        peer.reading.close()
        await peer.send(*(call("big", {"bytes": 10_000}, number) for number in range(20)))
        await asyncio.wait_for(peer.serving, WAIT_S)


# -- bounds


async def test_only_so_many_requests_run_at_once_and_the_rest_waits_unread() -> None:
    async with talking() as peer:
        await peer.open()
        await peer.send(*(call("hang", id_=number) for number in range(MAX_RUNNING + 20)))
        await until(lambda: peer.kernel.running == MAX_RUNNING)
        for _ in range(50):
            await asyncio.sleep(0)
        assert peer.kernel.running == MAX_RUNNING
        peer.kernel.release.set()
        answered = {(await peer.line())["id"] for _ in range(MAX_RUNNING + 20)}
        assert answered == set(range(MAX_RUNNING + 20))


async def test_notifications_are_dropped_while_the_caller_does_not_read_but_answers_are_not() -> None:
    async with talking() as peer:
        await peer.open()
        await peer.send(call("steps", {"count": 2000, "padding": 10_000}, "x"))
        lines = [await peer.line()]
        while "id" not in lines[-1]:
            lines.append(await peer.line())
        assert lines[-1]["result"] == {"done": True}
        assert 0 < len(lines) - 1 < 2000


async def test_an_unexpected_exception_is_an_event_and_the_conversation_goes_on() -> None:
    async with talking() as peer:
        await peer.open()
        crashed = await peer.ask(call("crash", id_=1))
        assert (crashed["id"], crashed["error"]["code"]) == (1, messages.INTERNAL_ERROR)
        assert [type(event) for event in peer.events] == [InternalFailure]
        assert "result" in await peer.ask(call("echo", id_=1))


@pytest.mark.parametrize("tool", ["unwritable", "unwritable_later"])
async def test_an_answer_that_can_not_be_written_ends_the_conversation(tool: str) -> None:
    async with talking() as peer:
        await peer.open()
        await peer.send(call("hang", id_=1))
        await peer.kernel.started.wait()
        await peer.send(call(tool, id_=2))
        assert await asyncio.wait_for(peer.reader.read(), WAIT_S) == b""
        await asyncio.wait_for(peer.serving, WAIT_S)
        assert [type(event) for event in peer.events] == [InternalFailure]
        await until(lambda: peer.kernel.running == 0)


async def test_a_request_that_was_cancelled_by_the_gateway_is_not_answered_and_its_id_is_free_again() -> None:
    async with talking() as peer:
        await peer.open()
        await peer.send(call("dropped", id_=1))
        assert (await peer.ask(call("echo", id_=1)))["id"] == 1


async def test_a_request_that_is_never_answered_does_not_hold_up_the_end() -> None:
    async with talking(finish_s=0.02) as peer:
        await peer.open()
        await peer.send(call("never", id_=1))
        assert (await peer.ask(call("echo", id_=2)))["id"] == 2
        assert await peer.hang_up() == b""


# -- batches


async def test_a_batch_is_answered_as_one_line() -> None:
    async with talking() as peer:
        await peer.open("2025-03-26")
        elements = [call("echo", id_=1), notification("notifications/a"), initialize(), message("ping", id_="x")]
        answers = await peer.ask(elements)
        assert sorted(str(each["id"]) for each in answers) == ["1", "1", "x"]
        assert sum("error" in each for each in answers) == 1
        assert [notice.method for _, notice in peer.kernel.notices] == ["notifications/a"]
        assert (await peer.ask([notification("notifications/a")], message("ping", id_="y")))["id"] == "y"
        assert (await peer.ask([]))["error"]["code"] == messages.INVALID_REQUEST


async def test_one_request_of_a_batch_can_be_cancelled() -> None:
    async with talking() as peer:
        await peer.open("2025-03-26")
        await peer.send([call("hang", id_=1), call("hang", id_=2)])
        await until(lambda: peer.kernel.running == 2)
        await peer.send(notification(CANCELLED, {"requestId": 1}))
        await until(lambda: peer.kernel.running == 1)
        peer.kernel.release.set()
        assert [each["id"] for each in await peer.line()] == [2]


# -- the process's own streams

PROGRAM = """
import asyncio, sys
from pactgate.inbound.stdio_frontend import serve_stdio
from tests.support.fake_kernel import FakeKernel
async def main():
    serving = asyncio.create_task(serve_stdio(FakeKernel(), emit=lambda event: None))
    await asyncio.sleep(0)
    print("printed by mistake", flush=True)
    await serving
{run}
"""


@pytest.mark.parametrize("run", ["asyncio.run(main())", "import uvloop; uvloop.run(main())"], ids=["asyncio", "uvloop"])
async def test_a_process_serves_its_stdin_and_stdout_and_prints_elsewhere(run: str) -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM.replace("{run}", run), stdin=pipe, stdout=pipe, stderr=pipe
    )
    lines = json.dumps(initialize()).encode() + b"\n" + json.dumps(message("ping", id_=2)).encode() + b"\n"
    out, err = await asyncio.wait_for(process.communicate(lines), 20)
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 2]
    assert err == b"printed by mistake\n"
    assert process.returncode == 0


async def test_streams_that_are_no_pipes_are_refused_with_a_reason(tmp_path: Any) -> None:
    plain = tmp_path / "file"
    plain.write_bytes(b"")
    program = (
        "import asyncio\nfrom pactgate.inbound.stdio_frontend import open_stdio\nfrom pactgate.core.failures import GatewayFailure\n"
        "try:\n    asyncio.run(open_stdio())\nexcept GatewayFailure as failure:\n    raise SystemExit(failure.message)\n"
    )
    with plain.open("rb") as stdin:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, stdin=stdin, stderr=asyncio.subprocess.PIPE
        )
        _, err = await asyncio.wait_for(process.communicate(), 20)
    assert b"must be pipes" in err


async def test_a_legacy_caller_is_told_of_changes_once_its_handshake_is_complete() -> None:
    async with talking() as peer:
        await peer.ask(initialize())
        [audience] = peer.kernel.audiences
        audience.tell("notifications/tools/list_changed", lambda reader: True)
        await peer.send(notification("notifications/initialized"))
        assert "result" in await peer.ask(call("echo", id_=2))
        audience.tell("notifications/tools/list_changed", lambda reader: reader.scope == "files")  # not its path
        audience.tell("notifications/prompts/list_changed", lambda reader: reader.scope is None)
        assert await peer.line() == {"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}
        who = peer.kernel.callers[-1]
        assert who.session == "stdio"
        assert who.standing is audience
    assert peer.kernel.audiences == []
    assert peer.kernel.ended_sessions == ["stdio"]


async def test_a_modern_caller_is_told_only_what_it_listens_to() -> None:
    async with talking() as peer:
        await peer.ask(modern_call("echo"))
        [audience] = peer.kernel.audiences
        audience.tell("notifications/tools/list_changed", lambda reader: True)
        assert "result" in await peer.ask(modern_call("echo", id_=2))


async def test_a_listen_does_not_keep_a_caller_that_hung_up() -> None:
    async with talking(finish_s=WAIT_S * 10) as peer:
        await peer.send(message("subscriptions/listen", {"_meta": META}))
        await asyncio.wait_for(peer.kernel.started.wait(), WAIT_S)
        await peer.hang_up()
        await asyncio.wait_for(peer.kernel.cancelled.wait(), WAIT_S)


# -- what the caller is asked


async def test_a_legacy_caller_is_asked_on_the_same_pipe() -> None:
    async with talking() as peer:
        await peer.ask(initialize())
        await peer.send(call("ask", id_=5))
        asked = await peer.line()
        assert (asked["method"], asked["params"]) == ("roots/list", {})
        await peer.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}})
        assert await peer.line() == {"jsonrpc": "2.0", "id": 5, "result": {"said": {"roots": []}}}


async def test_a_modern_caller_is_not_asked() -> None:
    async with talking() as peer:
        answer = await peer.ask(modern_call("ask"))
        assert answer["result"] == {"said": "can not be asked"}


async def test_a_caller_that_closes_its_side_answers_nothing_more() -> None:
    async with talking() as peer:
        await peer.ask(initialize())
        await peer.send(call("ask", id_=5))
        await peer.line()
        peer.writer.close()
        assert (await peer.line())["result"] == {"refused": -32603}


async def test_a_fault_in_reading_one_message_is_answered_and_the_next_one_is_read() -> None:
    async with talking() as peer:
        await peer.open()
        crashed = await peer.ask(call("crash_at_once", id_=1))
        assert (crashed["id"], crashed["error"]["code"]) == (1, messages.INTERNAL_ERROR)
        assert [type(event) for event in peer.events] == [InternalFailure]
        assert "result" in await peer.ask(call("echo", id_=2))


@pytest.mark.parametrize(("kind", "counted"), [(Kind.LIMIT_EXCEEDED, True), (Kind.RATE_LIMITED, False)])
async def test_a_large_message_may_be_refused_unread_under_its_id(kind: Kind, counted: bool) -> None:
    async with talking() as peer:
        await peer.open()
        wait_ms = 1000 if kind is Kind.RATE_LIMITED else None
        peer.kernel.body_failure = GatewayFailure(kind, "not this one", retry_after_ms=wait_ms)
        refused = await peer.ask(call("echo", {"x": "x" * 100_000}, id_="large"))
        assert (refused["id"], refused["error"]["message"]) == ("large", "not this one")
        assert any(size > 0 for _, size in peer.kernel.refused) is counted
        assert "result" in await peer.ask(call("echo", id_=2))
