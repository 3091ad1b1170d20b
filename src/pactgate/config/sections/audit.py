"""The section `audit`: whether every tool call leaves a record in a file, and what happens when it can't.

Nothing is written unless a file is named. Must not: check whether the file can be written; the gateway does that at its start.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pactgate.config.sections import Folder, Secret, Section, doc


class AuditSection(Section, frozen=True, kw_only=True):
    """One record of every tool call, chained by hashes, written before the response is sent."""

    file: Annotated[Folder | None, doc("File of the records, one JSON line each. Default: no audit log.")] = None
    key: Annotated[
        Secret | None,
        doc(
            "Secret for the hashes of the records, so that somebody who may write the file can't make a new chain. Set it before the "
            "first record; `pactgate audit verify` needs it too."
        ),
    ] = None
    arguments: Annotated[
        Literal["shape", "values", "none"],
        doc(
            "What is kept of the arguments: `shape` has names, types and lengths, `values` the values themselves, "
            "cut where they are long, `none` nothing. Secrets of the configuration are masked in any case."
        ),
    ] = "shape"
    max_bytes: Annotated[
        int, doc("Bytes after which a file is set aside and a new one begun.", ge=4096, le=10737418240)
    ] = 67108864
    max_files: Annotated[
        int, doc("Files set aside that are kept; the oldest beyond that are deleted.", ge=1, le=100000)
    ] = 100
    fsync: Annotated[
        bool,
        doc(
            "Whether a response also waits until its record is on the disk. With `false` records survive a crash of "
            "the process; with `true` a crash of the machine as well, for one disk write per group of calls."
        ),
    ] = False
    on_failure: Annotated[
        Literal["refuse", "continue"],
        doc(
            "When the file can't be written, as on a full disk: `refuse` refuses tool calls until it can be, "
            "`continue` serves them and counts the missing records."
        ),
    ] = "refuse"
