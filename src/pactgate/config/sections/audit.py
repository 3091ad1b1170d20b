"""The section `audit`: whether every tool call leaves a record in a file, and what happens when it can't.

Nothing is written unless a file is named. Must not: look whether the file can be written; that is found out at the start.
"""

from __future__ import annotations

import os.path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from pactgate.config import value_checks

AuditFile = Annotated[
    str, Meta(min_length=1, max_length=500, extra={"expand": True, "check": value_checks.check_program})
]


class AuditSection(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One record of every tool call, chained by hashes, written before the answer goes out."""

    file: Annotated[
        AuditFile | None,
        Meta(
            description="File the records go to, one JSON line each; a relative one starts at the folder of the configuration file. "
            "Left out: no audit log."
        ),
    ] = None
    arguments: Annotated[
        Literal["shape", "values", "none"],
        Meta(
            description="What is kept of the arguments: `shape` has names, types and lengths, `values` the values themselves, cut where "
            "they are long, `none` nothing. Secrets of the configuration are masked in any case."
        ),
    ] = "shape"
    max_bytes: Annotated[
        int, Meta(ge=4096, le=10737418240, description="Bytes after which a file is set aside and a new one begun.")
    ] = 67108864
    max_files: Annotated[
        int, Meta(ge=1, le=100000, description="Files set aside that are kept; the oldest beyond that are deleted.")
    ] = 100
    fsync: Annotated[
        bool,
        Meta(
            description="Whether an answer also waits until its record is on the disk. `false` survives the end of the process, however it "
            "comes; `true` survives the end of the machine as well, and costs a disk write per group of calls."
        ),
    ] = False
    on_failure: Annotated[
        Literal["refuse", "continue"],
        Meta(
            description="When the file can't be written, as on a full disk: `refuse` answers no tool call until it can be, `continue` goes "
            "on and counts what was not recorded."
        ),
    ] = "refuse"


def settle_audit(audit: dict[str, Any], folder: str) -> None:
    """Make the path absolute, so that nothing later depends on where the gateway was started."""
    if file := audit.get("file"):
        audit["file"] = os.path.normpath(os.path.join(os.path.abspath(folder or "."), file))
