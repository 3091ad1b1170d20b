"""What one check sent and received on both sides of the gateway, and a whole run as a file. Must not: judge.

`data` is the text as it was on the wire: nothing is parsed and written again. Bytes that are not UTF-8 are half surrogates in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

FORMAT: Final = 1
MAX_FILE_BYTES: Final = 512 * 1024 * 1024


class ScriptedSide(StrEnum):
    CLIENT = "client"
    SERVER = "server"


class ClientRoute(Struct, frozen=True):
    """One way through the gateway: the era of the client, and the server that it reaches."""

    era: str
    server: str

    def __str__(self) -> str:
        return f"{self.era} client to {self.server}"


class Frame(Struct, frozen=True):
    """One message at one of our ends. `label` says what it is about: the tool, prompt or URI, else the method."""

    at: float
    side: ScriptedSide
    who: str
    """The name of the scripted client, or the tag of the scripted server."""
    is_sent: bool
    data: str
    label: str = ""
    exchange: str = ""
    """Equal for a request and everything that came in answer to it, on this side."""
    route: ClientRoute | None = None
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()

    def header(self, name: str) -> str:
        """The first header of this name, which is written small, or nothing."""
        return next((value for key, value in self.headers if key.lower() == name), "")


class ScriptedExchange(Struct, frozen=True):
    """One request of a scripted client, and what came back: the last message is the response."""

    index: int
    """The position of the response (of the request, without one) in the recording."""
    request: Frame
    received: tuple[Frame, ...]

    @property
    def route(self) -> ClientRoute:
        assert self.request.route is not None
        return self.request.route

    @property
    def response(self) -> Frame | None:
        return self.received[-1] if self.received else None


class CheckRecording(Struct, frozen=True):
    """Everything that one check can judge. A check that was not played says why."""

    code: str
    frames: tuple[Frame, ...] = ()
    not_applicable: str = ""
    error: str = ""

    def exchanges(self, label: str | None = None) -> Iterator[ScriptedExchange]:
        """What the clients asked, in order; with a label, only what was asked about this."""
        answers: dict[tuple[str, str], list[tuple[int, Frame]]] = {}
        for index, frame in enumerate(self.frames):
            if frame.side is ScriptedSide.CLIENT and not frame.is_sent:
                answers.setdefault((frame.who, frame.exchange), []).append((index, frame))
        for index, frame in enumerate(self.frames):
            if frame.side is ScriptedSide.CLIENT and frame.is_sent and label in (None, frame.label):
                found = answers.get((frame.who, frame.exchange), [])
                last = found[-1][0] if found else index
                yield ScriptedExchange(index=last, request=frame, received=tuple(answer for _, answer in found))

    def at_server(self, server: str, label: str, *, is_sent: bool) -> list[tuple[int, Frame]]:
        """What a scripted server received or sent about one thing, with the positions."""
        return [
            (index, frame)
            for index, frame in enumerate(self.frames)
            if frame.side is ScriptedSide.SERVER
            and frame.who == server
            and frame.label == label
            and frame.is_sent is is_sent
        ]


class RunRecording(Struct, frozen=True):
    """One run of the profile against one gateway."""

    profile: str
    gateway: str
    checks: tuple[CheckRecording, ...]
    format: int = FORMAT
    routes: tuple[ClientRoute, ...] = field(default=())


class UnreadableRecordingError(Exception):
    """A file that is no recording of the profile."""


def load(path: Path) -> RunRecording:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UnreadableRecordingError(f"{path} is larger than {MAX_FILE_BYTES} bytes.")
        return msgspec.convert(json.loads(path.read_text(encoding="ascii")), RunRecording)
    except (OSError, ValueError, msgspec.ValidationError) as problem:
        raise UnreadableRecordingError(f"{path} can't be read as a recording of the profile: {problem}") from problem


def save(run: RunRecording, path: Path) -> None:
    path.write_text(json.dumps(msgspec.to_builtins(run)), encoding="ascii")
