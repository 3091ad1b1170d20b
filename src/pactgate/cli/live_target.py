"""Live servers named on a command line: a URL, or a command behind `--`. Shared by `compliance --live` and `replay --against`.

The command inherits this process's environment, as it would if it were typed here. Must not: judge or compare.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from pactgate.capture.format import CaptureError, CaptureProblem
from pactgate.cli.record import label_of, origin_of
from pactgate.conformance.live import record_live
from pactgate.conformance.probe import Target
from pactgate.core.display import visible
from pactgate.core.failures import GatewayFailure
from pactgate.protocol.versions import Era


class BadTargetError(ValueError):
    """What was typed names no server."""


def target_of(words: list[str], headers: list[str]) -> Target:
    """The server that was named."""
    if not words:
        raise BadTargetError("Name a server: a URL, or a command behind --.")
    if words[0].startswith(("http://", "https://")):
        if len(words) > 1:
            raise BadTargetError("One URL is one server.")
        return Target(url=words[0], headers=dict(map(_header, headers)))
    if headers:
        raise BadTargetError("--header is for a URL.")
    return Target(command=tuple(words), env=dict(os.environ))


def label(target: Target) -> str:
    return label_of(list(target.command)) if target.url is None else origin_of(target.url)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise BadTargetError("A header is written 'Name: value'.")
    return name.strip(), value.strip()


class LiveSource:
    """A server that is asked when its capture is wanted; `leave` removes what nobody asked to keep."""

    def __init__(self, words: list[str], headers: list[str], output: str | None) -> None:
        self._target = target_of(words, headers)
        self._output = output
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __str__(self) -> str:
        return label(self._target)

    def ask(self, era: str) -> str:
        """The capture of a scripted session. Raises CaptureError when there is none."""
        self._folder = tempfile.TemporaryDirectory(prefix="pactgate-")
        path = Path(self._output) if self._output is not None else Path(self._folder.name) / "live.json"
        wanted = None if era == "auto" else Era(era)
        try:
            asyncio.run(record_live(self._target, path, label=str(self), era=wanted))
        except GatewayFailure as failure:
            raise CaptureError(CaptureProblem.UNREADABLE, f"{self} can't be asked: {failure.message}") from None
        except OSError as problem:
            raise CaptureError(CaptureProblem.UNREADABLE, str(problem)) from None
        if self._output is not None:
            print(f"The capture is in {visible(self._output)}.", file=sys.stderr)
        return str(path)

    def leave(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
