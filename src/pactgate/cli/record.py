"""`pactgate record`: relay messages between a client and a server unchanged, and write a capture.

`record -- CMD` returns the exit code of the command, because a client may look at it. All messages of this command go to standard error.
Must not: write to standard output, which belongs to the protocol.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click

from pactgate.capture.capture_files import SingleCaptureFile
from pactgate.capture.http_relay import BadUrlError, HttpRelay
from pactgate.capture.recorder import Recorder
from pactgate.capture.redaction import Redaction, secrets_of
from pactgate.capture.relay import relay
from pactgate.cli.errors import CommandError
from pactgate.cli.interruption import until_interrupted
from pactgate.core.display import visible
from pactgate.core.events import CaptureEnded, CaptureFailed, Event, InternalFailure

MAX_CAPTURE_BYTES: Final = 1024 * 1024 * 1024
_DEFAULT: Final = "session.json"
_SCRIPTS: Final = ".bin/"
"""The folder of npm's links to programs: the package is not part of the path."""
_RUNNERS: Final = frozenset({"npx", "uvx", "uv", "node", "python", "python3", "bunx", "deno", "env", "sh", "bash"})
_NOT_FOUND: Final = 127
_CANNOT_RUN: Final = 126


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\
\b
Examples:
  pactgate record -o session.json -- npx -y my-server
  pactgate record --url http://127.0.0.1:8000/mcp --port 9000
""",
)
@click.argument("command", metavar="[-- COMMAND...]", nargs=-1)
@click.option("--output", "-o", metavar="FILE", help="The capture. Default: session.json, or the next free name.")
@click.option("--url", metavar="URL", help="Record an HTTP server instead of a command.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="With --url: listen on this port of 127.0.0.1. Default: a free port.",
)
@click.option("--label", metavar="TEXT", help="Name of the server in the capture.")
def record(*, command: tuple[str, ...], output: str | None, url: str | None, port: int, label: str | None) -> int:
    """Record a session between a client and a server. Nothing on the wire is changed.

    COMMAND is the server to start, with its arguments. The exit code is that of the command.
    """
    if (url is None) == (not command):
        raise CommandError("Give exactly one of: a command after --, --url.")
    if url is not None:
        return _record_url(url, port, output, label)
    return _record_command(list(command), output, label)


def _record_command(command: list[str], output: str | None, label: str | None) -> int:
    """Relay standard input and output to a command."""
    recorder = _recorder(_choose(output))
    try:
        return relay(command, recorder.connection(label or label_of(command), "session", "stdio"))
    except OSError as problem:
        code = _NOT_FOUND if isinstance(problem, FileNotFoundError) else _CANNOT_RUN
        message = f"{command[0]} can't be started: {problem.strerror}."
        raise CommandError(message, "Give the full path of the program.", exit_code=code) from None
    finally:
        recorder.close()


def _record_url(url: str, port: int, output: str | None, label: str | None) -> int:
    """Relay HTTP requests to a server until interrupted."""
    recorder = _recorder(_choose(output))
    tap = recorder.address(label or origin_of(url), "session", is_shared=False)
    try:
        http_relay = HttpRelay(url, tap)
    except BadUrlError as problem:
        raise CommandError(f"{url} can't be recorded: {problem}.") from None
    try:
        return asyncio.run(_serve(http_relay, port))
    finally:
        recorder.close()


async def _serve(http_relay: HttpRelay, port: int) -> int:
    try:
        bound = await http_relay.open(port)
    except OSError as problem:
        message = f"Can't listen on 127.0.0.1:{port}: {problem.strerror}."
        raise CommandError(message, "Choose another --port.") from None
    origin = http_relay.origin
    _say(f"recording {origin.host}:{origin.port}; point the client at http://127.0.0.1:{bound}{origin.path}")
    try:
        await until_interrupted()
    finally:
        await http_relay.close()
    return 0


def label_of(command: list[str]) -> str:
    """A name for the server: its program, or the package that a runner starts. Options are left out; they may hold secrets."""
    words = [word for word in command if not word.startswith("-") and "=" not in word]
    server = next((word for word in words if Path(word).name not in _RUNNERS), command[0])
    _, is_package, inside = server.rpartition("node_modules/")
    if is_package and not inside.startswith(_SCRIPTS):
        return "stdio://" + "/".join(inside.split("/")[: 2 if inside.startswith("@") else 1])
    return "stdio://" + (server if server.startswith("@") else Path(server).name)


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")


def _choose(output: str | None) -> Path:
    """The file to write. A default name never overwrites a file."""
    if output is not None:
        return Path(output)
    path, number = Path(_DEFAULT), 2
    while path.exists():
        path, number = Path(f"session-{number}.json"), number + 1
    return path


def _recorder(path: Path) -> Recorder:
    def tell(event: Event) -> None:
        if isinstance(event, CaptureEnded):
            missing = f"; {event.missing} messages are missing" if event.missing else ""
            _say(f"{event.exchanges} requests and notifications recorded in {path}{missing}")
        elif isinstance(event, CaptureFailed):
            _say(f"the capture can't be written: {event.reason}")
        elif isinstance(event, InternalFailure):
            _say(f"internal error, the rest is not recorded: {event.error}")

    redaction = Redaction(secrets_of(os.environ))
    return Recorder(SingleCaptureFile(path), redaction, max_file_bytes=MAX_CAPTURE_BYTES, emit=tell)


def _say(text: str) -> None:
    print(f"pactgate record: {visible(text)}", file=sys.stderr, flush=True)
