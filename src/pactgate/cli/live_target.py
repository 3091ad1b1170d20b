"""A live server on the command line: a URL, or a command after `--`. Shared by `compliance --live` and `replay --against`.

The command inherits the environment of this process.
"""

from __future__ import annotations

import asyncio
import os
import sys
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


def record_session(target: ProbeTarget, output: str | None, folder: str, era: str) -> str:
    """Record a scripted session in `output`, else in the folder, and return the path of the capture. Raises CaptureError."""
    path = Path(output) if output is not None else Path(folder) / "live.json"
    wanted = None if era == "auto" else Era(era)
    try:
        asyncio.run(record_live(target, path, label=label(target), era=wanted))
    except GatewayFailure as failure:
        raise CaptureError(CaptureErrorKind.UNREADABLE, f"{label(target)} can't be used: {failure.message}") from None
    except OSError as problem:
        raise CaptureError(CaptureErrorKind.UNREADABLE, str(problem)) from None
    if output is not None:
        print(f"The capture is in {visible(output)}.", file=sys.stderr)
    return str(path)
