"""A live server on the command line: a URL, or a command after `--`. Shared by `compliance --live` and `replay --against`.

The command inherits the environment of this process.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pactgate.capture.format import CaptureError, CaptureErrorKind
from pactgate.cli.errors import CommandError
from pactgate.cli.record import label_of, origin_of
from pactgate.conformance.live import record_live
from pactgate.conformance.probe import ProbeTarget
from pactgate.core.display import visible
from pactgate.core.failures import GatewayFailure
from pactgate.protocol.versions import Era


def target_of(words: Sequence[str], headers: Sequence[str]) -> ProbeTarget:
    """The server of the command line."""
    if not words:
        raise CommandError("Give a server: a URL, or a command after --.")
    if words[0].startswith(("http://", "https://")):
        if len(words) > 1:
            raise CommandError("Give one URL only.")
        return ProbeTarget(url=words[0], headers=dict(map(_header, headers)))
    if headers:
        raise CommandError("--header needs a URL.")
    return ProbeTarget(command=tuple(words), env=dict(os.environ))


def label(target: ProbeTarget) -> str:
    return label_of(list(target.command)) if target.url is None else origin_of(target.url)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise CommandError("A header is written 'Name: value'.")
    return name.strip(), value.strip()


class LiveSource:
    """A server whose capture is recorded on demand. `close` removes the capture unless it was asked for with `--output`."""

    def __init__(self, words: Sequence[str], headers: Sequence[str], output: str | None) -> None:
        self._target = target_of(words, headers)
        self._output = output
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __str__(self) -> str:
        return label(self._target)

    def record(self, era: str) -> str:
        """Record a scripted session and return the path of the capture. Raises CaptureError."""
        self._folder = tempfile.TemporaryDirectory(prefix="pactgate-")
        path = Path(self._output) if self._output is not None else Path(self._folder.name) / "live.json"
        wanted = None if era == "auto" else Era(era)
        try:
            asyncio.run(record_live(self._target, path, label=str(self), era=wanted))
        except GatewayFailure as failure:
            raise CaptureError(CaptureErrorKind.UNREADABLE, f"{self} can't be used: {failure.message}") from None
        except OSError as problem:
            raise CaptureError(CaptureErrorKind.UNREADABLE, str(problem)) from None
        if self._output is not None:
            print(f"The capture is in {visible(self._output)}.", file=sys.stderr)
        return str(path)

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
