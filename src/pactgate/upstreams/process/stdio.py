"""The channel over a child process: one JSON-RPC message a line on stdin and stdout, stderr drained into a small ring.

Both directions are bounded: `send` waits for a child that does not read, and holds one frame at most; a child that writes too long a
line, or only noise, is killed and its channel is lost. Nothing a child writes raises in the reader. Must not: parse messages (the session
does; the channel only tells a message from noise), or leave a process behind. Enforces S1/XC-003 for stdio servers.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from pactgate.config.sections.effects import Effects
from pactgate.core.display import cut, visible
from pactgate.core.events import Emit, UpstreamNoise
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.recording import ConnectionRecorder
from pactgate.protocol.framing import LineDecoder, OversizedError
from pactgate.protocol.messages import one_line
from pactgate.protocol.versions import Era
from pactgate.upstreams.channel import Outgoing, OutputLog, Receiver
from pactgate.upstreams.process.child import (
    ChildProcess,
    Launch,
    ShutdownSteps,
    SpawnError,
    child_environment,
    describe_exit,
    explain_spawn_error,
    signal_name,
)
from pactgate.upstreams.process.child_reaper import ChildReaper
from pactgate.upstreams.process.fork_gate import CountedBound, ForkGate
from pactgate.upstreams.process.pipes import READ_BYTES, PipeReader, PipeWriter
from pactgate.upstreams.process.resource_watch import (
    MAX_THREADS,
    ResourceWatch,
    living_processes,
    thread_count,
    too_many_processes,
    too_many_threads,
)

UNASKED_IN_A_TURN: Final = 16
BITE_BYTES: Final = 4096
REST_PER_FRAME_S: Final = 0.00005
"""At most 20,000 messages nobody asked for in a second: enough for any honest server, a tenth of a core for a flood."""
MAX_FRAME_BYTES: Final = 8 * 1024 * 1024
STDERR_RING_BYTES: Final = 64 * 1024
MAX_OUTPUT_LINE_BYTES: Final = 8192
"""A longer line of stderr is handed on in parts."""
SAMPLE_CHARS: Final = 200
NOISE_EVENTS: Final = 5
NOISE_IN_A_ROW: Final = 1000
BATCH_BYTES: Final = 1024 * 1024
BATCH_FRAMES: Final = 1000
CLOSED_PIPE_GRACE_S: Final = 0.5


_batch: Final = msgspec.json.Decoder(list[Raw])


def printable(raw: bytes | bytearray, max_chars: int) -> str:
    """Foreign bytes as one line of text that can't move a cursor, hide or reorder anything."""
    text = visible(raw[: 4 * max_chars].decode("utf-8", "backslashreplace"))
    return cut(text.replace("\n", "\\n"), max_chars)


def frames_of(line: bytes) -> list[bytes]:
    """The messages on one line: one object, or the elements of a batch (2025-03-26); none if it is something else."""
    if not line.startswith(b"["):
        return [line] if _may_be_message(line) else []
    if len(line) > BATCH_BYTES:
        return []
    try:
        frames = [bytes(element) for element in _batch.decode(line)]
    except (msgspec.DecodeError, RecursionError):
        return []
    return frames if len(frames) <= BATCH_FRAMES and all(map(_may_be_message, frames)) else []


def _may_be_message(frame: bytes) -> bool:
    """Only looks at an object, because the session parses it anyway: a log line in JSON has no "jsonrpc"."""
    return frame.startswith(b"{") and b'"jsonrpc"' in frame


