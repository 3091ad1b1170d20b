"""The section `capture`: whether sessions are recorded, where, and how much of them is kept.

Must not: know how a capture is written. Recording is off unless a folder is named.
"""

from __future__ import annotations

import os.path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from pactgate.config import value_checks

Legs = Literal["both", "callers", "servers"]


class Capture(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Recordings of what passes, for `pactgate compliance` and `pactgate replay`. Credentials are not written."""

    dir: Annotated[
        Annotated[str, Meta(min_length=1, max_length=500, extra={"expand": True, "check": value_checks.check_program})]
        | None,
        Meta(
            description="Folder for the captures, made if need be; a relative one starts at the folder of the configuration file. "
            "Left out: nothing is recorded."
        ),
    ] = None
    legs: Annotated[
        Legs,
        Meta(description="What is recorded: what `callers` and the gateway say, the gateway and `servers`, or both."),
    ] = "both"
    max_file_bytes: Annotated[
        int,
        Meta(
            ge=65536,
            le=1073741824,
            description="Bytes of one capture. A session is recorded up to here; the file says how much is missing.",
        ),
    ] = 33554432
    max_files: Annotated[
        int, Meta(ge=1, le=100000, description="Captures kept in the folder; the oldest go first.")
    ] = 200


def settle_capture(settings: dict[str, Any], folder: str) -> None:
    """Make the folder absolute, so that nothing later depends on where the gateway was started."""
    capture = settings.get("capture")
    if isinstance(capture, dict) and isinstance(capture.get("dir"), str):
        capture["dir"] = os.path.normpath(os.path.join(os.path.abspath(folder or "."), capture["dir"]))
