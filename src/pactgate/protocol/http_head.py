"""HTTP/1.1 heads that repeat but for their Content-Length, so that a head that was read once need not be read again.

Clients and servers send the same head with each message on a connection; only the length of the body differs. Must not: judge a head;
a head is compared with one that a parser has accepted.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_LENGTH: Final = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([0-9]{1,9})(?=\r\n)")
_MOST_DIGITS: Final = 9


def split_length(head: bytes) -> tuple[bytes, int, bytes] | None:
    """The head before and after the value of its first Content-Length, and that value; None where there is none in a usual spelling."""
    found = _LENGTH.search(head)
    if found is None:
        return None
    start, end = found.span(1)
    return head[:start], int(found[1]), head[end:]


class RepeatedHeads(Generic[T]):
    """The last heads that differ in more than their length, each with what it says. `most` is how many are kept."""

    __slots__ = ("_known",)

    def __init__(self, most: int) -> None:
        self._known: deque[tuple[bytes, bytes, T]] = deque(maxlen=most)

    def __len__(self) -> int:
        return len(self._known)

    def find(self, data: bytes) -> tuple[T, bytes, int] | None:
        """If these bytes begin with a known head: what it says, the digits of its length, and where the body begins."""
        for before, after, said in self._known:
            if data.startswith(before):
                start = len(before)
                end = data.find(b"\r", start, start + _MOST_DIGITS + 1)
                digits = data[start:end]
                if digits.isdigit() and data.startswith(after, end):
                    return said, digits, end + len(after)
        return None

    def note(self, before: bytes, after: bytes, said: T) -> None:
        """Keep a whole head, as `split_length` has split it."""
        self._known.appendleft((before, after, said))
