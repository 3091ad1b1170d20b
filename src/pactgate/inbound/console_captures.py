"""The captures of the gateway for the console: which there are, one of them, the messages of calls, and what the checker says.

Checking and comparing take a processor for a while, so they are the commands `pactgate compliance` and `pactgate replay` in a process of
their own, with its answer as it prints it. Everything is bounded in time and bytes. Must not: open a file whose name is not one that the
recorder gives.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pactgate.capture.capture_files import PART, begun_at, captures_in
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.inbound.call_filter import CallFilter
from pactgate.protocol.messages import encode_json

if TYPE_CHECKING:
    from pactgate.capture.call_excerpt import CallSpan

MAX_LISTED: Final = 200
MAX_CALLS: Final = 200
MAX_SHOWN_BYTES: Final = 32 * 1024 * 1024
"""Of a capture that is given out or of what a command prints."""
_READ_BYTES: Final = 65_536

Rows = list[dict[str, Any]]


class ConsoleCaptures:
    """`folder` is where captures are; None where nothing is recorded. `latest` gives the rows of the last calls, the newest first."""

    def __init__(self, folder: str | None, latest: Callable[[int, CallFilter], Rows]) -> None:
        self._folder = None if folder is None else Path(folder)
        self._latest = latest

    async def listing(self) -> bytes:
        """The captures, the newest first."""
        rows = await asyncio.to_thread(self._rows)
        return encode_json({"isRecording": self._folder is not None, "captures": rows})

    async def read(self, name: str) -> bytes:
        """One capture as it is. Raises GatewayFailure."""
        path = self._path(name)
        if path.stat().st_size > MAX_SHOWN_BYTES:
            raise _refused(f"{name} is too large to be shown; it is in the folder capture.dir.")
        return await asyncio.to_thread(path.read_bytes)

    async def of_calls(self, keeps: CallFilter) -> bytes:
        """The messages of the last calls that the filter keeps, as a capture. Raises GatewayFailure."""
        from pactgate.capture.call_excerpt import excerpt  # for the few who ask

        folder = self._require_folder()
        calls = [_span(row) for row in self._latest(MAX_CALLS, keeps)]
        found = await asyncio.to_thread(excerpt, folder, calls)
        if not found:
            raise _refused("No message of these calls was recorded.")
        return encode_json(found)

    async def check(self, name: str) -> bytes:
        """What `pactgate compliance invariants` says of a capture. Raises GatewayFailure."""
        return await _printed("compliance", "invariants", "--format", "json", "--capture", str(self._path(name)))

    async def compare(self, name: str, other: str) -> bytes:
        """What `pactgate replay` says of one capture against another that is played as a server. Raises GatewayFailure."""
        program = (sys.executable, "-m", "pactgate", "replay", str(self._path(other)))
        return await _printed("replay", str(self._path(name)), "--against", "--json", "--", *program)

    def _rows(self) -> Rows:
        paths = [] if self._folder is None or not self._folder.is_dir() else captures_in(self._folder)
        rows = []
        for path in reversed(paths[-MAX_LISTED:]):
            with suppress(FileNotFoundError):  # it has made room, or its session has ended, in this moment
                rows.append(_row(path))
        return rows

    def _require_folder(self) -> Path:
        if self._folder is None or not self._folder.is_dir():
            raise _refused("Nothing is recorded. Set capture.dir in the configuration, and start the gateway again.")
        return self._folder

    def _path(self, name: str) -> Path:
        found = next((path for path in captures_in(self._require_folder()) if path.name == name), None)
        if found is None:
            raise _refused("There is no such capture; it may have made room for newer ones.")
        return found


def _row(path: Path) -> dict[str, Any]:
    _, _, leg, label = path.name.removesuffix(PART).removesuffix(".json").split("-", 3)
    begun, facts = begun_at(path), path.stat()
    return {
        "name": path.name,
        "leg": leg,
        "label": label,
        "startedAt": None if begun is None else datetime.fromtimestamp(begun, UTC).isoformat(),
        "changedAt": datetime.fromtimestamp(facts.st_mtime, UTC).isoformat(timespec="seconds"),
        "sizeBytes": facts.st_size,
        "isOpen": path.name.endswith(PART),
    }


def _span(row: Mapping[str, Any]) -> CallSpan:
    from pactgate.capture.call_excerpt import CallSpan

    began_at = datetime.fromisoformat(str(row["time"])).timestamp()
    server, tool = str(row["server"] or ""), str(row["tool"] or "")
    return CallSpan(
        request_id=str(row["requestId"]),
        server=server,
        tool=tool.removeprefix(f"{server}."),
        began_at=began_at,
        ended_at=began_at + row["durationMs"] / 1000,
    )


async def _printed(*words: str) -> bytes:
    """What one of our commands prints as JSON; its exit code says nothing that is not in there. Raises GatewayFailure."""
    quiet, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pactgate", *words, stdin=quiet, stdout=pipe, stderr=pipe
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        data, said = await asyncio.gather(_bounded(process.stdout), _bounded(process.stderr))
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
    if not data.startswith((b"{", b"[")):
        raise _refused(said.decode("utf-8", "replace").strip()[:1000] or "The command said nothing.")
    return data


async def _bounded(stream: asyncio.StreamReader) -> bytes:
    data = bytearray()
    while piece := await stream.read(_READ_BYTES):
        if len(data) + len(piece) > MAX_SHOWN_BYTES:
            raise _refused("The answer is too long to be shown here; use the command in a terminal.")
        data += piece
    return bytes(data)


def _refused(message: str) -> GatewayFailure:
    return GatewayFailure(Kind.INVALID_ARGUMENTS, message)
