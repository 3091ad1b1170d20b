"""`pactgate record`: stand between a client and a server, change nothing, write a capture of what passed.

The exit code of `record -- CMD` is the command's own, because a client may look at it; 2 is a wrong invocation. Everything this command
says goes to standard error. Must not: touch standard output, which belongs to the protocol.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pactgate.capture.capture_files import OneFile
from pactgate.capture.file_jobs import Ending
from pactgate.capture.recorder import Recorder
from pactgate.capture.redaction import Redaction, secrets_of
from pactgate.cli import terminal
from pactgate.cli.interruption import until_interrupted
from pactgate.core.display import visible

MAX_CAPTURE_BYTES: Final = 1024 * 1024 * 1024
_DEFAULT: Final = "session.json"
_RUNNERS: Final = frozenset({"npx", "uvx", "uv", "node", "python", "python3", "bunx", "deno", "env", "sh", "bash"})
_NOT_FOUND: Final = 127
_CANNOT_RUN: Final = 126


def record_command(command: list[str], output: str | None, label: str | None) -> int:
    """Relay standard input and output to a command."""
    from pactgate.capture.relay import relay

    path = _choose(output)
    recorder = _recorder(path)
    tap = recorder.connection(label or label_of(command), "session", "stdio")
    try:
        code = relay(command, tap)
    except OSError as problem:
        terminal.problem(f"{command[0]} can't be started: {problem.strerror}.", "Give the full path of the program.")
        return _NOT_FOUND if isinstance(problem, FileNotFoundError) else _CANNOT_RUN
    finally:
        recorder.close()
    return code


def record_url(url: str, port: int, output: str | None, label: str | None) -> int:
    """Relay HTTP requests to a server until interrupted."""
    from pactgate.capture.http_relay import BadUrlError, HttpRelay

    path = _choose(output)
    recorder = _recorder(path)
    tap = recorder.address(label or origin_of(url), "session", is_shared=False)
    try:
        relay = HttpRelay(url, tap)
    except BadUrlError as problem:
        terminal.problem(f"{url} can't be recorded: {problem}.")
        return 2
    try:
        return asyncio.run(_serve(relay, port))
    finally:
        recorder.close()


async def _serve(relay: object, port: int) -> int:
    from pactgate.capture.http_relay import HttpRelay

    assert isinstance(relay, HttpRelay)
    try:
        bound = await relay.open(port)
    except OSError as problem:
        terminal.problem(f"127.0.0.1:{port} can't be listened on: {problem.strerror}.", "Choose another --port.")
        return 2
    _say(
        f"recording {relay.origin.host}:{relay.origin.port}; point the client at http://127.0.0.1:{bound}{relay.origin.path}"
    )
    try:
        await until_interrupted()
    finally:
        await relay.close()
    return 0


def label_of(command: list[str]) -> str:
    """A name for the server: its program, or what a runner runs. Options are left out, as they may hold secrets."""
    words = [word for word in command if not word.startswith("-") and "=" not in word]
    server = next((word for word in words if Path(word).name not in _RUNNERS), command[0])
    _, is_package, inside = server.rpartition("node_modules/")
    if is_package:
        return "stdio://" + "/".join(inside.split("/")[: 2 if inside.startswith("@") else 1])
    return "stdio://" + (server if server.startswith("@") else Path(server).name)


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")


def _choose(output: str | None) -> Path:
    """The file to write. One that nobody named is never overwritten."""
    if output is not None:
        return Path(output)
    path, number = Path(_DEFAULT), 2
    while path.exists():
        path, number = Path(f"session-{number}.json"), number + 1
    return path


def _recorder(path: Path) -> Recorder:
    def tell(ending: Ending) -> None:
        missing = f"; {ending.missing} messages are missing" if ending.missing else ""
        _say(f"{ending.exchange_count} exchanges recorded in {path}{missing}")

    return Recorder(
        OneFile(path),
        Redaction(secrets_of(os.environ)),
        max_file_bytes=MAX_CAPTURE_BYTES,
        on_end=tell,
        on_trouble=lambda why: _say(f"the capture can't be written: {why}"),
    )


def _say(text: str) -> None:
    print(f"pactgate record: {visible(text)}", file=sys.stderr, flush=True)