class StdioChannel:
    """A `Channel` to one child process. Used once: open, send, close; a new connection is a new channel."""

    closing_cancels = False
    answers_in_send = False

    def __init__(
        self,
        server: str,
        command: str,
        args: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        emit: Emit,
        child_reaper: ChildReaper,
        *,
        effects: Effects | None = None,
        private_paths: Sequence[str] = (),
        max_frame_bytes: int = MAX_FRAME_BYTES,
        shutdown_steps: ShutdownSteps = ShutdownSteps(),  # noqa: B008 - a frozen value
        tap: ConnectionRecorder | None = None,
        output: OutputLog | None = None,
    ) -> None:
        self._server = server
        self._launch = Launch((command, *args), child_environment(command, env, os.environ), cwd)
        self._sandbox_level: str | None = None
        self._effects = effects
        self._private_paths = private_paths
        self._emit = emit
        self._child_reaper = child_reaper
        self._shutdown_steps = shutdown_steps
        self._tap = tap
        self._output = output
        self._unfinished = b""
        """The last line of stderr, while it is not whole."""
        self._decoder = LineDecoder(max_frame_bytes)
        self._is_used = False
        self._receiver: Receiver | None = None
        self._child: ChildProcess | None = None
        self._stdin: PipeWriter | None = None
        self._readers: tuple[PipeReader, ...] = ()
        self._last_call: asyncio.TimerHandle | None = None
        self._resource_watch: ResourceWatch | None = None
        self._fork_gate: ForkGate | None = None
        self._stderr = bytearray()
        self._is_settled = False
        self._is_output_new = False
        """Whether it wrote to stderr since the last message to it: older output is about something else."""
        self._noise_count = 0
        self._noise_in_a_row = 0

    @property
    def pid(self) -> int | None:
        """The process, while it runs."""
        return self._child.pid if self._child and self._child.returncode is None else None

    @property
    def sandbox_level(self) -> str | None:
        """How far its declared effects are enforced; None without a declaration, and before the child was started."""
        if self._sandbox_level is None or self._fork_gate is None or self._fork_gate.is_asked:
            return self._sandbox_level
        from pactgate.upstreams.process.sandbox import NUMBER_OF_PROCESSES, all_but

        return all_but(self._sandbox_level, NUMBER_OF_PROCESSES)

    @property
    def held_bytes(self) -> int:
        """The bytes that do not fit into the pipe yet, and those gathered for the next write."""
        return self._stdin.held_bytes if self._stdin else 0

    async def open(self, receiver: Receiver) -> None:
        if self._is_used:
            raise RuntimeError(f"the channel to {self._server} was used before; a connection needs a new one")
        self._is_used = True
        self._child_reaper.start()
        try:
            child = ChildProcess.spawn(self._confined(), self._on_exit, guard=self._child_reaper)
        except SpawnError as problem:
            self._release()
            raise GatewayFailure(
                Kind.CONNECTION_FAILED,
                f"{self._server} could not be started: {problem}",
                server=self._server,
                operation="connect",
                details={"permanent": problem.permanent},
            ) from problem
        stdin, stdout, stderr = child.pipes
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        self._receiver = receiver
        self._child = child
        self._stdin = PipeWriter(stdin, lambda: self._on_pipe_closed("stdin"))
        self._readers = (
            PipeReader(stdout, self._on_stdout, lambda: self._on_pipe_closed("stdout")),
            PipeReader(stderr, self._on_stderr, lambda: None),
        )
        self._watch_resources(child.pid)

    def _confined(self) -> Launch:
        """The program to start, or the launcher that puts it into its sandbox. Raises SpawnError."""
        if self._effects is None:
            return self._launch
        # Imported here: it needs ctypes, and most servers declare nothing.
        from pactgate.upstreams.process.sandbox import confine

        forks = -1
        if self._effects.enforce and self._effects.processes:
            bound = self._effects.processes
            processes = CountedBound(bound, lambda: len(self._processes()), too_many_processes(bound))
            threads = CountedBound(MAX_THREADS, lambda: thread_count(self._processes()), too_many_threads(MAX_THREADS))
            try:
                self._fork_gate = ForkGate(processes=processes, threads=threads, on_excess=self._on_excess)
            except OSError as problem:
                raise explain_spawn_error(problem, self._launch) from problem
            forks = self._fork_gate.launcher_fd
        confined = confine(self._launch, self._effects, private=self._private_paths, forks=forks)
        self._sandbox_level = confined.level
        return confined.launch

    def _watch_resources(self, pid: int) -> None:
        if self._fork_gate is not None:
            self._fork_gate.start()
        effects = self._effects
        if effects is None or not effects.enforce or not (effects.memory or effects.processes):
            return
        self._resource_watch = ResourceWatch(
            pid,
            memory=effects.memory_bytes,
            processes=effects.processes or 0,
            threads=MAX_THREADS,
            members=self._child_reaper.members,
            on_excess=self._on_excess,
        )

    def _processes(self) -> Sequence[int]:
        assert self._child is not None
        return living_processes(self._child.pid, self._child_reaper.members)

    def _on_excess(self, excess: str) -> None:
        self._lose(self._failure(Kind.CONNECTION_LOST, f"{excess} and was ended"))

    def settle(self, era: Era, version: str) -> None:
        """Lines carry nothing beside the message."""
        self._is_settled = True

    async def send(self, frame: Outgoing) -> None:
        if self._tap is not None:
            self._tap.passed(frame.data, from_client=True)
        self._is_output_new = False
        stdin, line = self._stdin, one_line(frame.data) + b"\n"
        if stdin is None or not (stdin.write_soon(line) or await stdin.write(line)):
            raise GatewayFailure(
                Kind.CONNECTION_LOST,
                f"{self._server} does not run or does not listen any more; the message was not sent",
                server=self._server,
                verdict=Verdict.DID_NOT_RUN,
            )

    async def close(self) -> None:
        self._is_used = True
        self._receiver = None
        if self._child is None or self._stdin is None:
            return
        self._stdin.close()
        # Its output is read on and thrown away: a child that is blocked on writing can't see that its input has ended.
        await self._child.end(self._shutdown_steps)
        self._release()

    def _on_stdout(self, data: bytes) -> None:
        if self._receiver is None:
            return
        try:
            lines = self._decoder.feed(data)
        except OversizedError as problem:
            self._lose(self._failure(Kind.INVALID_FRAME, f"wrote a line longer than {problem.limit_bytes} bytes"))
            return
        unasked = 0
        for line in lines:
            try:
                unasked += self._take(line)
            except Exception as fault:  # noqa: BLE001 - a fault stays with its line; the next one is somebody else's
                FaultBarrier(self._emit).report("message of a server", fault)
        if self._readers:
            self._slow_down(self._readers[0], unasked)

    def _slow_down(self, reader: PipeReader, unasked: int) -> None:
        """Read a server that floods the gateway with unrequested messages in small pieces, with a pause after each."""
        is_flood = unasked > UNASKED_IN_A_TURN
        reader.read_bytes = BITE_BYTES if is_flood else READ_BYTES
        if is_flood:
            reader.rest(unasked * REST_PER_FRAME_S)

    def _take(self, line: bytes) -> int:
        """Pass on the messages of one line. Returns how many of them are no responses."""
        if self._receiver is None:
            return 0
        if self._tap is not None:
            self._tap.passed(line, from_client=False)
        frames = frames_of(line)
        if not frames:
            self._count_noise(line)
            return 1
        self._noise_in_a_row = 0
        unasked = 0
        for frame in frames:
            if self._receiver is not None:
                unasked += not self._receiver.receive(frame)
        return unasked

    def _count_noise(self, line: bytes) -> None:
        self._noise_count += 1
        self._noise_in_a_row += 1
        if self._noise_count <= NOISE_EVENTS:
            what = "a line on stdout that is no JSON-RPC message"
            self._emit(UpstreamNoise(self._server, what, printable(line, SAMPLE_CHARS)))
        if self._noise_in_a_row > NOISE_IN_A_ROW:
            text = f"wrote more than {NOISE_IN_A_ROW} lines in a row that are no JSON-RPC messages"
            self._lose(self._failure(Kind.INVALID_FRAME, text))

    def _on_stderr(self, data: bytes) -> None:
        self._is_output_new = True
        self._stderr += data
        del self._stderr[:-STDERR_RING_BYTES]
        if self._output is not None:
            *lines, rest = (self._unfinished + data).split(b"\n")
            if len(rest) > MAX_OUTPUT_LINE_BYTES:
                lines, rest = [*lines, rest], b""
            self._unfinished = rest
            self._output.wrote(self._server, [line.rstrip(b"\r") for line in lines])

    def _on_pipe_closed(self, name: str) -> None:
        """Wait a little for the exit of the child, which mostly follows and says more."""
        if self._receiver is not None and self._last_call is None:
            loop = asyncio.get_running_loop()
            self._last_call = loop.call_later(CLOSED_PIPE_GRACE_S, self._on_deaf_or_mute, name)

    def _on_deaf_or_mute(self, name: str) -> None:
        self._lose(self._failure(Kind.CONNECTION_LOST, f"closed its {name} but kept running"))

    def _on_exit(self, returncode: int) -> None:
        for reader in self._readers:
            reader.drain()
        details = {"exitCode": returncode} if returncode >= 0 else {"signal": signal_name(-returncode)}
        self._lose(self._failure(Kind.CONNECTION_LOST, describe_exit(returncode), details))
        self._release()

    def _failure(self, kind: Kind, what: str, details: dict[str, Any] | None = None) -> GatewayFailure:
        is_about_this = self._is_output_new or not self._is_settled
        last = self._stderr.rstrip().rsplit(b"\n", 1)[-1] if is_about_this else b""
        said = f"; its last output on stderr: {printable(last, SAMPLE_CHARS)}" if last else ""
        public = f"{self._server} {what}"
        return GatewayFailure(kind, f"{public}{said}", server=self._server, details=details, public=public)

    def _lose(self, failure: GatewayFailure) -> None:
        """End the channel after a fault: kill the whole process group, and tell the receiver once."""
        receiver, self._receiver = self._receiver, None
        if receiver is None or self._child is None:
            return
        self._child.signal_group(signal.SIGKILL)
        self._release()
        receiver.lost(failure)

    def _release(self) -> None:
        if self._tap is not None:
            self._tap.closed()
        if self._last_call is not None:
            self._last_call.cancel()
            self._last_call = None
        if self._resource_watch is not None:
            self._resource_watch.stop()
        if self._fork_gate is not None:
            self._fork_gate.stop()
        if self._stdin is not None:
            self._stdin.close()
        for reader in self._readers:
            reader.close()
        if self._unfinished and self._output is not None:
            self._output.wrote(self._server, [self._unfinished])
            self._unfinished = b""
        if self._noise_count > NOISE_EVENTS:
            more = self._noise_count - NOISE_EVENTS
            self._emit(UpstreamNoise(self._server, f"{more} more lines on stdout that are no JSON-RPC messages", ""))
            self._noise_count = 0
