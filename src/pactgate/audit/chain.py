"""A hash chain of records: every line has the hash of the line before it, and its own.

A line is one JSON object that begins with `seq` and `prev` and ends with `hash`, the SHA-256 of everything before it, or its HMAC where
there is a key. Changing, removing, inserting or swapping lines breaks the chain. An attacker who can rewrite the whole file can make a
new chain, unless there is a key the attacker does not have. The file alone does not show lines that are missing at its end: keep the last
hash elsewhere where that matters. Pure.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Any, Final

import msgspec
from msgspec import Struct

GENESIS: Final = "0" * 64
"""The previous hash of the first line."""
MAX_LINE_BYTES: Final = 131_072
_END: Final = re.compile(rb',"hash":"([0-9a-f]{64})"\}\n?\Z')
_END_BYTES: Final = 76


class ChainLink(Struct, frozen=True):
    """The end of a chain: the number and the hash of its last line."""

    seq: int
    hash: str


START: Final = ChainLink(0, GENESIS)


class RecordHead(Struct, frozen=True):
    """The position of a line in the chain, and its kind."""

    seq: int
    prev: str
    kind: str = ""


class BrokenLineError(Exception):
    """A line is not as it was written; the text says why."""


_head: Final = msgspec.json.Decoder(RecordHead)


def append_record(facts: bytes, last: ChainLink, key: bytes = b"") -> tuple[bytes, ChainLink]:
    """The line that follows `last` with `facts`, a JSON object that is not empty, and the new end of the chain."""
    seq = last.seq + 1
    body = b'{"seq":%d,"prev":"%b",%b' % (seq, last.hash.encode(), facts[1:-1])
    digest = _digest(body, key)
    return b'%b,"hash":"%b"}\n' % (body, digest.encode()), ChainLink(seq, digest)


def read(line: bytes, key: bytes = b"") -> tuple[RecordHead, ChainLink]:
    """The head of a line, and the link it makes. Raises BrokenLineError when the line is not as it was written."""
    if len(line) > MAX_LINE_BYTES:
        raise BrokenLineError("it is longer than any record")
    found = _END.search(line, max(0, len(line) - _END_BYTES - 1))
    if found is None:
        raise BrokenLineError("it does not end like a record")
    digest = found[1].decode()
    if _digest(line[: found.start()], key) != digest:
        raise BrokenLineError("its content was changed, or it was written with another audit.key")
    try:
        head = _head.decode(line)
    except (msgspec.DecodeError, RecursionError):
        raise BrokenLineError("it is no JSON of ours") from None
    return head, ChainLink(head.seq, digest)


def _digest(data: bytes, key: bytes) -> str:
    return hmac.digest(key, data, "sha256").hex() if key else hashlib.sha256(data).hexdigest()


def mismatch(head: RecordHead, last: ChainLink) -> str | None:
    """Why a valid line does not follow `last`, or None."""
    if (head.seq, head.prev) == (last.seq + 1, last.hash):
        return None
    if head.seq > last.seq + 1:
        missing = head.seq - last.seq - 1
        return f"{missing} record{'s' if missing > 1 else ''} before it {'are' if missing > 1 else 'is'} missing"
    if head.seq <= last.seq:
        return f"it is out of order: number {head.seq} after number {last.seq}"
    return "it does not follow the record before it, which was replaced"


def facts(line: bytes) -> dict[str, Any]:
    """All members of a valid line."""
    said: dict[str, Any] = msgspec.json.decode(line)
    return said


def claimed_hash(line: bytes) -> str | None:
    """The hash that a line claims, right or wrong."""
    found = _END.search(line, max(0, len(line) - _END_BYTES - 1))
    return found[1].decode() if found else None
