"""The section `capture`: whether sessions are recorded, where, and how much of them is kept.

Must not: know how a capture is written. Recording is off unless a folder is named.
"""

from __future__ import annotations

import os.path
from typing import Annotated, Any, Literal

from pactgate.config.sections import Folder, Section, doc

Legs = Literal["both", "callers", "servers"]


class Capture(Section, frozen=True, kw_only=True):
    """Recordings of the messages, for `pactgate compliance` and `pactgate replay`. Credentials are not written."""

    dir: Annotated[
        Folder | None,
        doc(
            "Folder for the captures, created if missing; a relative path starts at the folder of the configuration "
            "file. Default: nothing is recorded."
        ),
    ] = None
    legs: Annotated[
        Legs,
        doc("Which side is recorded: between `callers` (clients) and the gateway, the gateway and `servers`, or both."),
    ] = "both"
    max_file_bytes: Annotated[
        int,
        doc(
            "Bytes of one capture. A session is recorded up to here; the file says how much is missing.",
            ge=65536,
            le=1073741824,
        ),
    ] = 33554432
    max_files: Annotated[int, doc("Captures kept in the folder; the oldest are deleted first.", ge=1, le=100000)] = 200


def settle_capture(settings: dict[str, Any], folder: str) -> None:
    """Make the folder absolute, so that nothing later depends on where the gateway was started."""
    capture = settings.get("capture")
    if isinstance(capture, dict) and isinstance(capture.get("dir"), str):
        capture["dir"] = os.path.normpath(os.path.join(os.path.abspath(folder or "."), capture["dir"]))
