"""The section `capture`: whether sessions are recorded, where, and how much of them is kept.

Must not: know how a capture is written. Recording is off unless a folder is named.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pactgate.config.sections import Folder, Section, doc

Legs = Literal["both", "callers", "servers"]


class Capture(Section, frozen=True, kw_only=True):
    """Recordings of the messages, for `pactgate compliance` and `pactgate replay`. Credentials are not written."""

    dir: Annotated[Folder | None, doc("Folder for the captures, created if missing. Default: nothing is recorded.")] = (
        None
    )
    legs: Annotated[
        Legs,
        doc("Which side is recorded: between `callers` (clients) and the gateway, the gateway and `servers`, or both."),
    ] = "both"
    max_file_bytes: Annotated[
        int, doc("Bytes of one capture; the file says how much is missing.", ge=65536, le=1073741824)
    ] = 33554432
    max_files: Annotated[int, doc("Captures kept in the folder; the oldest are deleted first.", ge=1, le=100000)] = 200
