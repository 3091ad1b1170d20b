"""The stdio channel over real processes, most of them with bad manners."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.events import InternalFailure, UpstreamNoise
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.protocol.versions import Era
from pactgate.upstreams.channel import Channel
from pactgate.upstreams.process.child import ShutdownSteps
from pactgate.upstreams.process.stdio import (
    BATCH_FRAMES,
    NOISE_EVENTS,
    NOISE_IN_A_ROW,
    SAMPLE_CHARS,
    STDERR_RING_BYTES,
    StdioChannel,
    frames_of,
    printable,
)
from tests.support.children import (
    PATIENT,
    QUICK,
    Inbox,
    Witness,
    children,
    descriptors,
    frame,
    guarded,
    opened,
    resident_bytes,
    scripted,
)
from tests.support.loops import on_both_loops

MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    before = descriptors(), children()
    yield
    assert (descriptors(), children()) == before


def request(number: int, text: str = "") -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"echo","params":{"text":"%b"}}' % (number, text.encode())


# What goes out comes back.


@on_both_loops
async def test_ten_thousand_frames_go_there_and_back_unchanged_and_in_order() -> None:
    async with opened("echo") as (channel, inbox):
        sent = [request(number) for number in range(10_000)]
        for text in sent:
            await channel.send(frame(text))
        received = await inbox.wait_frames(10_001)
        assert received[1:] == sent


@on_both_loops
async def test_frames_larger_than_any_pipe_arrive_whole_though_sent_at_once() -> None:
    async with opened("echo") as (channel, inbox):
        sent = [request(number, "x" * 3 * MIB) for number in range(4)]
        await asyncio.gather(*(channel.send(frame(text)) for text in sent))
        received = await inbox.wait_frames(5, timeout_s=20)
        assert sorted(received[1:]) == sorted(sent)


async def test_a_message_written_over_several_lines_is_sent_as_one() -> None:
    async with opened("echo") as (channel, inbox):
        await channel.send(frame('{"jsonrpc":"2.0",\r\n"method":\n"x"}'))
        received = await inbox.wait_frames(2)
        assert received[1] == b'{"jsonrpc":"2.0",  "method": "x"}'


async def test_a_channel_says_what_a_session_must_know_of_it() -> None:
    async with opened("echo") as (channel, _):
        port: Channel = channel
        assert not port.closing_cancels
        assert not port.answers_in_send
        port.settle(Era.LEGACY, "2025-11-25")
        assert channel.pid in children()
        await channel.close()
        assert channel.pid is None


async def test_a_server_behind_a_package_runner_is_served_and_ended_like_any_other() -> None:
    async with opened("shell_launcher") as (channel, inbox):
        await channel.send(frame(request(1)))
        assert (await inbox.wait_frames(2))[1] == request(1)


# What it says beside messages.


@on_both_loops
async def test_garbage_and_escape_sequences_on_stdout_are_skipped_and_told_of() -> None:
    lines = [
        b"Server listening \x1b[32mOK\x1b[0m",
        b'{"level":"info","msg":"started"}',
        b"\xff\xfe\x00",
        b'"jsonrpc"',
    ]
    async with opened("write_hex", (b"\r\n".join(lines) + b"\r\n\n\n").hex()) as (_, inbox):
        assert await inbox.wait_frames(1) == [b'{"jsonrpc":"2.0","method":"hello"}']
        noise = [event for event in inbox.events if isinstance(event, UpstreamNoise)]
        assert [event.server for event in noise] == ["crooked"] * 4
        assert noise[0].sample == "Server listening \\x1b[32mOK\\x1b[0m"
        assert noise[1].sample == '{"level":"info","msg":"started"}'


@on_both_loops
async def test_a_message_that_was_cut_off_is_handed_on_so_that_its_call_can_end() -> None:
    cut = b'{"jsonrpc":"2.0","id":1,"resu'
    async with opened("write_hex", (cut + b"\n").hex()) as (_, inbox):
        assert (await inbox.wait_frames(2))[0] == cut


@on_both_loops
async def test_a_chatty_server_is_served_and_reported_a_few_times_with_the_sum_at_its_end() -> None:
    async with opened("chatter", str(NOISE_IN_A_ROW), "2") as (channel, inbox):
        await channel.send(frame(request(1)))
        assert (await inbox.wait_frames(4))[3] == request(1)
        assert len(inbox.events) == NOISE_EVENTS
        await channel.close()
    assert len(inbox.events) == NOISE_EVENTS + 1
    assert isinstance(inbox.events[-1], UpstreamNoise)
    assert inbox.events[-1].what.startswith(f"{2 * NOISE_IN_A_ROW - NOISE_EVENTS} more lines")
    assert not inbox.failures


@on_both_loops
async def test_a_server_that_says_nothing_but_noise_loses_its_channel() -> None:
    async with opened("chatter", str(NOISE_IN_A_ROW + 1)) as (channel, inbox):
        failure = await inbox.wait_lost()
        assert failure.kind is Kind.INVALID_FRAME
        await channel.close()
        assert inbox.frames == []
        assert len(inbox.events) == NOISE_EVENTS + 1


@on_both_loops
async def test_a_line_without_end_costs_the_server_its_life_and_us_no_memory() -> None:
    before = resident_bytes()
    async with opened("bomb", max_frame_bytes=MIB) as (channel, inbox):
        assert channel.pid is not None
        with Witness([channel.pid]) as witness:
            failure = await inbox.wait_lost()
            assert failure.kind is Kind.INVALID_FRAME
            assert str(MIB) in failure.message
            assert witness.living_after(1) == set()
    assert resident_bytes() - before < 8 * MIB


@on_both_loops
async def test_a_line_of_exactly_the_bound_is_taken() -> None:
    line = request(1, "x" * (MIB - len(request(1))))
    async with opened("echo", max_frame_bytes=MIB) as (channel, inbox):
        await channel.send(frame(line))
        assert (await inbox.wait_frames(2))[1] == line
        await channel.send(frame(line + b" ."))
        assert (await inbox.wait_lost()).kind is Kind.INVALID_FRAME


@pytest.mark.parametrize("text", ["e", "an ordinary line\n"], ids=["without line breaks", "in lines"])
@on_both_loops
async def test_a_flood_on_stderr_does_not_hold_up_an_answer(text: str) -> None:
    async with opened("flood_stderr", text, str(16 * MIB // len(text))) as (channel, inbox):
        await channel.send(frame(request(1)))
        assert (await inbox.wait_frames(2))[1] == request(1)
        assert len(channel._stderr) <= STDERR_RING_BYTES
        assert channel._stderr.endswith(b"\nlast line")


async def test_a_batch_of_an_older_server_is_taken_apart() -> None:
    batch = b'[{"jsonrpc":"2.0","method":"a"}, {"jsonrpc":"2.0","method":"b"}]\n'
    async with opened("write_hex", batch.hex()) as (_, inbox):
        assert (await inbox.wait_frames(3))[:2] == [
            b'{"jsonrpc":"2.0","method":"a"}',
            b'{"jsonrpc":"2.0","method":"b"}',
        ]


# How it dies.


@on_both_loops
async def test_a_crash_in_the_middle_of_an_answer_is_told_at_once_with_the_signal() -> None:
    async with opened("crash_in_answer") as (channel, inbox):
        await inbox.wait_frames(1)
        await channel.send(frame(request(1)))
        failure = await inbox.wait_lost()
        assert failure.kind is Kind.CONNECTION_LOST
        assert failure.verdict is Verdict.MAY_HAVE_RUN
        assert failure.server == "crooked"
        assert failure.message == "crooked was ended by SIGSEGV"
        assert failure.details == {"signal": "SIGSEGV"}
        assert inbox.frames == [b'{"jsonrpc":"2.0","method":"hello"}']


@on_both_loops
async def test_what_it_said_before_its_end_is_delivered_first_and_half_a_line_is_not() -> None:
    lines = "".join(f'{{"jsonrpc":"2.0","id":{number},"result":{{}}}}\n' for number in range(1000))
    async with opened("answer_and_end", lines + '{"jsonrpc":"2.0","id":9', "3") as (_, inbox):
        failure = await inbox.wait_lost()
        assert inbox.frames == lines.encode().splitlines()
        assert failure.message == (
            "crooked ended with exit code 3; its last output on stderr: \\x1b[31mfatal: no \\x07disk\\x1b[0m"
        )
        assert failure.details == {"exitCode": 3}


@on_both_loops
async def test_all_that_was_in_the_pipe_is_delivered_though_its_death_is_seen_at_the_same_time() -> None:
    line = '{"jsonrpc":"2.0","method":"last"}\n'
    async with opened("fill_and_end", line, "20000") as (channel, inbox):
        assert channel.pid is not None
        with Witness([channel.pid]) as witness:
            assert witness.living_after(5) == set()  # the loop stands still meanwhile
        await inbox.wait_lost()
        assert len(inbox.frames) == 20000


@on_both_loops
async def test_a_grandchild_that_holds_the_pipes_hides_no_death_and_does_not_survive() -> None:
    async with opened("parent_that_dies") as (channel, inbox):
        with Witness([await inbox.child_pid()]) as witness:
            await channel.send(frame(request(1)))
            failure = await inbox.wait_lost()
            assert failure.details == {"exitCode": 7}
            assert witness.living_after(1) == set()


@on_both_loops
async def test_a_server_that_closes_its_stdout_is_lost_though_it_lives() -> None:
    async with opened("mute") as (channel, inbox):
        assert channel.pid is not None
        with Witness([channel.pid]) as witness:
            failure = await inbox.wait_lost()
            assert failure.kind is Kind.CONNECTION_LOST
            assert "stdout" in failure.message
            assert witness.living_after(1) == set()


@on_both_loops
async def test_a_server_that_closes_its_stdin_is_lost_when_something_is_sent() -> None:
    async with opened("plugs_its_ears") as (channel, inbox):
        await inbox.wait_frames(1)
        with contextlib.suppress(GatewayFailure):
            await channel.send(frame(request(1)))
        failure = await inbox.wait_lost()
        assert failure.kind is Kind.CONNECTION_LOST
        assert "stdin" in failure.message
        with pytest.raises(GatewayFailure) as caught:
            await channel.send(frame(request(2)))
        assert caught.value.verdict is Verdict.DID_NOT_RUN


@on_both_loops
async def test_a_death_ends_a_send_that_waits_for_room() -> None:
    async with opened("deaf") as (channel, inbox):
        await inbox.wait_frames(1)
        sending = asyncio.create_task(channel.send(frame(request(1, "x" * MIB))))
        await asyncio.sleep(0)
        assert channel.pid is not None
        os.kill(channel.pid, signal.SIGKILL)
        with pytest.raises(GatewayFailure) as caught:
            await asyncio.wait_for(sending, 5)
        assert caught.value.verdict is Verdict.DID_NOT_RUN
        assert (await inbox.wait_lost()).details == {"signal": "SIGKILL"}


@on_both_loops
async def test_nothing_can_be_sent_after_the_end() -> None:
    async with opened("answer_and_end", "", "0") as (channel, inbox):
        await inbox.wait_lost()
        with pytest.raises(GatewayFailure) as caught:
            await channel.send(frame(request(1)))
        assert caught.value.kind is Kind.CONNECTION_LOST
        assert caught.value.verdict is Verdict.DID_NOT_RUN


# When it does not read.


@on_both_loops
async def test_a_server_that_never_reads_costs_one_frame_of_memory_and_every_send_can_be_cancelled() -> None:
    text = request(1, "x" * MIB)
    async with opened("deaf") as (channel, inbox):
        await inbox.wait_frames(1)
        before = resident_bytes()
        for _ in range(100):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(channel.send(frame(text)), 0.005)
        assert 0 < channel.held_bytes < len(text)
        assert resident_bytes() - before < 8 * MIB


@on_both_loops
async def test_a_server_that_reads_at_last_finds_whole_frames_only() -> None:
    async with opened("deaf") as (channel, inbox):
        await inbox.wait_frames(1)
        begun = asyncio.create_task(channel.send(frame(request(1, "x" * MIB))))
        waiting = asyncio.create_task(channel.send(frame(request(2))))
        last = asyncio.create_task(channel.send(frame(request(3))))
        await asyncio.sleep(0)
        begun.cancel()
        waiting.cancel()
        assert channel.pid is not None
        os.kill(channel.pid, signal.SIGUSR1)
        await last
        assert (await inbox.wait_frames(4))[2:] == [request(1, "x" * MIB), request(3)]


# How it is opened.


def channel_to(command: str, inbox: Inbox, child_reaper: object, cwd: str | None = None) -> StdioChannel:
    return StdioChannel("crooked", command, [], {}, cwd, inbox.events.append, child_reaper)  # type: ignore[arg-type]


async def test_a_program_that_does_not_exist_is_a_failure_no_retry_can_mend() -> None:
    async with guarded() as child_reaper:
        inbox = Inbox()
        with pytest.raises(GatewayFailure) as caught:
            await channel_to("no-such-program-at-all", inbox, child_reaper).open(inbox)
        failure = caught.value
        assert failure.kind is Kind.CONNECTION_FAILED
        assert failure.details == {"permanent": True}
        assert failure.message == (
            "crooked could not be started: the program 'no-such-program-at-all' was not found on PATH; "
            "install it or give the full path"
        )


async def test_a_missing_working_directory_is_a_failure_no_retry_can_mend(tmp_path: Path) -> None:
    async with guarded() as child_reaper:
        inbox = Inbox()
        channel = channel_to("/bin/cat", inbox, child_reaper, str(tmp_path / "nowhere"))
        with pytest.raises(GatewayFailure) as caught:
            await channel.open(inbox)
        assert caught.value.kind is Kind.CONNECTION_FAILED
        assert caught.value.details == {"permanent": True}
        await channel.close()


async def test_a_channel_is_used_once() -> None:
    async with opened("echo") as (channel, inbox):
        with pytest.raises(RuntimeError):
            await channel.open(inbox)
        await channel.close()
        with pytest.raises(RuntimeError):
            await channel.open(inbox)


async def test_a_channel_that_was_never_opened_can_be_closed_and_not_sent_to() -> None:
    async with guarded() as child_reaper:
        channel = channel_to("/bin/cat", Inbox(), child_reaper)
        with pytest.raises(GatewayFailure):
            await channel.send(frame(request(1)))
        await channel.close()


async def test_a_server_sees_nothing_of_our_environment_but_the_safe_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_SECRET", "canary")
    async with opened("environment") as (_, inbox):
        said = msgspec.json.decode((await inbox.wait_frames(1))[0])
        names = set(said["params"]["names"].split(","))
        assert "PATH" in names
        assert "CANARY_SECRET" not in names


# How it is closed.


@on_both_loops
async def test_closing_a_polite_server_only_ends_its_input(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    async with opened("polite", str(journal), shutdown_steps=PATIENT) as (channel, inbox):
        await inbox.wait_frames(1)
        await channel.close()
        assert journal.read_text() == "end of input"


@on_both_loops
async def test_closing_a_stubborn_server_and_its_children_takes_every_shutdown_step_and_leaves_nobody() -> None:
    async with opened("parent", shutdown_steps=ShutdownSteps(eof_s=0, term_s=0.1, kill_s=5)) as (channel, inbox):
        assert channel.pid is not None
        with Witness([channel.pid, await inbox.child_pid()]) as witness:
            channel_pid = channel.pid
            os.kill(channel_pid, signal.SIGSTOP)
            await asyncio.wait_for(channel.close(), 5)
            assert witness.living_after(1) == set()


@on_both_loops
async def test_after_close_nothing_is_delivered_and_no_loss_is_told() -> None:
    async with opened("blocked_on_stdout", shutdown_steps=PATIENT) as (channel, inbox):
        await inbox.wait_frames(1)
        closing = asyncio.create_task(channel.close())
        await asyncio.sleep(0)
        count = len(inbox.frames)
        await asyncio.wait_for(closing, 4)  # it could finish writing, so that it saw the end of its input
        assert len(inbox.frames) == count
        assert inbox.failures == []


@on_both_loops
async def test_all_who_close_it_wait_for_the_same_end() -> None:
    async with opened("stubborn") as (channel, inbox):
        await inbox.wait_frames(1)
        await asyncio.gather(*(channel.close() for _ in range(5)))
        assert channel.pid is None
        await channel.close()


@on_both_loops
async def test_a_cancelled_close_still_finishes_the_kill() -> None:
    async with opened("stubborn") as (channel, inbox):
        await inbox.wait_frames(1)
        assert channel.pid is not None
        with Witness([channel.pid]) as witness:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(channel.close(), 0.01)
            assert await asyncio.to_thread(witness.living_after, 5) == set()


@on_both_loops
async def test_a_lost_channel_is_closed_at_once() -> None:
    async with opened("bomb", shutdown_steps=PATIENT, max_frame_bytes=MIB) as (channel, inbox):
        await inbox.wait_lost()
        await asyncio.wait_for(channel.close(), 1)
        assert len(inbox.failures) == 1


@pytest.mark.parametrize("manner", ["echo", "deaf"])
@pytest.mark.parametrize("turns", [0, 1, 2, 5])
@on_both_loops
async def test_a_connection_cancelled_in_any_phase_leaves_nothing(manner: str, turns: int) -> None:
    async with guarded() as child_reaper:
        inbox = Inbox()
        channel = StdioChannel(
            "crooked",
            sys.executable,
            scripted(manner),
            {},
            None,
            inbox.events.append,
            child_reaper,
            shutdown_steps=QUICK,
        )

        async def live() -> None:
            try:
                await channel.open(inbox)
                await channel.send(frame(request(1, "x" * MIB)))
            finally:
                await channel.close()

        living = asyncio.create_task(live())
        for _ in range(turns):
            await asyncio.sleep(0)
        living.cancel()
        await asyncio.wait([living])
        await channel.close()


@pytest.mark.parametrize("turns", [1, 3, 50])
def test_a_loop_that_is_shut_down_under_an_open_channel_being_closed_leaves_nothing(turns: int) -> None:
    async def leave() -> None:
        async with guarded() as child_reaper:
            inbox = Inbox()
            channel = StdioChannel(
                "crooked",
                sys.executable,
                scripted("stubborn"),
                {},
                None,
                inbox.events.append,
                child_reaper,
                shutdown_steps=PATIENT,
            )
            await channel.open(inbox)
            await inbox.wait_frames(1)
            closing = asyncio.create_task(channel.close())
            for _ in range(turns):
                await asyncio.sleep(0)
            closing.cancel()

    asyncio.run(leave())


@pytest.mark.requirement("S1/XC-003")
@on_both_loops
async def test_fifty_connections_leave_no_descriptor_task_or_zombie() -> None:
    async with guarded() as child_reaper:
        child_reaper.start()
        before = descriptors(), children(), asyncio.all_tasks()
        for _ in range(50):
            inbox = Inbox()
            channel = channel_to("/bin/cat", inbox, child_reaper)
            await channel.open(inbox)
            await channel.send(frame(request(1)))
            await inbox.wait_frames(1)
            await channel.close()
        assert (descriptors(), children(), asyncio.all_tasks()) == before


# What is pure.


def test_a_line_is_a_message_a_batch_or_noise() -> None:
    message = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert frames_of(message) == [message]
    assert frames_of(b"[" + message + b" ,\t" + message + b"]") == [message, message]
    too_many = b"[" + b",".join([message] * (BATCH_FRAMES + 1)) + b"]"
    nested = b"[" * 100_000 + message
    for noise in (
        b"[]",
        b"[1]",
        b"[{}]",
        b"[" + message + b",1]",
        b"[" + message,
        too_many,
        nested,
        b"",
        b"null",
        b"x",
    ):
        assert frames_of(noise) == []


@given(st.binary(max_size=200))
def test_no_line_makes_the_reader_fail(line: bytes) -> None:
    assert all(b'"jsonrpc"' in found for found in frames_of(line))
    frames_of(b"[" + line + b"]")
    frames_of(b'{"jsonrpc"' + line + b"}")


@given(
    st.one_of(st.binary(max_size=500), st.text(max_size=500).map(lambda text: text.encode("utf-8", "surrogatepass")))
)
def test_foreign_text_is_shown_on_one_bounded_line_without_anything_that_acts(raw: bytes) -> None:
    text = printable(raw, SAMPLE_CHARS)
    assert len(text) <= SAMPLE_CHARS
    assert text.replace("\t", " ").isprintable() or not set(text) & set("\x1b\x07\r\n\x9b\u202e\u200b\u2028\x00")
    assert text.splitlines() in ([], [text])


async def test_a_receiver_that_fails_over_one_message_gets_the_next_one_of_the_same_read() -> None:
    async with opened("echo") as (channel, inbox):
        await inbox.wait_frames(1)
        receive = inbox.receive

        def receive_or_break(frame: bytes, for_request: int | None = None) -> bool:
            return bool(1 // 0) if b"boom" in frame else receive(frame, for_request)

        inbox.receive = receive_or_break  # type: ignore[method-assign]
        await channel.send(frame(request(1, "boom")))
        await channel.send(frame(request(2)))
        assert (await inbox.wait_frames(2))[1:] == [request(2)]
        assert any(isinstance(event, InternalFailure) for event in inbox.events)
