"""One promise of the five requirement documents, as the manifest states it."""

from __future__ import annotations

from msgspec import Struct


class Requirement(Struct, frozen=True):
    """`enforced_by` names what keeps the promise as "module:attribute"; it is never empty once nothing is deferred.

    `deferred` says what the promise waits for. Where tests already prove a part of it, the text starts with
    `STILL_MISSING` and names the rest; None means that everything in the statement is enforced and tested.
    """

    id: str
    statement: str
    source: str
    enforced_by: tuple[str, ...] = ()
    deferred: str | None = None


STILL_MISSING = "still missing: "
